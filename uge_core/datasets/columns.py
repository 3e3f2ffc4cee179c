"""What a layout is, and the steps all layouts share: finding files, giving columns roles, making the graph.

A layout is one file of this folder with a constant ``LAYOUT``: the files it consists of, and a
function that reads one graph from them. Its ``read`` says which column has which role; `assign`
turns columns into attributes and features, `finish` makes the graph and counts what it dropped.

Roles that nobody named (kind "auto"): a column with 2 to 50 values is an attribute, so is text with
at most 200, at most 8 of them; decimal numbers never are, as they make no groups until bins do;
other numbers are features; the rest is ignored, and said. Columns
that the user names replace the attributes of any layout: what else would be one is ignored, so
that it does not get into the features either.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.arrays import FloatArray, IntArray
from uge_core.datasets.findings import decimal_numbers, probable_codes, words_not_given
from uge_core.datasets.layouts.base import Asked
from uge_core.datasets.tables import Table, as_numbers, counted, usable_names
from uge_core.errors import GraphError
from uge_core.graph.graph import NOT_APPLICABLE, UNKNOWN, Attribute, Column, Message, Side

Kind = Literal["id", "attribute", "feature", "label", "ignored", "auto"]
MAX_ATTRIBUTES = 8
MAX_VALUES = 50
MAX_TEXTS = 200
MANY_NUMBERS = 30
"""A numeric attribute with more values is offered bins."""
FEWEST_IDENTIFIERS = 10
"""In a smaller table values that are all different may be chance."""
MAX_FEATURE = 1e18
"""Squares of larger numbers overflow single precision."""
_MOST_CODES = 20
_MOST_DIGITS = 12  # behind the point, of the edges of bins
_CONSTANT = ("no value", "one value")
_NOT_NAMED = "not named by --attributes"
_TOO_LARGE = "values too large for a feature"
_OWN_VALUE = "every node has a value of its own"
_DECIMALS = "decimal numbers, which make no groups as they are"
_OVER_TIME = re.compile(r"<\[.*\]>")
"""Gephi writes ``<[2009, 2011, "a"]; [2011, 2013, "b"]>`` for a value over time, and ``<[2009, 2011]>`` for a time."""
BINS = "bins in dataset.yaml: quantile:5, width:10 or a list of edges"


@dataclass(frozen=True)
class Role:
    """What one column is, and how its cells are read.

    Attributes:
        kind: id, attribute, feature, label, ignored, or auto (decided by the values).
        name: the attribute's name; None: the column's.
        aliases: further names of the attribute.
        missing: cells that mean "not given" besides the empty one.
        bands: numbers at which a new band starts; empty: each value stands for itself.
        bins: "quantile:N" or "width:W", from which the bands follow.
        ordered: the values have an order.
        detail: said about the column.
    """

    kind: Kind
    name: str | None = None
    aliases: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    bands: tuple[float, ...] = ()
    bins: str = ""
    ordered: bool = False
    detail: str = ""


@dataclass(frozen=True, eq=False)
class NodeColumns:
    """What the columns of one or more tables became.

    Attributes:
        attributes: the attributes.
        features: (N, F) float32, or None.
        feature_names: the F names.
        columns: the role of each column.
        messages: what is worth knowing.
        edge_weights: (M,) the weight of each row of the edge file, or None where all count the same.
        directed: each row of the edge file runs from source to target.
    """

    attributes: tuple[Attribute, ...] = ()
    features: FloatArray | None = None
    feature_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    messages: tuple[Message, ...] = ()
    edge_weights: npt.NDArray[np.float64] | None = None
    directed: bool = False

    @classmethod
    def join(cls, parts: Sequence[NodeColumns]) -> NodeColumns:
        """All of `parts`, in order."""
        matrices = [p.features for p in parts if p.features is not None]
        return cls(
            tuple(a for p in parts for a in p.attributes),
            np.concatenate(matrices, axis=1) if matrices else None,
            tuple(n for p in parts for n in p.feature_names),
            tuple(c for p in parts for c in p.columns),
            tuple(m for p in parts for m in p.messages),
            next((p.edge_weights for p in parts if p.edge_weights is not None), None),
            any(p.directed for p in parts),
        )

    def with_unknown(self, more: int) -> NodeColumns:
        """The same with `more` nodes at the end whose attributes are unknown; their features are the means."""
        if not more:
            return self
        attributes = tuple(
            replace(a, codes=np.concatenate([a.codes, np.full(more, UNKNOWN, dtype=a.codes.dtype)]))
            for a in self.attributes
        )
        features = self.features
        if features is not None:
            means = features.mean(axis=0, dtype=np.float64).astype(np.float32)
            features = np.concatenate([features, np.tile(means, (more, 1))])
        return replace(self, attributes=attributes, features=features)

    def on_side(self, side: Side, start: int, num_nodes: int) -> NodeColumns:
        """The same, for a table of one side of a bipartite graph whose rows are nodes `start` and on."""

        def spread(a: Attribute) -> Attribute:
            codes = np.full(num_nodes, NOT_APPLICABLE, dtype=np.int64)
            codes[start : start + len(a.codes)] = a.codes
            return replace(a, codes=codes, side=side)

        # A matrix of one side alone has no rows for the other.
        unused = "features of one side alone are not used"
        columns = tuple(replace(c, role="ignored", detail=unused) if c.role == "feature" else c for c in self.columns)
        return replace(
            self, attributes=tuple(map(spread, self.attributes)), features=None, feature_names=(), columns=columns
        )


@dataclass(frozen=True, eq=False)
class _Cells:
    """One column's cells with what the rules of roles ask about them; `name` is the file's, `used` the graph's."""

    table: Table
    name: str
    used: str
    role: Role
    values: pd.Series = field(repr=False)

    @property
    def where(self) -> str:
        return f"{self.table.file}: column {self.name!r}"

    @cached_property
    def num_values(self) -> int:
        return int(self.values.nunique())

    @property
    def identifies(self) -> bool:
        """Whether every node has a value of its own."""
        return self.num_values == len(self.table) >= FEWEST_IDENTIFIERS

    @property
    def over_time(self) -> bool:
        """Whether the cells are times, or values that change over time."""
        given = self.values.dropna()
        return bool(len(given)) and all(_OVER_TIME.fullmatch(str(v)) for v in given)

    @property
    def numbers(self) -> npt.NDArray[np.float64] | None:
        """(M,) the cells as numbers with NaN for missing ones, or None when one of them is not a number."""
        for cells in (self.values.iloc[:1], self.values):  # of millions of texts the first says it already
            numbers = as_numbers(cells)
            if (np.isnan(numbers) & cells.notna().to_numpy()).any():
                return None
        return numbers

    @cached_property
    def decimal(self) -> bool:
        """Whether the cells are decimal numbers; see `decimal_numbers`."""
        if self.num_values > MAX_TEXTS and self.numbers is None:
            return False  # millions of texts are not looked at one by one
        return decimal_numbers(self.name, self.values)

    def became(self, role: str, detail: str = "") -> Column:
        """The column in the role `role`."""
        # "one value" stays as it is: `AttributedGraph.attribute` goes by it.
        renamed = self.used != self.name and detail not in _CONSTANT
        written = f"written {self.name!r} in the file" if renamed else ""
        return Column(self.table.file, self.used, role, "; ".join(filter(None, (detail, written))))


