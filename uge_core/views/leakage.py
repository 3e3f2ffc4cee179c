"""Stored audits as what a page shows: tables, choices and sentences. Nothing is computed anew here.

Leakage is shown as an attacker sees it: before version 3 of the audit an AUC below 0.5 is an attacker whose answers
point the wrong way and who would simply turn them round, so it is shown as its distance from 0.5, and said. Since then
attackers learn which way to read, and an AUC is shown as it is. The strongest attackers of two runs are compared where
they were chosen among the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from uge_core.audit.base import RowRecord
from uge_core.audit.metrics import METRICS, ordered_metrics
from uge_core.files import to_csv
from uge_core.runs.names import labels, run_order
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.views.rows import (
    METRIC_LABELS,
    as_shown,
    attacker_labels,
    audit_rows,
    audited_attributes,
    exposure_words,
    matching_row,
    of_one_set,
    usable,
)

# AUC first: it has one floor for every attribute, where a low Micro-F1 can be a balanced probe of a rare value
_LEAKAGE = tuple(m.name for m in ordered_metrics("leakage"))


@dataclass(frozen=True)
class LeakageChoices:
    """What the leakage page can show.

    Attributes:
        runs: label by run id, in the order drawn.
        attributes: names.
        exposures: "unseen" first.
        attackers: label by name, "worst" first.
        metrics: label by name.
    """

    runs: dict[str, str]
    attributes: tuple[str, ...]
    exposures: tuple[str, ...]
    attackers: dict[str, str]
    metrics: dict[str, str]


def leakage_choices(store: RunStore, *, only: Sequence[str] | None = None) -> LeakageChoices:
    """What there is to choose from in the stored audits, or in those of some runs, archived or not."""
    runs = sorted((r for r in store.list(audits=False, only=only) if r.audited), key=run_order)
    kinds = [k for k in store.kinds([run.id for run in runs]) if k[2] and k[3] in _LEAKAGE]
    attributes, exposures, attackers, metrics = ({kind[i] for kind in kinds} for i in range(4))
    return LeakageChoices(
        labels(runs),
        tuple(sorted(attributes)),
        tuple(e for e in ("unseen", "seen") if e in exposures or None in exposures),
        attacker_labels(attackers),
        {m: METRIC_LABELS[m] for m in _LEAKAGE if m in metrics},
    )


@dataclass(frozen=True)
class LeakageView:
    """The leakage page's numbers, one record for chart, table and file.

    Attributes:
        table: one row per run and attribute: value, interval, floors, n, evidence.
        metric: name of the metric.
        title: the finding.
        caption: what is drawn.
        alt: the chart in words.
        remarks: what to know about single rows.
    """

    table: pd.DataFrame
    metric: str
    title: str
    caption: str
    alt: str
    remarks: tuple[str, ...]

    def csv(self) -> str:
        """The table as CSV."""
        return to_csv(self.table)


def leakage_view(
    store: RunStore,
    *,
    exposure: str,
    attacker: str,
    metric: str,
    runs: Sequence[str] | None = None,
    attributes: Sequence[str] | None = None,
) -> LeakageView:
    """Leakage of the chosen runs and attributes.

    Args:
        store: the run store.
        exposure: "unseen" or "seen"; rows of runs that read no attribute count as both.
        attacker: "worst", or one attacker's name.
        metric: one of leakage.
        runs: run ids; None takes all.
        attributes: names; None takes all.
    """
    # A thousand runs' leading rows are read in a tenth of the time of all.
    leads = attacker == "worst" and METRICS[metric].listed
    chosen = sorted((r for r in store.list(audits="lead" if leads else True, only=runs) if r.audited), key=run_order)
    names = labels(chosen)
    records, other = [], []
    shown = {a: ({r.id for r in chosen}, "") for r in chosen for a in audited_attributes(r)}
    if attacker == "worst":
        for name in shown:
            kept, words = of_one_set(chosen, name)
            shown[name] = {r.id for r in kept}, words
    mixed = [words for name, (_, words) in shown.items() if words and (attributes is None or name in attributes)]
    for run in chosen:
        for attribute in audited_attributes(run):
            if (attributes is not None and attribute not in attributes) or run.id not in shown[attribute][0]:
                continue
            row = matching_row(
                (
                    r
                    for r in audit_rows(run, metric=metric, attribute=attribute, attacker=attacker)
                    if r["variant"] in (None, "standard") and r["exposure"] in (exposure, None)
                ),
                exposure,
            )
            if row:
                records.append(_leakage_record(run, names[run.id], attribute, row))
            else:
                same = audit_rows(run, metric=metric, attribute=attribute, attacker=attacker)
                other.append((attribute, any(r["exposure"] == "seen" for r in same)))
    table = pd.DataFrame(records, columns=_LEAKAGE_COLUMNS)
    label = METRIC_LABELS[metric]
    if table.empty:
        words = "No stored run was audited this way; choose another exposure or attacker."
        return LeakageView(table, metric, words, "", words, (*_left_out(other, exposure), *mixed))
    who = {"worst": "the strongest attacker"}.get(attacker, f"the {attacker} attacker")
    how = {
        "unseen": "on people whose values training did not see",
        "seen": "on people whose values training may have seen",
    }[exposure]
    caption = (
        f"{label} of {who}, {how}. Left is better. Whiskers: 95 % interval over the people tested. "
        "Ticks: what always answering the commonest value gives (majority) and what random embeddings give (random)."
    )
    if metric == "micro_f1":
        caption += " With one label a person, Micro-F1 is the share of right answers."
    alt = f"{label} of {who}, {how}. " + " ".join(_spoken(r) for r in records)
    return LeakageView(
        table,
        metric,
        _finding(table, label),
        caption,
        alt,
        (*_remarks(records), *_unfit(chosen, records), *_left_out(other, exposure), *mixed),
    )


def _unfit(runs: Sequence[StoredRun], records: Sequence[dict[str, Any]]) -> Iterable[str]:
    """Runs whose embeddings say nothing, so that what does not leak from them is no success."""
    drawn = {r["run_id"]: r["run"] for r in records}
    reasons: dict[str, list[str]] = {}
    for run in runs:
        if run.id in drawn and not (verdict := usable(run)).counts:
            reasons.setdefault(verdict.why, []).append(drawn[run.id])
    for why, names in reasons.items():
        yield f"Not usable (hatched or hollow), so that little leakage is no success: {', '.join(names)} ({why})."


_LEAKAGE_COLUMNS = [
    "attribute",
    "run",
    "run_id",
    "method",
    "value",
    "ci_low",
    "ci_high",
    "majority",
    "random",
    "n",
    "evidence",
    "telling",
    "usable",
    "turned",
    "treated",
    "exposure",
    "note",
]


def _leakage_record(run: StoredRun, label: str, attribute: str, row: RowRecord) -> dict[str, Any]:
    shown = as_shown(row, signed=run.signed)
    floors = [f for f in (shown["floor_majority"], shown["floor_random"]) if f is not None]
    low = shown["ci_low"]
    telling = row["evidence"] == "ok" and low is not None and (not floors or low > max(floors))
    return {
        "attribute": attribute,
        "run": label,
        "run_id": run.id,
        "method": run.config["method"],
        "value": shown["value"],
        "ci_low": shown["ci_low"],
        "ci_high": shown["ci_high"],
        "majority": shown["floor_majority"],
        "random": shown["floor_random"],
        "n": row["n"],
        "evidence": "ok" if row["evidence"] == "ok" else "not enough",
        "telling": bool(telling),
        "usable": usable(run).state,
        "turned": bool(shown.get("turned")),
        "treated": attribute in run.config["sensitive"],
        "exposure": exposure_words(run, row["exposure"]),
        "note": row.get("note") or "",
    }


def _spoken(record: dict[str, Any]) -> str:
    if record["value"] is None or record["evidence"] != "ok":
        return f"{record['attribute']}, {record['run']}: not enough evidence."
    text = f"{record['attribute']}, {record['run']}: {record['value']:.3f}"
    if record["ci_low"] is not None:
        text += f", interval {record['ci_low']:.3f} to {record['ci_high']:.3f}"
    if record["usable"] == "not usable":
        text += ", not usable"
    for floor in ("majority", "random"):
        if record[floor] is not None:
            text += f", {floor} {record[floor]:.3f}"
    return text + "."


def _finding(table: pd.DataFrame, label: str) -> str:
    """The chart's title: the most and the least telling row."""
    fit = table[table["usable"] != "not usable"]
    ok = fit[(fit["evidence"] == "ok") & fit["value"].notna()]
    if fit.empty:
        return "No embedding here is usable, so what does not leak from it is no success"
    if ok.empty:
        return "Not enough evidence to say how much can be read"
    if ok["ci_low"].isna().all():
        return "No interval was measured, so no figure can be held against guessing"
    if not ok["telling"].any():
        return "No attacker is distinguishable from guessing"
    top = max(ok[ok["telling"]].to_dict("records"), key=lambda r: r["value"])
    best = "read best" if len(ok) > 1 else "read"
    return f"{top['attribute']} is {best} from {top['run']}: {label} {top['value']:.3f}"


