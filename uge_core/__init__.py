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
    from uge_core.dashboard.jobs.comparison import comparing, enqueue_comparison
    from uge_core.dashboard.jobs.measure import enqueue_measure, measuring
    from uge_core.dashboard.jobs.projection import enqueue_projection, projection_estimate, projection_graph
    from uge_core.dashboard.jobs.reading import enqueue_reading
    from uge_core.dashboard.lambda_offer import LambdaOffer, enqueue_lambda, lambda_offer
    from uge_core.dashboard.queue import (
        cancel,
        delete,
        forget,
        history_view,
        jobs_view,
        queue_words,
        reading,
        removal,
        resume,
    )
    from uge_core.dashboard.retrain import named_scenario, retrain, retrain_offer, retrained, retraining
    from uge_core.dashboard.startup import warm_up
    from uge_core.dashboard.training_form import enqueue, estimate, training_form
    from uge_core.dashboard.web import answer_at_once, web_routes
    from uge_core.dashboard.whatif import (
        WhatifGraph,
        whatif_compare,
        whatif_delete,
        whatif_edit,
        whatif_ego,
        whatif_find,
        whatif_graph,
        whatif_judge,
        whatif_of_runs,
        whatif_retrained,
        whatif_save,
        whatif_stored,
        whatif_warm,
    )
    from uge_core.datasets import describe, inspect, load
    from uge_core.datasets.embeddings import read_embedding
    from uge_core.datasets.mapping import (
        TableMap,
        TablePair,
        Use,
        begin_mapping,
        card_text,
        codes_text,
        column_examples,
        join_counts,
        mapping_folder,
        missing_codes,
        read_pair,
        readable_files,
        with_columns,
        write_card,
        written_mapping,
    )
    from uge_core.datasets.stamp import data_stamp
    from uge_core.errors import (
        ConfigError,
        DatasetMissing,
        EmbeddingError,
        GraphError,
        NotReadYet,
        RunNotFound,
        StoreError,
        UgeError,
    )
    from uge_core.explore.comparison import compare
    from uge_core.explore.whatif.client import WhatifEnded
    from uge_core.explore.whatif.scenario import Scenario
    from uge_core.runs.audits import audit
    from uge_core.runs.plan import plan
    from uge_core.runs.sample_audit import first_start
    from uge_core.runs.store import RunStore
    from uge_core.runs.stored_run import StoredRun
    from uge_core.runs.sweep import sweep, train
    from uge_core.runs.uploads import (
        LARGEST_MB,
        list_uploads,
        remove_upload,
        save_upload,
        stands_alone,
        upload_removal,
        uploads_folder,
    )
    from uge_core.views.comparison import ComparisonView, comparison_view
    from uge_core.views.data import (
        DataView,
        data_view,
        groups_csv,
        groups_view,
        known_graphs,
        mixing_view,
        weights_view,
    )
    from uge_core.views.fairness import GapView, fairness_view, ranked_cells
    from uge_core.views.figures.data import groups_figure, mixing_map, weights_figure
    from uge_core.views.figures.ego import ego_figure
    from uge_core.views.figures.gaps import gap_bars, gap_map
    from uge_core.views.figures.leakage import CHART_CONFIG, leakage_figure
    from uge_core.views.figures.light import gap_light, leakage_light
    from uge_core.views.figures.losses import loss_figure
    from uge_core.views.figures.projection import PROJECTION_CONFIG, projection_alt, projection_figure
    from uge_core.views.figures.tradeoff import ring_style, tradeoff_figure
    from uge_core.views.frame import frame
    from uge_core.views.leakage import leakage_choices, leakage_view
    from uge_core.views.live import live_assets, live_data
    from uge_core.views.method import method_page, metric_help
    from uge_core.views.overview import overview
    from uge_core.views.projection import (
        CONFIDENCE_NOTE,
        ProjectionView,
        colour_choices,
        colouring,
        full_space,
        projection_data,
        projection_methods,
        projection_sizes,
        projection_view,
        selected_groups,
        selected_ids,
        selection_view,
        slow_projections,
    )
    from uge_core.views.report import Sheet, browser, contents, report
    from uge_core.views.tradeoff import TRADEOFF_METRICS, TradeoffView, lambda_view, tradeoff_view
    from uge_core.views.whatif import TIER_WORDS, EgoView, JudgedView, RetrainedView
    from uge_core.views.words import plain_text

