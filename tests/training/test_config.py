import json
import re

import numpy as np
import pytest
from strategies import attribute

from uge_core import registry
from uge_core.errors import ConfigError, GraphError
from uge_core.graph.graph import AttributedGraph, Column, Defaults
from uge_core.training.config import RunConfig

GRAPH = AttributedGraph(
    "g",
    4,
    np.array([[0, 1, 2], [1, 2, 3]]),
    (attribute("gender", [0, 0, 1, 1]), attribute("AGE", [0, 1, 2, 0]), attribute("constant", [0, 0, 0, 0])),
    columns=(Column("nodes.csv", "income", "feature", "4,000 different numbers"),),
    defaults=Defaults(unknown="level", test_share=0.2),
)


def test_defaults_come_from_the_layout():
    c = RunConfig.resolve(GRAPH, sensitive="age", method="uge-w")
    assert (c.sensitive, c.unknown, c.hidden, c.exposure, c.test_share) == (("AGE",), "level", "impute", "both", 0.2)


def ids(*given):
    return {RunConfig.resolve(GRAPH, **{"sensitive": "age", **g}).run_id(GRAPH.fingerprint) for g in given}


@pytest.mark.parametrize(
    "equal",
    [
        [
            {"method": "none", "lam": 0.1},
            {"method": "none", "sensitive": "gender", "lam": 5},
            {"method": "none", "hidden": "exclude"},
        ],
        [
            {"method": "uge-w"},
            {"method": "uge-w", "lam": 0.3},
            {"method": "uge-w", "options": {"item_cells": "popularity"}},
        ],
        [{"backbone": "mf"}, {"backbone": "mf", "block_size": 64}, {"backbone": "mf", "weight_decay": 0.1}],
        [{"negatives": "listed"}, {"negatives": "listed", "block_size": 7}],
        [{}, {"num_negatives": 7}, {"weight_decay": 0.1}],
        [{"method": "uge-r"}, {"method": "uge-r", "options": {"num_group_pairs": 5}}],
        [
            {"method": "uge-ok", "options": {"moments": 2}},
            {"method": "uge-ok", "options": {"moments": 2, "num_features": 64}},
        ],
    ],
)
def test_what_is_not_read_is_dropped_so_equal_runs_have_one_id(equal):
    assert len(ids(*equal)) == 1


@pytest.mark.parametrize(
    "different",
    [
        [{"method": "uge-c", "lam": 0.1}, {"method": "uge-c", "lam": 0.2}],
        [{"unknown": "level"}, {"unknown": "exclude"}],
        [{"block_size": 64}, {"block_size": 32}, {"negatives": "listed"}],
        [{"backbone": "gcn"}, {"backbone": "gcn", "weight_decay": 0.1}],
        [{"method": "uge-w"}, {"method": "uge-w", "sensitive": "gender"}, {"method": "uge-w", "exposure": "seen"}],
    ],
)
def test_what_is_read_makes_another_run(different):
    assert len(ids(*different)) == len(different)


def test_a_layout_sets_what_its_paper_rests_on_and_the_user_overrules_it():
    layout = AttributedGraph(
        "g", 4, GRAPH.edges, GRAPH.attributes, defaults=Defaults(backbone_options={"node2vec": {"init_std": 1.0}})
    )
    assert RunConfig.resolve(layout).backbone_options["init_std"] == 1.0
    assert RunConfig.resolve(layout, options={"init_std": 0.3}).backbone_options["init_std"] == 0.3
    assert RunConfig.resolve(GRAPH).backbone_options["init_std"] == 0.1


@pytest.mark.parametrize("method", registry.names("debias.methods"))
@pytest.mark.parametrize("backbone", registry.names("backbones"))
def test_survives_json(method, backbone):
    c = RunConfig.resolve(GRAPH, sensitive=["gender", "AGE"], method=method, backbone=backbone, seed=3)
    again = RunConfig.from_json(json.loads(json.dumps(c.to_json())))
    assert again == c and again.run_id("x") == c.run_id("x")


