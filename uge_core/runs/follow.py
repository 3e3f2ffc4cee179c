"""What the other processes do while the one that leads carries out a grid: they train their rows, and keep nothing."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from uge_core.errors import TrainingDiverged
from uge_core.graph.graph import AttributedGraph
from uge_core.runs.audits import Splits
from uge_core.training.config import RunConfig

if TYPE_CHECKING:
    from uge_core.training.ranks import Several


def follow(graph: AttributedGraph, ranks: Several) -> None:
    """Trains what rank 0 announces, pass by pass, until it says that nothing more comes.

    Args:
        graph: the same as rank 0 has.
        ranks: this process among the others; not rank 0.

    Raises:
        ConfigError: several processes cannot train this, as rank 0 says too.
        ProcessLost: another process has ended.
    """
    from uge_core.training.fit import fit

    splits = Splits(graph)
    while (task := ranks.next_task()) is not None:
        configs = [RunConfig.from_json(c) for c in task["configs"]]
        # rank 0 sees the same numbers, and decides who trains again
        with suppress(TrainingDiverged):
            split = splits(configs[0])
            fit(configs, graph, split, device=task["device"], deterministic=task["deterministic"], ranks=ranks)
