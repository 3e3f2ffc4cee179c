"""Rows of differences between groups: demographic parity and equalized opportunity.

Each is summed up over its cells in four ways, of which the cells stand with the first:

    max mu_c - min mu_c                          variant None (DP), "held-out" or "all-edges" (EO)
    min mu_c / max mu_c                          "ratio", higher is better
    sqrt(sum_c w_c (mu_c - mu)^2)                "weighted-sd", w_c = n_c / sum n_c, mu = sum_c w_c mu_c
    max_c |mu_c - mu|                            "worst-vs-overall"

with intervals over people and, as floor, what cells that all have the same mean would show (`dyadic`).
The shares w_c are taken as given. First stand the gaps that do not change with the length of the vectors: "calibrated"
(`calibrated`) and "top-10" (`top_ten`), each with what the training degree alone as an embedding gives. Where edges
were held out, the gaps as DeBayes measures them follow (`pair_sample`): "test-set", "thresholded" and, of DP,
"relative".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import t

from uge_core.arrays import BoolArray, Float64, IntArray
from uge_core.audit import calibrated, dyadic, pair_sample, parity, top_ten
from uge_core.audit.base import Cell, Row
from uge_core.audit.calibrated import Calibrated
from uge_core.audit.job import AuditRequest, make_row
from uge_core.audit.leakage import Estimate
from uge_core.graph.graph import Attribute, AttributedGraph
from uge_core.graph.scores import Factors

_QUICK_NODES, _QUICK_PAIRS = 20_000, 400_000
_SMALLEST = 1e-9  # of a mean, before its logarithm
_FLOORS_VERSION = 1  # counts up when a leading figure changes, so that kept floors are measured anew
_LEADING = ("calibrated", "top-10")


def parity_rows(job: AuditRequest, step: Callable[[float], None]) -> list[Row]:
    """DP and EO of the embedding as it is handed out."""
    grouped = {a.name: _Groups.of(job, a) for a in job.attributes}
    groups = {name: g.group for name, g in grouped.items()}
    if not groups:
        return []
    leading = None
    if job.threshold is None:
        leading = _Leading.of(job, job.scored, job.calibration, grouped, lambda share: step(0.3 * share))
    floors = {} if leading is None else _floors(job, grouped, lambda share: step(0.3 + 0.2 * share))
    dp = _dp(job, job.scored, groups, lambda share: step(0.5 + 0.3 * share), job.threshold)
    edges = job.graph.edges if job.split is None else job.split.test
    eo = _counted(job, grouped, parity.predicted(job.scored, edges, job.threshold), edges)
    seen_edges = None if job.split is not None else "over all edges, which training may have seen"
    sample = (
        None
        if job.split is None or job.quick or job.threshold is not None
        else pair_sample.sample_pairs(job.graph, job.split, seed=job.split_seed)
    )
    scores = None if sample is None else pair_sample.scores(job.scored, sample.pairs)
    rows: list[Row] = []
    for done, (name, told) in enumerate(grouped.items()):
        step(0.8 + 0.2 * done / len(grouped))
        first = {} if leading is None else leading.rows(job, told, floors[name])
        rows += first.get("dp", [])
        rows += _rows(job, "dp", told, dp[name], parity.MIN_PAIRS, None, None)
        rows += first.get("eo", [])
        variant = "all-edges" if job.split is None else "held-out"
        rows += _rows(job, "eo", told, eo[name], parity.MIN_EDGES, variant, seen_edges)
        if sample is not None and scores is not None:
            rows += _test_set_rows(job, told, sample, scores)
    return rows


def _dp(
    job: AuditRequest,
    scored: Factors,
    groups: Mapping[str, IntArray],
    step: Callable[[float], None],
    threshold: float | None = None,
) -> dict[str, parity.ParityCells]:
    """DP's cells."""
    return parity.dp_cells(
        scored,
        job.graph,
        groups,
        seed=job.seed,
        threshold=threshold,
        exact_nodes=_QUICK_NODES if job.quick else parity.EXACT_NODES,
        most_pairs=_QUICK_PAIRS if job.quick else parity.MOST_PAIRS,
        progress=step,
    )


