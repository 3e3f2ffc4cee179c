"""One rule for what may be told of a graph: no count that is released pins one under twelve to fewer than eleven values.

A *small* count is 1 to 11 people, edges or lists. Whoever knows this rule, and that a count is small, still faces eleven
values: nothing that is released may narrow them. Rounding cannot promise that, as totals are known (of 300 people the
number of nodes is public) and a rounded count may lie just inside its last possible step. So nothing is rounded or
struck out afterwards. The audit itself leaves people out, before it measures:

    small groups      s_1 .. s_k of one attribute, people without a value among them, are left out, and with them
    padding           12 k - (s_1 + .. + s_k) people of one larger group B, drawn at random.

Of B are then counted |B| + s_1 + .. + s_k - 12 k, of all N - 12 k: functions of N, of the other groups' sizes and of k
alone. Each s_i may be 1 to 11, as B may be larger by as much as it is smaller, and every figure, exact as it is, is about
the people who were counted. Edges by pair of groups and lists by group are padded alike. B is the first group in
a fixed order; where that is not large enough it is left out wholly, and the next one hides both (`_Batch`). Where there
are as many large groups as small ones, each hides one. Where nothing can hide them, they are told as a sum, with whole
groups beside them until that leaves each open.

What else is released of the same people counts too:

- A finer attribute in the same graph (districts of counties) is padded within each group of the coarser one.
- Of two attributes crossed, whole combinations are left out until sums over rows and columns pin none; an integer
  program (`pinned`) says whether they do.
- Another division of an attribute that was told before (ages by 30, now by 31), or the same graph with some people edited
  (a scenario): each group that would differ by under twelve from what was told is brought down to a size that follows
  from the size told. The ledger remembers what was told, also of runs that were deleted.

A measure that leaves out nobody is `audit.disclosure.Everybody`: ``uge audit --exact``.
"""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, cast

import numpy as np

from uge_core.arrays import BoolArray, IntArray
from uge_core.audit.disclosure import Disclosure as Disclosure
from uge_core.audit.disclosure import Everybody as Everybody
from uge_core.audit.disclosure import Measured, combined
from uge_core.datasets.mixing import edges_between
from uge_core.errors import StoreError
from uge_core.graph.graph import UNKNOWN, Attribute, AttributedGraph
from uge_core.graph.split import ProbeSplit, probe_classes
from uge_core.graph.suppression import FEWEST
from uge_core.runs.database import fits
from uge_core.runs.store import RunStore

_FEW_GROUPS = 20
_MOST_COMBINATIONS = 200  # of which an integer program is solved
_SECONDS = 10.0  # for one
_EDGES = 2**20  # looked at at once
EXACT = "exact: nobody is left out, so that counts may point at people; for the eyes of who asked, not to be passed on"
Sizes = Mapping[str, int]
"""Of one division of an attribute, people counted by group."""


@dataclass(frozen=True, eq=False)
class Cut:
    """How many people of each group are left out, by the parts of groups whose sums others could know.

    Attributes:
        group: (N,) each person's group, those without a value last; -1 is nobody.
        atom: (N,) each person's part of a group.
        of_atom: (A,) the group of each part.
        out: (A,) how many of it are left out.
        num: how many groups there are.
    """

    group: IntArray
    atom: IntArray
    of_atom: IntArray
    out: IntArray
    num: int

    @cached_property
    def atoms(self) -> IntArray:
        """(A,) people of each part."""
        return np.bincount(self.atom[self.atom >= 0], minlength=len(self.of_atom))

    @cached_property
    def size(self) -> IntArray:
        """(G,) people of each group."""
        return np.bincount(self.group[self.group >= 0], minlength=self.num)

    @property
    def of_groups(self) -> tuple[IntArray, IntArray]:
        """(G,) people of each group, and how many of them are left out."""
        return self.size, np.bincount(self.of_atom, self.out, self.num).astype(np.int64)

    def down_to(self, wanted: IntArray) -> Cut:
        """The same, with as many more left out as bring each group down to a size."""
        size, left = self.of_groups
        more, out = np.maximum(size - left - np.append(wanted, size[len(wanted) :]), 0), self.out.copy()
        for atom in range(len(out)):
            add = min(int(more[self.of_atom[atom]]), int(self.atoms[atom] - out[atom]))
            out[atom] += add
            more[self.of_atom[atom]] -= add
        return replace(self, out=out)


