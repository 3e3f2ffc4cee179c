"""Who scores highest with a person: the embedding's own predicted links, read by logistic regression."""

from __future__ import annotations

from typing import ClassVar

from uge_core.arrays import IntArray
from uge_core.audit.attackers.base import Attacker, Fitted, Float64Array, Seen
from uge_core.audit.link_features import MOST_PEOPLE, MOST_ROWS, ByValue, link_features
from uge_core.registry import register


@register
class Links(Attacker):
    """Logistic regression on a person's highest scores with the labelled people of each value.

    Of every person and value it asks whether the person has the value, by the features of `link_features`, with the
    same weights for all values. No edge is looked at.
    """

    label: ClassVar[str] = "predicted links"
    short: ClassVar[str] = "Links"
    position: ClassVar[int] = 3
    by_default: ClassVar[bool] = True
    seconds: ClassVar[tuple[float, float, float]] = (0.3, 2e-4, 3e-4)
    scaled: ClassVar[bool] = False
    learns_twice: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("uge_core.kernels.links", "uge_core.kernels.logistic")

    def rows(self, seen: Seen) -> tuple[Float64Array, Float64Array]:
        """(l, K p) and (m, K p) features, those of one value beside each other."""
        key = ("links", seen.seed, len(seen.learners))
        learn, asked = seen.shared.once(
            key, lambda: link_features(seen.embedding, seen.train, seen.y, seen.learners, seen.asked, seed=seen.seed)
        )
        return learn.reshape(len(learn), -1), asked.reshape(len(asked), -1)

    def most_people(self, num_values: int) -> int:
        """So many that people and values together are no more than some hundred thousand."""
        return min(MOST_PEOPLE, MOST_ROWS // num_values)

    def fit(self, x: Float64Array, y: IntArray, *, seed: int) -> Fitted:
        """Has no randomness."""
        from uge_core.kernels.logistic import fit_logistic

        by_value = ByValue(int(y.max()) + 1)
        rows = by_value.rows(x)
        centre, spread = rows.mean(axis=0), rows.std(axis=0)
        spread[spread == 0] = 1.0
        model = fit_logistic((rows - centre) / spread, by_value.has(y))
        return Fitted(
            by_value.answers(lambda z: model.probabilities((z - centre) / spread)[:, 1]),
            None if model.converged else "the logistic regression stopped before it met its tolerance",
        )
