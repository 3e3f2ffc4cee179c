"""Rows of link quality: NDCG@10, plain, bias-free, matched by attribute and as coded, and how groups fare in lists.

Each row has a degree floor: the same figure of one column, the training degree, as an embedding scored by dot
products. It depends on the graph, its split and the seed alone, so it is kept between runs.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.arrays import BoolArray, IntArray
from uge_core.audit import ndcg, ndkl
from uge_core.audit.base import Cell, Row
from uge_core.audit.job import AuditRequest, make_row
from uge_core.audit.leakage import Estimate
from uge_core.audit.matched import STRANGERS, MatchedLists, Ranked, crossed, degree_cells, matched_lists
from uge_core.audit.sampling import drawn_words
from uge_core.graph.graph import Attribute
from uge_core.graph.scores import Factors
from uge_core.graph.split import RankingTask, ranking_task

LINKS_VERSION = 1  # counts up when a row's figure changes, so that kept degree floors are measured anew
_NOT_HELD_OUT = Estimate(None, note="no edges are known to be held out of training")


@dataclass(frozen=True, eq=False)
class _Member:
    """An embedding whose scores rank links.

    Attributes:
        scored: what scores pairs.
        exposure: of its rows.
        held_out: the lists of held-out links; None where nobody knows which were held out.
        seed: keys the order of ties.
    """

    scored: Factors
    exposure: str | None
    held_out: RankingTask | None
    seed: int

    @cached_property
    def ranking(self) -> ndcg.Ranking:
        """Of the held-out lists."""
        assert self.held_out is not None
        return ndcg.rank_candidates(self.scored, self.held_out, seed=self.seed)

    @cached_property
    def ordered(self) -> IntArray:
        """(T, C) the held-out lists, each by falling score."""
        assert self.held_out is not None
        return ndkl.in_order(self.scored, self.held_out, seed=self.seed)


@dataclass(frozen=True, eq=False)
class _Part:
    """Rows that are measured together.

    Attributes:
        name: what tells them from other parts of the same graph and split, with all else that they depend on.
        members: whose rows they are.
        measure: the rows of an embedding.
    """

    name: str
    members: tuple[_Member, ...]
    measure: Callable[[_Member], list[Row]]


def link_rows(job: AuditRequest) -> list[Row]:
    """NDCG@10 by the links it ranks, then by group, then by attribute among strangers of one group."""
    held_out = None
    if job.split is not None:
        held_out = ranking_task(job.graph, job.split.test, most=job.most_targets, seed=job.split_seed)
    given = _Member(job.scored, job.exposure, held_out, job.seed)
    twin = () if job.scored_twin is None else (_Member(job.scored_twin, "unseen", held_out, job.seed),)
    degree = np.bincount(job.edges.ravel(), minlength=job.graph.num_nodes)[:, None].astype(np.float32)
    floor = _Member(Factors.of(degree), None, held_out, job.seed)
    rows: list[Row] = []
    for part in _parts(job, given, twin):
        floors = _degree_floors(job, part, floor)
        for member in part.members:
            rows += [
                row if row.value is None else replace(row, floor_degree=floors.get(_figure(row)))
                for row in part.measure(member)
            ]
    return rows


def _parts(job: AuditRequest, given: _Member, twin: tuple[_Member, ...]) -> Iterator[_Part]:
    """What is measured, in the order of rows."""
    weighed = "".join(f"/{k}:{zlib.crc32(np.asarray(b.weight).tobytes())}" for k, b in sorted(job.bias_free.items()))
    both = (given, *twin)
    yield _Part(f"held-out{weighed}", (given,) if job.split is None else both, partial(_held_out_rows, job))
    if job.graph.truth is not None:
        planted = zlib.crc32(job.graph.truth.bias_free.tobytes())  # no part of the fingerprint
        task = ndcg.planted_task(job.graph, most=job.most_targets, seed=job.split_seed)
        yield _Part(f"planted-truth/{planted}", both, partial(_planted_rows, job, task))
    if not job.graph.bipartite:
        task = ndcg.as_coded_task(job.graph, most=job.most_targets, seed=job.split_seed)
        yield _Part("as-coded", (given,), partial(_as_coded_rows, job, task))
    for a in job.attributes:
        policy = f"{job.policies[a.name]}{_padded(job, a)}"
        yield _Part(f"groups/{a.name}/{policy}", (given,), partial(_group_rows, job, a))
    treated = sorted((a for a in job.graph.audited if a.name in job.treated), key=lambda a: a.name.lower())
    for together in (*((a,) for a in job.attributes), *((tuple(treated),) if len(treated) > 1 else ())):
        matched = _Matched(job, together)
        policies = "+".join(f"{job.policies[a.name]}{job.measured(a).key}" for a in together)
        yield _Part(f"matched/{matched.name}/{policies}", (given,) if job.split is None else both, matched.rows)


def _padded(job: AuditRequest, attribute: Attribute) -> str:
    """What tells floors by group, whose lists may be left out too, from those of all lists."""
    return f"{job.measured(attribute).key}/{job.disclosure.least}" if job.disclosure.least else ""


def _figure(row: Row) -> str:
    """What tells a row's figure from the others of its part."""
    return f"{row.metric}/{row.attribute}/{row.variant}"


