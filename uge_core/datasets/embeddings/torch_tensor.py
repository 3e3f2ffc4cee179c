"""A tensor saved by ``torch.save``, alone or in a dict such as a module's state; read with weights_only=True.

torch is loaded here, and only when such a file is read.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uge_core.datasets.bounded import check_archive, too_large, unpacked_limit
from uge_core.datasets.embeddings.base import Format, Vectors
from uge_core.datasets.embeddings.members import vectors_of
from uge_core.errors import EmbeddingError
from uge_core.graph.graph import AttributedGraph

_EXPECTED = "a tensor of shape (N, d) saved by torch.save, or a dict with one"
_ZIP = b"PK"
_OLDER = bytes.fromhex("8a0a6cfc9c46f9206aa85019")
"""The number that torch before 1.6 wrote first, after the mark of a pickle."""
_MOST_PARTS = 4


def _read(path: Path, graph: AttributedGraph) -> Vectors:
    _check_archive(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch

        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as e:  # whatever a hostile or damaged file makes of torch's reader
            unsafe = "weights_only" in str(e) or "Unsupported" in str(e)
            reason = "holds objects beside tensors, which are never loaded" if unsafe else "cannot be read by torch"
            raise EmbeddingError(f"{path.name}: {reason}; expected {_EXPECTED}") from None
    held = content if isinstance(content, Mapping) else {"": content}
    if isinstance(content, list | tuple) and len(content) <= _MOST_PARTS:
        held = {f"part {i}": part for i, part in enumerate(content)}
    if not any(isinstance(v, torch.Tensor | Mapping) for v in held.values()):
        raise EmbeddingError(f"{path.name}: found no tensor, but a {type(content).__name__}; expected {_EXPECTED}")
    members = {str(k): _array(path, v) if isinstance(v, torch.Tensor) else v for k, v in held.items()}
    return vectors_of(path, members, graph, "tensor")


def _check_archive(path: Path) -> None:
    """Refuses what is no file of torch.save, and one that unpacks into too much."""
    with path.open("rb") as file:
        head = file.read(2 + len(_OLDER))
    whole = zipfile.is_zipfile(path)
    if not (whole and head.startswith(_ZIP)):
        if whole or head.startswith(_ZIP):
            raise EmbeddingError(f"{path.name}: is damaged or cut off; save it again with torch.save")
        if head.endswith(_OLDER):
            raise EmbeddingError(
                f"{path.name}: is in the form of torch before 1.6, a pickle, which is never loaded; load it with torch and "
                "save it again with torch.save, without _use_new_zipfile_serialization=False"
            )
        raise EmbeddingError(
            f"{path.name}: is no file of torch.save; a plain pickle is never loaded; expected {_EXPECTED}"
        )
    check_archive(path)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if names and all(name.endswith(".npy") for name in names):
        raise EmbeddingError(f"{path.name}: is an .npz archive; rename it to .npz")


def _array(path: Path, tensor: Any) -> Any:
    import torch

    if tensor.layout != torch.strided or tensor.is_quantized:
        raise EmbeddingError(f"{path.name}: found a tensor that is not dense; save it as a dense one of float32")
    # A tensor may claim more numbers than its storage holds, by steps of 0.
    if tensor.numel() * 8 > unpacked_limit():
        raise too_large(path)
    tensor = tensor.detach()
    half = tensor.is_floating_point() and tensor.element_size() < 4
    return (tensor.float() if half else tensor).resolve_conj().resolve_neg().numpy()


FORMATS = (
    Format(
        "torch tensor",
        (".pt", ".pth"),
        "one tensor, or the one called `embedding`; by `ids` where a dict has such a list",
        _read,
    ),
)
