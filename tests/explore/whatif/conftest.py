"""A store of small runs of every backbone, and a answers that answers about them."""

from pathlib import Path

import pytest

import uge_core as uge
from uge_core.explore.whatif.answers import Answers
from uge_core.graph.split import split_links
from uge_core.runs.data import dataset_record
from uge_core.training.config import RunConfig
from uge_core.training.fit import fit


@pytest.fixture(scope="session")
def encoders(town: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with trained runs of every backbone for graphs of people, treated and not.

    Without audits, which take long.
    """
    root = tmp_path_factory.mktemp("whatif") / "store"
    graph, store = uge.load(town), uge.RunStore(root)
    for backbone in ("gcn", "gat", "sgc", "node2vec"):
        configs = [
            RunConfig.resolve(graph, sensitive="city", method=method, backbone=backbone, epochs=12)
            for method in ("none", "uge-w", "uge-c")
        ]
        for config, fitted in zip(configs, fit(configs, graph, split_links(graph), device="cpu"), strict=True):
            run_id = config.run_id(graph.fingerprint)
            source = {"spec": str(town), "attributes": None}
            store.begin(run_id, config.to_json(), dataset_record(graph) | {"source": source})
            store.finish(
                run_id,
                embedding=fitted.embedding,
                twin=fitted.twin,
                hidden=fitted.hidden,
                parameters=fitted.parameters,
                diagnostics=fitted.diagnostics,
                device="cpu",
            )
    return root


@pytest.fixture(scope="session")
def store(encoders: Path) -> uge.RunStore:
    return uge.RunStore(encoders)


@pytest.fixture(scope="session")
def answers(store: uge.RunStore) -> Answers:
    return Answers(store)
