"""``dataset.yaml``: a graph described by hand, for files that no layout fits and for what only people know.

Every key but ``edges`` and ``nodes`` (or ``users``) may be left out::

    name: my-town                  # what the graph is called; else like its folder
    licence: CC-BY-4.0             # repeated by `uge data inspect`
    source: survey of 2024         # the same
    edges:                         # one row per edge; or the file's name alone
      file: friends.csv            # in the folder of dataset.yaml: CSV, Parquet, plain or .gz; or .npz, a scipy matrix
      source: from                 # the column with one end; the user where there are users
      target: to                   # the other end
      weight: strength             # how much each edge counts; else a column called weight or w
      header: true                 # whether the first line names the columns; else unless it is like the lines below
      columns: [from, to, strength]  # what the columns are called; of a file without a header else 1, 2, 3
    nodes:                         # one row per node
      file: people.csv
      id: person                   # the column with the ids
    users:                         # instead of nodes: the first side of a bipartite graph
      file: users.csv
      id: person
    items:                         # its second side; else the ids in the edges
      file: titles.csv
      id: title
    sides:                         # a bipartite graph in one node file
      column: kind                 # the column that tells the sides apart
      users: person                # its value for the first side; any other is an item
    separator: ";"                 # one character, tab, or blank (any run of blanks and tabs); else by the first lines
    encoding: latin-1              # else utf-8
    directed: true                 # each row runs from source to target; else only a matrix can have directions
    unknown_nodes: drop            # of edges that name a node without a row: refuse (default), drop them, or add the node
    attributes:                    # exactly these columns; or a list of names
      age:
        missing: [0, -1]           # cells that mean "not given", besides the empty one
        bins: quantile:5           # or width:10, or a list of edges: [18, 35, 50]
        ordered: true              # the values have an order
      region: {}
    sensitive: [region]            # of the attributes, those an audit should begin with
    features: [income]             # exactly these numbers are input of a model
    ignore: [phone]                # neither attribute nor feature

The file is read by yaml's safe loader, without aliases and without keys that stand twice. Files
outside its folder are refused.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from uge_core.datasets.bounded import read_bytes
from uge_core.datasets.columns import Role
from uge_core.datasets.ids import UNKNOWN_NODES
from uge_core.errors import GraphError
from uge_core.files import StrictLoader
from uge_core.registry import unknown_name

FILE = "dataset.yaml"
SCHEMA: Mapping[str, str] = {
    "name": "text",
    "licence": "text",
    "source": "text",
    "edges.file": "file name",
    "edges.source": "text",
    "edges.target": "text",
    "edges.weight": "text",
    "edges.header": "true or false",
    "edges.columns": "list of names",
    "nodes.file": "file name",
    "nodes.id": "text",
    "nodes.header": "true or false",
    "nodes.columns": "list of names",
    "users.file": "file name",
    "users.id": "text",
    "users.header": "true or false",
    "users.columns": "list of names",
    "items.file": "file name",
    "items.id": "text",
    "items.header": "true or false",
    "items.columns": "list of names",
    "sides.column": "text",
    "sides.users": "text",
    "separator": "one character, tab, or blank",
    "encoding": "encoding",
    "directed": "true or false",
    "unknown_nodes": "refuse, drop, or add",
    "attributes": "list of names, or a mapping of names",
    "attributes.*.missing": "list of values",
    "attributes.*.bins": "quantile:N, width:W, or a list of rising numbers",
    "attributes.*.ordered": "true or false",
    "sensitive": "list of names",
    "features": "list of names",
    "ignore": "list of names",
}
"""Every key with what it holds; ``*`` stands for a column's name."""

_MOST_BYTES = 2**20


@dataclass(frozen=True)
class Card:
    """A checked dataset.yaml: `values` by dotted key, as `SCHEMA` has them, and the attributes' own settings.

    Attributes:
        values: by dotted key; keys that are not there are left out.
        attributes: the roles by name, or None where the card names none.
    """

    values: Mapping[str, Any]
    attributes: Mapping[str, Role] | None

    def get(self, key: str) -> Any:
        """The value of a key, or None."""
        return self.values.get(key)

    def names(self, key: str) -> tuple[str, ...]:
        """A list of names, empty where the key is not there."""
        return tuple(self.values.get(key) or ())


