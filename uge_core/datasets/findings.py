"""What is worth knowing about a graph's attributes before anyone trains on them.

Small groups, pairs of groups without an edge, columns that say nearly the same, and numbers that
are probably codes for a missing value. Nothing here changes the graph.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from uge_core.arrays import FloatArray, IntArray
from uge_core.datasets.mixing import mixing
from uge_core.datasets.tables import counted
from uge_core.graph.association import FEWEST_KNOWN, PROXY, association
from uge_core.graph.graph import Attribute, Message

SMALL_GROUP = 10
_NEAR_CONSTANT = 0.95
_SHOWN = 5
_MOST_GROUPS = 50
_CHUNK = 64
_NOT_GIVEN = {"na", "n/a", "nan", "null", "unknown", "?", "-", "missing", "not given", "prefer not to say"}
_NEVER_ZERO = re.compile(r"(?:^|[\W_])(?:age|alter|year|birth\w*|born|height|weight)(?:$|[\W_])", re.IGNORECASE)


def about_attributes(
    name: str,
    edges: IntArray,
    num_users: int | None,
    attributes: Sequence[Attribute],
    features: FloatArray | None,
    feature_names: Sequence[str],
) -> tuple[Message, ...]:
    """Messages about the attributes of a graph and the columns beside them.

    Args:
        name: the graph's name.
        edges: (2, E) each undirected edge once, smaller end first.
        num_users: size of the first side of a bipartite graph, else None.
        attributes: the attributes.
        features: (N, F) or None.
        feature_names: the F names.
    """
    return (
        *_small_groups(name, attributes),
        *(m for a in attributes for m in _empty_cells(name, edges, num_users, a)),
        *_proxies(name, attributes, features, feature_names),
    )


def _small_groups(name: str, attributes: Sequence[Attribute]) -> tuple[Message, ...]:
    """A warning where groups are too small to say anything about them."""
    groups = [
        (int(n), f"{a.name} {label}: {n}")
        for a in attributes
        if a.side != "items"
        for label, n in zip(a.labels, a.sizes.tolist(), strict=True)
        if n < SMALL_GROUP
    ]
    if not groups:
        return ()
    text = (
        f"{name}: {counted(len(groups), 'group')} of fewer than {SMALL_GROUP} nodes; their figures are mostly "
        "chance, and people in them can be told apart"
    )
    shown = tuple(said for _, said in sorted(groups, key=lambda f: f[0])[:_SHOWN])
    return (Message("warning", "small-groups", text, len(groups), shown, "merge small groups, or bin a number"),)


def _empty_cells(name: str, edges: IntArray, num_users: int | None, attribute: Attribute) -> tuple[Message, ...]:
    """A note where pairs of groups have no edge at all."""
    bare = mixing(edges, num_users, attribute).empty
    if not bare:
        return ()
    text = (
        f"{name}: {counted(len(bare), 'pair')} of groups of {attribute.name} without an edge; their weight "
        "cannot be estimated"
    )
    # That nobody of a small group knows anybody of another says something about its people.
    small = {v for v, n in zip(attribute.labels, attribute.sizes, strict=True) if n < SMALL_GROUP}
    shown = tuple(f"{a} - {b}" for a, b in bare if not small.intersection((a, b)))[:_SHOWN]
    remedy = "merge groups or bin the attribute; --set shrinkage=2 pulls such pairs towards their rate without bias"
    return (Message("note", "cells-without-edges", text, len(bare), shown, remedy),)


def _proxies(
    name: str, attributes: Sequence[Attribute], features: FloatArray | None, feature_names: Sequence[str]
) -> tuple[Message, ...]:
    """Warnings about columns that nearly give an attribute away."""
    usable = [a for a in attributes if _spread(a)]
    messages = []
    pairs = [(v, a, b) for a, b in combinations(usable, 2) if a.side == b.side and (v := association(a, b)) >= PROXY]
    if pairs:
        text = (
            f"{name}: {counted(len(pairs), 'pair')} of attributes that say nearly the same; debiasing one leaves "
            "it readable through the other"
        )
        shown = tuple(f"{a.name} and {b.name}: Cramér's V {v:.3f}" for v, a, b in pairs[:_SHOWN])
        remedy = "treat both jointly (--sensitive A,B), or leave one out with --attributes"
        messages.append(Message("warning", "proxy-attributes", text, len(pairs), shown, remedy))
    if features is not None:
        close = [(r, f, a) for a in usable for f, r in _ratios(features, a)]
        if close:
            text = (
                f"{name}: {counted(len(close), 'feature')} nearly give an attribute away; a model that reads "
                "features reads it there"
            )
            shown = tuple(f"{feature_names[f]} by {a.name}: correlation ratio {r:.3f}" for r, f, a in close[:_SHOWN])
            remedy = "leave these columns out of the features (ignore: in dataset.yaml)"
            messages.append(Message("warning", "proxy-features", text, len(close), shown, remedy))
    return tuple(messages)


def _spread(a: Attribute) -> bool:
    """Whether an attribute has known values, and not nearly all the same."""
    known = int(a.sizes.sum())
    return known >= FEWEST_KNOWN and int(a.sizes.max()) < _NEAR_CONSTANT * known


def _ratios(features: FloatArray, a: Attribute) -> list[tuple[int, float]]:
    """The features whose correlation ratio with an attribute (share of variance between groups, its root) is high."""
    known = a.known
    n = int(known.sum())
    if a.num_values > _MOST_GROUPS or n < 10 * a.num_values:
        return []
    member = np.zeros((a.num_values, n), dtype=np.float32)
    member[a.codes[known], np.arange(n)] = 1
    sizes = np.maximum(a.sizes, 1)[:, None]
    proxies = []
    for start in range(0, features.shape[1], _CHUNK):
        block = features[known, start : start + _CHUNK]
        centred = block - block.mean(axis=0, dtype=np.float64).astype(np.float32)
        scale = np.abs(centred).max(axis=0)
        centred /= np.where(scale > 0, scale, 1)
        total = np.square(centred).sum(axis=0, dtype=np.float64)
        between = (np.square((member @ centred).astype(np.float64)) / sizes).sum(axis=0)
        ratio = np.sqrt(np.divide(between, total, out=np.zeros_like(total), where=total > 0))
        proxies += [(start + int(f), float(min(1.0, ratio[f]))) for f in np.flatnonzero(ratio >= PROXY)]
    # A flag that is nearly always 0 follows from few nodes; what varies is what gives a group away.
    return [(f, r) for f, r in proxies if _varies(features[known, f])]


def _varies(values: FloatArray) -> bool:
    """Whether no single value covers nearly all nodes."""
    return int(np.unique(values, return_counts=True)[1].max()) < _NEAR_CONSTANT * len(values)


def says_not_given(value: str) -> bool:
    """Whether a cell's text is a word that people write where a value is missing, as NA or unknown."""
    # None is how Python writes it; none may be an answer, as to which occupation.
    return value.strip().casefold() in _NOT_GIVEN or value == "None"


