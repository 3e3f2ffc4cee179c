"""Which sizes are not told: those of groups of under ten people, and one more where a total would give one away."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from uge_core.graph import Attribute, IntArray
from uge_core.spreadsheet import FEWEST

Mask = npt.NDArray[np.bool_]


def withheld_sizes(a: Attribute) -> Mask:
    """(G + 1,) whether a group's size is withheld, and last the number of people without a value; items are no people."""
    sizes = np.append(a.sizes, a.unknown.sum())
    return never_one((sizes > 0) & (sizes < FEWEST) & (a.side != "items"), sizes)


def never_one(hidden: Mask, numbers: IntArray) -> Mask:
    """Where one number alone is hidden, the smallest of the others as well, as it would follow from the total."""
    shown = np.flatnonzero(~hidden & (numbers > 0))
    if hidden.sum() == 1 and len(shown):
        hidden = hidden.copy()
        hidden[shown[numbers[shown].argmin()]] = True
    return hidden
