"""Turning one picture towards another, so that along a path of lambdas points move instead of jumping."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Coordinates = npt.NDArray[np.float32]


def align(moving: npt.ArrayLike, fixed: npt.ArrayLike) -> Coordinates:
    """`moving` shifted, turned or mirrored, and brought to the spread of `fixed`.

        X = moving - mean,  Y = fixed - mean,  U S V' = svd(X' Y)
        result = (|Y|_F / |X|_F) X U V' + mean of fixed

    The rotation or reflection is the one of least squares (Schönemann, 1966). The factor makes both
    spreads equal; the one of least squares, tr(S) / |X|^2, would shrink a picture that resembles the other
    little, and shrink it again at each step of a path.

    Args:
        moving: (n, 2) coordinates.
        fixed: (n, 2) of the same people.

    Returns:
        (n, 2) float32.
    """
    x, y = np.asarray(moving, dtype=np.float64), np.asarray(fixed, dtype=np.float64)
    goal = y.mean(axis=0)
    x, y = x - x.mean(axis=0), y - goal
    spread = float(np.linalg.norm(x))
    u, _, v = np.linalg.svd(x.T @ y)
    factor = float(np.linalg.norm(y)) / spread if spread > 0 else 1.0
    return np.asarray(factor * (x @ (u @ v)) + goal, dtype=np.float32)


def align_path(pictures: Sequence[npt.ArrayLike]) -> list[Coordinates]:
    """The first as it is, centred; each of the others aligned to the one before."""
    out: list[Coordinates] = []
    for picture in pictures:
        raw = np.asarray(picture, dtype=np.float32)
        out.append(align(raw, out[-1]) if out else np.asarray(raw - raw.mean(axis=0), dtype=np.float32))
    return out
