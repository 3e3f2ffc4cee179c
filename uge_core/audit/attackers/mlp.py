"""A small neural network."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from uge_core.arrays import IntArray
from uge_core.audit.attackers.base import MANY_VALUES, Attacker, Fitted, Float64Array
from uge_core.registry import register

_WIDTH = 64
_EPOCHS = 20
_FEW_EPOCHS = 10
_STEPS = 2_000  # small graphs get more epochs, until they too have taken so many steps
_BATCH = 256


@register
class MLP(Attacker):
    """scikit-learn's perceptron, one hidden layer of 64, Adam at 0.002, a fixed number of epochs.

    Double precision: two thousand steps blow a difference in the last bit of a sum up a hundred thousand times, which
    in single precision moved an AUC by .005 between two processors.
    """

    label: ClassVar[str] = "neural network"
    position: ClassVar[int] = 5
    needs: ClassVar[tuple[str, ...]] = ("sklearn.neural_network",)

    def fit(self, x: Float64Array, y: IntArray, *, seed: int) -> Fitted:
        """20 epochs, on small graphs as many as make 2,000 steps, at most 200; above 20 values half of them.

        All epochs go through the people in one shuffled order.
        """
        from sklearn.neural_network import MLPClassifier

        num = int(y.max()) + 1
        many = num > MANY_VALUES
        batch = min(_BATCH, len(x))
        steps = -(-len(x) // batch)
        epochs = max(_FEW_EPOCHS if many else _EPOCHS, min(200, (_STEPS // 2 if many else _STEPS) // steps))
        model = MLPClassifier((_WIDTH,), batch_size=batch, learning_rate_init=2e-3, random_state=seed)
        for _ in range(epochs):
            model.partial_fit(x, y, classes=np.arange(num))
        note = f"mlp limited to {epochs} epochs as the attribute has {num} values" if many else None
        return Fitted(model.predict_proba, note)
