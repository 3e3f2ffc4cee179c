"""Whether an embedding says anything about links, which is asked before what it gives away.

An embedding of zeros leaks nothing and treats all groups alike. So no other figure is a verdict unless vectors differ,
scores differ, and some NDCG@10 (among uniform strangers, or among those of the friend's group and degree) lies above
its random floor by more than its interval. All three are the same for an embedding that is longer, shorter or turned:
what its length does to the raw DP and EO is a remark. Too few lists are no evidence of collapse: then nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from uge_core.arrays import Float64, FloatArray
from uge_core.audit import calibrated
from uge_core.audit.base import Row
from uge_core.audit.calibrated import Calibrated
from uge_core.audit.job import AuditRequest, make_row
from uge_core.audit.leakage import Estimate
from uge_core.audit.matched import Ranked, matched_lists
from uge_core.audit.ndcg import MIN_TARGETS
from uge_core.graph.scores import Factors

ENOUGH = 100
"""Lists under which NDCG@10 at its floor is no evidence of collapse."""
_LITTLE = 0.03
"""Of NDCG@10 above its floor: an interval that reaches higher is no evidence of collapse either."""
_CLEAR = 1.5  # halves of an interval, three standard errors: of several NDCG@10 of noise one lies outside its interval
_ALIKE = 1e-6  # of the longest vector: float32 vectors differ by as much through rounding
_TIED = 0.99
_FLAT = 0.01  # of calibrated probabilities, from the 5 % to the 95 % quantile
_PAIRS, _LINKS = 20_000, 5_000
_EVEN, _SURE = 0.005, 0.001  # of a raw probability, from 1/2 and from 0 or 1


def usable_rows(job: AuditRequest, rows: Iterable[Row]) -> list[Row]:
    """A row of `usable` for the embedding, and one for its twin where there is one.

    Args:
        job: what the audit was asked.
        rows: those of link quality, as measured.
    """
    rows = list(rows)
    members = [(job.embedding, job.scored, job.exposure, job.calibration)]
    if job.twin is not None and job.scored_twin is not None:
        fitted = calibrated.fit(job.scored_twin, job.graph, job.split, job.split_seed)
        members.append((job.twin, job.scored_twin, "unseen", fitted))
    return [_row(job, rows, *member) for member in members]


def _row(
    job: AuditRequest, rows: list[Row], z: FloatArray, scored: Factors, exposure: str | None, fitted: Calibrated
) -> Row:
    ranked = [r for r in rows if _ranks_links(r) and r.exposure == exposure and r.value is not None]
    if job.split is None:
        ranked = _of_all_links(job, scored)
    scores = _scores(job, scored)
    n = max((r.n or 0 for r in ranked), default=0)
    why = [*_alike(z, scores, fitted)]
    best = max(ranked, key=_above, default=None)
    clear = best is not None and _above(best) > _CLEAR
    at_chance = best is not None and _above(best) <= 1.0 and min(map(_at_most, ranked)) <= _LITTLE
    if not why and best is not None and n >= ENOUGH and at_chance:
        why.append(
            f"links are ranked no better than at random: NDCG@10 at best {best.value:.3f} "
            f"[{best.ci_low:.3f}, {best.ci_high:.3f}], by chance {best.floor_random:.3f}, {n:,} lists"
        )
    words = [f"not usable: {'; '.join(why)}"] if why else []
    estimate = Estimate(0.0 if why else 1.0)
    if not why and not clear:
        lists = f"{n:,} lists of {'links' if job.split is None else 'held-out links'}"
        few = f"{lists}, at least {ENOUGH} are needed to tell"
        near = f"NDCG@10 over {lists} lies too near its random floor to tell"
        estimate = Estimate(None, note=near if n >= ENOUGH else few)
    return make_row("usable", estimate, *words, *_length(z, scores), exposure=exposure, n=n)


def _above(row: Row) -> float:
    """How far NDCG@10 lies above its random floor, in halves of its 95 % interval."""
    if row.value is None or row.ci_low is None or row.floor_random is None:
        return -np.inf
    return (row.value - row.floor_random) / max(row.value - row.ci_low, 1e-12)


def _at_most(row: Row) -> float:
    """How far NDCG@10 lies above its random floor at most."""
    return np.inf if row.ci_high is None or row.floor_random is None else row.ci_high - row.floor_random


def _ranks_links(row: Row) -> bool:
    """NDCG@10 of held-out links among uniform strangers, or among those of the friend's group and degree."""
    asked = {("ndcg_at_10", "held-out"), ("ndcg_at_10_matched", "uniform"), ("ndcg_at_10_matched", "degree")}
    return (row.metric, row.variant) in asked


def _of_all_links(job: AuditRequest, scored: Factors) -> list[Row]:
    """Where nobody knows what was held out: some of all links, which an embedding ranks above chance if it ranks any."""
    anyone = np.zeros(job.graph.num_nodes, dtype=np.int64)
    lists = matched_lists(job.graph, job.graph.edges, anyone, twin=False, most=_LINKS, seed=job.split_seed)
    if lists.targets < MIN_TARGETS:
        return []
    ranked = Ranked.of(scored, lists.matched, seed=job.seed)
    n = len(lists.matched.targets)
    return [make_row("ndcg_at_10", ranked.mean(seed=job.seed), n=n, floor_random=ranked.floor)]


def _scores(job: AuditRequest, scored: Factors) -> Float64:
    """Scores of pairs of nodes at random, and of some links."""
    rng, n, users = np.random.default_rng([job.split_seed, 77]), job.graph.num_nodes, job.graph.num_users
    low, first = (n, 0) if users is None else (users, users)
    u, v = rng.integers(0, low, _PAIRS), rng.integers(first, n, _PAIRS)
    edges = job.graph.edges[:, : min(_LINKS, job.graph.num_edges)]
    apart = u != v
    return scored.scores(np.concatenate([u[apart], edges[0]]), np.concatenate([v[apart], edges[1]]))


def _alike(z: FloatArray, scores: Float64, fitted: Calibrated) -> Iterator[str]:
    """What makes all people, or all pairs, alike."""
    if np.ptp(z, axis=0).max(initial=0.0) <= _ALIKE * np.abs(z).max(initial=0.0):
        yield "all vectors are zero" if not z.any() else "all vectors are equal"
        return
    if len(scores):
        share = float(np.unique(scores, return_counts=True)[1].max() / len(scores))
        if share >= _TIED:
            yield f"{share:.1%} of the pairs tried have one and the same score"
    if fitted.spread is not None and fitted.spread < _FLAT:
        yield (
            f"calibrated, nearly all pairs are as likely linked as the next: from the 5 % to the 95 % quantile "
            f"the probability of a link rises by {fitted.spread:.2g}"
        )


def _length(z: FloatArray, scores: Float64) -> Iterator[str]:
    """What the vectors' length does to probabilities that are not calibrated."""
    length = float(np.median(np.sqrt(np.square(z.astype(np.float64)).sum(axis=1))))
    away = 0.5 * np.abs(np.tanh(0.5 * scores))  # of the probability, from 1/2
    if len(scores) and np.quantile(away, 0.95) < _EVEN:
        yield (
            f"vectors are short (median length {length:.2g}): 95 % of the pairs have a raw probability within "
            f"{_EVEN:g} of .5, so raw DP and EO say nothing"
        )
    elif len(scores) and np.quantile(away, 0.05) > 0.5 - _SURE:
        yield (
            f"vectors are long (median length {length:.2g}): 95 % of the pairs have a raw probability within "
            f"{_SURE:g} of 0 or 1, so raw DP and EO count signs of scores alone"
        )
