"""NumPy's files: ``.npy`` holds one array, ``.npz`` several by name; neither is ever unpickled."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.datasets.bounded import check_archive
from uge_core.datasets.embeddings.base import Format, Vectors, check_shape
from uge_core.datasets.embeddings.members import EMBEDDING, IDS, vectors_of
from uge_core.errors import EmbeddingError, UgeError
from uge_core.graph.graph import AttributedGraph

_SPARSE = {"data", "format", "shape"}
_NUMPY, _ZIP = b"\x93N", b"PK"


def _read_npy(path: Path, graph: AttributedGraph) -> Vectors:
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


def _read_npz(path: Path, graph: AttributedGraph) -> Vectors:
    try:
        check_archive(path)
    except zipfile.BadZipFile:
        raise EmbeddingError(
            f"{path.name}: is no readable .npz file, or cut off; save it again with numpy.savez"
        ) from None
    with _loaded(path) as archive:
        arrays = {name: _member(path, archive, name) for name in archive.files}
    if set(arrays) >= _SPARSE:
        raise EmbeddingError(
            f"{path.name}: is a sparse matrix; save it with numpy.savez as {EMBEDDING}=matrix.toarray()"
        )
    return vectors_of(path, arrays, graph, "array")


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
        f"one array, or the one called `{EMBEDDING}`; by `{IDS}` where there is such an array",
        _read_npz,
    ),
)
