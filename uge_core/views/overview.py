"""The Overview page: all runs in one table, and what they say in sentences."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from uge_core.audit.base import RowRecord
from uge_core.audit.metrics import Metric, ordered_metrics
from uge_core.errors import shell_word
from uge_core.runs.names import config_parts, config_words, labels, run_order
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.views.rows import (
    as_shown,
    audit_rows,
    audited_attributes,
    bounds,
    exposure_words,
    interval_words,
    lead_of,
    matched_row,
    matching_row,
    of_one_set,
    order,
    usable,
)
from uge_core.views.words import many

# Listed metrics besides those that have columns of their own.
_OWN = ("micro_f1", "auc", "ndcg_at_10_matched", "ndcg_at_10", "usable")
_MORE = tuple(m for m in ordered_metrics() if m.listed and m.name not in _OWN)
_MOST_NAMES = 4
_SHORT = ("method", "file", "sensitive", "backbone", "seed")


@dataclass(frozen=True)
class Overview:
    """What the first page shows.

    Attributes:
        table: one row per audited run and attribute.
        sentences: what the table says, an attribute at a time, in plain words.
        unfinished: runs that are being trained, failed or were interrupted.
        num_runs: audited runs.
        root: where the store lies.
        first_command: what makes a first run in this store.
        shipped: how many of the audited runs came with the package, and the version that made them, or None.
    """

    table: pd.DataFrame
    sentences: tuple[Sentence, ...]
    unfinished: pd.DataFrame
    num_runs: int
    root: str
    first_command: str
    shipped: tuple[int, str] | None = None


def overview(store: RunStore) -> Overview:
    """The stored runs with their leakage and utility beside the floors."""
    runs = store.list(audits="lead")
    audited = sorted((r for r in runs if r.audited), key=run_order)
    names = labels(audited)
    table = pd.DataFrame([row for run in audited for row in _overview_rows(run, names[run.id])])
    waiting = pd.DataFrame(
        [
            {
                "Run": run.id,
                "Status": run.status if run.status != "finished" else "finished, not audited yet",
                "Config": config_words(run.config, *_SHORT, typed=False, joint=" · "),
                "Data": run.dataset.get("name", ""),
                "Started": time.strftime("%Y-%m-%d %H:%M", time.localtime(run.created)),
                "Reason": run.reason or "",
            }
            for run in runs
            if not run.audited
        ]
    )
    first = (
        "uge sweep sample:town --sensitive region --methods none,uge-w,uge-c,uge-ok --epochs 300 --store "
        f"{shell_word(str(store.root))}"
    )
    versions = [str(run.dataset["shipped"]) for run in audited if run.dataset.get("shipped")]
    shipped = (len(versions), max(versions)) if versions else None
    return Overview(table, sentences(audited), waiting, len(audited), str(store.root), first, shipped)


_USABLE = {"usable": "yes", "not usable": "no", "not known": "not known"}


def _overview_rows(run: StoredRun, label: str) -> Iterable[dict[str, Any]]:
    # By what is asked for below, so that a thousand runs are looked through once each.
    grouped: dict[tuple[str | None, ...], list[RowRecord]] = {}
    for row in run.rows:
        grouped.setdefault((row["metric"], row["attribute"], row["attacker"]), []).append(row)
        grouped.setdefault((row["metric"], row["variant"]), []).append(row)
    ranked = grouped.get(("ndcg_at_10", "held-out"), [])
    verdict = usable(run)
    for attribute in audited_attributes(run):
        f1 = lead_of(grouped.get(("micro_f1", attribute, "worst"), []))
        f1 = f1 or lead_of(audit_rows(run, metric="micro_f1", attribute=attribute))
        exposure = f1["exposure"] if f1 else None
        auc = matching_row(grouped.get(("auc", attribute, "worst"), []), exposure)
        ndcg = matching_row(ranked, exposure)
        matched = matched_row(grouped.get(("ndcg_at_10_matched", attribute, None), []), attribute, exposure)
        auc = as_shown(auc, signed=run.signed) if auc else None
        yield {
            "Run": label,
            "Attribute": attribute,
            "Usable": _USABLE[verdict.state],
            "Exposure": exposure_words(run, exposure),
            "Micro-F1": f1["value"] if f1 else None,
            "majority": f1["floor_majority"] if f1 else None,
            "random": f1["floor_random"] if f1 else None,
            "AUC": auc["value"] if auc else None,
            "random AUC": auc["floor_random"] if auc else None,
            "matched NDCG@10": matched["value"] if matched else None,
            "degree, matched": matched["floor_degree"] if matched else None,
            "random, matched": matched["floor_random"] if matched else None,
            "NDCG@10": ndcg["value"] if ndcg else None,
            "degree NDCG": ndcg.get("floor_degree") if ndcg else None,
            "random NDCG": ndcg["floor_random"] if ndcg else None,
            **{m.short: _listed(grouped, m, attribute, exposure) for m in _MORE},
            "Evidence": "ok" if f1 and f1["evidence"] == "ok" else "not enough",
            "Micro-F1, 95 %": interval_words(f1),
            "AUC, 95 %": interval_words(auc),
            "matched NDCG@10, 95 %": interval_words(matched),
            "NDCG@10, 95 %": interval_words(ndcg),
            "people": f1["n"] if f1 else None,
            "links": matched["n"] if matched else None,
            "ranked": ndcg["n"] if ndcg else None,
            "Not usable, as": "" if verdict.counts else verdict.why,
            "Treated": attribute in run.config["sensitive"],
            "Id": run.id,
        }


def _listed(
    grouped: Mapping[tuple[str | None, ...], Sequence[RowRecord]], metric: Metric, about: str, exposure: str | None
) -> float | None:
    """The strongest attacker's value, or that of the attribute, or of the whole embedding."""
    rows = next(
        (r for key in ((about, "worst"), (about, None), (None, None)) if (r := grouped.get((metric.name, *key)))), []
    )
    row = matching_row(rows, exposure)
    return row["value"] if row else None


