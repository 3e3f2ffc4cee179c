"""The record: one schema, canonical bytes, a digest that every leaf enters, and reports measured anew."""

import copy
import hashlib
import io
import json
import os
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uge_core as uge
from uge_core.audit import policy as policies
from uge_core.audit import record, version
from uge_core.audit.base import METRICS, Cell, Row
from uge_core.audit.policy import Check, Rule
from uge_core.cli.main import run
from uge_core.datasets.planted.samples import make_sample
from uge_core.errors import ConfigError, RecordError
from uge_core.registry import names
from uge_core.runs.audits import audit_record
from uge_core.runs.external import add_external
from uge_core.runs.schema import schema
from uge_core.runs.store import RunStore
from uge_core.runs.verify import verify
from uge_core.training.config import RunConfig

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "uge_core" / "audit" / "uge-audit-1.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4))
ANY_TEXT = st.text(st.characters(codec=None, categories=["L", "N", "P", "Cs", "Cc"]))


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Records of real audits: every kind of method, a bipartite graph, one too small, one from elsewhere."""
    store = RunStore(tmp_path_factory.mktemp("records"))
    folder = tmp_path_factory.mktemp("drawn")
    make_sample("town", folder / "town", seed=0, nodes=400, edges=1000)
    make_sample("titles", folder / "titles", seed=0, nodes=200, items=150, edges=1500)
    town, titles = uge.load(folder / "town", attributes=["region"]), uge.load(folder / "titles")
    done = uge.sweep(town, sensitive="region", methods=["none", "uge-w", "uge-c"], store=store, epochs=3, device="cpu")
    found = {r.config["method"]: r.audit for r in done}
    found["titles"] = uge.train(titles, backbone="mf", store=store, epochs=3, device="cpu").audit
    folder = folder / "few"
    folder.mkdir()
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"p{i},p{(i + 1) % 12}\n" for i in range(12)))
    (folder / "nodes.csv").write_text("id,city\n" + "".join(f"p{i},{'AB'[i % 2]}\n" for i in range(12)))
    few = uge.load(folder)
    found["few"] = uge.train(few, store=store, epochs=3, device="cpu").audit
    rng = np.random.default_rng(0)
    external = add_external(
        rng.normal(size=(town.num_nodes, 8)).astype(np.float32), town, store, file="z.npy", score="cosine"
    )
    found["external"] = audit_record(external, town, store)
    return found


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every leaf."""
    if isinstance(value, dict | list) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    else:
        yield path


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The same with one leaf replaced; what is beside its path is shared."""
    changed = copy.copy(value)
    changed[path[0]] = put(value[path[0]], path[1:], new) if path[1:] else new
    return changed


def other(leaf: Any) -> Any:
    """Another value of the same kind, as close as a forger would want it."""
    if isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, int):
        return leaf + 1
    if isinstance(leaf, float):
        return float(np.nextafter(leaf, np.inf))
    return "x" if leaf is None else f"{leaf}x" if isinstance(leaf, str) else ["x"]


@pytest.mark.parametrize("kind", ["none", "uge-w", "uge-c", "titles", "few", "external"])
def test_real_audits_fit_the_schema(kind: str, audits: dict[str, dict[str, Any]]) -> None:
    found = json.loads(record.canonical(audits[kind]))
    VALIDATOR.validate(found)
    assert list(record.faults(found)) == []
    assert found["sha256"] == record.digest(found)


def test_what_the_audits_cover(audits: dict[str, dict[str, Any]]) -> None:
    assert {r["exposure"] for r in audits["uge-c"]["rows"]} == {"seen", "unseen"}
    assert any(c["b"] is None for r in audits["titles"]["rows"] for c in r["cells"])
    assert {"ok", "insufficient"} >= {r["evidence"] for r in audits["few"]["rows"]} >= {"insufficient"}
    assert audits["external"]["config"]["split_seed"] is None


def test_the_file_is_the_schema_of_the_dataclasses() -> None:
    assert schema() == SCHEMA, "python -m uge_core.runs.schema writes it anew"


def test_the_schema_describes_what_there_is() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    row, cell = SCHEMA["$defs"]["row"], SCHEMA["$defs"]["cell"]
    assert set(row["properties"]) == {f.name for f in fields(Row)}
    # records of versions before it lack `floor_degree`
    assert set(row["required"]) == set(row["properties"]) - {"floor_degree"}
    assert set(cell["properties"]) == {f.name for f in fields(Cell)}
    # records of versions before it lack `withheld`
    assert set(cell["required"]) == set(cell["properties"]) - {"withheld"}
    assert set(METRICS) <= set(row["properties"]["metric"]["enum"])
    assert {*names("audit.attackers"), "worst"} <= set(row["properties"]["attacker"]["enum"])
    config = {"lambda" if f.name == "lam" else f.name for f in fields(RunConfig)}
    assert set(SCHEMA["properties"]["config"]["properties"]) == config | {"score", "file"}
    rule = {f.name for f in fields(Rule)} | {f.name for f in fields(Check)} - {"rule", "number"} | {"rule"}
    assert set(SCHEMA["$defs"]["rule"]["properties"]) == rule


def test_every_field_is_described() -> None:
    def undescribed(schema: dict[str, Any], where: str) -> Iterator[str]:
        for name, field in schema.get("properties", {}).items():
            if "$ref" not in field and not field.get("description", "").endswith("."):
                yield f"{where}.{name}"
            yield from undescribed(field, f"{where}.{name}")

    for name, part in {"": SCHEMA, **SCHEMA["$defs"]}.items():
        assert list(undescribed(part, name)) == []


def test_the_schema_is_in_the_package() -> None:
    assert (
        json.loads(resources.files("uge_core.audit").joinpath(record.SCHEMA_FILE).read_text(encoding="utf-8")) == SCHEMA
    )
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["uge_core.audit"]
    package = ROOT / "uge_core" / "audit"
    assert package / record.SCHEMA_FILE in {path for pattern in data for path in package.glob(pattern)}


WRONG: dict[str, tuple[tuple[Any, ...], Any]] = {
    "another format": (("schema",), "uge-audit/2"),
    "an id of another shape": (("run_id",), "../../etc"),
    "a fingerprint in capitals": (("dataset", "fingerprint"), "A" * 64),
    "no nodes": (("dataset", "num_nodes"), 0),
    "half a node": (("dataset", "num_nodes"), 10.5),
    "a field nobody knows": (("dataset", "colour"), "red"),
    "a method that is a number": (("config", "method"), 3),
    "a share above one": (("config", "test_share"), 1.5),
    "sensitive as text": (("config", "sensitive"), "region"),
    "rows that are none": (("rows",), {}),
    "a row that is text": (("rows", 0), "auc"),
    "another metric": (("rows", 0, "metric"), "accuracy"),
    "a value that is text": (("rows", 0, "value"), "0.5"),
    "a value that is true": (("rows", 0, "value"), True),
    "an exposure of its own": (("rows", 0, "exposure"), "hidden"),
    "an n below zero": (("rows", 0, "n"), -1),
    "cells that are none": (("rows", 0, "cells"), None),
    "a sha of another length": (("sha256",), "abc"),
    "asked as a list": (("asked",), []),
    "attackers as text": (("asked", "attackers"), "linear"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_our_check_says_what_a_whole_validator_says(kind: str, audits: dict[str, dict[str, Any]]) -> None:
    path, value = WRONG[kind]
    wrong = put(json.loads(record.canonical(audits["uge-c"])), path, value)
    assert not VALIDATOR.is_valid(wrong)
    said = list(record.faults(wrong))
    assert said and all(": " in line for line in said)
    assert str(path[-1]) in said[0] or str(path[-1]) == "0"


SAID: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    "a type": (("rows", 0, "value"), "0.5", 'rows[0].value: found "0.5"; allowed: number or null'),
    "a type with a list of words": (("rows", 0, "exposure"), 3, "rows[0].exposure: found 3; allowed: string or null"),
    "a word": (("rows", 0, "evidence"), "so", 'rows[0].evidence: found "so"; allowed: "ok", "insufficient"'),
    "a constant": (("schema",), "uge-audit/2", 'schema: found "uge-audit/2"; allowed: "uge-audit/1"'),
    "a pattern": (("run_id",), "../etc", 'run_id: found "../etc"; allowed: text that fits ^[0-9a-f]{12}$'),
    "a number": (("dataset", "num_nodes"), 0, "dataset.num_nodes: found 0; allowed: 1 to inf"),
    "a share": (("rows", 0, "cells", 0, "value"), 1.5, "rows[0].cells[0].value: found 1.5; allowed: 0 to 1"),
    "a new field": (
        ("dataset", "x"),
        1,
        "dataset.x: is no field of uge-audit/1; allowed: name, fingerprint, num_nodes",
    ),
    "a new field of all": (("x",), 1, "x: is no field of uge-audit/1; allowed: schema, audit_version, run_id, dataset"),
}


@pytest.mark.parametrize("kind", SAID)
def test_what_is_said_of_a_fault(kind: str) -> None:
    path, value, words = SAID[kind]
    (said,) = record.faults(put(small(), path, value))
    assert said.startswith(words) if "field" in kind else said == words


def test_each_fault_is_said_once() -> None:
    wrong = small()
    del wrong["rows"][0]["n"], wrong["rows"][0]["note"]
    assert list(record.faults(wrong)) == ["rows[0]: n is missing", "rows[0]: note is missing"]
    assert list(record.faults([])) == ["the record: found []; allowed: object"]
    missing = [line for line in record.faults({}) if line.startswith("the record: ")]
    assert missing == [f"the record: {key} is missing" for key in SCHEMA["required"]]


@given(st.data())
def test_our_check_agrees_with_a_whole_validator_on_any_change(data: st.DataObject) -> None:
    base = small()
    path = data.draw(st.sampled_from(list(leaves(base))))
    changed = put(base, path, data.draw(VALUES))
    assert (list(record.faults(changed)) == []) == VALIDATOR.is_valid(changed)
    inner = base
    for key in path[:-1]:
        inner = inner[key]
    if isinstance(inner, dict):
        changed = copy.deepcopy(base)
        target = changed
        for key in path[:-1]:
            target = target[key]
        del target[path[-1]]
        assert (list(record.faults(changed)) == []) == VALIDATOR.is_valid(changed)


def small() -> dict[str, Any]:
    """A record with a row, a cell and a policy, of the right shape."""
    cell = {"a": "x", "b": None, "value": 0.25, "n": 120, "ci_low": None, "ci_high": None, "excluded": False}
    row = Row("dp", "city", value=0.25, ci_low=0.2, ci_high=0.3, ci_kind="nodes", n=400, direction="lower")
    rows = [{f.name: getattr(row, f.name) for f in fields(Row)} | {"cells": [cell]}]
    config = {
        "dataset": "town",
        "sensitive": ["city"],
        "backbone": "",
        "method": "external",
        "lambda": None,
        "dim": 8,
        "split_seed": 0,
        "score": "dot",
        "file": "z.npy",
    }
    rule = {
        "rule": 1,
        "metric": "dp",
        "attribute": "city",
        "attacker": None,
        "variant": None,
        "exposure": None,
        "direction": "at_most",
        "number": 0.3,
        "unit": "probability",
        "min_n": 100,
        "max_width": None,
        "on": "interval",
        "optional": False,
        "verdict": "pass",
        "sentence": "so it is",
    }
    return record.seal(
        {
            "schema": record.NAME,
            "run_id": "0123456789ab",
            "config": config,
            "rows": rows,
            "asked": {"attributes": None},
            "dataset": {"name": "town", "fingerprint": "0" * 64, "num_nodes": 10, "num_edges": 20},
            "policy": {"name": "p.yaml", "sha256": "0" * 64, "verdict": "pass", "rules": [rule]},
        }
    )


def test_the_small_record_has_the_right_shape() -> None:
    assert list(record.faults(small())) == [] and VALIDATOR.is_valid(small())


def test_canonical_bytes_by_hand() -> None:
    given = {"b": 1, "a": [0.1, -0.0, 1e300, 1.0, None, True, "é\n\ud800"], "é": {}, "B": 10**20}
    said = r'{"B":100000000000000000000,"a":[0.1,0.0,1e+300,1.0,null,true,"é\n\ud800"],"b":1,"é":{}}'
    assert record.canonical(given) == said.encode()
    assert record.digest(given) == hashlib.sha256(said.encode()).hexdigest()
    assert record.digest(given | {"sha256": "anything"}) == record.digest(given)


@given(VALUES | st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=3))
def test_canonical_bytes_read_back_the_same(value: Any) -> None:
    said = record.canonical(value)
    assert record.canonical(json.loads(said)) == said
    said.decode("utf-8")


@given(st.dictionaries(st.text(), VALUES, max_size=5), st.randoms())
def test_order_and_space_do_not_matter(value: dict[str, Any], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    written = json.dumps(dict(items), indent=random.choice([None, 1, 4]), ensure_ascii=random.random() < 0.5)
    assert record.canonical(json.loads(written)) == record.canonical(value)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {"a": [-float("inf")]}, {1: 2}, {1, 2}, np.float64("nan")]
)
def test_what_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(RecordError, match="the record holds"):
        record.canonical(value)


def test_too_deep_a_record_is_refused() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(RecordError, match="nested too deeply"):
        record.canonical(deep)


def test_every_leaf_enters_the_digest(audits: dict[str, dict[str, Any]]) -> None:
    found = json.loads(record.canonical(audits["few"]))
    paths = [path for path in leaves(found) if path != ("sha256",)]
    digests = {record.digest(put(found, path, other(value_at(found, path)))) for path in paths}
    assert len(paths) > 200 and len(digests) == len(paths) and found["sha256"] not in digests


def value_at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def test_a_difference_is_named_by_row_and_field(audits: dict[str, dict[str, Any]]) -> None:
    found = json.loads(record.canonical(audits["uge-c"]))
    assert record.first_difference(found, found) is None
    assert record.first_difference(found, audits["uge-c"]) is None
    step = 1 if os.environ.get("CI") == "true" else 11
    for path in list(leaves(found))[::step]:
        changed = put(found, path, "forged")
        said = record.first_difference(changed, found)
        if path[0] == "sha256":
            assert said is None
        elif path[0] == "rows":
            assert said is not None and said.startswith(f"row {path[1] + 1} of {len(found['rows'])} (")
            assert f", {path[2]}" in said and '"forged"' in said and json.dumps(value_at(found, path))[:20] in said
        else:
            assert (said is not None and ", ".join(map(str, path[:2])) in said) or len(path) > 2
    fewer = put(found, ("rows",), found["rows"][:-1])
    assert "nothing" in (record.first_difference(fewer, found) or "")
    assert "nothing" in (record.first_difference(found, fewer) or "")


def test_counts_are_exact_and_floats_to_rounding(audits: dict[str, dict[str, Any]]) -> None:
    found = json.loads(record.canonical(audits["none"]))
    i = next(i for i, r in enumerate(found["rows"]) if r["value"])
    value = found["rows"][i]["value"]
    assert record.first_difference(put(found, ("rows", i, "value"), value * (1 + 1e-12)), found) is None
    assert "value" in (record.first_difference(put(found, ("rows", i, "value"), value * (1 + 1e-8)), found) or "")
    assert ", n:" in (record.first_difference(put(found, ("rows", i, "n"), found["rows"][i]["n"] + 1), found) or "")


def test_areas_are_compared_by_pairs_that_may_change_places(audits: dict[str, dict[str, Any]]) -> None:
    found = json.loads(record.canonical(audits["none"]))
    i = next(i for i, r in enumerate(found["rows"]) if r["metric"] == "auc" and r["value"])
    value = found["rows"][i]["value"]
    assert record.first_difference(put(found, ("rows", i, "value"), value + 5e-7), found) is None
    i_worst = next(i for i, r in enumerate(found["rows"]) if r["metric"] == "auc" and r["p_value"] is not None)
    p_value = found["rows"][i_worst]["p_value"]
    said = record.first_difference(put(found, ("rows", i_worst, "p_value"), p_value + 5e-7), found)
    assert "p_value" in (said or "")
    assert "value" in (record.first_difference(put(found, ("rows", i, "value"), value + 2e-6), found) or "")


def test_small_figures_are_compared_by_the_sums_they_are_differences_of(audits: dict[str, dict[str, Any]]) -> None:
    # seen between two processors: .08284555466950956 and .08284555458070096, 1.07e-9 of it
    found = json.loads(record.canonical(audits["none"]))
    i = next(i for i, r in enumerate(found["rows"]) if r["metric"] == "dp" and r["ci_low"] is not None)
    one, other = (put(found, ("rows", i, "ci_low"), x) for x in (0.08284555466950956, 0.08284555458070096))
    assert record.first_difference(one, other) is None
    assert record.first_difference(one, put(other, ("rows", i, "ci_low"), 0.082845557)) is not None
    # what a run was made with is no measured number
    config = put(found, ("config", "learning_rate"), found["config"]["learning_rate"] + 1e-12)
    assert "learning_rate" in (record.first_difference(config, found) or "")


@given(seed=st.integers(0, 999))
def test_rows_and_cells_are_paired_by_what_they_are_about(seed: int, audits: dict[str, dict[str, Any]]) -> None:
    found = json.loads(record.canonical(audits["uge-c"]))
    moved, rng = copy.deepcopy(found), np.random.default_rng(seed)
    rng.shuffle(moved["rows"])
    for row in moved["rows"]:
        rng.shuffle(row["cells"])
    assert record.first_difference(moved, found) is None
    taken = moved["rows"].pop(int(rng.integers(len(moved["rows"]))))
    said = record.differences(moved, found)
    assert (said.changed, said.surplus, len(said.missing)) == ((), (), 1)
    assert taken["metric"] in said.missing[0] and "the report says nothing" in said.missing[0]
    more = record.differences({**found, "rows": [*found["rows"], taken | {"variant": "other"}]}, found)
    assert (more.changed, more.missing, len(more.surplus)) == ((), (), 1) and "other" in more.surplus[0]
    twice = record.differences({**found, "rows": [*found["rows"], taken]}, found)
    assert len(twice.surplus) == 1 and "measured anew nothing" in (twice.words or "")


def test_rows_about_some_attributes(audits: dict[str, dict[str, Any]]) -> None:
    found = audits["uge-c"]
    kept = record.only(found, ["REGION"])
    assert {r["attribute"] for r in kept["rows"]} == {"region", None}
    assert kept["sha256"] == record.digest(kept) != found["sha256"] and list(record.faults(kept)) == []
    with pytest.raises(ConfigError, match=r"not audited for 'shoe'; allowed: region"):
        record.only(found, ["shoe"])


HOSTILE = {
    "nothing": (b"", "no JSON of ours"),
    "no JSON": (b"auc: 0.5", "no JSON of ours"),
    "not UTF-8": (b'{"schema": "\xff"}', "not UTF-8"),
    "NaN": (b'{"schema": "uge-audit/1", "rows": [NaN]}', "NaN is not allowed"),
    "an infinity": (b'{"schema": "uge-audit/1", "rows": [-Infinity]}', "-Infinity is not allowed"),
    "an infinity in disguise": (b'{"schema": "uge-audit/1", "rows": [1e999]}', "1e999 is not allowed"),
    "a key twice": (b'{"schema": "uge-audit/1", "run_id": "a", "run_id": "b"}', "'run_id' stands twice"),
    "an endless number": (b'{"schema": ' + b"9" * 5000 + b"}", "no JSON of ours"),
    "a hole": (b"[" * 100_000, "nested too deeply"),
    "another format": (b'{"schema": "uge-bench/1"}', "holds schema 'uge-bench/1'; allowed: 'uge-audit/1'"),
    "no format": (b'{"rows": []}', "holds no schema"),
    "text": (b'"uge-audit/1"', "holds no schema"),
    "no records": (b"[]", "empty list"),
    "a list of something": (b"[3]", "holds no schema"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_reports(kind: str, tmp_path: Path) -> None:
    content, said = HOSTILE[kind]
    (tmp_path / "r.json").write_bytes(content)
    with pytest.raises(RecordError, match=said) as error:
        record.read(tmp_path / "r.json")
    assert len(str(error.value)) < 300
    done = uge_runs("verify", "r.json", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done


def test_reports_that_are_not_there(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none.json"):
        with pytest.raises(RecordError, match="cannot be read"):
            record.read(place)


class Done(NamedTuple):
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str


def uge_runs(*arguments: str, cwd: Path, store: Path | None = None) -> Done:
    out, err = io.StringIO(), io.StringIO()
    with chdir(cwd), redirect_stdout(out), redirect_stderr(err):
        code = run([*arguments, "--store", str(store or cwd / "store")])
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def audited(plain_town: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store, a run of a small graph and its report."""
    folder = tmp_path_factory.mktemp("verify")
    shutil.copytree(plain_town, folder / "town")
    arguments = ["--sensitive", "city", "--method", "uge-c", "--epochs", "60", "--set", "learning_rate=0.05"]
    arguments += ["--device", "cpu", "--json"]
    done = uge_runs("train", "town", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "report.json").write_text(done.stdout)
    return folder


