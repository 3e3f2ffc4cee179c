"""One member of an ensemble: its config, its method's parts and its random streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from uge_core.arrays import BoolArray, FloatArray
from uge_core.backbones.base import Backbone
from uge_core.debias.base import Method
from uge_core.debias.bias_free import THIN, CellTable, MethodInputs
from uge_core.debias.edge_factors import EdgeFactors, FixedFactors, NoFactors
from uge_core.debias.heads.base import Head, NoHead
from uge_core.debias.penalties.base import Penalty
from uge_core.debias.postprocess.base import Keep, Postprocess
from uge_core.errors import ConfigError
from uge_core.graph.association import PROXY, association
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit
from uge_core.graph.walks import StepRule
from uge_core.registry import build_options, find
from uge_core.training.config import RunConfig
from uge_core.training.method_inputs import method_inputs, own_weights


@dataclass(frozen=True, eq=False)
class Member:
    """One member of an ensemble: a run, or the twin of one, with what its method fills the slots of the loop with."""

    config: RunConfig
    method: Method
    inputs: MethodInputs
    cells: CellTable
    edges: EdgeFactors
    rule: StepRule | None
    penalty: Penalty
    head: Head
    postprocess: Postprocess
    hidden: dict[str, BoolArray]
    twin: bool
    position: int

    @property
    def label(self) -> str:
        """What messages call it."""
        c = self.config
        lam = "" if c.lam is None else f" lambda={c.lam:g}"
        lam += "" if c.warm_from is None else f" from lambda={c.warm_from:g}"
        names = f" [{'+'.join(c.sensitive)}]" if c.sensitive else ""
        return f"{c.method}{lam}{names} seed={c.seed}{' twin' if self.twin else ''}"

    @property
    def plain(self) -> bool:
        """The exported embedding is what the encoder gives on the graph as it is."""
        own = self.edges.in_kept() is not None
        return isinstance(self.head, NoHead) and isinstance(self.postprocess, Keep) and not own

    @property
    def fixed(self) -> bool:
        """Its steps do the same at every epoch but for the draws of negatives and penalty."""
        return isinstance(self.head, NoHead) and isinstance(self.edges, (NoFactors, FixedFactors))


def cell_advice(member: Member) -> Iterator[str]:
    """What would make this member's tables better: thin cells, and copies of a sensitive attribute among the others."""
    if member.cells.thin_mass > 0.5:
        yield (
            f"cells are thin: {member.cells.thin_mass:.0%} of the training edges "
            f"lie where fewer than {THIN:g} are expected, "
            "so ratios are mostly chance; use --set independence=true, or fewer or coarser attributes"
        )
    yield from member.cells.notes
    if 2 * member.method.dimensions(member.inputs) >= member.config.dim:
        yield _dimensions(member.method, member.inputs, member.config.dim)
    for s, o in product(member.config.sensitive, member.inputs.other):
        sensitive, other = member.inputs.graph.attribute(s), member.inputs.graph.attribute(o.name)
        if sensitive.side == other.side and association(sensitive, other) >= PROXY:
            yield (
                f"{other.name} says nearly the same as {sensitive.name} and counts as not sensitive, so "
                f"{sensitive.name} stays "
                f"readable through it; use --sensitive {sensitive.name}+{other.name}, or leave it out with --attributes"
            )


def _dimensions(method: Method, inputs: MethodInputs, dim: int) -> str:
    """That a method takes most or all of an embedding away, and what to do."""
    lost = method.dimensions(inputs)
    names = ", ".join(f"{v.name} ({len(v.labels)} values)" for v in inputs.sensitive)
    return (
        f"{method.name} takes away {lost} of {dim} dimensions, one for each value but one of {names}; "
        f"use --set dim={4 * lost} or more, or join values, numbers by bins in a dataset.yaml"
    )