def assign(table: Table, roles: Mapping[str, Role], rest: Role, asked: Asked, *, replaces: bool = True) -> NodeColumns:
    """Turns the columns of a node table into attributes and features.

    Args:
        table: one row per node.
        roles: the role of columns by lower-case name.
        rest: the role of all others.
        asked: the columns that the user wants as attributes.
        replaces: whether those are then the only ones of this table; else they are added.

    Returns:
        Attributes with codes (N,), features (N, F), the role of each column, and messages.

    Raises:
        GraphError: a column asked for is continuous, constant, or has too many values.
    """
    cells = [
        _cells(table, name, used, roles.get(name.lower(), rest))
        for name, used in zip(table.names, usable_names(table.names), strict=True)
    ]
    wanted = [asked is not None and c.role.kind != "id" and _answers(c, asked) for c in cells]
    only_asked = asked is not None and replaces
    room = MAX_ATTRIBUTES - sum(wanted)
    out: list[NodeColumns] = []
    crowded_out: list[str] = []
    for column, forced in zip(cells, wanted, strict=True):
        kind, detail = column.role.kind, column.role.detail
        if forced:
            _check_asked(column)
            kind = "attribute"
        elif kind == "auto":
            kind, detail = _by_values(column)
            if kind == "attribute" and room <= 0 and not only_asked:
                crowded_out.append(column.used)
                kind, detail = "ignored", f"{MAX_ATTRIBUTES} columns before it are attributes already"
            room -= kind == "attribute"
        if only_asked and not forced and kind == "attribute" and column.num_values > 1:
            kind, detail = "ignored", _NOT_NAMED
        out.append(_become(column, kind, detail))
    columns = [c for part in out for c in part.columns]
    about = *table.messages, *_about_columns(table, cells, columns), *_about_values(table, cells, columns)
    out.append(NodeColumns(messages=about))
    if crowded_out:
        text = (
            f"{table.file}: {counted(len(crowded_out), 'further column')} could be attributes; the first "
            f"{MAX_ATTRIBUTES} were taken, the others are neither attributes nor features"
        )
        remedy = "name the ones you need with --attributes"
        limit = Message("warning", "attribute-limit", text, len(crowded_out), tuple(crowded_out[:5]), remedy)
        out.append(NodeColumns(messages=(limit,)))
    return NodeColumns.join(out)


