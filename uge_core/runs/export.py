"""What training made of a run's edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.errors import StoreError
from uge_core.graph.graph import AttributedGraph
from uge_core.progress import OnProgress as OnProgress
from uge_core.progress import Progress as Progress
from uge_core.runs.audits import Splits
from uge_core.runs.data import check_data
from uge_core.runs.names import EXTERNAL
from uge_core.runs.stored_run import StoredRun
from uge_core.training.config import RunConfig


def training_weights(
    run: StoredRun, graph: AttributedGraph
) -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[Any]]]:
    """What a run's training made of its edges.

    Returns:
        The training edges, (2, E), source first, and by name (E,) numbers of each: `weight`, what the method weighs it
            by,
        as R~/R, of methods that draw anew in the first epoch; or, where the method chooses the steps of walks,
        `step_chance` and `step_chance_back`, that a walk's first step from the source takes it, and from the target;
        and `edge_weight`, its own, where edges have any.
    """
    if run.config["method"] == EXTERNAL:
        raise StoreError(f"run {run.id} was not trained here and has no edge weights; leave --what weights out")
    from uge_core.training.weights import edges_in_training

    check_data(run, graph)
    config = RunConfig.from_json(run.config)
    split = Splits(graph)(config)
    turned = np.zeros(split.train.shape[1], dtype=bool) if split.directions is None else split.directions < 0
    made = edges_in_training(config, graph, split)
    numbers: dict[str, npt.NDArray[Any]] = {}
    if made.chance is not None:
        there, back = np.where(turned, made.chance[::-1], made.chance)
        numbers = {"step_chance": there, "step_chance_back": back}
    elif made.weight is not None:
        numbers = {"weight": made.weight}
    return np.where(turned, split.train[::-1], split.train), numbers | (
        {} if split.weights is None else {"edge_weight": split.weights}
    )
