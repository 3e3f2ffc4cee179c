"""How well an attacker reads an attribute out of the embedding.

An attacker (`attackers`, a file each) learns from 80 % of the nodes and is tested on the rest
(`split.probe_split`). Of its predictions we report Micro-F1 (for one label a node: accuracy),
balanced accuracy (mean recall of the classes tested), macro one-vs-rest AUC and usable information
(bits a node below the prior's). A class absent from training counts as an error.

Departure from the paper's probe (Sec. 6.2): inputs are standardised on the training nodes, so that
a penalty or a distance means the same for every embedding.

Probabilities are calibrated on a stratified tenth of the training nodes that the attacker did not
learn from, never on tested ones (`calibration`). Attackers that `learns_twice`, as the linear one in the
paper, then learn again from all training nodes and keep their calibration; the others attack as they are, fitted
on nine tenths, as a second fit would double the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module

import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta, norm, rankdata, t
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from uge_core.arrays import BoolArray, Float64, FloatArray, IntArray
from uge_core.audit.attacker_order import DEFAULT_ATTACKERS as DEFAULT_ATTACKERS
from uge_core.audit.attackers.base import Attacker, Seen, Shared
from uge_core.audit.calibration import fit_calibration
from uge_core.audit.sampling import drawn_by_class
from uge_core.graph.graph import Attribute
from uge_core.graph.split import probe_split
from uge_core.registry import find

MIN_TEST = 20  # fewer tested nodes are no evidence
MIN_CLASS = 10  # fewer nodes of a class in training or test, or of the others, give no AUC
MIN_CALIBRATION = 10  # fewer nodes set aside say nothing about probabilities
_FOLDS = 2
_FEW_TO_CROSS = 10_000  # people up to whom a value read backwards is looked for in all folds
_TURNED_AT = 2.0  # standard errors below .5
_DOUBTED_AT = 0.5  # of few people, before all folds are tried
_QUANTILE = 1.959964
_MODELLED = 2.0  # people whose variance the model says, beside those of the smaller side


@dataclass(frozen=True, eq=False)
class Prediction:
    """What an attacker says about the tested nodes.

    Attributes:
        truth: (n,) int64 classes.
        classes: (K,) the classes seen in training, ascending.
        train_size: (K,) how many training nodes each has.
        probability: (n, K) of each class, as the attacker gives it, or turned round where it reads the class backwards;
            rounded to 40 bits, so that people with equal evidence are tied. Rows sum to 1 where no class is turned.
        label: (n,) the predicted class.
        calibrated: (n, K) of each class, calibrated; None where too few nodes could be set aside for it.
        note: how the attacker was limited, or None.
    """

    truth: IntArray
    classes: IntArray
    train_size: IntArray
    probability: Float64
    label: IntArray
    calibrated: Float64 | None = None
    note: str | None = None


@dataclass(frozen=True)
class Estimate:
    """A value with a 95 % interval over nodes.

    Attributes:
        value: the value, None where the evidence is insufficient.
        low: lower end.
        high: upper end.
        note: a remark, such as what was left out.
        influence: (n,) what each tested person adds to the value, less its mean, where it is a mean over people.
        df: degrees of freedom behind the interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    note: str | None = None
    influence: Float64 | None = field(default=None, compare=False, repr=False)
    df: float = np.inf