def test_the_order_of_names_does_not_matter():
    a, b = (RunConfig.resolve(GRAPH, sensitive=s, method="uge-w") for s in ("gender+age", "age,gender"))
    assert a == b and a.sensitive == ("AGE", "gender")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"lam": -0.1, "method": "uge-c"}, r"lambda = -0\.1 is out of range; allowed: 0 or more"),
        ({"lam": float("nan"), "method": "uge-c"}, "lambda = nan"),
        ({"method": "uge-x"}, r"unknown method 'uge-x'; allowed: cfc, .*Did you mean 'uge-"),
        ({"backbone": "gcnn"}, "unknown backbone 'gcnn'.*Did you mean 'gcn'"),
        ({"sensitive": "", "method": "uge-w"}, "needs at least one sensitive attribute; this graph has: gender, AGE"),
        ({"sensitive": "constant", "method": "uge-w"}, r"'constant' has one value \(a\)"),
        ({"sensitive": "gender,gender", "method": "uge-w"}, "names an attribute twice"),
        ({"epochs": 0}, "epochs = 0 is out of range; allowed: at least 1"),
        (
            {"method": "cfc", "options": {"discriminator_batch": 2**63}},
            f"discriminator_batch = {2**63} is out of range; allowed: 0 to 1000000",
        ),
        ({"epochs": "many"}, "epochs must be int, found 'many'"),
        ({"epochs": 1.5}, "epochs must be int"),
        ({"learning_rate": float("inf")}, "learning_rate must be float"),
        ({"negatives": "all"}, "negatives = 'all' is not allowed; allowed: shared, listed"),
        ({"unknown": "guess"}, "unknown = 'guess' is not allowed; allowed: level, exclude, impute"),
        ({"hidden": "level"}, "hidden = 'level'"),
        ({"exposure": "unseen"}, "exposure = 'unseen'"),
        ({"options": {"widht": 3}, "backbone": "gat"}, "--set widht=3: no such setting of gat"),
        (
            {"options": {"norm": "cubic"}, "method": "uge-r"},
            "norm = 'cubic' is not allowed; allowed: squared, absolute",
        ),
        ({"options": {"independence": "maybe"}, "method": "uge-w"}, "independence must be bool"),
        ({"colour": "red"}, "colour is not a setting"),
        ({"options": {"attributes": "gender"}}, "--set attributes=gender: no such setting"),
        (
            {"options": {"item_cells": "nonsense"}, "method": "uge-w"},
            "unknown item_cells 'nonsense'; allowed: none, popularity",
        ),
        ({"negatives": "listed", "backbone": "mf"}, "BPR draws a fresh stranger"),
        ({"options": {"dim": "inf"}}, "dim must be int"),
        ({"options": {"dim": "1e400"}}, "dim must be int"),
    ],
)
def test_a_bad_value_says_field_value_and_what_is_allowed(given, says):
    with pytest.raises(ConfigError, match=says):
        RunConfig.resolve(GRAPH, **{"sensitive": "gender", **given})


@pytest.mark.parametrize(
    ("name", "says"),
    [("regoin", "unknown attribute 'regoin'; allowed: gender, AGE"), ("income", "was read as feature")],
)
def test_an_attribute_that_is_not_there(name, says):
    with pytest.raises(GraphError, match=says):
        RunConfig.resolve(GRAPH, sensitive=name, method="uge-w")


def test_options_reach_method_backbone_and_training():
    c = RunConfig.resolve(
        GRAPH,
        sensitive="gender",
        method="uge-r",
        backbone="gat",
        options={"heads": "4", "norm": "absolute", "block_size": "64"},
    )
    assert (c.backbone_options["heads"], c.method_options["norm"], c.block_size) == (4, "absolute", 64)


@pytest.mark.parametrize("name", registry.names("debias.methods"))
def test_each_method_describes_itself(name):
    cls = registry.find("debias.methods", name)
    assert cls.label and cls.citation and re.search(r"Eq\.|MMD|[=+^|/]|<-|\*", cls.__doc__ or "")  # its formula
