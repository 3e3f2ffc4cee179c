"""Rows of link quality: held-out, bias-free, planted-truth and as-coded NDCG@10."""

from __future__ import annotations

from typing import Any

import numpy as np

from uge_core.audit import ndcg
from uge_core.audit.base import Row
from uge_core.audit.job import Job, make_row
from uge_core.audit.leakage import Estimate
from uge_core.graph import FloatArray
from uge_core.split import RankingTask, ranking_task


def link_rows(job: Job) -> list[Row]:
    """Held-out, bias-free, planted-truth and as-coded NDCG@10."""
    graph = job.graph
    rows: list[Row] = []
    members: list[tuple[str | None, FloatArray]] = [(job.exposure, job.embedding)]
    if job.twin is not None:
        members.append(("unseen", job.twin))
    if job.split is None:
        unknown = Estimate(None, note="no edges are known to be held out of training")
        rows.append(make_row("ndcg_at_10", unknown, variant="held-out", exposure=job.exposure, n=0))
    else:
        task = ranking_task(graph, job.split.test, seed=job.split_seed)
        for exposure, embedding in members:
            ranking = ndcg.rank_candidates(embedding, task, seed=job.seed)
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
        ranking = ndcg.rank_candidates(job.embedding, task, seed=job.seed)
        remark = (
            "as coded: ranks the first tenth plus one of all neighbours, most of them edges that training saw; "
            "not a measure of prediction"
        )
        rows.append(_ranked("ndcg_at_10", job, task, ranking, None, remark, variant="as-coded", exposure=job.exposure))
    return rows


def _ranked(
    metric: str,
    job: Job,
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
    # a list in which everything is relevant is ranked right by any order
    contested = ((task.candidates >= 0) & ~task.relevant).any(axis=1)
    keep = np.isfinite(value) & (weight > 0) & contested
    counted = int(keep.sum())
    if counted < ndcg.MIN_TARGETS:
        few = Estimate(
            None,
            note=f"{counted} nodes have edges to rank among strangers, at least {ndcg.MIN_TARGETS} are needed",
        )
        return make_row(metric, few, *notes, n=counted, **values)
    mean, low, high = ndcg.weighted_mean(value[keep], weight[keep], seed=job.seed)
    chance = ndcg.random_ndcg_per_target(task, ranking, gain)
    floor = float(np.average(chance[keep], weights=weight[keep]))
    return make_row(metric, Estimate(mean, low, high), *notes, n=counted, floor_random=floor, **values)
