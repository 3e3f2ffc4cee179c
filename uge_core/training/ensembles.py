"""Which runs of a grid train together."""

from __future__ import annotations

from collections.abc import Sequence

from uge_core.registry import find
from uge_core.training.config import RunConfig

SHARED_SETTINGS = (
    "backbone",
    "backbone_options",
    "dim",
    "epochs",
    "learning_rate",
    "weight_decay",
    "split_seed",
    "test_share",
    "validation",
    "negatives",
    "block_size",
    "num_negatives",
    "edge_weights",
    "direction",
)


def ensembles(configs: Sequence[RunConfig]) -> list[list[int]]:
    """Groups the indices of `configs` that can train together, in order, whatever memory there is.

    Warm-started runs go with the cold ones they may start from.
    """
    groups: dict[str, list[int]] = {}
    warm: dict[str, int] = {}
    for i in sorted(range(len(configs)), key=lambda i: configs[i].warm_from is None):
        c = configs[i]
        key = repr([getattr(c, name) for name in SHARED_SETTINGS])
        key += c.method if find("debias.methods", c.method).widens else ""
        key += f" {c.score}"
        if c.warm_from is None or warm.setdefault(key, c.warm_epochs) == c.warm_epochs:
            groups.setdefault(key, []).append(i)
        else:
            groups.setdefault(f"{key} {c.warm_epochs}", []).append(i)
    return sorted(sorted(group) for group in groups.values())
