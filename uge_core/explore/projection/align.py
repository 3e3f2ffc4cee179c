"""Turning one picture towards another, so that along a path of lambdas points move instead of jumping."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from uge_core.explore.projection.frame import frame_of

Coordinates = npt.NDArray[np.float32]
_FEWEST = 3  # people by whom a picture is turned


def align(moving: npt.ArrayLike, fixed: npt.ArrayLike, among: npt.NDArray[np.bool_] | None = None) -> Coordinates:
    """`moving` shifted, turned or mirrored, and brought to the spread of `fixed`.

        X = moving - mean,  Y = fixed - mean,  U S V' = svd(X' Y)
        result = (|Y|_F / |X|_F) X U V' + mean of fixed

    Means, U, V and spreads are those of the people `among`: one who is far away would shrink all others. The rotation or reflection is the one of least squares (Schönemann, 1966). The factor makes both
    spreads equal; the one of least squares, tr(S) / |X|^2, would shrink a picture that resembles the other
    little, and shrink it again at each step of a path.

    Args:
        moving: (n, 2) coordinates.
        fixed: (n, 2) of the same people.
        among: (n,) by whom it is done; None: by everybody.

    Returns:
        (n, 2) float32.
    """
    x, y = np.asarray(moving, dtype=np.float64), np.asarray(fixed, dtype=np.float64)
    by = slice(None) if among is None or among.sum() < _FEWEST else among
    goal = y[by].mean(axis=0)
    x, y = x - x[by].mean(axis=0), y - goal
    spread = float(np.linalg.norm(x[by]))
    u, _, v = np.linalg.svd(x[by].T @ y[by])
    factor = float(np.linalg.norm(y[by])) / spread if spread > 0 else 1.0
    return np.asarray(factor * (x @ (u @ v)) + goal, dtype=np.float32)


def align_path(pictures: Sequence[npt.ArrayLike]) -> list[Coordinates]:
    """The first as it is, centred; each of the others aligned to the one before, by the people in the frames of both."""
    out: list[Coordinates] = []
    before: npt.NDArray[np.bool_] | None = None
    for picture in pictures:
        raw = np.asarray(picture, dtype=np.float32)
        inside = ~frame_of([raw]).outside(raw)
        if before is None:
            out.append(np.asarray(raw - raw[inside].mean(axis=0), dtype=np.float32))
        else:
            out.append(align(raw, out[-1], inside & before))
        before = inside
    return out