def _degree_floors(job: AuditRequest, part: _Part, degree: _Member) -> Mapping[str, float]:
    """The figures of the training degree as an embedding, kept or measured; none in a quick audit without kept ones."""
    tested = 0 if job.split is None else job.split.test.shape[1]
    data = f"{job.graph.fingerprint}/{job.split_seed}/{job.edges.shape[1]}/{tested}/{job.seed}"
    data += job.sampling.key(job.num_people)
    key = f"links {LINKS_VERSION}/{data}/degree/{part.name}"
    if key not in job.floors:
        if job.quick:
            return {}
        job.floors[key] = {_figure(row): row.value for row in part.measure(degree) if row.value is not None}
    floors: Mapping[str, float] = job.floors[key]
    return floors


def _held_out_rows(job: AuditRequest, member: _Member) -> list[Row]:
    """Held-out NDCG@10, and bias-free by what the graph is freed of."""
    given = {"variant": "held-out", "exposure": member.exposure}
    if job.split is None or member.held_out is None:
        return [make_row("ndcg_at_10", _NOT_HELD_OUT, n=0, **given)]
    task, ranking = member.held_out, member.ranking
    rows = [_ranked("ndcg_at_10", task, ranking, None, **given)]
    for name, free in job.bias_free.items():
        gains = ndcg.edge_gains(ranking, task, job.graph, job.split.test, free.weight)
        rows.append(_ranked("ndcg_at_10_bias_free", task, ranking, gains, free.note, attribute=name, **given))
    return rows


def _planted_rows(job: AuditRequest, task: RankingTask, member: _Member) -> list[Row]:
    """NDCG@10 of a generated graph's bias-free edges."""
    assert job.graph.truth is not None
    remark = (
        f"ranks the edges of the bias-free graph, free of {', '.join(job.graph.truth.sensitive)}, "
        "that are not in the observed one"
    )
    ranking = ndcg.rank_candidates(member.scored, task, seed=job.seed)
    return [_ranked("ndcg_at_10", task, ranking, None, remark, variant="planted-truth", exposure=member.exposure)]


def _as_coded_rows(job: AuditRequest, task: RankingTask, member: _Member) -> list[Row]:
    """NDCG@10 as the authors' script measures it."""
    remark = (
        "as coded: ranks the first tenth plus one of all neighbours, most of them edges that training saw; "
        "not a measure of prediction"
    )
    ranking = ndcg.rank_candidates(member.scored, task, seed=job.seed)
    return [_ranked("ndcg_at_10", task, ranking, None, remark, variant="as-coded", exposure=member.exposure)]


