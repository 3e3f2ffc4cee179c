"""The paper's tables and figures as recipes: what is trained, what was published, what the paper says of it.

A recipe is a YAML file beside this one:

    title: Micro-F1 on Pokec-n
    source: Table "Unbiasedness evaluated by Micro-F1", Sec. 6.2
    data: pokec-n
    nodes: 66569
    backbones: [node2vec]
    attributes: [gender, region, AGE]
    settings: {epochs: 800}
    seeds: [0, 1, 2]
    columns:
      - {label: No Debiasing, run: none}
      - {label: CFC, run: "cfc:55", jointly: true}
      - {label: Random}
    published:
      - {backbone: node2vec, attribute: region, figure: micro_f1, values: [0.8690, 0.8423, 0.4987]}
    claims:
      - {words: ..., figure: micro_f1, less: [CFC], than: [No Debiasing], attributes: [region]}
    panels: [[micro_f1, ndcg]]
    left_open:
      - what the paper does not say, and what was taken

A column without `run` is the audit's random embedding: nothing is trained for it. `like: table-pokec-n` takes what a
recipe does not say from another; `more_claims` stand behind the claims. `joint_attributes` are what columns with `jointly`
treat, where that is more than `attributes`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from typing import Any

import yaml

from uge_core.errors import ConfigError
from uge_core.registry import unknown_name
from uge_core.runs.entry import Entry
from uge_core.runs.kept_rows import read_rows

SCHEMA = "uge-paper/1"
FIGURES = ("micro_f1", "ndcg", "dp", "eo")
"""What a recipe can publish and claim; `reproduce` says what each is as published and as we measure."""
PANELS = (*FIGURES, "lambda", "projection")


@dataclass(frozen=True)
class Column:
    """A method of a table, or the random embedding.

    Attributes:
        label: as the paper has it.
        entry: method, lambda and settings; None for the random embedding.
        jointly: it treats the recipe's joint attributes at once, not the one that is looked at.
        settings: of training, in place of the recipe's.
    """

    label: str
    entry: Entry | None = None
    jointly: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """A sentence that figures can confirm or contradict.

    Attributes:
        words: what the paper says, shortened; where `ours`, what this package asks.
        figure: of `FIGURES`, lower is better but for "ndcg".
        less: labels of columns whose figure is to be less.
        than: than each of these.
        attributes: for which attributes.
        path: in place of less and than: two series of columns. Most of the second are to be beaten by some of the
            first, in both less Micro-F1 and more NDCG@10, and none of the first by one of the second.
        mostly: the paper says so of most cases, not of all.
        ours: the paper does not say it.
    """

    words: str
    figure: str
    attributes: tuple[str, ...]
    less: tuple[str, ...] = ()
    than: tuple[str, ...] = ()
    path: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    mostly: bool = False
    ours: bool = False


@dataclass(frozen=True)
class Recipe:
    """A table or a figure of the paper.

    Attributes:
        name: as it is typed.
        title: what it shows.
        source: where the paper has it.
        data: the graph's name.
        nodes: how many nodes it has, so that another graph is not taken for it; 0: any graph.
        backbones: embedding models.
        attributes: sensitive attributes, each looked at for itself.
        joint_attributes: what columns with `jointly` treat.
        columns: methods.
        settings: of training.
        seeds: initialisations.
        published: by backbone, attribute, figure and column's label, the published number.
        claims: what the paper says of them.
        panels: the axes of its picture, "lambda" and figures.
        left_open: what the paper leaves open, and what was taken.
    """

    name: str
    title: str
    source: str
    data: str
    nodes: int
    backbones: tuple[str, ...]
    attributes: tuple[str, ...]
    joint_attributes: tuple[str, ...]
    columns: tuple[Column, ...]
    settings: Mapping[str, Any]
    seeds: tuple[int, ...]
    published: Mapping[tuple[str, str, str, str], float]
    claims: tuple[Claim, ...]
    panels: tuple[tuple[str, ...], ...]
    left_open: tuple[str, ...]

    @property
    def untreated(self) -> Column | None:
        """No debiasing, which the others are compared with."""
        return next((c for c in self.columns if c.entry and c.entry.method == "none"), None)

    def settings_of(self, column: Column) -> dict[str, str]:
        """What a column is trained with."""
        return {key: str(value) for key, value in {**self.settings, **column.settings}.items()}

    def column(self, label: str) -> Column:
        """The column of this label."""
        return next(c for c in self.columns if c.label == label)


def recipe_names() -> tuple[str, ...]:
    """The recipes of the package, tables first."""
    found = [f.name.removesuffix(".yaml") for f in _folder().iterdir() if f.name.endswith(".yaml")]
    return tuple(sorted(found, key=lambda name: (not name.startswith("table"), name)))


def recipe(name: str) -> Recipe:
    """The recipe of this name.

    Raises:
        ConfigError: there is none.
    """
    if name not in recipe_names():
        raise ConfigError(unknown_name("recipe", name, recipe_names()))
    return parse_recipe(name, _text(name))


def shipped_rows(data: str) -> list[dict[str, Any]]:
    """The rows of a graph that come with the package."""
    with as_file(files("uge_core.runs") / "reproduced" / f"{data}.jsonl") as path:
        return read_rows(path, SCHEMA)[0]


def parse_recipe(name: str, text: str) -> Recipe:
    """A recipe from YAML.

    Raises:
        ConfigError: a key that is none, one that is missing, or a name that the recipe does not have.
    """
    given = _whole(yaml.safe_load(text))
    need, may = ("title", "source", "data", "attributes", "columns"), ("nodes", "backbones", "settings", "seeds")
    more = ("joint_attributes", "published", "claims", "more_claims", "panels", "left_open")
    _only(name, given, (*need, *may, *more), need)
    columns = tuple(_column(name, one) for one in given["columns"])
    labels = tuple(c.label for c in columns)
    backbones, attributes = tuple(given.get("backbones", ("node2vec",))), tuple(given["attributes"])
    published: dict[tuple[str, str, str, str], float] = {}
    for row in given.get("published", ()):
        _only(name, row, ("backbone", "attribute", "figure", "values"), ("backbone", "attribute", "figure", "values"))
        _among(name, "backbone", [row["backbone"]], backbones)
        _among(name, "attribute", [row["attribute"]], attributes)
        _among(name, "figure", [row["figure"]], FIGURES)
        if len(row["values"]) != len(labels):
            raise ConfigError(f"{name}: {len(row['values'])} published values for {len(labels)} columns in {row}")
        at = row["backbone"], row["attribute"], row["figure"]
        published.update({(*at, label): float(v) for label, v in zip(labels, row["values"], strict=True)})
    if any(not math.isfinite(v) for v in published.values()):
        raise ConfigError(f"{name}: a published value is not finite")
    claims = tuple(
        _claim(name, one, labels, attributes) for one in (*given.get("claims", ()), *given.get("more_claims", ()))
    )
    panels = tuple(tuple(p) for p in given.get("panels", ()))
    for panel in panels:
        _among(name, "axis", panel, PANELS)
    return Recipe(
        name,
        given["title"],
        given["source"],
        given["data"],
        int(given.get("nodes", 0)),
        backbones,
        attributes,
        tuple(given.get("joint_attributes", attributes)),
        columns,
        dict(given.get("settings", {})),
        tuple(given.get("seeds", (0, 1, 2))),
        published,
        claims,
        panels,
        tuple(given.get("left_open", ())),
    )


def _folder() -> Any:
    return files("uge_core.runs") / "recipes"


def _text(name: str) -> str:
    text: str = _folder().joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return text


def _whole(given: Any) -> Any:
    """With what it takes from the recipe that it is like."""
    if not isinstance(given, dict) or "like" not in given:
        return given
    return _whole(yaml.safe_load(_text(given["like"]))) | {k: v for k, v in given.items() if k != "like"}


def _column(name: str, given: Mapping[str, Any]) -> Column:
    _only(name, given, ("label", "run", "jointly", "settings"), ("label",))
    entry = Entry.parse(str(given["run"])) if "run" in given else None
    return Column(given["label"], entry, bool(given.get("jointly", False)), dict(given.get("settings", {})))


def _claim(name: str, given: Mapping[str, Any], labels: Sequence[str], attributes: tuple[str, ...]) -> Claim:
    _only(name, given, ("words", "figure", "less", "than", "attributes", "path", "mostly", "ours"), ("words",))
    path = given.get("path")
    claim = Claim(
        given["words"],
        given.get("figure", "micro_f1"),
        tuple(given.get("attributes", attributes)),
        tuple(given.get("less", ())),
        tuple(given.get("than", ())),
        None if path is None else (tuple(path[0]), tuple(path[1])),
        bool(given.get("mostly", False)),
        bool(given.get("ours", False)),
    )
    _among(name, "figure", [claim.figure], FIGURES)
    _among(name, "attribute", claim.attributes, attributes)
    _among(name, "column", [*claim.less, *claim.than, *(c for side in claim.path or () for c in side)], labels)
    return claim


def _only(name: str, given: Any, allowed: Sequence[str], needed: Sequence[str]) -> None:
    if not isinstance(given, dict):
        raise ConfigError(f"{name}: {str(given)[:60]!r} is no mapping; keys: {', '.join(allowed)}")
    for key in given:
        if key not in allowed:
            raise ConfigError(f"{name}: {unknown_name('key', str(key), tuple(allowed))}")
    if missing := [key for key in needed if key not in given]:
        raise ConfigError(f"{name}: {', '.join(missing)} missing in {str(given)[:80]}")


def _among(name: str, what: str, given: Sequence[str], allowed: Sequence[str]) -> None:
    for one in given:
        if one not in allowed:
            raise ConfigError(f"{name}: {unknown_name(what, str(one), tuple(allowed))}")
