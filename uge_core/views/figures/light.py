"""Charts as HTML tables, drawn anew at each step of a slider.

Streamlit mounts a Plotly chart anew whenever its figure changes, a tenth of a second and more each; a table costs a
hundredth. Text is text, so a screen reader gets the numbers; what a Plotly chart shows on hovering is a cell's title.
Every name from people's data is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from uge_core.graph.suppression import SUPPRESSED
from uge_core.runs.names import method_class
from uge_core.views.fairness import GAP_LABELS, GapView
from uge_core.views.figures.gaps import OUTLINE, cell_ends, cell_face, extreme_cells, short_name
from uge_core.views.figures.look import escape, faded, ink, paper, readable_on
from uge_core.views.leakage import LeakageView
from uge_core.views.rows import METRIC_LABELS
from uge_core.views.words import interval, known, records

_STYLE = """<style>
.uge-light { margin: 0 0 .5rem; font-size: 14px; }
.uge-light table { border-collapse: separate; border-spacing: 4px; width: 100%; table-layout: fixed; margin: 0; }
.uge-light :is(table, tr, th, td) { border: 0; }
.uge-light th { font-weight: 400; text-align: right; padding: 0 8px 0 0; overflow-wrap: anywhere; vertical-align: middle; }
.uge-light th[scope=col] { text-align: center; padding: 2px; }
.uge-light .map td { text-align: center; padding: 6px 2px; height: 44px; line-height: 1.25; vertical-align: middle; }
.uge-light .map small { font-size: 12.5px; }
.uge-light .map small.suppressed { font-size: 10px; margin: 0 -3px; }
.uge-light .bars { border-spacing: 0 3px; }
.uge-light .bars td { padding: 0; vertical-align: middle; }
.uge-light .track { position: relative; height: 26px; border-left: 1px solid currentColor; }
.uge-light .track * { position: absolute; box-sizing: border-box; }
.uge-light .bar { top: 2px; bottom: 2px; left: 0; }
.uge-light .dot { top: 5px; width: 16px; height: 16px; margin-left: -8px; border-radius: 50%; }
.uge-light .whisker { top: 9px; height: 9px; border: solid currentColor; border-width: 0 1.5px; }
.uge-light .whisker::after { content: ""; position: absolute; left: 0; right: 0; top: 3px; border-top: 1.5px solid; }
.uge-light .tick { top: 0; bottom: 0; border-left: 2.5px solid currentColor; }
.uge-light .cross { top: 0; line-height: 26px; width: 16px; margin-left: -8px; text-align: center; font-size: 18px; }
.uge-light .gap td, .uge-light .gap th { height: 10px; }
.uge-light .bars .said { padding-left: 14px; font-variant-numeric: tabular-nums; }
.uge-light .key { display: flex; flex-wrap: wrap; gap: 4px 18px; margin-bottom: 6px; }
.uge-light .key i { display: inline-block; width: 14px; height: 14px; margin-right: 6px; vertical-align: -2px; }
.uge-light .axis { position: relative; height: 18px; font-size: 12.5px; }
.uge-light .axis span { position: absolute; transform: translateX(-50%); }
.uge-light .axis span:first-child { transform: none; }
.uge-light .axis span:last-child { transform: translateX(-100%); }
</style>"""


def gap_light(view: GapView, which: str, *, dark: bool = False) -> str:
    """One run's DP or EO between groups: the lower triangle of pairs, or a bar for each group of users.

    Args:
        view: what to draw; its layout is "map" or "bars".
        which: "before" or "after".
        dark: the page is dark.
    """
    if view.layout == "bars":
        return _gap_bars(view, which, dark)
    cells = {_key(view, c["a"], c["b"]): c for c in records(view.table)}
    marked = dict(extreme_cells(view, which))
    lines = []
    for i, row in enumerate(view.groups):
        columns = view.groups if view.directed else view.groups[: i + 1]
        row_cells = [cells.get(_key(view, row, column)) for column in columns]
        drawn = [_cell(c, which, view, marked, dark) if c else "<td></td>" for c in row_cells]
        blank = "<td></td>" * (len(view.groups) - len(columns))
        lines.append(f'<tr><th scope="row">{escape(short_name(row))}</th>{"".join(drawn)}{blank}</tr>')
    heads = "".join(f'<th scope="col">{escape(short_name(g))}</th>' for g in view.groups)
    return _figure(f'<table class="map">{"".join(lines)}<tr><td></td>{heads}</tr></table>', view.alt[which], dark)


def _key(view: GapView, a: str, b: str) -> tuple[str, ...]:
    return (a, b) if view.directed else tuple(sorted((a, b)))


def _cell(cell: Mapping[str, Any], which: str, view: GapView, marked: Mapping[Any, str], dark: bool) -> str:
    text, fill = cell_face(cell, which, view.scale, dark)
    value, *n = text.split("<br>")
    about = f"{cell['a']}{' to ' if view.directed else ' with '}{cell['b']}: {', '.join((value, *n))}"
    style = f"background: {_hatch(ink(dark), dark)}"
    if fill is None:
        about += "" if text == SUPPRESSED else ", too few to count"
    else:
        style = f"background: {fill}; color: {readable_on(fill)}"
    if (extreme := marked.get((cell["a"], cell["b"]))) is not None:
        about += f", {extreme}"
        style += f"; outline: 4px solid {OUTLINE}; outline-offset: -2px"
    about += cell_ends(cell, which)
    words = value + "".join(f"<br><small>{x}</small>" for x in n)
    if text == SUPPRESSED:
        words = f'<small class="suppressed">{text}</small>'
    if fill is None:
        words = f'<span style="background: {paper(dark)}; padding: 0 3px">{words}</span>'
    return f'<td title="{escape(about)}" style="{style}">{words}</td>'


@dataclass(frozen=True)
class _Bar:
    """One bar: where it belongs, how long it is, how sure, and what is written beside it."""

    group: str
    run: str
    color: str
    value: float
    low: float | None
    high: float | None
    full: bool
    text: str
    ticks: tuple[tuple[str, float | None], ...] = ()


def _gap_bars(view: GapView, which: str, dark: bool) -> str:
    side = view.sides[0 if which == "before" else 1]
    color = method_class(side.method).color
    bars = [
        _Bar(
            r["a"],
            side.label,
            color,
            r[f"{which}_value"] if known(r[f"{which}_value"]) else 0.0,
            r[f"{which}_low"],
            r[f"{which}_high"],
            bool(r[f"{which}_counts"]),
            _said(r, which, view.scale, dark),
        )
        for r in records(view.table)
        if r["a"] in view.groups
    ]
    top = max([view.scale, *(b.high for b in bars if b.high is not None and known(b.high))])
    label = f"{GAP_LABELS[view.metric]}: {view.what}"
    return _figure(_bars(bars, top, label, dark), view.alt[which], dark)


def _said(cell: Mapping[str, Any], which: str, scale: float, dark: bool) -> str:
    """What stands beside a group's bar."""
    value, *n = cell_face(cell, which, scale, dark)[0].split("<br>")
    return value + interval(cell[f"{which}_low"], cell[f"{which}_high"]) + "".join(f", n = {x}" for x in n)


