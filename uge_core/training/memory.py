"""How much memory a device, or the machine, has left and a process has taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import torch

from uge_core.errors import ConfigError, OutOfMemory
from uge_core.machine import peak_memory


def free(device: torch.device) -> float:
    """Bytes that may still be asked for."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    return float(psutil.virtual_memory().available)


def peak(device: torch.device, *, reset: bool = False) -> float:
    """The most bytes taken so far, on a GPU by torch there, else by the process; with `reset` counted from here on.

    NaN where the system does not say.
    """
    if device.type != "cuda":
        return peak_memory(reset=reset)
    if reset:
        torch.cuda.reset_peak_memory_stats(device)
    return float(torch.cuda.max_memory_allocated(device))


@contextmanager
def memory_errors(members: int) -> Iterator[None]:
    """Gives the ways in which torch and numpy say that memory is out one name."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        message = str(error).lower()
        if isinstance(error, RuntimeError) and not any(
            words in message for words in ("out of memory", "allocate memory")
        ):
            raise
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        raise OutOfMemory(
            f"{members} run{'s' if members > 1 else ''} at once did not fit the "
            "memory; use fewer runs, a smaller --set dim, "
            "or node2vec, which holds least"
        ) from error


def torch_device(name: str) -> torch.device:
    """The device that training runs on; "auto" is CUDA where torch sees a device.

    Raises:
        ConfigError: an unknown name, or CUDA without a device.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"device = {name!r} is not allowed; allowed: auto, cpu, cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device = cuda, but this torch sees no CUDA device; use --device cpu or auto")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")
