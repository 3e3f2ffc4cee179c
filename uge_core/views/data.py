"""A graph before anything is trained on it: messages, sizes of groups, edges between them, weights of edges.

A group of under twelve people, and a pair of groups with such a group or with under twelve edges, is suppressed, and
some people or edges of another with it, as totals would give it away (`uge_core.runs.disclosure`). Edges between groups stand beside what
chance alone would give (`uge_core.datasets.mixing`); weights are R~/R, over its mean, of all edges, where training
takes those of its own edges alone (`uge_core.debias.bias_free`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.arrays import IntArray
from uge_core.datasets import lasting, load
from uge_core.datasets.layouts import sample
from uge_core.datasets.mixing import edges_between, mixing
from uge_core.debias.bias_free import THIN, MethodInputs, weight_cells
from uge_core.errors import ConfigError, StoreError, TooManyGroups
from uge_core.files import to_csv
from uge_core.graph.graph import Attribute, AttributedGraph
from uge_core.graph.rows import different_rows
from uge_core.graph.suppression import FEWEST, SUPPRESSED
from uge_core.graph.values import OUT, resolve_values
from uge_core.runs.disclosure import Release, Told, note_told, release, told
from uge_core.runs.store import RunStore
from uge_core.runs.uploads import list_uploads
from uge_core.views.words import many, records

MOST_GROUPS = 12  # drawn
_OCTAVES = 4  # weights from 1/16 to 16 are drawn
_STEPS = 4  # bars to a doubling
_DRAWN = 0.9  # of all edges, in the chart of weights
_SAME = 0.0005  # from 1, as three digits are shown
_ALL = 0.95  # of the edges, nearly all
_MOST_THIN = 0.5  # of the edges, from which on weights as a whole are doubtful
_UNDER = f"under {FEWEST}"
_LARGER = (
    "What to do: under Read the columns otherwise, give numbers bins or take columns out of the attributes, so that groups are larger; "
    "or take One-attribute ratios, here and in training."
)
_COUNTED = {"small-groups": ": ", "probable-missing-code": ", "}  # messages whose examples end in a number of people
_NO_VALUE = {"no value": "has no value in any row", "one value": "has one value in all rows"}


@dataclass(frozen=True)
class DataNote:
    """One message.

    Attributes:
        level: "blocking", "warning" or "note".
        text: what was found.
        count: how many rows, nodes or cells it is about, 0 where that means nothing.
        examples: the first few.
        remedy: what to do, or "".
    """

    level: Literal["blocking", "warning", "note"]
    text: str
    count: int = 0
    examples: tuple[str, ...] = ()
    remedy: str = ""


@dataclass(frozen=True, eq=False)
class DataView:
    """A graph as its page shows it.

    Attributes:
        graph: the graph.
        spec: how another process loads it again.
        name: what it is called.
        facts: label and value of its counts.
        kind: what its edges are, and the layout it was read by.
        notes: the messages, the gravest first.
        attributes: number of values by name, of all attributes.
        sensitive: those of people that can be debiased, the declared ones first.
        overview: one row per attribute.
        columns: one row per column of the files, with its role.
    """

    graph: AttributedGraph
    spec: str
    name: str
    facts: tuple[tuple[str, str], ...]
    kind: str
    notes: tuple[DataNote, ...]
    attributes: Mapping[str, int]
    sensitive: tuple[str, ...]
    overview: pd.DataFrame
    columns: pd.DataFrame


@dataclass(frozen=True, eq=False)
class GroupsView:
    """The sizes of one attribute's groups.

    Attributes:
        attribute: its name.
        table: group, n and share (none where suppressed), kind ("group", "missing" or "others"), and why it is
            suppressed ("" where it is not).
        drawn: the rows that are drawn.
        title: the finding.
        caption: what is drawn.
        alt: the drawing in words.
    """

    attribute: str
    table: pd.DataFrame
    drawn: pd.DataFrame
    title: str
    caption: str
    alt: str


@dataclass(frozen=True, eq=False)
class MixingView:
    """Edges between groups.

    Attributes:
        attribute: whose groups.
        rows: the groups that are drawn, one a row.
        columns: the same, or the other side as a whole.
        table: a, b, edges, expected and ratio (none where suppressed), counts ("yes", "suppressed" or "too few
            expected").
        title: the finding.
        caption: what is drawn.
        alt: the drawing in words.
    """

    attribute: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    table: pd.DataFrame
    title: str
    caption: str
    alt: str

    def csv(self) -> str:
        """The table as CSV."""
        edges = self.table["edges"].astype(object)
        return to_csv(self.table.assign(edges=edges.where(edges.notna(), SUPPRESSED)))


@dataclass(frozen=True, eq=False)
class WeightsView:
    """What each edge would count in training.

    Attributes:
        sensitive: the attributes whose influence the weights take out.
        table: one row per bar: low, high (the outer bars hold all beyond), and edges of each kind.
        kinds: the kinds of edges, the table's last columns.
        facts: label, value and what it means.
        title: the finding.
        caption: what is drawn.
        alt: the drawing in words.
        remarks: what to know besides.
        fault: why all weights are 1 and what to do, or "" where they differ.
        doubt: why most weights are chance and what to do, or "" where they are not.
    """

    sensitive: tuple[str, ...]
    table: pd.DataFrame
    kinds: tuple[str, ...]
    facts: tuple[tuple[str, str, str], ...]
    title: str
    caption: str
    alt: str
    remarks: tuple[str, ...]
    fault: str = ""
    doubt: str = ""

    def csv(self) -> str:
        """The table as CSV."""
        return to_csv(self.table)


def data_view(spec: str, store: RunStore) -> DataView:
    """Reads a graph and what is worth knowing about it.

    Args:
        spec: as for `uge_core.load`; nothing is fetched.
        store: below which datasets of PyG's are kept.

    Raises:
        GraphError: there is no such graph, or it cannot be used.
        NotReadYet: it is a file of torch that no worker has read yet.
    """
    graph = load(spec, store=store.root, may_fetch=False, tensors=store.tensors, keep=True)
    marked = graph.defaults.sensitive
    kind = "Weighted, " * graph.weighted + ("directed" if graph.directed else "undirected")
    kind, layout = kind[0].upper() + kind[1:], f"read by the layout {graph.layout}"
    able = [a.name for a in graph.audited if int((a.sizes > 0).sum()) > 1]
    return DataView(
        graph,
        lasting(spec),
        graph.name,
        tuple(_facts(graph)),
        f"{kind} edges, {layout}",
        data_notes(graph),
        {a.name: a.num_values for a in graph.attributes},
        tuple(sorted(able, key=lambda a: marked.index(a) if a in marked else len(marked))),
        pd.DataFrame([overview_row(graph, a, store) for a in graph.attributes]).dropna(axis=1, how="all"),
        pd.DataFrame(
            [{"File": c.file, "Column": c.name, "Role": c.role, "": c.detail} for c in graph.columns],
            columns=["File", "Column", "Role", ""],
        ),
    )


def _facts(graph: AttributedGraph) -> list[tuple[str, str]]:
    sides = (
        [("Nodes", f"{graph.num_nodes:,}")]
        if graph.num_users is None
        else [("People", f"{graph.num_users:,}"), ("Items", f"{graph.num_nodes - graph.num_users:,}")]
    )
    return [
        *sides,
        ("Edges", f"{graph.num_edges:,}"),
        ("Mean degree", f"{2 * graph.num_edges / graph.num_nodes:.1f}"),
        ("Attributes", f"{len(graph.attributes):,}"),
        ("Features", f"{len(graph.feature_names):,}"),
    ]


def data_notes(graph: AttributedGraph) -> tuple[DataNote, ...]:
    """The messages of a graph, the gravest first, sizes of small groups suppressed."""
    notes = []
    if not any(int((a.sizes > 0).sum()) > 1 for a in graph.audited):
        why = [f"{c.name} {_NO_VALUE[c.detail]}" for c in graph.columns if c.detail in _NO_VALUE]
        reasons = f": {'; '.join(why[:3])}" if why else ""
        notes.append(
            DataNote(
                "warning",
                f"{graph.name}: no column of people can be audited{reasons}",
                len(why),
                (),
                "give people a column with at least two values, or choose other columns below",
            )
        )
    for m in graph.messages:
        notes.append(DataNote(m.level, m.text, m.count, examples(m.code, m.examples), m.remedy))
    order = ("blocking", "warning", "note")
    return tuple(sorted(notes, key=lambda n: order.index(n.level)))


def examples(code: str, of: Sequence[str]) -> tuple[str, ...]:
    """A message's examples, without the numbers of people that those of some kinds end in."""
    if code == "similar-values":
        return tuple(re.sub(r": [\d,]+(?=, '|, \"|$)", "", e) for e in of)
    return tuple(e.rpartition(_COUNTED[code])[0] if code in _COUNTED else e for e in of)


def told_inspection(graph: AttributedGraph, inspection: Mapping[str, Any], store: RunStore) -> dict[str, Any]:
    """What `datasets.inspect` says, with the numbers that the disclosure rule tells; null where it tells none."""
    attributes = []
    policies = {a.name: "exclude" for a in graph.audited}
    if (store.root / "store.sqlite").exists():
        with suppress(StoreError):  # one that is only read keeps no ledger
            note_told(store, graph, policies, release(graph, policies, store))
    for record in inspection["attributes"]:
        a = graph.attribute(record["name"])
        shown = told(graph, a, store)
        few = shown.small | (shown.size == 0) & shown.hides
        sizes = {label: None if few[i] else int(shown.size[i]) for i, label in enumerate(a.labels)}
        whole = not (shown.small.any() or shown.few)
        cells = mixing(shown.edges, graph.num_users, shown.attribute)
        i, j = (x.tolist() for x in cells.cells)
        hidden = [
            few[x] or (cells.rows is cells.columns and few[y]) or (x, y) in shown.few for x, y in zip(i, j, strict=True)
        ]
        blank = {"observed": None, "expected": None, "ratio": None}
        mixed = [c | blank if h else c for c, h in zip(cells.records(), hidden, strict=True)]
        shares = {} if whole else {"same_group_share": None, "chance": None}
        unknown = None if few[-1] else int(shown.size[-1])
        attributes.append({**record, **shares, "sizes": sizes, "unknown": unknown, "mixing": mixed})
    messages = [{**m, "examples": list(examples(m["code"], m["examples"]))} for m in inspection["messages"]]
    return {**inspection, "attributes": attributes, "messages": messages}


def overview_row(graph: AttributedGraph, a: Attribute, store: RunStore | None = None) -> dict[str, Any]:
    """One attribute in the table of all; shares from which a suppressed number would follow are None."""
    shown, missing = told(graph, a, store), int(a.unknown.sum())
    out: dict[str, Any] = {
        "Attribute": a.name,
        "Of": {"nodes": "people"}.get(a.side, a.side),
        "Groups": int((a.sizes > 0).sum()),
        "Groups suppressed": int(((a.sizes > 0) & (shown.size[:-1] == 0)).sum()),
        "Missing": SUPPRESSED if shown.small[-1] or shown.hides[-1] else f"{missing:,}",
        "Missing, share": None if shown.small[-1] or shown.hides[-1] or not _members(a) else missing / _members(a),
        "Edges within a group": None,
        "By chance": None,
        "n edges": None,
    }
    if not graph.bipartite and shown.attribute.known.any():
        between = edges_between(shown.edges, shown.attribute)
        if both := int(between.sum()):
            sizes = shown.attribute.sizes
            out |= {
                "Edges within a group": SUPPRESSED if shown.few else f"{int(np.trace(between)) / both:.1%}",
                "n edges": both,
                "By chance": f"{np.square(sizes / sizes.sum()).sum():.1%}",
            }
    return out


def _members(a: Attribute) -> int:
    """How many nodes should have a value."""
    return int(a.sizes.sum() + a.unknown.sum())


def groups_view(graph: AttributedGraph, attribute: str, store: RunStore | None = None) -> GroupsView:
    """The sizes of an attribute's groups, people without a value among them.

    Raises:
        GraphError: there is no such attribute.
    """
    a = graph.attribute(attribute)
    total, people = _members(a), {"items": "items"}.get(a.side, "people")
    shown = told(graph, a, store)
    order = np.arange(a.num_values) if a.ordered else np.argsort(-shown.size[:-1], kind="stable")
    rows = [_group(a.labels[i], shown, i, total, "group") for i in order if a.sizes[i]]
    missing = int(a.unknown.sum())
    if missing:
        label = "no value" + (f" ({a.unknown_label})" if a.unknown_label != "unknown" else "")
        rows.append(_group(label, shown, -1, total, "missing"))
    table = pd.DataFrame(rows)
    counted = table[table["kind"] == "group"]
    drawn = table
    if len(counted) > MOST_GROUPS:
        top = counted.sort_values("n", ascending=False, kind="stable").index[: MOST_GROUPS - 1]
        rest = counted.drop(top)
        n = float(rest["n"].sum())
        why = "" if n else SUPPRESSED
        others = {
            "group": f"{len(rest)} others",
            "n": n or np.nan,
            "share": n / total,
            "kind": "others",
            "suppressed": why,
        }
        drawn = pd.concat(
            [table.loc[sorted(top)], pd.DataFrame([others]), table[table["kind"] == "missing"]], ignore_index=True
        )
    largest = max(records(counted), key=lambda r: r["n"] if r["n"] == r["n"] else 0.0)
    title = f"{a.name}: {len(counted)} group{'s' * (len(counted) != 1)}"
    if largest["n"] == largest["n"]:
        title += f", the largest {largest['group']} with {largest['share']:.1%}"
    title += f"; {_missing_words(missing, total, shown)}"
    caption = f"{total:,} {people}; shares are of all of them."
    if len(drawn) < len(table):
        caption += f" Drawn are the {MOST_GROUPS - 1} largest groups; the table has all."
    if few := int((table["suppressed"] != "").sum()):
        size = "its size is" if few == 1 else "their sizes are"
        caption += f" {few} suppressed: {size} {_UNDER}, which could point at people, or would give such a size away."
    for i in np.flatnonzero(shown.hides[:-1] & (shown.size[:-1] > 0)):
        caption += f" {a.labels[i]} has more than are shown: some are left out to hide how many are {_UNDER}."
    alt = f"Sizes of {a.name} groups. " + ", ".join(
        f"{r['group']} {r['suppressed'] or format(int(r['n']), ',')}" for r in records(drawn)
    )
    return GroupsView(a.name, table, drawn, title, caption, alt)


def groups_csv(views: Sequence[GroupsView]) -> str:
    """The sizes of all groups as CSV."""
    table = pd.concat([view.table.assign(attribute=view.attribute) for view in views])
    why = table["suppressed"]
    table["n"] = table["n"].astype(object).mask(why != "", why)
    return to_csv(table[["attribute", "group", "n", "share", "kind"]])


def _missing_words(missing: int, total: int, shown: Told) -> str:
    if shown.small[-1] or shown.hides[-1]:
        return "how many have no value is suppressed"
    return f"{missing:,} without a value ({missing / total:.1%})" if missing else "no value is missing"


def _group(label: str, shown: Told, i: int, total: int, kind: str) -> dict[str, Any]:
    """A row of `GroupsView.table`."""
    n = int(shown.size[i])
    if shown.small[i] or not n:
        return {"group": label, "n": np.nan, "share": np.nan, "kind": kind, "suppressed": SUPPRESSED}
    return {"group": label, "n": float(n), "share": n / total, "kind": kind, "suppressed": ""}


def mixing_view(graph: AttributedGraph, attribute: str, store: RunStore | None = None) -> MixingView:
    """The edges between an attribute's groups beside what chance would give.

    Raises:
        GraphError: there is no such attribute.
    """
    a = graph.attribute(attribute)
    shown = told(graph, a, store)
    mixed = mixing(shown.edges, graph.num_users, shown.attribute)
    i, j = mixed.cells
    of_people = (a.sizes[i] > 0) & ((a.sizes[j] > 0) | graph.bipartite)
    there = np.flatnonzero(of_people)
    small = shown.size[:-1] == 0
    suppressed = small[i] if graph.bipartite else small[i] | small[j]
    suppressed = (suppressed | np.array([pair in shown.few for pair in zip(i.tolist(), j.tolist(), strict=True)]))[
        there
    ]
    table = pd.DataFrame(list(mixed.records())).rename(columns={"observed": "edges"}).iloc[there].reset_index(drop=True)
    counted, thin = int(table["edges"].sum()), table["expected"] < THIN
    few = "a group of under twelve people, or under twelve edges, and some people or edges of others that hide how few"
    table["counts"] = np.select([suppressed, thin], [SUPPRESSED, "too few expected"], "yes")
    numbers = ["edges", "expected", "ratio"]
    table[numbers] = table[numbers].astype(float)
    table.loc[suppressed, numbers] = np.nan
    big = np.argsort(-a.sizes, kind="stable")[: MOST_GROUPS if a.num_values <= MOST_GROUPS else MOST_GROUPS - 1]
    rows = tuple(a.labels[i] for i in sorted(big) if a.sizes[i])
    columns = rows if graph.num_users is None else mixed.columns
    sure = [r for r in records(table) if r["counts"] == "yes"]
    title = f"{a.name}: too few edges to compare pairs of groups"
    words = "No pair of groups has enough edges."
    if sure:
        top, bottom = max(sure, key=lambda r: r["ratio"]), min(sure, key=lambda r: r["ratio"])
        title = f"{a.name}: {_pair(top)} has {top['ratio']:.2f} times the edges that chance would give"
        words = f"Highest: {_cell(top)}. Lowest: {_cell(bottom)}."
        if bottom is not top:
            title += f"; {_pair(bottom)} has {bottom['ratio']:.2f} times"
    caption = (
        f"Each cell: edges observed over edges that chance would give without any influence of {a.name}, and n, the "
        "edges observed. "
        f"1 is chance; above it the groups seek each other, below it they keep apart. Of {graph.num_edges:,} edges, "
        f"{counted:,} are counted: they join nodes whose value is known."
    )
    if len(rows) < int((a.sizes > 0).sum()):
        caption += f" Drawn are the {len(rows)} largest groups; the table has all pairs."
    if suppressed.any():
        caption += f" Suppressed: {many(int(suppressed.sum()), 'pair')}: {few}."
        words += f" {many(int(suppressed.sum()), 'pair is', 'pairs are')} suppressed."
    if (thin & ~suppressed).any():
        caption += f" Hatched: fewer than {THIN:g} expected, too few to tell influence from chance."
    return MixingView(
        a.name,
        rows,
        columns,
        table[["a", "b", "edges", "expected", "ratio", "counts"]],
        title,
        caption,
        f"Edges between {a.name} groups against chance. {words}",
    )


def _pair(r: Mapping[str, Any]) -> str:
    return f"{r['a']} with {r['b']}"


def _cell(r: Mapping[str, Any]) -> str:
    return f"{_pair(r)}, {r['ratio']:.2f} times ({int(r['edges']):,} edges, {r['expected']:,.0f} by chance)"


def weights_view(graph: AttributedGraph, sensitive: Sequence[str], *, independence: bool = False) -> WeightsView:
    """R~/R over its mean of every edge, for the chosen attributes with the others as what may shape links.

    Args:
        graph: the graph.
        sensitive: attributes of people.
        independence: the product of one-attribute ratios, as the option of that name in training.

    Raises:
        ConfigError: no attribute is chosen, or no weight can be estimated.
        GraphError: there is no such attribute.
    """
    chosen = [graph.attribute(name) for name in sensitive]
    if not chosen:
        raise ConfigError("no sensitive attribute is chosen; choose at least one")
    rng = np.random.default_rng(0)

    def values(attributes: Sequence[Attribute]) -> Any:
        unknown = graph.defaults.unknown
        return tuple(resolve_values(a, graph, edges, unknown=unknown, rng=rng) for a in attributes)

    # Of all people and edges, weights would tell how many there are in small groups.
    rest = [told(graph, a).attribute for a in graph.audited if a not in chosen]
    chosen = [told(graph, a).attribute for a in chosen]
    drawn = np.random.default_rng(1).random(graph.num_edges) < _DRAWN
    edges = graph.edges[:, drawn]
    own = None if graph.edge_weights is None else graph.edge_weights[drawn].astype(np.float64)
    own = None if own is None else (own / own.mean()).astype(np.float32)
    evidence = MethodInputs(graph, edges, values(chosen), values(rest), own)
    remarks = []
    if few := _nobody_left(evidence):
        if any(not a.known.any() for a in chosen):
            raise ConfigError(
                f"no weight can be estimated: too few people are in groups of {FEWEST} and more of "
                f"{_named([a.name for a in chosen])}; choose another attribute"
            )
        if not independence:
            raise ConfigError(
                f"no weight can be estimated: nobody is left once groups of under {FEWEST} people of {_named(few)} are "
                f"left out. {_LARGER}"
            )
    try:
        cells = weight_cells(evidence, shrinkage=0.0, independence=independence, item_cells="none")
    except TooManyGroups as error:
        independence = True
        cells = weight_cells(evidence, shrinkage=0.0, independence=True, item_cells="none")
        remarks.append(
            f"All attributes together form {error.num_groups:,} groups, too many "
            "for one table: shown is the product of "
            "one-attribute ratios (independence=true), which training needs to be told as well."
        )
    cell = cells.group[edges[0]] * len(cells.weight)
    cell += cells.group[edges[1]]
    of_cell, thin = cells.weight.astype(np.float64).ravel(), cells.thin_mass
    weight = of_cell[cell]
    found = (
        f"{_share(thin)} of the edges lie in pairs of groups where fewer than {THIN:g} are expected: there the weight "
        "is mostly chance."
    )
    if 0 < thin < _MOST_THIN:
        remarks.append(f"{found} Fewer attributes, wider bins or one-attribute ratios help.")
    if cells.uncovered_mass > 0:
        remarks.append(
            f"{_share(cells.uncovered_mass)} of the edges of the bias-free graph fall between groups that have "
            "no edge here; no weight can bring them back."
        )
    if graph.bipartite:
        remarks.append("Items form no cells here, so that all edges of a group of people weigh the same.")
    kind, kinds = _kinds(graph, chosen, edges)
    table, beyond = _histogram(of_cell, cell, kind, kinds)
    names, size = ", ".join(a.name for a in chosen), float(weight.sum() ** 2 / np.square(weight).sum())
    least, most = float(weight.min()), float(weight.max())
    title = (
        f"Weights without the influence of {names}: {least:.2g} to {most:.3g}; "
        f"{len(weight):,} edges count like {size:,.0f}"
    )
    caption = (
        f"The weight of {len(weight):,} edges, nine in ten, R~/R over its mean, logarithmic: the rarer an edge is than "
        f"it would be without the influence of {names}, the more it counts; 1 is the average edge. "
        f"Training estimates the same from its own edges alone. "
        + (
            f"{beyond:.1%} lie beyond 1/16 to 16 and are in the outer bars."
            if beyond
            else "None lies beyond 1/16 to 16."
        )
    )
    facts = (
        ("Smallest weight", f"{least:.3f}", "What the edge that counts least is worth."),
        (
            "Largest weight",
            f"{most:.3f}",
            "What the edge that counts most is worth; a few large ones make training noisy.",
        ),
        (
            "Effective sample size",
            f"{size:,.0f}",
            f"(Σw)² / Σw²: as many equal edges say as much; {size / len(weight):.0%} of {len(weight):,}.",
        ),
        (
            "Clipped share",
            f"{beyond:.1%}",
            "Edges beyond the range that is drawn. The weights themselves are not clipped.",
        ),
    )
    sums = ", ".join(
        f"{k}: {int(table[k].sum()):,} edges, mean weight {weight[kind == i].mean():.2f}" for i, k in enumerate(kinds)
    )
    doubt = f"{found} {_LARGER}" if thin >= _MOST_THIN else ""
    fault = _all_one(weight, evidence, [a.name for a in chosen], independence)
    return WeightsView(
        tuple(a.name for a in chosen),
        table,
        kinds,
        facts,
        title,
        caption,
        f"{title}. {sums}.",
        tuple(remarks),
        fault,
        doubt,
    )


def _all_one(weight: npt.NDArray[np.float64], evidence: MethodInputs, chosen: Sequence[str], independence: bool) -> str:
    """Why all weights are 1, and what to do; "" where they differ."""
    one = np.abs(weight - 1) < _SAME
    if one.mean() < _ALL:
        return ""
    names = " and ".join(chosen)
    effect = f"{'All' if one.all() else 'Nearly all'} weights are 1: nothing is weighed by {names}."
    if not independence and evidence.other:
        part, coarse, _ = evidence.groups("none")
        outside = float((part.group[evidence.train_edges] == OUT).any(axis=0).mean())
        people = evidence.side == 0
        left = {x.name: float((x.codes[people] < 0).mean()) for x in evidence.other}
        if outside >= _ALL and (few := [name for name in sorted(left, key=lambda n: -left[n]) if left[name] > 0.5]):
            return (
                f"{effect} Why: most people are in groups of under {FEWEST} people of {_named(few)}, which are left out here; "
                f"training would weigh their edges by chance. {_LARGER}"
            )
        if len(np.unique(coarse)) == part.num_groups:
            others = [x.name for x in evidence.other]
            return (
                f"{effect} Why: people who are alike in {_named(others)} all have the same {names}, so that nothing is left "
                f"to weigh. {_LARGER}"
            )
    given = ", for people who are alike in the other attributes" if evidence.other and not independence else ""
    if evidence.graph.bipartite:
        return (
            f"{effect} Why: the groups of {names} have as many edges as their sizes say, and items form no cells here. "
            "What to do: choose groups of items in training (popularity), or another attribute."
        )
    return (
        f"{effect} Why: edges within and between the groups of {names} are as frequent as chance would have them{given}. "
        "What to do: choose another attribute, or a method that does not weigh edges."
    )


def _nobody_left(evidence: MethodInputs) -> list[str]:
    """The attributes without a value of which nobody has a value of all, the emptiest first."""
    people = evidence.side == 0
    known = {x.name: x.codes[people] >= 0 for x in (*evidence.sensitive, *evidence.other)}
    if not known or np.logical_and.reduce(list(known.values())).any():
        return []
    return sorted((name for name in known if not known[name].all()), key=lambda name: int(known[name].sum()))


def _named(names: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _share(value: float) -> str:
    return f"{value:.1%}" if value >= 0.0005 else "Under 0.1%"


def _kinds(graph: AttributedGraph, chosen: Sequence[Attribute], edges: IntArray) -> tuple[IntArray, tuple[str, ...]]:
    """The kind of every edge, and the names of those that there are."""
    u, v = edges
    if graph.bipartite:
        return np.zeros(len(u), np.int64), ("edges",)
    # One number for the values of all chosen attributes of a person.
    _, group = different_rows([a.codes for a in chosen])
    unknown = np.logical_or.reduce([a.codes < 0 for a in chosen])
    kind = np.where(group[u] == group[v], 0, 1)
    if unknown.any():
        kind[unknown[u] | unknown[v]] = 2
    names = ("within a group", "between groups", "a value is missing")
    there = np.bincount(kind, minlength=len(names)) > 0
    place = np.cumsum(there) - 1
    return place[kind], tuple(name for name, is_there in zip(names, there, strict=True) if is_there)


def _histogram(
    of_cell: npt.NDArray[np.float64], cell: IntArray, kind: IntArray, kinds: Sequence[str]
) -> tuple[pd.DataFrame, float]:
    """Edges by the weight of their cell and by kind, without bars of few edges and some that hide these; and the share beyond the range."""
    with np.errstate(divide="ignore"):  # of a cell without an edge
        octave = np.log2(of_cell)
    ends = np.linspace(-_OCTAVES, _OCTAVES, 2 * _OCTAVES * _STEPS + 1)
    # Half a bar aside, so that weights of 1 stand in the middle of one.
    ends = np.concatenate([ends - 0.5 / _STEPS, [ends[-1] + 0.5 / _STEPS]])
    place = np.clip(np.searchsorted(ends, octave, side="right") - 1, 0, len(ends) - 2)[cell]
    table = pd.DataFrame({"low": 2.0 ** ends[:-1], "high": 2.0 ** ends[1:]})
    sizes = np.bincount(kind * len(table) + place, minlength=len(kinds) * len(table)).reshape(len(kinds), -1)
    for name, size in zip(kinds, sizes, strict=True):
        table[name] = size - Release().hidden(size)[1]
    beyond = float(((octave < ends[0]) | (octave > ends[-1]))[cell].mean())
    return table, beyond


def known_graphs(store: RunStore) -> dict[str, str]:
    """Label by spec of the graphs that are at hand: uploads, the newest first, then samples.

    Raises:
        StoreError: the uploads cannot be listed.
    """
    uploads = {upload.spec: f"upload {upload.name}" for upload in list_uploads(store)}
    samples = sorted(sample.names(), key=lambda name: name != "town")
    return uploads | {f"sample:{name}": f"sample {name}" for name in samples}
