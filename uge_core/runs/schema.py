"""The JSON schema of a record, `uge-audit/1`, made from the dataclasses that a record is written from.

Names, types and words of a row, a cell, a rule and a config are those of `Row`, `Cell`, `Rule` and `RunConfig`; what a
record has around them stands here. ``python -m uge_core.runs.schema`` writes audit/uge-audit-1.json, which records are
checked against and which readers elsewhere can take; a test says that the file is this.

A record stays valid: what is added here is no required field, and nothing that was allowed may be left out.
"""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import fields
from importlib import resources
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from uge_core.audit.base import METRICS, Cell, Row
from uge_core.audit.policy import EXIT_CODES, NO_ROW, Rule
from uge_core.audit.record import NAME, SCHEMA_FILE
from uge_core.registry import names
from uge_core.training.config import RunConfig

Schema = dict[str, Any]

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", tuple: "array", dict: "object"}
_TYPES |= {type(None): "null"}
_SHARE: Schema = {"minimum": 0, "maximum": 1}
_NOT_NEGATIVE: Schema = {"minimum": 0}
_POSITIVE: Schema = {"minimum": 1}
_HEX = "^[0-9a-f]{%d}$"


def schema() -> Schema:
    """The whole schema."""
    attackers = [*names("audit.attackers"), "worst"]
    row = _fields(
        Row,
        metric={"enum": [*METRICS]},
        attacker={"enum": [*attackers, None]},
        exposure={"enum": ["seen", "unseen", None]},
        ci_kind={"enum": ["nodes", "seeds", "splits", None]},
        n=_NOT_NEGATIVE,
        n_seeds=_POSITIVE,
        p_value=_SHARE,
        cells={"items": {"$ref": "#/$defs/cell"}},
    )
    cell = _fields(Cell, value=_SHARE, n=_NOT_NEGATIVE)
    rule = {
        "rule": _number("Its place in the policy file; a rule about * has an entry per attribute.", 1),
        **_fields(
            Rule,
            direction={"enum": ["at_most", "at_least"]},
            min_n=_POSITIVE,
            max_width=_NOT_NEGATIVE,
            on={"enum": ["interval", "value"]},
        ),
        "verdict": _text("What came of it; no row: an optional rule that nothing fits.", enum=[*EXIT_CODES, NO_ROW]),
        "sentence": _text("The same in words, with the interval's role."),
    }
    dataset = {
        "name": _text("What it is called."),
        "fingerprint": _text("SHA-256 of its content.", pattern=_HEX % 64),
        "num_nodes": _number("Nodes, of both sides where there are two.", 1),
        "num_edges": _number("Edges, each counted once.", 0),
    }
    policy = {
        "name": _text("The file's name."),
        "sha256": _text("SHA-256 of the file's bytes.", pattern=_HEX % 64),
        "verdict": _text(
            "A failed rule fails all, else a rule without enough evidence leaves all without.", enum=[*EXIT_CODES]
        ),
        "rules": _list({"$ref": "#/$defs/rule"}, "Every rule with what it came to."),
    }
    asked = {
        "attributes": _list({"type": "string"}, "The attributes audited; null: all.", or_else="null"),
        "attackers": _list({"type": "string"}, "The attackers tried."),
        "crossings": _list(
            {"type": "string"}, "The attributes audited two at a time, as a+b; true: all pairs.", or_else="boolean"
        ),
        "people": {
            "type": "integer",
            "minimum": 1,
            "description": "How many people were drawn to be measured; all were where it is not said.",
        },
        "exact": {"type": "boolean", "description": "Whether nobody was left out, so that counts may point at people."},
        "sizes": {
            "type": "object",
            "description": "By attribute, people told of each group, where that follows from what was told before.",
            "additionalProperties": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
        },
    }
    config = _config()
    record = {
        "schema": _text("The name of this format.", const=NAME),
        "audit_version": _number("Which version of the audit measured the rows; 1 where it is not said.", 1),
        "run_id": _text("The run's id in its store.", pattern=_HEX % 12),
        "dataset": _object("The graph.", dataset),
        "config": _object(
            "What decides the run's numbers besides the data; an embedding from elsewhere has the fields that are "
            "required, score and file.",
            config,
            required=["dataset", "sensitive", "backbone", "method", "lambda", "dim", "split_seed"],
        ),
        "asked": {
            "type": "object",
            "description": "What the audit was asked for: attackers, attributes and others; null is all.",
            "properties": asked,
        },
        "disclosure": _text("Where the figures are exact, that they are not to be passed on."),
        "only": _list({"type": "string"}, "Where only the rows about some attributes were kept, which."),
        "rows": _list({"$ref": "#/$defs/row"}, "The measured numbers."),
        "policy": _object("What a policy file says of these rows.", policy),
        "sha256": _text(
            "SHA-256 of the canonical bytes of this record without this field: UTF-8, keys sorted by code point, no "
            "spaces, integers as such, floats as the shortest decimal that reads back the same.",
            pattern=_HEX % 64,
        ),
    }
    about = (
        "The audit of one embedding of a graph's nodes: what it gives away, how unequal its predictions are, "
        "and at what cost."
    )
    required = ["schema", "run_id", "dataset", "config", "rows", "sha256"]
    return {
        "$schema": Draft202012Validator.META_SCHEMA["$id"],
        "$id": "urn:uge:audit:1",
        "title": NAME,
        **_object(about, record, required=required),
        "$defs": {
            # Records of versions before `floor_degree` lack it.
            "row": _object(
                "One measured number and what it takes to read it; null where a field does not apply.",
                row,
                required=[n for n in row if n != "floor_degree"],
            ),
            # Records of versions before `withheld` lack it.
            "cell": _object("A pair of groups, or one group.", cell, required=[n for n in cell if n != "withheld"]),
            "rule": _object("One rule on one row.", rule),
        },
    }


