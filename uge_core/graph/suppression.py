"""Which sizes are not told: those of groups of under ten people, and one more where a total would give one away."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from uge_core.graph.graph import Attribute, IntArray
from uge_core.spreadsheet import FEWEST

Mask = npt.NDArray[np.bool_]


def withheld_sizes(a: Attribute) -> Mask:
    """(G + 1,) whether a group's size is withheld, and last the number of people without a value; items are no people."""
    sizes = np.append(a.sizes, a.unknown.sum())
    return never_one((sizes > 0) & (sizes < FEWEST) & (a.side != "items"), sizes)


def never_one(hidden: Mask, numbers: IntArray) -> Mask:
    """The next smallest numbers as well, where the hidden ones would follow from the total.

    So would one alone, and so would several that are all as small as they can be, or all as large.
    """
    hidden = hidden.copy()
    while count := int(hidden.sum()):
        total = int(numbers[hidden].sum())
        shown = np.flatnonzero(~hidden & (numbers > 0))
        if not len(shown) or (count > 1 and count < total != count * (FEWEST - 1)):
            break
        hidden[shown[numbers[shown].argmin()]] = True
    return hidden
