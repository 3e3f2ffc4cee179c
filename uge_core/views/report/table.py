"""The rows of several records as one CSV table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from itertools import zip_longest
from threading import Lock
from typing import Any

from uge_core.audit.base import Cell, Row
from uge_core.errors import RecordError
from uge_core.files import quoted
from uge_core.graph.suppression import SUPPRESSED, is_suppressed

_ROW = [f.name for f in fields(Row) if f.name != "cells"]
_CELL = [f.name for f in fields(Cell)]
_NAMING = ("run_id", "kind", "scenario", "metric", "attribute", "attacker", "variant", "exposure", "group_a", "group_b")
_NUMBERS = {"value", "ci_low", "ci_high", "n", "p_value", "floor_random", "floor_majority", "floor_degree"}
COLUMNS = ["sha256", "run_id", "dataset", "kind", *_ROW, "group_a", "group_b", "excluded"]
RECIPE = "report"
"""The kind of the line that says how the report was made."""


def rows_csv(records: Iterable[Mapping[str, Any]], scenarios: Sequence[Mapping[str, Any]] = ()) -> str:
    """One line per row, and one per group pair beneath the row it belongs to; `kind` tells them apart.

    Args:
        records: sealed audit records.
        scenarios: lines of `scenarios.scenario_lines`, which come last and bring columns of their own.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    columns = [*COLUMNS, "scenario", "tier", "edits"] if scenarios else COLUMNS
    writer.writerow(columns)
    for record in records:
        for line in _lines(record):
            writer.writerow([quoted(line.get(c)) for c in columns])
    for edited in scenarios:
        writer.writerow([quoted(edited.get(c)) for c in columns])
    return out.getvalue()


def with_recipe(table: str, recipe: str) -> str:
    """The table with one line more, whose kind is `report`; `recipe` stands under `note`."""
    out = io.StringIO(newline="")
    columns = next(csv.reader(io.StringIO(table, newline="")))
    csv.writer(out).writerow([{"kind": RECIPE, "note": recipe}.get(c, "") for c in columns])
    return table + out.getvalue()


def lines(table: str) -> tuple[list[list[str]], str | None]:
    """The table's lines without blank ones, and the recipe, which is none of them, or None.

    Raises:
        RecordError: it is no CSV.
    """
    try:
        with _cells_as_long_as(len(table)):
            told = [[cell.strip() for cell in line] for line in csv.reader(io.StringIO(table, newline=""), strict=True)]
    except csv.Error as error:
        raise RecordError(f"the table cannot be read ({error})") from None
    told = [line for line in told if any(line)]
    kind, note = COLUMNS.index("kind"), COLUMNS.index("note")
    if told and len(told[-1]) > note and told[-1][kind] == RECIPE:
        return told[:-1], told[-1][note]
    return told, None


_LIMIT = Lock()  # it is the whole process's


@contextmanager
def _cells_as_long_as(most: int) -> Iterator[None]:
    """Lets cells be read that are longer than csv takes by itself, as the recipe of very many runs is."""
    with _LIMIT:
        before = csv.field_size_limit()
        csv.field_size_limit(max(before, most))
        try:
            yield
        finally:
            csv.field_size_limit(before)


def first_difference(reported: Sequence[Sequence[str]], anew: Sequence[Sequence[str]]) -> str | None:
    """The first cell in which two tables differ, in words, or None; 0.50 and 0.5 are the same number."""
    head = anew[0]
    for number, (old, new) in enumerate(zip_longest(reported, anew), start=1):
        if old is None or new is None:
            where = "in the report alone" if new is None else "missing in the report"
            return f"line {number} ({_about(head, old or new or ())}) is {where}"
        for i, (said, due) in enumerate(zip_longest(old, new)):
            if said == due or (i < len(head) and head[i] in _NUMBERS and _number(said) == _number(due) is not None):
                continue
            name = head[i] if i < len(head) else f"cell {i + 1}"
            return (
                f"line {number} ({_about(head, new)}), {name}: the report says "
                f"{'nothing' if said is None else repr(said[:200])}, it should say {'nothing' if due is None else repr(due[:200])}"
            )
    return None


def _about(head: Sequence[str], line: Sequence[str]) -> str:
    told = dict(zip(head, line, strict=False))
    return ", ".join(filter(None, (told.get(c) for c in _NAMING))) or "nothing"


def _number(cell: str | None) -> float | None:
    try:
        return float(cell or "")
    except ValueError:
        return None


def _lines(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    head = {"sha256": record["sha256"], "run_id": record["run_id"], "dataset": record["dataset"]["name"]}
    for row in record["rows"]:
        yield head | {"kind": "row"} | {k: row.get(k) for k in _ROW}
        same = {k: row.get(k) for k in ("metric", "attribute", "attacker", "variant", "exposure")}
        for cell in row.get("cells") or ():
            rest = {k: v for k, v in suppressed(cell).items() if k in _CELL and k not in ("a", "b")}
            yield head | {"kind": "cell"} | same | rest | {"group_a": cell["a"], "group_b": cell["b"]}


def suppressed(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    """The cell, without value and number where it is suppressed."""
    nothing = {"n": SUPPRESSED, "value": None, "ci_low": None, "ci_high": None}
    return {**cell, **nothing} if is_suppressed(cell) else cell
