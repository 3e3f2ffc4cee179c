"""Whose vector a row of a table is: by the column whose cells are the nodes' ids, wherever it stands."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from uge_core.datasets import load
from uge_core.datasets.embeddings import read_embedding
from uge_core.errors import EmbeddingError
from uge_core.graph.graph import AttributedGraph

N, D = 30, 4


@pytest.fixture
def graph(tmp_path: Path) -> AttributedGraph:
    """Ids are 0 to 29 in another order: row numbers are ids as well, of other people."""
    order = np.random.default_rng(0).permutation(N)
    (tmp_path / "nodes.csv").write_text("id,c\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in order))
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{i},{(i + 1) % N}\n" for i in range(N)))
    return load(tmp_path)


def numbers() -> pd.DataFrame:
    z = np.random.default_rng(1).normal(size=(N, D)).round(4)
    return pd.DataFrame(z, columns=[f"d{i}" for i in range(D)])


def of(graph: AttributedGraph) -> np.ndarray:
    """What the file holds for each node, in the graph's order: row k of the numbers is person k's."""
    return numbers().to_numpy()[np.array(graph.ids(slice(None)), dtype=int)]


def written(path: Path, frame: pd.DataFrame, kind: str, **options: bool) -> Path:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path.with_suffix(".parquet"), index=options.get("index", True))
        return path.with_suffix(".parquet")
    frame.to_csv(path.with_suffix(".csv"), **options)
    return path.with_suffix(".csv")


@pytest.mark.parametrize(
    ("name", "place", "index", "kind"),
    list(itertools.product(["id", "user_id", "person"], [0, 2, D], [True, False], ["csv", "parquet"])),
)
def test_the_column_of_ids_is_found_wherever_it_stands(
    name: str, place: int, index: bool, kind: str, graph: AttributedGraph, tmp_path: Path
) -> None:
    people = np.random.default_rng(2).permutation(N)
    frame = numbers().iloc[people].reset_index(drop=True)
    frame.insert(place, name, people)
    found = read_embedding(written(tmp_path / "z", frame, kind, index=index), graph)
    np.testing.assert_allclose(found, of(graph), rtol=1e-6)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_two_columns_that_may_be_ids_are_asked_for(kind: str, graph: AttributedGraph, tmp_path: Path) -> None:
    frame = numbers()
    frame.insert(0, "n", range(N))
    frame.insert(1, "id", np.random.default_rng(2).permutation(N))
    with pytest.raises(EmbeddingError, match=r"columns '(n|id)' and '(n|id)' both hold the ids of all nodes"):
        read_embedding(written(tmp_path / "z", frame, kind, index=False), graph)
    frame["n"] = frame["id"]
    found = read_embedding(written(tmp_path / "z", frame, kind, index=False), graph)
    assert found.shape == (N, D)  # the second column of ids is no number of the embedding


def test_rows_that_pandas_numbered_are_rows_by_position(graph: AttributedGraph, tmp_path: Path) -> None:
    path = written(tmp_path / "z", numbers(), "csv", index=True)
    with pytest.raises(EmbeddingError, match="--rows id or --rows order"):
        read_embedding(path, graph)
    np.testing.assert_allclose(read_embedding(path, graph, rows="id"), of(graph), rtol=1e-6)
    np.testing.assert_allclose(read_embedding(path, graph, rows="order"), numbers(), rtol=1e-6)


def test_an_index_of_ids_is_ids(graph: AttributedGraph, tmp_path: Path) -> None:
    people = np.random.default_rng(2).permutation(N)
    frame = numbers().iloc[people]
    np.testing.assert_allclose(
        read_embedding(written(tmp_path / "z", frame, "csv", index=True), graph), of(graph), rtol=1e-6
    )


def test_comments_above_are_skipped(graph: AttributedGraph, tmp_path: Path) -> None:
    frame = numbers()
    frame.insert(0, "id", range(N))
    (tmp_path / "z.csv").write_text("# made by hand\n" + frame.to_csv(index=False))
    np.testing.assert_allclose(read_embedding(tmp_path / "z.csv", graph), of(graph), rtol=1e-6)
