"""What-if answers as what its page shows: numbers before and after, each with the tier that made it.

An answer is a record of the what-if process (`whatif.desk`). Differences here are of two estimates with
intervals of their own; only a retrained run is compared in pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from uge_core.audit.attacker_order import ordered_attackers
from uge_core.audit.base import RowRecord
from uge_core.audit.metrics import METRICS
from uge_core.files import to_csv
from uge_core.graph.suppression import FEWEST, SUPPRESSED, SUPPRESSED_LEGEND, is_suppressed
from uge_core.views.rows import METRIC_LABELS, as_shown, attacker_labels, order, pair_as_shown, row_label
from uge_core.views.words import interval, many

_UNDER = f"under {FEWEST}"
TIER_NAMES: Mapping[str, str] = {"re-judge": "recomputed", "re-encode": "re-encoded", "re-train": "retrained"}
"""What the tiers of records are called on screen."""
TIER_WORDS: Mapping[str, str] = {
    "re-judge": "The embedding stays as it is; the measures are recomputed with the edited values, groups and links.",
    "re-encode": "One pass of the run's own parameters over the edited edges; nothing is trained.",
    "re-train": "A run of its own on the edited graph, compared with run A in pairs.",
}
_EXPOSED: Mapping[str, str] = {"unseen": "people hidden from training", "seen": "training may have seen their values"}
_WHO = {"worst": "strongest attacker"}
EMPTY = "Not enough evidence"
_NO_TWIN = (
    "No rows of people hidden from training: they are measured on the twin, whose parameters are not kept, so that it "
    "cannot be re-encoded. "
    "The run trained again has a twin of its own."
)


@dataclass(frozen=True)
class Measure:
    """One measure before and after.

    Attributes:
        metric: its label, with the direction that is better.
        of: attribute, attacker, whose values.
        before: value, lower and upper end; None where there is none.
        after: the same with the edits.
        floor: what chance gives after, or None.
        n: people, pairs or edges after.
        shows: a change, none that is shown, or not enough evidence.
    """

    metric: str
    of: str
    before: tuple[float | None, float | None, float | None]
    after: tuple[float | None, float | None, float | None]
    floor: float | None
    n: int
    shows: str


@dataclass(frozen=True, eq=False)
class JudgedView:
    """Before and after of one scenario.

    Attributes:
        tier: which one made the numbers.
        sentences: the finding by attribute, in plain words.
        table: one row a measure: before, after, difference, chance, n.
        groups: DP and EO by group pair, before and after; of suppressed cells neither value nor number.
        weights: the weights of all training edges before and after, a row a figure.
        cells: the cells whose edges were touched, a row each.
        moved: how far nodes went; empty unless re-encoded.
        remarks: what to know about single numbers.
        why_not: why the run was not re-encoded although edges changed, or "".
        seconds: how long the answer took.
        measures: what the table says, for a chart.
    """

    tier: str
    sentences: tuple[str, ...]
    table: pd.DataFrame
    groups: pd.DataFrame
    weights: pd.DataFrame
    cells: pd.DataFrame
    moved: pd.DataFrame
    remarks: tuple[str, ...]
    why_not: str
    seconds: float
    measures: tuple[Measure, ...] = ()

    def csv(self) -> str:
        """The table as CSV."""
        return to_csv(self.table)


def on_screen(table: pd.DataFrame) -> pd.DataFrame:
    """A table of these with the tiers' names on screen in place of those in records."""
    made = [c for c in table.columns if c == "Made by" or c.endswith(", made by")]
    return table.assign(**{c: table[c].map(lambda tier: TIER_NAMES.get(tier, tier)) for c in made})


def whatif_attackers() -> dict[str, str]:
    """Labels by name of those who can be tried on an edited graph: they look at vectors alone; the quickest first."""
    return attacker_labels([a.name for a in ordered_attackers() if not a.knows_edges])


