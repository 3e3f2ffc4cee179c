"""What the Report page offers: embeddings, a row for all seeds of each, and what their data say of themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uge_core.runs.store import RunStore
from uge_core.views.report.origin import origin
from uge_core.views.report.summary import compared as set_side_by_side
from uge_core.views.report.summary import report_rows

MOST = 12  # embeddings that a report begins with


@dataclass(frozen=True)
class ReportChoices:
    """What may be in a report.

    Attributes:
        rows: label by key, the audited embeddings of one graph.
        runs: the ids of each one's runs, by key.
        first: the keys that are chosen until somebody chooses others.
        asked: those of the compared runs.
        source: where the data are from, as their dataset.yaml says, or "".
        licence: theirs, likewise.
    """

    rows: Mapping[str, str]
    runs: Mapping[str, tuple[str, ...]]
    first: tuple[str, ...]
    asked: tuple[str, ...]
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
        tuple(asked),
        said["source"],
        said["licence"],
    )


@dataclass(frozen=True)
class ReportSides:
    """Which embeddings a report sets side by side.

    Attributes:
        before: run A's id where it is among the report's runs, else "".
        after: run B's, likewise.
        words: what the report is about and compared with, and why where these are not runs A and B.
    """

    before: str
    after: str
    words: str


def report_sides(store: RunStore, runs: Sequence[str], compared: Sequence[str | None]) -> ReportSides:
    """What a report of some runs is about.

    Args:
        store: the run store.
        runs: ids of audited runs, one at least.
        compared: ids of runs A and B, None where there is none.

    Raises:
        ConfigError: runs A and B are of two graphs.
    """
    before, after = (run if run in runs else "" for run in compared)
    rows = report_rows(sorted(store.list(audits=False, only=runs), key=lambda r: runs.index(r.id)))
    first, now = set_side_by_side(rows, before or "", after or "")

    def why(side: str, asked: str | None) -> str:
        return f"run {side} is not among the embeddings chosen above" if asked else f"there is no run {side}"

    about = f"run B, {now.label}" if after else f"{now.label}, as {why('B', compared[1])}"
    if first is None:
        beside = "Nothing is compared with it"
    elif before:
        beside = f"It is compared with run A, {first.label}"
    else:
        beside = f"It is compared with {first.label}, as {why('A', compared[0])}"
    return ReportSides(before or "", after or "", f"The report is about {about}. {beside}.")
