"""What every attacker is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uge_core.arrays import FloatArray, IntArray

Float64Array = npt.NDArray[np.float64]
MANY_VALUES = 20
"""Attributes of more values get fewer iterations from the attackers whose cost grows with them."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """An attacker that has learnt.

    Attributes:
        probability: from (m, p) inputs to (m, K) class probabilities.
        note: how it was limited, or None.
    """

    probability: Callable[[Float64Array], Float64Array]
    note: str | None = None


class Shared:
    """What several attackers of one attribute make of one embedding, made once, whoever asks first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: dict[Any, Any] = {}

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` returned the first time it was asked for under this key."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]


@dataclass(frozen=True, eq=False)
class Seen:
    """All that an attacker may look at.

    Attributes:
        embedding: (N, d) vectors of all people; of those below alone, unless it knows edges.
        train: (n,) the people whose class it knows.
        y: (n,) their classes, 0 to K - 1.
        learners: (l,) positions in `train` of those it fits itself to; all, unless there are more than `most_people`.
        asked: (m,) the people whose class it is to tell.
        edges: (2, E) the edges it may know; None: none.
        seed: keys its draws.
        shared: what attackers of the same attribute and embedding share.
    """

    embedding: FloatArray
    train: IntArray
    y: IntArray
    learners: IntArray
    asked: IntArray
    edges: IntArray | None = None
    seed: int = 0
    shared: Shared = field(default_factory=Shared)


class Attacker(ABC):
    """One way of reading an attribute.

    Attributes:
        name: the file's name.
        label: as a reader sees it.
        short: the label where there is little room, as on a button; "" where `label` does.
        position: where it stands in lists; those that do not say come last.
        by_default: tried where nobody names attackers.
        knows_edges: it looks at who is linked to whom, beside the embedding.
        seconds: what an attack takes at least, for each person with two values, and for each person and value more:
            processor time on random embeddings of 2,000 and 20,000 people with 2, 10 and 60 values, on one core of a
            machine of 2024. Estimates of time follow it where nothing was measured; a guess will do.
        scaled: its inputs are standardised on those it learns from.
        learns_twice: cheap enough to learn once more from all training nodes after it was calibrated
            on the nodes that the first fit left out; else the first fit, on nine tenths, attacks.
        needs: modules that `inputs` and `fit` import. They are imported before attackers run side by side, as of two
            threads that import one package at once one can meet half of it.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    short: ClassVar[str] = ""
    position: ClassVar[int] = 99
    by_default: ClassVar[bool] = False
    knows_edges: ClassVar[bool] = False
    seconds: ClassVar[tuple[float, float, float]] = (0.5, 2e-5, 1e-5)
    scaled: ClassVar[bool] = True
    learns_twice: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ()

    def inputs(self, embedding: FloatArray, edges: IntArray | None) -> FloatArray:
        """(N, p) what it looks at: the embedding (N, d), unless it uses the `edges` (2, E) that it may know."""
        return embedding

    def rows(self, seen: Seen) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """(l, p) inputs of `seen.learners` and (m, p) of `seen.asked`: their rows of `inputs`, unless said otherwise."""
        inputs = self.inputs(seen.embedding, seen.edges)
        return inputs[seen.train[seen.learners]], inputs[seen.asked]

    def most_people(self, num_values: int) -> int | None:
        """How many people it learns from at most, drawn by class where there are more; None: all."""
        return None

    @abstractmethod
    def fit(self, x: Float64Array, y: IntArray, *, seed: int) -> Fitted:
        """Learns.

        Args:
            x: (n, p) inputs, standardised on the training nodes.
            y: (n,) classes 0 to K - 1, each with a node at least, K at least 2.
            seed: random state.
        """
