"""Options of methods and backbones at and beyond what they allow: refused in one short line, or a config that keeps."""

import json
from dataclasses import fields

import numpy as np
import pytest
from toys import shop, town

from uge_core.errors import ConfigError
from uge_core.progress import rounded
from uge_core.registry import find, found, names
from uge_core.training.config import RunConfig

HOSTILE = (
    0,
    1,
    -1,
    -0.5,
    float("nan"),
    float("inf"),
    1e30,
    10**30,
    10**400,
    "x",
    "",
    "nan",
    "1e400",
    "9" * 5000,
    None,
    [1],
    {"a": 1},
    True,
    b"1",
    np.float64(2.0),
    np.int64(3),
    1 + 2j,
    (),
)
PLUGINS = [(folder, name) for folder in ("debias.methods", "backbones") for name in names(folder)]


def resolved(graph, **settings):
    """The config, which must be of plain numbers and text; None where it was refused in a short line."""
    try:
        made = RunConfig.resolve(graph, sensitive=graph.audited[0].name, **settings)
    except ConfigError as error:
        assert 0 < len(str(error)) < 600 and "\n" not in str(error)
        return None
    record = json.loads(json.dumps(made.to_json(), allow_nan=False))
    assert RunConfig.from_json(record) == made and len(made.run_id("x")) == 12
    return made


@pytest.mark.parametrize("graph", [town(), shop()], ids=lambda g: g.name)
@pytest.mark.parametrize(("folder", "name"), PLUGINS)
def test_hostile_values_are_refused_or_kept(graph, folder, name):
    plugin = {"method": name} if folder == "debias.methods" else {"backbone": name}
    for f in fields(find(folder, name)):
        for value in HOSTILE:
            resolved(graph, options={f.name: value}, **plugin)
        for bound in filter(None, (f.metadata["low"], f.metadata["high"])):
            assert resolved(graph, options={f.name: type(f.default)(bound)}, **plugin)
        for beyond in (f.metadata["low"], f.metadata["high"]):
            step = 1 if beyond == f.metadata["high"] else -1
            assert beyond is None or resolved(graph, options={f.name: type(f.default)(beyond + step)}, **plugin) is None


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_lambda_is_refused_or_kept(value):
    for name in ("lam", "warm_from"):
        resolved(town(), method="uge-c", **{name: value})


def test_values_are_quoted_in_short():
    assert found("x" * 9000).startswith("'xxx") and len(found("x" * 9000)) < 100 and found(0.5) == "0.5"
    assert len(found(10**200)) < 100 and found(10**9000) == "a number of 29898 bits"
    assert rounded(0.12345) == "0.1235" and rounded(1e300) == "1e+300" and rounded(-2.5e7) == "-2.5e+07"
