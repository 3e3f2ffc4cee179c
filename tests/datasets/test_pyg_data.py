"""A PyG Data saved by torch, and what must never be loaded."""

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric import transforms
from torch_geometric.data import Data, HeteroData

from uge_core.datasets import load
from uge_core.errors import GraphError

N = 60
RING = torch.tensor([list(range(N)), [(i + 1) % N for i in range(N)]])


def saved(value) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def data(**more) -> Data:
    both = torch.cat([RING, RING.flip(0)], dim=1)
    x = torch.arange(2 * N, dtype=torch.float32).reshape(N, 2)
    return Data(x=x, edge_index=both, y=torch.arange(N) % 2, region=torch.arange(N) % 3, **more)


def test_data(write):
    more = {"age": (torch.arange(N) % 4).float(), "train_mask": torch.arange(N) < 9, "pos": torch.zeros(N, 3)}
    graph = load(write({"town.pt": saved(data(**more, edge_weight=torch.ones(2 * N), label="a text"))}))
    assert (graph.name, graph.layout, graph.num_nodes, graph.num_edges) == ("made", "pyg-data", N, N)
    assert graph.feature_names == ("x0", "x1")
    assert graph.features[3].tolist() == [6, 7]
    assert [a.name for a in graph.attributes] == ["region", "age"]
    assert graph.attribute("age").labels == ("0", "1", "2", "3")
    roles = {c.name: c.role for c in graph.columns}
    assert roles == {
        "x": "feature",
        "edge_index": "target",
        "y": "label",
        "region": "attribute",
        "age": "attribute",
        "train_mask": "ignored",
        "pos": "ignored",
        "edge_weight": "weight",
        "label": "ignored",
    }
    assert not {"directed", "half-stored", "weights"} & {m.code for m in graph.messages}
    assert not graph.directed and not graph.weighted
    assert [a.name for a in load(graph_folder(write), attributes="y").attributes] == ["y"]


def graph_folder(write) -> Path:
    return write({"town.pt": saved(data())})


def test_one_way_edges_have_a_direction(write):
    graph = load(write({"g.pt": saved(Data(edge_index=RING, s=torch.arange(N) % 2))}))
    (note,) = [m for m in graph.messages if m.code == "directed"]
    assert note.count == N and sorted(graph.directions.tolist()) == [-1] + [1] * (N - 1)
    assert (graph.features, graph.num_nodes) == (None, N)
    half = load(write({"g.pt": saved(Data(edge_index=RING.sort(0).values, s=torch.arange(N) % 2))}))
    assert not half.directed and "half-stored" in {m.code for m in half.messages}


@pytest.mark.parametrize("name", ["edge_weight", "edge_attr"])
def test_weights(write, name):
    own = torch.arange(N) % 3 + 0.5
    both = torch.cat([own, own])
    graph = load(write({"g.pt": saved(data(**{name: both[:, None] if name == "edge_attr" else both}))}))
    by_pair = {tuple(sorted(p)): w for p, w in zip(RING.T.tolist(), own.tolist(), strict=True)}
    assert graph.edge_weights.tolist() == [by_pair[tuple(p)] for p in graph.edges.T.tolist()]
    both[3] = -1
    folder = write({"g.pt": saved(data(**{name: both}))})
    if name == "edge_attr":  # may be anything
        found = load(folder)
        detail = {c.name: (c.role, c.detail) for c in found.columns}["edge_attr"]
        assert not found.weighted and detail[0] == "ignored" and "1 number that cannot be a weight" in detail[1]
    else:
        with pytest.raises(
            GraphError, match=r"g.pt: edge_weight: 1 number that cannot be a weight, first: -1; allowed"
        ):
            load(folder)


def test_several_files_are_named(write):
    folder = write({"a.pt": saved(data()), "b.pt": saved(data())})
    with pytest.raises(GraphError, match="2 graphs in one folder"):
        load(folder)
    assert load(f"{folder}:b").name == "b"


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_no_object_is_loaded(write, tmp_path):
    exploded = tmp_path / "exploded"
    hidden = data()
    hidden.trap = Bomb(exploded)
    for content in (pickle.dumps(Bomb(exploded)), saved(Bomb(exploded)), saved(hidden), saved({"a": Bomb(exploded)})):
        with pytest.raises(GraphError, match=r"^g.pt: .*never loaded; expected a torch_geometric.data.Data") as error:
            load(write({"g.pt": content}))
        assert "\n" not in str(error.value)
    assert not exploded.exists()