_HOMES = {
    "dashboard.jobs.comparison": ("comparing", "enqueue_comparison"),
    "dashboard.jobs.measure": ("enqueue_measure", "measuring"),
    "dashboard.jobs.projection": ("enqueue_projection", "projection_estimate", "projection_graph"),
    "dashboard.jobs.reading": ("enqueue_reading",),
    "dashboard.lambda_offer": ("LambdaOffer", "enqueue_lambda", "lambda_offer"),
    "dashboard.queue": (
        "cancel",
        "delete",
        "forget",
        "history_view",
        "jobs_view",
        "queue_words",
        "reading",
        "removal",
        "resume",
    ),
    "dashboard.retrain": ("named_scenario", "retrain", "retrain_offer", "retrained", "retraining"),
    "dashboard.startup": ("warm_up",),
    "dashboard.training_form": ("enqueue", "estimate", "training_form"),
    "dashboard.web": ("answer_at_once", "web_routes"),
    "dashboard.whatif": (
        "WhatifGraph",
        "whatif_compare",
        "whatif_delete",
        "whatif_edit",
        "whatif_ego",
        "whatif_find",
        "whatif_graph",
        "whatif_judge",
        "whatif_of_runs",
        "whatif_retrained",
        "whatif_save",
        "whatif_stored",
        "whatif_warm",
    ),
    "datasets": ("describe", "inspect", "load"),
    "datasets.embeddings": ("read_embedding",),
    "datasets.mapping": (
        "TableMap",
        "TablePair",
        "Use",
        "begin_mapping",
        "card_text",
        "codes_text",
        "column_examples",
        "join_counts",
        "mapping_folder",
        "missing_codes",
        "read_pair",
        "readable_files",
        "with_columns",
        "write_card",
        "written_mapping",
    ),
    "datasets.stamp": ("data_stamp",),
    "errors": (
        "ConfigError",
        "DatasetMissing",
        "EmbeddingError",
        "GraphError",
        "NotReadYet",
        "RunNotFound",
        "StoreError",
        "UgeError",
    ),
    "explore.comparison": ("compare",),
    "explore.whatif.client": ("WhatifEnded",),
    "explore.whatif.scenario": ("Scenario",),
    "runs.audits": ("audit",),
    "runs.plan": ("plan",),
    "runs.sample_audit": ("first_start",),
    "runs.store": ("RunStore",),
    "runs.stored_run": ("StoredRun",),
    "runs.sweep": ("sweep", "train"),
    "runs.uploads": (
        "LARGEST_MB",
        "list_uploads",
        "remove_upload",
        "save_upload",
        "stands_alone",
        "upload_removal",
        "uploads_folder",
    ),
    "views.comparison": ("ComparisonView", "comparison_view"),
    "views.data": ("DataView", "data_view", "groups_csv", "groups_view", "known_graphs", "mixing_view", "weights_view"),
    "views.fairness": ("GapView", "fairness_view", "ranked_cells"),
    "views.figures.data": ("groups_figure", "mixing_map", "weights_figure"),
    "views.figures.ego": ("ego_figure",),
    "views.figures.gaps": ("gap_bars", "gap_map"),
    "views.figures.leakage": ("CHART_CONFIG", "leakage_figure"),
    "views.figures.light": ("gap_light", "leakage_light"),
    "views.figures.losses": ("loss_figure",),
    "views.figures.projection": ("PROJECTION_CONFIG", "projection_alt", "projection_figure"),
    "views.figures.tradeoff": ("ring_style", "tradeoff_figure"),
    "views.frame": ("frame",),
    "views.leakage": ("leakage_choices", "leakage_view"),
    "views.live": ("live_assets", "live_data"),
    "views.method": ("method_page", "metric_help"),
    "views.overview": ("overview",),
    "views.projection": (
        "CONFIDENCE_NOTE",
        "ProjectionView",
        "colour_choices",
        "colouring",
        "full_space",
        "projection_data",
        "projection_methods",
        "projection_sizes",
        "projection_view",
        "selected_groups",
        "selected_ids",
        "selection_view",
        "slow_projections",
    ),
    "views.report": ("Sheet", "browser", "contents", "report"),
    "views.tradeoff": ("TRADEOFF_METRICS", "TradeoffView", "lambda_view", "tradeoff_view"),
    "views.whatif": ("TIER_WORDS", "EgoView", "JudgedView", "RetrainedView"),
    "views.words": ("plain_text",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "CHART_CONFIG",
    "CONFIDENCE_NOTE",
    "LARGEST_MB",
    "PROJECTION_CONFIG",
    "TIER_WORDS",
    "TRADEOFF_METRICS",
    "ComparisonView",
    "ConfigError",
    "DataView",
    "DatasetMissing",
    "EgoView",
    "EmbeddingError",
    "GapView",
    "GraphError",
    "JudgedView",
    "LambdaOffer",
    "NotReadYet",
    "ProjectionView",
    "RetrainedView",
    "RunNotFound",
    "RunStore",
    "Scenario",
    "Sheet",
    "StoreError",
    "StoredRun",
    "TableMap",
    "TablePair",
    "TradeoffView",
    "UgeError",
    "Use",
    "WhatifEnded",
    "WhatifGraph",
    "answer_at_once",
    "audit",
    "begin_mapping",
    "browser",
    "cancel",
    "card_text",
    "codes_text",
    "colour_choices",
    "colouring",
    "column_examples",
    "compare",
    "comparing",
    "comparison_view",
    "contents",
    "data_stamp",
    "data_view",
    "delete",
    "describe",
    "ego_figure",
    "enqueue",
    "enqueue_comparison",
    "enqueue_lambda",
    "enqueue_measure",
    "enqueue_projection",
    "enqueue_reading",
    "estimate",
    "fairness_view",
    "first_start",
    "forget",
    "frame",
    "full_space",
    "gap_bars",
    "gap_light",
    "gap_map",
    "groups_csv",
    "groups_figure",
    "groups_view",
    "history_view",
    "inspect",
    "jobs_view",
    "join_counts",
    "known_graphs",
    "lambda_offer",
    "lambda_view",
    "leakage_choices",
    "leakage_figure",
    "leakage_light",
    "leakage_view",
    "list_uploads",
    "live_assets",
    "live_data",
    "load",
    "loss_figure",
    "mapping_folder",
    "measuring",
    "method_page",
    "metric_help",
    "missing_codes",
    "mixing_map",
    "mixing_view",
    "named_scenario",
    "overview",
    "plain_text",
    "plan",
    "projection_alt",
    "projection_data",
    "projection_estimate",
    "projection_figure",
    "projection_graph",
    "projection_methods",
    "projection_sizes",
    "projection_view",
    "queue_words",
    "ranked_cells",
    "read_embedding",
    "read_pair",
    "readable_files",
    "reading",
    "removal",
    "remove_upload",
    "report",
    "resume",
    "retrain",
    "retrain_offer",
    "retrained",
    "retraining",
    "ring_style",
    "save_upload",
    "selected_groups",
    "selected_ids",
    "selection_view",
    "slow_projections",
    "stands_alone",
    "sweep",
    "tradeoff_figure",
    "tradeoff_view",
    "train",
    "training_form",
    "upload_removal",
    "uploads_folder",
    "warm_up",
    "web_routes",
    "weights_figure",
    "weights_view",
    "whatif_compare",
    "whatif_delete",
    "whatif_edit",
    "whatif_ego",
    "whatif_find",
    "whatif_graph",
    "whatif_judge",
    "whatif_of_runs",
    "whatif_retrained",
    "whatif_save",
    "whatif_stored",
    "whatif_warm",
    "with_columns",
    "write_card",
    "written_mapping",
]


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
