"""Differences between groups: demographic parity and equalized opportunity of one or two runs.

A gap has five forms. No scaling of the vectors changes that of mean calibrated probabilities, of the share of pairs
predicted as links, in the first ten recommendations, and of how well the scores of one pair of groups stand out from the
others' ("relative", which has no cells); the paper's raw one, the mean of sigmoid(score), shrinks with the vectors. A cell is a pair
of groups, on a bipartite graph a group of users; its value is the mean predicted probability of a link (DP) or that of
held-out links (EO), or of the first ten the share of a group's slots that go to the other (DP, from one group to
another) and of held-out links that are among them (EO). Cells with too few pairs are shown, marked,
and never enter the gap; of suppressed ones, of few edges or in records of earlier versions of few people, neither value
nor number is held here. Each gap has one of three verdicts: more than chance, not distinguishable from chance, or not
enough evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from uge_core.audit.base import CellRecord, RowRecord
from uge_core.audit.metrics import METRICS
from uge_core.files import to_csv
from uge_core.graph.suppression import SUPPRESSED, SUPPRESSED_LEGEND, is_suppressed
from uge_core.runs.names import labels
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.views.points import Form, gap_row
from uge_core.views.rows import AGAIN, Verdict, order, usable
from uge_core.views.words import interval, known, many, records

GAP_LABELS: Mapping[str, str] = {name: METRICS[name].label.removesuffix(" gap") for name in ("dp", "eo")}
FORMS: Mapping[Form, str] = {
    "calibrated": "Mean",
    "thresholded": "Thresholded",
    "top-10": "First ten",
    "relative": "Relative",
    "raw": "Raw (the paper's)",
}
_FORM_WORDS: Mapping[Form, str] = {
    "calibrated": "mean calibrated probability",
    "thresholded": "share predicted as links",
    "top-10": "first ten recommendations",
    "relative": "scores of one pair of groups against the others",
    "raw": "raw scores",
}
MOST_VALUES = 12  # of an attribute, drawn in full
MOST_CELLS = 400  # above it, a table alone
_SIDES = ("before", "after")


@dataclass(frozen=True)
class GapSide:
    """One run's gap.

    Attributes:
        run_id: the run.
        label: its name.
        method: its method's name.
        verdict: "more than chance", "not distinguishable from chance" or "not enough evidence".
        sentence: the gap with both cells, intervals and n.
        extremes: the highest and the lowest cell, (a, b) each, or none.
    """

    run_id: str
    label: str
    method: str
    verdict: str
    sentence: str
    extremes: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class GapView:
    """DP or EO of one attribute, one record for maps, table and file.

    Attributes:
        metric: "dp" or "eo".
        attribute: whose groups.
        form: how it is measured.
        directed: a cell is from the first group to the second, so that a map is full.
        what: what a cell's value is, in a few words.
        layout: "map", "bars" (bipartite), "table" (too many cells to draw) or "none" (measured of no run).
        groups: those that are drawn, in order.
        table: one row per cell: a, b, then value, low, high, n, counts, suppressed of each run, and the difference.
        sides: one or two runs.
        ranked: cells are left out of the drawing, so the table belongs beside it.
        scale: the largest value of both runs, the end of the maps' common scale.
        title: the finding.
        change: the two gaps compared, or "".
        caption: what is drawn.
        others: the gaps in each other form that the audits have, a sentence each.
        alt: the drawing in words, by "before", "after" and "difference".
        remarks: what to know about single cells.
        missing: which run has no such figure, and why.
        unfit: which runs are not usable, and why, so that how alike their groups look is no success.
    """

    metric: str
    attribute: str
    form: Form
    directed: bool
    what: str
    layout: Literal["map", "bars", "table", "none"]
    groups: tuple[str, ...]
    table: pd.DataFrame
    sides: tuple[GapSide, ...]
    ranked: bool
    scale: float
    title: str
    change: str
    caption: str
    others: tuple[str, ...]
    alt: Mapping[str, str]
    remarks: tuple[str, ...]
    missing: tuple[str, ...]
    unfit: tuple[str, ...]

    def csv(self) -> str:
        """The table as CSV."""
        table = self.table.copy()
        for side in _SIDES[: len(self.sides) if len(table) else 0]:
            table[f"{side}_n"] = table[f"{side}_n"].astype(object).mask(table.pop(f"{side}_suppressed"), SUPPRESSED)
        return to_csv(table)


def gap_forms(store: RunStore, *, attribute: str, before: str, after: str | None = None) -> dict[Form, str]:
    """The forms that one or two audits have of some gap, label by name, those that lead first; raw where none is there."""
    runs = store.list(only=[i for i in (before, after) if i])
    found: dict[Form, str] = {
        form: label
        for form, label in FORMS.items()
        if any(gap_row(run.rows, attribute, metric, form) for run in runs for metric in GAP_LABELS)
    }
    return found or {"raw": FORMS["raw"]}


def fairness_view(
    store: RunStore, *, metric: str, attribute: str, before: str, after: str | None = None, form: Form = "calibrated"
) -> GapView | None:
    """The cells of one or two runs; None where neither audit has such a row.

    Args:
        store: the run store.
        metric: "dp" or "eo".
        attribute: an audited attribute.
        before: a run's id.
        after: another run's id on the same data, or None.
        form: how the gap is wanted; another where neither audit knows that form.

    Raises:
        RunNotFound: no such run.
        StoreError: an audit cannot be read.
    """
    runs = [store.load(i) for i in dict.fromkeys((before, after)) if i is not None]
    names = labels(runs)
    whole = [(run.audit or {}).get("rows", ()) for run in runs]
    if not any(gap_row(rows, attribute, metric, form) for rows in whole):
        form = next((f for f in FORMS if any(gap_row(rows, attribute, metric, f) for rows in whole)), "raw")
    found = [
        (run, row)
        for run, rows in zip(runs, whole, strict=True)
        if (row := gap_row(rows, attribute, metric, form)) is not None
    ]
    measured = [(run, row) for run, row in found if _told(row)]
    verdicts = {names[run.id]: usable(run) for run in runs}
    missing, unfit = tuple(_missing(runs, found, names)), tuple(_unfit(verdicts))
    if not measured:
        return _unmeasured(metric, attribute, form, found, names, missing, unfit)
    table = _cells([row for _, row in measured])
    sides = tuple(_side(run, names[run.id], row, metric, form) for run, row in measured)
    directed = form == "top-10" and metric == "dp" and bool(table["b"].notna().any())
    pairwise = table["b"].notna().any()
    groups, ranked = _groups(table)
    layout: Literal["map", "bars", "table", "none"] = "bars" if not pairwise else "map"
    if len(table) > MOST_CELLS:
        layout = "table"
    counted = [table.loc[table[f"{s}_counts"], f"{s}_value"].max() for s in _SIDES[: len(measured)]]
    scale = max([float(v) for v in counted if known(v)], default=1.0) or 1.0
    return GapView(
        metric,
        attribute,
        form,
        directed,
        _CELLS[metric, form],
        layout,
        groups,
        table,
        sides,
        ranked,
        scale,
        _title(metric, attribute, form, sides, {name for name, v in verdicts.items() if not v.counts}),
        _change(measured, names, unfit),
        _caption(metric, attribute, form, layout, table, measured, scale, any(s.extremes for s in sides)),
        tuple(_other_forms(metric, attribute, form, {names[r.id]: rows for r, rows in zip(runs, whole, strict=True)})),
        _alt(metric, attribute, form, table, sides),
        (
            *(f"{name}: {v.remark}." for name, v in verdicts.items() if form == "raw" and v.remark),
            *_remarks(table, measured, names, groups, ranked, _unit(metric, form)),
        ),
        missing,
        unfit,
    )


_CELLS: Mapping[tuple[str, Form], str] = {
    ("dp", "calibrated"): "mean calibrated probability",
    ("eo", "calibrated"): "mean calibrated probability",
    ("dp", "top-10"): "share of the slots",
    ("eo", "top-10"): "share among the first ten",
    ("dp", "thresholded"): "share predicted as links",
    ("eo", "thresholded"): "share predicted as links",
    ("dp", "relative"): "AUC of a pair of groups against the others",
    ("eo", "relative"): "AUC of a pair of groups against the others",
    ("dp", "raw"): "mean predicted probability",
    ("eo", "raw"): "mean predicted probability",
}


def _unit(metric: str, form: Form) -> str:
    return "edges" if metric == "eo" else "slots" if form == "top-10" else "pairs"


def _other_forms(metric: str, attribute: str, form: Form, audits: Mapping[str, Sequence[RowRecord]]) -> Iterable[str]:
    """The same gaps otherwise, the forms that lead first."""
    for other, label in FORMS.items():
        rows = {name: gap_row(rows, attribute, metric, other) for name, rows in audits.items()}
        said = [
            f"{row['value']:.3f}{interval(row['ci_low'], row['ci_high'])} with {name}"
            for name, row in rows.items()
            if row and row["value"] is not None
        ]
        if other != form and said:
            yield f"{label}: {', '.join(said)}."


def _told(row: RowRecord) -> bool:
    """Some cell has a value."""
    return any(c["value"] is not None for c in row.get("cells") or ())


def _missing(
    runs: Sequence[StoredRun], found: Sequence[tuple[StoredRun, RowRecord]], names: Mapping[str, str]
) -> Iterable[str]:
    """Why there are no numbers of a run."""
    notes = {run.id: row for run, row in found}
    for run in runs:
        row = notes.get(run.id)
        if row is None:
            yield f"{names[run.id]} has no such numbers for this attribute; an audit of this version may ({AGAIN})."
        elif not _told(row) and row["value"] is None:
            yield f"{names[run.id]}: not measured, {row['note'] or 'for want of evidence'}."


def _unfit(verdicts: Mapping[str, Verdict]) -> Iterable[str]:
    for name, verdict in verdicts.items():
        if not verdict.counts:
            yield f"{name} is not usable: {verdict.why}. That its groups look alike is no success."


def _unmeasured(
    metric: str,
    attribute: str,
    form: Form,
    found: Sequence[tuple[StoredRun, RowRecord]],
    names: Mapping[str, str],
    remarks: tuple[str, ...],
    unfit: tuple[str, ...],
) -> GapView | None:
    """That no run has cells, and why."""
    if not found:
        return None
    sides = tuple(_side(run, names[run.id], row, metric, form) for run, row in found)
    title = f"{GAP_LABELS[metric]}, {_FORM_WORDS[form]}: not measured between {attribute} groups"
    if form == "relative" and any(s.verdict != "not enough evidence" for s in sides):
        title = _title(metric, attribute, form, sides, ())
    nothing = pd.DataFrame(columns=["a", "b"])
    what = _CELLS[metric, form]
    return GapView(
        metric,
        attribute,
        form,
        False,
        what,
        "none",
        (),
        nothing,
        sides,
        False,
        1.0,
        title,
        "",
        "",
        (),
        {},
        (),
        remarks,
        unfit,
    )


def _cells(rows: Sequence[RowRecord]) -> pd.DataFrame:
    """One row per cell with the values of each run side by side."""
    order: dict[tuple[str, str | None], dict[str, Any]] = {}
    for side, row in zip(_SIDES, rows, strict=False):
        for cell in row["cells"]:
            record = order.setdefault((cell["a"], cell["b"]), {"a": cell["a"], "b": cell["b"]})
            record[f"{side}_suppressed"] = suppressed = is_suppressed(cell)
            record |= (
                {f"{side}_n": 0, f"{side}_counts": False}
                if suppressed
                else {
                    f"{side}_value": cell["value"],
                    f"{side}_low": cell.get("ci_low"),
                    f"{side}_high": cell.get("ci_high"),
                    f"{side}_n": cell["n"],
                    f"{side}_counts": not cell["excluded"] and cell["value"] is not None,
                }
            )
    table = pd.DataFrame(list(order.values()))
    for side in _SIDES[: len(rows)]:
        for mark in ("counts", "suppressed"):
            table[f"{side}_{mark}"] = table[f"{side}_{mark}"].eq(True)
        table[f"{side}_n"] = table[f"{side}_n"].fillna(0).astype(int)
        for end in ("value", "low", "high"):
            column = f"{side}_{end}"
            table[column] = pd.to_numeric(table[column]) if column in table else np.nan
    if len(rows) == 2 and _links(rows[0]) == _links(rows[1]):
        both = table["before_counts"] & table["after_counts"]
        table["difference"] = (table["after_value"] - table["before_value"]).where(both)
    return table


def _groups(table: pd.DataFrame) -> tuple[tuple[str, ...], bool]:
    """The groups in order; of more than twelve the eleven with the most pairs, and that some are left out."""
    names = list(dict.fromkeys([*table["a"], *table["b"].dropna()]))
    if len(names) <= MOST_VALUES:
        return tuple(names), False
    size = {g: int(table.loc[(table["a"] == g) | (table["b"] == g), "before_n"].sum()) for g in names}
    top = set(sorted(names, key=lambda g: -size[g])[: MOST_VALUES - 1])
    return tuple(g for g in names if g in top), True


def _name(a: str, b: str | None) -> str:
    return a if b is None or pd.isna(b) else f"{a} / {b}"


def _side(run: StoredRun, label: str, row: RowRecord, metric: str, form: Form) -> GapSide:
    counted = [c for c in row.get("cells") or () if not c["excluded"] and c["value"] is not None]
    unit = _unit(metric, form)
    method = str(run.config["method"])
    if form == "relative" and row["value"] is not None and row["evidence"] == "ok":
        floor = "" if row["floor_random"] is None else f" By chance it would be about {row['floor_random']:.3f}."
        n = "" if row["n"] is None else f" (n = {row['n']:,} pairs)"
        text = f"{_capital(str(row['note'] or ''))}: {row['value']:.3f}{interval(row['ci_low'], row['ci_high'])}{n}.{floor}"
        return GapSide(run.id, label, method, _verdict(row), text, ())
    if row["value"] is None or row["evidence"] != "ok" or len(counted) < 2:
        why = f"fewer than two cells have enough {unit}" if _told(row) else str(row["note"])
        return GapSide(run.id, label, method, "not enough evidence", f"Not enough evidence: {why}.", ())
    top, bottom = (of(counted, key=lambda c: c["value"] or 0.0) for of in (max, min))
    ends = [
        f"{_name(c['a'], c['b'])} {c['value']:.3f}{interval(c.get('ci_low'), c.get('ci_high'))} (n = {c['n']:,} {unit})"
        for c in (top, bottom)
    ]
    text = f"Largest gap {row['value']:.3f}{interval(row['ci_low'], row['ci_high'])}: {ends[0]} against {ends[1]}."
    extremes: tuple[tuple[str, str | None], ...] = ((top["a"], top["b"]), (bottom["a"], bottom["b"]))
    if form == "top-10" and metric == "dp":
        # The gap is one cell's share of slots against its group's share of people, which the note names.
        note = str(row["note"])
        farthest = next((c for c in counted if note.startswith(_gives(c))), None)
        begin = len(_gives(farthest)) if farthest else 0  # a value's name may hold what ends the sentence
        note = note[:begin] + note[begin:].partition(";")[0]
        text = f"Largest gap {row['value']:.3f}{interval(row['ci_low'], row['ci_high'])}: {note}."
        extremes = ((farthest["a"], farthest["b"]),) if farthest else ()
    known_floors = (
        ("chance alone would give about", row["floor_random"]),
        ("the training degree alone gives", row.get("floor_degree")),
    )
    floors = [f"{words} {value:.3f}" for words, value in known_floors if value is not None]
    if floors:
        said = ", ".join(floors)
        text += f" {said[0].upper()}{said[1:]}."
    verdict = _verdict(row)
    if verdict == "not distinguishable from chance":
        text += " It is not distinguishable from chance" + (
            f" (p = {row['p_value']:.2g})." if row.get("p_value") is not None else "."
        )
    if verdict == "not enough evidence":
        text += (
            " It has no interval, so it cannot be held against chance; audit the run again if it was audited by "
            "an earlier version."
        )
    return GapSide(run.id, label, method, verdict, text, extremes)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _gives(cell: CellRecord) -> str:
    """How the note of a row of slots begins where this cell's difference is the largest."""
    whose, shown = ("items", cell["a"]) if cell["b"] is None else (f"{cell['a']} people", cell["b"])
    return f"lists of {whose} give {cell['value']:.1%} of their slots to {shown},"


