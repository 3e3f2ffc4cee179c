"""Two embeddings compared on the same people: differences A - B with paired intervals.

Both are attacked with the same training and test nodes and rank the same lists, so what is compared
is each node's own difference, and what makes a node hard for both cancels:

    var(A - B) = sum_u (a_u - b_u)^2,   with a_u, b_u the influence of node u on either value

The interval is over nodes, embeddings and attackers fixed; another training seed may lie outside it, which
`paired_seeds` is for. The strongest attacker is chosen as in an audit, that of an attacker that knows edges stands by
itself. Micro-F1: Agresti and Min (Biometrics 2005), half a node added to each of the four
outcomes, as the plain interval has no width where no node differs. AUC: DeLong et al. (Biometrics 1988). NDCG: t,
with the variance over people of pairs in lists (`ndcg.list_noise`), as an edge stands in the lists of both its ends.
Before it stands the attribute-matched one (`matched`), as the usual pays for reading the attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm, t

from uge_core.arrays import Float64, FloatArray, IntArray
from uge_core.audit import ndcg
from uge_core.audit.attacker_order import candidates
from uge_core.audit.attackers.base import Shared
from uge_core.audit.base import METRICS, Evidence
from uge_core.audit.disclosure import Disclosure, Everybody
from uge_core.audit.holm import holm
from uge_core.audit.leakage import MIN_CLASS, MIN_TEST, Prediction, attack, class_areas
from uge_core.audit.matched import MatchedLists, Ranked, matched_lists
from uge_core.audit.run import checked_embedding
from uge_core.audit.sampling import Sampling
from uge_core.errors import ConfigError
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.scores import Factors, Scored, scorer
from uge_core.graph.split import LinkSplit, RankingTask, probe_split, ranking_task

if TYPE_CHECKING:
    import pandas as pd

_LEVEL = 0.95


@dataclass(frozen=True)
class Paired:
    """Two values measured on the same units, and their difference.

    Attributes:
        a: the first value, None where the evidence is insufficient.
        b: the second.
        low: lower end of the 95 % interval of a - b, or None.
        high: its upper end.
        p_value: two-sided, of the difference being 0.
        n: units: nodes, lists or seeds.
        note: a remark.
    """

    a: float | None
    b: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    n: int = 0
    note: str | None = None

    @property
    def value(self) -> float | None:
        """A - b."""
        return None if self.a is None or self.b is None else self.a - self.b


@dataclass(frozen=True, eq=False)
class Compared:
    """One of two embeddings.

    Attributes:
        embedding: (N, d) as it is handed out.
        twin: (N, d) of the member that did not see the tested nodes' values, or None.
        treated: the attributes that training tried to remove, which the twin's leakage rows are about.
        read: the attributes whose values training read.
        score: of a pair of nodes, a name that `scores.scorer` knows, for NDCG.
    """

    embedding: FloatArray
    twin: FloatArray | None = None
    treated: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    score: str = "dot"

    def about(self, attribute: str) -> dict[str | None, FloatArray]:
        """By exposure, the embeddings whose leakage of an attribute is measured."""
        by_exposure: dict[str | None, FloatArray] = {"seen" if attribute in self.read else None: self.embedding}
        return by_exposure | ({"unseen": self.twin} if self.twin is not None and attribute in self.treated else {})

    def linked(self) -> dict[str | None, Factors]:
        """By exposure, what ranks links."""
        scored = scorer(self.score).factors
        by_exposure: dict[str | None, Factors] = {"seen" if self.read else None: scored(self.embedding)}
        return by_exposure | ({} if self.twin is None else {"unseen": scored(self.twin)})


@dataclass(frozen=True)
class Difference:
    """One row of a comparison; fields that an audit's row has too mean the same.

    Attributes:
        a: the first embedding's value.
        b: the second's.
        value: a - b; below 0 the first is lower.
        p_value: two-sided, of the difference being 0.
        p_holm: the same adjusted for all rows of the comparison that have one.
    """

    metric: str
    attribute: str | None
    attacker: str | None
    variant: str | None
    exposure: str | None
    a: float | None
    b: float | None
    value: float | None
    ci_low: float | None
    ci_high: float | None
    ci_kind: str | None
    n: int
    p_value: float | None
    p_holm: float | None
    direction: str
    evidence: Evidence
    note: str | None


@dataclass(frozen=True)
class Comparison:
    """The rows of one comparison."""

    rows: tuple[Difference, ...]

    def frame(self) -> pd.DataFrame:
        """The rows as a pandas table, one column a field."""
        import pandas as pd

        return pd.DataFrame(self.to_json(), columns=[f.name for f in fields(Difference)])

    def to_json(self) -> list[dict[str, Any]]:
        """The rows as plain dicts."""
        return [asdict(row) for row in self.rows]


def compare_embeddings(
    a: Compared,
    b: Compared,
    graph: AttributedGraph,
    split: LinkSplit | None,
    *,
    attributes: Sequence[str] | None = None,
    unknown: str | None = None,
    split_seed: int = 0,
    attackers: Sequence[str],
    seed: int = 0,
    disclosure: Disclosure | None = None,
    sampling: Sampling | None = None,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Differences A - B in leakage and held-out NDCG@10, among strangers of one group and among all.

    Rows of the same exposure are compared; an embedding that read no attribute, or of which nobody knows, counts as
    both.

    Args:
        a: the first.
        b: the second.
        graph: the graph that both embed.
        split: which edges neither training saw; None when nobody knows, and then links are not compared.
        attributes: names; None: all attributes of people.
        unknown: what a missing value is, as in an audit; None: the graph's own default.
        split_seed: keys the probe's split and the lists.
        attackers: names from ``registry.names("audit.attackers")``.
        seed: keys the order of ties.
        disclosure: who is left out, so that counts point at nobody; None: nobody.
        sampling: how many people are measured; None: as an audit does.
        progress: told what is being done.

    Raises:
        ConfigError: an attacker that does not exist, or an embedding without one finite row per node.
        GraphError: the graph has no such attribute.
    """
    for side in (a, b):
        checked_embedding(side.embedding, graph, "embedding")
    wanted = (
        graph.audited if attributes is None else tuple({x.name: x for x in map(graph.attribute, attributes)}.values())
    )
    for attribute in wanted:
        if attribute.side == "items":
            raise ConfigError(f"{attribute.name} is an attribute of items; an audit is about people")
    sampling = sampling or Sampling()
    num_people = graph.people.stop
    most = sampling.drawn(num_people)
    rows: list[Difference] = []
    known_edges = graph.edges if split is None else split.train
    cells: dict[str, IntArray] = {}
    for attribute in wanted:
        everybody = probe_split(attribute, unknown=unknown or graph.defaults.unknown, seed=split_seed)
        probe = (disclosure or Everybody()).attribute(attribute, graph, everybody).probe
        cells[attribute.name] = probe.classes
        probe = sampling.probe(probe, num_people, split_seed)
        of_a, of_b = a.about(attribute.name), b.about(attribute.name)
        fitted: dict[tuple[str, int], Prediction | None] = {}
        shared = {id(z): Shared() for z in (*of_a.values(), *of_b.values())}
        for attacker in attackers:
            for z in (*of_a.values(), *of_b.values()):
                if progress:
                    progress(f"{attacker} attacker on {attribute.name}")
                fitted[attacker, id(z)] = attack(
                    z,
                    probe.classes,
                    probe.train,
                    probe.test,
                    attacker=attacker,
                    edges=known_edges,
                    seed=split_seed,
                    shared=shared[id(z)],
                )
        for exposure, za, zb in pairs(of_a, of_b):
            predictions = {x: (fitted[x, id(za)], fitted[x, id(zb)]) for x in attackers}
            measured = [(x, paired_micro_f1(*both), paired_auc(*both)) for x, both in predictions.items()]
            if len(predictions) > 1:
                among = {x: predictions[x] for x in candidates(predictions)}
                measured.append(("worst", _strongest_micro_f1(among), _strongest_auc(among)))
            for attacker, *both in measured:
                for metric, paired in zip(("micro_f1", "auc"), both, strict=True):
                    rows.append(
                        difference(
                            metric,
                            paired,
                            attribute=attribute.name,
                            attacker=attacker,
                            variant="standard",
                            exposure=exposure,
                        )
                    )
    lists: dict[str, MatchedLists | None] = {
        name: None
        if split is None
        else matched_lists(graph, split.test, cell, twin=False, most_targets=most, seed=split_seed)
        for name, cell in cells.items()
    }
    task = None if split is None else ranking_task(graph, split.test, most=most, seed=split_seed)
    for exposure, za, zb in pairs(a.linked(), b.linked()):
        if progress:
            progress("ranking of held-out links")
        for name, of_name in lists.items():
            matched = paired_matched(za, zb, of_name, seed=seed)
            rows.append(
                difference("ndcg_at_10_matched", matched, attribute=name, variant="held-out", exposure=exposure)
            )
        ranked = paired_ndcg(za, zb, task, seed=seed)
        rows.append(difference("ndcg_at_10", ranked, variant="held-out", exposure=exposure))
    return adjusted(rows)