@dataclass(frozen=True)
class Sentence:
    """What is found about something, in plain words; both hold names out of people's data as they are.

    Attributes:
        about: an attribute, or that embeddings are not usable.
        text: what the runs show of it.
    """

    about: str
    text: str

    def __str__(self) -> str:
        return f"{self.about}: {self.text}"


def sentences(runs: Sequence[StoredRun]) -> tuple[Sentence, ...]:
    """What some audited runs show, an attribute at a time."""
    ordered = sorted(runs, key=run_order)
    return tuple(_sentences(ordered, labels(ordered)))


def _sentences(runs: Sequence[StoredRun], names: dict[str, str]) -> Iterable[Sentence]:
    """Per attribute: the untreated run, the least leaking one, and the floor.

    Only runs that differ in nothing but method, lambda, attributes and seed are compared.
    """
    groups: dict[tuple[Any, ...], list[StoredRun]] = {}
    for run in runs:
        key = (run.dataset["fingerprint"], *(run.config.get(f) for f in COMPARED))
        groups.setdefault(key, []).append(run)
    data = {key[0]: g[0].dataset["name"] for key, g in groups.items()}
    count = Counter(data.values())
    data = {f: f"{name} {f[:8]}" if count[name] > 1 else name for f, name in data.items()}
    firsts = [{"dataset": data[key[0]]} | config_parts(g[0].config) for key, g in groups.items()]
    told = [f for f in ("dataset", "backbone", "split", "epochs", "dim") if len({p[f] for p in firsts}) > 1]
    for group, first in zip(groups.values(), firsts, strict=True):
        where = ", ".join(first[f] for f in told if first[f])
        for attribute in dict.fromkeys(a for r in group for a in audited_attributes(r)):
            about = f"{attribute} ({where})" if where else attribute
            yield Sentence(about, _sentence(attribute, group, names))
        if unfit := _unfit(group, names):
            yield Sentence(f"Not usable ({where})" if where else "Not usable", unfit)