def _group_rows(job: AuditRequest, attribute: Attribute, member: _Member) -> list[Row]:
    """The gap in NDCG@10 and, between people, the rank exposure."""
    measured = job.measured(attribute)
    codes, labels = measured.classes, measured.labels
    given = {"attribute": attribute.name, "variant": "held-out", "exposure": member.exposure}
    remark = job.notes.get(attribute.name)
    if member.held_out is None:
        metrics = ("ndcg_gap",) if job.graph.bipartite else ("ndcg_gap", "ndkl")
        return [make_row(metric, _NOT_HELD_OUT, remark, n=0, **given) for metric in metrics]
    task, ranking = member.held_out, member.ranking
    remark = "; ".join(filter(None, (remark, _drawn_targets(task)))) or None
    value = ndcg.ndcg_per_target(ranking, np.ones(len(ranking.rank)), len(task.targets))
    group = np.where(np.isfinite(value) & _contested(task), codes[task.targets], -1)
    counted, few = job.disclosure.counted(group, len(labels))
    group = np.where(counted, group, -1)
    means = ndcg.group_means(value, group, len(labels), task, ranking, seed=job.seed)
    rows = [_ndcg_gap(means, labels, few, remark, given)]
    if not job.graph.bipartite:
        rows.append(_rank_exposure(member, codes, remark, given))
    return rows


class _Matched:
    """Rows of NDCG@10 among strangers of the friend's group, by one attribute or by several crossed.

    Attributes:
        name: of the attribute, "gender+region" of two.
    """

    def __init__(self, job: AuditRequest, attributes: tuple[Attribute, ...]) -> None:
        self.name = "+".join(a.name for a in attributes)
        self._job, self._attributes = job, attributes
        self._words = " and ".join(a.name for a in attributes)
        self._remark = job.notes.get(self.name)

    @cached_property
    def _group(self) -> IntArray:
        codes = [self._job.measured(a).classes for a in self._attributes]
        return codes[0] if len(codes) == 1 else self._counted(crossed(codes))

    def _counted(self, cell: IntArray) -> IntArray:
        """The cells of people without small ones, whose lists the numbers of lists would count."""
        kept, _ = self._job.disclosure.counted(cell, int(cell.max(initial=-1)) + 1)
        return np.where(kept, cell, -1)

    @cached_property
    def _lists(self) -> MatchedLists:
        """By group, with their uniform twin."""
        job = self._job
        assert job.split is not None
        most = job.most_targets
        return matched_lists(job.graph, job.split.test, self._group, most_targets=most, seed=job.split_seed)

    @cached_property
    def _degree_lists(self) -> MatchedLists:
        """By group and decile of training degree."""
        job = self._job
        assert job.split is not None
        least = 3 if job.disclosure.least else 0  # lists without a stranger would tell of one or two people
        cell = degree_cells(job.graph, self._group, job.split.train, least)
        most = job.most_targets
        return matched_lists(job.graph, job.split.test, cell, twin=False, most_targets=most, seed=job.split_seed)

    def rows(self, member: _Member) -> list[Row]:
        """Matched, its uniform twin, what the attribute contributes and, unless quick, matched by degree too."""
        given = {"attribute": self.name, "exposure": member.exposure}
        metric, share, seed = "ndcg_at_10_matched", "ndcg_attribute_share", self._job.seed
        variants = ("held-out", "uniform") if self._job.quick else ("held-out", "uniform", "degree")
        if self._job.split is None:
            figures = [*((metric, variant) for variant in variants), (share, "held-out")]
            return [make_row(m, _NOT_HELD_OUT, self._remark, n=0, variant=v, **given) for m, v in figures]
        lists = self._lists
        assert lists.uniform is not None
        own, anyone = f"strangers of the friend's {self._words}", f"as many strangers of any {self._words}"
        matched, twin = (Ranked.of(member.scored, task, seed=seed) for task in (lists.matched, lists.uniform))
        rows = [
            self._mean(lists, matched, f"each held-out link among {STRANGERS} {own}", variant="held-out", **given),
            self._mean(lists, twin, f"each link of the matched lists among {anyone}", variant="uniform", **given),
            self._share(lists, matched, twin, given),
        ]
        if not self._job.quick:
            lists = self._degree_lists
            ranked = Ranked.of(member.scored, lists.matched, seed=seed)
            words = f"each held-out link among {STRANGERS} {own} and decile of training degree"
            rows.insert(2, self._mean(lists, ranked, words, variant="degree", **given))
        return rows

    def _mean(self, lists: MatchedLists, ranked: Ranked, words: str, **given: Any) -> Row:
        """The mean over lists beside a random order of them."""
        n, notes = len(ranked.task.targets), (words, *self._notes(lists))
        if lists.targets < ndcg.MIN_TARGETS:
            return make_row("ndcg_at_10_matched", _too_few(lists), *notes, n=n, **given)
        estimate = ranked.mean(seed=self._job.seed)
        return make_row("ndcg_at_10_matched", estimate, *notes, n=n, floor_random=ranked.floor, **given)

    def _share(self, lists: MatchedLists, matched: Ranked, twin: Ranked, given: Mapping[str, Any]) -> Row:
        """The uniform twin's mean less the matched one's."""
        n, given = len(matched.task.targets), {"variant": "held-out", **given}
        if lists.targets < ndcg.MIN_TARGETS:
            return make_row("ndcg_attribute_share", _too_few(lists), *self._notes(lists), n=n, **given)
        estimate, p_value = matched.mean_below(twin, seed=self._job.seed)
        uniform = float(twin.value.mean())
        ratio = f"matched over uniform twin is {matched.value.mean() / uniform:.2f}; " if uniform > 0 else ""
        remark = (
            f"{ratio}of an untreated run that ratio is an estimate of what an embedding blind to {self._words} can reach, "
            "no bound"
        )
        notes = (remark, *self._notes(lists))
        return make_row("ndcg_attribute_share", estimate, *notes, n=n, floor_random=0.0, p_value=p_value, **given)

    def _notes(self, lists: MatchedLists) -> Iterator[str]:
        """What the lists leave out, and how they differ from what was asked."""
        if self._job.graph.bipartite:
            yield "users are ranked for an item"
            if not self._job.calibrated:
                yield "training compared a user's items (BPR), so scores of several users for one item are not comparable"
        drawn = len(lists.matched.targets)
        if words := drawn_words(drawn, lists.found, "lists"):
            yield words
        if lists.of_targets is not None and self._job.most_targets is not None:
            who = "items" if self._job.graph.bipartite else "people"
            yield f"these are lists of {self._job.most_targets:,} {who}, drawn of {lists.of_targets:,}"
        if lists.unknown:
            yield f"{_percent(lists.unknown)} of the links left out, as the friend's {self._words} is unknown"
        if lists.alone:
            yield f"{_percent(lists.alone)} of the links left out, as no stranger of the node is like the friend"
        if lists.short:
            yield f"{_percent(lists.short)} of the lists have fewer than {STRANGERS} strangers"
        if self._remark:
            yield self._remark


