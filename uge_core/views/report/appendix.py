"""A report's appendix: a row for each embedding over its seeds, group pairs, attackers, runs, settings.

Single runs are in the report's JSON and CSV. A reading is the mean over an embedding's seeds with an interval over seeds
and people (`views.verdicts.over_people_and_seeds`), of one seed the audit's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uge_core.audit.attacker_order import ordered_attackers
from uge_core.audit.base import RowRecord
from uge_core.audit.metrics import METRICS, ordered_metrics
from uge_core.graph.suppression import SUPPRESSED, SUPPRESSED_LEGEND
from uge_core.views.points import Fold, Reading, gap_row
from uge_core.views.report.summary import all_attributes
from uge_core.views.report.table import suppressed
from uge_core.views.rows import Verdict, as_shown, attacker_labels, audit_rows, lead_of, matching_row, usable
from uge_core.views.verdicts import over_people_and_seeds

MOST_CELLS = 28  # of a table of group pairs
MOST_REMARKS = 14
_LEAKAGE = tuple(m.name for m in ordered_metrics("leakage") if m.listed)
_COLUMNS = (*_LEAKAGE, "ndcg_at_10_matched", "ndcg_at_10", "dp", "eo")


@dataclass(frozen=True)
class Figure:
    """A number with what it takes to read it, as text; all "" where it was not measured.

    Attributes:
        value: the number, or that the evidence is not enough.
        interval: its 95 % interval.
        n: people, links, pairs or edges.
        floor: what chance gives.
    """

    value: str
    interval: str = ""
    n: str = ""
    floor: str = ""


@dataclass(frozen=True)
class FigureTable:
    """A table of figures.

    Attributes:
        title: what it is of.
        heads: each column's metric and which way is better.
        lines: a name and its figures.
        shared: n and floors of each column where they are the same in all lines, which do not repeat them then.
    """

    title: str
    heads: tuple[tuple[str, str], ...]
    lines: tuple[tuple[str, tuple[Figure, ...]], ...]
    shared: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls, title: str, heads: Sequence[tuple[str, str]], lines: Sequence[tuple[str, Sequence[Figure]]]
    ) -> FigureTable:
        """The table with what all lines share said once."""
        columns = [[f for f in column if f.n or f.floor] for column in zip(*(fs for _, fs in lines), strict=True)]
        shared = tuple(
            tuple(said.pop() if len(said := {getattr(f, name) for f in column}) == 1 else "" for name in ("n", "floor"))
            for column in columns
        )
        told = tuple(
            (
                label,
                tuple(
                    replace(f, n="" if n == f.n else f.n, floor="" if floor == f.floor else f.floor)
                    for f, (n, floor) in zip(figures, shared, strict=True)
                ),
            )
            for label, figures in lines
        )
        return cls(title, tuple(heads), told, tuple((n, floor) for n, floor in shared))


@dataclass(frozen=True)
class PairLine:
    """Two groups, before and after.

    Attributes:
        name: the groups.
        figures: one or two.
        thin: why they are left out of the gap, or "".
    """

    name: str
    figures: tuple[Figure, ...]
    thin: str


@dataclass(frozen=True)
class PairTable:
    """The group pairs of one gap.

    Attributes:
        title: the gap.
        heads: whose the figures are.
        lines: the pairs.
        more: how many are in the CSV alone.
        legend: what suppressed means, "" where nothing is.
    """

    title: str
    heads: tuple[str, ...]
    lines: tuple[PairLine, ...]
    more: int
    legend: str


def verdict(row: Fold) -> Verdict:
    """Whether an embedding says anything about links: of all its seeds the worst."""
    order = ("not usable", "not known", "usable")
    return min((usable(run) for run in row.runs), key=lambda v: order.index(v.state))


def number(value: float) -> str:
    """Three digits after the point."""
    text = f"{value:.3f}"
    return text.removeprefix("-") if float(text) == 0 else text


def span(low: float | None, high: float | None) -> str:
    """An interval; "" without one."""
    return "" if low is None or high is None else f"{number(low)} to {number(high)}"


def figure(reading: Reading | None) -> Figure:
    """A reading as text."""
    if reading is None:
        return Figure("not enough evidence")
    n = "" if reading.n is None else f"n {reading.n:,}"
    floors = [("chance", reading.random), ("majority", reading.majority), ("degree", reading.degree)]
    floor = ", ".join(f"{name} {number(v)}" for name, v in floors if v is not None)
    return Figure(number(reading.value), span(reading.low, reading.high), n, floor)


def figure_tables(rows: Sequence[Fold]) -> Iterator[FigureTable]:
    """A table for each attribute, a row for each embedding; without an attribute one of link quality."""
    for attribute in all_attributes(rows) or [""]:
        columns = _COLUMNS if attribute else ("ndcg_at_10",)
        lines = []
        for row in rows:
            found = [_reading(row, attribute, metric) for metric in columns]
            if any(found):
                unfit = " (not usable)" if verdict(row).state == "not usable" else ""
                lines.append((row.label + unfit, tuple(figure(r) for r in found)))
        heads = tuple((_HEADS.get(m, METRICS[m].short), f"{METRICS[m].direction} is better") for m in columns)
        if lines:
            yield FigureTable.of(attribute or "link quality", heads, lines)


_HEADS = {"auc": "AUC", "dp": "DP gap, calibrated", "eo": "EO gap, calibrated", "ndcg_at_10_matched": "matched NDCG@10"}


def _reading(row: Fold, attribute: str, metric: str) -> Reading | None:
    return over_people_and_seeds([_row(run, attribute, metric) for run in row.runs])


def _row(run: Any, attribute: str, metric: str) -> RowRecord | None:
    """What is told of one run: leakage first of people hidden from training, the rest of the same member."""
    if metric in ("dp", "eo"):
        return gap_row(run.rows, attribute, metric, "calibrated")
    leak = lead_of(audit_rows(run, metric="auc", attribute=attribute, attacker="worst"))
    exposure = leak["exposure"] if leak else None
    if metric in _LEAKAGE:
        found = matching_row(audit_rows(run, metric=metric, attribute=attribute, attacker="worst"), exposure)
        return as_shown(found, signed=run.signed) if found else None
    about = {"attribute": attribute} if metric == "ndcg_at_10_matched" else {}
    return matching_row(audit_rows(run, metric=metric, variant="held-out", **about), exposure)


def attacker_table(rows: Sequence[Fold], attribute: str) -> FigureTable | None:
    """What each attacker reads of an attribute, of the embeddings that are compared."""
    tried = {r["attacker"] for row in rows for run in row.runs for r in run.rows if r["attacker"]} - {"worst"}
    names = attacker_labels({str(name) for name in tried})
    known = [a.name for a in ordered_attackers()]
    lines = []
    for name in sorted(names, key=lambda n: known.index(n) if n in known else len(known)):
        found = []
        for row in rows:
            of = [lead_of(audit_rows(run, metric="auc", attribute=attribute, attacker=name)) for run in row.runs]
            shown = [as_shown(r, signed=run.signed) if r else None for run, r in zip(row.runs, of, strict=True)]
            found.append(over_people_and_seeds(shown))
        if any(found):
            lines.append((names[name], tuple(figure(r) for r in found)))
    if not lines:
        return None
    return FigureTable.of(attribute, [(row.label, "AUC, lower is better") for row in rows], lines)


def pair_tables(rows: Sequence[Fold], kept: Mapping[str, Mapping[str, Any]], attribute: str) -> Iterator[PairTable]:
    """The group pairs of DP and EO, of the first seed of the embeddings that are compared."""
    for metric in ("dp", "eo"):
        found = [gap_row(kept[row.key]["rows"], attribute, metric, "calibrated") for row in rows]
        told = [{(c["a"], c["b"]): suppressed(c) for c in (r["cells"] if r else ())} for r in found]
        pairs = list(dict.fromkeys(key for cells in told for key in cells))
        if not pairs:
            continue
        lines, hidden = [], False
        for a, b in pairs[:MOST_CELLS]:
            cells = [of.get((a, b)) for of in told]
            hidden = hidden or any(c is not None and c["n"] == SUPPRESSED for c in cells)
            thin = any(c is not None and c["excluded"] and c["n"] != SUPPRESSED for c in cells)
            name = a if b is None else f"{a} and {b}"
            lines.append(PairLine(name, tuple(map(_cell, cells)), "too few, left out" if thin else ""))
        yield PairTable(
            METRICS[metric].label.removesuffix(" gap"),
            tuple(row.label.partition("\u00a0· ")[0] if len(row.runs) == 1 else _first_seed(row) for row in rows),
            tuple(lines),
            len(pairs) - len(lines),
            SUPPRESSED_LEGEND if hidden else "",
        )


def _first_seed(row: Fold) -> str:
    name = row.label.removesuffix(f"\u00a0· {len(row.runs)}\u00a0seeds")
    return f"{name} · seed {row.runs[0].config.get('seed')}"


def _cell(cell: Mapping[str, Any] | None) -> Figure:
    if cell is None:
        return Figure("none")
    if cell["n"] == SUPPRESSED:
        return Figure(SUPPRESSED)
    value = "none" if cell["value"] is None else number(cell["value"])
    return Figure(value, span(cell["ci_low"], cell["ci_high"]), f"{cell['n']:,}")


def remarks(now: Fold, kept: Mapping[str, Mapping[str, Any]], attribute: str) -> list[tuple[str, str]]:
    """What the audit notes on the leading rows of the embedding that the report is about, each once."""
    notes: dict[str, str] = {}
    leading = [r for m in _COLUMNS if (r := _row(now.runs[0], attribute, m))]
    leading += [r for r in kept[now.key]["rows"] if r["metric"] == "usable"]
    for row in leading:
        if row["note"]:
            notes.setdefault(str(row["note"]), METRICS[row["metric"]].short)
    return [(short, note) for note, short in notes.items()][:MOST_REMARKS]


def metric_lines() -> list[tuple[str, str, str, str]]:
    """Name, sentence, direction and limits of the figures that the appendix shows."""
    shown = [METRICS[m] for m in (*_COLUMNS, "usable")]
    return [(m.label, m.sentence, m.direction, m.limits) for m in shown]


@dataclass(frozen=True)
class Settings:
    """How runs were trained.

    Attributes:
        shared: settings and versions that all have, name and value.
        own: by embedding, those that it has alone.
    """

    shared: tuple[tuple[str, str], ...]
    own: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


def settings(rows: Sequence[Fold], kept: Mapping[str, Mapping[str, Any]]) -> Settings:
    """The settings and versions of all runs, what is the same once."""
    told = {}
    for row in rows:
        flat = dict(_flat(kept[row.key]["config"]))
        flat.pop("seed", None)
        told[row.label] = flat | {f"with {k}": v for k, v in _flat(row.runs[0].environment)}
    shared = [(k, v) for k, v in next(iter(told.values())).items() if all(t.get(k) == v for t in told.values())]
    names = {k for k, _ in shared}
    own = tuple((label, tuple((k, v) for k, v in t.items() if k not in names)) for label, t in told.items())
    return Settings(tuple(shared), tuple((label, mine) for label, mine in own if mine))


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in sorted(config.items()):
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
