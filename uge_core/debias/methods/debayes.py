"""DeBayes: what degrees and the sensitive attributes say of the graph is an offset, dropped after training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.arrays import IntArray
from uge_core.debias.bias_free import CellTable, MethodInputs, Partition, partition
from uge_core.debias.methods._scored import Scored
from uge_core.debias.prior_cells import check_size, prior_cells, without
from uge_core.debias.priors import Prior, block_totals, degree_by_group
from uge_core.errors import ConfigError
from uge_core.plugin import Reference
from uge_core.registry import option, register

_FEW = 64
_ON_WALKS = 0.5
_BY_GROUP, _TOTALS = "degree-by-group", "block-totals"


@register
@dataclass(frozen=True)
class DeBayes(Scored):
    r"""Biased prior: train on logit = s_uv + logit P_uv, drop the prior after training.

    P is the maximum-entropy prior that meets, for each node, the number of its neighbours in each sensitive group:
    logit P_uv = r_{u, g_v} + r_{v, g_u}. What the prior explains the embedding need not hold.

    The original then scores pairs by distance with the degree prior P0 in P's place, or by distance alone. Here the
    exported embedding is scored by s_uv alone: the dot product z_u . z_v, or with ``score=distance`` the original's
    log s - (1 - 1/s^2) / 2 |z_u - z_v|^2, s = ``sigma_2``. ``degrees=learned`` (the default) stands for the former:
    the offset is logit P - logit P0, what the attribute adds to the degrees, and the score learns the degrees itself,
    as far as it can: a distance makes nobody likely to be linked to all others. ``degrees=prior`` stands for the
    latter, and ranks links without knowing who is popular (LastFM Asia, 200 epochs of node2vec by dot product:
    NDCG@10 .22 in place of .34, the country about as readable).

    Nodes without a value form a group of their own, imputed values count as values, and attributes that are not
    sensitive play no part. A node without a neighbour in a group has probability 0 there, which has no logit: such
    nodes share a ten-thousandth of the block's edges.

    Bipartite: pairs across the sides. Items without an attribute are one group, so a user's part is its degree and
    an item's is its popularity in each user group, which also stays under BPR. Where a backbone learns from walks
    the prior is still that of edges; pairs that meet need not be linked, so ``smoothing`` is at least a half there.

    Departures: the dot product in place of the distance unless asked for; several attributes form joint groups, where
    the original adds up a term per attribute, which has no short way to its optimum. Above 64 joint groups nearly all
    numbers of neighbours are 0 or 1 and the prior would be the edges themselves, so ``auto`` then meets degrees and the
    groups' totals, logit P_uv = t_u + t_v + w_{g_u g_v}.

    Cannot: weigh edges: its prior counts every edge once, whatever it weighs. Groups of a few people make a prior that
    is sure of its edges, which is said.
    """

    label: ClassVar[str] = "DeBayes"
    summary: ClassVar[str] = "A prior explains who links to which group, and is dropped after training."
    citation: ClassVar[str] = "Buyl and De Bie, ICML 2020"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "M. Buyl, T. De Bie",
            "DeBayes: a Bayesian Method for Debiasing Network Embeddings",
            "ICML",
            2020,
            "arXiv:2002.11442",
        ),
    )
    formula: ClassVar[str] = (
        r"\text{logit}_{uv} = s_{uv} + \text{logit}\, P_{uv}, \quad \text{logit}\, P_{uv} = r_{u g_v} + r_{v g_u}, \quad \sum_{v:\ g_v = s} P_{uv} = |\{ v \in N(u) : g_v = s \}|"
    )
    color: ClassVar[str] = "#56B4E9"
    symbol: ClassVar[str] = "hexagon2"
    position: ClassVar[int] = 21

    prior: str = option(
        "auto",
        "degree-by-group (the paper), block-totals, or auto: the former up to 64 joint groups of several attributes",
        choices=("auto", _BY_GROUP, _TOTALS),
        label="What the prior knows",
        words=("the finer that groups allow", "links of each person with each group", "links between groups"),
    )
    degrees: str = option(
        "learned",
        "learned: by the dot product, the offset is the attribute's part alone; prior: the offset holds them too",
        choices=("learned", "prior"),
        label="Numbers of links",
        words=("are learned by the embedding", "are held by the prior"),
    )
    smoothing: float = option(
        0.0,
        "share of each sum that follows the coarser model (block totals, or degrees); the paper has none",
        low=0.0,
        high=1.0,
        label="Smoothing of the prior",
    )
    item_cells: str = option(
        "none", "bipartite: none (items are one group), popularity, or an attribute of items", label="Groups of items"
    )

    def check(self, inputs: MethodInputs, loss: str) -> None:
        """Refuses block totals where items are one group: a user group's total is its users' degrees."""
        if self.prior == _TOTALS and inputs.graph.bipartite and self.item_cells == "none":
            raise ConfigError(
                "prior = 'block-totals' with items as one group says no more than degrees do; "
                "use --set prior=degree-by-group, or item_cells=popularity or an attribute of items"
            )

    def cells(self, inputs: MethodInputs) -> CellTable:
        """Weight 1, offset the biased prior's log odds."""
        part, prior = self._fit(inputs)
        learned = self.degrees == "learned"
        if learned:
            prior = without(prior, degree_by_group(inputs.side, inputs.side, inputs.train_edges))
        sampled = not learned and inputs.loss == "cross-entropy"
        return prior_cells(inputs, prior, sampled=sampled, notes=_notes(part, prior, inputs))

    def _fit(self, inputs: MethodInputs) -> tuple[Partition, Prior]:
        items = inputs.item_cells(self.item_cells)
        columns: list[IntArray] = [v.codes for v in inputs.sensitive]
        part = partition([*columns, *([] if items is None else [items])], inputs.side)
        check_size(inputs.graph.num_nodes, part.num_groups)
        pooled = len(columns) > 1 and part.num_groups > _FEW and not (inputs.graph.bipartite and items is None)
        form = block_totals if self.prior == _TOTALS or (self.prior == "auto" and pooled) else degree_by_group
        smoothing = max(self.smoothing, _ON_WALKS) if inputs.pairs == "walks" else self.smoothing
        return part, form(part.group, inputs.side, inputs.train_edges, smoothing)


def _notes(part: Partition, prior: Prior, inputs: MethodInputs) -> tuple[str, ...]:
    """Blocks whose groups are too small for their sums, and sums that were not met."""

    def name(group: int) -> str:
        values = zip(inputs.sensitive, part.values[group].tolist(), strict=False)
        return "+".join(v.labels[code] if code >= 0 else "unknown" for v, code in values)

    out = []
    if prior.saturated:
        across = inputs.graph.bipartite
        few = [name(s.a) if across else f"{name(s.a)} with {name(s.b)}" for s in prior.saturated[:5]]
        out.append(
            f"{len(prior.saturated)} pairs of groups hold links that the prior "
            "is sure of, as someone is linked to nearly "
            f"all of a group ({', '.join(few)}{', ...' if len(prior.saturated) > 5 else ''}); "
            "a coarser attribute has fewer"
        )
    if prior.error > 1e-3:
        out.append(f"the prior misses one of its sums by {prior.error:.1%}")
    return tuple(out)
