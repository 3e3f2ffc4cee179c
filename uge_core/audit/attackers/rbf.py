"""Logistic regression on how near a person is to some others: smooth boundaries of any shape."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from uge_core.arrays import FloatArray, IntArray
from uge_core.audit.attackers.base import Attacker, Fitted, Float64Array, Seen
from uge_core.audit.normal_scores import normal_scores
from uge_core.registry import register

_CENTRES = 300
_MOST_PEOPLE = 10_000
_MOST_ROWS = 2_000_000  # people times values


@register
class RBF(Attacker):
    """Logistic regression on how near a person is to 300 others, drawn from those it learns from.

    Nearness is exp(-d^2 / (3 p)), d the distance of the two and p the number of coordinates, each by its rank
    (`normal_scores`), so that no huge vector makes all others look alike.

    Trees cut along coordinates and need many cuts for a rotated quadratic form: drawn leak of one in 16 dimensions,
    2,000 people, AUC .78, trees .71.
    """

    label: ClassVar[str] = "radial basis functions"
    short: ClassVar[str] = "RBF"
    position: ClassVar[int] = 2
    by_default: ClassVar[bool] = True
    seconds: ClassVar[tuple[float, float, float]] = (0.4, 1.5e-4, 1e-5)
    needs: ClassVar[tuple[str, ...]] = ("uge_core.kernels.logistic",)

    def most_people(self, num_values: int) -> int:
        """So many that a fit takes seconds."""
        return min(_MOST_PEOPLE, _MOST_ROWS // num_values)

    def rows(self, seen: Seen) -> tuple[FloatArray, FloatArray]:
        """Coordinates by their ranks among the people whose class is known."""
        ranks = normal_scores(seen.embedding, seen.train)
        return ranks[seen.train[seen.learners]], ranks[seen.asked]

    def fit(self, x: Float64Array, y: IntArray, *, seed: int) -> Fitted:
        """The centres are drawn by `seed`."""
        from uge_core.kernels.logistic import fit_logistic

        few = np.random.default_rng([seed, 72]).permutation(len(x))[:_CENTRES]
        centres = x[np.sort(few)]

        def nearness(z: Float64Array) -> Float64Array:
            square = np.square(z).sum(axis=1)[:, None] + np.square(centres).sum(axis=1) - 2.0 * z @ centres.T
            return np.asarray(np.exp(-np.maximum(square, 0.0) / (3.0 * x.shape[1])))

        near = nearness(x)
        middle, spread = near.mean(axis=0), near.std(axis=0)
        spread[spread < 1e-12] = 1.0  # all people alike
        model = fit_logistic((near - middle) / spread, y)
        return Fitted(
            lambda z: model.probabilities((nearness(z) - middle) / spread),
            None if model.converged else "the logistic regression stopped before it met its tolerance",
        )