@dataclass(frozen=True, eq=False)
class _Groups:
    """One attribute's groups of the people who are counted.

    Attributes:
        name: the attribute's.
        group: (N,) of each node, -1 for those who are left out or have none.
        labels: of each group.
        key: what tells their floors from those of other people's.
    """

    name: str
    group: IntArray
    labels: tuple[str, ...]
    key: str

    @classmethod
    def of(cls, job: AuditRequest, attribute: Attribute) -> _Groups:
        measured = job.measured(attribute)
        rule = f"/{job.disclosure.least}" if job.disclosure.least else ""
        return cls(attribute.name, measured.classes, measured.labels, f"{measured.key}{rule}")


def _counted(
    job: AuditRequest, grouped: Mapping[str, _Groups], value: Float64, pairs: IntArray, weight: Float64 | None = None
) -> dict[str, parity.ParityCells]:
    """By attribute, the cells of listed pairs, without those that the disclosure rule leaves out."""
    tables = {}
    for name, groups in grouped.items():
        cell, num = parity.cell_of(pairs, groups.group, job.graph)
        kept, suppressed = job.disclosure.counted(cell, num)
        mass = None if weight is None else weight[kept]
        table = parity.listed_cells(value[kept], pairs[:, kept], groups.group, job.graph, mass)
        tables[name] = replace(table, suppressed=suppressed)
    return tables


@dataclass(frozen=True, eq=False)
class _Leading:
    """What the leading rows of an embedding are made from.

    Attributes:
        calibration: its probabilities.
        dp: by attribute, DP's cells of them; empty where there are none.
        eo: by attribute, EO's.
        lists: its recommendations; None in a quick audit.
        found: by attribute, the cells of how often held-out links are among them; empty without lists or such links.
    """

    calibration: Calibrated
    dp: Mapping[str, parity.ParityCells]
    eo: Mapping[str, parity.ParityCells]
    lists: top_ten.Lists | None
    found: Mapping[str, parity.ParityCells]

    @classmethod
    def of(
        cls,
        job: AuditRequest,
        scored: Factors,
        calibration: Calibrated,
        grouped: Mapping[str, _Groups],
        step: Callable[[float], None],
    ) -> _Leading:
        graph = job.graph
        dp, eo, found = ({} for _ in range(3))
        if calibration.factors is not None:
            dp = _dp(job, calibration.factors, {name: groups.group for name, groups in grouped.items()}, step)
            eo = _counted(job, grouped, parity.predicted(calibration.factors, calibration.tested), calibration.tested)
        most = job.sampling.lists(job.num_people, top_ten.MOST_LISTS)
        lists = None if job.quick else top_ten.recommend(scored, graph, job.edges, seed=job.split_seed, most=most)
        if lists is not None and job.split is not None:
            value, pairs, weight = top_ten.found_links(lists, graph, job.split.test)
            found = _counted(job, grouped, value, pairs, weight)
        return cls(calibration, dp, eo, lists, found)

    def figures(self, job: AuditRequest, groups: _Groups) -> dict[str, float | None]:
        """One attribute's figures alone, by metric and variant."""
        tables = {
            "dp calibrated": (self.dp, parity.MIN_PAIRS),
            "eo calibrated": (self.eo, parity.MIN_EDGES),
            "eo top-10": (self.found, parity.MIN_EDGES),
        }
        figures = {
            row: parity.gap(table[groups.name], minimum).value if table else None
            for row, (table, minimum) in tables.items()
        }
        if self.lists is not None:
            figures["dp top-10"] = _largest_share(groups, job.graph, self.lists)
        return figures

    def rows(self, job: AuditRequest, groups: _Groups, floors: Mapping[str, float | None]) -> dict[str, list[Row]]:
        """One attribute's rows, of DP and of EO."""
        dp = [self._calibrated_row(job, "dp", groups)]
        eo = [self._calibrated_row(job, "eo", groups)]
        if self.lists is not None:
            dp.append(_shares_row(job, groups, self.lists, floors.get("dp random order")))
            eo.append(self._found_row(job, groups, self.lists))
        return {
            metric: [
                row if row.value is None else replace(row, floor_degree=floors.get(f"{metric} {row.variant}"))
                for row in rows
            ]
            for metric, rows in (("dp", dp), ("eo", eo))
        }

    def _calibrated_row(self, job: AuditRequest, metric: str, groups: _Groups) -> Row:
        """The gap in calibrated probabilities."""
        used = self.calibration
        tables, minimum = (self.dp, parity.MIN_PAIRS) if metric == "dp" else (self.eo, parity.MIN_EDGES)
        if used.factors is None:
            return _not_measured(job, metric, groups, "calibrated", f"not calibrated: {used.why}")
        words = (
            f"probabilities calibrated {used.words} and as many pairs without an edge, slope {used.slope:.3g} of "
            "scores in standard deviations"
        )
        if not job.calibrated:
            words += "; trained to rank, so that scores of different people need not be comparable"
        return next(_rows(job, metric, groups, tables[groups.name], minimum, "calibrated", words))

    def _found_row(self, job: AuditRequest, groups: _Groups, lists: top_ten.Lists) -> Row:
        """The gap in how often a held-out link is recommended."""
        if not self.found:
            why = "no edges are known to be held out of training"
            return _not_measured(job, "eo", groups, "top-10", why)
        bipartite = job.graph.bipartite
        each = "in the item's list" if bipartite else "either way"
        words = f"share of held-out links that are among the first ten, {each}"
        if drawn := _drawn(lists, bipartite):
            words += f"; {drawn}"
        return next(_rows(job, "eo", groups, self.found[groups.name], parity.MIN_EDGES, "top-10", words))


