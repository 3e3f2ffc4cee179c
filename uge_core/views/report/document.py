"""The report as one HTML file that needs no network: text, tables, charts and the records themselves."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from uge_core.audit.base import CellRecord, RowRecord
from uge_core.audit.metrics import METRICS, ordered_metrics
from uge_core.explore.whatif.scenario import Scenarios
from uge_core.graph.suppression import SUPPRESSED, SUPPRESSED_LEGEND
from uge_core.runs.names import config_words, labels
from uge_core.views import words
from uge_core.views.figures.leakage import CHART_CONFIG, leakage_figure
from uge_core.views.leakage import leakage_choices, leakage_view
from uge_core.views.points import folds
from uge_core.views.report.scenarios import SENSITIVE
from uge_core.views.report.table import suppressed
from uge_core.views.rows import usable_by
from uge_core.views.verdicts import judged
from uge_core.views.whatif import JudgedView, judged_view
from uge_core.visible import visible

if TYPE_CHECKING:
    from uge_core.runs.store import RunStore
    from uge_core.runs.stored_run import StoredRun
    from uge_core.views.report import Sheet

_TEMPLATE = "template.html"
_LEAKAGE = tuple(m.name for m in ordered_metrics("leakage") if m.listed)


def document(
    runs: Sequence[StoredRun],
    records: Sequence[Mapping[str, Any]],
    sheet: Sheet,
    store: RunStore,
    made: str,
    scenarios: Sequence[str] = (),
) -> str:
    """The HTML of a report; every number in it stands in the records, which it holds.

    The same arguments give the same text, so that a report can be made anew and compared.

    Args:
        runs: audited runs.
        records: their sealed records, in the same order.
        sheet: title, author and purpose.
        store: where the runs lie.
        made: when, in words.
        scenarios: ids of stored what-if scenarios.
    """
    from jinja2 import Environment
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    text = resources.files("uge_core.views.report").joinpath(_TEMPLATE).read_text(encoding="utf-8")

    def shown(value: Any) -> Any:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=shown).from_string(text)
    names = labels(runs)
    held = json.dumps(list(records), ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return template.render(
        sheet=sheet,
        made=made,
        sentences=list(_findings(runs, store)),
        runs=[_run(run, record, names[run.id]) for run, record in zip(runs, records, strict=True)],
        datasets=list({r["dataset"]["fingerprint"]: r["dataset"] for r in records}.values()),
        scenarios=[_scenario(store, i, names) for i in scenarios],
        charts=[_chart(c, f"chart-{i}") for i, c in enumerate(_charts(store, [r.id for r in runs]), start=1)],
        metrics=[METRICS[m] for m in METRICS if any(row["metric"] == m for r in records for row in r["rows"])],
        plotly=Markup(get_plotlyjs()),
        records=Markup(held),
    )


def _findings(runs: Sequence[StoredRun], store: RunStore) -> Iterator[dict[str, str]]:
    """Each embedding's verdicts, beside the untreated one on the same graph."""
    rows = folds(runs)
    for row in rows:
        plain = (f for f in rows if f is not row and f.runs[0].config["method"] == "none")
        like = row.runs[0].dataset["fingerprint"]
        before = next((f for f in plain if f.runs[0].dataset["fingerprint"] == like), None)
        for card in judged(store, before, row):
            yield {"about": f"{row.label}: {card.headline}", "text": f"{card.sentence} {card.cost}".strip()}


def drawn_by() -> str:
    """The version of the library that draws the charts."""
    from plotly import __version__

    return str(__version__)


def _charts(store: RunStore, ids: list[str]) -> Iterator[tuple[Any, Any]]:
    choices = leakage_choices(store, only=ids)
    for exposure in choices.exposures:
        for metric in _LEAKAGE:
            if metric in choices.metrics:
                view = leakage_view(store, exposure=exposure, attacker="worst", metric=metric, runs=ids)
                if not view.table.empty:
                    yield view, leakage_figure(view)


