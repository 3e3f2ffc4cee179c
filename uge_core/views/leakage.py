"""Stored audits as what a page shows: tables, choices and sentences. Nothing is computed anew here.

Leakage is shown as an attacker sees it: before version 3 of the audit an AUC below 0.5 is an attacker whose answers
point the wrong way and who would simply turn them round, so it is shown as its distance from 0.5, and said. Since then
attackers learn which way to read, and an AUC is shown as it is. The strongest attackers of two runs are compared where
they were chosen among the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from uge_core.audit.metrics import METRICS, ordered_metrics
from uge_core.files import to_csv
from uge_core.runs.names import run_order
from uge_core.runs.store import RunStore
from uge_core.views.points import Fold, folds
from uge_core.views.rows import (
    METRIC_LABELS,
    as_shown,
    attacker_labels,
    audit_rows,
    audited_attributes,
    exposure_words,
    matching_row,
    of_one_set,
)
from uge_core.views.separation import Measured, separation
from uge_core.views.verdicts import over_people_and_seeds
from uge_core.views.words import interval, many

# AUC first: it has one floor for every attribute, where a low Micro-F1 can be a balanced probe of a rare value
_LEAKAGE = tuple(m.name for m in ordered_metrics("leakage"))


@dataclass(frozen=True)
class LeakageChoices:
    """What the leakage page can show.

    Attributes:
        runs: label by the id of the run that stands for its seeds, in the order drawn.
        ids: of each of `runs` those of all its seeds.
        attributes: names.
        exposures: "unseen" first.
        attackers: label by name, "worst" first.
        metrics: label by name.
    """

    runs: dict[str, str]
    ids: dict[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    exposures: tuple[str, ...]
    attackers: dict[str, str]
    metrics: dict[str, str]


def leakage_choices(store: RunStore, *, only: Sequence[str] | None = None) -> LeakageChoices:
    """What there is to choose from in the stored audits, or in those of some runs, archived or not."""
    runs = sorted((r for r in store.list(audits=False, only=only) if r.audited), key=run_order)
    kinds = [k for k in store.kinds([run.id for run in runs]) if k[2] and k[3] in _LEAKAGE]
    attributes, exposures, attackers, metrics = ({kind[i] for kind in kinds} for i in range(4))
    rows = folds(runs)
    return LeakageChoices(
        {f.key: f.label for f in rows},
        {f.key: f.ids for f in rows},
        tuple(sorted(attributes)),
        tuple(e for e in ("unseen", "seen") if e in exposures or None in exposures),
        attacker_labels(attackers),
        {m: METRIC_LABELS[m] for m in _LEAKAGE if m in metrics},
    )


@dataclass(frozen=True)
class LeakageView:
    """The leakage page's numbers, one record for chart, table and file.

    Attributes:
        table: one row per method, lambda and attribute, over its seeds: value, interval, floors, n, evidence.
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

    @property
    def shown(self) -> pd.DataFrame:
        """The table as people read it."""
        return self.table[list(_SHOWN)].rename(columns=_SHOWN)


def leakage_view(
    store: RunStore,
    *,
    exposure: str,
    attacker: str,
    metric: str,
    runs: Sequence[str] | None = None,
    attributes: Sequence[str] | None = None,
    order: str = "method",
) -> LeakageView:
    """Leakage of the chosen runs and attributes.

    Args:
        store: the run store.
        exposure: "unseen" or "seen"; rows of runs that read no attribute count as both.
        attacker: "worst", or one attacker's name.
        metric: one of leakage.
        runs: run ids; None takes all.
        attributes: names; None takes all.
        order: "method", or "least", what least is read from first.
    """
    # A thousand runs' leading rows are read in a tenth of the time of all.
    leads = attacker == "worst" and METRICS[metric].listed
    chosen = sorted((r for r in store.list(audits="lead" if leads else True, only=runs) if r.audited), key=run_order)
    measured: dict[tuple[str, str], list[Measured]] = {}
    records, other = [], []
    shown = {a: ({r.id for r in chosen}, "") for r in chosen for a in audited_attributes(r)}
    if attacker == "worst":
        for name in shown:
            kept, words = of_one_set(chosen, name)
            shown[name] = {r.id for r in kept}, words
    mixed = [words for name, (_, words) in shown.items() if words and (attributes is None or name in attributes)]
    for fold in folds(chosen):
        for attribute in dict.fromkeys(a for run in fold.runs for a in audited_attributes(run)):
            mine = [run for run in fold.runs if run.id in shown[attribute][0]]
            if (attributes is not None and attribute not in attributes) or not mine:
                continue
            found = [
                (
                    run,
                    matching_row(
                        (
                            r
                            for r in audit_rows(run, metric=metric, attribute=attribute, attacker=attacker)
                            if r["variant"] in (None, "standard") and r["exposure"] in (exposure, None)
                        ),
                        exposure,
                    ),
                )
                for run in mine
            ]
            told = [(run, row) for run, row in found if row is not None]
            if told:
                measured[fold.key, attribute] = told
                records.append(_leakage_record(fold, attribute, told))
            else:
                same = [r for x in mine for r in audit_rows(x, metric=metric, attribute=attribute, attacker=attacker)]
                other.append((attribute, any(r["exposure"] == "seen" for r in same)))
    table = pd.DataFrame(records, columns=_LEAKAGE_COLUMNS)
    if order == "least":
        places = {name: i for i, name in enumerate(dict.fromkeys(table["attribute"]))}
        table = table.assign(_place=table["attribute"].map(places)).sort_values(["_place", "value"], kind="stable")
        table = table.drop(columns="_place").reset_index(drop=True)
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
        f"{label} of {who}, {how}. {'The axis begins at a coin. ' if metric == 'auc' else ''}Left is better. Bars: 95 % "
        f"interval over the people tested{' and over seeds' if (table['seeds'] > 1).any() else ''}. Ticks: what always "
        "answering the commonest value gives (majority) and what random embeddings give (random)."
    )
    if (table["seeds"] > 1).any():
        caption += " Small dots: single seeds."
    if metric == "micro_f1":
        caption += " With one label a person, Micro-F1 is the share of right answers."
    alt = f"{label} of {who}, {how}. " + " ".join(_spoken(r) for r in records)
    return LeakageView(
        table,
        metric,
        _finding(store, table, label, measured),
        caption,
        alt,
        (*_remarks(records), *_unfit(records), *_left_out(other, exposure), *mixed),
    )