def attack(
    embedding: FloatArray,
    classes: IntArray,
    train: IntArray,
    test: IntArray,
    *,
    attacker: str = "linear",
    edges: IntArray | None = None,
    standardise: bool = True,
    calibrate: bool = True,
    seed: int = 0,
    shared: Shared | None = None,
) -> Prediction | None:
    """Fits an attacker and lets it predict.

    Args:
        embedding: (N, d) float32.
        classes: (N,) int64 class of each node.
        train: nodes to learn from.
        test: nodes to predict; their classes are copied into the prediction and not used otherwise.
        attacker: a name from ``registry.names("audit.attackers")``.
        edges: (2, E) the edges an attacker may know, those of training; only one that `knows_edges` needs them.
        standardise: scale inputs by mean and spread of the training nodes.
        calibrate: set a tenth of `train` aside to calibrate on; False lets every attacker learn from all.
        seed: keys what is set aside, and the attacker's own draws.
        shared: what attackers of these people and this embedding share; None: nothing.

    Returns:
        The predictions; None when training has fewer than two classes or nothing is tested.

    Raises:
        ConfigError: there is no such attacker, or it needs edges.
    """
    plugin: Attacker = find("audit.attackers", attacker)()
    for module in plugin.needs:  # at its first import scikit-learn's OpenMP would not know the limit below
        import_module(module)
    known, y, train_size = np.unique(classes[train], return_inverse=True, return_counts=True)
    if len(known) < 2 or not len(test):
        return None
    most = plugin.most_people(len(known))
    luck = np.random.default_rng([seed, 73]).random(len(y))
    learners = drawn_by_class(y, len(y) if most is None else most, luck)
    if not plugin.knows_edges and len(train) + len(test) < len(embedding):
        few = np.concatenate([train, test])  # of very many people most take no part
        embedding, train, asked = embedding[few], np.arange(len(train)), np.arange(len(train), len(few))
    else:
        asked = test
    x, x_test = plugin.rows(Seen(embedding, train, y, learners, asked, edges, seed, shared or Shared()))
    own = y[learners]
    if standardise and plugin.scaled:
        x, x_test = x.astype(np.float64), x_test.astype(np.float64)
        centre, spread = x.mean(axis=0), x.std(axis=0)
        spread[spread == 0] = 1.0
        x, x_test = (x - centre) / spread, (x_test - centre) / spread
    learnt, calibration = _calibration_split(own, seed) if calibrate else (np.arange(len(own)), np.arange(0))
    # One thread: these are many short parallel regions, and where another process keeps a core busy
    # their threads wait for each other (trees on Pokec's age: 198 s against 7 s).
    with threadpool_limits(limits=1):
        first = plugin.fit(x[learnt], own[learnt], seed=seed)
        last = plugin.fit(x, own, seed=seed) if plugin.learns_twice and len(calibration) else first
        probability = last.probability(x_test)
        calibrated = None
        if len(calibration):
            checked = first.probability(x[calibration])
            turned = _read_backwards(plugin, x, own, calibration, checked, seed)
            turned &= np.ptp(_rounded(probability), axis=0) > 0  # who tells nobody apart has no way round
            level = checked.mean(axis=0)
            probability, checked = _turned(probability, turned, level), _turned(checked, turned, level)
            prior = train_size / len(y)
            calibrated = fit_calibration(checked, own[calibration], prior).apply(_rounded(probability))
    probability = _rounded(probability)
    label = known[probability.argmax(axis=1)]
    return Prediction(classes[test], known, train_size, probability, label, calibrated, last.note)


def _read_backwards(
    plugin: Attacker, x: Float64, y: IntArray, checked: IntArray, probability: Float64, seed: int
) -> BoolArray:
    """(K,) classes that the attacker reads backwards in people it did not learn from, so that it would turn them round.

    Those whose area under the ROC curve is below .5 by two standard errors: of the people set aside where they are
    many, else of all, each predicted by a fit to the other folds.

    Args:
        plugin: the attacker.
        x: (n, p) inputs.
        y: (n,) classes.
        checked: positions of the people set aside.
        probability: (len(checked), K) what the attacker says of them.
        seed: keys the folds.
    """
    backwards = _below_half(y[checked], probability, errors=_DOUBTED_AT, fewest=2)
    if not backwards.any() or len(y) > _FEW_TO_CROSS:
        return _below_half(y[checked], probability, errors=_TURNED_AT)
    size = np.bincount(y)
    by_class = np.lexsort((np.random.default_rng([seed, 74]).random(len(y)), y))
    fold = np.empty(len(y), dtype=np.int64)
    fold[by_class] = np.arange(len(y)) % _FOLDS
    fold[size[y] < 2 * _FOLDS] = -1  # always learnt from, so that each fit knows each class
    answers = np.zeros((len(y), len(size)))
    for f in range(_FOLDS):
        out = fold == f
        if out.any():
            answers[out] = plugin.fit(x[~out], y[~out], seed=seed).probability(x[out])
    return backwards & _below_half(y[fold >= 0], answers[fold >= 0], errors=_TURNED_AT)