def _chart(chart: tuple[Any, Any], name: str) -> dict[str, Any]:
    from markupsafe import Markup

    view, figure = chart
    figure.update_layout(title=None, paper_bgcolor="white", plot_bgcolor="white", template="plotly_white")
    drawn = figure.to_html(
        full_html=False, include_plotlyjs=False, config=CHART_CONFIG, default_width="100%", div_id=name
    )
    return {
        "title": view.title,
        "caption": view.caption,
        "alt": view.alt,
        "html": Markup(drawn),
        "remarks": view.remarks,
    }


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
            else _number(v)
            if isinstance(v, float)
            else str(v)
            for k, v in row.items()
        }
        for row in words.records(view.table)
    ]


def _run(run: StoredRun, record: Mapping[str, Any], label: str) -> dict[str, Any]:
    """What the template prints of a run."""
    return {
        "id": run.id,
        "label": label,
        "words": config_words(record["config"], joint=" · "),
        "sha256": record["sha256"],
        "version": record.get("audit_version", 1),
        "config": sorted((k, json.dumps(v, ensure_ascii=False)) for k, v in record["config"].items()),
        "stamp": sorted((k, _plain(v)) for k, v in run.environment.items()),
        "tables": list(_tables(record["rows"])),
        "policy": record.get("policy"),
        "usable": usable_by(record["rows"]),
    }


def _tables(rows: Iterable[RowRecord]) -> Iterator[dict[str, Any]]:
    """The rows by metric, unseen ones first, as text."""
    rows = list(rows)
    for name, metric in METRICS.items():
        mine = sorted((r for r in rows if r["metric"] == name), key=lambda r: r["exposure"] == "seen")
        if mine:
            yield {
                "metric": metric,
                "rows": [
                    {
                        "of": " · ".join(filter(None, (r["attribute"], r["attacker"], _form(r), r["exposure"]))),
                        "value": "not enough evidence" if r["value"] is None else _number(r["value"]),
                        "interval": _span(r["ci_low"], r["ci_high"]),
                        "kind": r["ci_kind"] or "",
                        "n": f"{r['n']:,}" if r["n"] is not None else "",
                        "floors": ", ".join(
                            f"{name} {_number(floor)}"
                            for name, floor in (
                                ("random", r["floor_random"]),
                                ("majority", r["floor_majority"]),
                                ("permutation", r["floor_permutation"]),
                                ("degree", r.get("floor_degree")),
                            )
                            if floor is not None
                        ),
                        "p": "" if (p := r["p_value"]) is None else _number(p),
                        "direction": r["direction"],
                        "note": r["note"] or "",
                        **_cells(r.get("cells") or ()),
                    }
                    for r in mine
                ],
            }


def _form(row: RowRecord) -> str | None:
    """The variant, said where a gap is the paper's raw one."""
    raw = row["metric"] in ("dp", "eo") and row["variant"] in (None, "held-out", "all-edges")
    return " · ".join(filter(None, ("raw", row["variant"]))) if raw else row["variant"]


_MOST_CELLS = 60


def _cells(cells: Sequence[CellRecord]) -> dict[str, Any]:
    """Group pairs as text, what suppressed ones are, and how many more there are."""
    told = [suppressed(c) for c in cells[:_MOST_CELLS]]
    return {
        "cells": [
            {
                "name": c["a"] if c["b"] is None else f"{c['a']} and {c['b']}",
                "value": ("" if c["n"] else "none") if c["value"] is None else _number(c["value"]),
                "interval": _span(c["ci_low"], c["ci_high"]),
                "n": c["n"] if c["n"] == SUPPRESSED else f"{c['n']:,}",
                "left_out": "too few, left out" if c["excluded"] and c["n"] != SUPPRESSED else "",
            }
            for c in told
        ],
        "legend": SUPPRESSED_LEGEND if any(c["n"] == SUPPRESSED for c in told) else "",
        "more": max(0, len(cells) - _MOST_CELLS),
    }


def _number(value: float) -> str:
    """Three digits after the point, small ones with three that count."""
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.0095 or not math.isfinite(value) else f"{value:.3g}"


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{_number(low)} to {_number(high)}"


def _plain(value: Any) -> str:
    return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