def _remarks(records: list[dict[str, Any]]) -> Iterable[str]:
    """What holds for several rows, said once; a row's own note stands in the table."""
    groups = {
        "Not distinguishable from guessing (hatched or hollow: the interval reaches a floor)": [
            r for r in records if r["evidence"] == "ok" and not r["telling"] and r["ci_low"] is not None
        ],
        "Without an interval, so not held against guessing": [
            r for r in records if r["evidence"] == "ok" and r["value"] is not None and r["ci_low"] is None
        ],
        "Not enough evidence": [r for r in records if r["evidence"] != "ok"],
        "From elsewhere, so nobody here knows whose values training saw": [
            r for r in records if r["exposure"] == "not known"
        ],
        "Measured AUC below 0.5, so the answers point the wrong way and are turned round here": [
            r for r in records if r["turned"]
        ],
    }
    for words, group in groups.items():
        by_attribute = []
        for attribute in dict.fromkeys(r["attribute"] for r in group):
            runs = [r["run"] for r in group if r["attribute"] == attribute]
            everyone = len(runs) == sum(r["attribute"] == attribute for r in records) > 1
            named = f"all {len(runs)} runs" if everyone else ", ".join(runs) if len(runs) <= 4 else f"{len(runs)} runs"
            by_attribute.append(f"{attribute} in {named}")
        if by_attribute:
            yield f"{words}: {'; '.join(by_attribute)}."


def _left_out(missing: Sequence[tuple[str, bool]], exposure: str) -> Iterable[str]:
    """Runs that were not measured this way, by attribute and whether they were on seen values."""
    for shown_seen in (True, False):
        attributes = [a for a, seen in missing if (seen and exposure == "unseen") == shown_seen]
        counts = ", ".join(f"{attributes.count(a)} for {a}" for a in dict.fromkeys(attributes))
        if counts and shown_seen:
            yield f"Runs left out: {counts}. Training read these people's values; they are shown under Seen values."
        elif counts:
            yield f"Runs left out, as they were not measured this way: {counts}."
