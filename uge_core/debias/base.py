"""What a debiasing method is: the slots it fills in the one training loop.

A method may yield a cell table (what each observed edge counts, and what is added to each pair's
logit while training), a penalty on the embeddings, factors of single edges, rules for walks, a head
between the encoder and the loss, and a postprocess for the embedding after training. Slots it does not
fill hold do-nothing objects, so the loop has no branch per method. A subclass is a frozen dataclass
whose fields are its options, one file per method.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar

from uge_core.debias.bias_free import CellTable
from uge_core.debias.edge_factors import EdgeFactors, NoFactors
from uge_core.debias.heads.base import Head, NoHead
from uge_core.debias.penalties.base import NoPenalty, Penalty
from uge_core.debias.postprocess.base import Keep, Postprocess
from uge_core.plugin import Reference

if TYPE_CHECKING:
    from uge_core.debias.bias_free import MethodInputs
    from uge_core.graph.walks import StepRule


@dataclass(frozen=True)
class Method:
    """Base of the debiasing methods.

    Attributes:
        name: set by `register` from the file's name.
        label: the name on screen.
        citation: where it comes from, in short.
        references: the same in full.
        formula: as LaTeX; in one line of text it is the first of the docstring, see `uge_core.plugin`.
        reads_attributes: attribute values are inputs of its training, so it has a `seen` and an
            `unseen` audit.
        uses_lambda: it has a penalty, weighed by lambda.
        default_lam: lambda where none is given.
        steps_follow: it takes steps along edges, which follow directions.
        widens: its head shows the loss more columns than others'. It trains in a pass of its own: kernels sum other
            widths in another order, a difference in the last digit that an adversary beside it would enlarge.
        color: its colour in every figure: Okabe-Ito's, and of our own methods others, which lie apart from those and from
            each other for colour-blind eyes too.
        symbol: its marker in every figure, which tells methods of one colour apart.
        position: where it stands in lists; the paper's methods first.
    """

    name: ClassVar[str] = ""
    label: ClassVar[str] = ""
    citation: ClassVar[str] = ""
    references: ClassVar[tuple[Reference, ...]] = ()
    formula: ClassVar[str] = ""
    reads_attributes: ClassVar[bool] = True
    uses_lambda: ClassVar[bool] = False
    default_lam: ClassVar[float] = 0.5
    steps_follow: ClassVar[bool] = False
    widens: ClassVar[bool] = False
    color: ClassVar[str] = "#56B4E9"
    symbol: ClassVar[str] = "triangle-up"
    position: ClassVar[int] = 99

    @property
    def scored_by(self) -> str:
        """What training and audit score its pairs by, a name that `scores.scorer` knows."""
        return "dot"

    @property
    def reads_others(self) -> bool:
        """Whether values of attributes that are not treated enter training too, as part of cells."""
        return False

    def unread(self, bipartite: bool) -> set[str]:
        """Options that change nothing on this kind of graph or with these other options."""
        return set() if bipartite else {"item_cells"} & {f.name for f in fields(self)}

    def check(self, inputs: MethodInputs, loss: str) -> None:
        """Raises ConfigError where the method cannot serve this graph or loss, with the reason."""

    def cells(self, inputs: MethodInputs) -> CellTable:
        """The weight and the logit offset of every pair of groups; 1 and 0 where a method says nothing."""
        return CellTable.neutral(inputs.graph.num_nodes)

    def penalty(self, inputs: MethodInputs) -> Penalty:
        """What is added to the loss, before lambda."""
        return NoPenalty()

    def edges(self, inputs: MethodInputs) -> EdgeFactors:
        """What single training edges count, beside their cell's weight."""
        return NoFactors()

    def walks(self, inputs: MethodInputs) -> StepRule | None:
        """How a backbone that walks chooses steps, in place of `edges`.

        None: by the edges' weights times what their cells and `edges` weigh them in the loss.
        """
        return None

    def head(self, inputs: MethodInputs, penalty: Penalty) -> Head:
        """What stands between the encoder and the loss; it may share a step's draw with the member's penalty."""
        return NoHead()

    def postprocess(self, inputs: MethodInputs) -> Postprocess:
        """What is done to the finished embedding."""
        return Keep()

    def dimensions(self, inputs: MethodInputs) -> int:
        """How many dimensions its postprocess takes away, if it takes any.

        As many as an embedding has are refused, half of them advised against.
        """
        return 0
