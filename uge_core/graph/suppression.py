"""Which numbers are small, so that they are not told; `runs.disclosure` has the rule that keeps them untold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FEWEST = 12
"""People, edges or lists under which nothing is told of a cell: whoever knows that still faces eleven values."""
SUPPRESSED = "suppressed"
SUPPRESSED_LEGEND = f"Suppressed: under {FEWEST}, or left out to hide how few others are."


def is_suppressed(cell: Mapping[str, Any]) -> bool:
    """Whether nothing may be shown of a stored cell.

    Audits mark those of few edges or lists and hold nothing of small groups; earlier versions kept both, with values.
    """
    return bool(cell.get("withheld")) or 0 < cell["n"] < FEWEST