def leakage_light(view: LeakageView, *, dark: bool = False) -> str:
    """Every attribute's leakage of two runs: dots with intervals, from a coin on for the AUC, hollow at a floor.

    Args:
        view: what to draw.
        dark: the page is dark.
    """
    bars = [
        _Bar(
            r["attribute"],
            r["run"],
            method_class(r["method"]).color,
            r["value"],
            r["ci_low"],
            r["ci_high"],
            bool(r["telling"]),
            f"{r['value']:.3f}{interval(r['ci_low'], r['ci_high'])}",
            (("majority", r["majority"]), ("random", r["random"])),
        )
        for r in records(view.table)
    ]
    base = 0.5 if view.metric == "auc" else 0.0
    return _figure(_bars(bars, 1.0, f"{METRIC_LABELS[view.metric]}: left is better", dark, base), view.alt, dark)


def _bars(bars: Iterable[_Bar], top: float, label: str, dark: bool, base: float | None = None) -> str:
    """A row each, an attribute's or a group's together, above them what the colours and ticks mean.

    With a `base` they are dots on an axis that begins there; bars begin at zero.
    """
    bars = list(bars)
    key = [
        f"<span><i style='background: {b.color}'></i>{escape(b.run)}</span>" for b in {b.run: b for b in bars}.values()
    ]
    if any(b.ticks for b in bars):
        key += ["<span><b>|</b> majority</span>", "<span><b>&times;</b> random</span>"]
    if any(not b.full for b in bars):
        shade = "background: none; border: 2px solid; border-radius: 50%" if base is not None else ""
        shade = shade or f"background: {_hatch(ink(dark), dark)}"
        key.append(f"<span><i style='{shade}'></i>{'hatched' if base is None else 'hollow'}: see below</span>")
    lines = []
    for group in dict.fromkeys(b.group for b in bars):
        mine = [b for b in bars if b.group == group]
        for i, bar in enumerate(mine):
            head = f'<th scope="row" rowspan="{len(mine)}">{escape(short_name(group))}</th>' if i == 0 else ""
            about = escape(f"{group}, {bar.run}: {bar.text}")
            lines.append(
                f'<tr title="{about}">{head}<td><div class="track">{_marks(bar, top, dark, base)}</div></td>'
                f'<td class="said">{escape(bar.text)}</td></tr>'
            )
        if len(mine) > 1:
            lines.append('<tr class="gap"><td></td><td></td><td></td></tr>')
    low = base or 0.0
    steps = [f'<span style="left: {25 * k}%">{low + (top - low) * k / 4:.3g}</span>' for k in range(5)]
    lines.append(
        f'<tr aria-hidden="true"><td></td><td><div class="axis">{"".join(steps)}</div></td>'
        f'<td class="said">{escape(label)}</td></tr>'
    )
    columns = '<colgroup><col style="width: 16%"><col><col style="width: 28%"></colgroup>'
    return f'<div class="key">{"".join(key)}</div><table class="bars">{columns}{"".join(lines)}</table>'


