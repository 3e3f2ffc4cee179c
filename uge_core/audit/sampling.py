"""How many people figures are measured on where a graph has very many.

An attacker takes a time that grows with people, and some with their square. Beyond a hundred thousand people a larger
sample makes intervals shorter than any decision needs, so an audit draws:

    attackers        learn from at most 4/5 of `most` people and are tested on at most 1/5, drawn by value, of those
                     whom the 80/20 split of all people gives them
    lists of links   at most `most` targets, drawn at random of those with held-out links; the other lists of held-out
                     links are these targets' too
    first ten        at most `MOST_SCORES` scores, over all people for each of the people drawn
    DP               a sample of the pairs of each cell (`parity`)

Each figure has the n it was measured on, an interval over these people, and a remark on how many there were to draw
from. What is drawn depends on the split's seed alone, so that runs are compared on the same people. An attacker who
learns from all people may read more than one who learns from a hundred thousand: ``uge audit --people all`` asks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from uge_core.arrays import Float64, IntArray
from uge_core.audit.metrics import MOST_PEOPLE as MOST_PEOPLE
from uge_core.graph.split import ProbeSplit

FEWEST_PEOPLE = 1_000
"""Fewer are not drawn: their intervals would be wide for nothing."""
MOST_SCORES = 8_000_000_000
"""Scores behind lists of recommendations, beyond which fewer people have one."""


@dataclass(frozen=True)
class Sampling:
    """The rule.

    Attributes:
        most: people; None: all, however many there are.
    """

    most: int | None = MOST_PEOPLE

    def drawn(self, num_people: int) -> int | None:
        """How many people to draw of a graph's, or None where all are measured."""
        return None if self.most is None or num_people <= self.most else self.most

    def probe(self, probe: ProbeSplit, num_people: int, seed: int) -> ProbeSplit:
        """The people attackers learn from and are tested on, each value in its share and with one person at least.

        Args:
            probe: the split of all people.
            num_people: how many people the graph has.
            seed: keys the draw.
        """
        most = self.drawn(num_people)
        if most is None:
            return probe
        # one number for each person: who else takes part hardly changes whether they are drawn
        luck = np.random.default_rng([seed, 78]).random(len(probe.classes))
        train, test = (
            nodes[drawn_by_class(probe.classes[nodes], limit, luck[nodes])]
            for nodes, limit in ((probe.train, most - most // 5), (probe.test, most // 5))
        )
        return replace(probe, train=train, test=test)

    def lists(self, num_people: int, most: int) -> int:
        """How many people get a list of recommendations, where `most` do of a small graph."""
        if self.drawn(num_people) is None:
            return most
        return min(most, max(1, MOST_SCORES // num_people))

    def key(self, num_people: int) -> str:
        """What tells floors of drawn people from those of all."""
        most = self.drawn(num_people)
        return "" if most is None else f"/of {most}"


def drawn_by_class(classes: IntArray, most: int, luck: Float64) -> IntArray:
    """Which of a list to keep: all, or about `most`, in each class's share, one of each class at least.

    Args:
        classes: (n,) class of each.
        most: how many.
        luck: (n,) a number each; the lowest of a class are kept.

    Returns:
        Positions, ascending.
    """
    if len(classes) <= most:
        return np.arange(len(classes))
    y = np.unique(classes, return_inverse=True)[1]
    by_class = np.lexsort((luck, y))
    size = np.bincount(y)
    rank = np.arange(len(y)) - np.repeat(np.cumsum(size) - size, size)
    kept = np.maximum(np.round(size * (most / len(y))), 1)
    return np.sort(by_class[rank < kept[y[by_class]]])


def drawn_words(drawn: int, of: int, what: str) -> str | None:
    """A remark on how many were drawn, None where all are there."""
    return f"{drawn:,} of {of:,} {what} drawn" if drawn < of else None
