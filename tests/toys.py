"""Small graphs, configs and pieces of the loss that many tests use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from strategies import attribute

from uge_core import registry
from uge_core.audit.leakage import Prediction
from uge_core.backbones.deepwalk import DeepWalk
from uge_core.debias.bias_free import CellTable, MethodInputs, offset_cells, weight_cells
from uge_core.errors import ConfigError
from uge_core.graph.graph import AttributedGraph, simple_edges
from uge_core.graph.split import split_links
from uge_core.graph.values import resolve_values
from uge_core.training.config import RunConfig
from uge_core.training.edge_loss.pairs import Pairs
from uge_core.training.ensembles import ensembles
from uge_core.training.fit import fit

BACKBONES, METHODS = registry.names("backbones"), registry.names("debias.methods")
ADVERSARIES = ("cfc", "fairgnn")

# Each way to take part in training once: table, offset, penalty, kernels and features, drawn edges of loss and of
# messages, messages, walks, prior, filter and adversary, covariance, projection, eraser
EACH_SLOT = ("none", "uge-c", "uge-ok", "uge-g", "uge-a", "fairdrop", "crosswalk", "debayes", "cfc", "monet", "leace")


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def town(n=90, seed=0, **extra):
    rng = np.random.default_rng(seed)
    city, gender = rng.integers(0, 3, n), rng.integers(0, 2, n)
    source, target = rng.integers(0, n, 900), rng.integers(0, n, 900)
    keep = rng.random(900) < np.where(city[source] == city[target], 0.9, 0.15)
    edges, _, _ = simple_edges(source[keep], target[keep], n)
    return AttributedGraph("town", n, edges, (attribute("city", city), attribute("gender", gender)), **extra)


def shop(users=50, items=30, seed=0):
    rng = np.random.default_rng(seed)
    gender = rng.integers(0, 2, users)
    source = rng.integers(0, users, 500)
    target = users + (gender[source] * 12 + rng.integers(0, 18, 500)) % items
    edges, _, _ = simple_edges(source, target, users + items)
    codes = np.concatenate([gender, np.full(items, -2)])
    age = np.concatenate([rng.integers(0, 3, users), np.full(items, -2)])
    return AttributedGraph(
        "shop",
        users + items,
        edges,
        (attribute("gender", codes, side="users", num_values=2), attribute("age", age, side="users", num_values=3)),
        num_users=users,
    )


def config(graph, method="none", backbone="node2vec", sensitive=None, **kwargs):
    name = sensitive or ("gender" if graph.bipartite else "city")
    return RunConfig.resolve(graph, sensitive=name, method=method, backbone=backbone, **{"epochs": 20, **kwargs})


def quick(graph, method, backbone, **kwargs):
    """The config of a training in which losses fall within a few large steps."""
    # walks are others each epoch, so that losses are noisy; half of LINE's columns meet contexts alone
    rate, epochs = {"gcn": (0.02, 16), "gat": (0.02, 10), "deepwalk": (0.05, 16), "line": (0.08, 20)}.get(
        backbone, (0.08, 10)
    )
    # UGE-ORK's fine kernels see each of ninety people as a crowd of one, which holds the start back
    slow = 2 if method == "uge-ork" else 1
    return config(graph, method, backbone, epochs=slow * epochs, options={"learning_rate": rate}, **kwargs)


def run(graph, *configs, **kwargs):
    return fit(list(configs), graph, split_links(graph), device="cpu", **kwargs)


def shared_out(*whole):
    """(backbone, methods): on `whole` all methods, on GCN one of each slot; with CI=true all on all."""
    others = tuple(m for m in METHODS if m not in EACH_SLOT)
    parts = [b for b in BACKBONES if b not in whole]
    return [
        *(pytest.param(b, METHODS, id=b) for b in whole),
        *(pytest.param(b, EACH_SLOT, id=b, marks=[] if b == "gcn" else [pytest.mark.slow]) for b in parts),
        *(pytest.param(b, others, id=f"{b}-others", marks=pytest.mark.slow) for b in parts),
    ]


def run_all(graph, *configs):
    """In as many passes as they need."""
    return [f for group in ensembles(configs) for f in run(graph, *(configs[i] for i in group))]


def others_in_ci(values, *always):
    """Parameters of a test that says the same of many: `always` and, with CI=true, all the others."""

    def one(value):
        several = value if isinstance(value, tuple) else (value,)
        return pytest.param(*several, marks=[] if value in always else pytest.mark.slow)

    return [one(value) for value in values]


SOME_BACKBONES = others_in_ci(BACKBONES, "node2vec", "gcn")


PLAIN = {"shrinkage": 0.0, "independence": False, "item_cells": "none"}


def inputs(graph, sensitive=("gender",), unknown="level", edges=None, hidden=None):
    edges = graph.edges if edges is None else edges
    values = {
        a.name: resolve_values(
            a,
            graph,
            edges,
            unknown=unknown,
            hidden=hidden if a.name in sensitive else None,
            rng=np.random.default_rng(0),
        )
        for a in graph.audited
    }
    return MethodInputs(
        graph, edges, tuple(values[n] for n in sensitive), tuple(v for n, v in values.items() if n not in sensitive)
    )


def refused(graph):
    """The methods whose own check refuses a graph."""
    found = []
    for name in METHODS:
        try:
            registry.find("debias.methods", name)().check(inputs(graph), "cross-entropy")
        except ConfigError:
            found.append(name)
    return tuple(found)


def prediction(truth, label, probability=None, classes=(0, 1), train_size=None):
    """What an attacker said of tested nodes; without probabilities it is sure of each label."""
    truth, label, classes = np.asarray(truth), np.asarray(label), np.asarray(classes)
    if probability is None:
        probability = (label[:, None] == classes).astype(float)
    sizes = np.full(len(classes), 99) if train_size is None else np.asarray(train_size)
    return Prediction(truth, classes, sizes, probability, label)


def path_graph():
    edges = np.array([[0, 1, 2], [1, 2, 3]])
    return AttributedGraph("path", 4, edges, (attribute("gender", [0, 0, 1, 1]),))


CPU = torch.device("cpu")


def pairs_of(graph, seed=0):
    return Pairs(graph.edges, graph.num_nodes, graph.num_users, seed)


def both_tables(graph):
    return [
        CellTable.neutral(graph.num_nodes),
        weight_cells(inputs(graph), **PLAIN),
        (table := offset_cells(inputs(graph), **{**PLAIN, "shrinkage": 2.0})),
        replace(
            table,
            node_offset=np.random.default_rng(0).normal(size=(graph.num_nodes, len(table.offset))).astype("float32"),
        ),
    ]


def embeddings(graph, members=4, dim=4, seed=0):
    return torch.randn(members, graph.num_nodes, dim, generator=torch.Generator().manual_seed(seed))


def lookups(table):
    return (
        lambda u, v: float(table.weight[table.group[u], table.group[v]]),
        lambda u, v: float(table.edge_offset(np.array([[u], [v]]))[0]),
    )


SHARED = {"negatives": "shared", "block_size": 4, "num_negatives": 3}
WALKS = DeepWalk(walk_length=4, window=2, walks=3.0, p=0.5, q=2.0)


def blocks_of(pairs, epoch):
    rng = pairs.rng(epoch)
    return [
        (np.sort(rng.choice(high - low, min(4, high - low), replace=False)) + low).tolist()
        for _, low, high in pairs.sides
    ]


def popular_town(n=600, groups=3, seed=0, across=0.2, density=0.01):
    """Groups and popularity shape who is linked."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    liked = rng.pareto(2.5, n) + 0.5
    chance = density * np.outer(liked, liked) * np.where(group[:, None] == group, 1.0, across)
    u, v = np.nonzero(np.triu(rng.random((n, n)) < chance, 1))
    return group.astype(np.int64), np.zeros(n, np.int64), np.stack([u, v])


