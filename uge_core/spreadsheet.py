"""Tables as CSV that a spreadsheet only reads: text that would start a formula gets a leading quote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 10
"""People, pairs, edges or targets under which nothing is told of a cell, as it could point at people."""

WITHHELD = "withheld"
WITHHELD_LEGEND = "Withheld: a group of under ten people, or under ten pairs."


def is_withheld(cell: Mapping[str, Any]) -> bool:
    """Whether nothing may be shown of a stored cell; earlier versions did not mark them and kept their values."""
    return bool(cell.get("withheld")) or 0 < cell["n"] < FEWEST


def quoted(value: Any) -> Any:
    """A cell as a spreadsheet may see it; numbers, and text that is one, stay as they are."""
    if not isinstance(value, str) or value[:1] not in ("=", "+", "-", "@", "\t", "\r", "\n"):
        return value
    try:
        float(value)
    except ValueError:
        return "'" + value
    return value


def to_csv(table: pd.DataFrame) -> str:
    """The table as CSV."""
    text: str = table.map(quoted).to_csv(index=False)
    return text