def test_the_allowed_classes_are_put_back(write):
    before = set(torch.serialization.get_safe_globals())
    load(write({"g.pt": saved(data())}))
    assert set(torch.serialization.get_safe_globals()) == before


def test_a_tensor_that_claims_more_than_it_holds(write):
    wide = torch.zeros(1).expand(2**40)
    with pytest.raises(GraphError, match=r"g.pt: unpacks into more than"):
        load(write({"g.pt": saved(Data(edge_index=RING, s=wide))}))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (torch.ones(3), "g.pt: found a Tensor; expected a torch_geometric.data.Data"),
        ({"edge_index": RING}, "g.pt: found a dict; expected"),
        (Data(x=torch.ones(3, 1)), "g.pt: edge_index: found none"),
        (Data(edge_index=RING.float()), "g.pt: edge_index: found float32 of shape (2, 60)"),
        (
            Data(edge_index=RING, x=torch.ones(5, 1)),
            "g.pt: 56 edges with a node that does not exist, first: column 4 (4, 5)",
        ),
        (
            Data(edge_index=RING, x=torch.full((N, 2), np.nan)),
            "g.pt: x: 120 cells not finite or beyond 1e+18, first: node 0, feature 0 (nan)",
        ),
        (Data(edge_index=torch.tensor([[0], [2**60]])), "g.pt: edge_index names node 1,152,921,504,606,846,976"),
    ],
)
def test_data_that_cannot_be(write, content, text):
    with pytest.raises(GraphError) as error:
        load(write({"g.pt": saved(content)}))
    assert str(error.value).startswith(text) and "\n" not in str(error.value)


def test_kinds_of_edges_are_no_weights(write):
    graph = load(write({"g.pt": saved(data(edge_attr=torch.arange(2 * N) % 4 + 1))}))
    detail = {c.name: (c.role, c.detail) for c in graph.columns}["edge_attr"]
    assert not graph.weighted and detail[0] == "ignored" and "edge_weight" in detail[1]


