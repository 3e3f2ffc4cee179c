"""No debiasing: the plain link-prediction embedding, the line every method is measured against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.debias.base import Method
from uge_core.plugin import PAPER, Reference
from uge_core.registry import register


@register
@dataclass(frozen=True)
class NoDebiasing(Method):
    r"""The loss of Eq. (1) alone: every observed edge weighs 1, nothing is added.

    Cannot: debias. It is the line every method is measured against.
    """

    label: ClassVar[str] = "No debiasing"
    summary: ClassVar[str] = "Trains on the links as they are: what every other method is compared with."
    citation: ClassVar[str] = "Wang et al., WWW 2022, Eq. (1)"
    references: ClassVar[tuple[Reference, ...]] = (PAPER,)
    formula: ClassVar[str] = (
        r"\frac{1}{2|E|} \sum_{(u,v) \in E} \ell^+(z_u \cdot z_v) + \frac{1}{2} \mathbb{E}_{(u,s) \notin E}\, \ell^-(z_u \cdot z_s)"
    )
    color: ClassVar[str] = "#8C8C8C"
    symbol: ClassVar[str] = "circle"
    position: ClassVar[int] = 0
    reads_attributes: ClassVar[bool] = False
