"""Who is meant by what a reader types: people by their ids, or by values of their attributes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uge_core.arrays import IntArray
from uge_core.graph.graph import Attribute, AttributedGraph

MOST_SUGGESTED = 8
"""People and values in an answer to a search."""


@dataclass(frozen=True, eq=False)
class Found:
    """What a text fits.

    Attributes:
        nodes: the first of those it fits, node numbers: by id first, the one called so exactly before all.
        total: how many it fits.
        values: pairs of attribute and value it names.
    """

    nodes: IntArray
    total: int
    values: tuple[tuple[str, str], ...]


def search(graph: AttributedGraph, text: str, *, most: int = MOST_SUGGESTED, people: bool = False) -> Found:
    """Whom a text fits: its letters are part of an id, or each of its words begins a word of a value.

    Case does not matter. The name of an attribute among the words stands for whoever has a value of it, so that
    "region north" finds what "north" finds.

    Args:
        graph: the graph.
        text: what was typed.
        most: nodes and values that are named.
        people: only people; on a bipartite graph items have ids too.
    """
    whole = text.strip().casefold()
    everybody = np.arange(graph.num_nodes)[graph.people if people else slice(None)]
    if not whole:
        return Found(everybody[:0], 0, ())
    names = [name.casefold() for name in graph.ids(everybody)]
    words = whole.replace(",", " ").split()
    attributes = graph.audited if people else graph.attributes
    by_id = _holding(names, whole)
    fits = by_id | _with_value(attributes, whole, everybody)
    if words:
        parts = [_holding(names, word) | _with_value(attributes, word, everybody) for word in words]
        parts = [
            part | _known(attributes, word, everybody) if len(words) > 1 else part
            for part, word in zip(parts, words, strict=True)
        ]
        fits |= np.logical_and.reduce(parts)
    at = np.nonzero(fits)[0]
    rank = np.array([_rank(names[i], whole) for i in at], dtype=np.int64)
    if text.strip() not in graph.ids(everybody[at[rank == 0]]):
        first = at
    else:
        # Two ids may differ by case alone: the one that was typed is first.
        exact = np.array([name != text.strip() for name in graph.ids(everybody[at])])
        first, rank = at[np.argsort(exact, kind="stable")], rank[np.argsort(exact, kind="stable")]
    order = np.argsort(rank, kind="stable")[:most]
    named = (
        (a.name, label)
        for a in attributes
        for code, label in enumerate(a.labels)
        if (_begins(label, whole) or all(_begins(label, w) or w == a.name.casefold() for w in words))
        and a.sizes[code]
        and any(_begins(label, w) for w in (whole, *words))
    )
    return Found(everybody[first[order]], len(at), tuple(_few(named, most)))


def values_of(graph: AttributedGraph, node: int) -> dict[str, str]:
    """A node's values by attribute, in words; attributes of the other side are left out."""
    values = {}
    for a in graph.attributes:
        code = int(a.codes[node])
        if code >= -1:
            values[a.name] = a.labels[code] if code >= 0 else a.unknown_label
    return values


def _holding(names: list[str], part: str) -> npt.NDArray[np.bool_]:
    return np.array([part in name for name in names], dtype=bool)


def _rank(name: str, whole: str) -> int:
    return 0 if name == whole else 1 if name.startswith(whole) else 2 if whole in name else 3


def _begins(label: str, word: str) -> bool:
    label = label.casefold()
    return label.startswith(word) or any(part.startswith(word) for part in label.split())


def _with_value(attributes: tuple[Attribute, ...], word: str, among: IntArray) -> npt.NDArray[np.bool_]:
    """Who of the nodes `among` has a value that a word begins."""
    fits = np.zeros(len(among), dtype=bool)
    for a in attributes:
        wanted = [code for code, label in enumerate(a.labels) if _begins(label, word)]
        if wanted:
            fits |= np.isin(a.codes[among], wanted)
    return fits


def _known(attributes: tuple[Attribute, ...], word: str, among: IntArray) -> npt.NDArray[np.bool_]:
    """Who has a value of the attribute that a word names."""
    fits = np.zeros(len(among), dtype=bool)
    for a in attributes:
        if a.name.casefold() == word:
            fits |= a.codes[among] >= 0
    return fits


def _few(named: Iterator[tuple[str, str]], most: int) -> Iterator[tuple[str, str]]:
    for _, pair in zip(range(most), named, strict=False):
        yield pair