def _marks(bar: _Bar, top: float, dark: bool, base: float | None) -> str:
    begin = base or 0.0

    def at(value: float) -> str:
        return f"{100 * min(max((value - begin) / (top - begin), 0.0), 1.0):.2f}%"

    fill = bar.color if bar.full else _hatch(bar.color, dark)
    out = f'<div class="bar" style="width: {at(bar.value)}; background: {fill}; border: 1.5px solid {bar.color}"></div>'
    if base is not None:
        fill = bar.color if bar.full else "none"
        out = (
            f'<div class="dot" style="left: {at(bar.value)}; background: {fill}; border: 3px solid {bar.color}"></div>'
        )
    if known(bar.low) and known(bar.high):
        low, high = float(bar.low or 0.0), float(bar.high or 0.0)
        out += f'<div class="whisker" style="left: {at(low)}; width: calc({at(high)} - {at(low)})"></div>'
    for name, value in bar.ticks:
        if value is not None and known(value):
            kind, sign = ("tick", "") if name == "majority" else ("cross", "&times;")
            out += f'<div class="{kind}" style="left: {at(value)}" title="{name} {value:.3f}">{sign}</div>'
    return out


def _hatch(color: str, dark: bool) -> str:
    """The background of what does not count."""
    return f"repeating-linear-gradient(135deg, {paper(dark)} 0 5px, {faded(color, 0.5)} 5px 6.5px)"


def _figure(inside: str, alt: str, dark: bool) -> str:
    return (
        f'{_STYLE}<div class="uge-light" role="figure" aria-label="{escape(alt)}" style="color: '
        f'{ink(dark)}">{inside}</div>'
    )