def test_verify_measures_anew(audited: Path) -> None:
    report = json.loads((audited / "report.json").read_text())
    done = uge_runs("verify", "report.json", cwd=audited)
    assert done.returncode == 0, done
    assert f"sha256: equal: {report['sha256']}" in done.stdout
    assert f"all {len(report['rows'])} rows are equal" in done.stdout
    policy = "- {metric: auc, attribute: '*', direction: at_most, number: 0.95}\n"
    (audited / "p.yaml").write_text(policy)
    some = uge_runs("audit", report["run_id"], "--sensitive", "city", "--policy", "p.yaml", "--json", cwd=audited)
    assert json.loads(some.stdout)["policy"]["sha256"] == hashlib.sha256(policy.encode()).hexdigest()
    # another order, other spaces, and a list: the same reports
    (audited / "two.json").write_text(json.dumps([json.loads(some.stdout), report], sort_keys=True))
    done = uge_runs("verify", "two.json", cwd=audited)
    assert done.returncode == 0 and done.stdout.count("rows are equal") == 2, done
    assert "policy: equal: the verdict" in done.stdout


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize(
    ("path", "named"),
    [
        (("rows", ("auc", "linear", "seen"), "value"), "auc, city, linear, standard, seen), value: the report says"),
        (("rows", ("auc", "worst", "unseen"), "n"), "n: the report says 41, measured anew 40"),
        (("dataset", "num_edges"), "dataset, num_edges: the report says"),
        (("config", "lambda"), "config, lambda: the report says"),
    ],
)
def test_verify_names_what_was_forged(audited: Path, path: tuple[Any, ...], named: str, sealed: bool) -> None:
    report = json.loads((audited / "report.json").read_text())
    if path[0] == "rows":
        keys = [(r["metric"], r["attacker"], r["exposure"]) for r in report["rows"]]
        path = ("rows", keys.index(path[1]), path[2])
        named = f"row {path[1] + 1} of {len(keys)} ({named}"
    value = value_at(report, path)
    forged = put(report, path, value + (1 if isinstance(value, int) else 0.001))
    (audited / "forged.json").write_text(json.dumps(record.seal(forged) if sealed else forged))
    done = uge_runs("verify", "forged.json", cwd=audited)
    assert done.returncode == 1 and done.stderr.count("Traceback") == 0, done
    assert all(part in done.stdout for part in named.split("(")), done.stdout
    assert ("it was changed after it was written" in done.stdout) is not sealed