def _config() -> dict[str, Schema]:
    """A run's config, as JSON calls its fields; and what an embedding from elsewhere has beside."""
    own = _fields(
        RunConfig,
        lam=_NOT_NEGATIVE,
        warm_from=_NOT_NEGATIVE,
        split_seed={"type": ["integer", "null"]},
        unknown={"enum": ["level", "exclude", "impute"]},
        hidden={"enum": ["impute", "exclude", None]},
        exposure={"enum": ["both", "seen"]},
    )
    for spec in fields(RunConfig):
        own[spec.name] |= _bounds(own[spec.name]["type"], spec.metadata)
    return {"lambda" if name == "lam" else name: field for name, field in own.items()} | {
        "score": _text("Of an embedding from elsewhere, the score of a pair of nodes.", enum=["dot", "cosine"]),
        "file": _text("Of an embedding from elsewhere, the name of its file."),
    }


def _bounds(kind: Any, option: Any) -> Schema:
    """What an option allows, for ever: its choices and the ends that no version moves."""
    if option.get("choices"):
        return {"enum": [*option["choices"]]}
    if option.get("low") is None:
        return {}
    if kind != "number":
        return {"minimum": option["low"]}
    return _SHARE if option["high"] is not None and option["high"] < 1 else _NOT_NEGATIVE


def _fields(cls: type, **more: Schema) -> dict[str, Schema]:
    """By field of a dataclass: its type, what its docstring or option says, and `more`."""
    hints = get_type_hints(cls)
    said = _said(cls) | {f.name: f.metadata["help"] for f in fields(cls) if f.metadata}
    return {
        f.name: _typed(hints[f.name]) | {"description": _sentence(said[f.name])} | more.get(f.name, {})
        for f in fields(cls)
    }


def _said(cls: type) -> dict[str, str]:
    """By field, what the docstring's list of attributes says of it."""
    listed = inspect.cleandoc(cls.__doc__ or "").partition("Attributes:\n")[2]
    entries = re.split(r"^ {4}(?=\w+: )", listed, flags=re.MULTILINE)[1:]
    return {name: " ".join(text.split()) for name, _, text in (entry.partition(": ") for entry in entries)}


def _typed(hint: Any) -> Schema:
    """The part of a schema that an annotation says."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    words = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
    kinds = ["string" if get_origin(part) is Literal else _TYPES[get_origin(part) or part] for part in parts]
    typed: Schema = {"type": kinds[0] if len(kinds) == 1 else kinds}
    if words:
        typed["enum"] = words + [None] * ("null" in kinds)
    return typed | ({"items": {"type": "string"}} if hint == tuple[str, ...] else {})


def _sentence(text: str) -> str:
    text = text.replace("`", "")
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _object(about: str, properties: dict[str, Schema], *, required: list[str] | None = None) -> Schema:
    """An object with these fields and no others; all are required unless said otherwise."""
    needed = [*properties] if required is None else required
    return {
        "type": "object",
        "description": about,
        "additionalProperties": False,
        "required": needed,
        "properties": properties,
    }


def _text(about: str, **more: Any) -> Schema:
    return {"type": "string", "description": about, **more}


def _number(about: str, least: int) -> Schema:
    return {"type": "integer", "description": about, "minimum": least}


def _list(items: Schema, about: str, *, or_else: str | None = None) -> Schema:
    return {"type": "array" if or_else is None else ["array", or_else], "items": items, "description": about}


if __name__ == "__main__":
    path = Path(str(resources.files("uge_core.audit").joinpath(SCHEMA_FILE)))
    path.write_text(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