def _not_measured(job: AuditRequest, metric: str, groups: _Groups, variant: str, why: str) -> Row:
    """A row without a value, whose cells hold nothing."""
    none = np.zeros(0, dtype=np.int64)
    table = parity.listed_cells(none.astype(np.float64), np.stack([none, none]), groups.group, job.graph)
    cells = tuple(_cells(table, groups.labels, 1, none, None))
    given: dict[str, Any] = {"attribute": groups.name, "exposure": job.exposure, "variant": variant}
    return make_row(metric, Estimate(None), why, job.notes.get(groups.name), n=0, cells=cells, **given)


def _floors(
    job: AuditRequest, grouped: Mapping[str, _Groups], step: Callable[[float], None]
) -> dict[str, Mapping[str, float | None]]:
    """By attribute, the leading figures of the training degree as an embedding, and DP's of a random order of lists.

    They depend on the graph and its split alone and are kept; a quick audit takes those that are.
    """
    graph, split = job.graph, job.split
    held = "" if split is None else f"-{split.validation.shape[1]}-{split.test.shape[1]}"
    data = f"{graph.fingerprint}/{job.split_seed}/{job.edges.shape[1]}{held}{job.sampling.key(job.num_people)}"
    keys = {
        name: f"degree/{_FLOORS_VERSION}/{data}/{name}/{job.policies[name]}{groups.key}"
        for name, groups in grouped.items()
    }
    missing = {} if job.quick else {name: grouped[name] for name, key in keys.items() if key not in job.floors}
    if missing:
        degree = Factors.of(np.bincount(job.edges.ravel(), minlength=graph.num_nodes).astype(np.float32)[:, None])
        calibration = calibrated.fit(degree, graph, split, job.split_seed)
        leading = _Leading.of(job, degree, calibration, missing, step)
        assert leading.lists is not None
        orders = top_ten.in_random_order(graph, job.edges, leading.lists, job.split_seed)
        for name, groups in missing.items():
            chance = [value for o in orders if (value := _largest_share(groups, graph, o)) is not None]
            mean = float(np.mean(chance)) if chance else None
            job.floors[keys[name]] = {**leading.figures(job, groups), "dp random order": mean}
    return {name: job.floors.get(key, {}) for name, key in keys.items()}


