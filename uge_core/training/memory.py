"""How much memory a device, or the machine, has left and a process has taken."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import torch

from uge_core.machine import peak_memory


def free(device: torch.device) -> float:
    """Bytes that may still be asked for; infinite where the system does not say (neither CUDA nor Linux)."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * float(line.split()[1])
    return float("inf")


def peak(device: torch.device, *, reset: bool = False) -> float:
    """The most bytes taken so far, on a GPU by torch there, else by the process; with `reset` counted from here on.

    NaN where the system does not say.
    """
    if device.type != "cuda":
        return peak_memory(reset=reset)
    if reset:
        torch.cuda.reset_peak_memory_stats(device)
    return float(torch.cuda.max_memory_allocated(device))
