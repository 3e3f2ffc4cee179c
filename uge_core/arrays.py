"""Types of numpy arrays, by what they hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
DirectionArray = npt.NDArray[np.int8]
