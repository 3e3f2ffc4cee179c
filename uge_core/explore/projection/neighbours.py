"""Whether near people are alike, in all dimensions of the embedding and not in a picture of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uge_core.arrays import Float64, FloatArray, IntArray
from uge_core.graph.graph import Attribute
from uge_core.graph.scores import scorer

NEAREST = 10
ASKED = 1_000
"""People whose neighbours are looked up: enough for an interval of some hundredths."""
_ROWS = 128


@dataclass(frozen=True)
class Alike:
    """The share of near people with the same value.

    Attributes:
        value: mean over the people asked, in [0, 1]; None where there are too few.
        low: lower end of its 95 % interval over them.
        high: upper end.
        chance: what neighbours drawn at random would give them.
        n: the people asked.
    """

    value: float | None
    low: float | None
    high: float | None
    chance: float | None
    n: int


def nearest(embedding: FloatArray, asked: IntArray, among: IntArray) -> IntArray:
    """(n, k) the up to ten people `among` nearest to each of the `asked` by Euclidean distance, in no order.

    Args:
        embedding: (N, d) float32.
        asked: (n,) node numbers; each is left out of its own neighbours.
        among: (m,) node numbers, rising.
    """
    pool = np.asarray(embedding[among], dtype=np.float32)
    half = 0.5 * np.einsum("ij,ij->i", pool, pool)
    k = min(NEAREST, len(among) - 1)
    out = np.empty((len(asked), k), dtype=np.int64)
    own = np.searchsorted(among, asked)
    across = np.ascontiguousarray(pool.T)
    for begin in range(0, len(asked), _ROWS):
        part = slice(begin, begin + _ROWS)
        # |a - b|^2 / 2 less the asked one's own length, which changes no order
        gap = half - np.asarray(embedding[asked[part]], dtype=np.float32) @ across
        rows = np.arange(len(gap))
        mine = np.minimum(own[part], len(among) - 1)
        gap[rows, mine] = np.where(among[mine] == asked[part], np.inf, gap[rows, mine])
        out[part] = among[np.argpartition(gap, k - 1, axis=1)[:, :k]]
    return out


def closest(
    embedding: FloatArray, score: str, node: int, among: IntArray, *, most: int = NEAREST
) -> tuple[IntArray, Float64]:
    """(k,) the people `among` nearest to one node by the score of the run, the nearest first, and (k,) how near.

    By the dot product or the cosine the largest is the nearest; by a run that scores with distances, |z_u - z_v|, the
    smallest. Of equal ones the first by number.

    Args:
        embedding: (N, d).
        score: a name that `scores.scorer` knows.
        node: whose neighbours.
        among: (m,) node numbers; the node itself is left out.
        most: k.
    """
    others = among[among != node]
    z = np.asarray(embedding[np.append(others, node)], dtype=np.float32)
    if score.startswith("distance"):
        far = np.linalg.norm(z[:-1].astype(np.float64) - z[-1], axis=1)
        order = np.argsort(far, kind="stable")[:most]
        return others[order], far[order]
    factors = scorer(score).factors(z)
    near = factors.right[:-1].astype(np.float64) @ factors.left[-1].astype(np.float64)
    order = np.argsort(-near, kind="stable")[:most]
    return others[order], near[order]


def same_group_share(attributes: Sequence[Attribute], asked: IntArray, near: IntArray, among: IntArray) -> list[Alike]:
    """For each attribute the share of neighbours with the value of the person asked.

    People without a value take no part. Chance is (n_g - 1) / (N - 1) for a person of group g, N the people `among`
    with a value, averaged over those asked. The interval is the normal one over people, each of whom counts in the
    shares of all whose neighbour they are: with r_e the deviation of a pair e and a_u the sum over u's pairs, either
    way, its variance is sum_u a_u^2 - sum_e r_e^2 (as in `audit.dyadic`), and not below that of independent shares.

    Args:
        attributes: whose values are compared.
        asked: (n,) node numbers.
        near: (n, k) their neighbours, from `nearest`.
        among: (m,) the people they were drawn from.
    """
    out = []
    for attribute in attributes:
        codes = attribute.codes
        around = codes[near] >= 0
        use = (codes[asked] >= 0) & around.any(axis=1)
        mine, theirs, counted = codes[asked][use], codes[near][use], around[use]
        if len(mine) < 2:
            out.append(Alike(None, None, None, None, len(mine)))
            continue
        same, of = (theirs == mine[:, None]) & counted, counted.sum(axis=1)
        share = same.sum(axis=1) / of
        there = codes[among]
        size = np.bincount(there[there >= 0], minlength=attribute.num_values)
        chance = float(((size[mine] - 1) / max(int(size.sum()) - 1, 1)).mean())
        value = float(share.mean())
        ends = np.stack([np.repeat(asked[use], near.shape[1])[counted.ravel()], near[use][counted]])
        pair = ends.min(axis=0) * len(codes) + ends.max(axis=0)
        deviation = ((same - value) / (of * len(share))[:, None])[counted]
        own = np.bincount(np.unique(pair, return_inverse=True)[1], deviation)
        together = np.bincount(ends.ravel(), np.tile(deviation, 2))
        variance = max(float(together @ together - own @ own), float(share.var(ddof=1) / len(share)))
        margin = 1.96 * float(np.sqrt(variance))
        out.append(Alike(value, max(0.0, value - margin), min(1.0, value + margin), chance, len(mine)))
    return out