def _below_half(y: IntArray, probability: Float64, *, errors: float, fewest: int = MIN_CLASS) -> BoolArray:
    """(K,) whether a class's area, so many standard errors higher, is below .5."""
    below = np.zeros(probability.shape[1], dtype=bool)
    enough = np.full(len(below), MIN_CLASS)
    held = Prediction(y, np.arange(len(below)), enough, _rounded(probability), probability.argmax(axis=1))
    for area in class_areas(held, fewest):
        below[area.label] = area.value + errors * np.sqrt(np.square(area.influence).sum()) < 0.5
    return below


def _turned(probability: Float64, turned: BoolArray, level: Float64) -> Float64:
    """The probabilities with the odds of some classes turned round, about `level`: p = level stays.

    Of classes that are not turned they stay too, so rows of three classes no longer sum to 1; made to, a class turned by
    itself would be level with the sum of the others in each row, and nobody told from anybody.
    """
    up, down = np.square(level) * (1.0 - probability), np.square(1.0 - level) * probability
    return np.where(turned & (level > 0) & (level < 1), up / np.maximum(up + down, 1e-300), probability)


def _rounded(probability: Float64) -> Float64:
    """To 40 significant bits.

    What is equal by its formula (equal vectors, neighbours all of one value) comes out of library sums with other last
    bits of the 53, by where it stands and by the processor. An area under the ROC curve took that for an order, and
    differed by 1e-5 between two processors.
    """
    part, power = np.frexp(probability)
    return np.asarray(np.ldexp(np.round(part * 2.0**40) / 2.0**40, power))


def _calibration_split(y: IntArray, seed: int) -> tuple[IntArray, IntArray]:
    """Positions to learn from and to calibrate on: a stratified tenth, more where that is under twenty nodes."""
    share = min(0.2, max(0.1, MIN_TEST / len(y)))
    split = probe_split(Attribute("", y, ("",) * (int(y.max()) + 1)), seed=seed, test_share=share)
    if len(split.test) < MIN_CALIBRATION:
        return np.arange(len(y)), split.test[:0]
    return split.train, split.test


def micro_f1(prediction: Prediction) -> Estimate:
    """Micro-F1: with one label a node the share predicted right, in [0, 1].

    Estimand: tested nodes are a sample, the attacker is fixed. The interval is Jeffreys' for a share (Brown, Cai and
    DasGupta 2001), which has a width where all or none are right.
    """
    n = len(prediction.truth)
    if n < MIN_TEST:
        return Estimate(None, note=f"{n} tested nodes, at least {MIN_TEST} are needed")
    right = int((prediction.label == prediction.truth).sum())
    low, high = (float(beta.ppf(q, right + 0.5, n - right + 0.5)) for q in (0.025, 0.975))
    influence = ((prediction.label == prediction.truth) - right / n) / n
    return Estimate(right / n, low if right else 0.0, high if right < n else 1.0, influence=influence)


def balanced_accuracy(prediction: Prediction) -> Estimate:
    """Mean recall of the classes that are tested, in [0, 1]; 1 / (their number) is chance.

    The interval is the normal one of a mean of independent shares, as the stratified split fixes the classes' numbers.
    Each recall's variance is taken at (right + 1/2) / (n + 1), so that a class of which all or none are right has one.
    """
    n = len(prediction.truth)
    tested, index, size = np.unique(prediction.truth, return_inverse=True, return_counts=True)
    if n < MIN_TEST or len(tested) < 2:
        return Estimate(None, note=f"{n} tested nodes of {len(tested)} classes, at least {MIN_TEST} of 2 are needed")
    right = np.bincount(index, prediction.label == prediction.truth)
    value, share = float((right / size).mean()), (right + 0.5) / (size + 1)
    margin = 1.96 * float(np.sqrt((share * (1 - share) / size).sum())) / len(tested)
    hit = prediction.label == prediction.truth
    influence = (hit - (right / size)[index]) / size[index] / len(tested)
    return Estimate(value, max(0.0, value - margin), min(1.0, value + margin), influence=influence)


