"""Embeddings from elsewhere as runs of the store: listed, shown, compared, exported and deleted like trained ones.

Such a run has the method "external", no backbone, seed or epochs, and no exposure: nobody here knows
whose values or which edges its training saw.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core import machine
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.scores import scorer
from uge_core.runs.data import dataset_record
from uge_core.runs.names import EXTERNAL
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.runs.sweep import usable


def add_external(
    embedding: npt.NDArray[np.float32],
    graph: AttributedGraph,
    store: RunStore,
    *,
    file: str,
    score: str = "dot",
    split_seed: int | None = None,
    source: dict[str, Any] | None = None,
) -> StoredRun:
    """Stores an embedding, not audited yet.

    Args:
        embedding: (N, d) finite, one row per node in the graph's order.
        graph: the graph it embeds.
        store: where runs live.
        file: what it is called in lists.
        score: of a pair of nodes, a name that `scores.scorer` knows: dot, cosine or distance.
        split_seed: the split that its training used; None: nobody knows.
        source: how to load the graph again, kept with the run.

    Returns:
        The run. Its id follows from the numbers, the graph and the score, not from the file's name or
        format: the same embedding is the same run, and keeps its audit while the split seed stays.

    Raises:
        ConfigError: there is no such score.
        StoreError: the store cannot be written.
    """
    run_id = external_id(embedding, graph, score)
    config = external_config(embedding, graph, file=file, score=score, split_seed=split_seed)
    data = dataset_record(graph) | {"source": source}
    earlier = store.find(run_id)
    if earlier is not None and usable(earlier) and earlier.config | {"file": file} == config:
        if source is None:
            data = earlier.dataset
        if earlier.dataset != data or earlier.archived is not None:
            store.refresh(run_id, data)
        return store.load(run_id)
    store.begin(run_id, config, data)
    try:
        store.finish(
            run_id, embedding=embedding, history={"epoch": []}, environment=machine.stamp(), seconds=None, device=None
        )
    except BaseException:
        store.withdraw(run_id)
        raise
    return store.load(run_id)


def external_config(
    embedding: npt.NDArray[np.float32], graph: AttributedGraph, *, file: str, score: str, split_seed: int | None
) -> dict[str, Any]:
    """What such a run has for a config; arguments as in `add_external`.

    Raises:
        ConfigError: there is no such score.
    """
    return {
        "dataset": graph.name,
        "method": EXTERNAL,
        "backbone": "",
        "sensitive": [],
        "lambda": None,
        "score": scorer(score).name,
        "file": file,
        "dim": int(embedding.shape[1]),
        "split_seed": split_seed,
    }


def external_id(embedding: npt.NDArray[np.float32], graph: AttributedGraph, score: str) -> str:
    """Twelve hex digits of the SHA-256 of the numbers in the graph's order, of the graph's content and of the score."""
    content = hashlib.sha256(np.ascontiguousarray(embedding, dtype="<f4").tobytes()).hexdigest()
    text = json.dumps([EXTERNAL, list(embedding.shape), content, graph.fingerprint, scorer(score).name])
    return hashlib.sha256(text.encode()).hexdigest()[:12]
