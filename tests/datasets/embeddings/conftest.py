"""A one-mode and a bipartite graph, the second with users and items of the same ids."""

from pathlib import Path

import numpy as np
import pytest

import uge_core as uge
from uge_core.graph.graph import AttributedGraph


@pytest.fixture(scope="session")
def people(town: Path) -> AttributedGraph:
    return uge.load(town)


@pytest.fixture(scope="session")
def both_sides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 users and 30 items, numbered from 1 each."""
    folder = tmp_path_factory.mktemp("data") / "shop"
    folder.mkdir()
    rng = np.random.default_rng(0)
    u, i = np.nonzero(rng.random((40, 30)) < 0.3)
    (folder / "buys.csv").write_text("who,what\n" + "".join(f"{a + 1},{b + 1}\n" for a, b in zip(u, i, strict=True)))
    (folder / "users.csv").write_text("id,city\n" + "".join(f"{a + 1},{'XY'[a % 2]}\n" for a in range(40)))
    (folder / "items.csv").write_text("id,price\n" + "".join(f"{b + 1},{b % 3}\n" for b in range(30)))
    (folder / "dataset.yaml").write_text(
        "edges: {file: buys.csv, source: who, target: what}\nusers: users.csv\nitems: items.csv\n"
    )
    return folder