def _verdict(row: RowRecord) -> str:
    """By the test against equal cells where the row has one, else by the interval."""
    if (p := row["p_value"]) is not None:
        return "more than chance" if p < 0.05 else "not distinguishable from chance"
    low = row["ci_low"]
    if low is None:
        return "not enough evidence"
    return "more than chance" if low > (row.get("floor_random") or 0.0) else "not distinguishable from chance"


def _title(metric: str, attribute: str, form: Form, sides: Sequence[GapSide], unfit: Collection[str]) -> str:
    label = f"{GAP_LABELS[metric]}, {_FORM_WORDS[form]}"
    sides = [s for s in sides if s.label not in unfit]
    if not sides:
        return f"{label}: no usable embedding to compare {attribute} groups by"
    verdicts = {s.verdict for s in sides}
    if verdicts == {"not enough evidence"}:
        return f"{label}: not enough evidence to compare {attribute} groups"
    if "more than chance" not in verdicts:
        tested = [s.label for s in sides if s.verdict == "not distinguishable from chance"]
        some = f" in {tested[0]}, not enough evidence in the other" if len(tested) < len(sides) else ""
        return f"{label}: no difference between {attribute} groups is shown{some}"
    where = [s.label for s in sides if s.verdict == "more than chance"]
    return f"{label}: {attribute} groups differ by more than chance in {' and in '.join(where)}"


