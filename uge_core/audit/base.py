"""What an audit hands back: one long table whose shape never depends on the input.

A row is one number with everything a reader needs to judge it: how many nodes, pairs or edges it
rests on, what chance would give, which way is better, and whether the evidence suffices at all. A
value that cannot be measured is None with ``evidence`` "insufficient", never zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from uge_core.audit.metrics import METRICS as METRICS
from uge_core.audit.metrics import Direction as Direction
from uge_core.audit.metrics import Metric as Metric
from uge_core.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

Evidence = Literal["ok", "insufficient"]


@dataclass(frozen=True)
class Cell:
    """One group pair of a parity row, or one group of a row of NDCG.

    Attributes:
        a: the first group's value.
        b: the second group's; null where cells are single groups, as on a bipartite graph.
        value: mean predicted probability, or mean NDCG@10, in [0, 1]; null without a pair or target, or where it is
            withheld.
        n: node pairs (DP), edges (EO) or targets (NDCG) in the cell; 0 where it is withheld.
        ci_low: lower end of its interval, or null.
        ci_high: upper end of its interval, or null.
        excluded: too few to enter the gap.
        withheld: under twelve edges or targets, whom figures would point at, or as many as hide how few others are.
    """

    a: str
    b: str | None
    value: float | None
    n: int
    ci_low: float | None = None
    ci_high: float | None = None
    excluded: bool = False
    withheld: bool = False

    @property
    def name(self) -> str:
        """The groups as a reader sees them, "a-b"."""
        return self.a if self.b is None else f"{self.a}-{self.b}"


@dataclass(frozen=True)
class Row:
    """One measured number and what it takes to read it. None where a field does not apply.

    Attributes:
        metric: what was measured, a name in `METRICS`.
        attribute: whose leakage or gap it is, "gender+region" of a crossing of two; for the bias-free NDCG what the
            graph is freed of.
        attacker: who tried to read the attribute, a name from ``registry.names("audit.attackers")``, or "worst", the
            strongest, which the note names.
        variant: "standard", "as-coded" (the authors' script), "held-out", "planted-truth" (the bias-free
            graph of generated data), "all-edges"; of DP and EO also "ratio", "weighted-sd", "worst-vs-overall",
            "test-set", "thresholded", "relative", "calibrated" and "top-10". Of the matched NDCG "held-out", "uniform"
            (the same links among uniform strangers) and "degree" (strangers of the friend's decile of degree too).
        exposure: "seen" or "unseen" (had training read the tested nodes' values?); None counts as both.
        value: the number; null where the evidence is insufficient.
        ci_low: lower end of a 95 % interval.
        ci_high: upper end of it.
        ci_kind: what the interval resamples: "nodes", "seeds" or "splits".
        n: nodes tested, targets or lists ranked, pairs or edges counted.
        n_seeds: runs behind the value.
        direction: which way is better.
        floor_random: what chance alone gives: the same measure on random embeddings (leakage), of a random order
            (NDCG, NDKL), or expected where all groups have the same mean (DP, EO, ndcg_gap).
        floor_majority: what always answering with the largest class gives.
        floor_permutation: expectation under permuted attributes.
        floor_degree: of link quality and gaps, the same measure of the training degree alone as an embedding.
        p_value: of a test against the floor.
        evidence: "ok" or "insufficient".
        cells: the groups, or group pairs, that a gap is between.
        note: remarks in plain words.
    """

    metric: str
    attribute: str | None = None
    attacker: str | None = None
    variant: str | None = None
    exposure: str | None = None
    value: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    ci_kind: str | None = None
    n: int | None = None
    n_seeds: int | None = 1
    direction: Direction | None = None
    floor_random: float | None = None
    floor_majority: float | None = None
    floor_permutation: float | None = None
    floor_degree: float | None = None
    p_value: float | None = None
    evidence: Evidence = "ok"
    cells: tuple[Cell, ...] = ()
    note: str | None = None


class CellRecord(TypedDict):
    """A `Cell` as records, the store and pages hold it."""

    a: str
    b: str | None
    value: float | None
    n: int
    ci_low: float | None
    ci_high: float | None
    excluded: bool
    withheld: bool


class RowRecord(TypedDict):
    """A `Row` as records, the store and pages hold it.

    Attributes:
        cells: none where a list of runs is read.
        turned: a page shows an AUC below 0.5 as one minus it.
    """

    metric: str
    attribute: str | None
    attacker: str | None
    variant: str | None
    exposure: str | None
    value: float | None
    ci_low: float | None
    ci_high: float | None
    ci_kind: str | None
    n: int | None
    n_seeds: int | None
    direction: Direction | None
    floor_random: float | None
    floor_majority: float | None
    floor_permutation: float | None
    floor_degree: float | None
    p_value: float | None
    evidence: Evidence
    cells: list[CellRecord]
    note: str | None
    turned: NotRequired[bool]


@dataclass(frozen=True)
class Audit:
    """The rows of one audit."""

    rows: tuple[Row, ...]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, **criteria: Any) -> tuple[Row, ...]:
        """The rows whose fields equal `criteria`, such as ``metric="auc", attacker="worst"``.

        Raises:
            ConfigError: a row has no such field.
        """
        names = {f.name for f in fields(Row)}
        for name in criteria:
            if name not in names:
                raise ConfigError(f"a row has no field {name!r}; it has {', '.join(sorted(names))}")
        return tuple(r for r in self.rows if all(getattr(r, k) == v for k, v in criteria.items()))

    def find(self, **criteria: Any) -> Row:
        """The one row that fits `criteria`; see `select`.

        Raises:
            ConfigError: no row fits, or several do.
        """
        rows = self.select(**criteria)
        if len(rows) != 1:
            asked = ", ".join(f"{k}={v!r}" for k, v in criteria.items())
            raise ConfigError(f"{len(rows)} rows of the audit have {asked}; ask for fields that fit exactly one")
        return rows[0]

    def frame(self) -> pd.DataFrame:
        """The rows as a pandas table, one column a field; `cells` holds a list of dicts."""
        import pandas as pd

        return pd.DataFrame(self.to_json(), columns=[f.name for f in fields(Row)])

    def to_json(self) -> list[dict[str, Any]]:
        """The rows as plain dicts that any JSON writer takes; what is not a number is None."""
        return [_plain(asdict(row)) for row in self.rows]

    @classmethod
    def from_json(cls, rows: Iterable[Mapping[str, Any]]) -> Audit:
        """The audit that `to_json` wrote; fields it does not know are left out."""
        known, in_cell = {f.name for f in fields(Row)}, {f.name for f in fields(Cell)}
        out = []
        for row in rows:
            values = {k: v for k, v in row.items() if k in known}
            cells = tuple(Cell(**{k: v for k, v in c.items() if k in in_cell}) for c in row.get("cells") or ())
            out.append(Row(**{**values, "cells": cells}))
        return cls(tuple(out))


def _plain(value: Any) -> Any:
    """`value` with tuples as lists, numpy numbers as Python's and non-finite numbers as None."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
