"""UGE-R: group pairs must score alike with and without the sensitive attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.debias.base import Method
from uge_core.debias.bias_free import MethodInputs
from uge_core.debias.methods import _options
from uge_core.debias.penalties.base import Penalty
from uge_core.plugin import PAPER, Reference
from uge_core.registry import option, register


@register
@dataclass(frozen=True)
class UGER(Method):
    r"""Regularisation, Eq. (14): loss + lambda * gap between Q and Q~ over all node pairs.

    Q is the mean score of a pair of groups, Q~ that of the groups without the sensitive attributes.

    Departures: squared instead of the norm (`norm=absolute`), exact over all pairs instead of sampled group pairs
    (`estimator=sampled`), divided by the number of pairs, so that lambda means the same on every graph.

    Cannot: hide an attribute from attackers that are not linear: it moves products of group means alone.
    """

    label: ClassVar[str] = "UGE-R"
    summary: ClassVar[str] = "Adds a penalty on differences between groups' average scores; a larger λ hides more."
    citation: ClassVar[str] = "Wang et al., WWW 2022, Eq. (14)"
    references: ClassVar[tuple[Reference, ...]] = (PAPER,)
    formula: ClassVar[str] = (
        r"\ell + \lambda\, \frac{1}{N^2} \sum_{u,v} \left( Q_{a_u a_v} - \tilde Q_{A_u A_v} \right)^2, \quad Q_{ab} = \text{mean}\,\{ z_u \cdot z_v : a_u = a,\ a_v = b \}"
    )
    color: ClassVar[str] = "#009E73"
    symbol: ClassVar[str] = "star"
    position: ClassVar[int] = 2
    uses_lambda: ClassVar[bool] = True

    pair_weighting: str = option(
        "pairs",
        "pairs: the paper's sum; cells: uniform, as the authors' code",
        choices=_options.PAIR_WEIGHTING,
        label="What counts alike in the penalty",
        words=("each pair of people", "each pair of groups"),
    )
    norm: str = option(
        "squared",
        "squared, or absolute as the paper's text",
        choices=_options.NORM,
        label="Size of a gap",
        words=("squared", "absolute"),
    )
    estimator: str = option(
        "exact",
        "exact over all pairs, or sampled group pairs as the paper",
        choices=_options.ESTIMATOR,
        label="How gaps are computed",
        words=("exactly, over all pairs", "from sampled pairs of groups"),
    )
    num_group_pairs: int = option(
        0,
        "group pairs per step when sampled; 0: a tenth of the groups",
        low=0,
        label="Pairs of groups sampled per step",
    )
    scores: str = option(
        "raw",
        "raw dot products, or their sigmoid (sampled only)",
        choices=_options.SCORES,
        label="Scores whose means are compared",
        words=("raw scores", "chances of a link"),
    )
    item_cells: str = option(
        "none", "bipartite: none (the paper), popularity, or an attribute of items", label="Groups of items"
    )

    @property
    def reads_others(self) -> bool:
        """See `Method.reads_others`."""
        return True

    def unread(self, bipartite: bool) -> set[str]:
        """The exact estimator draws nothing."""
        drawn = {"num_group_pairs", "scores"} if self.estimator == "exact" and self.scores == "raw" else set()
        return super().unread(bipartite) | drawn

    def check(self, inputs: MethodInputs, loss: str) -> None:
        """Refuses sigmoid scores with the exact estimator."""
        _options.check_scores(self.scores, self.estimator)

    def penalty(self, inputs: MethodInputs) -> Penalty:
        """The gap between Q and Q~."""
        return _options.mean_gap(
            inputs,
            item_cells=self.item_cells,
            pair_weighting=self.pair_weighting,
            norm=self.norm,
            estimator=self.estimator,
            num_group_pairs=self.num_group_pairs,
            scores=self.scores,
        )