@dataclass(frozen=True, eq=False)
class ClassArea:
    """How well one class is told from the others.

    Attributes:
        label: the class.
        value: area under the ROC curve, in [0, 1].
        num_in: tested nodes of the class.
        num_out: tested nodes of others.
        influence: (n,) each tested node's influence on the area (DeLong et al., Biometrics 1988), with the n / (n - 1)
            of a sample variance on either side, so that their squares add up to the area's variance.
    """

    label: int
    value: float
    num_in: int
    num_out: int
    influence: Float64


def class_areas(prediction: Prediction, fewest: int = MIN_CLASS) -> Iterator[ClassArea]:
    """Of each class with at least ten nodes in training, ten among the tested and ten tested ones outside it.

    Args:
        prediction: the predictions.
        fewest: in place of ten, at least two.
    """
    for column, label in enumerate(prediction.classes):
        inside = prediction.truth == label
        num_in, num_out = int(inside.sum()), int((~inside).sum())
        if min(int(prediction.train_size[column]), num_in, num_out) < fewest:
            continue
        score = prediction.probability[:, column]
        rank = rankdata(score)
        beaten = np.empty(len(score))  # the share of the other side that a node is ranked rightly against
        beaten[inside] = (rank[inside] - rankdata(score[inside])) / num_out
        beaten[~inside] = 1.0 - (rank[~inside] - rankdata(score[~inside])) / num_in
        area = float(beaten[inside].mean())
        spread = np.sqrt(np.where(inside, num_in * (num_in - 1.0), num_out * (num_out - 1.0)))
        yield ClassArea(int(label), area, num_in, num_out, (beaten - area) / spread)


def macro_auc(prediction: Prediction, labels: tuple[str, ...]) -> Estimate:
    """Mean over classes of the one-vs-rest area under the ROC curve, in [0, 1]; 0.5 is chance.

    Classes enter as `class_areas` says; the note lists the others. The variance is DeLong's: each node's influence on
    the mean, summed in squares, with Student's t where a class has few. By luck ten people's is too small just when
    their area is too large, so that of scores by a model, Hanley and McNeil's (1982), is mixed in where it is larger, as
    two people more would. An area so near to 0 or 1 that hardly a node stands on the wrong side has next to no
    influences; it gets at least the model's variance at half a node of the smaller side from there.
    The interval is that of the logit, as areas near 1 vary to below more than to above.

    Args:
        prediction: the predictions.
        labels: the classes' names, for the note.
    """
    areas = list(class_areas(prediction))
    entered = {area.label for area in areas}
    left_out = [labels[c] for c in np.unique(prediction.truth) if c not in entered]
    influence, lacking, nearest = np.zeros(len(prediction.truth)), 0.0, 0.0
    for area in areas:
        influence += area.influence
        few, far = min(area.num_in, area.num_out), max(area.value, 1 - area.value)
        edge = 0.5 / (few + 1)
        nearest += edge
        usual = _area_variance(min(far, 1 - edge), area.num_in, area.num_out)
        weight = 1.0 if far > 1 - edge else _MODELLED / (few + _MODELLED)
        lacking += weight * max(0.0, usual - float((area.influence**2).sum()))
    if not areas:
        return Estimate(
            None,
            note=f"no value has {MIN_CLASS} nodes to learn from, {MIN_CLASS} tested and {MIN_CLASS} tested outside it",
        )
    value = float(np.mean([area.value for area in areas]))
    inner = float(np.clip(value, nearest / len(areas), 1 - nearest / len(areas)))
    df = _freedom(influence, prediction.truth)
    margin = float(t.ppf(0.975, df) * np.sqrt((influence**2).sum() + lacking)) / len(areas) / (inner * (1 - inner))
    low, high = expit(logit(inner) + np.array([-margin, margin]))
    remarks = []
    if left_out:
        shown = ", ".join(left_out[:10]) + (f" and {len(left_out) - 10} more" if len(left_out) > 10 else "")
        remarks.append(f"AUC over {len(areas)} of {len(areas) + len(left_out)} tested values; too few nodes: {shown}")
    ends = (0.0 if value == 0 else min(value, float(low))), (1.0 if value == 1 else max(value, float(high)))
    return Estimate(value, *ends, "; ".join(remarks) or None, influence / len(areas), df)


