"""Train Unbiased Graph Embeddings and audit what any graph embedding gives away.

    import uge_core as uge

    graph = uge.load("data/my-graph")
    run = uge.train(graph, sensitive="region", backbone="node2vec", method="uge-c", lam=0.5)
    audit = uge.audit(run, graph, sensitive=["region"])
    audit.frame()

These names are what people who write Python need; the dashboard's pages have `uge_core.dashboard`. Each is loaded
when it is first used: importing the package loads neither torch nor streamlit.
"""

from typing import TYPE_CHECKING

from uge_core.lazy import lazily

if TYPE_CHECKING:
    from uge_core.audit.base import Audit as Audit
    from uge_core.datasets import describe as describe
    from uge_core.datasets import inspect as inspect
    from uge_core.datasets import load as load
    from uge_core.datasets.embeddings import read_embedding as read_embedding
    from uge_core.errors import ConfigError as ConfigError
    from uge_core.errors import DatasetMissing as DatasetMissing
    from uge_core.errors import EmbeddingError as EmbeddingError
    from uge_core.errors import GraphError as GraphError
    from uge_core.errors import NotReadYet as NotReadYet
    from uge_core.errors import OutOfMemory as OutOfMemory
    from uge_core.errors import RecordError as RecordError
    from uge_core.errors import RunNotFound as RunNotFound
    from uge_core.errors import StoreError as StoreError
    from uge_core.errors import TooManyGroups as TooManyGroups
    from uge_core.errors import TrainingDiverged as TrainingDiverged
    from uge_core.errors import UgeError as UgeError
    from uge_core.explore.comparison import compare as compare
    from uge_core.runs.audits import audit as audit
    from uge_core.runs.plan import plan as plan
    from uge_core.runs.store import RunStore as RunStore
    from uge_core.runs.stored_run import StoredRun as StoredRun
    from uge_core.runs.sweep import sweep as sweep
    from uge_core.runs.sweep import train as train
    from uge_core.views.report import report as report

__all__ = lazily(__name__)
