"""Two attributes taken together: who is north and female."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from uge_core.audit.disclosure import Disclosure, combined
from uge_core.errors import ConfigError
from uge_core.graph.graph import NOT_APPLICABLE, UNKNOWN, Attribute, AttributedGraph
from uge_core.graph.split import probe_classes


def cross(
    a: Attribute, b: Attribute, graph: AttributedGraph, policies: Mapping[str, str], disclosure: Disclosure
) -> tuple[Attribute, str | None]:
    """The attribute "a+b" whose values are the combinations "x & y", and a remark on those left out.

    Args:
        a: one attribute.
        b: another one, of the same nodes.
        graph: whose nodes they are.
        policies: by name, what a missing value is; under "level" it is a value of the combination too.
        disclosure: says which combinations are left out; their nodes count as unknown.
    """
    first, first_labels = probe_classes(a, policies[a.name])
    second, second_labels = probe_classes(b, policies[b.name])
    size = combined((first, second), graph)[:-1, :-1]
    left_out = disclosure.combinations((a, b), (first, second), graph)[:-1, :-1]
    both = (first >= 0) & (second >= 0)
    key = np.where(both, first * size.shape[1] + second, -1)
    kept = np.flatnonzero((size > 0) & ~left_out)
    new = np.full(size.size + 1, UNKNOWN)
    new[kept] = np.arange(len(kept))
    codes = np.where(both, new[key], UNKNOWN)
    codes[(a.codes == NOT_APPLICABLE) | (b.codes == NOT_APPLICABLE)] = NOT_APPLICABLE
    labels = tuple(f"{first_labels[k // size.shape[1]]} & {second_labels[k % size.shape[1]]}" for k in kept)
    few = int(left_out.sum())
    words = "1 combination of few people is left out" if few == 1 else f"{few} combinations of few people are left out"
    return Attribute(f"{a.name}+{b.name}", codes, labels, side=a.side), words if few else None


def pairs(
    graph: AttributedGraph, asked: Sequence[str] | bool, attributes: Sequence[Attribute]
) -> list[tuple[Attribute, Attribute]]:
    """The pairs of attributes to cross, each once, its names in the alphabet's order.

    Args:
        graph: the graph, which knows the names.
        asked: "region+gender" and the like; True: all pairs of `attributes`; False: none.
        attributes: those that are audited.

    Raises:
        ConfigError: not two different names joined by a plus.
        GraphError: the graph has no such attribute.
    """
    if isinstance(asked, bool):
        crossed = list(combinations(attributes, 2)) if asked else []
    else:
        crossed = []
        for text in asked:
            names = [name.strip() for name in text.split("+")]
            two = [graph.attribute(name) for name in names]
            if len({a.name for a in two}) != 2 or len(two) != 2 or two[0].side != two[1].side:
                raise ConfigError(
                    f"crossing {text!r} is not two attributes of the same nodes; write them as region+gender"
                )
            crossed.append((two[0], two[1]))
    unique = {tuple(sorted((a.name, b.name), key=str.lower)): {a.name: a, b.name: b} for a, b in crossed}
    return [(two[first], two[second]) for (first, second), two in unique.items()]
