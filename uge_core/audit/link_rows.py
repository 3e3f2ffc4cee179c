"""Rows of link quality: held-out, bias-free, planted-truth and as-coded NDCG@10, and how groups fare in the lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.arrays import IntArray
from uge_core.audit import ndcg, ndkl
from uge_core.audit.base import Cell, Row
from uge_core.audit.job import AuditRequest, make_row
from uge_core.audit.leakage import Estimate
from uge_core.graph.scores import Factors
from uge_core.graph.split import RankingTask, probe_classes, ranking_task
from uge_core.graph.suppression import FEWEST


def link_rows(job: AuditRequest) -> list[Row]:
    """Held-out, bias-free, planted-truth and as-coded NDCG@10, then its gap and the rank exposure per attribute."""
    graph = job.graph
    rows: list[Row] = []
    members: list[tuple[str | None, Factors]] = [(job.exposure, job.scored)]
    if job.scored_twin is not None:
        members.append(("unseen", job.scored_twin))
    held: list[tuple[RankingTask, ndcg.Ranking]] = []
    if job.split is None:
        unknown = Estimate(None, note="no edges are known to be held out of training")
        rows.append(make_row("ndcg_at_10", unknown, variant="held-out", exposure=job.exposure, n=0))
    else:
        task = ranking_task(graph, job.split.test, seed=job.split_seed)
        for exposure, embedding in members:
            ranking = ndcg.rank_candidates(embedding, task, seed=job.seed)
            held.append((task, ranking))
            rows.append(_ranked("ndcg_at_10", job, task, ranking, None, variant="held-out", exposure=exposure))
            for name, given in job.bias_free.items():
                gains = ndcg.edge_gains(ranking, task, graph, job.split.test, given.weight)
                rows.append(
                    _ranked(
                        "ndcg_at_10_bias_free",
                        job,
                        task,
                        ranking,
                        gains,
                        given.note,
                        attribute=name,
                        variant="held-out",
                        exposure=exposure,
                    )
                )
    if graph.truth is not None:
        task = ndcg.planted_task(graph, seed=job.split_seed)
        remark = (
            f"ranks the edges of the bias-free graph, free of {', '.join(graph.truth.sensitive)}, "
            "that are not in the observed one"
        )
        for exposure, embedding in members:
            ranking = ndcg.rank_candidates(embedding, task, seed=job.seed)
            rows.append(
                _ranked("ndcg_at_10", job, task, ranking, None, remark, variant="planted-truth", exposure=exposure)
            )
    if not graph.bipartite:
        task = ndcg.as_coded_task(graph, seed=job.split_seed)
        ranking = ndcg.rank_candidates(job.scored, task, seed=job.seed)
        remark = (
            "as coded: ranks the first tenth plus one of all neighbours, most of them edges that training saw; "
            "not a measure of prediction"
        )
        rows.append(_ranked("ndcg_at_10", job, task, ranking, None, remark, variant="as-coded", exposure=job.exposure))
    return rows + _group_rows(job, held[0] if held else None)


def _group_rows(job: AuditRequest, held: tuple[RankingTask, ndcg.Ranking] | None) -> list[Row]:
    """Of the embedding as it is handed out: per attribute the gap in NDCG@10 and, between people, the rank exposure."""
    rows: list[Row] = []
    for a in job.attributes:
        codes, labels = probe_classes(a, job.policies[a.name])
        given = {"attribute": a.name, "variant": "held-out", "exposure": job.exposure}
        if held is None:
            unknown = Estimate(None, note="no edges are known to be held out of training")
            metrics = ("ndcg_gap",) if job.graph.bipartite else ("ndcg_gap", "ndkl")
            rows += [make_row(metric, unknown, job.notes.get(a.name), n=0, **given) for metric in metrics]
            continue
        task, ranking = held
        value = ndcg.ndcg_per_target(ranking, np.ones(len(ranking.rank)), len(task.targets))
        group = np.where(np.isfinite(value) & _contested(task), codes[task.targets], -1)
        means = ndcg.group_means(value, group, len(labels), task, ranking, seed=job.seed)
        rows.append(_ndcg_gap(job, means, labels, given))
        if not job.graph.bipartite:
            rows.append(_rank_exposure(job, task, codes, given))
    return rows


def _ndcg_gap(job: AuditRequest, means: ndcg.GroupMeans, labels: tuple[str, ...], given: Mapping[str, Any]) -> Row:
    """The largest less the smallest mean NDCG@10 of the groups with enough targets; under ten are withheld."""
    cells = tuple(
        Cell(label, None, None, 0, excluded=True, withheld=True)
        if 0 < n < FEWEST
        else Cell(label, None, float(mean) if n else None, n, *ends, excluded=n < ndcg.MIN_TARGETS)
        for label, mean, n, ends in zip(labels, means.mean, means.n.tolist(), means.ends, strict=True)
    )
    n = sum(c.n for c in cells if not c.excluded)
    few = sum(c.excluded for c in cells)
    left_out = f"{few} of {len(cells)} groups with under {ndcg.MIN_TARGETS} lists left out" if few else None
    if means.apart is None:
        none = Estimate(None, note=f"fewer than two groups have {ndcg.MIN_TARGETS} lists")
        return make_row("ndcg_gap", none, left_out, job.notes.get(given["attribute"]), n=n, cells=cells, **given)
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
        job.notes.get(given["attribute"]),
        n=n,
        cells=cells,
        floor_random=means.apart.expected,
        p_value=means.apart.p_value,
        **given,
    )


def _rank_exposure(job: AuditRequest, task: RankingTask, codes: IntArray, given: Mapping[str, Any]) -> Row:
    """NDKL@10 of the held-out lists beside a random order of them."""
    value, chance = ndkl.ndkl_per_target(job.scored, task, codes, seed=job.seed)
    keep = np.isfinite(value)
    counted = int(keep.sum())
    remark = job.notes.get(given["attribute"])
    if counted < ndcg.MIN_TARGETS:
        few = f"{counted} lists hold people of known group, at least {ndcg.MIN_TARGETS} are needed"
        return make_row("ndkl", Estimate(None, note=few), remark, n=counted, **given)
    mean, half = float(value[keep].mean()), ndkl.half_width(job.scored, task, codes, seed=job.seed)
    estimate = Estimate(mean) if half is None else Estimate(mean, max(0.0, mean - half), mean + half)
    return make_row("ndkl", estimate, remark, n=counted, floor_random=float(chance[keep].mean()), **given)


def _contested(task: RankingTask) -> npt.NDArray[np.bool_]:
    """(T,) whether a list holds a stranger; one in which everything is relevant is ranked right by any order."""
    return np.asarray(((task.candidates >= 0) & ~task.relevant).any(axis=1))


def _ranked(
    metric: str,
    job: AuditRequest,
    task: RankingTask,
    ranking: ndcg.Ranking,
    gains: ndcg.EdgeGains | None,
    *notes: str | None,
    **values: Any,
) -> Row:
    """A row of NDCG@10, weighted where `gains` are given, beside a random order of the same lists."""
    num = len(task.targets)
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
