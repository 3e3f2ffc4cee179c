r"""Optimal transport of groups onto their barycentre, by blocks of people.

    T_g(x) = sum_j p_j(x) y_j,   p_j(x) ~ v_j exp(-|x + s_g - y_j|^2 / e),   e = blur * the median squared distance

y are the points of the groups' barycentre, weighed n_g / N, v the scaling that Sinkhorn's iteration (Cuturi, NIPS 2013,
Algorithm 1) finds between the people of group g and y. The barycentre has free support: it begins as people of the
largest group, and each round takes every point to the n_g / N-weighed mean of where the plans send it (Cuturi and
Doucet, ICML 2014, Eq. (8)). T_g is the entropic map: its formula serves people that the plan was not made for.

A shift of a group changes no plan, so that groups are laid mean on mean first, from where Sinkhorn's steps get there
sooner. All groups end on the same points, each point between several: no two people of different groups are put in the very
same place, as exact assignments would, from which nearest neighbours read the attribute inverted. Nobody is moved by a plan
that they took part in, as it remembers where it sent them and who reads links finds them by that. Blocks keep time
and memory linear in N. A block moves up to `block` people of the largest group and a share of all others, by as many
people of other blocks; of a small group they are the same people again.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from uge_core.arrays import BoolArray, Float64, FloatArray, IntArray
from uge_core.machine import cores

_PURPOSE = 53  # tells the stream of draws from others of the same seed
_ROUNDS = 2  # of the barycentre; later ones hardly move it
_STEPS = 100  # of Sinkhorn's iteration
_FAR = 300.0  # a cost of more blurs than this counts as so many: exp of it must not be 0
_PAIRS = 1024  # that the median distance is of


@dataclass(frozen=True, eq=False)
class Transport:
    """Moves the people of each group onto the groups' barycentre.

    Attributes:
        group: (N,) the group of each node, negative for nodes that are left as they are.
        fitted: (N,) nodes it is fitted on, which have a group. Groups without one are left.
        share: of the way that each is moved.
        blur: of the plans, in median squared distances.
        block: people of the largest group in a block.
        seed: keys the draw of the blocks.
    """

    group: IntArray
    fitted: BoolArray
    share: float = 1.0
    blur: float = 0.01
    block: int = 512
    seed: int = 0

    def __call__(self, z: FloatArray) -> FloatArray:
        """(N, d) whose groups lie on each other."""
        out = z.copy()
        if not self.fitted.any():
            return out
        rng = np.random.default_rng([self.seed, _PURPOSE])
        x = z.astype(np.float64)
        pairs = x[rng.choice(np.nonzero(self.fitted)[0], (2, _PAIRS))]
        median = float(np.median(np.square(pairs[0] - pairs[1]).sum(axis=1)))
        unit = self.blur * max(median, float(np.finfo(np.float32).tiny))
        groups = np.unique(self.group[self.fitted])
        weights = np.array([np.count_nonzero(self.fitted & (self.group == g)) for g in groups]) / self.fitted.sum()

        def work(block: tuple[list[IntArray], list[IntArray]]) -> None:
            learnt, moved = block
            goals = transported([x[rows] for rows in learnt], [x[rows] for rows in moved], weights, unit)
            for rows, goal in zip(moved, goals, strict=True):
                out[rows] = x[rows] + self.share * (goal - x[rows])

        with ThreadPoolExecutor(cores()) as pool:
            list(pool.map(work, self._blocks(groups, rng)))
        return out

    def _blocks(self, groups: IntArray, rng: np.random.Generator) -> Iterator[tuple[list[IntArray], list[IntArray]]]:
        """Per block and group the people that plans are fitted on, and others, each in one block, that are moved."""
        number = max(2, -(-max(int(np.sum(self.group == g)) for g in groups) // self.block))
        learnt = [rng.permutation(np.nonzero(self.fitted & (self.group == g))[0]) for g in groups]
        others = [rng.permutation(np.nonzero(~self.fitted & (self.group == g))[0]) for g in groups]
        for k in range(number):
            fitted, moved = [], []
            for rows, more in zip(learnt, others, strict=True):
                begin, end = k * len(rows) // number, (k + 1) * len(rows) // number
                rest = len(rows) - (end - begin) or 1  # who is alone in a group is moved by themselves
                fitted.append(np.take(rows, np.arange(end, end + min(self.block, rest)), mode="wrap"))
                moved.append(
                    np.concatenate([rows[begin:end], more[k * len(more) // number : (k + 1) * len(more) // number]])
                )
            yield fitted, moved


def transported(clouds: list[Float64], moved: list[Float64], weights: Float64, unit: float) -> list[Float64]:
    """Where people of each group go.

    Args:
        clouds: per group (n_g, d) people that the barycentre and the plans are fitted on.
        moved: per group (m_g, d) people who are sent.
        weights: per group its weight in the barycentre, 1 in all.
        unit: the blur of the plans, a squared distance.

    Returns:
        Per group (m_g, d).
    """
    from uge_core.kernels.sinkhorn import scaling

    points = _barycentre(clouds, weights, unit)
    goals = []
    for cloud, rows in zip(clouds, moved, strict=True):
        shift = points.mean(axis=0) - cloud.mean(axis=0)
        plan = _kernel(rows + shift, points, unit) * scaling(_kernel(cloud + shift, points, unit), _STEPS)
        goals.append(plan @ points / plan.sum(axis=1, keepdims=True))
    return goals


def _barycentre(clouds: list[Float64], weights: Float64, unit: float) -> Float64:
    """(M, d) points of the barycentre of `clouds` (n_g, d), as many as the one that weighs most has."""
    from uge_core.kernels.sinkhorn import scaling

    points = clouds[int(weights.argmax())]
    for _ in range(_ROUNDS):
        mean = np.zeros_like(points)
        for cloud, weight in zip(clouds, weights, strict=True):
            kernel = _kernel(cloud - cloud.mean(axis=0) + points.mean(axis=0), points, unit)
            plan = kernel / (kernel @ scaling(kernel, _STEPS))[:, None]
            mean += weight * (plan.T @ cloud) / plan.sum(axis=0)[:, None]
        points = mean
    return points


def _kernel(rows: Float64, points: Float64, unit: float) -> Float64:
    """(n, M) exp(-|x - y|^2 / unit), each row as a multiple of its largest."""
    cost = (np.square(points).sum(axis=1) - 2 * rows @ points.T) / unit
    cost -= cost.min(axis=1, keepdims=True)
    return np.asarray(np.exp(-np.minimum(cost, _FAR)))
