"""Every kind of file that docs/data.md lists is read right, or refused for the reason that stands there."""

from pathlib import Path

import pytest
import real_layouts

from uge_core.datasets import load
from uge_core.datasets.proposal import propose
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph


def written(real: real_layouts.Real, folder: Path) -> Path:
    folder.mkdir()
    for name, content in real.files().items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def check(real: real_layouts.Real, graph: AttributedGraph) -> None:
    """Edges and cities are those of the graph that was written."""
    assert graph.num_edges == len(real_layouts.PAIRS)
    if not real.nodes:
        return
    place = list(range(12))
    if real.nodes == "ids":
        assert graph.node_ids is not None
        place = [real_layouts.IDS.index(int(i)) for i in graph.node_ids]
    assert {tuple(sorted((place[a], place[b]))) for a, b in graph.edges.T.tolist()} == set(real_layouts.PAIRS)
    cities = [real_layouts.CITIES[i] for i in place]
    alike = [len(set(zip(cities, a.codes.tolist(), strict=True))) == 2 for a in graph.attributes]
    assert any(alike) or graph.layout == "row-numbers"  # which has no city


@pytest.mark.parametrize("real", real_layouts.REALS, ids=lambda real: f"{real.source} {real.form}")
def test_it_is_as_the_docs_say(real: real_layouts.Real, tmp_path: Path) -> None:
    folder = written(real, tmp_path / "club")
    if real.happens == "read":
        graph = load(folder)
        assert not real.words or real.words in {m.code for m in graph.messages}
    else:
        with pytest.raises(GraphError) as error:
            load(folder)
        assert (real.words or "uge data describe") in str(error.value)
        if real.happens == "refused":
            return
        proposal = propose(folder)
        assert proposal.made is not None
        proposal.write()
        graph = load(folder)
    check(real, graph)


def test_there_are_enough_of_them() -> None:
    assert len(real_layouts.REALS) >= 40