def read_card(path: Path) -> Card:
    """Reads and checks a dataset.yaml.

    Raises:
        GraphError: it is no YAML, has an unknown key, or a key holds something else than `SCHEMA` says.
    """
    try:
        return parse_card(path, read_bytes(path, _MOST_BYTES).decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise GraphError(f"{path.name}: is not UTF-8 text; save it in that encoding") from None
    except OSError as e:
        raise GraphError(f"{path.name}: cannot be read ({e.strerror or e})") from None


def files_of(path: Path) -> tuple[Path, ...]:
    """The files that a dataset.yaml names and that are there, plain or gzipped.

    Raises:
        GraphError: as for `read_card`.
    """
    named = [written for key, written in read_card(path).values.items() if key.endswith(".file")]
    either = (path.parent / name for written in named for name in (written, f"{written}.gz"))
    return tuple(dict.fromkeys(file for file in either if file.is_file()))


def parse_card(path: Path, text: str) -> Card:
    """The card that `text` is, checked as the file `path` would be.

    Raises:
        GraphError: as for `read_card`.
    """
    try:
        content = yaml.load(text, StrictLoader)
    except yaml.MarkedYAMLError as e:
        line = f"line {e.problem_mark.line + 1}: " if e.problem_mark else ""
        raise GraphError(f"{path.name}: {line}{e.problem}; see docs/data.md, Describing a dataset") from None
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        reason = (str(e).strip().splitlines() or ["too deep"])[0]
        raise GraphError(f"{path.name}: cannot be read as YAML ({reason})") from None
    if not isinstance(content, dict) or not content:
        raise GraphError(f"{path.name}: found {_shown(content)}; a mapping with the keys edges and nodes is needed")
    values: dict[str, Any] = {}
    attributes = _collect(path, content, "", values)
    _check_whole(path, values, attributes)
    return Card(values, attributes)


def _collect(path: Path, content: dict[Any, Any], prefix: str, values: dict[str, Any]) -> dict[str, Role] | None:
    """Puts checked values under their dotted keys; returns the attributes' roles."""
    attributes: dict[str, Role] | None = None
    allowed = list(dict.fromkeys(k.removeprefix(prefix).split(".")[0] for k in SCHEMA if k.startswith(prefix)))
    for key, value in content.items():
        if key not in allowed:
            where = f" in {prefix.rstrip('.')}" if prefix else ""
            raise GraphError(f"{path.name}: {unknown_name(f'key{where}', str(key), allowed)}")
        dotted = f"{prefix}{key}"
        if dotted == "attributes" and isinstance(value, dict):
            attributes = {name: _attribute(path, name, own) for name, own in _named(path, dotted, value)}
        elif dotted == "attributes":
            attributes = {name: Role("attribute") for name in _check(path, dotted, "list of names", value)}
        elif dotted in SCHEMA:
            values[dotted] = _check(path, dotted, SCHEMA[dotted], value)
        elif isinstance(value, str) and f"{dotted}.file" in SCHEMA:
            values[f"{dotted}.file"] = _check(path, f"{dotted}.file", "file name", value)
        elif isinstance(value, dict):
            _collect(path, value, f"{dotted}.", values)
        else:
            inner = ", ".join(k.removeprefix(f"{dotted}.") for k in SCHEMA if k.startswith(f"{dotted}."))
            raise mistyped(path, dotted, value, f"a mapping with the keys {inner}")
    return attributes


def _named(path: Path, key: str, content: dict[Any, Any]) -> Iterable[tuple[str, Any]]:
    """The items of a mapping whose keys are names of columns."""
    for name, own in content.items():
        yield _name(path, key, name), own


def _attribute(path: Path, name: str, own: Any) -> Role:
    """The role that one attribute's settings describe."""
    key = f"attributes.{name}"
    if own is None:
        own = {}
    if not isinstance(own, dict):
        raise mistyped(path, key, own, "a mapping with the keys missing, bins, ordered")
    kinds = {k.rpartition(".")[2]: v for k, v in SCHEMA.items() if k.startswith("attributes.*.")}
    for setting in own:
        if setting not in kinds:
            raise GraphError(f"{path.name}: {unknown_name(f'key in {key}', str(setting), list(kinds))}")
    checked = {s: _check(path, f"{key}.{s}", kinds[s], v) for s, v in own.items()}
    bins = checked.get("bins", "")
    return Role(
        "attribute",
        missing=tuple(map(_plain, checked.get("missing", ()))),
        bands=bins if isinstance(bins, tuple) else (),
        bins=bins if isinstance(bins, str) else "",
        ordered=checked.get("ordered", False),
    )


def _check(path: Path, key: str, kind: str, value: Any) -> Any:
    """A value of the kind that the schema says."""
    wrong = mistyped(path, key, value, kind)
    if kind == "true or false":
        if not isinstance(value, bool):
            raise wrong
        return value
    if kind.startswith("list of"):
        if not isinstance(value, list):
            raise wrong
        if kind == "list of names":
            return tuple(_name(path, key, v) for v in value)
        if any(isinstance(v, bool | list | dict) or v is None for v in value):
            raise mistyped(
                path, key, value, "list of numbers and texts (write yes, no, true, false and null in quotes)"
            )
        return tuple(value)
    if kind.startswith("quantile"):
        return _bins(wrong, value)
    text = str(value)
    if isinstance(value, bool | list | dict) or value is None or not (text.strip() or (key == "separator" and text)):
        raise wrong
    if kind == "one character, tab, or blank":
        text = {"tab": "\t", "blank": " "}.get(text, text)
        if len(text) != 1 or text in '"\r\n' or not text.isascii():
            raise wrong
    elif kind == "refuse, drop, or add":
        if text not in UNKNOWN_NODES:
            raise wrong
    elif kind == "encoding":
        try:
            text = "utf-8-sig" if codecs.lookup(text).name == "utf-8" else codecs.lookup(text).name
            "a".encode(text).decode(text)
        except (LookupError, TypeError, ValueError, UnicodeError):
            raise mistyped(path, key, value, "the name of a text encoding, such as utf-8 or latin-1") from None
    elif kind == "file name" and (
        re.match(r"[/\\~]|[A-Za-z]:", text) or ".." in re.split(r"[/\\]", text) or "\0" in text
    ):
        raise mistyped(path, key, value, "a file in the folder of dataset.yaml, or below it")
    return text


def _bins(wrong: GraphError, value: Any) -> str | tuple[float, ...]:
    """A rule for bins, or their edges."""
    if isinstance(value, list):
        numbers = [v for v in value if isinstance(v, int | float) and not isinstance(v, bool) and np.isfinite(v)]
        if not numbers or len(numbers) < len(value) or any(b <= a for a, b in pairwise(numbers)):
            raise wrong
        return tuple(float(v) for v in numbers)
    rule, _, amount = str(value).partition(":")
    count = amount.strip()
    if rule == "quantile" and count.isdecimal() and 2 <= int(count) <= 50:
        return f"quantile:{int(count)}"
    if rule == "width" and re.fullmatch(r"\d{1,15}(\.\d{1,15})?", count) and float(count) > 0:
        return f"width:{count}"
    raise wrong


def _name(path: Path, key: str, value: Any) -> str:
    """The name of a column."""
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise mistyped(path, key, value, "names of columns (write yes, no, true, false and null in quotes)")


def _plain(value: Any) -> str:
    """A missing code as a cell would have it."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def mistyped(path: Path, key: str, value: Any, allowed: str) -> GraphError:
    """The error about a value of the wrong kind."""
    return GraphError(f"{path.name}: {key}: found {_shown(value)}; allowed: {allowed}")


def _shown(value: Any) -> str:
    """A value fit for a message."""
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _check_whole(path: Path, values: dict[str, Any], attributes: dict[str, Role] | None) -> None:
    """Refuses keys that contradict each other."""
    for key in SCHEMA:
        part, _, rest = key.partition(".")
        if rest == "file" and key not in values and any(k.startswith(f"{part}.") for k in values):
            raise GraphError(f"{path.name}: {key} is missing; it must name a file")
    if "edges.file" not in values:
        raise GraphError(f"{path.name}: edges is missing; it must name the file with one row per edge")
    if ("nodes.file" in values) == ("users.file" in values):
        raise GraphError(f"{path.name}: name either nodes, or users (and items) for a bipartite graph")
    if "items.file" in values and "users.file" not in values:
        raise GraphError(f"{path.name}: items needs users, the other side")
    if ("sides.column" in values) != ("sides.users" in values):
        raise GraphError(f"{path.name}: sides needs both column and users")
    if "sides.column" in values and "users.file" in values:
        raise GraphError(
            f"{path.name}: sides is for a bipartite graph in one node file; leave it out where users have their own"
        )
    lists = {"attributes": list(attributes or ()), **{k: list(values.get(k, ())) for k in ("features", "ignore")}}
    owner: dict[str, str] = {}
    for key, names in lists.items():
        for name in names:
            if name.lower() in owner:
                raise GraphError(f"{path.name}: {name} stands in {owner[name.lower()]} and again in {key}; keep one")
            owner[name.lower()] = key
    for name in values.get("sensitive", ()):
        if attributes is not None and name.lower() not in {a.lower() for a in attributes}:
            raise GraphError(f"{path.name}: sensitive: {unknown_name('attribute', name, list(attributes))}")
