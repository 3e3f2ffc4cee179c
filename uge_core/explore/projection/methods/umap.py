"""UMAP, umap-learn's."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uge_core.arrays import FloatArray
from uge_core.explore.projection.methods.base import Projection
from uge_core.explore.projection.methods.pca import PCA
from uge_core.registry import register


@register
class UMAP(Projection):
    """The fuzzy graph of near neighbours laid out in a plane (McInnes, Healy & Melville, 2018)."""

    label: ClassVar[str] = "UMAP"
    packages: ClassVar[tuple[str, ...]] = ("numpy", "numba", "pynndescent", "umap-learn")
    sentence: ClassVar[str] = (
        "Keeps near people near; distances between clusters, and how tight they look, mean little."
    )
    pace: ClassVar[float] = 5_000.0
    starts: ClassVar[float] = 25.0

    def settings(self, n: int) -> dict[str, Any]:
        """15 neighbours, less for fewer than 16 people; minimum distance 0.1."""
        return {"neighbours": min(15, n - 1), "min_dist": 0.1}

    def place(
        self, x: FloatArray, start: npt.NDArray[np.float32] | None, *, seed: int
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """From `start`, or the principal components; seeded, and so on one core."""
        with warnings.catch_warnings():
            # It warns of a neural variant that is not installed.
            warnings.simplefilter("ignore", ImportWarning)
            from umap import UMAP as Original  # noqa: N811

        chosen = self.settings(len(x))
        begin = PCA().place(x, None, seed=seed)[0] if start is None else start
        made = Original(
            n_neighbors=chosen["neighbours"],
            min_dist=chosen["min_dist"],
            random_state=seed,
            n_jobs=1,
            init=np.array(begin, dtype=np.float32),
        )
        return np.asarray(made.fit_transform(np.array(x, dtype=np.float32)), dtype=np.float32), {}