def _freedom(influence: Float64, truth: IntArray) -> float:
    """Degrees of freedom of the sum of squared influences, whose parts by class are estimated apart (Satterthwaite)."""
    index, size = np.unique(truth, return_inverse=True, return_counts=True)[1:]
    part = np.bincount(index, influence**2)
    uncertain = float((part**2 / np.maximum(size - 1, 1)).sum())
    return float(part.sum()) ** 2 / uncertain if uncertain > 0 else np.inf


def _area_variance(area: float, num_in: int, num_out: int) -> float:
    """Of an area under the ROC curve where scores are exponential, the larger of both orders of the classes."""
    twice = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
    few, many = min(num_in, num_out) - 1, max(num_in, num_out) - 1
    return (area * (1 - area) + few * min(twice) + many * max(twice)) / (num_in * num_out)


def usable_bits(prediction: Prediction) -> Estimate:
    r"""Usable information, bits a node: how much better the attacker's probabilities are than the prior.

        (1 / n) sum_i log2( q(y_i | x_i) / prior(y_i) )

    The prior's log loss less the attacker's (Xu et al., ICLR 2020, with this attacker as the
    family); the prior is the classes' shares in training, q is calibrated. 0 is nothing, the prior's
    entropy is all; below 0 the attacker is worse than the prior, at most by log2(1000) bits. A node
    of a class absent from training counts 0: neither can tell. The interval is the normal one of a
    mean over tested nodes.
    """
    n = len(prediction.truth)
    if n < MIN_TEST:
        return Estimate(None, note=f"{n} tested nodes, at least {MIN_TEST} are needed")
    if prediction.calibrated is None:
        return Estimate(None, note=f"fewer than {MIN_CALIBRATION} nodes could be set aside to calibrate on")
    column = np.minimum(np.searchsorted(prediction.classes, prediction.truth), len(prediction.classes) - 1)
    trained = prediction.classes[column] == prediction.truth
    prior = prediction.train_size / prediction.train_size.sum()
    gain = np.where(trained, np.log2(prediction.calibrated[np.arange(n), column] / prior[column]), 0.0)
    value, margin = float(gain.mean()), 1.96 * float(gain.std(ddof=1) / np.sqrt(n))
    return Estimate(value, value - margin, value + margin, influence=(gain - value) / n)


def majority_rate(classes: IntArray, train: IntArray, test: IntArray) -> float | None:
    """What always answering with the training nodes' largest class scores on the tested nodes."""
    if not len(train) or not len(test):
        return None
    return float((classes[test] == np.bincount(classes[train]).argmax()).mean())


def random_embedding(num_nodes: int, dim: int, *, seed: int = 0) -> FloatArray:
    """(num_nodes, dim) uniform on [0, 1]: the paper's Random (Sec. 6.1), which knows nothing."""
    return np.random.default_rng([seed, 33]).random((num_nodes, dim), dtype=np.float32)


def _one_of_the_tested(classes: IntArray, train: IntArray, test: IntArray) -> float | None:
    """The floor where each tested class counts the same."""
    tested = len(np.unique(classes[test]))
    return 1.0 / tested if tested else None


@dataclass(frozen=True)
class Measure:
    """How a metric of leakage is measured.

    Attributes:
        estimate: from an attacker's predictions and the classes' names.
        floor: what always answering with the largest class gives, from (N,) classes, training nodes and tested nodes.
    """

    estimate: Callable[[Prediction, tuple[str, ...]], Estimate]
    floor: Callable[[IntArray, IntArray, IntArray], float | None]


