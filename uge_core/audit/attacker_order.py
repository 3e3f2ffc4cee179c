"""Attackers in the order of lists, and those that are tried where none is named; each says so itself."""

from __future__ import annotations

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