def _about_columns(table: Table, cells: Sequence[_Cells], columns: Sequence[Column]) -> tuple[Message, ...]:
    """What is to be said about the columns of a table taken together."""
    messages: list[Message] = []
    renamed = [f"{c.name!r} is {c.used!r}" for c in cells if c.used != c.name and c.role.kind != "id"]
    if renamed:
        text = (
            f"{table.file}: {counted(len(renamed), 'column')} renamed, as names are separated by commas and plus signs"
        )
        remedy = "rename them in the file, or use the new names"
        messages.append(Message("note", "renamed-column", text, len(renamed), tuple(renamed[:5]), remedy))
    constant = [c.name for c in columns if c.role == "ignored" and c.detail in _CONSTANT]
    if constant:
        text = f"{table.file}: {counted(len(constant), 'column')} with fewer than two values ignored"
        remedy = "nothing to do; with one value there is nothing to compare"
        messages.append(Message("note", "constant-column", text, len(constant), tuple(constant[:5]), remedy))
    large = [c.name for c in columns if c.role == "ignored" and c.detail.startswith(_TOO_LARGE)]
    if large:
        text = f"{table.file}: {counted(len(large), 'column')} with numbers beyond {MAX_FEATURE:g} ignored"
        remedy = "rescale them, or write codes such as 1e300 for a missing value as an empty cell"
        messages.append(Message("warning", "large-values", text, len(large), tuple(large[:5]), remedy))
    return tuple(messages)


