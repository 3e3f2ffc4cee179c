"""The embedding's own predicted links, read by boosted trees."""

from __future__ import annotations

from typing import ClassVar

from uge_core.arrays import IntArray
from uge_core.audit.attackers.base import Fitted, Float64Array
from uge_core.audit.attackers.links import Links
from uge_core.audit.link_features import ByValue
from uge_core.registry import register


@register
class LinkedTrees(Links):
    """Boosted trees on the features that `links` takes, where the classes differ in more than one way.

    On people whose value training did not see (node2vec, 200 epochs at 0.04, seed 0): LastFM, country, UGE-N: AUC .638
    where the logistic regression has .547, UGE-ORK: .645 and .628; Pokec-n, region, UGE-N: .665 and .633.
    """

    label: ClassVar[str] = "predicted links, boosted trees"
    short: ClassVar[str] = "Linked trees"
    position: ClassVar[int] = 4
    by_default: ClassVar[bool] = True
    seconds: ClassVar[tuple[float, float, float]] = (1.0, 3e-4, 3e-4)
    learns_twice: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = (*Links.needs, "sklearn.ensemble")

    def fit(self, x: Float64Array, y: IntArray, *, seed: int) -> Fitted:
        """A hundred rounds, one model for all values."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        by_value = ByValue(int(y.max()) + 1)
        model = HistGradientBoostingClassifier(
            learning_rate=0.05,
            max_iter=100,
            min_samples_leaf=100,
            early_stopping=False,
            l2_regularization=10.0,
            random_state=seed,
        ).fit(by_value.rows(x), by_value.has(y))
        return Fitted(by_value.answers(lambda z: model.predict_proba(z)[:, 1]))
