"""What an audit and a training come to on this processor, as JSON: `python tests/processor_figures.py OUT FILES`.

Then the tests of FILES that are marked `processors` run in the same process.

`test_processors.py` runs it under the switches that libraries have and compares. Node ids, values and vectors are made
of whole numbers, so that what goes in is the same everywhere.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

ATTACKERS = ("linear", "trees", "rbf", "links", "linked-trees", "knn", "mlp", "graph")
NODES = 240


def graph(num: int = NODES) -> Any:
    """People of three cities and two clubs, whose links follow both."""
    from uge_core.graph.graph import Attribute, AttributedGraph

    rng = np.random.default_rng(7)
    city, club = rng.integers(0, 3, num), rng.integers(0, 2, num)
    chance = 10 + 70 * (city[:, None] == city) + 20 * (club[:, None] == club)
    edges = np.stack(np.nonzero(np.triu(rng.integers(0, 1000, (num, num)) < chance, 1))).astype(np.int64)
    attributes = Attribute("city", city, ("A", "B", "C")), Attribute("club", club, ("x", "y"))
    return AttributedGraph("processors", num, edges, attributes)


def embeddings(num: int = NODES) -> dict[str, np.ndarray]:
    """Vectors with a trace of the city: plain, a third of them equal, all short, all the same way."""
    rng, city = np.random.default_rng(8), graph(num).attribute("city").codes
    plain = rng.integers(-4096, 4097, (num, 9)).astype(np.float32) / 2048
    plain[:, 0] += city
    equal = plain.copy()
    equal[::3] = plain[0]
    short = plain / 4096
    same_way = np.abs(plain) + 1
    return {"plain": plain, "equal": equal, "short": short, "same way": same_way.astype(np.float32)}


def audits() -> dict[str, list[dict[str, Any]]]:
    """The rows of audits by all attackers and by each score."""
    from uge_core.audit import audit_embedding
    from uge_core.graph.split import split_links

    town = graph()
    split = split_links(town)
    made = embeddings()
    plain = made.pop("plain")
    twin = {"twin": plain[:, ::-1], "read": ["city"], "treated": ["city"]}
    found = {"plain": audit_embedding(plain, town, split, attributes=["city"], attackers=ATTACKERS, **twin)}
    for name, z in made.items():
        found[name] = audit_embedding(
            z, town, split, attackers=("linear", "trees", "rbf", "links", "linked-trees", "knn")
        )
    for score in ("cosine", "distance"):
        found[score] = audit_embedding(plain, town, split, attackers=("linear",), score=score)
    return {name: audit.to_json() for name, audit in found.items()}


def trained(backbone: str, method: str, epochs: int = 4, num: int = 1300) -> np.ndarray:
    """(num, 8) a short training of a graph whose rows do not fill their blocks."""
    from uge_core.graph.split import split_links
    from uge_core.training.config import RunConfig
    from uge_core.training.fit import fit

    town = graph(num)
    config = RunConfig.resolve(
        town,
        sensitive="city" if method != "none" else (),
        backbone=backbone,
        method=method,
        epochs=epochs,
        options={"dim": 8},
        exposure="seen",
    )
    return fit([config], town, split_links(town), device="cpu")[0].embedding


TRAININGS = (
    ("gcn", "none"),
    ("gcn", "uge-c"),
    ("sgc", "none"),
    ("gat", "none"),
    ("gcn", "cfc"),
    ("node2vec", "fairgnn"),
)


def kernels() -> dict[str, Any]:
    """What the libraries compute with here."""
    import torch
    from threadpoolctl import threadpool_info

    loaded = threadpool_info()
    return {
        "torch": torch.backends.cpu.get_cpu_capability(),
        "openblas": sorted({i["architecture"] for i in loaded if i["internal_api"] == "openblas"}),
    }


if __name__ == "__main__":
    import pytest

    Path(sys.argv[1]).write_text(json.dumps({"audits": audits(), "kernels": kernels()}))
    sys.exit(pytest.main(["-m", "processors", *sys.argv[2:]]))