def _shares_row(job: AuditRequest, groups: _Groups, lists: top_ten.Lists, floor: float | None) -> Row:
    """The largest difference of a group's share of slots in lists from its share of people."""
    labels, bipartite = groups.labels, job.graph.bipartite
    found = top_ten.shares(lists, job.graph, groups.group, len(labels))
    kept = _kept(found)
    of_share, of_difference = top_ten.independent_slots(lists, job.graph, groups.group, found)
    below, above = top_ten.bounds(found.share, of_share)
    cells = []
    for g, h in np.ndindex(found.share.shape):
        first, second = (labels[h], None) if bipartite else (labels[g], labels[h])
        n, share = int(found.slots[g]), float(found.share[g, h])
        value = None if n == 0 or found.people[h] == 0 else share
        low, high = (float(below[g, h]), float(above[g, h])) if kept[g, h] else (None, None)
        cells.append(Cell(first, second, value, n, low, high, excluded=not kept[g, h]))
    notes: list[str | None] = []
    estimate = p_value = None
    if kept.any():
        best = top_ten.largest(found, of_difference, kept)
        estimate, p_value = Estimate(best.value, best.low, best.high), best.p_value
        g, h = best.cell
        notes.append(
            f"lists of {'items' if bipartite else f'{labels[g]} people'} give {found.share[g, h]:.1%} of their slots "
            f"to {labels[h]}, who are {found.people[h]:.1%} of people"
        )
    else:
        notes.append(f"fewer than two groups have people in lists with {parity.MIN_PAIRS} slots")
    notes += [_drawn(lists, bipartite), f"floor: the mean of {top_ten.RANDOM_ORDERS} random orders"]
    if few := sum(c.excluded for c in cells):
        notes.append(f"{few} of {len(cells)} cells with under {parity.MIN_PAIRS} slots left out")
    if bipartite and not job.calibrated:
        notes.append("trained to rank items for each user, so that scores of different users need not be comparable")
    return make_row(
        "dp",
        estimate or Estimate(None),
        *notes,
        job.notes.get(groups.name),
        attribute=groups.name,
        exposure=job.exposure,
        variant="top-10",
        n=int(found.slots[kept.any(axis=1)].sum()),
        floor_random=floor if estimate else None,
        p_value=p_value,
        cells=tuple(cells),
    )


def _kept(found: top_ten.Shares) -> BoolArray:
    """(G, H) which cells of shares count: enough slots, and two groups at least."""
    there = found.people > 0
    return np.asarray((found.slots >= parity.MIN_PAIRS)[:, None] & there & (there.sum() > 1))


def _largest_share(groups: _Groups, graph: AttributedGraph, lists: top_ten.Lists) -> float | None:
    """The figure of `_shares_row`."""
    found = top_ten.shares(lists, graph, groups.group, len(groups.labels))
    kept = _kept(found)
    return float(np.abs(found.apart[kept]).max()) if kept.any() else None


def _drawn(lists: top_ten.Lists, bipartite: bool) -> str | None:
    """How many lists there are, where not all."""
    if len(lists.ranker) == lists.of:
        return None
    return f"lists of {len(lists.ranker):,} {'items' if bipartite else 'people'}, drawn of {lists.of:,}"


def _test_set_rows(
    job: AuditRequest, groups: _Groups, sample: pair_sample.PairSample, scores: Float64
) -> Iterator[Row]:
    """DP and EO of held-out edges beside pairs without an edge, of probabilities, of predicted links, and relative."""
    group, pairs, weight = groups.group, sample.pairs, sample.weight
    predicted, threshold = sample.predicted(scores)
    held = np.arange(len(weight)) < sample.num_edges
    told = _told(job, group, sample)
    drawn = len(weight) - sample.num_edges
    among = (
        f"{sample.num_edges:,} held-out edges and {drawn:,} pairs without an edge, which count {sample.ratio:.3g} each"
    )
    links = f"a score of {threshold:.3g} or more counts as a link, the middle of edges and other pairs"
    probability = 0.5 * (1.0 + np.tanh(0.5 * scores))
    for metric, variant, value, part, remark in (
        ("dp", "test-set", probability, told, among),
        ("dp", "thresholded", predicted, told, f"{links}; of {among}"),
        ("eo", "thresholded", predicted, held, links),
    ):
        table = _counted(job, {groups.name: groups}, value[part], pairs[:, part], weight[part])[groups.name]
        minimum = parity.MIN_PAIRS if metric == "dp" else parity.MIN_EDGES
        yield next(_rows(job, metric, groups, table, minimum, variant, remark))
    pairs, weight, scores = pairs[:, told], weight[told], scores[told]
    counted = np.asarray((group[pairs[:1] if job.graph.bipartite else pairs] >= 0).all(axis=0))
    place = sample.place(scores, weight * counted) if counted.any() else scores
    yield _relative(job, groups, parity.listed_cells(place, pairs, group, job.graph, weight))