def _too_few(lists: MatchedLists) -> Estimate:
    """That of lists of too few targets."""
    return Estimate(
        None, note=f"{lists.targets} nodes have links to rank among strangers, at least {ndcg.MIN_TARGETS} are needed"
    )


def _percent(share: float) -> str:
    """A share in words, no finer: in a small graph a decimal would count the people behind it."""
    return "under 1 %" if share < 0.01 else f"{100 * share:.0f} %"


def _ndcg_gap(
    means: ndcg.GroupMeans, labels: tuple[str, ...], suppressed: BoolArray, remark: str | None, given: Mapping[str, Any]
) -> Row:
    """The largest less the smallest mean NDCG@10 of the groups with enough targets; too few are suppressed."""
    cells = tuple(
        Cell(label, None, None, 0, excluded=True, withheld=True)
        if few
        else Cell(label, None, float(mean) if n else None, n, *ends, excluded=n < ndcg.MIN_TARGETS)
        for label, mean, n, ends, few in zip(labels, means.mean, means.n.tolist(), means.ends, suppressed, strict=True)
    )
    n = sum(c.n for c in cells if not c.excluded)
    few = sum(c.excluded for c in cells)
    left_out = f"{few} of {len(cells)} groups with under {ndcg.MIN_TARGETS} lists left out" if few else None
    if means.apart is None:
        none = Estimate(None, note=f"fewer than two groups have {ndcg.MIN_TARGETS} lists")
        return make_row("ndcg_gap", none, left_out, remark, n=n, cells=cells, **given)
    counted = [c for c in cells if not c.excluded and c.value is not None]
    top, bottom = max(counted, key=lambda c: c.value or 0.0), min(counted, key=lambda c: c.value or 0.0)
    assert top.value is not None and bottom.value is not None
    estimate = Estimate(top.value - bottom.value, means.apart.low, min(means.apart.high, 1.0))
    words = (
        f"highest {top.name} {top.value:.3g} ({top.n:,} lists), lowest {bottom.name} {bottom.value:.3g} "
        f"({bottom.n:,} lists)"
    )
    return make_row(
        "ndcg_gap",
        estimate,
        words,
        left_out,
        remark,
        n=n,
        cells=cells,
        floor_random=means.apart.expected,
        p_value=means.apart.p_value,
        **given,
    )


