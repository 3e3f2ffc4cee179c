r"""INLP, iterative nullspace projection (Ravfogel et al., ACL 2020, Algorithm 1).

    z <- (I - B B^T) z,   B an orthonormal basis of the weights of the linear classifiers so far

Each round fits a logistic regression per attribute on what is left of the embedding and takes away the
space its weights span, until its balanced accuracy on nodes it did not learn from lies within two standard
errors of chance for every attribute. Orthogonal and without a shift, so scores between nodes that lack
these directions stay as they were. At least one dimension is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uge_core.arrays import BoolArray, Float64, FloatArray, IntArray

if TYPE_CHECKING:
    from uge_core.kernels.logistic import Logistic

_FOLD = 5  # every fifth node of a value is held out to tell when to stop
_TRACE = 1e-6  # a direction of less than this part of the largest weight is none


@dataclass(frozen=True, eq=False)
class Inlp:
    """Projects the embedding onto what linear classifiers cannot use.

    Attributes:
        codes: per attribute (N,) the value of each node.
        fitted: (N,) nodes it is fitted on, which have a value of every attribute.
        moved: (N,) nodes it is applied to; on a bipartite graph the people.
        rounds: at most so many; 0: until the classifiers are at chance.
    """

    codes: tuple[IntArray, ...]
    fitted: BoolArray
    moved: BoolArray
    rounds: int = 0

    def __call__(self, z: FloatArray) -> FloatArray:
        """(N, d) of which linear classifiers read the attributes no better than chance."""
        basis = self.basis(z[self.fitted].astype(np.float64))
        out = z.copy()
        moved = z[self.moved].astype(np.float64)
        out[self.moved] = moved - moved @ basis @ basis.T
        return out

    def basis(self, x: Float64) -> Float64:
        """(d, r) orthonormal directions to take away, of the fitted nodes' rows (n, d)."""
        d = x.shape[1]
        basis = np.zeros((d, 0))
        for _ in range(self.rounds or d):
            left = x - x @ basis @ basis.T
            directions = [_readable(left, code[self.fitted]) for code in self.codes]
            weights = np.concatenate([w for w in directions if w is not None] or [np.zeros((0, d))])
            _, size, rows = np.linalg.svd(weights, full_matrices=False)
            rows = rows[size > _TRACE * size[:1].sum()]
            # what is taken already is out of `left`, so new directions are orthogonal to it but for rounding
            wider, _ = np.linalg.qr(np.concatenate([basis, rows.T], axis=1))
            if not len(rows) or wider.shape[1] >= d:
                break
            basis = wider
        return basis


def _readable(x: Float64, codes: IntArray) -> Float64 | None:
    """(K, d) weights of a classifier of `codes`, or None where it is at chance on nodes held out."""
    from uge_core.kernels.logistic import fit_logistic

    order = np.argsort(codes, kind="stable")
    held_out = np.zeros(len(codes), dtype=bool)
    held_out[order[::_FOLD]] = True
    if len(np.unique(codes[~held_out])) < 2:
        return None
    model = fit_logistic(x[~held_out], codes[~held_out])
    return model.weight[:, :-1] if _above_chance(model, x[held_out], codes[held_out]) else None


def _above_chance(model: Logistic, x: Float64, codes: IntArray) -> bool:
    """Whether the mean recall of the values tested lies more than two standard errors above chance."""
    right = model.classes[model.log_odds(x).argmax(axis=1)] == codes
    tested, which, size = np.unique(codes, return_inverse=True, return_counts=True)
    recall = np.bincount(which, right) / size
    chance = 1 / len(model.classes)
    error = math.sqrt(chance * (1 - chance) * float((1 / size).sum())) / len(tested)
    return bool(recall.mean() > chance + 2 * error)
