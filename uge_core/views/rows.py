"""Rows of an audit as pages show them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

from uge_core.audit.attacker_order import ordered_attackers
from uge_core.audit.base import RowRecord
from uge_core.audit.metrics import METRICS
from uge_core.runs.stored_run import StoredRun

METRIC_LABELS = {m.name: m.short for m in METRICS.values()}


def audit_rows(run: StoredRun, **criteria: Any) -> list[RowRecord]:
    """The rows of a run's audit whose fields equal `criteria`."""
    rows = list(run.rows)
    for key, value in criteria.items():  # the first leaves few to the others: a thousand runs are a second, not eight
        rows = [r for r in rows if r.get(key) == value]
    return rows


def lead_of(rows: Iterable[RowRecord]) -> RowRecord | None:
    """The row a report leads with: measured on nodes whose values training did not see, where there is one."""
    ranked = sorted(rows, key=lambda r: {"unseen": 0, None: 1, "seen": 2}.get(r["exposure"], 3))
    return ranked[0] if ranked else None


def matching_row(rows: Iterable[RowRecord], exposure: str | None) -> RowRecord | None:
    """The row of the same member as `exposure`; a row without exposure counts as both."""
    ranked = sorted(
        (r for r in rows if r["exposure"] in (exposure, None) or exposure is None),
        key=lambda r: (r["exposure"] != exposure, r["exposure"] == "seen"),
    )
    return ranked[0] if ranked else None


def audited_attributes(run: StoredRun) -> list[str]:
    """The attributes whose leakage was measured."""
    return list(dict.fromkeys(r["attribute"] for r in audit_rows(run) if r["attacker"] and r["attribute"]))


def as_shown(row: RowRecord) -> RowRecord:
    """The row with an AUC below 0.5 turned round, and its random floor likewise."""
    if row["metric"] != "auc":
        return row
    turned = row.copy()
    if row["floor_random"] is not None and row["floor_random"] < 0.5:
        turned["floor_random"] = 1 - row["floor_random"]
    if row["value"] is None or row["value"] >= 0.5:
        return turned
    turned["value"], turned["turned"] = 1 - row["value"], True
    if ends := bounds(row):
        # An interval across 0.5 starts at 0.5 once turned: no attacker does worse than a coin.
        turned["ci_low"], turned["ci_high"] = max(0.5, 1 - ends[1]), 1 - ends[0]
    return turned


def bounds(row: RowRecord) -> tuple[float, float] | None:
    """The ends of a row's interval, None where it has none."""
    return None if row["ci_low"] is None or row["ci_high"] is None else (row["ci_low"], row["ci_high"])


def order(x: RowRecord, y: RowRecord) -> Literal["lower", "higher", "overlap"] | None:
    """Whether y's interval lies below or above x's; None where one has none."""
    first, second = bounds(x), bounds(y)
    if first is None or second is None:
        return None
    return "lower" if second[1] < first[0] else "higher" if second[0] > first[1] else "overlap"


def pair_as_shown(pair: Mapping[str, Any]) -> dict[str, Any]:
    """A paired row with both AUCs turned to .5 and above.

    Where one alone is turned, its difference was never tested.
    """
    if pair["metric"] != "auc" or None in (pair["a"], pair["b"]) or min(pair["a"], pair["b"]) >= 0.5:
        return dict(pair)
    a, b = (max(v, 1 - v) for v in (pair["a"], pair["b"]))
    turned = {"a": a, "b": b, "value": a - b}
    if max(pair["a"], pair["b"]) <= 0.5:
        low, high = (None if pair[end] is None else -pair[end] for end in ("ci_high", "ci_low"))
        return dict(pair) | turned | {"ci_low": low, "ci_high": high}
    return dict(pair) | turned | {"ci_low": None, "ci_high": None, "p_value": None, "p_holm": None}


def attacker_labels(attackers: Collection[str]) -> dict[str, str]:
    """Labels of attackers by name, the strongest of them first, then in the order of lists.

    An unknown one keeps its name.
    """
    labels = {"worst": "Strongest"} | {a.name: a.short or a.label.capitalize() for a in ordered_attackers()}
    labels |= {name: name for name in sorted(attackers) if name not in labels}
    return {name: label for name, label in labels.items() if name in attackers}


def exposure_words(run: StoredRun, exposure: str | None) -> str:
    """What training saw of the tested people's values; of an embedding from elsewhere nobody here knows."""
    return exposure or ("not known" if run.config["method"] == "external" else "not read")


def interval_words(row: RowRecord | None) -> str:
    """A row's interval, "" where it has none."""
    return "" if row is None or row["ci_low"] is None else f"{row['ci_low']:.3f} to {row['ci_high']:.3f}"