def _sentence(attribute: str, group: Sequence[StoredRun], names: dict[str, str]) -> str:
    group, mixed = of_one_set([run for run in group if attribute in audited_attributes(run)], attribute)
    unfit = {run.id for run in group if not usable(run).counts}
    measured = []
    for run in group:
        if run.id in unfit:
            continue
        row = lead_of(audit_rows(run, metric="auc", attribute=attribute, attacker="worst"))
        if row and row["value"] is not None and row["evidence"] == "ok":
            measured.append((run, as_shown(row, signed=run.signed)))
    if not measured:
        if len(unfit) == len(group):
            return "no run has a usable embedding."
        return f"not enough evidence in any run to say how much of it can be read. {mixed}".strip()
    plain = _comparable([pair for pair in measured if pair[0].config["method"] == "none"])
    treated = _comparable([pair for pair in measured if attribute in pair[0].config["sensitive"]])
    best = min(treated, key=_value, default=None)
    text = []
    before = next((pair for pair in plain if best and pair[0].config["seed"] == best[0].config["seed"]), None)
    before = before or next(iter(plain), None)
    if before:
        text.append(f"without debiasing the strongest attacker picks the right one {_share(before)}")
    if best:
        fit = "usable " if unfit else ""
        several = f"the lowest of {len(treated)} {fit}treated runs" if len(treated) > 1 else f"the {fit}treated run"
        subject = "" if before else "the strongest attacker picks the right one "
        text.append(f"with {names[best[0].id]}, {several}, {subject}{_share(best)}")
    if not text:
        those = _comparable(measured)
        low, high = (of(those, key=_value) for of in (min, max))
        text.append(f"with {names[low[0].id]} the strongest attacker picks the right one {_share(low)}")
        if len(those) > 1:
            text[-1] += f", the lowest of {len(those)} runs"
            text.append(f"with {names[high[0].id]}, the highest, {_share(high)}")
    said = f"given two people with different values, {'; '.join(text)}. A coin gets 50 %."
    return " ".join(filter(None, (said, _utility(attribute, before, best), mixed)))


def _unfit(runs: Sequence[StoredRun], names: Mapping[str, str]) -> str:
    """Whose embeddings say nothing, by reason; "" where none does."""
    reasons: dict[str, list[str]] = {}
    for run in runs:
        if not (verdict := usable(run)).counts:
            reasons.setdefault(verdict.why, []).append(names[run.id])
    return " ".join(
        f"{', '.join(who) if len(who) <= _MOST_NAMES else many(len(who), 'run')}: {why}; no figure of "
        f"{'it' if len(who) == 1 else 'them'} is a verdict."
        for why, who in reasons.items()
    )


_Measured = tuple[StoredRun, RowRecord]


def _comparable(measured: list[_Measured]) -> list[_Measured]:
    """Those measured on people whose values training did not see, where there are any."""
    return [pair for pair in measured if pair[1]["exposure"] != "seen"] or measured


def _value(pair: _Measured) -> float:
    """Its AUC, which all have that are looked at here."""
    assert pair[1]["value"] is not None
    return pair[1]["value"]


def _share(pair: _Measured) -> str:
    row, ends = pair[1], bounds(pair[1])
    interval = f", 95 % interval {100 * ends[0]:.1f} to {100 * ends[1]:.1f}" if ends else ""
    coin = ", not distinguishable from a coin" if ends and ends[0] <= 0.5 <= ends[1] else ""
    coin = ", no better than a coin" if ends and ends[1] < 0.5 else coin
    seen = ", measured on people whose values training saw" if row["exposure"] == "seen" else ""
    return f"{100 * _value(pair):.1f} % of the time (n = {row['n']:,}{interval}{coin}{seen})"


def _utility(attribute: str, before: _Measured | None, after: _Measured | None) -> str:
    """Link quality of the same members: matched, and the usual beside it with what that pays for."""
    if before is None or after is None:
        return ""
    matched, usual = [], []
    for run, row in (before, after):
        matched.append(matched_row(run.rows, attribute, row["exposure"]))
        usual.append(matching_row(audit_rows(run, metric="ndcg_at_10", variant="held-out"), row["exposure"]))
    pays = f"which also pays for reading {attribute}"
    alone = _goes(usual)
    if words := _goes(matched):
        last = matched[-1]
        degree, chance = (last["floor_degree"], last["floor_random"]) if last else (None, None)
        less = ", no less" if last and degree is not None and (last["value"] or 0.0) <= degree else ""
        floors = [
            "" if degree is None else f"the training degree alone gives {degree:.3f}{less}",
            "" if chance is None else f"a random order {chance:.3f}",
        ]
        beside = "; ".join(filter(None, (words, *floors)))
        usually = f" The usual NDCG@10, {pays}, goes {alone}." if alone else ""
        return f"Link quality, NDCG@10 among strangers of the friend's own {attribute} group, goes {beside}.{usually}"
    if not alone:
        return ""
    return (
        f"The usual NDCG@10, {pays}, goes {alone}; audits of this version measure it among strangers of one group too."
    )


def _goes(rows: Sequence[RowRecord | None]) -> str:
    """From the first value to the second, and whether their intervals meet; nothing where one is not measured."""
    first, second = rows
    if first is None or second is None or first["value"] is None or second["value"] is None:
        return ""
    apart = order(first, second) in ("lower", "higher")
    return f"from {first['value']:.3f} to {second['value']:.3f}" + ("" if apart else " (no difference is shown)")
