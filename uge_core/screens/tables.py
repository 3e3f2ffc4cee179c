"""Tables as files, and numbers in words."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd


def to_csv(table: pd.DataFrame) -> str:
    """The table as CSV; text that would start a formula in a spreadsheet gets a leading quote."""
    quoted = table.map(lambda v: "'" + v if isinstance(v, str) and v[:1] in "=+-@\t\r" and v else v)
    text: str = quoted.to_csv(index=False)
    return text


def known(value: Any) -> bool:
    """It is a number."""
    return value is not None and not pd.isna(value)


def interval(low: Any, high: Any) -> str:
    """The interval with a space before it, as in `0.3 [0.2, 0.4]`; nothing without one."""
    return f" [{low:.3f}, {high:.3f}]" if known(low) and known(high) else ""


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as dicts by column."""
    return [{str(k): v for k, v in row.items()} for row in table.to_dict("records")]


def plain_text(text: str) -> str:
    """The text for a Markdown page, so that names of people's data are never formatting, icons or formulas."""
    return re.sub(r"([\\`*_\[\]$:~<>|#])", r"\\\1", text)