MEASURES: Mapping[str, Measure] = {
    "micro_f1": Measure(lambda prediction, _: micro_f1(prediction), majority_rate),
    "balanced_accuracy": Measure(lambda prediction, _: balanced_accuracy(prediction), _one_of_the_tested),
    "auc": Measure(macro_auc, lambda *_: 0.5),
    "usable_bits": Measure(lambda prediction, _: usable_bits(prediction), lambda *_: 0.0),
}
"""By metric, in the order of rows."""


def measure(prediction: Prediction | None, labels: tuple[str, ...]) -> dict[str, Estimate]:
    """All measures of one attack; insufficient ones where there is no prediction."""
    if prediction is None:
        return dict.fromkeys(MEASURES, Estimate(None, note="fewer than two values to learn from, or no node to test"))
    estimates = {metric: how.estimate(prediction, labels) for metric, how in MEASURES.items()}
    if prediction.note is None:
        return estimates
    return {k: replace(e, note="; ".join(filter(None, (e.note, prediction.note)))) for k, e in estimates.items()}


def strongest(estimates: Mapping[str, Estimate], *, share: bool, draws: int = 20_000) -> tuple[str, Estimate] | None:
    r"""The largest of several attackers' values, with an interval that holds for the choice of the largest.

    The parameter is the largest of the values that the fitted attackers have over all people, max_k t_k. With
    z_k = (v_k - t_k) / s_k jointly normal, their correlations those of the influences, and q the 97.5 % quantile of
    max_k z_k,

        low = max_k (v_k - q s_k),     high = max_k (v_k + 1.96 s_k)

    low is above max t_k only where some z_k is above q; high is below it only where that of the largest t_k is below
    -1.96. So each end misses in 2.5 % at most, however many attackers there are, and whichever is chosen. s_k is that of
    each attacker's own interval, on its own scale.

    Args:
        estimates: by attacker.
        share: values are shares, whose intervals are widened as logits.
        draws: of the joint normal; the same ones each time.

    Returns:
        The attacker of the largest value, and its value with the interval; None where no value was measured.
    """
    measured = {name: e for name, e in estimates.items() if e.value is not None}
    if not measured:
        return None
    name = max(measured, key=lambda k: measured[k].value or 0.0)
    best = measured[name]
    bounded = [e for e in measured.values() if e.low is not None and e.high is not None and e.influence is not None]
    if len(bounded) < 2 or len(bounded) < len(measured):
        return name, best
    influence = np.stack([e.influence for e in bounded if e.influence is not None])
    length = np.sqrt(np.square(influence).sum(axis=1))
    influence /= np.where(length > 0, length, 1.0)[:, None]
    values, vectors = np.linalg.eigh(influence @ influence.T)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T  # symmetric: moves little where the matrix does
    drawn = root @ np.random.default_rng(75).standard_normal((len(bounded), draws))
    quantile = max(float(np.quantile(drawn.max(axis=0), 0.975)), _QUANTILE)
    # one who says the same of everybody would hold the lower end up at chance
    telling = [e for e, own in zip(bounded, length, strict=True) if own > 0 or e.value == 1]
    low = max(_lower(e, quantile, share) for e in telling or [best])
    high = max(e.high for e in bounded if e.high is not None)
    assert best.value is not None
    return name, replace(best, low=min(low, best.value), high=high)


def _lower(estimate: Estimate, quantile: float, share: bool) -> float:
    """The lower end of an interval widened from 1.96 to `quantile` standard errors."""
    assert estimate.value is not None and estimate.low is not None
    ratio = float(t.ppf(norm.cdf(quantile), estimate.df) / t.ppf(0.975, estimate.df))
    if not share or not 0 < estimate.low <= estimate.value < 1:
        return estimate.value - ratio * (estimate.value - estimate.low)
    middle = logit(estimate.value)
    return float(expit(middle - ratio * (middle - logit(estimate.low))))