def _about_values(table: Table, cells: Sequence[_Cells], columns: Sequence[Column]) -> tuple[Message, ...]:
    """Identifiers, probable codes for a missing value, and numbers that bins would make groups of."""
    owners: list[str] = []
    codes: list[str] = []
    many: list[str] = []
    decimals: list[str] = []
    fed = False
    for cell, column in zip(cells, columns, strict=True):
        left_out = column.role in ("feature", "ignored") and cell.role.kind == "auto" and cell.num_values > 1
        if left_out and not column.detail.startswith(_TOO_LARGE) and cell.decimal:
            decimals.append(column.name)
        if column.detail == _OWN_VALUE:
            owners.append(column.name)
        if column.role in ("attribute", "ignored") and cell.role.kind in ("auto", "attribute"):
            # What means "not given" is frequent; an ignored column may hold a text for each node.
            often = cell.values.value_counts().head(MAX_TEXTS)
            words = words_not_given(cell.name, [v for v in often.index if isinstance(v, str)])
            codes += [f"{column.name}: {w}, {counted(int(often[w]), 'cell')}" for w in words]
        if column.role not in ("attribute", "feature") or cell.role.kind == "label":
            continue
        # Of an attribute the few values are looked at, of a feature all cells.
        shown = cell.values if column.role == "feature" else pd.Series(cell.values.dropna().unique(), dtype=object)
        numbers = as_numbers(shown)
        if np.isnan(numbers[shown.notna().to_numpy()]).any():
            continue
        if column.role == "feature" and cell.identifies and _counts_up(numbers):
            owners.append(column.name)
            fed = True
        found = probable_codes(cell.name, numbers)
        if found:
            every = as_numbers(cell.values)
            codes += [f"{column.name}: {c:g}, {counted(int((every == c).sum()), 'cell')}" for c in found]
        banded = bool(cell.role.bands or cell.role.bins)
        open_ended = (
            not banded if column.role == "attribute" else cell.role.kind == "auto" and owners[-1:] != [column.name]
        )
        if open_ended and cell.num_values > MANY_NUMBERS and column.name not in decimals:
            many.append(f"{column.name}: {cell.num_values:,}")
    messages: list[Message] = []
    if owners:
        text = (
            f"{table.file}: {counted(len(owners), 'column')} with another value for every node, an identifier "
            "and no group"
        )
        remedy = "leave it out of the features (ignore: in dataset.yaml)" if fed else "nothing to do; it is ignored"
        level: Literal["warning", "note"] = "warning" if fed else "note"
        messages.append(Message(level, "identifier-column", text, len(owners), tuple(owners[:5]), remedy))
    if codes:
        text = (
            f"{table.file}: {counted(len(codes), 'value')} that probably "
            f"{'means' if len(codes) == 1 else 'mean'} that nothing was given, but "
            f"{'counts' if len(codes) == 1 else 'count'} as {'a value' if len(codes) == 1 else 'values'}"
        )
        remedy = "declare it as missing: in dataset.yaml (the form of the Data page does), or leave these cells empty"
        messages.append(
            Message("warning", "probable-missing-code", text, len(codes), tuple(codes[:_MOST_CODES]), remedy)
        )
    if many:
        text = (
            f"{table.file}: {counted(len(many), 'numeric column')} with more than {MANY_NUMBERS} values; as "
            "groups they need bins"
        )
        messages.append(Message("note", "many-values", text, len(many), tuple(many[:5]), BINS))
    if decimals:
        text = (
            f"{table.file}: {counted(len(decimals), 'column')} of decimal numbers left out of the attributes, as such "
            "numbers make no groups until bins do"
        )
        messages.append(Message("note", "decimal-numbers", text, len(decimals), tuple(decimals[:_MOST_CODES]), BINS))
    return tuple(messages)


def _counts_up(numbers: npt.NDArray[np.float64]) -> bool:
    """Whether numbers that are all different are whole and dense, as row numbers are."""
    if np.isnan(numbers).any() or not (numbers == np.rint(numbers)).all():
        return False
    return bool(numbers.max() - numbers.min() < 10 * len(numbers))


def _cells(table: Table, name: str, used: str, role: Role) -> _Cells:
    """A column with its role, declared missing codes taken out."""
    if role.kind != "id" and (not name.strip() or name.startswith("Unnamed:")):
        # A table written with its row numbers has them in a column without a name; they describe nobody.
        role = Role("ignored", detail="no name in the header")
    values = table.frame[name]
    if role.missing:
        values = values.mask(values.isin(role.missing))
    return _Cells(table, name, used, role, values)


def _answers(column: _Cells, asked: frozenset[str]) -> bool:
    """Whether one of the names asked for means this column."""
    names = (column.used, column.name, column.role.name or column.used, *column.role.aliases)
    return not asked.isdisjoint(n.lower() for n in names)


def _by_values(column: _Cells) -> tuple[Kind, str]:
    """The role that a column's values suggest, and why when it is ignored."""
    n = column.num_values
    if column.over_time:
        return "ignored", "times, or values over time, are not read"
    if n > 1 and column.decimal:
        return ("ignored", _DECIMALS) if column.numbers is None else ("feature", "")
    if n <= MAX_VALUES and not column.identifies:
        return "attribute", ""
    if column.numbers is not None:
        return "feature", ""
    if n == len(column.table):
        return "ignored", _OWN_VALUE
    if n > MAX_TEXTS:
        return "ignored", f"{n:,} different texts; an attribute has at most {MAX_TEXTS}"
    return "attribute", ""


