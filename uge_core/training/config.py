"""A run is a point in a grid: data, sensitive attributes, backbone, method, lambda, seed.

`RunConfig.resolve` turns what a user typed into one canonical record: defaults filled in from the
graph's layout, fields that this backbone and method do not read put back to their defaults (lambda
for none, UGE-W and UGE-O; the sensitive attributes for none; negatives under BPR; edge weights and
directions on a graph without), so that two grid
points that mean the same run have the same id.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from uge_core.backbones.base import Backbone
from uge_core.debias.base import Method
from uge_core.errors import ConfigError
from uge_core.graph.graph import AttributedGraph
from uge_core.registry import build_options, check_option, find, found, option, unknown_name

# Counts up when a change to training or audit changes numbers, so that an older run is not taken for the same; what of
# an audit changed stands in `audit.version`.
ENGINE = 7


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run's numbers but the data and the device. JSON calls `lam` "lambda".

    `unknown` is kept for every method, as the audit reads it even where training does not. Settings describe
    themselves.

    Attributes:
        dataset: the graph's name.
        sensitive: the attributes that training treated, jointly; none for a method that reads none.
        backbone: the model that embeds; empty for an embedding from elsewhere.
        method: the debiasing method, or external: the embedding came from elsewhere.
        lam: the weight of the penalty; null for a method that has none.
        warm_from: the lambda from whose end this run started; null: from its seed.
        unknown: what a missing value is.
        hidden: what the values hidden from the twin were for it; null without a twin.
        exposure: both: with a twin that did not see the tested nodes' values; seen: without.
        backbone_options: the backbone's own settings.
        method_options: the method's own settings.
    """

    dataset: str
    sensitive: tuple[str, ...] = ()
    backbone: str = "node2vec"
    method: str = "none"
    lam: float | None = None
    dim: int = option(16, "size of an embedding", low=1, high=4096, label="Numbers per person")
    epochs: int = option(800, "full passes over the training edges", low=1, label="Epochs")
    learning_rate: float = option(0.01, "Adam's step size", low=1e-8, high=10, label="Learning rate")
    weight_decay: float = option(5e-4, "L2 on layer matrices; never on lookup tables", low=0, label="Weight decay")
    seed: int = option(0, "keys initialisation and the method's draws", low=0, label="Seed")
    split_seed: int = option(
        0, "keys the split, the negatives by epoch and the probe split", low=0, label="Seed of the split"
    )
    test_share: float = option(0.1, "held-out share of the edges", low=0.0, high=0.9, label="Share of links held out")
    validation: float = option(
        0.0,
        "share of training edges set aside to keep each member's best epoch",
        low=0.0,
        high=0.9,
        label="Share of links that choose the epoch",
    )
    warm_from: float | None = None
    warm_epochs: int = option(
        0,
        "epochs of a run that starts from another lambda's end; 0: a fifth of the epochs",
        low=0,
        label="Epochs of a warm start",
    )
    unknown: str = "exclude"
    hidden: str | None = None
    exposure: str = "both"
    negatives: str = option(
        "shared",
        "shared: one block of random nodes per step; listed: the paper's fixed draws",
        choices=("shared", "listed"),
        label="Strangers that links are told from",
        words=("one random block a step", "fixed draws, as in the paper"),
    )
    block_size: int = option(32, "nodes in the shared block of negatives", low=1, label="Strangers in a block")
    num_negatives: int = option(20, "listed negatives per observed edge", low=1, label="Strangers per link")
    edge_weights: str = option(
        "use",
        "use: an edge of weight 2 counts as two; ignore: every edge counts the same",
        choices=("use", "ignore"),
        label="Weights of edges",
        words=("count", "are ignored"),
    )
    direction: str = option(
        "follow",
        "follow: messages and walks run as edges do; ignore: both ways; the loss has no direction",
        choices=("follow", "ignore"),
        label="Directions of edges",
        words=("are followed", "are ignored"),
    )
    backbone_options: dict[str, Any] = field(default_factory=dict)
    method_options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def resolve(
        cls,
        graph: AttributedGraph,
        *,
        sensitive: str | list[str] | tuple[str, ...] = (),
        backbone: str = "node2vec",
        method: str = "none",
        lam: float | None = None,
        unknown: str | None = None,
        hidden: str = "impute",
        exposure: str = "both",
        warm_from: float | None = None,
        options: dict[str, Any] | None = None,
        **training: Any,
    ) -> RunConfig:
        """The canonical config of a run on `graph`.

        Args:
            graph: what is trained on; its layout gives defaults.
            sensitive: attribute names, debiased jointly; text is split at commas and plus signs.
            backbone: a name from ``registry.names("backbones")``.
            method: a name from ``registry.names("debias.methods")``.
            lam: weight of the penalty, at least 0; None takes the method's default.
            unknown: policy for missing values: level, exclude or impute; None takes the layout's.
            hidden: policy for values hidden from the twin: impute or exclude.
            exposure: both, or seen alone (no twin).
            warm_from: the lambda of a run of `epochs`, otherwise the same, from whose end this one starts.
            options: ``--set`` values, each a field of this class, of the backbone or of the method.
            **training: fields of this class, such as epochs or seed.

        Raises:
            ConfigError: a value that is not allowed, with field, value and what is allowed.
            GraphError: an attribute the graph does not have.
        """
        backbone_cls, method_cls = find("backbones", backbone), find("debias.methods", method)
        policies: tuple[tuple[str, str | None, tuple[str | None, ...]], ...] = (
            ("unknown", unknown, (None, "level", "exclude", "impute")),
            ("hidden", hidden, ("impute", "exclude")),
            ("exposure", exposure, ("both", "seen")),
        )
        for name, value, allowed in policies:
            if value not in allowed:
                raise ConfigError(f"{name} = {value!r} is not allowed; allowed: {', '.join(a for a in allowed if a)}")
        names = tuple(graph.attribute(n).name for n in split_names(sensitive))
        if len(set(names)) < len(names):
            raise ConfigError(f"sensitive = {', '.join(names)} names an attribute twice")
        for n in names:
            a = graph.attribute(n)
            if a.side == "items":
                raise ConfigError(
                    f"sensitive = {n!r} is an attribute of items; only attributes of people can be debiased"
                )
            if int((a.sizes > 0).sum()) < 2:
                raise ConfigError(
                    f"sensitive = {n!r} has one value ({a.labels[0] if a.labels else 'none'}); two groups are "
                    "needed to measure a difference"
                )
        if method_cls.reads_attributes and not names:
            known = ", ".join(a.name for a in graph.audited) or "none"
            raise ConfigError(f"method {method} needs at least one sensitive attribute; this graph has: {known}")
        for weight in (lam, warm_from):
            if weight is not None and not _is_weight(weight):
                raise ConfigError(
                    f"lambda = {found(weight)} is out of range; allowed: 0 or more (0.5 is the paper's choice)"
                )
        training.setdefault("test_share", graph.defaults.test_share)
        backbone_settings: dict[str, Any] = dict(graph.defaults.backbone_options.get(backbone, {}))
        method_settings: dict[str, Any] = {}
        own = {f.name for f in fields(cls) if f.metadata}
        for key, value in (options or {}).items():
            if key in own:
                training[key] = value
            elif key in {f.name for f in fields(backbone_cls)}:
                backbone_settings[key] = value
            elif key in {f.name for f in fields(method_cls)}:
                method_settings[key] = value
            else:
                settings = sorted(own | {f.name for f in fields(backbone_cls)} | {f.name for f in fields(method_cls)})
                raise ConfigError(
                    f"--set {key}={value}: no such setting of {backbone} or {method}; allowed: {', '.join(settings)}"
                )
        for key in training:
            if key not in own:
                raise ConfigError(f"{key} is not a setting; allowed: {', '.join(sorted(own))}")
        checked = {k: check_option(cls, k, v, "training") for k, v in training.items()}
        if backbone_cls.loss == "bpr" and checked.get("negatives") == "listed":
            raise ConfigError(
                f"negatives = 'listed' is not for {backbone}: BPR draws a fresh stranger for each pair and epoch"
            )
        for name in unread(
            graph, backbone_cls, checked.get("negatives", "shared"), steps_follow=method_cls.steps_follow
        ):
            checked.pop(name, None)
        debiasing: Method = build_options(method_cls, method_settings, f"method {method}")
        _check_item_cells(graph, getattr(debiasing, "item_cells", "none"))
        start = {f.name: f.default for f in fields(method_cls)}
        debiasing = replace(debiasing, **{name: start[name] for name in debiasing.unread(graph.bipartite)})
        reads, penal = method_cls.reads_attributes, method_cls.uses_lambda
        weight = float(method_cls.default_lam if lam is None else lam) if penal else None
        warm = penal and warm_from is not None and warm_from != weight
        epochs = checked.get("epochs", cls.epochs)
        checked["warm_epochs"] = (checked.get("warm_epochs") or max(1, epochs // 5)) if warm else 0
        return cls(
            dataset=graph.name,
            sensitive=tuple(sorted(names)) if reads else (),
            backbone=backbone,
            method=method,
            lam=weight,
            warm_from=float(warm_from) if warm and warm_from is not None else None,
            unknown=unknown or graph.defaults.unknown,
            hidden=hidden if reads and exposure == "both" else None,
            exposure=exposure if reads else "seen",
            backbone_options=asdict(build_options(backbone_cls, backbone_settings, f"backbone {backbone}")),
            method_options=asdict(debiasing),
            **checked,
        )

    def cold(self) -> RunConfig:
        """The run from whose end this one starts; itself where it starts from its seed."""
        return self if self.warm_from is None else replace(self, lam=self.warm_from, warm_from=None, warm_epochs=0)

    @property
    def calibrated(self) -> bool:
        """Whether the sigmoid of its scores is trained as the chance of a link."""
        backbone: Backbone = build_options(find("backbones", self.backbone), self.backbone_options, self.backbone)
        return backbone.calibrated

    @property
    def score(self) -> str:
        """What its pairs are scored by, a name that `scores.scorer` knows."""
        method: Method = build_options(
            find("debias.methods", self.method), self.method_options, f"method {self.method}"
        )
        return method.scored_by

    def to_json(self) -> dict[str, Any]:
        """The canonical record; `from_json` is its inverse."""
        record = asdict(self)
        record["lambda"] = record.pop("lam")
        record["sensitive"] = list(self.sensitive)
        return record

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> RunConfig:
        """The config a record came from; fields this version does not have are left out."""
        values = dict(record)
        values["lam"] = values.pop("lambda")
        values["sensitive"] = tuple(values["sensitive"])
        own = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in values.items() if k in own})

    def run_id(self, fingerprint: str) -> str:
        """Twelve hex digits of the SHA-256 of this record and of the graph's content."""
        record = self.to_json()
        del record["dataset"]
        text = json.dumps([ENGINE, record, fingerprint], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def unread(
    graph: AttributedGraph, backbone_cls: type[Backbone], negatives: str, *, steps_follow: bool = False
) -> Iterator[str]:
    """Training settings that change nothing for this graph, backbone and kind of negatives.

    `steps_follow` where a method takes steps along edges.
    """
    if backbone_cls.loss == "bpr":
        yield from ("negatives", "block_size", "num_negatives")
    else:
        yield "block_size" if negatives == "listed" else "num_negatives"
    if not backbone_cls.uses_features:
        yield "weight_decay"
    if not graph.weighted:
        yield "edge_weights"
    followed = backbone_cls.messages != "none" or backbone_cls.walks_follow or steps_follow
    if not (graph.directed and followed):
        yield "direction"


def _is_weight(value: Any) -> bool:
    """Whether a lambda is a finite number of at least 0."""
    try:
        return not isinstance(value, (bool, str)) and math.isfinite(value) and value >= 0
    except (TypeError, OverflowError):
        return False


def _check_item_cells(graph: AttributedGraph, kind: str) -> None:
    allowed = ("none", "popularity", *(a.name for a in graph.attributes if a.side == "items"))
    if kind not in allowed:
        raise ConfigError(unknown_name("item_cells", kind, allowed))


def known_settings(backbone: str, method: str) -> set[str]:
    """Names of the settings that a run of these two takes: those of training, the backbone's and the method's."""
    own = (find("backbones", backbone), find("debias.methods", method))
    return {f.name for f in fields(RunConfig) if f.metadata} | {f.name for cls in own for f in fields(cls)}


def split_names(value: str | list[str] | tuple[str, ...]) -> list[str]:
    """Attribute names out of text with commas or plus signs, or of a list."""
    parts = value.replace("+", ",").split(",") if isinstance(value, str) else list(value)
    return [p.strip() for p in parts if p.strip()]