def judged_view(answer: Mapping[str, Any]) -> JudgedView:
    """An answer to `judge` as tables and sentences."""
    attackers = {p["before"]["attacker"] for p in answer["rows"]} - {None, "worst"}
    pairs = sorted(
        # The strongest of one says the same twice.
        (p for p in answer["rows"] if len(attackers) > 1 or p["before"]["attacker"] != "worst"),
        key=lambda p: (
            answer["attributes"].index(p["before"]["attribute"])
            if p["before"]["attribute"] in answer["attributes"]
            else 99,
            p["thresholds"] is not None,
            METRICS[p["before"]["metric"]].position,
            p["before"]["variant"] != "calibrated",
            p["before"]["attacker"] != "worst",
            p["before"]["attacker"] or "",
            p["before"]["exposure"] != "unseen",
        ),
    )
    signed = any(_calibrated(p) for p in pairs)  # measured by version 3 of the audit or later
    shown = [p | {side: as_shown(p[side], signed=signed) for side in ("before", "after")} for p in pairs]
    rows, groups = [_row(p) for p in shown], _groups(pairs)
    weights, cells, remarks = _weights(answer["weights"])
    if len(groups) and (groups[["Before, n", "After, n"]] == SUPPRESSED).any(axis=None):
        remarks = (*remarks, SUPPRESSED_LEGEND)
    if answer.get("twin_left"):
        remarks = (_NO_TWIN, *remarks)
    return JudgedView(
        answer["tier"],
        tuple(_sentences(shown)),
        pd.DataFrame(rows),
        groups,
        weights,
        cells,
        _moved(answer["moved"]),
        (*_notes(pairs), *remarks),
        answer["why_not"] or "",
        answer.get("seconds", 0.0),
        tuple(map(_measure, shown)),
    )


_ARROWS = {"lower": "↓ ", "higher": "↑ "}


def _measure(pair: Mapping[str, Any]) -> Measure:
    """A row for the chart."""
    before, after = pair["before"], pair["after"]
    first, second = ((side["value"], side["ci_low"], side["ci_high"]) for side in (before, after))
    return Measure(
        f"{_ARROWS.get(after['direction'], '')}{_what(pair)}",
        _of(before),
        first,
        second,
        after["floor_random"],
        after["n"],
        _verdict(before, after),
    )


def _calibrated(pair: Mapping[str, Any]) -> bool:
    return bool(pair["before"]["variant"] == "calibrated")


def _what(pair: Mapping[str, Any]) -> str:
    row = pair["before"]
    label = row_label(row) if _calibrated(pair) else METRIC_LABELS[row["metric"]]
    if pair["thresholds"]:
        first, second = pair["thresholds"]
        return f"{label} of predicted links, threshold {first:g} before, {second:g} after"
    return label


def _of(row: Mapping[str, Any]) -> str:
    exposed = _EXPOSED.get(row["exposure"] or "", row["exposure"])
    parts = [row["attribute"], _WHO.get(row["attacker"] or "", row["attacker"]), exposed]
    return " · ".join(p for p in parts if p)


def _row(pair: Mapping[str, Any]) -> dict[str, Any]:
    before, after = pair["before"], pair["after"]
    first, second = before["value"], after["value"]
    return {
        "Measure": _what(pair),
        "Of": _of(before),
        "Made by": pair["tier"],
        "Before": before["value"],
        "Before, 95 %": interval(before["ci_low"], before["ci_high"]).strip(),
        "After": after["value"],
        "After, 95 %": interval(after["ci_low"], after["ci_high"]).strip(),
        "Difference": None if first is None or second is None else second - first,
        "Shows": _verdict(before, after),
        "Chance, after": after["floor_random"],
        "Majority, after": after["floor_majority"],
        "n before": before["n"],
        "n after": after["n"],
        "Better": after["direction"],
    }


def _verdict(before: RowRecord, after: RowRecord) -> str:
    """One of three: a change, none that is shown, or not enough evidence."""
    if None in (before["value"], after["value"]) or "insufficient" in (before["evidence"], after["evidence"]):
        return EMPTY
    if before["value"] == after["value"]:
        return "The same"
    return {"lower": "Lower", "higher": "Higher", "overlap": "No change is shown", None: EMPTY}[order(before, after)]