def expected(prior):
    """(N, G) expected neighbours of each node in each group."""
    n = len(prior.group)
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    p = sigmoid(prior.logit(i.ravel(), j.ravel())).reshape(n, n)
    np.fill_diagonal(p, 0.0)
    return p @ np.eye(prior.level.shape[0])[prior.group]


def observed(group, edges, groups):
    out = np.zeros((len(group), groups))
    np.add.at(out, (edges[0], group[edges[1]]), 1)
    np.add.at(out, (edges[1], group[edges[0]]), 1)
    return out


# How often intervals cover: people are drawn from a population, what embeds them is fixed.

SHARES = np.array([0.5, 0.3, 0.2])
PEOPLE = 300


def people(rng, n, shift):
    codes = rng.choice(3, n, p=SHARES)
    z = rng.normal(size=(n, 4)) * 0.6 + np.array([0.0, 1.0, 0.0, 0.0])
    z[:, 0] += shift * (codes - 1)
    return codes, z.astype(np.float32), np.exp(0.6 * rng.normal(size=n))


def links(rng, z, activity, degree=10.0):
    """Pairs of people by their activity, kept with the probability of their score."""
    m = round(len(z) * degree / 2)
    u, v = (rng.choice(len(z), m, p=activity / activity.sum()) for _ in range(2))
    kept = (u != v) & (rng.random(m) < 1 / (1 + np.exp(-np.einsum("ed,ed->e", z[u], z[v]))))
    return simple_edges(u[kept], v[kept], len(z))[0]
