"""Which sizes are not told: those of groups of under twelve people, and one more where a total would give one away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from uge_core.arrays import BoolArray, IntArray
from uge_core.graph.graph import Attribute

FEWEST = 12
"""People, edges or lists under which nothing is told of a cell: whoever knows that still faces eleven values."""
SUPPRESSED = "suppressed"
SUPPRESSED_LEGEND = f"Suppressed: under {FEWEST} people, pairs or edges, or a number that would give away one that is."


def suppressed_sizes(a: Attribute) -> BoolArray:
    """(G + 1,) whether a group's size is suppressed, and last the number of people without a value.

    Items are no people.
    """
    sizes = np.append(a.sizes, a.unknown.sum())
    return suppress_complementary((sizes > 0) & (sizes < FEWEST) & (a.side != "items"), sizes)


def suppress_complementary(suppressed: BoolArray, numbers: IntArray) -> BoolArray:
    """The next smallest numbers as well, where the suppressed ones would follow from the total.

    So would one alone, and so would several that are all as small as they can be, or all as large.
    """
    suppressed = suppressed.copy()
    while count := int(suppressed.sum()):
        total = int(numbers[suppressed].sum())
        shown = np.flatnonzero(~suppressed & (numbers > 0))
        if not len(shown) or (count > 1 and count < total != count * (FEWEST - 1)):
            break
        suppressed[shown[numbers[shown].argmin()]] = True
    return suppressed


def is_suppressed(cell: Mapping[str, Any]) -> bool:
    """Whether nothing may be shown of a stored cell.

    Audits mark those of few edges or lists and hold nothing of small groups; earlier versions kept both, with values.
    """
    return bool(cell.get("withheld")) or 0 < cell["n"] < FEWEST
