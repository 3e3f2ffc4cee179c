"""Logistic regression on how near a person is to some others: smooth boundaries of any shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from uge_core.arrays import Float64, IntArray
from uge_core.audit.attackers.base import Attacker, Fitted, Float64Array, Seen
from uge_core.audit.normal_scores import normal_scores
from uge_core.registry import register

_CENTRES = 200
_MOST_PEOPLE = 10_000
_MOST_ROWS = 2_000_000  # people times values


@register
class RBF(Attacker):
    """Logistic regression on how near a person is to 200 others, drawn from those it learns from.

    Nearness is exp(-2 d^2 / (3 m)), d the distance of the two and m the median d^2 of these people and the others. It
    is taken twice, of vectors as they are and of the ranks of their coordinates (`normal_scores`): no huge vector makes
    the ranks look alike, and no coordinate too short to matter outweighs the others in the vectors.

    Trees cut along coordinates and need many cuts for a rotated quadratic form: drawn leak of one in 16 dimensions,
    2,000 people, AUC .78, trees .71.
    """

    label: ClassVar[str] = "radial basis functions"
    short: ClassVar[str] = "RBF"
    position: ClassVar[int] = 2
    by_default: ClassVar[bool] = True
    seconds: ClassVar[tuple[float, float, float]] = (0.4, 1.5e-4, 1e-5)
    scaled: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("uge_core.kernels.logistic",)

    def most_people(self, num_values: int) -> int:
        """So many that a fit takes seconds."""
        return min(_MOST_PEOPLE, _MOST_ROWS // num_values)

    def rows(self, seen: Seen) -> tuple[Float64, Float64]:
        """(l, 2 d) and (m, 2 d): vectors, less their middle, and coordinates by their ranks among the labelled people."""
        z = seen.embedding.astype(np.float64)
        both = np.concatenate([z - np.median(z[seen.train], axis=0), normal_scores(seen.embedding, seen.train)], axis=1)
        return both[seen.train[seen.learners]], both[seen.asked]

    def fit(self, x: Float64Array, y: IntArray, *, seed: int) -> Fitted:
        """The centres are drawn by `seed`."""
        from uge_core.kernels.logistic import fit_logistic

        few = np.sort(np.random.default_rng([seed, 72]).permutation(len(x))[:_CENTRES])
        kernels = [_Kernel.of(part, few) for part in np.split(x, 2, axis=1)]

        def nearness(z: Float64Array) -> Float64Array:
            parts = zip(kernels, np.split(z, 2, axis=1), strict=True)
            return np.concatenate([kernel(part) for kernel, part in parts], axis=1)

        near = nearness(x)
        middle, spread = near.mean(axis=0), near.std(axis=0)
        spread[spread < 1e-12] = 1.0  # all people alike
        model = fit_logistic((near - middle) / spread, y)
        return Fitted(
            lambda z: model.probabilities((nearness(z) - middle) / spread),
            None if model.converged else "the logistic regression stopped before it met its tolerance",
        )


@dataclass(frozen=True, eq=False)
class _Kernel:
    """Nearness to some people.

    Attributes:
        centres: (c, d) those people.
        width: the median squared distance to them.
    """

    centres: Float64
    width: float

    @classmethod
    def of(cls, x: Float64Array, few: IntArray) -> _Kernel:
        """To rows `few` of x (n, d)."""
        width = float(np.median(_squares(x, x[few])))
        return cls(x[few], width if width > 0 else 1.0)

    def __call__(self, z: Float64Array) -> Float64Array:
        return np.asarray(np.exp(_squares(z, self.centres) * (-2.0 / (3.0 * self.width))))


def _squares(z: Float64Array, centres: Float64Array) -> Float64Array:
    """(m, c) squared distances."""
    square = np.square(z).sum(axis=1)[:, None] + np.square(centres).sum(axis=1) - 2.0 * z @ centres.T
    return np.asarray(np.maximum(square, 0.0))
