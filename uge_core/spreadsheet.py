"""Tables as CSV that a spreadsheet only reads: text that would start a formula gets a leading quote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 10
"""Pairs or edges under which a cell's value is left out of a file, as it could point at people."""


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
