r"""Scores as probabilities that do not depend on how long the vectors are.

    p_uv = sigmoid(a t_uv + b),     t_uv = (s_uv - m) / sd

m and sd are the mean and the standard deviation of the scores of a pool, half of it links, half pairs without an edge;
a and b fit links against the others by logistic regression without a penalty. So p is the chance of a link where both
kinds are as many. Scores times a number above 0, or plus a number, have the same p, while sigmoid(s) tends to 1/2 as an
embedding shrinks.

There is no p where scores do not differ, where a is not above 0 (links do not score higher than other pairs), or where
the scores tell links from the other pairs without an error, as the larger a the better then. Nor is there one where a
few huge scores rule the line, so that all others look alike: where the same fit to the scores' ranks (normal scores)
tells links from the others by more bits, beyond a fifth (`_RULED`). In trainings of all methods here it told fewer.
Source of the fit: Platt, 1999, without his smoothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import ndtri
from scipy.stats import rankdata

from uge_core.arrays import Float64, IntArray
from uge_core.audit.pair_sample import sample_pairs
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.scores import LARGEST, Factors, Scored
from uge_core.graph.split import LinkSplit
from uge_core.kernels.settled import settled

MIN_VALIDATION = 100
"""Validation links, under which a share of the held-out ones is fitted on."""
MIN_LINKS = 50
"""Links to fit on, under which nothing is fitted."""
_SHARE = 0.2  # of the held-out links
_RULED = 0.2  # of the bits that ranks tell, how many the scores may lack
_BEYOND_CHANCE = 6.0  # bits over all pairs, by which ranks tell more
_ROUNDING = 1e-7  # of the scores' mean: as little as float32 vectors differ by rounding


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Scores brought to probabilities, or why they cannot be.

    Attributes:
        factors: their dot products are a t + b, the log odds of p; None where nothing was fitted.
        slope: a, by how much a standard deviation of the scores raises the log odds, above 0; None without a fit.
        n: links that were fitted on, with as many pairs without an edge.
        spread: the 95 % quantile of p less the 5 % quantile, over the pool, in [0, 1]; None without a fit.
        mean: m, of the pool's scores; None without a pool.
        sd: their standard deviation; None without a pool.
        tested: (2, E) the links that were not fitted on, for EO.
        words: what was fitted on, to follow "calibrated".
        why: in words why nothing was fitted, or None.
    """

    factors: Factors | None
    slope: float | None
    n: int
    spread: float | None
    mean: float | None
    sd: float | None
    tested: IntArray
    words: str
    why: str | None


def fit(scored: Scored, graph: AttributedGraph, split: LinkSplit | None, seed: int) -> Calibrated:
    """Fits a and b.

    Args:
        scored: what scores pairs.
        graph: whose pairs; an edge in any part is an edge.
        split: its validation links are fitted on where there are `MIN_VALIDATION`, else a fifth of its test links; of
            None a fifth of all.
        seed: keys the fifth and the pairs without an edge, the same for all embeddings.
    """
    links, tested, words = _links(graph, split, seed)
    n = links.shape[1]
    none = np.zeros((2, 0), dtype=np.int64)
    drawn = sample_pairs(graph, LinkSplit(none, none, links, seed), most=n, seed=seed) if n else None
    if drawn is None:
        why = "no link to calibrate on" if n == 0 else "every pair has an edge, so that none is left to calibrate on"
        return Calibrated(None, None, n, None, None, None, tested, words, why)
    # of a dense graph up to twice as many are drawn
    others = drawn.pairs[:, n:]
    others = others[:, np.sort(np.random.default_rng([seed, 67]).permutation(others.shape[1])[:n])]
    scores = Factors.of(scored).scores(*np.concatenate([links, others], axis=1))
    mean, sd = float(scores.mean()), float(scores.std())

    def unfitted(why: str) -> Calibrated:
        return Calibrated(None, None, n, None, mean, sd, tested, words, why)

    if n < MIN_LINKS:
        return unfitted(f"{n} links to calibrate on, at least {MIN_LINKS} are needed")
    if sd <= _ROUNDING * abs(mean):
        return unfitted("all pairs have the same score, but for rounding")
    if scores[:n].min() >= scores[n:].max():
        return unfitted(
            "every link scores higher than every pair without an edge, so that the steeper a calibration the better "
            "and none is best"
        )
    standard, linked = (scores - mean) / sd, np.arange(len(scores)) < n
    # without an overlap the other way round no slope fits best either, and it is below 0
    slope, intercept = (-np.inf, 0.0) if scores[:n].max() <= scores[n:].min() else fit_line(standard, linked)
    if not slope > 0:
        return unfitted("links score no higher than pairs without an edge, so that the slope is not above 0")
    rank = ndtri((rankdata(scores) - 0.5) / len(scores))
    told, by_rank = _bits(standard, linked, slope, intercept), _bits(rank, linked, *fit_line(rank, linked))
    if by_rank - told > max(_RULED * by_rank, _BEYOND_CHANCE / len(scores)):
        return unfitted(
            f"a few scores far from the others rule the calibration: it tells {told:.3f} bits a pair of who is linked, "
            f"the order of the scores {by_rank:.3f}"
        )
    low, high = np.quantile(_sigmoid(slope * standard + intercept), [0.05, 0.95])
    factors = _widened(Factors.of(scored), graph.num_users, slope / sd, mean, intercept)
    return Calibrated(factors, slope, n, float(high - low), mean, sd, tested, words, None)