@dataclass(frozen=True, eq=False)
class Release:
    """The rule.

    Attributes:
        sizes: by attribute, to how many people its groups are brought down, where that follows from what was told
            before; see `beside_told`.
        padded: False leaves out small groups alone, for figures that stay on this machine.
    """

    sizes: Mapping[str, Sizes] = field(default_factory=dict)
    padded: bool = True
    least: int = FEWEST

    def attribute(self, attribute: Attribute, graph: AttributedGraph, probe: ProbeSplit) -> Measured:
        """The attribute without people of small groups and those who hide how many these are."""
        num = len(probe.labels)
        cut = self.cut(attribute, graph, probe.classes, num)
        sizes = self.sizes.get(attribute.name)
        if sizes is not None:
            cut = cut.down_to(np.array([sizes.get(label, 0) for label in probe.labels]))
        if not cut.out.any():
            return Measured(probe, 0, 0)
        rng = np.random.default_rng(zlib.crc32(f"{graph.fingerprint}/{attribute.name}".encode()))
        few = int(((cut.size > 0) & (cut.size < self.least)).sum())
        return _without(probe, cut, few, rng, exact_tests=not self.padded)

    def cut(self, attribute: Attribute, graph: AttributedGraph, classes: IntArray, num: int) -> Cut:
        """How many people of each group are left out.

        Args:
            attribute: the attribute.
            graph: whose people have it.
            classes: (N,) group of each node, -1 for none.
            num: how many groups there are.
        """
        people = np.zeros(graph.num_nodes, dtype=bool)
        people[graph.people] = True
        group = np.where(classes >= 0, classes, np.where(people, num, -1))
        if attribute.side == "items":
            return Cut(classes, classes, np.arange(num + 1), np.zeros(num + 1, dtype=np.int64), num + 1)
        size = np.bincount(group[group >= 0], minlength=num + 1)
        others = list(self._others(attribute, graph, group, num)) if self.padded else []
        own = removals(size, np.zeros(len(size), dtype=np.int64), self.least) == 0
        within = np.zeros_like(group)
        for part, table in others:
            if _subtracts(table, own, self.least):
                within = np.unique(within * len(table) + part, return_inverse=True)[1]
        key = np.where(group >= 0, within * (num + 1) + group, -1)
        atoms = np.unique(key[key >= 0])
        atom = np.where(key >= 0, np.searchsorted(atoms, key), -1)
        size = np.bincount(atom[atom >= 0], minlength=len(atoms))
        out = removals(size, atoms // (num + 1), self.least) if self.padded else np.where(size < self.least, size, 0)
        cut = Cut(group, atom, atoms % (num + 1), out, num + 1)
        told = cut.of_groups[1] == 0
        if any(_subtracts(table, told, self.least) for _, table in others):  # nothing hides the small ones
            cut = replace(cut, out=size)
        return cut

    def _others(
        self, attribute: Attribute, graph: AttributedGraph, group: IntArray, num: int
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """(N,) each person's group of each attribute that is told before this one, and (A, G + 1) people of both groups.

        Where two attributes leave combinations empty (districts of counties, under 30 and under 31), those who know that
        can subtract the sizes of one from those of the other.
        """
        order = [a.name for a in graph.audited]
        mine = (num, order.index(attribute.name) if attribute.name in order else len(order))
        for place, other in enumerate(graph.audited):
            if other.name == attribute.name or other.side != attribute.side or (other.num_values, place) >= mine:
                continue
            codes = np.where(other.known, other.codes, other.num_values)
            size = np.bincount(codes[group >= 0], minlength=other.num_values + 1)
            out = removals(size, np.zeros(len(size), dtype=np.int64), self.least)
            # A small group and those that hide it are told together alone.
            merged = np.where(out > 0, np.flatnonzero(np.append(out, 1) > 0)[0], np.arange(len(size)))
            part = merged[codes]
            table = np.zeros((len(size), num + 1), dtype=np.int64)
            np.add.at(table, (part[group >= 0], group[group >= 0]), 1)
            yield part, table

    def counted(self, cell: IntArray, num_cells: int) -> tuple[BoolArray, BoolArray]:
        """Edges or lists without those of small cells, and without those of one cell that hide how many these are."""
        size = np.bincount(cell[cell >= 0], minlength=num_cells)
        small, out = self.hidden(size)
        if not out.any():
            return np.ones(len(cell), dtype=bool), small
        rng = np.random.default_rng(zlib.crc32(np.ascontiguousarray(size).tobytes()))
        drawn = rng.random(len(cell))
        # Sorted are those alone of which some are left out: of millions of edges few.
        those = np.flatnonzero(np.append(out > 0, False)[cell])
        order = those[np.lexsort((drawn[those], cell[those]))]
        kept = np.ones(len(cell), dtype=bool)
        kept[order] = _rank(cell[order], np.where(out > 0, size, 0)) >= out[cell[order]]
        return kept, (out > 0) & (out == size)

    def hidden(self, size: IntArray) -> tuple[BoolArray, IntArray]:
        """(C,) which cells of edges or lists are small, and (C,) how many of each are left out for them."""
        small = (size > 0) & (size < self.least)
        if not small.any():
            return small, np.zeros_like(size)
        return small, removals(size, np.zeros_like(size), self.least) if self.padded else np.where(small, size, 0)

    def beside(self, count: IntArray) -> IntArray:
        """(C,) pairs to leave out besides, so that the numbers of pairs are those of counts that depend on sums alone."""
        out = np.zeros_like(count)
        if not self.padded:
            return out
        batches, whole = _batches(count, np.arange(len(count)), self.least)
        out[whole] = np.iinfo(np.int64).max // 4  # nothing hides them: no pair of theirs is counted
        for batch in batches:
            out[batch.small] = self.least - count[batch.small]
            # of the last the sum, of those before it more than they can be
            out[batch.large] = np.array(batch.most) - count[batch.large]
            out[batch.large[-1]] = count[batch.small].sum() + count[batch.large[:-1]].sum()
        return out

    def combinations(
        self, attributes: tuple[Attribute, Attribute], classes: tuple[IntArray, IntArray], graph: AttributedGraph
    ) -> BoolArray:
        """Small combinations, and others until sums over rows and columns pin none of the small ones."""
        table = combined(classes, graph)
        hidden = np.asarray((table > 0) & (table < self.least))
        if not self.padded:
            return hidden
        small = hidden.copy()
        told = [
            self.cut(a, graph, codes, length - 1).of_groups[1] == 0
            for a, codes, length in zip(attributes, classes, table.shape, strict=True)
        ]
        while (narrow := pinned(table, hidden, small, told, self.least)) is not None:
            ring = _ring(table, hidden, *narrow)
            if ring is None:
                return np.asarray(table > 0)
            hidden[ring] = True
        return hidden


def _ring(table: IntArray, hidden: BoolArray, row: int, column: int) -> tuple[list[int], list[int]] | None:
    """The four corners of the rectangle, of which one is given, that leaves out the fewest people more; None: none is."""
    cost = np.where(hidden, 0, table)
    whole = cost[row][None] + cost[:, column][:, None] + cost
    there = (table[row][None] > 0) & (table[:, column][:, None] > 0) & (table > 0)
    there[row], there[:, column] = False, False
    there &= whole > 0
    if not there.any():
        return None
    r, c = np.unravel_index(int(np.where(there, whole, table.sum() + 1).argmin()), table.shape)
    return [row, row, int(r), int(r)], [column, int(c), column, int(c)]


def _subtracts(table: IntArray, told_columns: BoolArray, least: int) -> bool:
    """Whether sums over rows and columns, with knowledge of which combinations are empty, pin a small one.

    Of a large table it is asked only whether columns lie in one row each, but for a few people, and all but one are told.

    Args:
        table: (A, B) people of each combination.
        told_columns: (B,) of which columns the sum is told as it is.
        least: under how many a combination is small.
    """
    there = table > 0
    small = there & (table < least)
    if there.all():
        return False
    if there.sum() > _MOST_COMBINATIONS:
        in_one_row = (table.max(axis=0) > 0.9 * np.maximum(table.sum(axis=0), 1)) | ~there.any(axis=0)
        alone = (there & ~told_columns).sum(axis=1) < 2
        return bool(in_one_row.all() and (small.any(axis=1) & alone).any())
    for row, column in np.argwhere(small):
        small[row, column] = not _moves(table, told_columns, int(row), int(column), least)
    told = [np.ones(table.shape[0], dtype=bool), told_columns]
    return bool(small.any()) and pinned(table, there, small, told, least, fewest=0) is not None


def _moves(table: IntArray, told_columns: BoolArray, row: int, column: int, least: int) -> bool:
    """Whether a combination is open as people may be exchanged, at the corners of a rectangle or between untold columns."""
    there = table > 0
    untold = ~told_columns
    untold[column] = False
    if not told_columns[column] and table[row, untold].max(initial=0) >= least:
        return True
    beside = np.minimum(table[row][None], table[:, column][:, None])  # who could come
    across = np.where(beside > 0, table, 0)  # who could come in place of who goes
    others = there.copy()
    others[row], others[:, column] = False, False
    few = int(table[row, column])
    most, fewest = few + int(beside[others].max(initial=0)), few - int(across[others].max(initial=0))
    return most >= least - 1 and fewest <= 1


def removals(size: IntArray, within: IntArray, least: int) -> IntArray:
    """(G,) how many of each group are left out, so that nobody can tell how many people small groups have.

    Args:
        size: (G,) people of each group.
        within: (G,) parts whose totals are known, such as counties of districts.
        least: under how many a group is small.
    """
    out = np.zeros_like(size)
    for part in np.unique(within):
        batches, whole = _batches(size, np.flatnonzero(within == part), least)
        for batch in batches:
            out[batch.small], out[batch.large] = size[batch.small], size[batch.large]
            out[batch.large[-1]] -= batch.told
        out[whole] = size[whole]
    return out


@dataclass(frozen=True)
class _Batch:
    r"""Small groups and the large ones that hide them.

        H_i = C_1 + .. + C_i + s_1 + .. + s_k,     told of C_m = H_m - 12 k - (m - 1) (11 k + 11) >= 12

    with m the first for which that is so; of C_1 .. C_{m - 1} nothing is told. All depends on H_m alone, which is known
    anyhow, so that whoever knows how the groups are chosen learns nothing of the s_i: with each C_i = 12 for i < m, any
    s_i from 1 to 11 lead here.

    Attributes:
        small: the groups s_1, .., s_k.
        large: the groups C_1, .., C_m.
        told: people told of the last of these.
        most: more than each C_i can be, by how the last was found.
    """

    small: list[int]
    large: list[int]
    told: int
    most: list[int]


def _batch(size: IntArray, small: Sequence[int], large: Sequence[int], least: int) -> _Batch | None:
    """The small groups hidden by the first of some large ones, in their order; None: these are not enough."""
    k, total, most = len(small), int(size[list(small)].sum()), list[int]()
    for m, group in enumerate(large):
        total += int(size[group])
        most.append(least * (k + 1) + m * (least - 1) * (k + 1))
        if total >= most[-1]:
            return _Batch(list(small), list(large[: m + 1]), total - most[-1] + least, most)
    return None


def _batches(size: IntArray, mine: IntArray, least: int) -> tuple[list[_Batch], list[int]]:
    """How small groups of a part are hidden, and which groups are left out wholly where that cannot be.

    Each by large groups of its own where there are as many, or else all together. Which is asked first does not depend on
    sizes. Where neither can be, the sum of the small ones hides them, with whole groups beside it until each is open.
    """
    small = [g for g in mine.tolist() if 0 < size[g] < least]
    large = [g for g in mine.tolist() if size[g] >= least]
    if len(size) > _FEW_GROUPS:  # many are in an order of their own, as ages, which begin with the rarest
        large.sort(key=lambda g: (g + 1) * 2_654_435_761 % 2**32)
    if not small:
        return [], []
    alone: list[_Batch] = []
    free = list(large)
    for g in small if len(large) >= len(small) else ():
        batch = _batch(size, [g], free, least)
        if batch is None:
            break
        alone.append(batch)
        free = free[len(batch.large) :]
    if len(alone) == len(small):
        return alone, []
    together = _batch(size, small, large, least)
    if together is not None:
        return [together], []
    beside: list[int] = []
    while large and not _open(size[small], size[beside], least):
        beside.append(large.pop(0))
    return [], [*small, *beside] if _open(size[small], size[beside], least) else mine.tolist()


def _open(small: IntArray, beside: IntArray, least: int) -> bool:
    """Whether each of some small groups may have 1 person or as many as a small one can, where only the sum is known."""
    k, total = len(small), int(small.sum() + beside.sum())
    most = total - (least - 1) >= k - 1 + least * len(beside)
    return most and (len(beside) > 0 or total - 1 <= (least - 1) * (k - 1))


def _rank(group: IntArray, size: IntArray) -> IntArray:
    """(n,) place of each in its group, of groups that stand together, ascending."""
    known = group >= 0
    start = np.concatenate([[0], np.cumsum(size)[:-1]]) + np.count_nonzero(~known)
    return np.where(known, np.arange(len(group)) - start[np.maximum(group, 0)], 0)


def _without(probe: ProbeSplit, cut: Cut, few: int, rng: np.random.Generator, *, exact_tests: bool) -> Measured:
    """The probe without so many people of each group.

    A fifth of those who stay in a group are tested, rounded down: as many as their number alone says.
    """
    num = len(probe.labels)
    size, out = cut.of_groups
    tested = np.zeros(len(cut.group), dtype=bool)
    tested[probe.test] = True
    people = len(probe.train) + len(probe.test)
    share = round(len(probe.test) / people, 1) if people else 0.0
    left_out = np.zeros(len(tested), dtype=bool)
    idle = left_out.copy()
    order = rng.permutation(len(tested))
    for g in range(num):
        surplus = max(0, int((tested & (cut.group == g)).sum()) - int(share * int(size[g] - out[g]) + 1e-9))
        for atom in np.flatnonzero(cut.of_atom == g):
            members = order[cut.atom[order] == atom]
            mine, others = members[tested[members]], members[~tested[members]]
            few_of = min(surplus, int(cut.out[atom]), len(mine))
            others = others[: int(cut.out[atom]) - few_of]
            few_of = int(cut.out[atom]) - len(others)
            surplus = max(0, surplus - few_of)
            left_out[others] = left_out[mine[:few_of]] = True
        if not exact_tests and surplus:
            stay = order[tested[order] & (cut.group[order] == g) & ~left_out[order]]
            idle[stay[:surplus]] = True
    stays = np.flatnonzero(size[:num] > out[:num]) if out[:num].any() else np.arange(num)
    # an empty group has nothing to hide, and an attribute has one group at least
    stays = np.union1d(stays, np.flatnonzero(size[:num] == 0)) if num else stays
    stays = stays if len(stays) else np.zeros(min(num, 1), dtype=np.int64)
    new = np.full(num + 1, -1)
    new[stays] = np.arange(len(stays))
    classes = np.where(left_out | (probe.classes < 0), -1, new[probe.classes])
    test = probe.test[(classes[probe.test] >= 0) & ~idle[probe.test]]
    train = probe.train[classes[probe.train] >= 0]
    narrowed = ProbeSplit(train, test, classes, tuple(probe.labels[i] for i in stays.tolist()))
    return Measured(narrowed, few, int(out.sum()))


def pinned(
    table: IntArray, hidden: BoolArray, small: BoolArray, told: Sequence[BoolArray], least: int, *, fewest: int = 1
) -> tuple[int, int] | None:
    """A small hidden combination that sums over rows and columns tell from 1, or from the largest small number; or None.

    The least and the largest number that each may have are found by an integer program over the hidden combinations,
    given the sums that are told. One that the solver does not finish counts as pinned.

    Args:
        table: (A, B) people of each combination.
        hidden: (A, B) which are not told.
        small: (A, B) of which of these is asked.
        told: (A,) and (B,) of which rows and columns the sums are told.
        least: under how many a combination is small.
        fewest: people whom each combination is known to have.
    """
    at = np.argwhere(hidden)
    if not len(at):
        return None
    from scipy.optimize import Bounds, LinearConstraint, milp  # the first page loads this file and solves nothing

    known = [at[:, axis][None] == np.flatnonzero(lines)[:, None] for axis, lines in enumerate(told)]
    lines = np.concatenate([*known, np.ones((1, len(at)))]).astype(np.float64)
    total = lines @ table[hidden]
    bounds, sums = Bounds(fewest, max(int(table.sum()), 1)), LinearConstraint(lines, total, total)
    for i in np.flatnonzero(small[hidden]):
        ends = []
        for sign in (1.0, -1.0):
            goal = np.zeros(len(at))
            goal[i] = sign
            found = milp(
                goal,
                constraints=sums,
                bounds=bounds,
                integrality=np.ones(len(at), dtype=np.int64),
                options={"time_limit": _SECONDS},
            )
            ends.append(None if found.x is None or found.status != 0 else float(np.round(found.x[i])))
        low, high = ends
        if low is None or high is None or low > 1 or high < least - 1:
            return int(at[i, 0]), int(at[i, 1])
    return None


@dataclass(frozen=True, eq=False)
class Told:
    """What is told of an attribute before any audit: people by group, and edges between groups.

    Attributes:
        attribute: the same without the people who are left out, whose values count as missing.
        size: (G + 1,) people told of each group, and last of those without a value.
        small: (G + 1,) which have under twelve.
        hides: (G + 1,) which are told without some people, or not at all, so that they hide how many the small ones have.
        all_edges: (2, E) those of the graph.
        kept: (E,) those of people who are told, without those of cells with under twelve and those that hide these; None:
            all.
        few: pairs of groups that are not told, each in the order of their labels.
    """

    attribute: Attribute
    size: IntArray
    small: BoolArray
    hides: BoolArray
    all_edges: IntArray
    kept: BoolArray | None
    few: frozenset[tuple[int, int]]

    @property
    def edges(self) -> IntArray:
        """(2, E) the edges that are counted."""
        return self.all_edges if self.kept is None else self.all_edges[:, self.kept]


def told(graph: AttributedGraph, attribute: Attribute, store: RunStore | None = None) -> Told:
    """What is told of an attribute of a graph, beside what the store's ledger says was told; of items everything is."""
    rule = Release() if store is None else release(graph, {a.name: "exclude" for a in graph.audited}, store)
    sizes = rule.sizes.get(attribute.name)
    key = ("told", attribute.name, None if sizes is None else tuple(sizes.items()))
    whose, found = graph.derived.get(key, (None, None))
    if whose is not attribute:
        found = _told(graph, attribute, rule)
        graph.derived[key] = attribute, found
    return cast("Told", found)


def _told(graph: AttributedGraph, attribute: Attribute, rule: Release) -> Told:
    """What a rule tells of an attribute."""
    everybody = np.flatnonzero(attribute.known)
    num = attribute.num_values
    probe = ProbeSplit(everybody, everybody[:0], np.where(attribute.known, attribute.codes, -1), attribute.labels)
    measured = rule.attribute(attribute, graph, probe)
    # Groups that are left out are no labels any more.
    place = {label: i for i, label in enumerate(attribute.labels)}
    back = np.array([*(place[label] for label in measured.labels), UNKNOWN])
    codes = np.where(attribute.codes >= 0, back[measured.classes], attribute.codes)
    cut = rule.cut(attribute, graph, probe.classes, num)
    if (sizes := rule.sizes.get(attribute.name)) is not None:
        cut = cut.down_to(np.array([sizes.get(label, 0) for label in attribute.labels]))
    size, out = cut.of_groups
    small = (size > 0) & (size < rule.least) & (attribute.side != "items")
    kept = replace(attribute, codes=codes)
    if not graph.bipartite and not rule.hidden(edges_between(graph.edges, kept)[np.triu_indices(num)])[0].any():
        return Told(kept, size - out, small, ~small & (out > 0), graph.edges, None, frozenset())
    cell, num_cells = _cells(graph, codes, num, items=attribute.side == "items")
    counted, few = rule.counted(cell, num_cells)
    ends = list(zip(*np.triu_indices(num), strict=True)) if not graph.bipartite else [(g, 0) for g in range(num)]
    suppressed = frozenset((int(ends[c][0]), int(ends[c][1])) for c in np.flatnonzero(few))
    part = None if counted.all() else counted
    return Told(kept, size - out, small, ~small & (out > 0), graph.edges, part, suppressed)


def _cells(graph: AttributedGraph, codes: IntArray, num: int, *, items: bool) -> tuple[IntArray, int]:
    """(E,) pair of groups of each edge, -1 where one is unknown, and how many pairs there are."""
    num_cells = num if graph.bipartite else num * (num + 1) // 2
    out: IntArray = np.empty(graph.num_edges, dtype="i4" if num_cells < np.iinfo(np.int32).max else "i8")
    for start in range(0, graph.num_edges, _EDGES):
        first, second = codes[graph.edges[:, start : start + _EDGES]]
        if graph.bipartite:
            cell = np.maximum(second if items else first, -1)
        else:
            low, high = np.minimum(first, second), np.maximum(first, second)
            cell = np.where(low >= 0, low * num - low * (low - 1) // 2 + high - low, -1)
        out[start : start + _EDGES] = cell
    return out, num_cells


def release(graph: AttributedGraph, policies: Mapping[str, str], store: RunStore | None = None) -> Release:
    """The rule for a graph, beside what was told of the same people before.

    Args:
        graph: the graph; of one that a scenario made, what its base tells counts as told.
        policies: by attribute, what a missing value is.
        store: its ledger says what was told before; None: nothing was.
    """
    sizes: dict[str, Sizes] = {}
    before = None if graph.base is None else release(graph.base, policies, store)
    ledger = {} if store is None or graph.base is not None else told_before(store, graph)
    # A column of another name may be the same by another division.
    renamed = [d for name, divisions in ledger.items() if name not in policies for d in divisions]
    for a in graph.audited:
        own = _sizes_alone(graph, a, policies[a.name])
        if graph.base is not None and before is not None:
            told = told_sizes(graph.base, graph.base.attribute(a.name), policies[a.name], before)
            if told != own:
                sizes[a.name] = _lowered(own, told)
        elif (beside := beside_told(own, [*ledger.get(a.name, ()), *renamed])) is not None:
            sizes[a.name] = beside
    return Release(sizes)


def _sizes_alone(graph: AttributedGraph, attribute: Attribute, policy: str) -> dict[str, int]:
    """People of each group as they would be told had nothing been told before."""
    key = ("sizes", attribute.name, policy)
    if key not in graph.derived:
        graph.derived[key] = told_sizes(graph, attribute, policy, Release())
    return dict(graph.derived[key])


def told_sizes(graph: AttributedGraph, attribute: Attribute, policy: str, rule: Disclosure) -> dict[str, int]:
    """People of each group as they are told."""
    classes, labels = probe_classes(attribute, policy)
    everybody = np.flatnonzero(classes >= 0)
    measured = rule.attribute(attribute, graph, ProbeSplit(everybody, everybody[:0], classes, labels))
    size = np.bincount(measured.classes[measured.classes >= 0], minlength=len(measured.labels))
    return dict(zip(measured.labels, size.tolist(), strict=True))


def _lowered(own: Sizes, told: Sizes, least: int = FEWEST) -> dict[str, int]:
    """What was told less twelve for each group, or as many twelves as a scenario needs."""
    steps = 1
    while any(max(0, n - least * steps) > own.get(label, 0) for label, n in told.items()):
        steps += 1
    return {label: max(0, n - least * steps) for label, n in told.items()}


def beside_told(size: Sizes, earlier: Sequence[Sizes], least: int = FEWEST) -> dict[str, int] | None:
    """The sizes of a division beside others of the same people that were told before; None where they may be as they are.

    A group that differs by under twelve, and more for those who were left out, from a group that was told, or from some
    that stand side by side, is told as twelve less than these: of several, than the smallest, as nobody here knows with
    which of them it shares people.

    Args:
        size: people of each group, as they would be told alone.
        earlier: the other divisions.
        least: under how many people a difference is small.
    """
    for division in earlier:
        # What was told beside others before is told again.
        if division.keys() == size.keys() and all(0 <= size[g] - n < 4 * least for g, n in division.items()):
            return None if division == size else dict(division)
    known = sorted({total for division in earlier if division != size for total in _sums(list(division.values()))})
    new = dict(size)
    for label, n in size.items():
        near = [total for total in known if total != n and -least < n - total < 2 * least]
        if near and not any(division.get(label) == n for division in earlier):
            new[label] = max(0, min(n, near[0] - least))
    return new if new != dict(size) else None


def _sums(sizes: Sequence[int]) -> Iterator[int]:
    """Sums of groups that stand side by side, and of any two."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    for first, last in combinations(range(len(ends)), 2):
        yield int(ends[last] - ends[first])
    for a, b in combinations(sizes, 2):
        yield a + b


def _people(graph: AttributedGraph) -> str:
    """What tells one set of people from another: their ids, and their edges where ids only count them."""
    if "people" not in graph.derived:
        graph.derived["people"] = _digest_of_people(graph)
    return str(graph.derived["people"])


def _digest_of_people(graph: AttributedGraph) -> str:
    ids = sorted(graph.ids(slice(None)))
    counted = ids == sorted(str(i) for i in range(len(ids)))
    edges = np.ascontiguousarray(graph.edges).tobytes() if counted else b""
    return hashlib.sha256(json.dumps(ids).encode("utf-8", "surrogatepass") + edges).hexdigest()


def told_before(store: RunStore, graph: AttributedGraph) -> dict[str, list[Sizes]]:
    """By attribute, the divisions of the same people that the ledger has."""
    divisions: dict[str, list[Sizes]] = {}
    with store.reading() as db:
        query = "SELECT * FROM told WHERE people = ? ORDER BY at"
        for row in db.execute(query, (_people(graph),)).fetchall() if db else ():
            if not fits("told", row):
                raise StoreError(
                    f"what {store.root} says was told of {graph.name} before differs from its SHA-256; bring "
                    "store.sqlite back from a copy, or name another store with --store DIR or $UGE_STORE"
                )
            divisions.setdefault(row["attribute"], []).append(json.loads(row["sizes"]))
    return divisions


def note_told(store: RunStore, graph: AttributedGraph, policies: Mapping[str, str], rule: Release) -> None:
    """Keeps in the ledger what is told of a graph; runs may be deleted, and what was told of them stays told."""
    if graph.base is not None:
        return  # what it tells follows from what its base tells
    before = told_before(store, graph)
    new = {a.name: told_sizes(graph, a, policies[a.name], rule) for a in graph.audited}
    new = {name: sizes for name, sizes in new.items() if sizes not in before.get(name, [])}
    if new:
        people = _people(graph)
        with store.writing() as db:
            for name, sizes in new.items():
                entry = (people, name, json.dumps(sizes, ensure_ascii=False), time.time())
                db.execute("INSERT INTO told (people, attribute, sizes, at) VALUES (?, ?, ?, ?)", entry)


def coarse(diagnostics: Mapping[str, Any]) -> dict[str, Any]:
    """What training noted, without numbers of people and weights, from which small groups follow."""

    def plain(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.3g}")
        if isinstance(value, Mapping):
            return {key: plain(v) for key, v in value.items()}
        return [plain(v) for v in value] if isinstance(value, list | tuple) else value

    people = ("missing", "n", "accuracy", "majority")
    kept = {
        key: [{k: v for k, v in report.items() if k not in people} for report in value]
        if "imputation" in key
        else value
        for key, value in diagnostics.items()
        if key != "weights"
    }
    return dict(plain(kept))


def coarse_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a trial edit, without what would tell whom it moved: numbers of people, cells, remarks, further decimals."""
    digits = 3 if (row["n"] or 0) >= 1000 else 2
    rounded = ("value", "ci_low", "ci_high", "floor_random", "p_value")
    kept = {k: v for k, v in row.items() if k not in ("cells", *rounded)} | {
        "n": None,
        "floor_majority": None,
        "note": None,
    }
    return kept | {k: None if row[k] is None else round(row[k], digits) for k in rounded}