def _unfit(records: Sequence[dict[str, Any]]) -> Iterable[str]:
    """Runs whose embeddings say nothing, so that what does not leak from them is no success."""
    reasons: dict[str, dict[str, None]] = {}
    for record in records:
        if record["usable"] == "not usable":
            reasons.setdefault(record["why"], {})[record["run"]] = None
    for why, names in reasons.items():
        yield f"Not usable (hollow), so that little leakage is no success: {', '.join(names)} ({why})."


_SHOWN = {
    "attribute": "Attribute",
    "run": "Method",
    "seeds": "Seeds",
    "value": "Value",
    "ci_low": "95 %, from",
    "ci_high": "to",
    "majority": "Commonest value",
    "random": "Random embeddings",
    "n": "n people",
    "of_seeds": "Single seeds",
    "evidence": "Evidence",
    "telling": "Above guessing",
    "usable": "Usable",
    "treated": "Treated",
    "exposure": "Tested on",
    "note": "Remarks",
}
_LEAKAGE_COLUMNS = [
    "attribute",
    "run",
    "run_id",
    "run_ids",
    "seeds",
    "method",
    "value",
    "ci_low",
    "ci_high",
    "majority",
    "random",
    "n",
    "of_seeds",
    "evidence",
    "telling",
    "usable",
    "why",
    "turned",
    "treated",
    "exposure",
    "note",
]


def _leakage_record(fold: Fold, attribute: str, measured: Sequence[Measured]) -> dict[str, Any]:
    rows = [as_shown(row, signed=run.signed) for run, row in measured]
    together = over_people_and_seeds(rows)
    floors = [f for f in (together.majority, together.random) if f is not None] if together else []
    low = together.low if together else None
    verdict = fold.verdict
    first = measured[0][1]
    return {
        "attribute": attribute,
        "run": fold.label,
        "run_id": fold.key,
        "run_ids": " ".join(run.id for run, _ in measured),
        "seeds": together.seeds if together else len(measured),
        "method": fold.runs[0].config["method"],
        "value": together.value if together else None,
        "ci_low": low,
        "ci_high": together.high if together else None,
        "majority": together.majority if together else first["floor_majority"],
        "random": together.random if together else first["floor_random"],
        "n": first["n"],
        "of_seeds": " ".join(f"{r['value']:.6g}" for r in rows if r["value"] is not None) if len(rows) > 1 else "",
        "evidence": "ok" if together else "not enough",
        "telling": bool(low is not None and (not floors or low > max(floors))),
        "usable": verdict.state,
        "why": "" if verdict.counts else verdict.why,
        "turned": any(bool(row.get("turned")) for row in rows),
        "treated": attribute in fold.runs[0].config["sensitive"],
        "exposure": exposure_words(fold.runs[0], first["exposure"]),
        "note": first.get("note") or "",
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


def _finding(
    store: RunStore, table: pd.DataFrame, label: str, measured: Mapping[tuple[str, str], Sequence[Measured]]
) -> str:
    """The chart's title: from which embedding least is read, where a test separates it from all others."""
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
    names = list(dict.fromkeys(ok["attribute"]))
    if len(names) > 1:
        read = [name for name in names if ok.loc[ok["attribute"] == name, "telling"].any()]
        return f"Read above guessing from some embedding: {', '.join(read)} ({len(read)} of {len(names)} attributes)"
    ranked = sorted(ok.to_dict("records"), key=lambda r: float(r["value"]))
    least, others = ranked[0], ranked[1:]
    told = f"{label} {least['value']:.3f}{interval(least['ci_low'], least['ci_high'])}"
    if not others:
        return f"{names[0]} is read from {least['run']}: {told}"
    found = [separation(store, measured[least["run_id"], names[0]], measured[r["run_id"], names[0]]) for r in others]
    alike = [r for r, one in zip(others, found, strict=True) if one.state != "higher"]
    if not alike:
        return f"Least of {names[0]} is read from {least['run']}: {told}"
    many_alike = many(len(alike), "other")
    enough = next((one.enough for one in found if one.state == "not shown" and one.enough), "")
    need = f"; {enough}{' people' if 'in place' in enough else ''} would show the smallest difference" if enough else ""
    return f"Least of {names[0]}, {told}, is read from {least['run']}, which is not shown to differ from {many_alike}{need}"


def _remarks(records: list[dict[str, Any]]) -> Iterable[str]:
    """What holds for several rows, said once; a row's own note stands in the table."""
    groups = {
        "Not distinguishable from guessing (hollow: the interval reaches a floor)": [
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
            yield f"Runs left out: {counts}. Training read these people's values; they are shown under People training saw."
        elif counts:
            yield f"Runs left out, as they were not measured this way: {counts}."
