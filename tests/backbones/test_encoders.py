"""Each encoder against the PyG layers it is made of, with equal weights."""

import numpy as np
import pytest
import torch

from uge_core.backbones._attention import attend, attend_in_torch
from uge_core.backbones._inputs import Inputs
from uge_core.backbones.base import Parameters
from uge_core.graph.graph import simple_edges
from uge_core.registry import build_options, find, names


def inputs(features=None, n=30, seed=0, weighted=False, directed=False):
    rng = np.random.default_rng(seed)
    edges, _, _ = simple_edges(rng.integers(0, n, 60), rng.integers(0, n, 60), n)
    weights = rng.uniform(0.2, 3, edges.shape[1]).astype(np.float32)
    directions = rng.integers(-1, 2, edges.shape[1]).astype(np.int8)
    beside = weights if weighted else None, directions if directed else None
    return Inputs(n, edges, features, torch.device("cpu"), *beside)


def member(name, data, members=1, **options):
    backbone = build_options(find("backbones", name), options, name)
    fresh = [backbone.init(data, 16, torch.Generator().manual_seed(s)) for s in range(members)]

    def stack(parts):
        return {k: torch.stack([p[k] for p in parts]).requires_grad_() for k in parts[0]}

    return backbone, Parameters(stack([f.tables for f in fresh]), stack([f.layers for f in fresh]))


def both_directions(data):
    e = torch.as_tensor(data.train_edges)
    return torch.cat([e, e.flip(0)], dim=1)


def as_pyg(data):
    """edge_index and edge_weight as PyG has them, an edge at a time."""
    rows = []
    for i, (u, v) in enumerate(data.train_edges.T.tolist()):
        way = 0 if data.directions is None else int(data.directions[i])
        w = 1.0 if data.weights is None else float(data.weights[i])
        rows += [(u, v, w)] * (way >= 0) + [(v, u, w)] * (way <= 0)
    source, target, weight = zip(*rows, strict=True)
    return torch.tensor([source, target]), torch.tensor(weight)


def set_linear(layer, weight):
    layer.weight.data = weight.detach().T.clone()


def pyg_gcn(p, x, edge_index, weight=None):
    from torch_geometric.nn import GCNConv

    first, second = GCNConv(x.shape[1], 64), GCNConv(64, 16)
    for conv, k in ((first, 1), (second, 2)):
        set_linear(conv.lin, p[f"w{k}"][0])
        conv.bias.data = p[f"b{k}"][0].detach().clone()
    return second(first(x, edge_index, weight).relu(), edge_index, weight)


def pyg_sgc(p, x, edge_index, weight=None):
    from torch_geometric.nn import SGConv

    conv = SGConv(x.shape[1], 16, K=2)
    set_linear(conv.lin, p["w"][0])
    conv.lin.bias.data = p["b"][0].detach().clone()
    return conv(x, edge_index, weight)


def pyg_gat(p, x, edge_index, weight=None):
    from torch_geometric.nn import GATConv

    first, second = GATConv(x.shape[1], 8, heads=8), GATConv(64, 16)
    for conv, k in ((first, 1), (second, 2)):
        set_linear(conv.lin, p[f"w{k}"][0])
        conv.att_src.data = p[f"source{k}"][0].detach()[None].clone()
        conv.att_dst.data = p[f"target{k}"][0].detach()[None].clone()
        conv.bias.data = p[f"b{k}"][0].detach().clone()
    return second(torch.nn.functional.elu(first(x, edge_index)), edge_index)


PYG = {"gcn": pyg_gcn, "sgc": pyg_sgc, "gat": pyg_gat}


@pytest.mark.parametrize("name", sorted(PYG))
@pytest.mark.parametrize("source", ["table", "features"])
def test_equals_pyg_layers_with_equal_weights(name, source):
    features = np.random.default_rng(1).standard_normal((30, 5)).astype(np.float32) if source == "features" else None
    data = inputs(features)
    backbone, parameters = member(name, data)
    x = parameters.tables["input"][0] if source == "table" else data.standardised
    for bias in ("b", "b1", "b2"):
        if bias in parameters.layers:
            parameters.layers[bias].data.normal_(generator=torch.Generator().manual_seed(5))
    ours = backbone.encode(parameters, data)
    theirs = PYG[name](parameters.layers, x, both_directions(data))
    torch.testing.assert_close(ours[0], theirs, rtol=1e-4, atol=1e-5)
    wanted = list(parameters.layers.values()) + list(parameters.tables.values())
    direction = torch.randn(theirs.shape, generator=torch.Generator().manual_seed(2))
    a = torch.autograd.grad((ours[0] * direction).sum(), wanted, retain_graph=True)
    b = torch.autograd.grad((backbone.encode(parameters, data)[0] * direction).sum(), wanted)
    for left, right in zip(a, b, strict=True):
        assert torch.equal(left, right)