def _check_asked(column: _Cells) -> None:
    """Refuses a column that was asked for and cannot be an attribute."""
    n, where = column.num_values, column.where
    if n < 2:
        too_few = f"one value ({column.values.dropna().iloc[0]!r})" if n else "no value"
        raise GraphError(
            f"{where} has {too_few}; an attribute needs at least two groups to compare, choose another column"
        )
    if column.role.kind == "attribute":
        return
    numbers = column.numbers
    if numbers is not None and n > MAX_VALUES:
        with np.errstate(all="ignore"):
            quantiles = np.unique(np.nanquantile(numbers, [0.2, 0.4, 0.6, 0.8]))
        cuts = ", ".join(f"{q:g}" for q in quantiles[np.isfinite(quantiles)])
        raise GraphError(
            f"{where} is continuous ({n:,} different numbers); an attribute has at most {MAX_VALUES} values: "
            f"bin it first, for instance at {cuts} ({BINS})"
        )
    if n > MAX_TEXTS:
        raise GraphError(f"{where} has {n:,} different values; an attribute has at most {MAX_TEXTS}: group them first")


def _become(column: _Cells, kind: Kind, detail: str) -> NodeColumns:
    """What a column becomes in the role `kind`."""
    if kind == "attribute" and column.num_values < 2:
        return NodeColumns(columns=(column.became("ignored", _CONSTANT[column.num_values]),))
    if kind == "attribute" and column.num_values > MAX_TEXTS and not (column.role.bands or column.role.bins):
        detail = f"{column.num_values:,} different values; an attribute has at most {MAX_TEXTS}"
        text = f"{column.where} was ignored: {detail}"
        note = Message("warning", "too-many-values", text, 1, (column.used,), "bin it first")
        return NodeColumns(columns=(column.became("ignored", detail),), messages=(note,))
    if kind == "attribute":
        attribute = _attribute(column)
        said = [detail] if detail else []
        if column.role.bands or column.role.bins:
            said.append(f"in bands: {', '.join(attribute.labels)}")
        if column.role.missing and attribute.unknown.any():
            said.append(f"{attribute.unknown_label} means not given")
        if attribute.name != column.used:
            said.insert(0, f"called {attribute.name}")
        messages = () if column.role.bands or column.role.bins else _similar_values(column, attribute)
        return NodeColumns((attribute,), columns=(column.became(kind, "; ".join(said)),), messages=messages)
    if kind == "feature":
        return _feature(column, detail)
    return NodeColumns(columns=(column.became(kind, detail),))


def _feature(column: _Cells, detail: str) -> NodeColumns:
    """The feature of a column, where its cells are numbers that fit."""
    numbers = column.numbers
    if numbers is None:
        return NodeColumns(columns=(column.became("ignored", "text; features are numbers"),))
    empty = np.isnan(numbers)
    if empty.all():
        return NodeColumns(columns=(column.became("ignored", _CONSTANT[0]),))
    largest = np.nanmax(np.abs(numbers))
    if largest > MAX_FEATURE:
        detail = f"{_TOO_LARGE} (max {largest:g}, allowed {MAX_FEATURE:g})"
        return NodeColumns(columns=(column.became("ignored", detail),))
    if empty.any():
        numbers = np.where(empty, np.nanmean(numbers), numbers)
        detail = f"{counted(int(empty.sum()), 'empty cell')} filled with the mean"
    return NodeColumns(
        features=numbers.astype(np.float32)[:, None],
        feature_names=(column.used,),
        columns=(column.became("feature", detail),),
    )


def _similar_values(column: _Cells, attribute: Attribute) -> tuple[Message, ...]:
    """A warning where values differ only in blanks, in case, or in how one number is written."""
    groups: dict[str | Decimal, list[int]] = {}
    for i, label in enumerate(attribute.labels):
        groups.setdefault(_meaning(label), []).append(i)
    alike = [g for g in groups.values() if len(g) > 1]
    if not alike:
        return ()
    count = sum(map(len, alike))
    examples = [", ".join(f"{attribute.labels[i]!r}: {attribute.sizes[i]:,}" for i in g) for g in alike]
    text = f"{column.where}: {count} values differ only in blanks, case or the writing of a number; they stay apart"
    remedy = "write each value in one way if they mean the same"
    return (Message("warning", "similar-values", text, count, tuple(examples[:5]), remedy),)


def _meaning(label: str) -> str | Decimal:
    """What values that are probably the same one have in common."""
    text = " ".join(unicodedata.normalize("NFKC", label).split()).casefold()
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    return number if number.is_finite() else text


