"""What one of several processes needs to train one embedding: memory, and bytes sent at a step.

    memory = 450 MB + 100 E + rows (2 + 5 / R)                                        tables alone
           + 16 M + (12 M + 8 rows of h) / R + 2 rows of h                            GCN, M = 2 E + N
    sent   = rows (R - 1) / R,          with GCN three times that, and twice for rows of h

a rank, with rows = 4 K N d bytes (h in the place of d: 4 N h), E edges, N people, K members, R ranks. The graph, 100 E, is
whole on every rank, and so are the embedding and a place for its gradient: more ranks do not make these smaller. What a
step sends beside rows, blocks' sums and the like, does not grow with N.

What it takes to read the graph from files comes before and is not in it.
"""

from __future__ import annotations

from dataclasses import dataclass

_PROCESS = 450e6  # Python, torch, compiled kernels
_EDGE = 100  # bytes: the graph's edges, the training edges, both directions and their order
_MESSAGE, _OWN_MESSAGE = 16, 12


@dataclass(frozen=True)
class Needs:
    """Of one rank.

    Attributes:
        memory: bytes at its peak.
        sent: bytes at a step.
    """

    memory: float
    sent: float


def needs(people: float, edges: float, dim: int, ranks: int, *, hidden: int = 0, members: int = 1) -> Needs:
    """What a rank needs.

    Args:
        people: N.
        edges: E, each once, held-out ones too.
        dim: d.
        ranks: R.
        hidden: width of GCN's first layer and of its learned table; 0: tables alone (node2vec).
        members: K that train together, twins among them.
    """
    rows, wide = 4.0 * members * people * dim, 4.0 * people * hidden
    memory = _PROCESS + _EDGE * edges + rows * (2 + 5 / ranks)
    factor = 1.0
    if hidden:
        messages = 2 * edges + people
        memory += _MESSAGE * messages + _OWN_MESSAGE * messages / ranks + wide * (2 + 8 * members / ranks)
        factor = 3.0
    sent = (factor * rows + 2 * members * wide) * (ranks - 1) / ranks
    return Needs(memory, sent)
