"""Random streams keyed by a seed and what they are for."""

from __future__ import annotations

import zlib

import numpy as np
import torch


def stream(seed: int, purpose: str) -> torch.Generator:
    """A generator of its own for each seed and slot, so that one slot's draws never move another's."""
    state = np.random.SeedSequence([seed, zlib.crc32(purpose.encode())]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state) & (2**63 - 1))
