r"""How far the means of cells of pairs would move had other people been sampled, the embedding staying as it is.

Pairs that share a person are not independent. With r_e the pair's value less its cell's mean mu_c and
a_uc the sum of r_e over u's pairs in cell c, each pair counting for both its ends,

    Var(mu_c) = (sum_u a_uc^2 - sum_e r_e^2) / n_c^2,     Cov(mu_c, mu_c') = sum_u a_uc a_uc' / (n_c n_c')

(Fafchamps and Gubert 2007; Aronow, Samii and Assenova 2015). Here each group's part of the first sum is
multiplied by m / (m - 1), m its effective number of people, or m (m - 1) / (m - 2)^2 where pairs lie within
the group, which makes it unbiased for pairs that are sums of two people's parts; and no variance is below
that of independent pairs. Intervals of single cells use the t quantile with Satterthwaite's degrees of
freedom. Where a cell has fewer than ten people on a side, that side takes the variance between people of
all cells together if this is larger: one person's own pairs say nothing of other people.

Differences between cells: the influences a_uc / n_c times Gaussian multipliers, one per person, are
normal with covariance sum_u a_u a_u' and drawn as such, a group of people at a time, by the covariance's symmetric
root. A covariance has one such root, and it moves little where the covariance does. Eigenvectors can turn about or
change their signs with the last bit of a sum, and draws by them would too. The largest
|difference of c and c'| / sqrt(V_c + V_c') over all pairs of cells, V the draws' variances, 95 % of the
draws, is what all intervals of differences share, with V then the variances above; so they hold together,
and that of max - min covers also where there is no difference, at which resampling the maximum itself
covers nothing. Above 300 cells it is the largest deviation of a single cell instead, and each difference
gets the sum of two half-widths. The p-value of max - min is the interval's own: one less the level at which
its lower end is 0, so that a cell of few people, whose mean moves most, hides no difference between others.
The same draws, brought to the variances above, are what the cells do where all have the same mean: their
max - min is what chance alone gives.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.stats import norm, t

from uge_core.arrays import Float64, IntArray

DRAWS = 1_000
LEVEL = 0.95
MIN_PEOPLE = 10
MOST_CELLS = 300
"""Cells above which differences are bounded by simultaneous bands of the single cells, which is wider but quick."""

_LARGEST_DF = 1_000
_LITTLE = 1e-10  # of the largest variance in a group's draws


@dataclass(frozen=True, eq=False)
class Contribution:
    """What one set of people adds to the variance of the cells they take part in.

    Attributes:
        cells: (m,) numbers of the cells.
        gram: (m, m) sum over these people of a_uc a_uc' / (n_c n_c').
        people: (m,) effective number of people in each, (sum c_u^2)^2 / sum c_u^4 with c_u a person's pairs.
    """

    cells: IntArray
    gram: Float64
    people: Float64


def edge_sides(
    node: IntArray, part: IntArray, cell: IntArray, residual: Float64, n: Float64
) -> tuple[Contribution, ...]:
    """The sides of listed pairs.

    Args:
        node: (M,) one end of a pair; each pair is listed twice, once for each end.
        part: (M,) the set of people this end belongs to, such as its group.
        cell: (M,) the pair's cell.
        residual: (M,) r_e, times the pair's weight where pairs have one.
        n: (C,) pairs in each cell, or the sum of their weights.
    """
    sides = []
    order = np.argsort(part, kind="stable")
    bounds = np.nonzero(np.diff(part[order], prepend=-1, append=-1))[0] if len(part) else np.zeros(0, np.int64)
    for first, last in pairwise(bounds):
        entries = order[first:last]
        people, row = _numbered(node[entries])
        cells, column = _numbered(cell[entries])
        shape = (len(people), len(cells))
        influence = csr_matrix((residual[entries] / n[cell[entries]], (row, column)), shape)
        count = csr_matrix((np.ones(len(entries)), (row, column)), shape)
        squared = np.bincount(count.indices, count.data**2, len(cells))
        fourth = np.bincount(count.indices, count.data**4, len(cells))
        sides.append(Contribution(cells, (influence.T @ influence).toarray(), squared**2 / fourth))
    return tuple(sides)


def _numbered(values: IntArray) -> tuple[IntArray, IntArray]:
    """The different values, ascending, and the place of each among them; by counting, as sorting millions takes long.

    Args:
        values: (M,) whole numbers of 0 or more.
    """
    there = np.zeros(int(values.max(initial=-1)) + 1, dtype=bool)
    there[values] = True
    place = np.cumsum(there) - 1
    return np.flatnonzero(there), place[values]


@dataclass(frozen=True, eq=False)
class Noise:
    """How uncertain the means of k cells are.

    Attributes:
        variance: (k,) of each mean.
        df: (k,) degrees of freedom of that estimate.
        spread: (k,) variance of each line of `draws`, at least `variance`.
        draws: (k, B) normal deviations, correlated as the means are.
        borrowed: how many cells took the variance between all people on a side.
    """

    variance: Float64
    df: Float64
    spread: Float64
    draws: Float64
    borrowed: int

    def scaled(self, factor: Float64) -> Noise:
        """That of the means times (k,) factors."""
        return replace(
            self, variance=self.variance * factor**2, spread=self.spread * factor**2, draws=self.draws * factor[:, None]
        )

    @property
    def deviations(self) -> Float64:
        """(k, B) draws with the variances of the means."""
        ratio = np.divide(self.variance, self.spread, out=np.zeros(len(self.spread)), where=self.spread > 0)
        return np.asarray(self.draws * np.sqrt(ratio)[:, None])

    def half_width(self) -> Float64:
        """(k,) half the 95 % interval of each mean by itself."""
        return np.asarray(t.ppf(0.5 + LEVEL / 2, self.df) * np.sqrt(self.variance))


def cell_noise(
    sides: Sequence[Contribution], own: Float64, n: IntArray, kept: IntArray, *, draws: int = DRAWS, seed: int = 0
) -> Noise | None:
    """The uncertainty of the cells `kept`.

    Args:
        sides: every set of people once.
        own: (C,) sum_e r_e^2 / n_c^2.
        n: (C,) pairs in each cell.
        kept: (k,) the cells wanted, ascending.
        draws: B, how many are drawn.
        seed: keys them.

    Returns:
        None where no cell has ten people on a side, so that nothing tells how people differ.
    """
    num, k = len(n), len(kept)
    place = np.full(num, -1)
    place[kept] = np.arange(k)
    number_of_sides = np.zeros(num)
    for side in sides:
        number_of_sides[side.cells] += 1
    parts = []
    pooled = weight = 0.0
    for side in sides:
        inside = place[side.cells] >= 0
        if not inside.any():
            continue
        at, people = place[side.cells[inside]], side.people[inside]
        freedom = people - 1.0
        enough = people > MIN_PEOPLE - 1e-9
        alone = number_of_sides[side.cells[inside]] == 1
        # the mean is these people's own; where pairs lie within a group, so are the means of their partners
        grow = np.sqrt(people / np.maximum(freedom, 1.0)) * np.where(
            alone, np.maximum(freedom, 1.0) / np.maximum(freedom - 1.0, 1.0), 1.0
        )
        gram = side.gram[np.ix_(inside, inside)] * grow[:, None] * grow
        # both ends of a pair within a group count, which doubles each person's influence
        per_person = people / np.where(alone, 4.0, 1.0)
        # less what the pairs add by themselves, which depends on how many a person has
        between = np.maximum(np.diagonal(gram) - own[side.cells[inside]], 0.0) * per_person
        pooled += float((freedom * between)[enough].sum())
        weight += float(freedom[enough].sum())
        parts.append((at, gram, freedom, enough, per_person))
    if weight == 0:
        return None
    pooled /= weight
    rng = np.random.default_rng([seed, 31])
    spread, uncertain, borrows = np.zeros(k), np.zeros(k), np.zeros(k, dtype=bool)
    made = np.zeros((k, draws))
    for at, gram, freedom, enough, per_person in parts:
        mine = np.diagonal(gram)
        extra = np.where(enough, 0.0, np.maximum(pooled / per_person + own[kept][at] - mine, 0.0))
        total = mine + extra
        borrows[at] |= ~enough
        spread[at] += total
        uncertain[at] += total**2 / np.where(enough, freedom, MIN_PEOPLE - 1.0)
        values, vectors = np.linalg.eigh(gram)
        values = np.maximum(values, 0.0)
        # v / sqrt(v + a little) in place of sqrt(v), whose slope at 0 makes 1e-8 out of a rounding of 1e-16
        little = _LITTLE * values.max(initial=0.0)
        slope = np.divide(1.0, np.sqrt(values + little), out=np.zeros(len(values)), where=values + little > 0)
        root = (vectors * values * slope) @ vectors.T
        made[at] += root @ rng.standard_normal((len(at), draws))
        made[at] += np.sqrt(extra)[:, None] * rng.standard_normal((len(at), draws))
    size = n[kept]
    least = own[kept] * size / np.maximum(size - 1, 1)
    # drawn where nothing is lifted too: whether it is can be a matter of the last bit
    lift = np.sqrt(np.maximum(least - spread, 0.0))
    made += lift[:, None] * rng.standard_normal(made.shape)
    most = np.maximum(size - 1.0, 1.0)
    df = np.minimum(np.divide(spread**2, uncertain, out=most.copy(), where=uncertain > 0), most)
    return Noise(np.maximum(spread - own[kept], least), df, np.maximum(spread, least), made, int(borrows.sum()))


@dataclass(frozen=True)
class Apart:
    """A summary of how far cells lie apart.

    Attributes:
        low: lower end of its 95 % interval, at least 0.
        high: upper end.
        expected: its mean where all cells have the same mean.
        expected_ratio: the mean of exp(-it), which is min / max where it is a difference of logarithms.
        p_value: (1 + how many of B draws of that case reach it, or the least level at which the interval holds 0) / (B
            + 1).
    """

    low: float
    high: float
    expected: float
    expected_ratio: float
    p_value: float


def compare_range(values: Float64, noise: Noise) -> Apart:
    """Max - min of the values, with the interval that holds for all their differences at once.

    It goes from the largest lower bound of any difference, at least 0, to the largest upper bound. The p-value is
    that of the largest studentized difference.
    """
    deviations = noise.deviations
    chance = deviations.max(axis=0) - deviations.min(axis=0)
    bounds = (_Differences if len(values) <= MOST_CELLS else _Bands)(values, noise)
    largest = np.sort(bounds.largest)
    low, high = bounds(float(np.quantile(largest, LEVEL)))
    below = bisect_left(largest, True, key=lambda quantile: bounds(float(quantile))[0] <= 0)
    p_value = (1 + len(largest) - below) / (1 + len(largest))
    return Apart(max(0.0, low), high, float(chance.mean()), float(np.exp(-chance).mean()), p_value)


def compare_norm(values: Float64, noise: Noise, norm_of: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Apart:
    """A seminorm of the values, such as their weighted standard deviation.

    |norm(x) - norm(y)| <= norm(x - y), so the norm of the noise, 95 % of the draws, bounds the error.

    Args:
        values: (k,) means.
        noise: their uncertainty.
        norm_of: (k, B) to (B,), the norm of each column.
    """
    value = float(norm_of(values[:, None])[0])
    deviations = noise.deviations
    chance = norm_of(deviations)
    wider = np.asarray(t.ppf(0.5 + LEVEL / 2, noise.df) / norm.ppf(0.5 + LEVEL / 2))[:, None]
    error = float(np.quantile(norm_of(deviations * wider), LEVEL))
    return _apart(max(0.0, value - error), value + error, chance, value)


def _apart(low: float, high: float, chance: npt.NDArray[Any], value: float) -> Apart:
    """With what `chance` alone gives, (B,) draws of the same summary."""
    p_value = (1 + np.count_nonzero(chance >= value)) / (len(chance) + 1)
    return Apart(low, high, float(chance.mean()), float(np.exp(-chance).mean()), float(p_value))


class _Student:
    """t quantiles that leave as much above them as a normal variable does.

    A quantile takes scipy some microseconds, and a search asks for the same few degrees of freedom many times.
    """

    def __init__(self, df: Float64) -> None:
        whole = np.clip(df, 1, _LARGEST_DF).astype(np.int64)
        self._distinct, places = np.unique(whole, return_inverse=True)
        self._places = places.reshape(whole.shape)

    def __call__(self, normal: float) -> Float64:
        """In the shape of the degrees of freedom."""
        return np.asarray(t.isf(norm.sf(normal), self._distinct))[self._places]


class _Bands:
    """Bounds of the largest difference where every mean has the band that holds for all means at once.

    Attributes:
        largest: (B,) per draw the largest deviation of a mean in its own standard deviations.
    """

    def __init__(self, values: Float64, noise: Noise) -> None:
        spread = np.sqrt(np.where(noise.spread > 0, noise.spread, np.inf))
        self.largest = np.abs(noise.draws / spread[:, None]).max(axis=0)
        self._values, self._width = values, np.sqrt(noise.variance)
        self._student = _Student(noise.df)

    def __call__(self, quantile: float) -> tuple[float, float]:
        """Largest lower and upper bound of a difference, `quantile` standard deviations of a normal mean wide."""
        half = self._student(quantile) * self._width
        below, above = self._values - half, self._values + half
        return float(below.max() - above.min()), float(above.max() - below.min())


class _Differences:
    """Bounds of the largest difference where every difference has the one that holds for all differences at once.

    Attributes:
        largest: (B,) per draw the largest difference in its own standard deviations.
    """

    def __init__(self, values: Float64, noise: Noise) -> None:
        # Both divided by sqrt(V_c + V_c') without the covariance, which the draws have: its estimate in a difference
        # of two cells that share people can be far too small, and the largest ratio would be that one.
        spread, variance = noise.spread[:, None] + noise.spread, noise.variance[:, None] + noise.variance
        scale = np.divide(1.0, np.sqrt(spread), out=np.zeros(spread.shape), where=spread > 0)
        self.largest = _largest_differences(noise.draws, scale)
        uncertain = noise.variance**2 / noise.df
        uncertain = uncertain[:, None] + uncertain
        df = np.divide(variance**2, uncertain, out=np.ones(spread.shape), where=uncertain > 0)
        self._apart = np.abs(values[:, None] - values)
        self._width = np.sqrt(variance)
        np.fill_diagonal(self._width, 0.0)
        self._student = _Student(df)

    def __call__(self, quantile: float) -> tuple[float, float]:
        """Largest lower and upper bound of a difference, `quantile` standard deviations of a normal one wide."""
        half = self._student(quantile) * self._width
        return float((self._apart - half).max()), float((self._apart + half).max())


def _largest_differences(draws: Float64, scale: Float64) -> Float64:
    """(B,) per draw the largest scale_ij |draw_i - draw_j| over pairs of cells."""
    most = np.zeros(draws.shape[1])
    for i in range(len(draws) - 1):
        np.maximum(most, (np.abs(draws[i + 1 :] - draws[i]) * scale[i, i + 1 :, None]).max(axis=0), out=most)
    return most
