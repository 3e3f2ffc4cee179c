"""A tensor saved by ``torch.save``, alone or in a dict such as a module's state; read with weights_only=True.

torch is loaded here, and only when such a file is read.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path

from uge_core.datasets.bounded import check_archive, too_large, unpacked_limit
from uge_core.datasets.embeddings.base import Format, Vectors
from uge_core.errors import EmbeddingError

_EXPECTED = "a tensor of shape (N, d) saved by torch.save, or a dict with one"


def _read(path: Path, ids: Collection[str]) -> Vectors:
    if not zipfile.is_zipfile(path):
        raise EmbeddingError(
            f"{path.name}: is no file of torch.save, or cut off; a plain pickle is never loaded; expected {_EXPECTED}"
        )
    check_archive(path)
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
    tensors = {str(k): v for k, v in held.items() if isinstance(v, torch.Tensor)}
    if len(tensors) > 1:
        wide = {k: v for k, v in tensors.items() if v.ndim == 2 and len(v) == len(ids)}
        tensors = wide if len(wide) == 1 else tensors
    if len(tensors) != 1:
        held_names = f" ({', '.join(list(tensors)[:5])})" if tensors else f", but a {type(content).__name__}"
        raise EmbeddingError(f"{path.name}: found {len(tensors)} tensors{held_names}; expected {_EXPECTED}")
    (tensor,) = tensors.values()
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise EmbeddingError(f"{path.name}: found a tensor that is not dense; save it as a dense one of float32")
    # A tensor may claim more numbers than its storage holds, by steps of 0.
    if tensor.numel() * 8 > unpacked_limit():
        raise too_large(path)
    tensor = tensor.detach()
    half = tensor.is_floating_point() and tensor.element_size() < 4
    return Vectors((tensor.float() if half else tensor).resolve_conj().resolve_neg().numpy())


FORMATS = (Format("torch tensor", (".pt", ".pth"), "row i is the i-th node", _read),)
