"""Hypothesis strategies: small attributed graphs of every shape."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from uge_core.graph.graph import NOT_APPLICABLE, UNKNOWN, Attribute, AttributedGraph, simple_edges


def attribute(name, codes, side="nodes", num_values=None):
    """An attribute from codes."""
    codes = np.asarray(codes, np.int64)
    num = num_values or int(codes.max(initial=0)) + 1
    return Attribute(name, codes, tuple("abcdefghij"[:num]) if num <= 10 else tuple(map(str, range(num))), side=side)


@st.composite
def graphs(draw, *, min_nodes=4, max_nodes=14, attributes=2, unknown=False, bipartite=None):
    """A simple graph with at least one edge and `attributes` categorical attributes."""
    n = draw(st.integers(min_nodes, max_nodes))
    users = None
    if draw(st.booleans()) if bipartite is None else bipartite:
        users = draw(st.integers(2, n - 2))
    low = -1 if unknown else 0
    left = st.integers(0, (users or n) - 1)
    right = st.integers(users or 0, n - 1)
    pairs = draw(st.lists(st.tuples(left, right).filter(lambda p: p[0] != p[1]), min_size=1, max_size=3 * n))
    source, target = np.array(pairs, np.int64).T
    edges, _, _ = simple_edges(source, target, n)
    made = []
    for name in ("gender", "city", "age")[:attributes]:
        people = users or n
        codes = np.array(draw(st.lists(st.integers(low, 2), min_size=people, max_size=people)), np.int64)
        codes[codes < 0] = UNKNOWN
        full = np.full(n, NOT_APPLICABLE, np.int64)
        full[:people] = codes
        made.append(attribute(name, full, side="nodes" if users is None else "users", num_values=3))
    return AttributedGraph("drawn", n, edges, tuple(made), num_users=users)
