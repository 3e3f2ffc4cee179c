"""Columns that drawing programs write beside the people: how a graph looks, which describes nobody.

Positions come from a layout of all edges, so as features they would tell of held-out ones too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

DRAWN = "how a drawing looks, which describes nobody"
_ALWAYS = re.compile(
    r"size|colou?r|shape|shape type|dashes|pos|suid|shared name|shared interaction"
    r"|(?:viz|graphics|labelgraphics)(?:[ :].*)?"
    r"|(?:pos|position|coord|layout|graphics) ?[xyz]|[xyz] ?(?:pos|position|coord|coordinate)"
    r"|label ?(?:[xyz]|pos|position|size|colou?r|font|anchor|cex|dist|degree|family)"
    r"|(?:node|vertex|font|border|frame|outline|fill|line|background) ?(?:size|colou?r|width|shape|style|opacity)"
)
_TOGETHER = (("r", "g", "b"), ("x", "y"), ("vx", "vy"), ("fx", "fy"))
"""Single letters may be anything; together they are a color or a position."""
_BESIDE = {
    "a": {"r", "g", "b"},
    "z": {"x", "y"},
    "width": {"x", "y", "height"},
    "height": {"x", "y", "width"},
    "fx": {"x", "y"},
    "fy": {"x", "y"},
    "vz": {"vx", "vy"},
    "index": {"vx", "vy"},  # D3 writes it with the speeds
}


def drawn(names: Sequence[str]) -> list[str]:
    """Those of the names of columns that say how a drawing looks."""
    plain = {n: re.sub(r"[\s._:-]+", " ", n).strip().lower() for n in names}
    there = set(plain.values())
    found = {letter for group in _TOGETHER if there.issuperset(group) for letter in group}
    found |= {name for name, others in _BESIDE.items() if there >= others}
    if there & {"suid", "shared name"}:  # Cytoscape's own
        found |= {"selected", "name"}
    return [n for n in names if plain[n] in found or _ALWAYS.fullmatch(plain[n])]
