"""The paper's attacker: logistic regression."""

from __future__ import annotations

from typing import ClassVar

from uge_core.arrays import IntArray
from uge_core.audit.attackers.base import Attacker, Fitted, Float64Array
from uge_core.registry import register


@register
class Linear(Attacker):
    """Logistic regression, L2, C = 1, balanced classes (UGE, Sec. 6.2).

    Balanced classes can put Micro-F1 far below the majority rate, so low Micro-F1 is not low
    leakage: read AUC beside it.
    """

    label: ClassVar[str] = "logistic regression"
    short: ClassVar[str] = "Linear"
    position: ClassVar[int] = 0
    by_default: ClassVar[bool] = True
    seconds: ClassVar[tuple[float, float, float]] = (0.03, 4e-6, 3e-7)
    learns_twice: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("uge_core.kernels.logistic",)

    def fit(self, x: Float64Array, y: IntArray, *, seed: int) -> Fitted:
        """Has no randomness."""
        from uge_core.kernels.logistic import fit_logistic

        model = fit_logistic(x, y)
        return Fitted(
            model.probabilities,
            None if model.converged else "the logistic regression stopped before it met its tolerance",
        )
