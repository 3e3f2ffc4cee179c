r"""LEACE, least-squares concept erasure (Belrose et al., NeurIPS 2023, Theorem 4.3).

    r(z) = z - W^+ P W (z - m),   W = S_zz^{-1/2},   P the projection onto the column space of W S_za

m and S_zz are mean and covariance of the embedding, S_za its covariance with the attributes' indicators,
all over the nodes it is fitted on. Of all affine maps after which no indicator correlates with any
dimension, so that no linear classifier beats a constant, this one moves these nodes least in mean
square. It takes away rank(S_za) dimensions, at most the number of values less one per attribute.

Own arithmetic, in float64, rather than the package concept-erasure: that shrinks S_zz and drops
correlations under 0.01 by default, which leaves traces, and the closed form is short.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uge_core.arrays import BoolArray, Float64, FloatArray, IntArray

_FLAT = 1e-6  # a spread of less than this part of the largest is float32's rounding
_TRACE = 1e-7  # so is a covariance with the whitened embedding below


@dataclass(frozen=True, eq=False)
class Leace:
    """Erases what is linear of some attributes.

    Attributes:
        codes: per attribute (N,) the value of each node.
        fitted: (N,) nodes it is fitted on, which have a value of every attribute.
        moved: (N,) nodes it is applied to; on a bipartite graph the people.
    """

    codes: tuple[IntArray, ...]
    fitted: BoolArray
    moved: BoolArray

    def __call__(self, z: FloatArray) -> FloatArray:
        """(N, d) with zero covariance to every indicator over the fitted nodes."""
        x = z[self.fitted].astype(np.float64)
        centre = x.mean(axis=0)
        x -= centre
        level, axes = np.linalg.eigh(x.T @ x / len(x))
        kept = level > level[-1] * _FLAT**2
        axes, root = axes[:, kept], np.sqrt(level[kept])
        whiten, back = (axes / root) @ axes.T, (axes * root) @ axes.T
        cross = np.concatenate([_indicator_sums(x, code[self.fitted]) for code in self.codes]).T / len(x)
        directions, strength, _ = np.linalg.svd(whiten @ cross, full_matrices=False)
        directions = directions[:, strength > _TRACE]
        out = z.copy()
        moved = z[self.moved].astype(np.float64)
        out[self.moved] = moved - (moved - centre) @ (whiten @ directions) @ (back @ directions).T
        return out


def _indicator_sums(x: Float64, codes: IntArray) -> Float64:
    """(G, d) the sum of the rows of `x` (n, d) by value, codes (n,)."""
    return np.stack([np.bincount(codes, column) for column in x.T], axis=1)
