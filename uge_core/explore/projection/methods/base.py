"""What every projection is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uge_core.arrays import FloatArray


class Projection(ABC):
    """One way of placing people in a plane.

    Attributes:
        name: the file's name.
        label: as a reader sees it.
        at_once: quick enough for a page; else a job makes it.
        packages: whose versions its result depends on.
        sentence: what it shows, and what it does not.
        pace: microseconds a person it takes on two cores at 20,000 people, roughly; fewer people take less each.
        starts: seconds that the first picture of a process takes besides, to load and compile.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    at_once: ClassVar[bool] = False
    packages: ClassVar[tuple[str, ...]] = ("numpy",)
    sentence: ClassVar[str] = ""
    pace: ClassVar[float] = 0.0
    starts: ClassVar[float] = 0.0

    def settings(self, n: int) -> dict[str, Any]:
        """What it is run with for `n` people, by the names of the field."""
        return {}

    @abstractmethod
    def place(
        self, x: FloatArray, start: npt.NDArray[np.float32] | None, *, seed: int
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Places people.

        Args:
            x: (n, d) float32 embedding.
            start: (n, 2) where to begin, the picture of the run before; None begins at the principal components.
            seed: random state.

        Returns:
            (n, 2) float32 coordinates, and facts for the caption.
        """
