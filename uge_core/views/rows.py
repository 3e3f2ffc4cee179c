"""Rows of an audit as pages show them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from uge_core.audit.attacker_order import DEFAULT_ATTACKERS, chosen_among, ordered_attackers
from uge_core.audit.base import RowRecord
from uge_core.audit.metrics import METRICS
from uge_core.runs.stored_run import StoredRun

METRIC_LABELS = {m.name: m.short for m in METRICS.values()}
AGAIN = f"uge audit RUN --attackers {','.join(DEFAULT_ATTACKERS)}"
"""What audits a run anew."""
_FORMS = {
    ("ndcg_at_10_matched", "uniform"): "NDCG@10 of the same links, uniform strangers",
    ("ndcg_at_10_matched", "degree"): "NDCG@10 matched by degree too",
}


@dataclass(frozen=True)
class Verdict:
    """Whether an embedding says enough about links for its other figures to mean anything.

    Attributes:
        state: of an audit before version 3, or of too few lists, it is not known.
        why: the reason where it is not usable or not known, else "".
        remark: what its vectors' length does to raw DP and EO, or "".
    """

    state: Literal["usable", "not usable", "not known"]
    why: str = ""
    remark: str = ""

    @property
    def counts(self) -> bool:
        """Nothing says that it is not usable."""
        return self.state != "not usable"


def usable(run: StoredRun) -> Verdict:
    """What a run's audit says of its embedding."""
    return usable_by(run.rows)


def usable_by(rows: Iterable[RowRecord]) -> Verdict:
    """What the rows of an audit say of its embedding, and of the twin on which unseen values are measured."""
    asked = [r for r in rows if r["metric"] == "usable"]
    if not asked:
        return Verdict("not known", "audited by an earlier version, which did not ask")
    row = min(
        asked, key=lambda r: (0 if r["value"] == 0 else 1 if r["value"] is None else 2, r["exposure"] == "unseen")
    )
    note = (row["note"] or "").removeprefix("not usable: ")
    twin = "of its twin, " if row["exposure"] == "unseen" else ""
    if row["value"] is None:
        return Verdict("not known", twin + (note or "not enough evidence"))
    return (
        Verdict("usable", remark=note) if row["value"] else Verdict("not usable", twin + (note or "no reason is noted"))
    )


def row_label(row: Mapping[str, Any]) -> str:
    """What a row measures, with its variant where a metric has several, as in "DP gap, calibrated"."""
    metric, variant = row["metric"], row["variant"]
    if (metric, variant) in _FORMS:
        return _FORMS[metric, variant]
    label = str(METRIC_LABELS.get(metric, metric))
    if metric in ("dp", "eo") and variant in (None, "difference", "held-out", "all-edges"):
        return f"{label}, raw{', all links' if variant == 'all-edges' else ''}"
    return label if variant in (None, "standard", "held-out") else f"{label}, {variant}"


def matched_row(rows: Iterable[RowRecord], attribute: str, exposure: str | None) -> RowRecord | None:
    """The attribute-matched NDCG@10 of the same member as `exposure`."""
    return matching_row(
        (
            r
            for r in rows
            if r["metric"] == "ndcg_at_10_matched" and r["attribute"] == attribute and r["variant"] == "held-out"
        ),
        exposure,
    )


def attackers_tried(run: StoredRun, attribute: str) -> str:
    """Among which attackers the strongest of a run was chosen, in words; "" where it has none.

    Only values of one set are comparable: the more attackers, the more is read.
    """
    notes = [r["note"] or "" for r in run.rows if r["attacker"] == "worst" and r["attribute"] == attribute]
    if notes and not run.signed:
        return "the attackers of an earlier version of the audit"
    return next((", ".join(names) for names in map(chosen_among, notes) if names), "")


def of_one_set(runs: Sequence[StoredRun], attribute: str) -> tuple[list[StoredRun], str]:
    """The runs whose strongest attacker was chosen among one set, and in words what was left out; "" where nothing was.

    Of several sets that of most runs is taken, audits of this version before those of earlier ones.
    """
    tried = {run.id: attackers_tried(run, attribute) for run in runs}
    names = [name for name in tried.values() if name]
    if len(set(names)) < 2:
        return list(runs), ""
    now = [attackers_tried(r, attribute) for r in runs if r.signed and tried[r.id]]
    kept = max(dict.fromkeys(now or names), key=(now or names).count)
    others = sum(name not in ("", kept) for name in tried.values())
    words = (
        f"Left out: {others} of {len(runs)} runs, whose strongest attacker of {attribute} was chosen among others than "
        f"{kept}, so that the two say nothing of each other. Audit them again ({AGAIN}), or choose one attacker."
    )
    return [run for run in runs if tried[run.id] in ("", kept)], words


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


def as_shown(row: RowRecord, *, signed: bool) -> RowRecord:
    """The row with an AUC below 0.5 turned round, and its random floor likewise.

    Args:
        row: of an audit.
        signed: its attackers learned themselves which way to read, so that it stays as it is (`StoredRun.signed`).
    """
    if row["metric"] != "auc" or signed:
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


def pair_as_shown(pair: Mapping[str, Any], *, signed: bool) -> dict[str, Any]:
    """A paired row with both AUCs turned to .5 and above, unless they are `signed` (see `as_shown`).

    Where one alone is turned, its difference was never tested.
    """
    if signed or pair["metric"] != "auc" or None in (pair["a"], pair["b"]) or min(pair["a"], pair["b"]) >= 0.5:
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