def _links(graph: AttributedGraph, split: LinkSplit | None, seed: int) -> tuple[IntArray, IntArray, str]:
    """The links to fit on, the others that EO is of, and what was fitted on in words."""
    if split is not None and split.validation.shape[1] >= MIN_VALIDATION:
        return split.validation, split.test, f"on {split.validation.shape[1]:,} validation links"
    given = graph.edges if split is None else split.test
    chosen = np.zeros(given.shape[1], dtype=bool)
    order = np.random.default_rng([seed, 66]).permutation(given.shape[1])
    chosen[order[: round(_SHARE * given.shape[1])]] = True
    kind = "of all links, which training may have seen" if split is None else "of the held-out links"
    words = f"on a fifth {kind} ({chosen.sum():,}, left out of EO)"
    return given[:, chosen], given[:, ~chosen], words


def fit_line(score: Float64, linked: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and intercept of the log odds that make what happened likeliest.

    Args:
        score: (n,) of about unit size, those of links and of others overlapping.
        linked: (n,) which are links.
    """
    terms = np.stack([score, np.ones(len(score))])
    sign = np.where(linked, 1.0, -1.0)

    def loss(line: Float64) -> float:
        return float(np.logaddexp(0.0, -sign * (line @ terms)).mean())

    def first(line: Float64) -> Float64:
        return np.asarray(terms @ (_sigmoid(line @ terms) - linked) / len(score))

    def second(line: Float64) -> Float64:
        p = _sigmoid(line @ terms)
        return np.asarray((terms * (p * (1.0 - p))) @ terms.T / len(score))

    near = minimize(loss, np.zeros(2), method="trust-exact", jac=first, hess=second, options={"gtol": 1e-8})
    slope, intercept = settled(near.x, first, second)
    return float(slope), float(intercept)


def _bits(score: Float64, linked: npt.NDArray[np.bool_], slope: float, intercept: float) -> float:
    """How much a line through scores tells of who is linked, in bits a pair."""
    odds = np.where(linked, 1.0, -1.0) * (slope * score + intercept)
    return float(1.0 - np.logaddexp(0.0, -odds).mean() / np.log(2.0))


def _widened(z: Factors, num_users: int | None, slope: float, mean: float, intercept: float) -> Factors:
    """Factors of slope * (s - mean) + intercept, two columns more.

    s_uv = (x_u - c) . (y_v - d) + x_u . d + c . y_v - c . d with c and d the mean rows of u's and of v's side, so that
    what all scores have in common meets `mean` in float64, and float32 keeps the digits in which scores differ.
    """
    n, dim = z.left.shape
    sides = (slice(None),) if num_users is None else (slice(0, num_users), slice(num_users, n))
    x, y = z.left.astype(np.float64), z.right.astype(np.float64)
    left, right = np.ones((n, dim + 2)), np.ones((n, dim + 2))
    for own, other in zip(sides, sides[::-1], strict=True):
        for rows, mine, theirs, column in ((left, x, y, dim), (right, y, x, dim + 1)):
            middle, met = mine[own].mean(axis=0), theirs[other].mean(axis=0)
            rows[own, :dim] = np.sqrt(slope) * (mine[own] - middle)
            rows[own, column] = slope * (mine[own] @ met - (middle @ met + mean) / 2) + intercept / 2
    # a row far outside the pool's, whose p is 0 or 1 either way
    return Factors(*(np.clip(rows, -LARGEST, LARGEST).astype(np.float32) for rows in (left, right)))


def _sigmoid(x: Float64) -> Float64:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))
