import json

import numpy as np
import pytest
from strategies import attribute

from uge_core import registry
from uge_core.config import RunConfig
from uge_core.errors import ConfigError, GraphError
from uge_core.graph import AttributedGraph, Column, Defaults

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


def test_fields_a_method_does_not_use_are_dropped_so_equal_runs_have_one_id():
    plain = [
        RunConfig.resolve(GRAPH, sensitive=s, method="none", lam=lam, unknown=u)
        for s, lam, u in (("age", 0.1, None), ("gender", 5, "exclude"))
    ]
    weighted = [RunConfig.resolve(GRAPH, sensitive="age", method="uge-w", lam=lam) for lam in (None, 0.3)]
    for a, b in (plain, weighted):
        assert a == b and a.run_id(GRAPH.fingerprint) == b.run_id(GRAPH.fingerprint)
    ids = {
        RunConfig.resolve(GRAPH, sensitive="age", method="uge-c", lam=lam).run_id(GRAPH.fingerprint)
        for lam in (0.1, 0.2)
    }
    assert len(ids) == 2


@pytest.mark.parametrize("method", registry.names("debias"))
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
        ({"method": "uge-x"}, r"unknown method 'uge-x'; allowed: none, .*Did you mean 'uge-"),
        ({"backbone": "gcnn"}, "unknown backbone 'gcnn'.*Did you mean 'gcn'"),
        ({"sensitive": "", "method": "uge-w"}, "needs at least one sensitive attribute; this graph has: gender, AGE"),
        ({"sensitive": "constant", "method": "uge-w"}, r"'constant' has one value \(a\)"),
        ({"sensitive": "gender,gender", "method": "uge-w"}, "names an attribute twice"),
        ({"epochs": 0}, "epochs = 0 is out of range; allowed: at least 1"),
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


@pytest.mark.parametrize("name", registry.names("debias"))
def test_each_method_describes_itself(name):
    cls = registry.find("debias", name)
    assert cls.label and cls.citation and cls.__doc__ and ("Eq." in cls.__doc__ or "MMD" in cls.__doc__)