def probable_code(name: str, values: npt.NDArray[np.float64]) -> float | None:
    """A number of a column that probably means "not given", or None.

    An end of the values is taken for one when it is further from the next value than all others
    are apart (999 among ages), when it is -1 and nothing else is negative, or when it is 0 in a
    column called age, year, birth, height or weight.

    Args:
        name: the column's name.
        values: its numbers, in any order, once or more often; NaN where missing.
    """
    numbers = values[np.isfinite(values)]
    if not len(numbers):
        return None
    low, high = float(numbers.min()), float(numbers.max())
    above, below = numbers[numbers > low], numbers[numbers < high]
    if not len(above) or not len(below):
        return None
    second, second_last = float(above.min()), float(below.max())
    if second == high:
        return None  # two values: a code and its opposite, such as -1 and 1
    if low in (0.0, -1.0) and second > 0 and _NEVER_ZERO.search(name):
        return low
    if low == -1 and second >= 0 and bool((numbers == np.rint(numbers)).all()):
        return low
    if second_last > second and high - second_last > 2 * (second_last - low) and _is_code(high):
        return high
    if second_last > second and second - low > 2 * (high - second) and _is_code(low):
        return low
    return None


def _is_code(number: float) -> bool:
    """Whether a number is written like a code: 0, negative, or nines."""
    if number != np.rint(number) or abs(number) >= 2**63:
        return number != 0 and abs(number) >= 1e18
    digits = str(abs(int(number)))
    return number <= 0 or set(digits) == {"9"} or digits in ("97", "98", "997", "998")