def pairs(a: Mapping[str | None, Any], b: Mapping[str | None, Any]) -> list[tuple[str | None, Any, Any]]:
    """What of two sides is compared: (exposure, of a, of b). Exposure None counts as both others."""
    if set(a) == set(b) == {None}:
        return [(None, a[None], b[None])]
    both = [(e, a.get(e, a.get(None)), b.get(e, b.get(None))) for e in ("unseen", "seen")]
    return [(e, x, y) for e, x, y in both if x is not None and y is not None]


def difference(
    metric: str,
    estimate: Paired,
    *,
    exposure: str | None,
    variant: str | None,
    attribute: str | None = None,
    attacker: str | None = None,
    ci_kind: str = "nodes",
) -> Difference:
    """A row from a paired estimate."""
    return Difference(
        metric,
        attribute,
        attacker,
        variant,
        exposure,
        estimate.a,
        estimate.b,
        estimate.value,
        estimate.low,
        estimate.high,
        None if estimate.low is None else ci_kind,
        estimate.n,
        estimate.p_value,
        None,
        METRICS[metric].direction,
        "insufficient" if estimate.value is None else "ok",
        estimate.note,
    )


def adjusted(rows: Iterable[Difference]) -> Comparison:
    """The rows with Holm's p-values over all that have one."""
    rows = list(rows)
    p = holm([r.p_value for r in rows if r.p_value is not None])
    values = iter(p)
    return Comparison(tuple(r if r.p_value is None else replace(r, p_holm=float(next(values))) for r in rows))


