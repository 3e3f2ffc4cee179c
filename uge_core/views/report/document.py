"""The report as one HTML file that needs no network and no script: two pages to sign, an appendix, the records themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from uge_core.explore.whatif.scenario import Scenarios
from uge_core.runs.names import labels
from uge_core.views import words
from uge_core.views.figures.gauge import STYLE, tracks
from uge_core.views.points import Reading
from uge_core.views.report import appendix
from uge_core.views.report.appendix import number
from uge_core.views.report.scenarios import SENSITIVE
from uge_core.views.report.summary import SECTIONS, Summary, digest_words, report_rows, summary
from uge_core.views.report.wording import cut
from uge_core.views.verdicts import Side
from uge_core.views.whatif import JudgedView, judged_view
from uge_core.visible import visible

if TYPE_CHECKING:
    from uge_core.runs.store import RunStore
    from uge_core.runs.stored_run import StoredRun
    from uge_core.views.report import Sheet

_TEMPLATE = "template.html"
_TEXTS = {
    "title": "Title",
    "purpose": "Scope and purpose",
    "threshold_by": "Threshold set by",
    "threshold_on": "Threshold set on",
    "remarks": "Remarks",
}


def document(
    runs: Sequence[StoredRun],
    records: Sequence[Mapping[str, Any]],
    sheet: Sheet,
    store: RunStore,
    made: str,
    scenarios: Sequence[str] = (),
    chosen: Mapping[str, str] | None = None,
    notes: Mapping[str, str] | None = None,
) -> str:
    """The HTML of a report; every number in it is of the records, which it holds.

    The same arguments give the same text, so that a report can be made anew and compared.

    Args:
        runs: audited runs.
        records: their sealed records, in the same order.
        sheet: what was typed.
        store: where the runs lie.
        made: when, in words.
        scenarios: ids of stored what-if scenarios.
        chosen: `before`, `after`, `attribute` and `data` of `summary.summary`; `sections`, of `SECTIONS` those of the
            appendix that are wanted, with commas between, "" for all.
        notes: what is pinned to runs, by run id.
    """
    from jinja2 import Environment
    from markupsafe import Markup

    text = resources.files("uge_core.views.report").joinpath(_TEMPLATE).read_text(encoding="utf-8")

    def shown(value: Any) -> Any:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=shown).from_string(text)
    rows = report_rows(runs)
    kept = {run.id: record for run, record in zip(runs, records, strict=True)}
    picked = dict(chosen or {})
    sections = picked.pop("sections", "").split(",") if picked.get("sections") else list(SECTIONS)
    picked.pop("sections", None)
    first = summary(rows, kept, store, sheet, **picked)
    beside = [row for row in (first.before, first.now) if row]
    held = json.dumps(list(records), ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    verdicts = [(row.label, appendix.verdict(row)) for row in rows]
    pinned = notes or {}
    return template.render(
        sheet=sheet,
        made=made,
        s=first,
        chart=Markup(first.chart),
        rows=rows,
        gauge_style=Markup(STYLE),
        tracks=lambda card: Markup(tracks(card)),
        cut=cut,
        reading=_reading_of_side,
        reading_of=_reading,
        digest=first.digest,
        digest_words=digest_words(len(runs)),
        unfit=[(label, v.why) for label, v in verdicts if v.state != "usable"],
        tables=list(appendix.figure_tables(rows)) if "embeddings" in sections else [],
        attackers=appendix.attacker_table(beside, first.attribute) if "attackers" in sections else None,
        pairs=list(appendix.pair_tables(beside, kept, first.attribute)) if "pairs" in sections else [],
        remarks=appendix.remarks(first.now, kept, first.attribute) if "remarks" in sections else [],
        whole=[(name, whole) for field, name in _TEXTS.items() if _cut(whole := getattr(sheet, field), first, field)],
        metrics=appendix.metric_lines() if "figures" in sections else [],
        runs=[
            {
                "id": run.id,
                "label": row.label,
                "seed": run.config.get("seed", ""),
                "version": kept[run.id].get("audit_version", 1),
                "sha256": kept[run.id]["sha256"],
            }
            for row in rows
            for run in row.runs
        ],
        notes=[(row.label, run.id, pinned[run.id]) for row in rows for run in row.runs if run.id in pinned],
        settings=appendix.settings(rows, kept) if "settings" in sections else None,
        datasets=list({r["dataset"]["fingerprint"]: r["dataset"] for r in records}.values()),
        scenarios=[_scenario(store, i, labels(runs)) for i in scenarios],
        records=Markup(held),
    )


def _cut(whole: str, first: Summary, field: str) -> bool:
    """Whether a text goes on beyond what the first pages have room for."""
    return cut(whole, len(whole)) != first.shortened[field]


def _reading(reading: Reading | None) -> str:
    if reading is None:
        return "not measured"
    ends = "" if reading.low is None or reading.high is None else f" [{reading.low:.3f}, {reading.high:.3f}]"
    return f"{reading.value:.3f}{ends}"


def _reading_of_side(side: Side | None) -> str:
    return "" if side is None else _reading(side.auc)


def _scenario(store: RunStore, scenario_id: str, names: Mapping[str, str]) -> dict[str, Any]:
    """A what-if scenario with what the runs of the report gave."""
    kept = Scenarios(store)
    scenario = kept.load(scenario_id).scenario
    return {
        "name": scenario.name,
        "sha256": scenario.hash,
        "data": scenario.data,
        "edits": [e.words for e in scenario.edits],
        "warning": SENSITIVE if scenario.nodes else "",
        "runs": [
            {"label": names[run_id], "tier": view.tier, "why_not": view.why_not, "rows": _texts(view)}
            for run_id, answer in kept.results(scenario_id, names).items()
            for view in [judged_view(answer)]
        ],
    }


def _texts(view: JudgedView) -> list[dict[str, str]]:
    """The rows before and after, as text."""
    return [
        {
            k: ""
            if v is None or v != v
            else f"{v:,}"
            if isinstance(v, int)
            else number(v)
            if isinstance(v, float)
            else str(v)
            for k, v in row.items()
        }
        for row in words.records(view.table)
    ]