def _links(row: RowRecord) -> str:
    """Which pairs a row is about."""
    if row["metric"] == "dp":
        return "all pairs"
    if row["variant"] == "calibrated":
        return "links left out of training and calibration"
    return "all links (training may have seen them)" if row["variant"] == "all-edges" else "held-out links"


def _change(measured: Sequence[tuple[StoredRun, RowRecord]], names: Mapping[str, str], unfit: Sequence[str]) -> str:
    if len(measured) < 2 or any(row["value"] is None for _, row in measured):
        return ""
    (a, first), (b, second) = measured
    if _links(first) != _links(second):
        return f"Not compared: {names[a.id]} is measured on {_links(first)}, {names[b.id]} on {_links(second)}."
    text = f"The gap goes from {first['value']:.3f} with {names[a.id]} to {second['value']:.3f} with {names[b.id]}"
    text += {
        None: "; without an interval of both no change can be told.",
        "overlap": "; the intervals overlap, so no change is shown.",
    }.get(order(first, second), "; the intervals do not overlap.")
    return text + (f" {'One' if len(unfit) == 1 else 'Each'} of them is not usable." if unfit else "")


def _caption(
    metric: str,
    attribute: str,
    form: Form,
    layout: str,
    table: pd.DataFrame,
    measured: Sequence[tuple[StoredRun, RowRecord]],
    scale: float,
    outlined: bool,
) -> str:
    rows = [row for _, row in measured]
    unit = {"pairs": "pairs of nodes", "edges": "edges", "slots": "slots in lists"}[_unit(metric, form)]
    links = " in A, of ".join(dict.fromkeys(map(_links, rows))) + (" in B" if len(set(map(_links, rows))) > 1 else "")
    who = f"users of each {attribute} group" if layout == "bars" else f"each pair of {attribute} groups"
    what = {
        ("dp", "calibrated"): f"mean calibrated probability of a link for {who}",
        ("eo", "calibrated"): f"mean calibrated probability of {links} for {who}",
        ("dp", "top-10"): f"share of the first ten in the lists of items that {attribute} groups of users have"
        if layout == "bars"
        else f"of the first ten people recommended to each {attribute} group (a row), the share who are of each group "
        "(a column); no gap is where each has its share of people",
        ("eo", "top-10"): f"share of held-out links that are among the first ten recommendations, for {who}",
        (
            "dp",
            "thresholded",
        ): f"share of a sample of pairs that is predicted as links, for {who}: those whose score is at "
        "least the middle of held-out links' and other pairs' scores",
        (
            "eo",
            "thresholded",
        ): f"share of {links} that is predicted as links, for {who}: those whose score is at least the "
        "middle of held-out links' and other pairs' scores",
        ("dp", "raw"): f"mean predicted probability of a link for {who}",
        ("eo", "raw"): f"mean predicted probability of {links} for {who}",
    }[metric, form]
    text = f"{what[0].upper()}{what[1:]}; under it n, the {unit}, {rows[0]['n']:,} in the cells that count."
    text += {
        "calibrated": " Scores are standardised and brought to probabilities by a slope and an intercept, fitted on "
        "links that training did not see and as many pairs without one: no scaling of the vectors changes them.",
        "top-10": " Only the order of scores counts, so no scaling of the vectors changes it.",
        "thresholded": " Only the order of scores counts, so no scaling of the vectors changes it.",
        "raw": " Raw: sigmoid of the score as the paper takes it, so that shorter vectors alone make the gap smaller.",
    }[form]
    if layout == "map":
        text += f" {'Both runs share one scale,' if len(rows) > 1 else 'Colours run from'} 0 to {scale:.3f}"
        ends = "the cell farthest from its share of people is" if form == "top-10" and metric == "dp" else ""
        text += f"; {ends or 'the highest and the lowest cell are'} outlined." if outlined else "."
    if any(row["ci_low"] is not None for row in rows):
        text += " Intervals: 95 %, over people, for one training seed; not adjusted for looking at several attributes."
    if any(not table[f"{side}_counts"].all() for side in _SIDES[: len(measured)]):
        text += " Hatched cells have too few to count and are left out of the gap."
    if any(table[f"{side}_suppressed"].any() for side in _SIDES[: len(measured)]):
        text += f" {SUPPRESSED_LEGEND}"
    return text


