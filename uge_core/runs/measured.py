"""Runs that are trained, audited and told, and stored nowhere: their figures go to a file of rows (`kept_rows`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uge_core.audit.base import RowRecord
from uge_core.audit.run import audit_embedding
from uge_core.errors import OutOfMemory
from uge_core.graph.graph import AttributedGraph
from uge_core.runs.audits import Splits, attributes_read
from uge_core.runs.disclosure import Release
from uge_core.training.config import RunConfig

if TYPE_CHECKING:
    from uge_core.audit.ndcg import BiasFree
    from uge_core.training.fit import Fitted

_KEPT = ("value", "ci_low", "ci_high", "n", "floor_random", "floor_majority", "floor_degree")
_DIGITS = 6
Cell = dict[str, Any]
"""One figure of a row: what applies of these fields of the audit's row; no value where the evidence does not reach."""


@dataclass(frozen=True, eq=False)
class Audited:
    """A run and its audit.

    Attributes:
        id: the run's id, as a store would have it.
        fitted: embedding and twin.
        rows: the audit's rows.
        seconds: of training with its twin; of several seeds in one pass, each one's share.
    """

    id: str
    fitted: Fitted
    rows: Sequence[RowRecord]
    seconds: float


class Measure:
    """Trains the seeds of one setting in one pass and audits each; floors and bias-free counts are made once."""

    def __init__(self, graph: AttributedGraph, attackers: Sequence[str], device: str = "auto") -> None:
        self.graph, self.device, self.attackers = graph, device, attackers
        self._floors: dict[str, Any] = {}
        self._splits = Splits(graph)
        self._bias_free: dict[tuple[Any, ...], BiasFree] = {}

    def __call__(
        self, configs: Sequence[RunConfig], attributes: Sequence[str], freed: Sequence[str] = ()
    ) -> Iterator[Audited]:
        """Audits for `attributes`; link quality also in the graph that is freed of the influence of `freed`.

        Raises:
            UgeError: the method cannot serve here.
        """
        from uge_core.training.fit import fit

        if not configs:
            return
        try:
            fitted = fit(configs, self.graph, self._splits(configs[0]), device=self.device)
        except OutOfMemory:
            if len(configs) == 1:
                raise
            half = len(configs) // 2
            yield from self(configs[:half], attributes, freed)
            yield from self(configs[half:], attributes, freed)
            return
        for one in fitted:
            rows = self._audit(one, attributes, freed)
            yield Audited(one.config.run_id(self.graph.fingerprint), one, rows, one.seconds / len(configs))

    def _audit(self, fitted: Fitted, attributes: Sequence[str], freed: Sequence[str]) -> Sequence[RowRecord]:
        config = fitted.config
        rows: Any = audit_embedding(
            fitted.embedding,
            self.graph,
            self._splits(config),
            attributes=attributes,
            unknown=config.unknown,
            split_seed=config.split_seed,
            attackers=self.attackers,
            treated=config.sensitive,
            read=attributes_read(config, self.graph),
            twin=fitted.twin,
            bias_free={"+".join(freed): self._gains(config, freed)} if freed else None,
            calibrated=config.calibrated,
            score=config.score,
            notes=fitted.notes,
            twin_notes=fitted.twin_notes,
            floors=self._floors,
            disclosure=Release(),
        ).to_json()
        return rows  # type: ignore[no-any-return]

    def _gains(self, config: RunConfig, freed: Sequence[str]) -> BiasFree:
        from uge_core.training.weights import bias_free_gains

        key = (config.test_share, config.validation, config.split_seed, config.unknown, *freed)
        if key not in self._bias_free:
            self._bias_free[key] = bias_free_gains(
                self.graph, self._splits(config), list(freed), unknown=config.unknown
            )
        return self._bias_free[key]


def cell(rows: Sequence[RowRecord], exposure: str, *more: str, **asked: Any) -> Cell:
    """The row that was asked for, with `more` of its fields.

    One row counts as both exposures where training read no attribute.
    """
    for row in rows:
        record: Mapping[str, Any] = row
        if record["exposure"] in (exposure, None) and asked.items() <= record.items():
            known = {name: record[name] for name in (*_KEPT, *more) if record[name] is not None}
            return {name: round(v, _DIGITS) if isinstance(v, float) else v for name, v in known.items()}
    return {}