@pytest.mark.parametrize("name", sorted(PYG))
def test_gradients_equal_those_of_pyg(name):
    data = inputs()
    backbone, parameters = member(name, data)
    x = parameters.tables["input"]
    direction = torch.randn(30, 16, generator=torch.Generator().manual_seed(2))
    ours = torch.autograd.grad((backbone.encode(parameters, data)[0] * direction).sum(), x)[0][0]
    theirs = torch.autograd.grad((PYG[name](parameters.layers, x[0], both_directions(data)) * direction).sum(), x)[0][0]
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", sorted(PYG))
@pytest.mark.parametrize(("weighted", "directed"), [(True, False), (False, True), (True, True)])
def test_weights_and_directions_are_those_of_pyg(name, weighted, directed):
    data = inputs(weighted=weighted, directed=directed)
    backbone, parameters = member(name, data)
    x = parameters.tables["input"]
    direction = torch.randn(30, 16, generator=torch.Generator().manual_seed(2))
    ours, theirs = backbone.encode(parameters, data)[0], PYG[name](parameters.layers, x[0], *as_pyg(data))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    plain = backbone.encode(parameters, inputs(directed=directed))[0]
    assert find("backbones", name).messages == ("plain" if name == "gat" else "weighted")
    assert torch.allclose(ours, plain) == (name == "gat" or not weighted)
    a, b = (torch.autograd.grad((z * direction).sum(), x)[0][0] for z in (ours, theirs))
    torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", sorted(PYG))
def test_messages_run_from_source_to_target(name):
    # 0 -> 1 -> 2: what 2 starts with reaches nobody else, what 0 starts with reaches all
    edges = np.array([[0, 1], [1, 2]])
    data = Inputs(3, edges, None, torch.device("cpu"), None, np.array([1, 1], np.int8))
    backbone, parameters = member(name, data)
    for node, reached in ((2, {2}), (0, {0, 1, 2})):
        x = parameters.tables["input"]
        gradient = [torch.autograd.grad(backbone.encode(parameters, data)[0, i].sum(), x)[0][0, node] for i in range(3)]
        assert {i for i in range(3) if gradient[i].abs().sum() > 0} == reached


@pytest.mark.parametrize("name", names("backbones"))
def test_a_member_does_not_see_its_neighbours(name):
    data = inputs()
    backbone, three = member(name, data, members=3)
    _, one = member(name, data, members=1)
    torch.testing.assert_close(backbone.encode(three, data)[0], backbone.encode(one, data)[0], rtol=1e-5, atol=1e-6)
    assert backbone.encode(three, data).shape == (3, 30, 16)


@pytest.mark.parametrize("name", names("backbones"))
def test_gradients_reach_every_parameter_of_every_member(name):
    data = inputs()
    backbone, parameters = member(name, data, members=2)
    direction = torch.randn(2, 30, 16, generator=torch.Generator().manual_seed(2))
    reached = (backbone.encode(parameters, data) * direction).sum()
    context = backbone.context(parameters)
    assert (context is not None) == backbone.has_context
    (reached if context is None else reached + context.square().sum()).backward()
    for key, value in {**parameters.tables, **parameters.layers}.items():
        assert value.grad is not None and (value.grad.flatten(1).abs().sum(1) > 0).all(), key


@pytest.mark.parametrize("name", names("backbones"))
def test_describes_itself(name):
    cls = find("backbones", name)
    assert cls.label and cls.citation and cls.__doc__ and "Shapes" in cls.__doc__
    assert cls.loss in ("cross-entropy", "bpr")


def test_degree_bins_are_an_input():
    data = inputs()
    backbone, parameters = member("gcn", data, input="degree")
    assert not parameters.tables and (data.degree_bins.sum(1) == 1).all()
    assert backbone.encode(parameters, data).shape == (1, 30, 16)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("heads", "width"), [(8, 8), (1, 5), (3, 2)])
def test_compiled_attention_equals_that_in_torch(heads, width, directed):
    data = inputs(directed=directed)
    draw = torch.Generator().manual_seed(3)
    # logits of both signs, and some far apart
    given = [torch.randn(30, size, generator=draw).mul_(4).requires_grad_() for size in (heads * width, heads, heads)]
    direction = torch.randn(30, heads * width, generator=draw)
    ours, plain = (f(*given, data) for f in (attend, attend_in_torch))
    torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-5)
    for a, b in zip(*(torch.autograd.grad((x * direction).sum(), given) for x in (ours, plain)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
