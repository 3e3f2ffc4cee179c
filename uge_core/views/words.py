"""Numbers and names in words."""

from __future__ import annotations

import math
import re
from typing import Any, TypeGuard

import pandas as pd

from uge_core.visible import visible


def known(value: Any) -> TypeGuard[float]:
    """It is a number."""
    return value is not None and not pd.isna(value)


def many(n: int, one: str, more: str = "") -> str:
    """The number with its noun, as in `1 run` and `2,000 runs`."""
    return f"{n:,} {one if n == 1 else more or one + 's'}"


def interval(low: Any, high: Any) -> str:
    """The interval with a space before it, as in `0.3 [0.2, 0.4]`; nothing without one."""
    return f" [{low:.3f}, {high:.3f}]" if known(low) and known(high) else ""


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as dicts by column."""
    return [{str(k): v for k, v in row.items()} for row in table.to_dict("records")]


# Markdown makes links of these without any sign. A word joiner in them is not seen, and is no part of an address.
_ADDRESS = re.compile(r"(?i)(?:https?|ftp|mailto|xmpp)(?=:)|www(?=\.)|(?<=.)(?=@)")
_JOINER = "\u2060"


def plain_text(text: str) -> str:
    """The text for a Markdown page, so that names of people's data are never formatting, links, icons or formulas."""
    unlinked = _ADDRESS.sub(lambda found: found[0] + _JOINER, visible(text))
    return re.sub(r"([\\`*_\[\]$:~<>|#])", r"\\\1", unlinked)


def rough(n: float) -> str:
    """A number of people to two digits that count, as nobody plans with more."""
    if n < 100:
        return f"{math.ceil(n):,}"
    place = 10 ** (math.floor(math.log10(n)) - 1)
    return f"{math.ceil(n / place) * place:,}"
