"""What a backbone is: parameters with a member axis, and an encoder.

A backbone turns parameters into embeddings z of shape (K, N, d) for K ensemble members at once;
the score of a pair is the dot product of its two rows. A subclass is a frozen dataclass whose
fields are its options, one file per backbone. Lookup tables and layer matrices are kept apart,
since weight decay applies to layer matrices only: under a mean loss a node's gradient is about
1/E, and an L2 term of 5e-4 would shrink a table to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from uge_core.plugin import Info, Reference, describe

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from uge_core.backbones._inputs import Inputs
    from uge_core.graph.walks import WalkPlan


@dataclass(frozen=True)
class Parameters:
    """Trainable tensors by name.

    Attributes:
        tables: one row per node, no weight decay.
        layers: matrices and vectors shared by all nodes, with weight decay.
    """

    tables: dict[str, Tensor] = field(default_factory=dict)
    layers: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Backbone:
    """Base of the backbones.

    Attributes:
        name: set by `register` from the file's name.
        label: the name on screen.
        summary: what it does, in a line for people who choose.
        citation: where it comes from, in short.
        references: the same in full.
        formula: as LaTeX; in one line of text it is the first of the docstring, see `uge_core.plugin`.
        loss: "cross-entropy" or "bpr".
        uses_features: given node features enter it.
        walks_follow: it draws walks, which follow directions.
        messages: how it passes messages along edges: "weighted" by the edges' weights, "plain" or "none". Messages
            follow directions; an encoder gets both from `Inputs`.
        by_rows: several processes may encode, each its own rows: it is made of the parts that take `Inputs.ranks`.
    """

    name: ClassVar[str] = ""
    label: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    citation: ClassVar[str] = ""
    references: ClassVar[tuple[Reference, ...]] = ()
    formula: ClassVar[str] = ""
    loss: ClassVar[str] = "cross-entropy"
    uses_features: ClassVar[bool] = True
    walks_follow: ClassVar[bool] = False
    messages: ClassVar[Literal["weighted", "plain", "none"]] = "weighted"
    by_rows: ClassVar[bool] = False

    @classmethod
    def info(cls) -> Info:
        """Source, formula, what it supports and what it cannot do."""
        made = cls()
        messages = {
            "weighted": "in the loss, and messages are weighed by them",
            "plain": "in the loss; messages are not weighed",
            "none": "in the loss",
        }
        weights = "walks are drawn by them" if made.plan() is not None else messages[cls.messages]
        followed = "messages run along them" if cls.messages != "none" else "not used, as there are no messages"
        return describe(
            cls,
            (
                ("Loss", cls.loss),
                ("Node features", "input, where there are any" if cls.uses_features else "not used"),
                ("Edge weights", weights),
                ("Directions", "walks run along them" if cls.walks_follow else followed),
                (
                    "Scores",
                    "chances of a link" if made.calibrated else "to rank by; as chances they have no calibration",
                ),
                ("What-if", "re-encodes at once" if cls.messages != "none" else "re-trains where edges change"),
            ),
        )

    @property
    def calibrated(self) -> bool:
        """Whether the sigmoid of z_u . z_v is trained as the chance of a link."""
        return self.loss == "cross-entropy"

    @property
    def has_context(self) -> bool:
        """Whether nodes have vectors besides that others' last columns meet, see `context`."""
        return False

    def step_floats(self, num_nodes: int, num_messages: int, dim: int) -> int:
        """About how many float32 numbers one member holds in a step: parameters, Adam's state, the graph of a pass.

        Args:
            num_nodes: N.
            num_messages: edges in both directions.
            dim: d.
        """
        return 8 * num_nodes * dim + 2 * num_messages

    def init(self, inputs: Inputs, dim: int, generator: Generator) -> Parameters:
        """Fresh parameters of one member, without the member axis; all draws from `generator`."""
        raise NotImplementedError

    def plan(self) -> WalkPlan | None:
        """The walks whose pairs take the place of edges in the loss; None: the edges themselves."""
        return None

    def context(self, parameters: Parameters) -> Tensor | None:
        """(K, N, h) contexts that the last h columns of others' embeddings meet; None: embeddings alone."""
        return None

    def encode(self, parameters: Parameters, inputs: Inputs) -> Tensor:
        """Embeddings (K, N, d) from parameters that carry a leading member axis K."""
        raise NotImplementedError
