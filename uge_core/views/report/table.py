"""The rows of several records as one CSV table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from uge_core.audit.base import Cell, Row
from uge_core.files import quoted
from uge_core.graph.suppression import SUPPRESSED, is_suppressed

_ROW = [f.name for f in fields(Row) if f.name != "cells"]
_CELL = [f.name for f in fields(Cell)]


def rows_csv(records: Iterable[Mapping[str, Any]], scenarios: Sequence[Mapping[str, Any]] = ()) -> str:
    """One line per row, and one per group pair beneath the row it belongs to; `kind` tells them apart.

    Args:
        records: sealed audit records.
        scenarios: lines of `scenarios.scenario_lines`, which come last and bring columns of their own.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    columns = ["sha256", "run_id", "dataset", "kind", *_ROW, "group_a", "group_b", "excluded"]
    columns += ["scenario", "tier", "edits"] if scenarios else []
    writer.writerow(columns)
    for record in records:
        for line in _lines(record):
            writer.writerow([quoted(line.get(c)) for c in columns])
    for edited in scenarios:
        writer.writerow([quoted(edited.get(c)) for c in columns])
    return out.getvalue()


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
