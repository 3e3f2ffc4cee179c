"""NumPy's files: ``.npy`` holds one array, ``.npz`` several by name; neither is ever unpickled."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.datasets.bounded import check_archive
from uge_core.datasets.embeddings.base import Format, Vectors, check_shape
from uge_core.errors import EmbeddingError, UgeError

_EMBEDDING, _IDS = "embedding", "ids"
_NUMPY, _ZIP = b"\x93N", b"PK"


def _read_npy(path: Path, ids: Collection[str]) -> Vectors:
    with path.open("rb") as file:
        if file.read(2) == _ZIP:
            raise EmbeddingError(f"{path.name}: is an .npz archive; rename it to .npz")
        file.seek(0)
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about the syntax of a damaged header, which is then refused
                shape, _, dtype = read(file)
        except Exception as e:  # numpy parses the header as Python: a damaged one fails in many ways
            raise _refusal(path, e) from None
    check_shape(path, shape, dtype)
    if not shape[0]:
        return Vectors(np.empty(shape, dtype=dtype))
    # Mapped, so that a header that claims more than there is costs nothing.
    return Vectors(_loaded(path, mmap_mode="r"))


def _read_npz(path: Path, ids: Collection[str]) -> Vectors:
    try:
        check_archive(path)
    except zipfile.BadZipFile:
        raise EmbeddingError(
            f"{path.name}: is no readable .npz file, or cut off; save it again with numpy.savez"
        ) from None
    with _loaded(path) as archive:
        arrays = {name: _member(path, archive, name) for name in archive.files}
    beside = arrays.pop(_IDS, None)
    if _EMBEDDING in arrays:
        values = arrays[_EMBEDDING]
    elif len(arrays) == 1:
        (values,) = arrays.values()
    else:
        held = ", ".join(sorted(arrays)[:5]) or "none"
        raise EmbeddingError(
            f"{path.name}: found {len(arrays)} arrays ({held}); one is needed, or one called {_EMBEDDING!r}, with "
            f"{_IDS!r} beside it on request"
        )
    check_shape(path, values.shape, values.dtype)
    if beside is None:
        return Vectors(values)
    if beside.shape != (len(values),) or beside.dtype.kind not in "USiu":
        raise EmbeddingError(
            f"{path.name}: {_IDS!r} is {beside.dtype} of shape {beside.shape}; one text or whole number for each of "
            f"the {len(values):,} rows is needed"
        )
    if beside.dtype.kind == "S":
        beside = np.char.decode(beside, "utf-8", "replace")
    return Vectors(values, pd.Series(beside.astype(str).astype(object)))


def _loaded(path: Path, **options: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the syntax of a damaged header, which is then refused
            return np.load(path, allow_pickle=False, **options)
    except Exception as e:  # numpy parses headers as Python: damaged ones fail in many ways
        raise _refusal(path, e) from None


def _member(path: Path, archive: Any, name: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(archive[name])
    except Exception as e:
        raise _refusal(path, e) from None


def _refusal(path: Path, error: Exception) -> UgeError:
    with path.open("rb") as file:
        numpy_made = file.read(2) in (_NUMPY, _ZIP)
    if numpy_made and ("allow_pickle" in str(error) or "Python objects" in str(error)):
        return EmbeddingError(
            f"{path.name}: holds Python objects, which are never loaded; save it as an array of numbers"
        )
    return EmbeddingError(f"{path.name}: is no readable {path.suffix} file, or cut off; save it again with numpy")


FORMATS = (
    Format("NumPy array", (".npy",), "row i is the i-th node", _read_npy),
    Format(
        "NumPy archive",
        (".npz",),
        f"one array, or the one called `{_EMBEDDING}`; by `{_IDS}` where there is such an array",
        _read_npz,
    ),
)
