"""What is true of Pokec in each layout it comes in: its attributes, and what its users' papers fix."""

from __future__ import annotations

from uge_core.datasets.columns import Role
from uge_core.graph.graph import Defaults

ROLES = {
    "gender": Role("attribute"),
    "region": Role("attribute"),
    "age": Role("attribute", missing=("0", "0.0"), ordered=True),
}
"""The roles by lower-case name. An age of 0 means not given (the published tables write 0.0)."""

_SCRIPT_ROWS = 50_000
_FULL_SIZE = 60_000


def defaults(num_nodes: int) -> Defaults:
    """The paper's choices: a missing value is a value of its own; the full graphs have a probe by row number.

    Paper: the authors' script trains its probe on the first 50,000 rows, which only the full
    Pokec graphs have (66,569 and 67,796 nodes). On these node2vec starts from N(0, 1), as lookup
    tables do in the authors' framework and as the published Micro-F1 needs; ``--set init_std=0.1``
    ranks links better (see `uge_core.backbones.node2vec`).
    """
    if num_nodes <= _FULL_SIZE:
        return Defaults(unknown="level")
    return Defaults(unknown="level", as_coded_rows=_SCRIPT_ROWS, backbone_options={"node2vec": {"init_std": 1.0}})