def _sentences(pairs: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    out = []
    said: set[tuple[Any, ...]] = set()
    for pair in pairs:
        before, after = pair["before"], pair["after"]
        about = (before["attribute"], before["metric"], bool(pair["thresholds"]))
        if before["metric"] not in ("auc", "dp", "eo") or about in said:
            continue
        said.add(about)
        what = {
            "auc": f"how often the {_WHO.get(before['attacker'] or '', str(before['attacker']) + ' attacker')} "
            "tells two people apart (AUC; a coin gets 0.500)",
            "dp": "largest gap in predicted links between groups (DP)",
            "eo": "largest gap on links that are there (EO)",
        }[before["metric"]]
        if _calibrated(pair):
            what += " of calibrated probabilities"
        if pair["thresholds"]:
            what += f" at a threshold of {pair['thresholds'][0]:g} before and {pair['thresholds'][1]:g} after"
        if before["metric"] == "auc" and before["exposure"]:
            what += f", {_EXPOSED.get(before['exposure'], before['exposure'])}"
        verdict = _verdict(before, after)
        if verdict == EMPTY:
            out.append(f"{before['attribute']}, {what}: not enough evidence.")
            continue
        ends = {
            "The same": "; it is the same",
            "No change is shown": "; the intervals overlap, so no change is shown",
            "Lower": "; it is lower, the intervals do not overlap",
            "Higher": "; it is higher, the intervals do not overlap",
        }[verdict]
        out.append(
            f"{before['attribute']}, {what}: {before['value']:.3f}{interval(before['ci_low'], before['ci_high'])} "
            "before, "
            f"{after['value']:.3f}{interval(after['ci_low'], after['ci_high'])} after (n = {after['n']:,}){ends}."
        )
    return out


def _groups(pairs: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Cells of DP and EO with their values before and after; a cell of one side alone has one value."""
    out = []
    for pair in pairs:
        if pair["before"]["metric"] not in ("dp", "eo"):
            continue
        sides = [{(c["a"], c["b"]): c for c in pair[s]["cells"]} for s in ("before", "after")]
        for key in dict.fromkeys([*sides[0], *sides[1]]):
            record: dict[str, Any] = {
                "Measure": _what(pair),
                "Attribute": pair["before"]["attribute"],
                "Groups": key[0] if key[1] is None else f"{key[0]} / {key[1]}",
                "Made by": pair["tier"],
            }
            values = []
            for name, side in zip(("Before", "After"), sides, strict=True):
                cell = side.get(key)
                hidden = cell is not None and is_suppressed(cell)
                value = None if cell is None or hidden else cell["value"]
                values.append(value)
                record[name] = value
                record[f"{name}, 95 %"] = (
                    "" if value is None or cell is None else interval(cell["ci_low"], cell["ci_high"]).strip()
                )
                record[f"{name}, n"] = "no such group" if cell is None else SUPPRESSED if hidden else f"{cell['n']:,}"
            before, after = values
            record["Difference"] = None if before is None or after is None else after - before
            cells = [c for c in (s.get(key) for s in sides) if c is not None]
            few = SUPPRESSED if any(map(is_suppressed, cells)) else "too few"
            record["Counts"] = few if any(c["excluded"] for c in cells) else "yes"
            out.append(record)
    return pd.DataFrame(out)


_FIGURES = {
    "weight_mean": "mean weight",
    "weight_min": "smallest weight",
    "weight_max": "largest weight",
    "effective_sample_size": "effective sample size",
    "num_edges": "training edges",
    "uncovered_mass": "mass in cells without an edge",
}


def _weights(weights: Mapping[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, ...]]:
    remarks = []
    if weights["note"]:
        remarks.append(f"Weights: {weights['note']}.")
    if weights["more"]:
        remarks.append(f"{weights['more']:,} more cells were touched; those with the most edges are listed.")
    if not weights["before"]:
        return pd.DataFrame(), pd.DataFrame(), tuple(remarks)
    overall = pd.DataFrame(
        [
            {
                "Of all training edges": label,
                "Made by": "re-judge",
                "Before": weights["before"][name],
                "After": weights["after"][name],
                "Difference": weights["after"][name] - weights["before"][name],
            }
            for name, label in _FIGURES.items()
        ]
    )
    cells = pd.DataFrame(
        [
            {
                "Cell before": c["before"],
                "Cell after": c["after"],
                "Edges": _UNDER + " people" if c["edges"] is None else f"{c['edges']:,}",
                "Made by": "re-judge",
                "R before": c["ratio_before"],
                "R after": c["ratio_after"],
                "Weight before": c["weight_before"],
                "Weight after": c["weight_after"],
            }
            for c in weights["cells"]
        ]
    )
    return overall, cells, tuple(remarks)


def _moved(moves: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "Nodes": m["who"],
                "How many": m["nodes"],
                "Made by": "re-encode",
                "Median move": m["median"],
                "Largest move": m["largest"],
                "Did not move": m["still"],
            }
            for m in moves
        ]
    )


def _notes(pairs: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """What was said of the numbers after the edits, once each."""
    out: dict[str, None] = {}
    for pair in pairs:
        note = pair["after"]["note"]
        if note and pair["before"]["metric"] in ("auc", "dp", "eo"):
            out[f"{_what(pair)}, {_of(pair['after'])}: {note}."] = None
    return list(out)


@dataclass(frozen=True, eq=False)
class EgoView:
    """An ego network, one record for picture and table.

    Attributes:
        nodes: `id`, `x`, `y`, `degree`, `centre`, `group` (its value of the attribute), `values` in words.
        edges: `a`, `b` (positions), `weight`, `part`, `why` in words; a dropped one has the part "dropped".
        table: one row an edge.
        groups: the values drawn, in order.
        attribute: what colours the nodes, or None.
        title: the finding.
        caption: what is drawn.
        alt: the drawing in words.
    """

    nodes: tuple[dict[str, Any], ...]
    edges: tuple[dict[str, Any], ...]
    table: pd.DataFrame
    groups: tuple[str, ...]
    attribute: str | None
    title: str
    caption: str
    alt: str


def ego_view(answer: Mapping[str, Any], attribute: str | None) -> EgoView:
    """An answer to `ego` as picture and table, coloured by an attribute."""
    nodes = [
        {
            **{k: n[k] for k in ("id", "x", "y", "degree", "centre")},
            "group": n["values"].get(attribute or "", "no value"),
            "values": ", ".join(f"{k} {v}" for k, v in n["values"].items()),
        }
        for n in answer["nodes"]
    ]
    edges = [{**{k: e[k] for k in ("a", "b", "weight", "part")}, "why": _why(e)} for e in answer["edges"]]
    rows = []
    for edge, raw in zip(edges, answer["edges"], strict=True):
        reason = raw["reasons"][0] if len(raw["reasons"]) == 1 else {}
        rows.append(
            {
                "From": nodes[edge["a"]]["id"],
                "To": nodes[edge["b"]]["id"],
                "Weight": edge["weight"],
                "R": _told(reason, "ratio", ".3f"),
                "R~": _told(reason, "bias_free_ratio", ".3f"),
                "Cell": "; ".join(f"{r['a']} with {r['b']}" for r in raw["reasons"]) or "a value is missing",
                "Edges observed": _told(reason, "observed", ",.0f"),
                "Edges expected": _told(reason, "expected", ",.1f"),
                "Edge": _PARTS.get(edge["part"], edge["part"]),
                "Why": edge["why"],
            }
        )
    centres = [n["id"] for n in nodes if n["centre"]]
    groups = tuple(dict.fromkeys(sorted(n["group"] for n in nodes)))
    treated = ", ".join(answer["sensitive"])
    who = centres[0] if len(centres) == 1 else f"{len(centres)} people"
    there = [e for e in edges if e["part"] != "dropped"]
    lightest, heaviest = (pick(there, key=lambda e: e["weight"]) for pick in (min, max)) if there else (None, None)
    title = f"{who}: no edge"
    if lightest and heaviest:
        title = f"Edges of {who} weigh {lightest['weight']:.2f} to {heaviest['weight']:.2f}"
        if lightest["weight"] == heaviest["weight"]:
            title = f"All edges of {who} weigh {lightest['weight']:.2f}"
    caption = (
        f"{many(len(nodes), 'person', 'people')} and {many(len(there), 'edge')}; larger markers are those chosen above. "
        f"Width: the weight, R~/R over its mean,{f' of {treated}' if treated else ''}, which is 1 for the average "
        "edge; edges held out of training are dotted. Where somebody stands means nothing."
    )
    if len(there) < len(edges):
        caption += f" {many(len(edges) - len(there), 'dropped edge')} drawn dashed."
    if answer["left_out"]:
        caption += f" {answer['left_out']:,} more neighbours are not drawn."
    if answer["edges_left_out"]:
        caption += f" {answer['edges_left_out']:,} more edges between the neighbours are not drawn."
    if answer["note"]:
        caption += f" {answer['note'][0].upper()}{answer['note'][1:]}."
    alt = f"{title}. {len(nodes)} people, {len(there)} edges; the table beside it lists each edge with its reason."
    return EgoView(tuple(nodes), tuple(edges), pd.DataFrame(rows), groups, attribute, title, caption, alt)


def _told(reason: Mapping[str, Any], name: str, form: str) -> str:
    """A count or ratio of a cell, or why it is not told."""
    if not reason:
        return "see why"
    if reason["observed"] is None:
        return "suppressed"
    return "none" if reason[name] is None else format(reason[name], form)


_PARTS = {"training": "in training", "held out": "held out of training"}


def _why(edge: Mapping[str, Any]) -> str:
    if edge["part"] == "dropped":
        return "dropped by your edits"
    if not edge["reasons"]:
        return "a value is missing, so the edge keeps weight 1"
    parts = []
    for r in edge["reasons"]:
        cell = f"{r['a']} with {r['b']}"
        if r["observed"] is None:
            parts.append(f"{cell}: counts are suppressed, as a group has under {FEWEST} people")
            continue
        parts.append(
            f"{cell}: {r['observed']:,.0f} edges observed, {r['expected']:,.1f} expected without the sensitive values, "
            f"R {_ratio(r['ratio'])}, R~ {_ratio(r['bias_free_ratio'])}"
        )
    own = "" if edge["own"] is None else f"; its own weight is {edge['own']:g}"
    return "; ".join(parts) + own


def _ratio(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


@dataclass(frozen=True)
class SearchView:
    """Whom a text may mean.

    Attributes:
        people: label by id: the id with its values.
        named: the ids of a list that there are.
        note: how many more fit, or that nobody does.
        error: ids of a list that nobody has, in words, or empty.
    """

    people: Mapping[str, str]
    named: tuple[str, ...]
    note: str
    error: str


_NAMED = 3  # ids and values in words


def search_view(answer: Mapping[str, Any], text: str) -> SearchView:
    """An answer to `find` as suggestions."""
    people = {
        name: ": ".join(filter(None, (name, ", ".join([*values.values()][:_NAMED]))))
        for name, values in zip(answer["nodes"], answer["values"], strict=True)
    }
    more = answer["total"] - len(people)
    note, error = "", ""
    if answer["missing"]:
        error = _nobody(answer["missing"])
    elif not people and not answer["named"]:
        error = f"There is nobody called {text.strip()!r}, nor is there such a value; ids are those of the node table."
    elif more and not answer["named"]:
        note = f"{more:,} more people fit; type more to narrow them down."
    return SearchView(people, tuple(answer["named"]), note, error)


def _nobody(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"There is nobody called {', '.join(map(repr, names[:_NAMED]))}{rest}; ids are those of the node table."


@dataclass(frozen=True, eq=False)
class PeopleView:
    """Some people.

    Attributes:
        ids: those there are.
        table: a row each: id, values with what edits made of them, links.
        error: the ids that nobody has, in words, or empty.
    """

    ids: tuple[str, ...]
    table: pd.DataFrame
    error: str


def people_view(answer: Mapping[str, Any]) -> PeopleView:
    """An answer to `people` as a table."""
    rows = []
    for person in answer["people"]:
        row = {"id": person["id"]}
        for name in dict.fromkeys([*person["before"], *person["after"]]):
            first, second = (person[side].get(name, "no group") for side in ("before", "after"))
            row[name] = first if first == second else f"{second} (was {first})"
        before, after = person["links"]
        row["Links"] = f"{after:,}" if before == after else f"{after:,} (was {before:,})"
        rows.append(row)
    error = _nobody(answer["missing"]) if answer["missing"] else ""
    return PeopleView(tuple(p["id"] for p in answer["people"]), pd.DataFrame(rows).fillna(""), error)


@dataclass(frozen=True, eq=False)
class LinksView:
    """The ten first predicted links of somebody before and after.

    Attributes:
        tier: which tier made those after.
        table: a row a place: who stands there before and after, and what became of them.
        sentence: who entered and who left.
        note: why little can change, or empty.
    """

    tier: str
    table: pd.DataFrame
    sentence: str
    note: str


def links_view(answer: Mapping[str, Any], node: str, attribute: str | None) -> LinksView:
    """An answer to `links` side by side.

    Args:
        answer: the answer.
        node: whose lists.
        attribute: whose values stand beside the ids.
    """
    before, after = answer["before"], answer["after"]
    first, second = ([one["id"] for one in side] for side in (before, after))
    entered, left = [i for i in second if i not in first], [i for i in first if i not in second]

    def words(side: Sequence[Mapping[str, Any]], place: int, others: Sequence[str], mark: str) -> str:
        if place >= len(side):
            return ""
        one = side[place]
        value = one["values"].get(attribute or "")
        return f"{one['id']}{f' ({value})' if value else ''}{'' if one['id'] in others else f' - {mark}'}"

    table = pd.DataFrame(
        {
            "Place": [place + 1 for place in range(max(len(first), len(second)))],
            "Before": [words(before, place, second, "left") for place in range(max(len(first), len(second)))],
            "After": [words(after, place, first, "entered") for place in range(max(len(first), len(second)))],
        }
    )
    if not entered and not left:
        moved = first != second
        sentence = f"The same {len(first)} people{', in another order' if moved else ' in the same order'}."
    else:
        sentence = f"Entered: {', '.join(entered) or 'nobody'}. Left: {', '.join(left) or 'nobody'}."
    note = ""
    if answer["tier"] == "re-judge":
        note = (
            "The embedding stays as it is, so that only the end of a dropped link can enter and that of an added one "
            "leave. Retraining moves the vectors."
        )
    return LinksView(answer["tier"], table, f"{node}: {sentence}", note)


@dataclass(frozen=True, eq=False)
class RetrainedView:
    """A retrained run against the one it was made from.

    Attributes:
        table: one row a measure: on the graph as it is, on the scenario's, their difference with its paired interval.
        sentence: the finding.
        notes: what could not be paired.
    """

    table: pd.DataFrame
    sentence: str
    notes: tuple[str, ...]

    def csv(self) -> str:
        """The table as CSV."""
        return to_csv(self.table)


def retrained_view(answer: Mapping[str, Any]) -> RetrainedView:
    """An answer to `compare`: A is the graph as it is, B the scenario's; differences are shown as B - A."""
    rows = []
    signed = answer.get("audit_version", 0) > 2
    for r in (pair_as_shown(row, signed=signed) for row in answer["rows"]):
        rows.append(
            {
                "Measure": row_label(r),
                "Of": _of(r),
                "Made by": "re-train",
                "Before": r["a"],
                "After": r["b"],
                "Difference": None if r["value"] is None else -r["value"],
                "Difference, 95 %": interval(*(None if e is None else -e for e in (r["ci_high"], r["ci_low"]))).strip(),
                "p (Holm)": r["p_holm"],
                "n": r["n"],
                "Shows": _paired_verdict(r),
                "Better": r["direction"],
            }
        )
    changed = [r for r in rows if r["Shows"] in ("Lower", "Higher")]
    sentence = (
        f"{len(changed)} of {len(rows)} measures change by more than chance (p below 0.05, adjusted for all of them)."
    )
    if rows and all(r["Shows"] == EMPTY for r in rows):
        sentence = "Not enough evidence to compare the two."
    return RetrainedView(pd.DataFrame(rows), sentence, tuple(answer.get("notes", ())))


def _paired_verdict(row: Mapping[str, Any]) -> str:
    if row["evidence"] != "ok" or row["value"] is None or (row["p_holm"] is None and row["value"]):
        return EMPTY
    if row["p_holm"] is None or row["p_holm"] >= 0.05:
        return "No change is shown"
    return "Lower" if row["value"] > 0 else "Higher"


def compared_scenarios(first: Mapping[str, Any], second: Mapping[str, Any], names: tuple[str, str]) -> pd.DataFrame:
    """Two answers to `judge` about one run side by side: before, and after each."""
    tables = [judged_view(a).table for a in (first, second)]
    if any(t.empty for t in tables):
        return pd.DataFrame()
    left, right = (t.set_index(["Measure", "Of"]) for t in tables)
    both = left.index[left.index.isin(right.index)]
    labels = names if names[0] != names[1] else (f"{names[0]} (1)", f"{names[1]} (2)")
    out = pd.DataFrame({"Before": left.loc[both, "Before"]})
    for label, table in zip(labels, (left, right), strict=True):
        out[label] = table.loc[both, "After"]
        out[f"{label}, 95 %"] = table.loc[both, "After, 95 %"]
        out[f"{label}, made by"] = table.loc[both, "Made by"]
    out["Difference of the two"] = out[labels[1]] - out[labels[0]]
    return out.reset_index()
