"""What one audit was asked, and how an estimate becomes a row."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from uge_core.arrays import FloatArray, IntArray
from uge_core.audit import calibrated
from uge_core.audit.base import METRICS, Row
from uge_core.audit.calibrated import Calibrated
from uge_core.audit.disclosure import Disclosure, Everybody, Measured, left_out_words
from uge_core.audit.leakage import Estimate
from uge_core.audit.ndcg import BiasFree
from uge_core.audit.sampling import Sampling
from uge_core.graph.graph import Attribute, AttributedGraph
from uge_core.graph.scores import Factors, Scorer
from uge_core.graph.split import LinkSplit, ProbeSplit, probe_split

Floors = MutableMapping[str, Any]


@dataclass(frozen=True, eq=False)
class AuditRequest:
    """What one audit was asked, checked and with names resolved."""

    graph: AttributedGraph
    split: LinkSplit | None
    embedding: FloatArray
    twin: FloatArray | None
    attributes: tuple[Attribute, ...]
    policies: Mapping[str, str]
    split_seed: int
    attackers: tuple[str, ...]
    treated: frozenset[str]
    read: frozenset[str]
    bias_free: Mapping[str, BiasFree]
    calibrated: bool
    scorer: Scorer
    notes: Mapping[str, str]
    twin_notes: Mapping[str, str]
    floors: Floors
    seed: int
    quick: bool = False
    threshold: float | None = None
    disclosure: Disclosure = field(default_factory=Everybody)
    sampling: Sampling = field(default_factory=Sampling)

    @cached_property
    def scored(self) -> Factors:
        """What scores the embedding's pairs."""
        return self.scorer.factors(self.embedding)

    @cached_property
    def scored_twin(self) -> Factors | None:
        """The twin's, or None."""
        return None if self.twin is None else self.scorer.factors(self.twin)

    @cached_property
    def calibration(self) -> Calibrated:
        """The scores as probabilities, or why they cannot be."""
        return calibrated.fit(self.scored, self.graph, self.split, self.split_seed)

    @cached_property
    def _measured(self) -> dict[str, Measured]:
        return {}

    def measured(self, attribute: Attribute) -> Measured:
        """The attribute without those whom the disclosure rule leaves out."""
        name = attribute.name
        if name not in self._measured:
            probe = probe_split(attribute, unknown=self.policies[name], seed=self.split_seed)
            self._measured[name] = self.without(attribute, probe)
        return self._measured[name]

    @property
    def num_people(self) -> int:
        """How many people the graph has: nodes, of a bipartite graph the users."""
        return int(self.graph.people.stop)

    @property
    def most_targets(self) -> int | None:
        """How many targets have lists; None: all."""
        return self.sampling.drawn(self.num_people)

    def attacked(self, probe: ProbeSplit) -> ProbeSplit:
        """The people attackers learn from and are tested on."""
        return self.sampling.probe(probe, self.num_people, self.split_seed)

    def without(self, attribute: Attribute, probe: ProbeSplit) -> Measured:
        """The same of another way to split people."""
        return self.disclosure.attribute(attribute, self.graph, probe)

    @property
    def left_out(self) -> dict[str, str]:
        """By attribute, a remark on those of its people who were left out."""
        return {
            name: words for name, m in self._measured.items() if (words := left_out_words(m, self.disclosure.least))
        }

    @property
    def edges(self) -> IntArray:
        """The edges an attacker may know: those of training; all where nobody knows which these were."""
        return self.graph.edges if self.split is None else self.split.train

    @property
    def exposure(self) -> str | None:
        """That of rows about no attribute."""
        return "seen" if self.read else None

    def exposure_of(self, attribute: str) -> str | None:
        """Whether training read this attribute's values."""
        return "seen" if attribute in self.read else None


def make_row(metric: str, estimate: Estimate, *notes: str | None, ci_kind: str | None = "nodes", **values: Any) -> Row:
    """A row from an estimate, with the metric's direction and the remarks joined."""
    ok = estimate.value is not None and bool(np.isfinite(estimate.value))
    return Row(
        metric,
        value=estimate.value if ok else None,
        ci_low=estimate.low,
        ci_high=estimate.high,
        ci_kind=ci_kind if estimate.low is not None else None,
        direction=METRICS[metric].direction,
        evidence="ok" if ok else "insufficient",
        note="; ".join(n for n in (estimate.note, *notes) if n) or None,
        **values,
    )