def _attribute(column: _Cells) -> Attribute:
    """The attribute of a column with at least two values."""
    role = column.role
    if role.bands or role.bins:
        codes, labels = _banded(column)
    else:
        codes, values = pd.factorize(column.values)
        labels = [str(v) for v in values]
        numbers = as_numbers(pd.Series(labels))
        order = np.lexsort((np.array(labels), numbers)) if not np.isnan(numbers).any() else np.argsort(np.array(labels))
        rank = np.empty(len(order) + 1, dtype=np.int64)
        rank[order] = np.arange(len(order))
        rank[-1] = UNKNOWN  # factorize marks a missing cell by -1, which indexes the last place
        codes, labels = rank[codes], [labels[i] for i in order]
    raw = column.table.frame[column.name]
    declared = raw[column.values.isna()].dropna()
    plain = "unknown" if "unknown" not in labels else "unknown (empty cell)"
    return Attribute(
        name=role.name or column.used,
        codes=codes,
        labels=tuple(labels),
        aliases=(*role.aliases, column.name) if column.used != column.name else role.aliases,
        unknown_label=str(declared.mode().iloc[0]) if len(declared) else plain,
        ordered=role.ordered or bool(role.bands or role.bins),
    )


def _banded(column: _Cells) -> tuple[IntArray, list[str]]:
    """Codes and labels of a numeric column cut into the role's bands; bands that nobody is in are left out."""
    numbers = as_numbers(column.values)
    wrong = np.isnan(numbers) & column.values.notna().to_numpy()
    if wrong.any():
        raise GraphError(
            f"{column.where} must hold numbers, found: {column.table.first_lines(wrong, column.name)}; "
            "correct these cells or leave them empty"
        )
    known = ~np.isnan(numbers)
    edges = column.role.bands or _bands(column, numbers[known])
    whole = bool((numbers[known] == np.rint(numbers[known])).all()) and all(e == int(e) for e in edges)
    inner = [
        (f"{low:.15g}" if low == high - 1 else f"{low:.15g}-{high - 1:.15g}")
        if whole
        else f"{low:.15g} to under {high:.15g}"
        for low, high in pairwise(edges)
    ]
    names = [f"under {edges[0]:.15g}", *inner, f"{edges[-1]:.15g}+"]
    band = np.searchsorted(edges, numbers, side="right")
    used = np.unique(band[known])
    return np.where(known, np.searchsorted(used, band), UNKNOWN).astype(np.int64), [names[i] for i in used]


def _bands(column: _Cells, numbers: npt.NDArray[np.float64]) -> tuple[float, ...]:
    """The edges of bins of equal size or of equal width."""
    rule, _, amount = column.role.bins.partition(":")
    if rule == "quantile":
        cuts = np.unique(np.quantile(numbers, np.arange(1, int(amount)) / int(amount)))
    else:
        width = float(amount)
        first, last = np.floor(numbers.min() / width) + 1, np.floor(numbers.max() / width)
        if not last - first < MAX_VALUES - 1:
            raise GraphError(
                f"{column.where}: bins of width {width:g} over {numbers.min():g} to {numbers.max():g} are more than "
                f"the {MAX_VALUES} allowed; take wider ones, or quantile:5"
            )
        cuts = np.arange(first, last + 1) * width
    if rule == "quantile":  # the same groups, and edges that read well
        cuts = np.ceil(cuts) if (numbers == np.rint(numbers)).all() else _short(cuts, np.unique(numbers))
        cuts = np.unique(cuts)
    cuts = cuts[(cuts > numbers.min()) & (cuts <= numbers.max())]
    if not len(cuts):
        raise GraphError(f"{column.where}: {column.role.bins} puts all values into one bin; take more or narrower bins")
    return tuple(map(float, cuts))


def _short(cuts: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Edges with the fewest digits that part the rising `values` as `cuts` do."""
    out = []
    for place in np.searchsorted(values, cuts):
        above = values[min(place, len(values) - 1)]
        below = values[place - 1] if place else -np.inf
        rounded = (float(np.floor(above * 10.0**digits) / 10.0**digits) for digits in range(_MOST_DIGITS))
        out.append(next((edge for edge in rounded if edge > below), float(above)))
    return np.array(out)
