"""Jobs about stored runs: on the graph they were trained on, with the settings they were trained with."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from uge_core.explore.whatif.source import source_of
from uge_core.runs.stored_run import StoredRun
from uge_core.training.config import RunConfig

_OWN = ("seed", "split_seed", "epochs", "warm_epochs")  # arguments of `runs.plan` by themselves


def data_of(run: StoredRun) -> dict[str, Any]:
    """What a job's settings say of the graph a run was trained on.

    Raises:
        StoreError: the run does not say where its data lie.
    """
    source = source_of(run)
    return {"data": source["spec"], "attributes": source.get("attributes"), "scenario": source.get("scenario")}


def settings_like(run: StoredRun, **grid: Any) -> dict[str, Any]:
    """A training job that would give a run again; `grid` names what is to differ, as in `runs.plan`.

    Raises:
        StoreError: the run does not say where its data lie.
    """
    config = RunConfig.from_json(run.config)
    options = {f.name: getattr(config, f.name) for f in fields(RunConfig) if f.metadata and f.name not in _OWN}
    # Negatives that are not drawn have no number; their own default says the same.
    options.pop("block_size" if config.negatives == "listed" else "num_negatives")
    grid_of_run = {
        "sensitive": "+".join(config.sensitive),
        "methods": [config.method],
        "backbones": [config.backbone],
        "lams": [] if config.lam is None else [config.lam],
        "seeds": [config.seed],
        "split_seeds": [config.split_seed],
        "epochs": config.epochs,
        "unknown": config.unknown,
        "hidden": config.hidden or "impute",
        "exposure": config.exposure,
        "options": {**options, **config.backbone_options, **config.method_options},
    }
    return data_of(run) | {
        "grid": grid_of_run | grid,
        "device": "auto" if run.device not in (None, "cpu") else "cpu",
        "force": False,
        "deterministic": False,
        "solo": False,
    }