def _alt(metric: str, attribute: str, form: Form, table: pd.DataFrame, sides: Sequence[GapSide]) -> dict[str, str]:
    out = {}
    for name, side in zip(_SIDES, sides, strict=False):
        out[name] = f"{GAP_LABELS[metric]} of {attribute} groups, {_FORM_WORDS[form]}, {side.label}. {side.sentence}"
        if suppressed := int(table[f"{name}_suppressed"].sum()):
            out[name] += f" {many(suppressed, 'cell is', 'cells are')} suppressed."
    if "difference" in table and table["difference"].notna().any():
        top = max(records(table.dropna(subset="difference")), key=lambda r: abs(r["difference"]))
        out["difference"] = (
            f"Difference of the two runs for each cell, {sides[1].label} minus {sides[0].label}. Largest change: "
            f"{_name(top['a'], top['b'])} by {top['difference']:+.3f}."
        )
    return out


def _remarks(
    table: pd.DataFrame,
    measured: Sequence[tuple[StoredRun, RowRecord]],
    names: Mapping[str, str],
    groups: Sequence[str],
    ranked: bool,
    unit: str,
) -> list[str]:
    out = []
    for side, (run, row) in zip(_SIDES, measured, strict=False):
        thin = table[~table[f"{side}_counts"] & ~table[f"{side}_suppressed"]]
        if len(thin):
            shown = [
                f"{_name(r['a'], r['b'])} ({format(n, ',') if (n := r[f'{side}_n']) else 'none'})"
                for r in records(thin.head(8))
            ]
            more = f" and {len(thin) - 8} more" if len(thin) > 8 else ""
            out.append(f"{names[run.id]}: too few {unit} to count: {', '.join(shown)}{more}.")
        if "no calibration" in (row.get("note") or ""):
            out.append(
                f"{names[run.id]}: not trained to tell the chance of a link, so the sigmoid of a score is no "
                "calibrated probability."
            )
    if ranked:
        out.append(f"Drawn are the {len(groups)} groups with the most {unit}; the table ranks all cells.")
    return out