def edge_columns_used(config: RunConfig, backbone: Backbone, method: Method, split: LinkSplit) -> dict[str, str]:
    """What became of the edges' weights and directions; empty where they have none."""
    uses = {}
    if split.weights is not None:
        messages = ", and messages are weighed" if backbone.messages == "weighted" else ""
        if backbone.messages == "plain":
            messages = f"; messages of {backbone.label} are not weighed, attention takes the place of weights"
        used = f"used in the loss and in R and R~{messages}"
        uses["weights"] = "ignored" if config.edge_weights == "ignore" else used
    if split.directions is not None:
        followed = "ignored: messages run both ways" if config.direction == "ignore" else "followed by messages"
        if backbone.walks_follow:
            followed = "ignored: walks go both ways" if config.direction == "ignore" else "followed by walks"
        elif backbone.messages == "none":
            followed = "not used, as there are no messages"
            if method.steps_follow:
                both = "ignored: steps go both ways"
                followed = both if config.direction == "ignore" else f"followed by the steps of {method.label}"
        uses["directions"] = f"{followed}; the loss is over unordered pairs"
    return uses


def build_backbone(config: RunConfig) -> Backbone:
    """The backbone with the options that a config gives it."""
    backbone: Backbone = build_options(find("backbones", config.backbone), config.backbone_options, config.backbone)
    return backbone


def lone_member(config: RunConfig, graph: AttributedGraph, split: LinkSplit) -> Member:
    """The member that a config trains by itself, without a twin."""
    return MemberBuilder(graph, split, build_backbone(config), own_weights(config, split)).member(config, twin=False)


class MemberBuilder:
    """Builds members; equal inputs and equal tables are made once and shared."""

    def __init__(
        self, graph: AttributedGraph, split: LinkSplit, backbone: Backbone, weights: FloatArray | None
    ) -> None:
        self.graph, self.split, self.loss, self.weights = graph, split, backbone.loss, weights
        self.pairs = "edges" if backbone.plan() is None else "walks"
        self.inputs_by_key: dict[str, tuple[MethodInputs, dict[str, BoolArray]]] = {}
        self.tables: dict[str, CellTable] = {}
        self.factors: dict[str, tuple[EdgeFactors, StepRule | None]] = {}

    def checked(self, config: RunConfig, *, twin: bool) -> tuple[Method, MethodInputs, dict[str, BoolArray], str]:
        """The config's method, with the inputs it can serve on and that one's key.

        Raises:
            ConfigError: it cannot.
        """
        method: Method = build_options(find("debias.methods", config.method), config.method_options, config.method)
        drawn = config.seed if "impute" in (config.unknown, config.hidden) else None
        key = repr((config.sensitive, config.unknown, config.hidden if twin else None, twin, drawn, config.split_seed))
        if key not in self.inputs_by_key:
            seen, hidden = method_inputs(config, self.graph, self.split, self.weights, twin=twin)
            self.inputs_by_key[key] = replace(seen, loss=self.loss, pairs=self.pairs), hidden
        inputs, hidden = self.inputs_by_key[key]
        method.check(inputs, self.loss)
        if method.dimensions(inputs) >= config.dim:
            raise ConfigError(_dimensions(method, inputs, config.dim))
        return method, inputs, hidden, key

    def member(self, config: RunConfig, *, twin: bool, position: int = 0) -> Member:
        """One member of the ensemble; `position` is its config's among those given."""
        method, inputs, hidden, key = self.checked(config, twin=twin)
        table_key = repr((key if method.reads_attributes else None, config.method, config.method_options))
        if table_key not in self.tables:
            self.tables[table_key] = method.cells(inputs)
            self.factors[table_key] = method.edges(inputs), method.walks(inputs)
        edges, rule = self.factors[table_key]
        penalty = method.penalty(inputs)
        return Member(
            config=config,
            method=method,
            inputs=inputs,
            cells=self.tables[table_key],
            edges=edges,
            rule=rule,
            penalty=penalty,
            head=method.head(inputs, penalty),
            postprocess=method.postprocess(inputs),
            hidden=hidden,
            twin=twin,
            position=position,
        )