def _rank_exposure(member: _Member, codes: IntArray, remark: str | None, given: Mapping[str, Any]) -> Row:
    """NDKL@10 of the held-out lists beside a random order of them."""
    task, seed = member.held_out, member.seed
    assert task is not None
    value, chance = ndkl.ndkl_of_ordered(member.ordered, codes), ndkl.random_ndkl_per_target(task, codes)
    keep = np.isfinite(value)
    counted = int(keep.sum())
    if counted < ndcg.MIN_TARGETS:
        few = f"{counted} lists hold people of known group, at least {ndcg.MIN_TARGETS} are needed"
        return make_row("ndkl", Estimate(None, note=few), remark, n=counted, **given)
    mean, half = float(value[keep].mean()), ndkl.half_width(member.scored, task, codes, seed=seed)
    estimate = Estimate(mean) if half is None else Estimate(mean, max(0.0, mean - half), mean + half)
    return make_row("ndkl", estimate, remark, n=counted, floor_random=float(chance[keep].mean()), **given)


def _drawn_targets(task: RankingTask) -> str | None:
    """A remark on targets that were drawn of more."""
    return None if task.found is None else drawn_words(len(task.targets), task.found, "people who have lists")


def _contested(task: RankingTask) -> npt.NDArray[np.bool_]:
    """(T,) whether a list holds a stranger; one in which everything is relevant is ranked right by any order."""
    return np.asarray(((task.candidates >= 0) & ~task.relevant).any(axis=1))


def _ranked(
    metric: str,
    task: RankingTask,
    ranking: ndcg.Ranking,
    gains: ndcg.EdgeGains | None,
    *notes: str | None,
    **values: Any,
) -> Row:
    """A row of NDCG@10, weighted where `gains` are given, beside a random order of the same lists."""
    num, notes = len(task.targets), (*notes, _drawn_targets(task))
    gain = np.ones(len(ranking.rank)) if gains is None else gains.gain
    weight = np.ones(num) if gains is None else gains.target_weight
    value = ndcg.ndcg_per_target(ranking, gain, num)
    keep = np.isfinite(value) & (weight > 0) & _contested(task)
    counted = int(keep.sum())
    if counted < ndcg.MIN_TARGETS:
        few = Estimate(
            None, note=f"{counted} nodes have edges to rank among strangers, at least {ndcg.MIN_TARGETS} are needed"
        )
        return make_row(metric, few, *notes, n=counted, **values)
    effective = float(weight[keep].sum() ** 2 / (weight[keep] ** 2).sum())
    if gains is not None:
        notes = (f"weighted lists count as {effective:,.1f} of equal weight", *notes)
    if effective < ndcg.MIN_TARGETS:
        few = Estimate(None, note=f"at least {ndcg.MIN_TARGETS} are needed")
        return make_row(metric, few, *notes, n=counted, **values)
    means = ndcg.group_means(value, np.where(keep, 0, -1), 1, task, ranking, weight=weight)
    chance = ndcg.random_ndcg_per_target(task, ranking, gain)
    floor = float(np.average(chance[keep], weights=weight[keep]))
    return make_row(
        metric, Estimate(float(means.mean[0]), *means.ends[0]), *notes, n=counted, floor_random=floor, **values
    )