def ranked_cells(view: GapView) -> pd.DataFrame:
    """The cells as people read them, the highest first; too thin ones last."""
    table = view.table
    last = next(s for s in reversed(_SIDES) if f"{s}_value" in table)
    arrow = " → " if view.directed else " / "
    out = pd.DataFrame({"Groups": [_name(r["a"], r["b"]).replace(" / ", arrow) for r in records(table)]})
    for side, shown in zip(_SIDES, view.sides, strict=False):
        out[shown.label] = table[f"{side}_value"]
        out[f"{shown.label}, 95 %"] = [
            interval(*ends).strip() for ends in zip(table[f"{side}_low"], table[f"{side}_high"], strict=True)
        ]
        suppressed = table[f"{side}_suppressed"]
        told = [SUPPRESSED if s else f"{n:,}" for s, n in zip(suppressed, table[f"{side}_n"], strict=True)]
        out[f"{shown.label}, n"] = told if suppressed.any() else table[f"{side}_n"]
    if "difference" in table:
        out["Difference"] = table["difference"]
    marks = [table[f"{last}_counts"], table[f"{last}_suppressed"], table[f"{last}_n"] == 0]
    out["Counts"] = np.select(marks, ["yes", SUPPRESSED, "none"], "too few")
    order = table.assign(_first=~table[f"{last}_counts"]).sort_values(
        ["_first", f"{last}_value"], ascending=[True, False]
    )
    return out.loc[order.index].reset_index(drop=True)
