"""t-SNE, scikit-learn's."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uge_core.arrays import FloatArray
from uge_core.explore.projection.methods.base import Projection
from uge_core.explore.projection.methods.pca import PCA
from uge_core.registry import register


@register
class TSNE(Projection):
    """Neighbours stay neighbours (van der Maaten & Hinton, 2008), by the Barnes-Hut approximation."""

    label: ClassVar[str] = "t-SNE"
    packages: ClassVar[tuple[str, ...]] = ("numpy", "scikit-learn")
    sentence: ClassVar[str] = (
        "Keeps near people near; distances between clusters, their sizes and their density mean nothing."
    )
    pace: ClassVar[float] = 10_000.0
    starts: ClassVar[float] = 1.0

    def settings(self, n: int) -> dict[str, Any]:
        """Perplexity 30, less for fewer than 91 people."""
        return {"perplexity": min(30, (n - 1) // 3)}

    def place(
        self, x: FloatArray, start: npt.NDArray[np.float32] | None, *, seed: int
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """From `start`, or the principal components, scaled to 1e-4 as scikit-learn's own start is."""
        from sklearn.manifold import TSNE as Original  # noqa: N811

        begin = PCA().place(x, None, seed=seed)[0] if start is None else start - start.mean(axis=0)
        scale = float(begin[:, 0].std()) or 1.0
        made = Original(
            init=np.asarray(begin / scale * 1e-4, dtype=np.float32), random_state=seed, **self.settings(len(x))
        )
        return np.asarray(made.fit_transform(np.asarray(x, dtype=np.float32)), dtype=np.float32), {}