def paired_seeds(values_a: Sequence[float], values_b: Sequence[float]) -> Paired:
    """The mean difference over training seeds, with a t interval (n - 1 degrees of freedom).

    Args:
        values_a: one value per seed.
        values_b: of the other method with the same seeds in the same order, so that common random numbers cancel.

    Raises:
        ConfigError: unequal numbers of seeds, or fewer than two.
    """
    if len(values_a) != len(values_b) or len(values_a) < 2:
        raise ConfigError(
            f"{len(values_a)} and {len(values_b)} values; a paired interval over seeds needs the same seeds on both "
            "sides, two at least"
        )
    a, b = np.asarray(values_a, dtype=np.float64), np.asarray(values_b, dtype=np.float64)
    k = len(a)
    return _student(float(a.mean()), float(b.mean()), float((a - b).std(ddof=1) / np.sqrt(k)), k - 1, k)


def paired_micro_f1(a: Prediction | None, b: Prediction | None) -> Paired:
    """The difference of the shares predicted right, in [-1, 1].

    With n tested nodes, of which r are right in A alone and s in B alone, and each of the four outcomes
    half a node larger: d = (r - s) / (n + 2), variance (r + 1/2 + s + 1/2 - (n + 2) d^2) / (n + 2)^2.
    """
    if a is None or b is None:
        return _NOTHING
    right_a, right_b = a.label == a.truth, b.label == b.truth
    n = len(right_a)
    if n < MIN_TEST:
        return Paired(None, None, n=n, note=f"{n} tested nodes, at least {MIN_TEST} are needed")
    only_a, only_b = int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
    d = (only_a - only_b) / (n + 2)
    spread = float(np.sqrt(only_a + only_b + 1 - (n + 2) * d * d) / (n + 2))
    return _normal(float(right_a.mean()), float(right_b.mean()), spread, n, centre=d)


def paired_auc(a: Prediction | None, b: Prediction | None) -> Paired:
    """The difference of the macro one-vs-rest AUCs, over the same values on both sides."""
    if a is None or b is None:
        return _NOTHING
    (area_a, of_a), (area_b, of_b) = _auc_influence(a), _auc_influence(b)
    if area_a is None or area_b is None:
        return _no_class(len(a.truth))
    return _normal(area_a, area_b, float(np.sqrt(((of_a - of_b) ** 2).sum())), len(a.truth))


def paired_ndcg(a: Scored, b: Scored, task: RankingTask | None, *, seed: int = 0) -> Paired:
    """The difference of the held-out NDCG@10, over the same lists with ties broken alike.

    Args:
        a: the first.
        b: the second.
        task: the lists of held-out links; None: nobody knows what was held out.
        seed: keys the order of ties.
    """
    if task is None:
        return Paired(None, None, note="no edges are known to be held out of both trainings")
    rankings = [ndcg.rank_candidates(z, task, seed=seed) for z in (a, b)]
    values = [ndcg.ndcg_per_target(r, np.ones(len(r.rank)), len(task.targets)) for r in rankings]
    contested = ((task.candidates >= 0) & ~task.relevant).any(axis=1)
    keep = contested & np.isfinite(values[0]) & np.isfinite(values[1])
    n = int(keep.sum())
    if n < ndcg.MIN_TARGETS:
        return Paired(None, None, n=n, note=f"{n} lists, at least {ndcg.MIN_TARGETS} are needed")
    first, second = (float(v[keep].mean()) for v in values)
    deviation = np.where(keep, (values[0] - values[1] - (first - second)) / n, 0.0)
    noise = ndcg.list_noise(deviation, np.where(keep, 0, -1), 1, task, rankings[0], seed=seed)
    assert noise is not None  # there are enough lists
    return _student(first, second, float(np.sqrt(noise.variance[0])), float(noise.df[0]), n)


