"""Methods after the paper's conclusion, and erasers, in the training loop."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import attribute, graphs
from toys import PLAIN, config, inputs, path_graph, run, shop, town

from uge_core.debias.bias_free import weight_cells
from uge_core.debias.methods.leace import LEACE
from uge_core.debias.methods.uge_a import UGEA
from uge_core.debias.methods.uge_g import UGEG, DrawnGraphs
from uge_core.debias.methods.uge_o import UGEO
from uge_core.debias.methods.uge_ork import UGEORK
from uge_core.errors import ConfigError
from uge_core.graph.split import probe_split

# UGE-ORK: offset, R's penalty, kernel gap


@pytest.mark.parametrize(
    ("like", "options"),
    [
        ("uge-ok", {"strength": 1.0, "mean_weight": 0.0, "finest": 0.1, "num_features": 128}),
        ("uge-r", {"strength": 0.0, "kernel_weight": 0.0, "mean_weight": 1.0}),
    ],
)
def test_the_parts_of_uge_ork_are_those_of_its_parents(like, options):
    graph = town()
    a, b = run(graph, config(graph, "uge-ork", lam=0.7, options=options), config(graph, like, lam=0.7))
    assert (a.embedding == b.embedding).all() and (a.twin == b.twin).all()


def test_settings_of_uge_ork_that_change_nothing_are_no_run_of_their_own():
    graph = shop()
    idle = {"strength": 0.0, "mean_weight": 0.0}
    ids = [config(graph, "uge-ork", options={**idle, "item_cells": c}).run_id("x") for c in ("none", "popularity")]
    assert ids[0] == ids[1]
    ids = [config(graph, "uge-ork", options={"item_cells": c}).run_id("x") for c in ("none", "popularity")]
    assert ids[0] != ids[1]


def test_messages_weigh_1_on_average_by_the_edges_own_weights():
    graph = town()
    own = np.random.default_rng(0).uniform(0.1, 5, graph.num_edges).astype(np.float32)
    factor = UGEA().edges(replace(inputs(graph, ("city",)), weights=own)).in_messages(1)
    assert np.average(factor, weights=own) == pytest.approx(1, rel=1e-5)


def test_the_offset_is_taken_in_part():
    graph = town()
    known = inputs(graph, ("city",))
    whole = UGEO().cells(known).offset
    np.testing.assert_allclose(UGEORK(strength=0.25).cells(known).offset, 0.25 * whole, rtol=1e-6)
    assert whole.any() and not UGEORK(strength=0.0).cells(known).offset.any()


def test_uge_ork_without_an_offset_serves_bpr():
    graph = shop()
    none = {"item_cells": "none"}
    with pytest.raises(ConfigError, match="cancels"):
        run(graph, config(graph, "uge-ork", "mf", options=none))
    assert np.isfinite(run(graph, config(graph, "uge-ork", "mf", options={**none, "strength": 0.0}))[0].embedding).all()


def test_options_that_change_nothing_are_put_back():
    graph = town()
    same = {"strength": 0.0, "kernel_weight": 0.0}
    other = {**same, "shrinkage": 5.0, "independence": True, "num_features": 64, "moments": 2, "finest": 0.5}
    assert config(graph, "uge-ork", options=same) == config(graph, "uge-ork", options=other)


# UGE-G: drawn graphs


@given(graphs(), st.integers(1, 5))
def test_drawn_graphs_have_r_tilde_by_r_copies_on_average(graph, every):
    known = inputs(graph)
    weight = weight_cells(known, **PLAIN).edge_weight(graph.edges)
    drawn = UGEG(every=every).edges(known)
    assert drawn.in_loss(1) is drawn.in_loss(every) and drawn.in_messages(1) is drawn.in_loss(1)
    copies = np.stack([drawn.in_loss(1 + every * i) for i in range(400)])
    assert (copies >= 0).all() and (copies == np.round(copies)).all()
    # five standard errors of a mean of 400 Poisson draws
    assert (np.abs(copies.mean(0) - weight) <= 5 * np.sqrt(weight / 400) + 1e-6).all()


def test_graphs_differ_and_a_graph_is_drawn_again_as_it_was():
    drawn = DrawnGraphs(np.full(200, 0.8, np.float32), 1, 3)
    first, second = drawn.in_loss(1), drawn.in_loss(2)
    assert (first != second).any() and (drawn.in_loss(1) == first).all()
    assert (DrawnGraphs(drawn.mean, 1, 4).in_loss(1) != first).any()


@pytest.mark.slow
def test_many_drawn_graphs_come_near_uge_w():
    graph = town()
    w, g, none = run(
        graph,
        *(
            config(graph, m, epochs=300, exposure="seen", options=o)
            for m, o in (("uge-w", {}), ("uge-g", {"every": 1}), ("none", {}))
        ),
    )

    def apart(a, b):
        return np.linalg.norm(a.embedding @ a.embedding.T - b.embedding @ b.embedding.T)

    assert apart(g, w) < 0.5 * apart(none, w)


def test_a_drawn_graph_without_an_edge_has_no_walks_and_training_goes_on():
    graph = replace(town(6), edges=np.array([[0], [1]]))
    made = config(graph, "uge-g", "deepwalk", epochs=8, exposure="seen", options={"every": 1})
    drawn = UGEG(every=1).edges(inputs(graph, ("city",)))
    copies = [drawn.in_loss(epoch).sum() for epoch in range(1, 9)]
    assert 0 in copies and max(copies) > 0
    assert np.isfinite(run(graph, made)[0].embedding).all()


# UGE-A: bias-free aggregation


def test_messages_weigh_r_tilde_by_r_on_average_1():
    known = inputs(path_graph())
    # weights 3/4, 3/2, 3/4 of the path by hand, 1 on average
    factors = UGEA(shrinkage=1e-2).edges(known)
    np.testing.assert_allclose(factors.in_messages(1), [0.75, 1.5, 0.75], rtol=1e-2)
    assert factors.in_loss(1) is None and factors.in_messages(1) is factors.in_messages(2)


@pytest.mark.slow
@pytest.mark.parametrize(("backbone", "weighs"), [("gcn", True), ("sgc", True), ("gat", False), ("node2vec", False)])
def test_uge_a_is_uge_o_where_messages_have_no_weights(backbone, weighs):
    graph = town()
    a, o = run(graph, config(graph, "uge-a", backbone), config(graph, "uge-o", backbone))
    assert (a.embedding != o.embedding).any() == weighs


# Erasers


@pytest.mark.slow
@pytest.mark.parametrize("method", ["leace", "inlp"])
@pytest.mark.parametrize("sensitive", ["city", "city,gender"])
def test_erasers_finish_the_plain_embedding_where_no_attacker_is_tested(method, sensitive):
    graph = town()
    plain, erased = run(graph, *(config(graph, m, sensitive=sensitive, epochs=150) for m in ("none", method)))
    # what training of the twin and of the exported member sees makes no difference
    assert (erased.embedding == erased.twin).all() and (erased.embedding != plain.embedding).any()
    learnt = np.ones(90, dtype=bool)
    for name in sensitive.split(","):
        learnt[probe_split(graph.attribute(name)).test] = False
    for name in sensitive.split(","):
        codes = graph.attribute(name).codes

        def gap(z, nodes, codes=codes):
            return max(np.abs(z[nodes & (codes == c)].mean(0) - z[nodes].mean(0)).max() for c in np.unique(codes))

        assert gap(erased.embedding, learnt) < (1e-6 if method == "leace" else gap(plain.embedding, learnt))
        # negative control: tested nodes were left out, so that chance shows in their means
        assert gap(erased.embedding, ~learnt) > 1e-4
    assert erased.history == plain.history


def test_erasers_leave_items_as_they_are():
    graph = shop()
    plain, erased = run(graph, config(graph), config(graph, "leace"))
    assert (erased.embedding[50:] == plain.embedding[50:]).all()
    assert (erased.embedding[:50] != plain.embedding[:50]).any()


@pytest.mark.parametrize("method", ["leace", "inlp"])
def test_too_many_values_are_refused_and_many_advised_against(method):
    graph = town()
    street = replace(graph, attributes=(attribute("street", np.arange(90) % 9),))

    def advice(dim):
        made = config(street, method, sensitive="street", epochs=1, options={"dim": dim})
        return run(street, made)[0].diagnostics["advice"]

    with pytest.raises(ConfigError, match=r"takes away 8 of 8 dimensions.*street \(9 values\).*dim=32 or more"):
        advice(8)
    assert [a for a in advice(16) if a.startswith(f"{method} takes away 8 of 16 dimensions")]
    assert advice(17) == []
    assert LEACE().dimensions(inputs(street, ("street",))) == 8


def test_erasers_say_when_nobody_is_left_to_fit_on():
    graph = town()
    known = replace(inputs(graph, ("city",)), probed=np.ones(90, dtype=bool))
    with pytest.raises(ConfigError, match="no node outside the probe's test has a known value of city"):
        LEACE().check(known, "cross-entropy")


def test_a_part_of_uge_ork_that_weighs_nothing_refuses_nothing():
    # more joint groups than R's penalty takes: it is not asked for
    graph = town()
    known = inputs(graph, ("city",))
    ((weight, part),) = UGEORK(mean_weight=0.0, strength=0.0).penalty(known).parts
    assert weight == 1.0 and type(part).__name__ == "KernelGap"
    ((weight, _),) = UGEORK(kernel_weight=0.0, mean_weight=0.25).penalty(known).parts
    assert weight == 0.25