@pytest.mark.parametrize(
    "transform",
    [
        transforms.ToUndirected(),
        transforms.Compose([transforms.ToUndirected(), transforms.RandomNodeSplit(num_val=5, num_test=5)]),
        transforms.Compose([transforms.AddSelfLoops(), transforms.ToUndirected()]),
        transforms.LargestConnectedComponents(),
        transforms.GCNNorm(),
    ],
)
def test_data_that_went_through_transforms(write, transform):
    made = transform(Data(x=torch.rand(N, 2), edge_index=RING, gender=torch.arange(N) % 2))
    for key in ("x", "edge_index"):
        assert made.is_node_attr(key) == (key == "x")  # leaves the kinds of attributes in the file
    graph = load(write({"g.pt": saved(made)}))
    assert (graph.num_nodes, graph.num_edges) == (N, N)
    assert list(graph.attribute("gender").sizes) == [N // 2] * 2


def test_members_of_an_enum_as_earlier_pythons_pickle_them(write, monkeypatch):
    """Python 3.11.0 to 3.11.3 writes getattr(AttrType, "NODE"), which nobody's file may have carried out."""
    from torch_geometric.data.storage import AttrType

    monkeypatch.setattr(AttrType, "__reduce_ex__", lambda self, _: (getattr, (AttrType, self.name)))
    made = transforms.ToUndirected()(Data(x=torch.rand(N, 2), edge_index=RING, gender=torch.arange(N) % 2))
    assert made.is_node_attr("x")
    content = saved(made)
    assert b"getattr" in zipfile.ZipFile(io.BytesIO(content)).read(
        next(n for n in zipfile.ZipFile(io.BytesIO(content)).namelist() if n.endswith("data.pkl"))
    )
    monkeypatch.undo()
    assert load(write({"g.pt": content})).num_nodes == N


@pytest.mark.filterwarnings("ignore:Sparse")
def test_edges_that_a_transform_moved_are_said(write):
    made = transforms.ToSparseTensor()(Data(x=torch.rand(N, 2), edge_index=RING))
    with pytest.raises(GraphError, match=r"g.pt: edge_index: found none; .*adj_t: save the Data before it"):
        load(write({"g.pt": saved(made)}))


def hetero() -> HeteroData:
    made = HeteroData()
    made["user"].x = torch.rand(N, 2)
    made["user"].gender = torch.arange(N) % 2
    made["user", "knows", "user"].edge_index = RING
    return made


def test_one_kind_of_people_is_read(write):
    graph = load(write({"g.pt": saved(transforms.ToUndirected()(hetero()))}))
    assert (graph.num_nodes, graph.num_edges, graph.directed) == (N, N, False)
    assert [a.name for a in graph.attributes] == ["gender"] and graph.feature_names == ("x0", "x1")


def test_several_kinds_are_refused_by_name_and_the_remedy_works(write):
    made = hetero()
    made["film"].x = torch.rand(9, 1)
    made["user", "saw", "film"].edge_index = torch.tensor([[0], [0]])
    with pytest.raises(GraphError) as error:
        load(write({"g.pt": saved(made)}))
    text = str(error.value)
    assert "a HeteroData with 2 kinds of nodes (user, film) and 2 kinds of edges" in text
    assert "torch.save(Data(edge_index=data[('user', 'knows', 'user')].edge_index, **data['user'].to_dict())" in text
    alone = Data(edge_index=made["user", "knows", "user"].edge_index, **made["user"].to_dict())
    assert load(write({"g.pt": saved(alone)})).num_edges == N


def test_a_data_set_of_several_is_said(write):
    with pytest.raises(GraphError, match=r"g.pt: found a list; expected .*, such as dataset\[0\] of a PyG dataset"):
        load(write({"g.pt": saved([data()])}))


def test_no_object_is_loaded_among_several_kinds(write, tmp_path):
    made = hetero()
    made["user"].trap = Bomb(tmp_path / "exploded")
    with pytest.raises(GraphError, match="never loaded"):
        load(write({"g.pt": saved(made)}))
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("name", ["edge_weight", "edge_attr"])
def test_one_number_is_no_weight_of_edges(write, name):
    graph = load(write({"g.pt": saved(data(**{name: torch.tensor(1.0)}))}))
    assert not graph.weighted and {c.name: c.role for c in graph.columns}[name] == "ignored"


@pytest.mark.parametrize("more", [{}, {"num_nodes": N}])
def test_a_label_of_the_whole_graph_is_not_one_of_nodes(write, more):
    graph = load(write({"g.pt": saved(Data(edge_index=RING, y=torch.tensor([1]), s=torch.arange(N) % 2, **more))}))
    assert graph.num_nodes == N and [a.name for a in graph.attributes] == ["s"]


@pytest.mark.parametrize("name", ["train_idx", "test_index", "perm", "n_indices"])
def test_lists_of_nodes_do_not_say_how_many_there_are(write, name):
    made = Data(edge_index=RING, s=torch.arange(N + 2) % 2, **{name: torch.arange(N)})
    graph = load(write({"g.pt": saved(made)}))
    assert graph.num_nodes == N + 2 and graph.attribute("s").codes.tolist() == [i % 2 for i in range(N + 2)]
    made = Data(edge_index=RING, s=torch.arange(N + 2) % 2, other=torch.arange(N) % 2)
    with pytest.raises(GraphError, match=r"g.pt: how many nodes there are cannot be told, .* \(s 62, other 60\)"):
        load(write({"g.pt": saved(made)}))
    made.num_nodes = N + 2
    assert load(write({"g.pt": saved(made)})).num_nodes == N + 2


def test_edges_that_a_split_took_out_are_said(write):
    train, _, _ = transforms.RandomLinkSplit(num_val=0.2, num_test=0.2, is_undirected=True)(data())
    graph = load(write({"g.pt": saved(train)}))
    (warning,) = [m for m in graph.messages if m.code == "other-edges"]
    assert warning.level == "warning" and "edge_label_index holds edges as well" in warning.text


@pytest.mark.parametrize("name", ["n_id", "node_id", "anything"])
@pytest.mark.parametrize("start", [0, 1])
def test_another_numbering_of_nodes_is_no_feature(write, name, start):
    order = torch.tensor([(7 * i + 3) % N + start for i in range(N)])
    graph = load(write({"g.pt": saved(data(**{name: order}))}))
    assert name not in graph.feature_names and "labels-and-ids" in {m.code for m in graph.messages}


def test_numbers_of_nodes_in_another_graph_are_no_feature(write):
    graph = load(write({"g.pt": saved(data(n_id=torch.arange(N) * 1000 + 500))}))
    assert graph.feature_names == ("x0", "x1")


def test_an_embedding_beside_a_graph(write):
    folder = write({"a_vectors.pt": saved(torch.rand(N, 4)), "g.pt": saved(data())})
    assert load(folder).num_edges == N
