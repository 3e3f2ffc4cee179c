"""Attackers in the order of lists, and those that are tried where none is named; each says so itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from uge_core.registry import find, names

if TYPE_CHECKING:
    from uge_core.audit.attackers.base import Attacker


def ordered_attackers() -> tuple[type[Attacker], ...]:
    """Every attacker, in the order of lists."""
    return tuple(
        sorted((find("audit.attackers", n) for n in names("audit.attackers")), key=lambda a: (a.position, a.name))
    )


DEFAULT_ATTACKERS: tuple[str, ...] = tuple(a.name for a in ordered_attackers() if a.by_default)
"""Names of those that are tried where none is named."""
_CHOICE = re.compile(r"worst attacker: ([^,;]+)(?:, of ([^;]+))?")


def candidates(attackers: Iterable[str]) -> list[str]:
    """Those among which the strongest is chosen, in the order of lists.

    The default ones that look at vectors and labels alone; where none of these attacked, the others that do, else all.
    """
    kinds = {x: find("audit.attackers", x) for x in attackers}
    blind = [x for x, kind in kinds.items() if not kind.knows_edges]
    chosen = [x for x in blind if kinds[x].by_default] or blind or list(kinds)
    return sorted(chosen, key=lambda x: (kinds[x].position, x))


def choice(strongest: str, among: list[str]) -> str:
    """The words by which the row of the strongest attacker says which that is, and among which it was chosen."""
    of = f", of {', '.join(among)}; the interval holds for the choice of the largest" if len(among) > 1 else ""
    return f"worst attacker: {strongest}{of}"


def chosen(note: str | None) -> str | None:
    """The strongest attacker that `choice` names; None where it stands in no such note."""
    said = _CHOICE.match(note or "")
    return said[1] if said else None


def chosen_among(note: str | None) -> tuple[str, ...]:
    """The attackers that `choice` names; () where it stands in no such note."""
    said = _CHOICE.match(note or "")
    return tuple((said[2] or said[1]).split(", ")) if said else ()