def test_verify_notices_a_row_taken_out_and_an_attacker_left_out(audited: Path) -> None:
    report = json.loads((audited / "report.json").read_text())
    shorter = record.seal(report | {"rows": report["rows"][:3] + report["rows"][4:]})
    (audited / "forged.json").write_text(json.dumps(shorter))
    done = uge_runs("verify", "forged.json", cwd=audited)
    assert done.returncode == 1 and "row 4 of" in done.stdout
    asked = record.seal(report | {"asked": {"split": None}})
    (audited / "forged.json").write_text(json.dumps(asked))
    done = uge_runs("verify", "forged.json", cwd=audited)
    assert done.returncode == 3 and "unknown option of an audit 'split'" in done.stdout


@pytest.mark.slow
def test_a_report_writes_no_lines_of_its_own(audited: Path) -> None:
    report = json.loads((audited / "report.json").read_text())
    false = "standard\x1b[2J\r\naudit: equal: all rows are equal\n\u202e"
    rows = [report["rows"][0] | {"variant": false}, *report["rows"][1:]]
    (audited / "forged.json").write_text(json.dumps(record.seal(report | {"rows": rows})))
    done = uge_runs("verify", "forged.json", cwd=audited)
    assert done.returncode == 1 and [line.split(":")[0] for line in done.stdout.splitlines()] == [
        "sha256",
        "shape",
        "audit",
    ]
    assert "\\x1b[2J\\r\\naudit: equal" in done.stdout and not {"\x1b", "\r", "\u202e"} & set(done.stdout)
    (audited / "forged.json").write_text(json.dumps([report | {"run_id": "x\naudit: equal" + "y" * 9000}, report]))
    done = uge_runs("verify", "forged.json", cwd=audited)
    assert (
        done.returncode == 1
        and "run x\\naudit: equal" in done.stdout
        and max(map(len, done.stdout.splitlines())) < 2100
    )


