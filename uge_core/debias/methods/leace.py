"""LEACE: plain training, then the smallest change after which no linear classifier reads the attribute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.debias.bias_free import MethodInputs
from uge_core.debias.methods._eraser import Eraser, learnable
from uge_core.debias.postprocess.base import Postprocess
from uge_core.debias.postprocess.leace import Leace
from uge_core.plugin import Reference
from uge_core.registry import register


@register
@dataclass(frozen=True)
class LEACE(Eraser):
    r"""Erasure of the finished embedding: z - W^+ P W (z - m), W = S_zz^{-1/2}, P onto the columns of W S_za.

    Fitted on the nodes that attackers learn from, so `seen` and `unseen` are one embedding. Several
    attributes: their indicators side by side. On a bipartite graph people alone are moved. It takes away
    as many dimensions as there are values, less one per attribute, so it is refused where none would be
    left.

    Departures: S_zz is not shrunk and no small correlation is dropped, as the authors' package does.

    Cannot: hide anything from attackers that are not linear. A linear probe is at chance by construction: judge it by
    the worst attacker.
    """

    label: ClassVar[str] = "LEACE"
    summary: ClassVar[str] = (
        "After training, takes out what linear classifiers read, moving vectors as little as possible."
    )
    citation: ClassVar[str] = "Belrose et al., NeurIPS 2023, Theorem 4.3"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "N. Belrose, D. Schneider-Joseph, S. Ravfogel, R. Cotterell, E. Raff, S. Biderman",
            "LEACE: Perfect linear concept erasure in closed form",
            "NeurIPS",
            2023,
            "arXiv:2306.03819",
        ),
    )
    formula: ClassVar[str] = (
        r"z \leftarrow z - W^+ P\, W (z - m), \quad W = \Sigma_{zz}^{-1/2}, \quad P\ \text{the projection onto the columns of}\ W \Sigma_{za}"
    )
    color: ClassVar[str] = "#56B4E9"
    symbol: ClassVar[str] = "diamond-tall"
    position: ClassVar[int] = 27

    def postprocess(self, inputs: MethodInputs) -> Postprocess:
        """The erasure."""
        return Leace(tuple(v.codes for v in inputs.sensitive), learnable(inputs), inputs.side == 0)
