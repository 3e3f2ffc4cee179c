"""The Overview page: what is found about a graph's embeddings, and all its runs in one table."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from uge_core.audit.base import RowRecord
from uge_core.audit.metrics import Metric, ordered_metrics
from uge_core.errors import shell_word
from uge_core.runs.names import config_words
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.views.points import Fold, Reading, folds
from uge_core.views.rows import (
    as_shown,
    audit_rows,
    audited_attributes,
    exposure_words,
    lead_of,
    matched_row,
    matching_row,
)
from uge_core.views.verdicts import Card, cards, over_people_and_seeds

# Listed metrics besides those that have columns of their own.
_OWN = ("micro_f1", "auc", "ndcg_at_10_matched", "ndcg_at_10", "usable")
_MORE = tuple(m for m in ordered_metrics() if m.listed and m.name not in _OWN)
_SHORT = ("method", "file", "sensitive", "backbone", "seed")


@dataclass(frozen=True)
class Overview:
    """What the first page shows.

    Attributes:
        data: the chosen graph in words: its name, how many nodes and edges; "" without a run.
        cards: a verdict for each audited attribute of run B, or of run A where there is no other.
        table: one row per method, lambda and attribute of the chosen graph, over its seeds.
        unfinished: runs of any graph that are being trained, failed or were interrupted.
        num_runs: audited runs of the chosen graph.
        root: where the store lies.
        first_command: what makes a first run in this store.
        source: how the graph is loaded again, or "" where nobody knows.
        shipped: the version that made the runs where all of this graph's came with the package, else "".
        only_shipped: the store holds nothing else.
    """

    data: str
    cards: tuple[Card, ...]
    table: pd.DataFrame
    unfinished: pd.DataFrame
    num_runs: int
    root: str
    first_command: str
    source: str = ""
    shipped: str = ""
    only_shipped: bool = False


def overview(
    store: RunStore,
    *,
    data: str | None = None,
    before: str | None = None,
    after: str | None = None,
    attribute: str | None = None,
) -> Overview:
    """The runs of one graph: their verdicts, and all their leakage and utility beside the floors.

    Args:
        store: the run store.
        data: key of the graph, as in `Frame.datasets`; None takes all.
        before: id of the run that is compared with.
        after: id of the run that the verdicts are of.
        attribute: its card comes first.
    """
    runs = store.list(audits="lead")
    audited = [r for r in runs if r.audited]
    here = [r for r in audited if data is None or r.dataset["fingerprint"].startswith(data)]
    table = pd.DataFrame([row for fold in folds(here) for row in _overview_rows(fold)])
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
    versions = [str(run.dataset.get("shipped") or "") for run in here]
    found = cards(store, before, after) if here and (before or after) else ()
    return Overview(
        _about(here[0].dataset) if here else "",
        tuple(sorted(found, key=lambda card: card.attribute != attribute)),
        table,
        waiting,
        len(here),
        str(store.root),
        first,
        str((here[0].dataset.get("source") or {}).get("spec") or "") if here else "",
        max(versions) if versions and all(versions) else "",
        bool(audited) and all(r.dataset.get("shipped") for r in audited),
    )


def _about(dataset: Mapping[str, Any]) -> str:
    return f"{dataset['name']}, {dataset['num_nodes']:,} nodes and {dataset['num_edges']:,} edges"


_USABLE = {"usable": "yes", "not usable": "no", "not known": "not known"}


def _overview_rows(fold: Fold) -> Iterable[dict[str, Any]]:
    grouped = [_grouped(run) for run in fold.runs]
    verdict = fold.verdict
    first = fold.runs[0]
    for attribute in dict.fromkeys(a for run in fold.runs for a in audited_attributes(run)):
        rows = [list(_figures(run, rows, attribute)) for run, rows in zip(fold.runs, grouped, strict=True)]
        exposure = next((f1["exposure"] for f1, *_ in rows if f1), None)
        f1, auc, matched, ndcg = (over_people_and_seeds([of[i] for of in rows]) for i in range(4))
        yield {
            "Run": fold.label,
            "Attribute": attribute,
            "Seeds": len(fold.runs),
            "Usable": _USABLE[verdict.state],
            "Exposure": exposure_words(first, exposure),
            "Micro-F1": f1 and f1.value,
            "majority": f1 and f1.majority,
            "random": f1 and f1.random,
            "AUC": auc and auc.value,
            "random AUC": auc and auc.random,
            "matched NDCG@10": matched and matched.value,
            "degree, matched": matched and matched.degree,
            "random, matched": matched and matched.random,
            "NDCG@10": ndcg and ndcg.value,
            "degree NDCG": ndcg and ndcg.degree,
            "random NDCG": ndcg and ndcg.random,
            **{m.short: _listed(grouped, m, attribute, exposure) for m in _MORE},
            "Evidence": "ok" if f1 else "not enough",
            "Micro-F1, 95 %": _span(f1),
            "AUC, 95 %": _span(auc),
            "matched NDCG@10, 95 %": _span(matched),
            "NDCG@10, 95 %": _span(ndcg),
            "people": f1 and f1.n,
            "links": matched and matched.n,
            "ranked": ndcg and ndcg.n,
            "Not usable, as": "" if verdict.counts else verdict.why,
            "Treated": attribute in first.config["sensitive"],
            "Id": fold.key,
        }


_Grouped = Mapping[tuple[str | None, ...], Sequence[RowRecord]]


def _grouped(run: StoredRun) -> _Grouped:
    """By what is asked for, so that a thousand runs are looked through once each."""
    grouped: dict[tuple[str | None, ...], list[RowRecord]] = {}
    for row in run.rows:
        grouped.setdefault((row["metric"], row["attribute"], row["attacker"]), []).append(row)
        grouped.setdefault((row["metric"], row["variant"]), []).append(row)
    return grouped


def _figures(run: StoredRun, grouped: _Grouped, attribute: str) -> Iterable[RowRecord | None]:
    """Micro-F1, AUC, matched and usual NDCG@10 of one member."""
    f1 = lead_of(grouped.get(("micro_f1", attribute, "worst"), []))
    f1 = f1 or lead_of(audit_rows(run, metric="micro_f1", attribute=attribute))
    exposure = f1["exposure"] if f1 else None
    auc = matching_row(grouped.get(("auc", attribute, "worst"), []), exposure)
    yield f1
    yield as_shown(auc, signed=run.signed) if auc else None
    yield matched_row(grouped.get(("ndcg_at_10_matched", attribute, None), []), attribute, exposure)
    yield matching_row(grouped.get(("ndcg_at_10", "held-out"), []), exposure)


def _span(reading: Reading | None) -> str:
    return "" if reading is None or reading.low is None else f"{reading.low:.3f} to {reading.high:.3f}"


def _listed(grouped: Sequence[_Grouped], metric: Metric, about: str, exposure: str | None) -> float | None:
    """The strongest attacker's value, or that of the attribute, or of the whole embedding; the mean over seeds."""
    values = []
    for of in grouped:
        keys = ((about, "worst"), (about, None), (None, None))
        rows = next((r for key in keys if (r := of.get((metric.name, *key)))), [])
        row = matching_row(rows, exposure)
        if row and row["value"] is not None:
            values.append(row["value"])
    return sum(values) / len(values) if values else None