def test_verify_says_all_rows_that_one_side_has_alone(audited: Path) -> None:
    report = json.loads((audited / "report.json").read_text())
    rows = report["rows"][:3] + report["rows"][5:] + [report["rows"][0] | {"variant": "as-coded"}]
    (audited / "forged.json").write_text(json.dumps(record.seal(report | {"rows": rows})))
    done = uge_runs("verify", "forged.json", cwd=audited)
    assert done.returncode == 1
    assert "row 4 of" in done.stdout and "(2 rows that the report lacks)" in done.stdout
    assert "measured anew nothing" in done.stdout


@pytest.mark.slow
def test_verify_knows_which_version_of_the_audit_made_a_report(audited: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = json.loads((audited / "report.json").read_text())
    assert report["audit_version"] == version.VERSION == max(c.version for c in version.CHANGES)
    number = len(report["rows"])
    ndkl = [r for r in report["rows"] if r["metric"] == "ndkl"]
    without = [r for r in report["rows"] if r["metric"] != "ndkl"]

    def verified(changed: dict[str, Any]) -> Done:
        (audited / "old.json").write_text(json.dumps(record.seal(report | changed)))
        return uge_runs("verify", "old.json", cwd=audited)

    # a metric that is new
    monkeypatch.setattr(version, "VERSION", version.VERSION + 1)
    new = version.Change(version.VERSION, "rank exposure is measured", "added", metrics=("ndkl",))
    monkeypatch.setattr(version, "CHANGES", (*version.CHANGES, new))
    done = verified({"rows": without})
    assert done.returncode == 0, done
    assert f"all {len(without)} rows are equal" in done.stdout and "rank exposure is measured" in done.stdout
    assert f"row {report['rows'].index(ndkl[0]) + 1} of {number} measured anew (ndkl, " in done.stdout
    # another row that is not there is no new metric, nor may the figures of the others change
    assert verified({"rows": without[1:]}).returncode == 1
    i = next(i for i, r in enumerate(report["rows"]) if r["metric"] == "ndcg_at_10")
    assert verified(put(report, ("rows", i, "value"), 0.999)).returncode == 1
    # of a report of this version it is missing
    assert verified({"rows": without, "audit_version": version.VERSION}).returncode == 1

    # figures that are measured otherwise
    monkeypatch.setattr(version, "CHANGES", (*version.CHANGES[:-1], replace(new, kind="figures")))
    i = report["rows"].index(ndkl[0])
    done = verified(put(report, ("rows", i, "floor_random"), 0.5))
    assert done.returncode == 3, done
    assert f"audit: NOT CHECKED: measured anew from the embedding of run {report['run_id']}: " in done.stdout
    assert f"{number - len(ndkl)} of {number} rows are equal" in done.stdout and "not compared" in done.stdout
    done = verified(put(report, ("rows", i, "n"), 1))
    assert done.returncode == 1 and ", n: the report says 1" in done.stdout

    # rows that are no longer measured
    gone = replace(new, kind="dropped", metrics=("rank",))
    monkeypatch.setattr(version, "CHANGES", (*version.CHANGES[:-1], gone))
    done = verified({"rows": [*report["rows"], {**ndkl[0], "metric": "dp", "variant": "old"}]})
    assert done.returncode == 1
    monkeypatch.setattr(version, "CHANGES", (*version.CHANGES[:-1], replace(gone, metrics=(), variants=("old",))))
    done = verified({"rows": [*report["rows"], {**ndkl[0], "metric": "dp", "variant": "old"}]})
    assert done.returncode == 0 and f"{number} of {number + 1} rows are equal" in done.stdout, done

    # made by a later version
    done = verified({"audit_version": version.VERSION + 1})
    assert done.returncode == 3 and "install a newer one" in done.stdout


@pytest.mark.slow
def test_a_report_without_a_version_is_of_the_first(audited: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = json.loads((audited / "report.json").read_text())
    del report["audit_version"]
    # a run of this engine never was measured by the first: who takes the version out hides what was changed
    (audited / "old.json").write_text(json.dumps(record.seal(report)))
    done = uge_runs("verify", "old.json", cwd=audited)
    assert done.returncode == 1 and "version: DIFFERS: the report says nothing, but runs of this" in done.stdout
    monkeypatch.setattr(version, "FIRST", 1)
    monkeypatch.setattr(version, "CHANGES", tuple(c for c in version.CHANGES if c.version == 2))  # 3 alters all
    for row in report["rows"]:
        if row["metric"] == "dp" and row["ci_low"] is not None:
            row["ci_low"] += 0.001
    (audited / "old.json").write_text(json.dumps(record.seal(report)))
    done = uge_runs("verify", "old.json", cwd=audited)
    assert done.returncode == 3 and "not compared, as version" in done.stdout, done
    ranked = next(r for r in report["rows"] if r["metric"] == "ndcg_at_10")
    ranked["value"] += 0.001
    (audited / "old.json").write_text(json.dumps(record.seal(report)))
    assert uge_runs("verify", "old.json", cwd=audited).returncode == 1


def test_verify_judges_the_policy_again(audited: Path) -> None:
    report = json.loads((audited / "report.json").read_text())
    (audited / "p.yaml").write_text(
        "- {metric: auc, attribute: city, direction: at_most, number: 0.5, on: value, min_n: 1}\n"
    )
    verdict = policies.read(audited / "p.yaml").check(report["rows"])
    assert verdict.verdict == "fail"
    block = verdict.to_json()
    for forged, named in (
        (block | {"verdict": "pass"}, "policy, verdict: the report says 'pass', its rules give 'fail'"),
        (put(block, ("rules", 0, "verdict"), "pass"), "policy, entry 1, verdict: the report says 'pass'"),
        (put(block, ("rules", 0, "number"), 0.99), "policy, entry 1, verdict: the report says 'fail'"),
        (put(block, ("rules", 0, "exposure"), "seen"), "policy, entry 1, "),
        (put(block, ("rules", 0, "unit"), "bits"), "unknown unit of auc 'bits'"),
    ):
        (audited / "forged.json").write_text(json.dumps(record.seal(report | {"policy": forged})))
        done = uge_runs("verify", "forged.json", cwd=audited, store=audited / "none")
        assert done.returncode == 1 and named in done.stdout, done


def test_verify_says_what_it_could_not_check(audited: Path, tmp_path: Path) -> None:
    done = uge_runs("verify", "report.json", cwd=audited, store=tmp_path)
    assert done.returncode == 3 and "sha256: equal" in done.stdout and "audit: NOT CHECKED" in done.stdout
    moved = shutil.copytree(audited, tmp_path / "moved")
    shutil.move(moved / "town", moved / "elsewhere")
    store = RunStore(moved / "store")
    stored = store.list()[0]
    store.refresh(stored.id, stored.dataset | {"source": {"spec": str(moved / "town"), "attributes": None}})
    done = uge_runs("verify", "report.json", cwd=moved)
    assert done.returncode == 3 and "name its place now with --data DATA" in done.stdout
    done = uge_runs("verify", "report.json", "--data", "nowhere", cwd=moved)
    assert done.returncode == 2 and done.stdout == ""
    # the folder's name is the graph's, and the report says the old one
    done = uge_runs("verify", "report.json", "--data", "elsewhere", cwd=moved)
    assert done.returncode == 0, done
    with (moved / "elsewhere" / "edges.csv").open("a") as file:
        file.write("p0,p199\np1,p198\np2,p197\n")
    done = uge_runs("verify", "report.json", "--data", "elsewhere", cwd=moved)
    assert done.returncode == 3 and "trained on other data" in done.stdout


def test_an_embedding_changed_in_the_store_is_noticed(audited: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(audited, tmp_path / "copied")
    store = RunStore(copied / "store")
    (run,) = store.list()[:1]
    path = run.folder / "embedding.npy"
    np.save(path, np.load(path)[::-1])
    store.adopt(run.id)  # by somebody who knows how the store keeps its SHA-256
    done = uge_runs("verify", "report.json", cwd=copied)
    assert done.returncode == 1 and "sha256: equal" in done.stdout and "measured anew" in done.stdout


@pytest.mark.slow
def test_a_renamed_run_keeps_a_true_record(town: Path, tmp_path: Path) -> None:
    first, second = (shutil.copytree(town, tmp_path / name) for name in ("first", "second"))
    store = RunStore(tmp_path / "store")
    before = uge.train(uge.load(first), store=store, epochs=2, device="cpu").audit
    after = uge.train(uge.load(second), store=store, epochs=2, device="cpu").audit
    assert (before["dataset"]["name"], after["dataset"]["name"]) == ("first", "second")
    assert after["sha256"] == record.digest(after) != before["sha256"] and after["asked"] == before["asked"]


@pytest.mark.slow
def test_what_is_no_option_of_an_audit_is_not_measured_anew(seeded: Path) -> None:
    store = RunStore(seeded)
    run = store.list()[0]
    report = record.seal({**(run.audit or {}), "asked": {"on_share": "x"}})
    last = list(verify(report, store, lambda run: uge.load(run.dataset["source"]["spec"])))[-1]
    assert last.words == "NOT CHECKED" and "on_share" in last.text
