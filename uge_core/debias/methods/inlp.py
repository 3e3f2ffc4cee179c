"""INLP: plain training, then linear classifiers of the attribute are projected away, one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.debias.bias_free import MethodInputs
from uge_core.debias.methods._eraser import Eraser, learnable
from uge_core.debias.postprocess.base import Postprocess
from uge_core.debias.postprocess.inlp import Inlp
from uge_core.plugin import Reference
from uge_core.registry import option, register


@register
@dataclass(frozen=True)
class INLP(Eraser):
    r"""Projection of the finished embedding: z <- (I - B B^T) z, B spanning the weights of classifiers fitted in turn.

    Rounds end when a logistic regression is at chance on nodes it did not learn from; each takes away as
    many dimensions as there are values, less one per attribute. Fitted on the nodes that attackers learn
    from, so `seen` and `unseen` are one embedding. On a bipartite graph people alone are moved.

    Departures: logistic regressions in place of linear support vector machines; rounds end by a test, not by a number.

    Cannot: hide anything from attackers that are not linear. An attribute with about as many values as the embedding
    has dimensions is refused: nothing would be left.
    """

    label: ClassVar[str] = "INLP"
    summary: ClassVar[str] = (
        "After training, takes out the directions that linear classifiers read the attribute from, one after another."
    )
    citation: ClassVar[str] = "Ravfogel et al., ACL 2020, Algorithm 1"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "S. Ravfogel, Y. Elazar, H. Gonen, M. Twiton, Y. Goldberg",
            "Null It Out: Guarding Protected Attributes by Iterative Nullspace Projection",
            "ACL",
            2020,
            "arXiv:2004.07667",
        ),
    )
    formula: ClassVar[str] = (
        r"z \leftarrow (I - B B^\top)\, z, \quad B\ \text{an orthonormal basis of the classifiers' weights so far}"
    )
    color: ClassVar[str] = "#56B4E9"
    symbol: ClassVar[str] = "diamond-wide"
    position: ClassVar[int] = 28

    rounds: int = option(
        0, "at most so many rounds; 0: until a linear classifier is at chance", low=0, label="Most rounds"
    )

    def postprocess(self, inputs: MethodInputs) -> Postprocess:
        """The projection."""
        fit, people = learnable(inputs), inputs.side == 0
        return Inlp(tuple(v.codes for v in inputs.sensitive), fit, people, self.rounds)
