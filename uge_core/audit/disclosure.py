"""What an audit leaves out so that its counts point at nobody: what a rule must answer, and the one that leaves out nobody.

The rule itself is `runs.disclosure.Release`. An audit asks it before it measures, so that no figure, count or cell
rests on those left out, and none has to be hidden afterwards.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from uge_core.arrays import BoolArray, IntArray
from uge_core.graph.graph import Attribute, AttributedGraph
from uge_core.graph.split import ProbeSplit

_TOO_FEW_TO_LEARN_FROM = 10  # people of a combination


@dataclass(frozen=True, eq=False)
class Measured:
    """An attribute as it is measured.

    Attributes:
        probe: groups of the people who take part, and which of them train and test attackers.
        few: groups that are left out, people without a value among them.
        people: who are left out, of these groups and beside them.
    """

    probe: ProbeSplit
    few: int
    people: int

    @property
    def classes(self) -> IntArray:
        """(N,) group of each node, -1 for those that take no part."""
        return self.probe.classes

    @property
    def labels(self) -> tuple[str, ...]:
        """The groups' names."""
        return self.probe.labels

    @property
    def key(self) -> str:
        """What tells floors of what is measured from those of everybody's values."""
        return f"/without {zlib.crc32(self.classes.tobytes())}" if self.people else ""


class Disclosure(Protocol):
    """What a rule answers."""

    @property
    def least(self) -> int:
        """Under how many people, edges or lists a group or cell is left out."""
        ...

    def attribute(self, attribute: Attribute, graph: AttributedGraph, probe: ProbeSplit) -> Measured:
        """The attribute as it is measured; `probe` has everybody's values."""
        ...

    def counted(self, cell: IntArray, num_cells: int) -> tuple[BoolArray, BoolArray]:
        """Which edges or lists are counted, and of which cells none is.

        Args:
            cell: (n,) cell of each, -1 for none.
            num_cells: how many cells there are.

        Returns:
            (n,) and (num_cells,).
        """
        ...

    def beside(self, count: IntArray) -> IntArray:
        """(C,) how many more pairs to leave out of each cell, so that the pairs left out before are not told exactly.

        Args:
            count: (C,) the pairs left out before, such as training edges.
        """
        ...

    def combinations(
        self, attributes: tuple[Attribute, Attribute], classes: tuple[IntArray, IntArray], graph: AttributedGraph
    ) -> BoolArray:
        """(A + 1, B + 1) which combinations of two attributes' groups are left out; those without a value stand last.

        Args:
            attributes: the two.
            classes: (N,) group of each node by either, -1 for none.
            graph: whose people they are.
        """
        ...


class Everybody:
    """Leaves out nobody, so that the figures are exact; they stay with who asked for them."""

    least = 0

    def attribute(self, attribute: Attribute, graph: AttributedGraph, probe: ProbeSplit) -> Measured:
        """Everybody."""
        return Measured(probe, 0, 0)

    def counted(self, cell: IntArray, num_cells: int) -> tuple[BoolArray, BoolArray]:
        """All."""
        return np.ones(len(cell), dtype=bool), np.zeros(num_cells, dtype=bool)

    def beside(self, count: IntArray) -> IntArray:
        """None."""
        return np.zeros_like(count)

    def combinations(
        self, attributes: tuple[Attribute, Attribute], classes: tuple[IntArray, IntArray], graph: AttributedGraph
    ) -> BoolArray:
        """Those of under ten people, from which nothing can be learnt."""
        table = combined(classes, graph)
        return np.asarray((table > 0) & (table < _TOO_FEW_TO_LEARN_FROM))


def combined(classes: tuple[IntArray, IntArray], graph: AttributedGraph) -> IntArray:
    """(A + 1, B + 1) people of each combination of two attributes' groups; those without a value stand last.

    Args:
        classes: (N,) group of each node by either, -1 for none.
        graph: whose people they are.
    """
    first, second = (codes[graph.people] for codes in classes)
    table = np.zeros((first.max(initial=-1) + 2, second.max(initial=-1) + 2), dtype=np.int64)
    np.add.at(table, (first, second), 1)
    return table


def left_out_words(measured: Measured, least: int) -> str | None:
    """A remark on those left out, None where nobody is."""
    if not measured.people:
        return None
    why = (
        f"groups of under {least}, and others that hide how many"
        if measured.few
        else "so that a difference from an earlier audit tells of nobody"
    )
    return f"{measured.people:,} people are left out: {why}"
