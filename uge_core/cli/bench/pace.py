"""How long to measure, and the stopwatch."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any


@dataclass(frozen=True)
class Pace:
    """How long to measure.

    Attributes:
        warm: epochs that do not count: compiling, first touch of memory.
        least: epochs that count at least.
        seconds: how long to go on after the warm-up.
        most: epochs that count at most, once there are `least`.
    """

    warm: int
    least: int
    seconds: float
    most: int


class Enough(Exception):
    """The stopwatch has seen enough."""


class Stopwatch:
    """Notes when epochs end, and stops the training when there are enough."""

    def __init__(self, pace: Pace, wait: Callable[[], None], clock: Callable[[], float] = time.perf_counter) -> None:
        """Starts it.

        Args:
            pace: how long.
            wait: returns once the device has done what it was given.
            clock: the time in seconds.
        """
        self.pace, self.wait, self.clock = pace, wait, clock
        self.marks: list[tuple[int, float]] = []
        self.started = clock()

    def __call__(self, epoch: int) -> None:
        """Epochs up to `epoch` are done; raises `Enough` when that will do."""
        self.wait()
        self.marks.append((epoch, self.clock()))
        counted = self._counted()
        if not counted:
            return
        (first, since), (last, now) = counted[0], counted[-1]
        if last - first >= self.pace.least and (now - since >= self.pace.seconds or last - first >= self.pace.most):
            raise Enough

    def _counted(self) -> list[tuple[int, float]]:
        return [mark for mark in self.marks if mark[0] >= self.pace.warm]

    def record(self) -> dict[str, Any]:
        """`seconds`, the median per epoch after the warm-up, `epochs`, how many those are, and `first_seconds`."""
        marks = self._counted()
        each = [(t - s) / (b - a) for (a, s), (b, t) in pairwise(marks)]
        return {
            "seconds": statistics.median(each),
            "epochs": marks[-1][0] - marks[0][0],
            "first_seconds": self.marks[0][1] - self.started,
        }
