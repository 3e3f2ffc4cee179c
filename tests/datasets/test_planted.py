"""The planted-truth generator: against loops over pairs, pair by pair over many draws, and against what it promises."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from reference import kronecker_power, planted_probabilities
from scipy import stats

from uge_core.audit.ndcg import planted_task
from uge_core.datasets.planted import recipe as module
from uge_core.datasets.planted.recipe import (
    STRUCTURES,
    Effect,
    PowerLaw,
    Recipe,
    Trait,
    draw_edges,
    homophily,
    nearness,
    plant,
)
from uge_core.datasets.planted.samples import recipe as town_of
from uge_core.debias.bias_free import Counts, partition
from uge_core.errors import ConfigError

TRAITS = (
    Trait("region", ("a", "b", "c"), (0.4, 0.4, 0.2), sensitive=True),
    Trait("age", ("young", "old"), (0.5, 0.5), sensitive=True, ordered=True),
    Trait("club", ("x", "y"), (0.6, 0.4)),
)
EFFECTS = (
    Effect("region", "region", ((2.0, 0.5, 0.4), (0.5, 2.5, 0.6), (0.4, 0.6, 3.0))),
    Effect("age", "age", nearness(2, 1.5, 0.6)),
    Effect("club", "club", homophily((1.8, 2.2), 0.5)),
)
PEOPLE = Recipe("small", 80, 360, TRAITS, EFFECTS, activity=PowerLaw(2.6, 4.0), initiator=((0.7, 0.5), (0.5, 0.4)))
SIDES = Recipe(
    "sides",
    40,
    400,
    (
        Trait("gender", ("f", "m"), (0.5, 0.5), sensitive=True, side="users"),
        Trait("club", ("x", "y"), (0.5, 0.5), side="users"),
        Trait("genre", ("p", "q", "r"), (0.4, 0.3, 0.3), side="items"),
    ),
    (
        Effect("gender", "genre", ((1.8, 0.6, 0.9), (0.5, 1.6, 1.0))),
        Effect("club", "genre", ((1.4, 0.9, 0.7), (0.7, 1.0, 1.3))),
    ),
    num_items=30,
    activity=PowerLaw(3.0, 2.0),
    popularity=PowerLaw(2.5, 2.0),
    initiator=((0.6, 0.55), (0.55, 0.5)),
)
ALL = [replace(r, structure=s) for r in (PEOPLE, SIDES) for s in STRUCTURES]


def named(recipe):
    return f"{recipe.name}-{recipe.structure}"


def oracle(planted, bias_free=False):
    """(pairs (2, M), P (M,)) by loops."""
    codes = {a.name: a.codes for a in planted.observed.attributes}
    s = planted.structure
    power = kronecker_power(s.initiator, s.levels) if planted.recipe.structure == "kronecker" else None

    def structural(u, v):
        if power is not None:
            return s.scale * power[s.place[u], s.place[v]]
        return float(s.factor[u]) * float(s.factor[v])

    found = planted_probabilities(planted.recipe, codes, structural, bias_free)
    return np.array(list(found), np.int64).T, np.array(list(found.values()))


@pytest.mark.parametrize("recipe", ALL, ids=named)
def test_probabilities_are_those_of_the_loops(recipe):
    planted = plant(recipe, 3)
    for bias_free in (False, True):
        (u, v), p = oracle(planted, bias_free)
        np.testing.assert_allclose(planted.probability(u, v, bias_free=bias_free), np.minimum(p, 1), rtol=1e-9)
        np.testing.assert_allclose(planted.probability(v, u, bias_free=bias_free), np.minimum(p, 1), rtol=1e-9)
        assert p.sum() == pytest.approx(recipe.num_edges)  # Eq. (3) and (4) have the same number of edges
        clipped = planted.bias_free_clipped if bias_free else planted.clipped
        assert clipped.pairs == (p > 1).sum() and clipped.mass == pytest.approx((p[p > 1] - 1).sum())


@pytest.mark.parametrize("recipe", ALL, ids=named)
def test_sensitive_attributes_move_edges_within_non_sensitive_cells_only(recipe):
    planted = plant(recipe, 4)
    (u, v), observed = oracle(planted)
    free = planted.structure.probability(u, v) * planted.bias_free_ratio[planted.group[u], planted.group[v]]
    k = planted.coarse.max() + 1
    a, b = planted.coarse[planted.group[u]], planted.coarse[planted.group[v]]
    cell = np.minimum(a, b) * k + np.maximum(a, b)
    np.testing.assert_allclose(np.bincount(cell, observed), np.bincount(cell, free), rtol=1e-9)
    # and R~ is one number per cell, R is not
    for c in np.unique(cell):
        assert np.ptp(planted.bias_free_ratio[planted.group[u], planted.group[v]][cell == c]) < 1e-12
    assert np.ptp(planted.ratio[planted.ratio > 0]) > 1


@pytest.mark.parametrize("recipe", ALL, ids=named)
def test_expected_edges_of_every_cell(recipe):
    """Edges per group pair over 60 draws against the exact sum of P, within 4 standard errors."""
    planted, draws = plant(recipe, 5), 60
    for bias_free, table in ((False, planted.ratio), (True, planted.bias_free_ratio)):
        (u, v), p = oracle(planted, bias_free)
        p, k = np.minimum(p, 1), len(planted.values)
        cell = planted.group[u] * k + planted.group[v]
        expected, variance = np.bincount(cell, p, k * k), np.bincount(cell, p * (1 - p), k * k)
        rng, found = np.random.default_rng(1), np.zeros(k * k)
        for _ in range(draws):
            edges, _ = draw_edges(planted.structure, table, planted.group, rng)
            found += np.bincount(planted.group[edges[0]] * k + planted.group[edges[1]], minlength=k * k)
        error = np.sqrt(variance / draws)
        # a cell of few pairs is no normal number: half an edge in all of slack
        assert (np.abs(found / draws - expected) <= 4 * error + 0.5 / draws).all()


def tiny(structure):
    """Twelve nodes with pairs of every size, some clipped at 1."""
    made = replace(
        PEOPLE,
        num_people=12,
        num_edges=18,
        structure=structure,
        activity=PowerLaw(2.0, 4.0),
        initiator=((0.7, 0.5), (0.5, 0.4)),
        traits=TRAITS[:1] + TRAITS[2:],
        effects=EFFECTS[:1] + EFFECTS[2:],
    )
    return next(p for p in (plant(made, seed) for seed in range(50)) if p.clipped.pairs)


def frequencies(planted, draws=4000):
    rng, n = np.random.default_rng(7), len(planted.group)
    hits = np.zeros((n, n))
    for _ in range(draws):
        (u, v), _ = draw_edges(planted.structure, planted.ratio, planted.group, rng)
        hits[u, v] += 1
    return hits / draws


def worst(found, p, draws=4000):
    """The largest deviation in standard errors; infinite where a certain pair is missing."""
    error = np.sqrt(p * (1 - p) / draws)
    return np.max(np.where(found == p, 0.0, np.abs(found - p) / np.maximum(error, 1e-12)))


@pytest.mark.slow
@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_pair_comes_as_often_as_it_should(structure):
    """5 standard errors: one in 25,000 by chance over these 66 pairs."""
    planted = tiny(structure)
    found = frequencies(planted)
    (u, v), raw = oracle(planted)
    p = np.minimum(raw, 1)
    assert (raw > 1).any() and ((raw > 0.5) & (raw < 1)).any() and (raw < 0.1).any()
    assert worst(found[u, v], p) < 5
    assert found.sum() == pytest.approx(found[u, v].sum())  # nothing else: no self-pair, no reversed one
    # the wrong answers are told apart: without R, and the Poisson rate taken for a probability
    assert worst(found[u, v], np.minimum(planted.structure.probability(u, v), 1)) > 5
    assert worst(found[u, v], 1 - np.exp(-raw)) > 5


def test_same_seed_same_draw_and_another_seed_another():
    def digest(p):
        h = hashlib.sha256(p.observed.edges.tobytes() + p.bias_free.tobytes() + p.ratio.tobytes())
        return h.hexdigest() + p.observed.fingerprint

    for recipe in ALL:
        assert digest(plant(recipe, 1)) == digest(plant(recipe, 1)) != digest(plant(recipe, 2))
    one, other = plant(PEOPLE, 1), plant(PEOPLE, 1, draw=1)
    assert (one.group == other.group).all() and digest(one) != digest(other)
    assert not np.allclose(one.structure.factor, other.structure.factor)


def test_large_draws_come_in_chunks(monkeypatch):
    planted = plant(PEOPLE, 1)
    monkeypatch.setattr(module, "_CHUNK", 50)
    rng = np.random.default_rng(0)
    sizes = [draw_edges(planted.structure, planted.ratio, planted.group, rng)[0].shape[1] for _ in range(40)]
    (u, v), _ = oracle(planted)
    p = planted.probability(u, v)
    assert abs(np.mean(sizes) - p.sum()) < 4 * np.sqrt((p * (1 - p)).sum() / 40)
    pairs = np.concatenate([np.stack(c) for c in planted.structure.above(0.05)], axis=1)
    wanted = {(min(a, b), max(a, b)) for a, b in zip(u, v, strict=True) if planted.structure.probability(a, b) > 0.05}
    listed = [(min(a, b), max(a, b)) for a, b in pairs.T]
    assert len(set(listed)) == len(listed) and wanted <= set(listed)


def ratio_of(planted, name):
    """R of one attribute as Eq. (8)-(9) have it, without self-pairs."""
    graph = planted.observed
    side = (np.arange(graph.num_nodes) >= planted.recipe.num_people).astype(np.int64)
    codes = np.maximum(graph.attribute(name).codes, -1)
    part = partition([codes], side)
    nodes = np.bincount(part.group).astype(float)
    k = part.num_groups
    one_way = np.bincount(part.group[graph.edges[0]] * k + part.group[graph.edges[1]], minlength=k * k).reshape(k, k)
    pairs = np.outer(nodes, nodes) - np.diag(nodes)
    if graph.bipartite:
        pairs[:-1, :-1] = pairs[-1, -1] = 0
    counts = Counts(nodes, pairs, (one_way + one_way.T).astype(float), np.zeros(k, np.int64))
    rate = counts.edges / counts.edges.sum()
    ratio = np.divide(rate, pairs / pairs.sum(), out=np.zeros_like(rate), where=pairs > 0)
    return ratio[:-1, -1:] if graph.bipartite else ratio


def marginal(planted, name):
    """R of one attribute of people: the mean of R over ordered pairs of different nodes in each cell of its values.

    With exchangeable degrees this is what Eq. (8)-(9) of that attribute alone estimate on average. (K, K); bipartite:
    (K, 1), people against all items.
    """
    position = [t.name for t in planted.recipe.traits].index(name)
    value = planted.values[:, position]
    sizes = np.bincount(planted.group, minlength=len(value)).astype(float)
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    pairs[planted.ratio == 0] = 0
    count = len(planted.recipe.traits[position].labels)
    rows = np.equal(value[None, :], np.arange(count)[:, None]).astype(float)
    columns = np.equal(value[:, None], -1).astype(float) if planted.recipe.num_items else rows.T
    return (rows @ (pairs * planted.ratio) @ columns) / (rows @ pairs @ columns)


def coverage(recipe, seed, draws):
    """{attribute: (cells inside, cells)}: the planted R between the 2.5 % and 97.5 % of redraws of degrees and edges."""
    shipped = plant(recipe, seed)
    people = [t.name for t in recipe.traits if t.side != "items"]
    found = {name: [] for name in people}
    for draw in range(1, draws + 1):
        again = plant(recipe, seed, draw=draw)
        for name in people:
            found[name].append(ratio_of(again, name))
    out = {}
    for name in people:
        low, high = np.percentile(found[name], [2.5, 97.5], axis=0)
        truth = marginal(shipped, name)
        out[name] = (int(((low <= truth) & (truth <= high)).sum()), truth.size)
    return out


@pytest.mark.parametrize("recipe", [replace(PEOPLE, num_people=400, num_edges=3000), SIDES], ids=named)
def test_the_estimate_of_r_covers_the_planted_one(recipe):
    for inside, cells in coverage(recipe, 0, 20).values():
        assert inside >= cells - 1


@pytest.mark.parametrize(
    ("nodes", "redraws"),
    [pytest.param(2000, 60, marks=pytest.mark.slow), pytest.param(20_000, 200, marks=pytest.mark.acceptance)],
)
def test_the_town_covers_its_planted_r(nodes, redraws):
    for name, (inside, cells) in coverage(town_of("town", nodes=nodes), 2022, redraws).items():
        assert inside == cells, name


def dependence(planted, edges):
    """p-value: do same-region and cross-region edges of each club pair come as the P_M mass says?"""
    region = planted.observed.attribute("region").codes
    (u, v), _ = oracle(planted)
    a, b = planted.coarse[planted.group[u]], planted.coarse[planted.group[v]]
    cell = 2 * (a + b) + (region[u] == region[v])
    mass = np.bincount(cell, planted.structure.probability(u, v))
    a, b = planted.coarse[planted.group[edges[0]]], planted.coarse[planted.group[edges[1]]]
    seen = np.bincount(2 * (a + b) + (region[edges[0]] == region[edges[1]]), minlength=len(mass))
    mass, seen = mass.reshape(-1, 2), seen.reshape(-1, 2)
    expected = mass * (seen.sum(axis=1) / mass.sum(axis=1))[:, None]
    return stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen))


@pytest.mark.slow
def test_the_bias_free_graph_knows_nothing_of_the_region_and_the_observed_one_does():
    made = [plant(replace(PEOPLE, num_people=300, num_edges=3000), seed) for seed in range(12)]
    free = [dependence(p, p.bias_free) for p in made]
    assert stats.kstest(free, "uniform").pvalue > 0.001
    assert max(dependence(p, p.observed.edges) for p in made) < 1e-6


@pytest.mark.parametrize("structure", STRUCTURES)
def test_bipartite_edges_go_across(structure):
    planted = plant(replace(SIDES, structure=structure), 2)
    for edges in (planted.observed.edges, planted.bias_free):
        assert (edges[0] < 40).all() and (edges[1] >= 40).all() and edges.shape[1] > 300
    assert planted.observed.num_users == 40 and planted.observed.attribute("genre").side == "items"


def test_lists_of_the_truth_hold_new_bias_free_edges_among_strangers_of_both_graphs():
    for recipe in (PEOPLE, SIDES):
        graph = plant(recipe, 6).observed
        task = planted_task(graph, num_candidates=20, seed=0)

        def pairs(edges, graph=graph):
            found = set(map(tuple, edges.T.tolist()))
            return found if graph.bipartite else found | {(v, u) for u, v in found}

        observed, free = pairs(graph.edges), pairs(graph.truth.bias_free)
        for row, u in enumerate(task.targets.tolist()):
            inside = task.candidates[row] >= 0
            for v, relevant in zip(task.candidates[row][inside].tolist(), task.relevant[row][inside], strict=True):
                assert v != u and (u, v) not in observed and ((u, v) in free) == relevant
        assert set(task.targets.tolist()) == {u for u, v in free - observed}
    with pytest.raises(ValueError, match="no planted truth"):
        planted_task(replace(graph, truth=None))


def test_the_truth_is_no_part_of_the_fingerprint():
    graph = plant(PEOPLE, 1).observed
    assert replace(graph, truth=None).fingerprint == graph.fingerprint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_edges": 1500}, "structural probability of .* between hubs, allowed: 1"),
        ({"num_edges": 0}, "0 edges asked for"),
        ({"num_edges": 3000}, "allowed: 1 to half the pairs"),
        ({"num_people": 1}, "at least 2 people"),
        ({"structure": "smallworld"}, "unknown structure"),
        ({"effects": (Effect("region", "club", ((1.0,),)),)}, "a factor above 0 per pair of values"),
        ({"effects": (Effect("club", "club", ((1.0, 2.0), (3.0, 1.0))),)}, "symmetric table"),
        ({"effects": (Effect("club", "clubs", ((1.0,),)),)}, "the traits are region, age, club"),
        ({"traits": (Trait("region", ("a", "b"), (0.4, 0.4)),), "effects": ()}, "1 in all"),
        ({"num_items": 80}, "trait region is of nodes"),
    ],
)
def test_what_is_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        plant(replace(PEOPLE, **change), 0)


def test_too_many_groups_are_refused():
    traits = tuple(Trait(f"t{i}", tuple("abcdefgh"), (0.125,) * 8) for i in range(4))
    with pytest.raises(ConfigError, match=r"form \d+ groups, allowed: 2048"):
        plant(Recipe("many", 4000, 8000, traits, ()), 0)
