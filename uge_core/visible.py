"""Names of people's data shown as what they hold, with nothing in them that turns the text around them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
# Marks, embeddings, overrides and isolates: a name with one can have the words and numbers after it read backwards.
_TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """The text with each character that sets a writing direction written as its number, as JSON writes it."""
    return _TURNS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def visible_cells(table: T) -> T:
    """The same of all names in a table of pandas; another table as it is."""
    columns = getattr(table, "columns", None)
    if columns is None:
        return table
    frame = cast("pd.DataFrame", table)
    words = [i for i, kind in enumerate(frame.dtypes) if kind.kind not in "biufmMc"]
    turned = [i for i in words if any(isinstance(cell, str) and _TURNS.search(cell) for cell in frame.iloc[:, i])]
    if not turned and not any(_TURNS.search(str(c)) for c in frame.columns):
        return table
    shown = frame.copy()
    for i in turned:
        shown.isetitem(i, [visible(cell) if isinstance(cell, str) else cell for cell in frame.iloc[:, i]])
    return cast("T", shown.rename(columns=lambda c: visible(c) if isinstance(c, str) else c))
