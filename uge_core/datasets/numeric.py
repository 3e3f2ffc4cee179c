"""Cells of text as numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

_FEW = 2_000


def as_numbers(cells: pd.Series) -> npt.NDArray[np.float64]:
    """(M,) the cells as numbers, NaN where empty or not a finite number."""
    if len(cells) > _FEW and cells.dtype.kind not in "iuf":
        codes, values = pd.factorize(cells)  # each text once, as turning text into numbers takes long
        return np.append(_finite(pd.Series(values)), np.nan)[codes]
    return _finite(cells)


def _finite(cells: pd.Series) -> npt.NDArray[np.float64]:
    numbers = np.asarray(pd.to_numeric(cells, errors="coerce"), dtype=np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)