def _told(job: AuditRequest, group: IntArray, sample: pair_sample.PairSample) -> BoolArray:
    """(M,) the pairs that are counted: the held-out edges that EO counts and, where all others are listed, not quite all.

    Of the pairs of a cell those that are not listed are its edges, whose number may be small.
    """
    held = sample.pairs[:, : sample.num_edges]
    told = np.ones(sample.pairs.shape[1], dtype=bool)
    told[: sample.num_edges] = job.disclosure.counted(*parity.cell_of(held, group, job.graph))[0]
    if sample.ratio == 1.0:
        cell, num = parity.cell_of(job.graph.edges, group, job.graph)
        out = job.disclosure.beside(np.bincount(cell[cell >= 0], minlength=num))
        free = np.arange(sample.num_edges, len(told))
        cell = parity.cell_of(sample.pairs[:, free], group, job.graph)[0]
        order = np.random.default_rng([job.split_seed, 36]).permutation(len(free))
        for c in np.flatnonzero(out):
            told[free[order[cell[order] == c][: out[c]]]] = False
    return told


def _relative(job: AuditRequest, groups: _Groups, table: parity.ParityCells) -> Row:
    """The cell that a pair's score tells best from the others.

    The interval holds for all cells at once (Bonferroni).
    """
    name, labels = groups.name, groups.labels
    kept = np.nonzero(table.n >= parity.MIN_PAIRS)[0]
    given: dict[str, Any] = {
        "attribute": name,
        "exposure": job.exposure,
        "variant": "relative",
        "n": int(table.n[kept].sum()),
    }
    if len(kept) < 2 or table.mass is None:
        return make_row("dp", Estimate(None), f"fewer than two cells have {parity.MIN_PAIRS} pairs", **given)
    part = table.mass[kept] / table.mass.sum()
    area = (table.mean[kept] - part / 2) / (1 - part)
    best = int(area.argmax())
    a, b = labels[table.a[kept[best]]], "" if table.b is None else f"-{labels[table.b[kept[best]]]}"
    words = f"how well a pair's score tells cell {a}{b} ({table.n[kept[best]]:,} pairs) from the others, an AUC"
    noise = dyadic.cell_noise(table.sides, table.own, table.n, kept, seed=job.seed)
    if noise is None:
        return make_row("dp", Estimate(float(area[best])), words, job.notes.get(name), **given)
    noise = noise.scaled(1 / (1 - part))
    half = t.ppf(1 - (1 - dyadic.LEVEL) / (2 * len(kept)), noise.df) * np.sqrt(noise.variance)
    chance = 0.5 + noise.deviations.max(axis=0)
    estimate = Estimate(float(area[best]), float((area - half).max()), min(float((area + half).max()), 1.0))
    p_value = float((1 + np.count_nonzero(chance >= area[best])) / (len(chance) + 1))
    return make_row(
        "dp", estimate, words, job.notes.get(name), floor_random=float(chance.mean()), p_value=p_value, **given
    )


