"""The paper's attacker: logistic regression."""

from __future__ import annotations

from typing import ClassVar

from uge_core.arrays import IntArray
from uge_core.audit.attackers.base import Attacker, Fitted, Float64Array
from uge_core.kernels.logistic import fit_logistic
from uge_core.registry import register


@register
class Linear(Attacker):
    """Logistic regression, L2, C = 1, balanced classes (UGE, Sec. 6.2).

    Balanced classes can put Micro-F1 far below the majority rate, so low Micro-F1 is not low
    leakage: read AUC beside it.
    """

    label: ClassVar[str] = "logistic regression"
    learns_twice: ClassVar[bool] = True

    def fit(self, x: Float64Array, y: IntArray, *, seed: int) -> Fitted:
        """Has no randomness."""
        model = fit_logistic(x, y)
        return Fitted(
            model.probabilities,
            None if model.converged else "the logistic regression stopped before it met its tolerance",
        )
