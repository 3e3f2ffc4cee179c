r"""How a pair of nodes is scored from its two rows of an embedding.

    dot         s_uv = z_u . z_v
    cosine      the same of the rows scaled to length 1
    distance    s_uv = log t - k |z_u - z_v|^2,     k = (1 - 1 / t^2) / 2          t = 2 unless said

The distance is CNE's. It takes the distance of two linked nodes to be half-normal with spread sigma_1 = 1, that of
two others with spread sigma_2 = t > 1; s is the logarithm of the ratio of the two densities, and so what the embedding
adds to a prior's log odds. Another sigma_1 would only stretch z. No pair has a score above log t.

Each is the dot product of two rows, s_uv = left_u . right_v, so that training and audit know no other kind:

    left_u = (y_u, a_u, 1),     right_u = (y_u, 1, a_u),     y = sqrt(2 k) z,     a = (log t - |y|^2) / 2

for the distance; for the others both are the row itself. right is left with two columns exchanged, so the score has
no direction, and its derivative by left_u is right_v, which autograd takes on to z. Widened rows are for scores alone:
what attackers read and what is exported is z.

Source of the distance: Kang, Lijffijt and De Bie, ICLR 2019, Eq. (4) to (6).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from uge_core.arrays import FloatArray, IntArray
from uge_core.errors import ConfigError
from uge_core.machine import cores
from uge_core.registry import unknown_name

if TYPE_CHECKING:
    from torch import Tensor


NAMES = ("dot", "cosine", "distance")
SIGMA_2 = 2.0
_LARGEST = 1e36  # of |y|^2, beyond which float32 scores would be infinity less infinity
_PAIRS = 1 << 17  # scored by one thread
LARGEST = 1e18
"""A larger coordinate overflows float32 dot products."""


@dataclass(frozen=True, eq=False)
class Factors:
    """Rows whose dot products are the scores: s_uv = left_u . right_v = left_v . right_u.

    Attributes:
        left: (N, d') float32.
        right: (N, d') float32, `left` itself where scores are its own dot products.
    """

    left: FloatArray
    right: FloatArray

    @classmethod
    def of(cls, scored: Scored) -> Factors:
        """Those of an array are the array itself."""
        return scored if isinstance(scored, Factors) else cls(scored, scored)

    def scores(self, first: IntArray, second: IntArray) -> npt.NDArray[np.float64]:
        """The scores of listed pairs, with the same bits on every processor, so that equal rows have equal scores.

        Args:
            first: (M,) a node of each pair.
            second: (M,) the other; -1 is the last node.

        Returns:
            (M,) float64.
        """
        from uge_core.kernels.scores import pair_scores

        parts = [slice(i, i + _PAIRS) for i in range(0, len(first), _PAIRS)]
        if len(parts) < 2:
            values: npt.NDArray[np.float64] = pair_scores(self.left, self.right, first, second)
            return values
        with ThreadPoolExecutor(min(cores(), len(parts))) as pool:
            return np.concatenate(
                list(pool.map(lambda part: pair_scores(self.left, self.right, first[part], second[part]), parts))
            )

    def of_lists(self, targets: IntArray, candidates: IntArray) -> npt.NDArray[np.float64]:
        """(T, C) float64 scores of targets (T,) with each of their candidates (T, C), as `scores` gives them."""
        first = np.repeat(targets, candidates.shape[1])
        return self.scores(first, candidates.ravel()).reshape(candidates.shape)


Scored = FloatArray | Factors
"""What a metric takes for an embedding whose pairs it scores: (N, d) for dot products, or factors."""


class Scorer(ABC):
    """One way to score pairs.

    Attributes:
        name: what a run's record calls it; `scorer` is the inverse.
        note: a remark for rows about scores, or None.
    """

    name: str
    note: str | None = None

    @abstractmethod
    def factors(self, z: FloatArray) -> Factors:
        """Of a finished embedding (N, d).

        Raises:
            ConfigError: its numbers are too large for float32 scores.
        """

    @abstractmethod
    def left(self, z: Tensor) -> Tensor:
        """(..., N, d') of an embedding in training (..., N, d), with its derivative."""

    def right(self, left: Tensor) -> Tensor:
        """(..., N, d') the other factor."""
        return left


class Dot(Scorer):
    """The dot product, which is what all methods train unless they say otherwise."""

    name = "dot"

    def factors(self, z: FloatArray) -> Factors:
        """The embedding itself."""
        return Factors(z, z)

    def left(self, z: Tensor) -> Tensor:
        """The embedding itself."""
        return z


class Cosine(Scorer):
    """The dot product of rows of length 1; a row of zeros stays."""

    name = "cosine"
    note = "scores are cosines"

    def factors(self, z: FloatArray) -> Factors:
        """The rows scaled."""
        length = np.sqrt(np.einsum("nd,nd->n", z, z, dtype=np.float64))
        rows = (z / np.where(length > 0, length, 1.0)[:, None]).astype(np.float32)
        return Factors(rows, rows)

    def left(self, z: Tensor) -> Tensor:
        """The rows scaled."""
        from torch.nn.functional import normalize

        return normalize(z, dim=-1)


@dataclass(frozen=True)
class Distance(Scorer):
    """CNE's score.

    Attributes:
        sigma: t.
    """

    sigma: float = SIGMA_2

    @property
    def name(self) -> str:  # type: ignore[override]
        """As it is typed; sigma_2 behind a colon where it is not 2."""
        return "distance" if self.sigma == SIGMA_2 else f"distance:{repr(self.sigma).removesuffix('.0')}"

    @property
    def note(self) -> str:  # type: ignore[override]
        """The formula in words."""
        return f"scores are log {self.sigma:g} less {self._steepness:.3g} times the squared distance, as CNE's"

    @property
    def _steepness(self) -> float:
        """K of the formula."""
        return (1.0 - self.sigma**-2) / 2.0

    def factors(self, z: FloatArray) -> Factors:
        """Of the rows less their mean: distances do not change, and less is lost in rounding."""
        y = math.sqrt(2.0 * self._steepness) * (z - z.mean(axis=0, dtype=np.float64))
        square = np.einsum("nd,nd->n", y, y)
        if square.max(initial=0.0) > _LARGEST:
            raise ConfigError(
                f"score = {self.name!r} of rows as far as {math.sqrt(square.max()):.3g} from their mean, "
                f"allowed: {math.sqrt(_LARGEST):g}; scale the embedding down first"
            )
        own, one = (math.log(self.sigma) - square[:, None]) / 2.0, np.ones((len(z), 1))
        left, right = (np.concatenate(parts, axis=1, dtype=np.float32) for parts in ((y, own, one), (y, one, own)))
        return Factors(left, right)

    def left(self, z: Tensor) -> Tensor:
        """The rows and two columns more."""
        import torch

        y = math.sqrt(2.0 * self._steepness) * z
        own = (math.log(self.sigma) - y.square().sum(-1, keepdim=True)) / 2.0
        return torch.cat([y, own, torch.ones_like(own)], dim=-1)

    def right(self, left: Tensor) -> Tensor:
        """The last two columns exchanged."""
        import torch

        return torch.cat([left[..., :-2], left[..., -1:], left[..., -2:-1]], dim=-1)


DOT = Dot()


def scorer(name: str) -> Scorer:
    """The scorer that a name stands for: dot, cosine, distance, or distance:3 with another sigma_2.

    Raises:
        ConfigError: there is none.
    """
    kind, colon, sigma = str(name).partition(":")
    if kind == "distance":
        try:
            sigma_2 = float(sigma) if colon else SIGMA_2
        except ValueError:
            sigma_2 = math.nan
        if not (1.0 < sigma_2 < math.inf):
            raise ConfigError(
                f"score = {name!r}: sigma_2 of {sigma!r} is not allowed; allowed: a number above 1, as distance:3"
            )
        return Distance(sigma_2)
    if name == "dot":
        return DOT
    if name == "cosine":
        return Cosine()
    raise ConfigError(unknown_name("score", name, NAMES))