def paired_matched(a: Scored, b: Scored, lists: MatchedLists | None, *, seed: int = 0) -> Paired:
    """The difference of the attribute-matched NDCG@10, over the same links and strangers with ties broken alike.

    Args:
        a: the first.
        b: the second.
        lists: each held-out link among strangers of the friend's group; None: nobody knows what was held out.
        seed: keys the order of ties.
    """
    if lists is None:
        return Paired(None, None, note="no edges are known to be held out of both trainings")
    n = len(lists.matched.targets)
    if lists.targets < ndcg.MIN_TARGETS:
        few = f"{lists.targets} nodes have links to rank among strangers, at least {ndcg.MIN_TARGETS} are needed"
        return Paired(None, None, n=n, note=few)
    first, second = (Ranked.of(z, lists.matched, seed=seed) for z in (a, b))
    means = float(first.value.mean()), float(second.value.mean())
    if np.array_equal(first.value, second.value):
        return Paired(*means, 0.0, 0.0, 1.0, n)
    estimate, p_value = second.mean_below(first, seed=seed)
    return Paired(*means, estimate.low, estimate.high, p_value, n, estimate.note)


_NOTHING = Paired(None, None, note="fewer than two values to learn from, or no node to test")


def _no_class(n: int) -> Paired:
    few = f"no value has {MIN_CLASS} nodes to learn from, {MIN_CLASS} tested and {MIN_CLASS} tested outside it"
    return Paired(None, None, n=n, note=few)


_Both = Mapping[str, tuple[Prediction | None, Prediction | None]]


def _strongest_micro_f1(predictions: _Both) -> Paired:
    """Each side's strongest attacker, chosen by its share of right answers."""

    def share(p: Prediction | None) -> float:
        return -1.0 if p is None else float((p.label == p.truth).mean())

    first, second = (max(predictions, key=lambda x: share(predictions[x][side])) for side in (0, 1))
    return _named(paired_micro_f1(predictions[first][0], predictions[second][1]), predictions, first, second)


def _strongest_auc(predictions: _Both) -> Paired:
    """Each side's strongest attacker, by its AUC as it is: which way to read is learned before anyone is tested."""
    best = []
    for side in (0, 1):
        measured = []
        for attacker, both in predictions.items():
            prediction = both[side]
            if prediction is not None:
                area, influence = _auc_influence(prediction)
                if area is not None:
                    measured.append((area, influence, attacker))
        if not measured:
            n = next((len(p.truth) for both in predictions.values() for p in both if p is not None), 0)
            return _no_class(n)
        best.append(max(measured, key=lambda m: m[0]))
    (area_a, of_a, first), (area_b, of_b, second) = best
    paired = _normal(area_a, area_b, float(np.sqrt(((of_a - of_b) ** 2).sum())), len(of_a))
    return _named(paired, predictions, first, second)


def _named(estimate: Paired, predictions: _Both, first: str, second: str) -> Paired:
    who = (
        f"strongest of {', '.join(predictions)}: {first} on the first, {second} on the second; the interval takes this "
        "choice as given"
    )
    return replace(estimate, note="; ".join(filter(None, (who, estimate.note))))


def _auc_influence(prediction: Prediction) -> tuple[float | None, Float64]:
    """The macro AUC, and each tested node's influence on it with the n / (n - 1) of a sample variance."""
    areas = list(class_areas(prediction))
    influence = np.zeros(len(prediction.truth))
    if not areas:
        return None, influence
    for area in areas:
        influence += area.influence
    return float(np.mean([area.value for area in areas])), influence / len(areas)


def _normal(a: float, b: float, spread: float, n: int, *, centre: float | None = None) -> Paired:
    """A normal interval around the difference, or around `centre`, with its p-value."""
    middle = a - b if centre is None else centre
    return _interval(a, b, middle, spread, float(norm.ppf(0.5 + _LEVEL / 2)), lambda z: float(2 * norm.sf(z)), n)


def _student(a: float, b: float, spread: float, df: float, n: int) -> Paired:
    """A t interval of the difference."""
    return _interval(a, b, a - b, spread, float(t.ppf(0.5 + _LEVEL / 2, df)), lambda z: float(2 * t.sf(z, df)), n)


def _interval(
    a: float, b: float, middle: float, spread: float, quantile: float, tail: Callable[[float], float], n: int
) -> Paired:
    if spread > 0:
        return Paired(a, b, middle - quantile * spread, middle + quantile * spread, tail(abs(middle) / spread), n)
    if middle == 0:
        return Paired(a, b, 0.0, 0.0, 1.0, n)
    return Paired(a, b, n=n, note="every unit differs by the same, which gives no interval")
