"""What the Report page offers: embeddings, a row for all seeds of each, and what their data say of themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uge_core.runs.store import RunStore
from uge_core.views.report.origin import origin
from uge_core.views.report.summary import report_rows

MOST = 12  # embeddings that a report begins with


@dataclass(frozen=True)
class ReportChoices:
    """What may be in a report.

    Attributes:
        rows: label by key, the audited embeddings of one graph.
        runs: the ids of each one's runs, by key.
        first: the keys that are chosen until somebody chooses others.
        source: where the data are from, as their dataset.yaml says, or "".
        licence: theirs, likewise.
    """

    rows: Mapping[str, str]
    runs: Mapping[str, tuple[str, ...]]
    first: tuple[str, ...]
    source: str
    licence: str


def report_choices(store: RunStore, compared: Sequence[str | None]) -> ReportChoices:
    """The embeddings of the graph that the compared runs are of, these first.

    Args:
        store: the run store.
        compared: ids of runs A and B, None where there is none.
    """
    audited = [r for r in store.list(audits=False) if r.audited]
    data = {r.dataset["fingerprint"] for r in audited if r.id in compared}
    here = [r for r in audited if r.dataset["fingerprint"] in data] or audited
    rows = report_rows(here)
    asked = [row.key for row in rows if set(row.ids) & set(compared)]
    beside = [row.key for row in rows if row.key not in asked]
    kept = {*asked, *beside[: max(0, MOST - len(asked))]}
    said = origin(rows[0].runs[0], store) if rows else {"source": "", "licence": ""}
    return ReportChoices(
        {row.key: row.label for row in rows},
        {row.key: row.ids for row in rows},
        tuple(row.key for row in rows if row.key in kept),
        said["source"],
        said["licence"],
    )