def _rows(
    job: AuditRequest,
    metric: str,
    groups: _Groups,
    table: parity.ParityCells,
    minimum: int,
    variant: str | None,
    remark: str | None,
) -> Iterator[Row]:
    """The gap with its cells, whose note names the two that make it, and the other summaries."""
    name = groups.name
    if job.threshold is not None or variant in ("thresholded", "top-10"):
        table = table.of_shares()
    gap = parity.gap(table, minimum)
    kept = np.nonzero(table.n >= minimum)[0]
    noise = None
    if gap.value is not None:
        noise = dyadic.cell_noise(table.sides, table.own, table.n, kept, seed=job.seed)
    cells = tuple(_cells(table, groups.labels, minimum, kept, noise))
    unit = "pairs" if metric == "dp" else "edges"
    few, suppressed = sum(c.excluded for c in cells), sum(c.withheld for c in cells)
    notes: list[str | None] = []
    if gap.highest is not None and gap.lowest is not None:
        top, bottom = cells[gap.highest], cells[gap.lowest]
        notes.append(
            f"highest {top.name} {top.value:.3g} ({top.n:,} {unit}), lowest {bottom.name} {bottom.value:.3g} "
            f"({bottom.n:,} {unit})"
        )
    else:
        notes.append(f"fewer than two cells have {minimum} {unit}")
    if few:
        notes.append(f"{few} of {len(cells)} cells with under {minimum} {unit} left out")
    if suppressed:
        notes.append(
            f"{suppressed} of these suppressed, as they have under {job.disclosure.least} {unit} or hide how many, and "
            f"{unit} of another left out with them"
        )
    if table.se is not None and np.isfinite(table.se).any():
        notes.append(
            f"from a sample of the pairs of each cell, largest standard error of a cell {np.nanmax(table.se):.1g}"
        )
    common: list[str | None] = [remark, job.notes.get(name)]
    if job.threshold is not None:
        common.insert(0, f"share of pairs predicted as links, probability {job.threshold:g} and more")
    if not job.calibrated and variant not in _LEADING:
        common.insert(0, "not trained as the chance of a link: the sigmoid of the score has no calibration")
    given: dict[str, Any] = {
        "attribute": name,
        "exposure": job.exposure,
        "n": sum(c.n for c in cells if not c.excluded),
    }
    if noise is not None and noise.borrowed:
        notes.append(
            f"{noise.borrowed} cells with under {dyadic.MIN_PEOPLE} people on a side borrow the spread of all cells"
        )
    means = table.mean[kept]
    apart = None if noise is None else dyadic.compare_range(means, noise)
    yield _summary(metric, gap.value, apart, *notes, *common, variant=variant, cells=cells, **given)

    ratio = None if gap.value is None else float(means.min() / max(means.max(), _SMALLEST))
    turned = None
    if noise is not None and ratio is not None:
        floored = np.maximum(means, _SMALLEST)
        logs = dyadic.compare_range(np.log(floored), noise.scaled(1.0 / floored))
        turned = replace(logs, low=min(ratio, np.exp(-logs.high)), high=np.exp(-logs.low), expected=logs.expected_ratio)
    row = _summary(metric, ratio, turned, "smallest over largest cell", *common, variant="ratio", **given)
    yield replace(row, direction="higher")

    share = table.n[kept] / max(table.n[kept].sum(), 1)
    for norm, measure, words in (
        ("weighted-sd", _weighted_sd, "standard deviation of the cells, weighted by their size"),
        ("worst-vs-overall", _worst, "largest distance of a cell from the mean of all cells, weighted by their size"),
    ):
        of = partial(measure, share)
        value = None if gap.value is None else float(of(means[:, None])[0])
        apart = None if noise is None else dyadic.compare_norm(means, noise, of)
        yield _summary(metric, value, apart, words, *common, variant=norm, **given)


def _summary(metric: str, value: float | None, apart: dyadic.Apart | None, *notes: str | None, **values: Any) -> Row:
    """A row beside what chance alone gives; no summary of probabilities is above 1."""
    if value is None or apart is None:
        return make_row(metric, Estimate(value), *notes, **values)
    estimate = Estimate(value, apart.low, min(apart.high, 1.0))
    return make_row(metric, estimate, *notes, floor_random=apart.expected, p_value=apart.p_value, **values)


def _weighted_sd(share: Float64, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.asarray(np.sqrt(share @ (x - share @ x) ** 2))


def _worst(share: Float64, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.asarray(np.abs(x - share @ x).max(axis=0))


def _cells(
    table: parity.ParityCells, labels: tuple[str, ...], minimum: int, kept: IntArray, noise: dyadic.Noise | None
) -> Iterator[Cell]:
    """The cells of a table by name, with the intervals of those that count."""
    low, high = np.full(len(table.n), np.nan), np.full(len(table.n), np.nan)
    if noise is not None:
        half = noise.half_width()
        low[kept] = np.maximum(table.mean[kept] - half, 0.0)
        high[kept] = np.minimum(table.mean[kept] + half, 1.0)
    suppressed = np.zeros(len(table.n), dtype=bool) if table.suppressed is None else table.suppressed
    seconds: IntArray | list[None] = [None] * len(table.a) if table.b is None else table.b
    for a, b, mean, n, below, above, withheld in zip(
        table.a, seconds, table.mean, table.n, low, high, suppressed.tolist(), strict=True
    ):
        second = None if b is None else labels[b]
        if withheld:
            yield Cell(labels[a], second, None, 0, excluded=True, withheld=True)
            continue
        yield Cell(
            labels[a],
            second,
            None if np.isnan(mean) else float(mean),
            int(n),
            None if np.isnan(below) else float(below),
            None if np.isnan(above) else float(above),
            excluded=bool(n < minimum),
        )
