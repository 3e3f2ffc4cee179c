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
    from uge_core.datasets import describe, inspect, load
    from uge_core.errors import ConfigError, DatasetMissing, GraphError, RunNotFound, StoreError, UgeError
    from uge_core.figures import CHART_CONFIG, leakage_figure
    from uge_core.runs import audit, plan, sweep, train
    from uge_core.store import RunStore, StoredRun
    from uge_core.views import leakage_choices, leakage_view, overview

_HOMES = {
    "datasets": ("describe", "inspect", "load"),
    "errors": ("ConfigError", "DatasetMissing", "GraphError", "RunNotFound", "StoreError", "UgeError"),
    "figures": ("CHART_CONFIG", "leakage_figure"),
    "runs": ("audit", "plan", "sweep", "train"),
    "store": ("RunStore", "StoredRun"),
    "views": ("leakage_choices", "leakage_view", "overview"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "CHART_CONFIG", "ConfigError", "DatasetMissing", "GraphError", "RunNotFound", "RunStore", "StoreError", "StoredRun",
    "UgeError", "audit", "describe", "inspect", "leakage_choices", "leakage_figure", "leakage_view", "load", "overview",
    "plan", "sweep", "train",
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
