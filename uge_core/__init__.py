"""Train Unbiased Graph Embeddings and audit what any graph embedding gives away.

    import uge_core as uge

    graph = uge.load("data/my-graph")
    run = uge.train(graph, sensitive="region", backbone="node2vec", method="uge-c", lam=0.5)
    audit = uge.audit(run, graph, sensitive=["region"])
    audit.frame()

These names are the whole surface; pages import nothing else. Each is loaded when it is first used:
importing the package loads neither torch nor streamlit.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uge_core.comparison import compare
    from uge_core.datasets import describe, inspect, load
    from uge_core.embeddings import read_embedding
    from uge_core.errors import (
        ConfigError,
        DatasetMissing,
        EmbeddingError,
        GraphError,
        RunNotFound,
        StoreError,
        UgeError,
    )
    from uge_core.figures import CHART_CONFIG, leakage_figure
    from uge_core.jobs.form import enqueue, estimate, training_form
    from uge_core.jobs.screen import cancel, delete, forget, history_view, jobs_view, queue_words, removal, resume
    from uge_core.plots.attributes import attributes_figure
    from uge_core.plots.gaps import gap_bars, gap_map
    from uge_core.plots.tradeoff import tradeoff_figure
    from uge_core.report import Sheet, browser, contents, report
    from uge_core.runs import audit, plan, sweep, train
    from uge_core.screens.fairness import GapView, fairness_view, ranked_cells
    from uge_core.screens.frame import frame
    from uge_core.screens.method import method_page, metric_help
    from uge_core.screens.tables import plain_text
    from uge_core.screens.tradeoff import TRADEOFF_METRICS, TradeoffView, lambda_view, tradeoff_view
    from uge_core.store import RunStore, StoredRun
    from uge_core.views import leakage_choices, leakage_view, overview

_HOMES = {
    "comparison": ("compare",),
    "datasets": ("describe", "inspect", "load"),
    "embeddings": ("read_embedding",),
    "errors": (
        "ConfigError",
        "DatasetMissing",
        "EmbeddingError",
        "GraphError",
        "RunNotFound",
        "StoreError",
        "UgeError",
    ),
    "figures": ("CHART_CONFIG", "leakage_figure"),
    "jobs.form": ("enqueue", "estimate", "training_form"),
    "jobs.screen": ("cancel", "delete", "forget", "history_view", "jobs_view", "queue_words", "removal", "resume"),
    "report": ("Sheet", "browser", "contents", "report"),
    "plots.attributes": ("attributes_figure",),
    "plots.gaps": ("gap_bars", "gap_map"),
    "plots.tradeoff": ("tradeoff_figure",),
    "runs": ("audit", "plan", "sweep", "train"),
    "screens.fairness": ("GapView", "fairness_view", "ranked_cells"),
    "screens.frame": ("frame",),
    "screens.method": ("method_page", "metric_help"),
    "screens.tables": ("plain_text",),
    "screens.tradeoff": ("TRADEOFF_METRICS", "TradeoffView", "lambda_view", "tradeoff_view"),
    "store": ("RunStore", "StoredRun"),
    "views": ("leakage_choices", "leakage_view", "overview"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "CHART_CONFIG", "TRADEOFF_METRICS", "ConfigError", "DatasetMissing", "EmbeddingError", "GapView", "GraphError",
    "RunNotFound", "RunStore", "Sheet", "StoreError", "StoredRun", "TradeoffView", "UgeError", "attributes_figure", "audit", "browser",
    "cancel", "compare", "contents", "delete", "describe", "enqueue", "estimate", "fairness_view", "forget", "frame",
    "gap_bars", "gap_map", "history_view", "inspect", "jobs_view", "lambda_view", "leakage_choices", "leakage_figure",
    "leakage_view", "load", "method_page", "metric_help", "overview", "plain_text", "plan", "queue_words",
    "ranked_cells", "read_embedding", "removal", "report", "resume", "sweep", "tradeoff_figure", "tradeoff_view",
    "train", "training_form",
]  # fmt: skip


class _Facade(ModuleType):
    """The package: `uge.train` and `uge.audit` stay functions although submodules have the same names."""

    def __setattr__(self, name: str, value: Any) -> None:
        # Python binds a submodule to its package on import, which would hide the function.
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{self.__name__}.{_HOME[name]}"), name)
        super().__setattr__(name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Facade
