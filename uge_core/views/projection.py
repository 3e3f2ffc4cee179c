"""Two runs' people in a plane, side by side, with what holds in the full space under each.

A picture is an illustration: no number is read from it. What people select in it is compared with
everybody drawn by Fisher's exact test,

    P(k of group g among m selected) = C(K_g, k) C(n - K_g, m - k) / C(n, m),

two-sided, the sum over all outcomes that are no likelier than the one seen, adjusted by Holm over the
groups; shares have Wilson's 95 % interval. People are selected by eye, so this describes a selection and tests no run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.arrays import BoolArray, IntArray
from uge_core.audit.base import RowRecord
from uge_core.audit.holm import holm
from uge_core.explore.people import search, values_of
from uge_core.explore.projection.align import align_path
from uge_core.explore.projection.cache import Picture, alike, find_confidence, find_picture, picture, projections
from uge_core.explore.projection.confidence import FOLDS
from uge_core.explore.projection.frame import frame_of
from uge_core.explore.projection.neighbours import NEAREST, closest
from uge_core.explore.projection.path import lambda_path
from uge_core.explore.projection.sample import MOST, Sample, draw_sample
from uge_core.graph.graph import Attribute, AttributedGraph
from uge_core.graph.suppression import FEWEST
from uge_core.runs.audits import score_of
from uge_core.runs.names import labels
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.views.rows import as_shown, audit_rows, matching_row, usable
from uge_core.views.words import interval, many

LISTED = 200
"""Selected people that are listed."""
TOP = 7
"""Values of an attribute that get a colour of their own; the rest are Other."""
_SIZES = (5_000, MOST)
_REACH = 30_000  # half the frame's longer side, as a 16-bit whole number
EDGE = 1.03
"""Where those outside the frame stand, in its half width and half height."""
_LABELLED = 4  # attributes whose values stand in a label
_BINS = 6


@dataclass(frozen=True, eq=False)
class ProjectionData:
    """The people that are drawn, the same for all runs of a graph.

    Attributes:
        graph: the graph.
        sample: who is drawn.
    """

    graph: AttributedGraph
    sample: Sample

    @cached_property
    def said(self) -> tuple[str, ...]:
        """Of each person drawn the id and the values, in the order of `Sample.nodes`; of very many the id alone."""
        nodes = self.sample.nodes
        parts = [self.graph.ids(nodes)]
        if len(nodes) <= MOST:
            for a in self.graph.audited[:_LABELLED]:
                words = np.array([*a.labels, a.unknown_label, a.unknown_label], dtype=object)
                parts.append([f"{a.name} {word}" for word in words[a.codes[nodes]]])
        return tuple("\n".join(one) for one in zip(*parts, strict=True))


def projection_data(graph: AttributedGraph, size: int) -> ProjectionData:
    """Draws the sample, the same for every run of the graph: `size` people, or everybody where there are no more."""
    return ProjectionData(graph, draw_sample(graph, size))


def projection_sizes(graph: AttributedGraph) -> dict[int, str]:
    """How many people may be drawn, in words, the last everybody; 20,000 at most are the default."""
    num_people = graph.people.stop
    return {n: f"{n:,}" for n in _SIZES if n < num_people} | {num_people: f"all {num_people:,}"}


@dataclass(frozen=True, eq=False)
class Group:
    """People of one colour.

    Attributes:
        label: a value as the file writes it, or a range.
        members: their positions in the sample.
        kind: a value, the small values together, or no value.
    """

    label: str
    members: IntArray
    kind: Literal["value", "other", "unknown"] = "value"


@dataclass(frozen=True, eq=False)
class Colouring:
    """What the colours mean.

    Attributes:
        title: of the legend.
        ordered: the values have an order, and so the colours.
        groups: in the order of the legend.
    """

    title: str
    ordered: bool
    groups: tuple[Group, ...]


@dataclass(frozen=True)
class Fact:
    """One number of the full space.

    Attributes:
        label: what it is, with the direction.
        help: the same in a sentence, with what it does not say.
        value: as shown.
        words: interval, floor and n.
        verdict: "more than chance", "not distinguishable from chance" or "not enough evidence".
    """

    label: str
    help: str
    value: str
    words: str
    verdict: str


@dataclass(frozen=True, eq=False)
class Panel:
    """One run's picture.

    Attributes:
        run_id: the run.
        label: its name.
        coordinates: (n, 2) int16, in the order of `Sample.nodes`; who is outside the frame stands at its edge.
        lam: its lambda, or None.
        outside: (n,) who that is.
    """

    run_id: str
    label: str
    coordinates: npt.NDArray[np.int16]
    lam: float | None
    outside: BoolArray


@dataclass(frozen=True, eq=False)
class ProjectionView:
    """Run A and run B, with the lambda path of B.

    Attributes:
        method: a name from ``projections()``.
        before: A's picture; None where it is not made yet.
        after: B's path by lambda, those that are made; one picture under None where B has no lambda.
        lam: B's own lambda.
        wanted: runs in the order of the path, A first, as a job would make them.
        missing: how many of them have no picture yet.
        reach: half width and half height of the common frame, in coordinates.
        caption: method, settings, sample, seed, versions.
        limits: what a picture does not say.
        unfit: which of the pictures are of embeddings that are not usable, and why; each fills the frame all the same.
    """

    method: str
    before: Panel | None
    after: Mapping[float | None, Panel]
    lam: float | None
    wanted: tuple[str, ...]
    missing: int
    reach: tuple[int, int]
    caption: str
    limits: str
    unfit: tuple[str, ...]


def projection_methods() -> dict[str, str]:
    """Label by name, those that are there at once first."""
    return {name: method.label for name, method in projections().items()}


def slow_projections() -> dict[str, str]:
    """Label by name of those that a job makes."""
    return {name: method.label for name, method in projections().items() if not method.at_once}


def projection_view(
    store: RunStore, data: ProjectionData, *, before: str, after: str | None, method: str
) -> ProjectionView:
    """The pictures that there are; those that are quick are made.

    Each is aligned to the one before it: B's path in the order of lambda, its first to A.

    Args:
        store: the run store.
        data: from `projection_data`.
        before: run A.
        after: run B, or None.
        method: a name from `projection_methods`.

    Raises:
        RunNotFound: no such run.
        StoreError: an embedding cannot be read.
        ConfigError: too few people.
    """
    a = store.load(before)
    b = store.load(after) if after else None
    runs = [r for r in store.list(audits=False) if r.dataset.get("fingerprint") == a.dataset["fingerprint"]]
    path = lambda_path(b, runs) if b else ()
    chain = [a, *(r for r in path if r.id != a.id)]
    made = {run.id: _picture(run, method, data.sample) for run in chain}
    there = [(run, made[run.id]) for run in chain if made[run.id] is not None]
    names = labels([*chain])
    aligned = align_path([p.coordinates for _, p in there if p])
    frame = frame_of(aligned)
    scale = _REACH / float(frame.reach.max())
    reach = (round(frame.reach[0] * scale), round(frame.reach[1] * scale))
    sides = {}
    for (run, _), c in zip(there, aligned, strict=True):
        at = np.clip((c - frame.middle) / frame.reach, -EDGE, EDGE) * reach
        outside = frame.outside(c)
        sides[run.id] = Panel(run.id, names[run.id], np.rint(at).astype(np.int16), run.config.get("lambda"), outside)
    after_sides = {r.config.get("lambda"): sides[r.id] for r in path if r.id in sides}
    kind = projections()[method]
    return ProjectionView(
        method,
        sides.get(a.id),
        after_sides,
        b.config.get("lambda") if b else None,
        tuple(r.id for r in chain),
        len(chain) - len(there),
        reach,
        _caption(method, data.sample, there, len(path), _beyond(sides.get(a.id), after_sides)),
        f"{kind.sentence} A projection is an illustration; judge by the numbers of the full space under each picture.",
        tuple(_unfit(store, [run.id for run, _ in there], names)),
    )


def _unfit(store: RunStore, ids: Sequence[str], names: Mapping[str, str]) -> Iterable[str]:
    """A sentence for each run whose embedding says nothing."""
    for run in store.list(audits="lead", only=ids):
        if not (verdict := usable(run)).counts:
            yield (
                f"{names[run.id]} is not usable: {verdict.why}. Its picture is scaled to fill the frame all the same, so "
                "what looks like structure says nothing of who is linked."
            )


def _picture(run: StoredRun, method: str, sample: Sample) -> Picture | None:
    return picture(run, method, sample) if projections()[method].at_once else find_picture(run, method, sample)


def _beyond(before: Panel | None, after: Mapping[float | None, Panel]) -> str:
    """How many people lie outside the frame, in words; empty where none does."""
    first = 0 if before is None else int(before.outside.sum())
    others = [int(side.outside.sum()) for side in after.values()]
    most = max(others, default=0)
    if not first and not most:
        return ""
    there = many(first, "person", "people")
    if others:
        up_to = "up to " if len(set(others)) > 1 else ""
        there = f"{there} of A and {up_to}{most:,} of B"
    lie = "lies" if first == 1 and not others else "lie"
    return f"{there} {lie} outside the frame, drawn hollow at its edge"


def _caption(
    method: str, sample: Sample, there: Sequence[tuple[StoredRun, Picture | None]], steps: int, beyond: str
) -> str:
    kind = projections()[method]
    first = next((p.about for _, p in there if p), {})
    parts = [f"{kind.label} of {sample.words}, the same people in both pictures"]
    if settings := first.get("settings"):
        parts.append(", ".join(f"{name} {value}" for name, value in settings.items()) + f", seed {first['seed']}")
    parts.append(", ".join(f"{name} {version}" for name, version in first.get("versions", {}).items() if version))
    shares = [p.about["facts"]["share of the spread"] for _, p in there if p and p.about.get("facts")]
    if shares:
        low, high = 100 * min(shares), 100 * max(shares)
        span = f"{low:.0f} %" if round(low) == round(high) else f"{low:.0f} to {high:.0f} %"
        parts.append(f"the two directions hold {span} of the spread")
    if len(there) > 1:
        what = "each λ of B to the one before, the first to A," if steps > 1 else "B"
        parts.append(f"{what} turned, mirrored and scaled {'' if steps > 1 else 'to A '}(orthogonal Procrustes)")
    if beyond:
        parts.append(beyond)
    return "; ".join(filter(None, parts)) + ". Directions have no meaning, so the axes have no numbers."


def colour_choices(data: ProjectionData, store: RunStore, run_ids: Iterable[str]) -> dict[str, str]:
    """What people may be coloured by, label by key; the probe's confidence where a job has made it for some run."""
    out = {f"attribute:{a.name}": a.name for a in data.graph.audited} | {"degree": "number of neighbours"}
    confidences = [find_confidence(store.load(i), data.sample) for i in run_ids]
    return out | {
        f"confidence:{name}": f"probe confidence, {name}" for name in dict.fromkeys(n for f in confidences for n in f)
    }


def colouring(data: ProjectionData, key: str, run: StoredRun) -> Colouring:
    """Who gets which colour.

    Args:
        data: who is drawn.
        key: one of `colour_choices`.
        run: whose probe is meant, where it is about the probe.
    """
    what, _, name = key.partition(":")
    nodes = data.sample.nodes
    if what == "degree":
        return Colouring("neighbours", True, tuple(_binned(data.graph.degree[nodes], str)))
    if what == "confidence":
        values = find_confidence(run, data.sample).get(name)
        values = np.full(len(nodes), np.nan, dtype=np.float32) if values is None else values
        return Colouring(f"probability of the true {name}", True, tuple(_fifths(values)))
    attribute = data.graph.attribute(name)
    codes = attribute.codes[nodes]
    if attribute.ordered:
        groups = list(_binned(codes, lambda code: attribute.labels[code]))
    else:
        groups = list(_largest(attribute, codes))
    unknown = np.nonzero(codes < 0)[0]
    if len(unknown):
        said = f" ({attribute.unknown_label})" if attribute.unknown_label != "unknown" else ""
        groups.append(Group(f"no value{said}", unknown, "unknown"))
    return Colouring(attribute.name, attribute.ordered, tuple(groups))


def _largest(attribute: Attribute, codes: IntArray) -> Iterable[Group]:
    """The seven values with the most people, in the file's order, and the others as one."""
    present = [int(c) for c in np.unique(codes[codes >= 0])]
    top = sorted(sorted(present, key=lambda c: (-attribute.sizes[c], c))[:TOP])
    for code in top:
        yield Group(attribute.labels[code], np.nonzero(codes == code)[0])
    if len(present) > len(top):
        rest = np.nonzero((codes >= 0) & ~np.isin(codes, top))[0]
        yield Group(f"Other ({len(present) - len(top)} values)", rest, "other")


def _binned(values: IntArray, name: Any) -> Iterable[Group]:
    """Each value by itself, or in up to six ranges of about as many people; negative ones are left out."""
    known, counts = np.unique(values[values >= 0], return_counts=True)
    if len(known) <= TOP:
        bins = [[int(v)] for v in known]
    else:
        middle = (np.cumsum(counts) - counts / 2) / counts.sum()
        part = np.minimum((middle * _BINS).astype(int), _BINS - 1)
        bins = [[int(v) for v in known[part == k]] for k in range(_BINS) if (part == k).any()]
    for inside in bins:
        label = name(inside[0]) if len(inside) == 1 else f"{name(inside[0])} to {name(inside[-1])}"
        yield Group(label, np.nonzero((values >= inside[0]) & (values <= inside[-1]))[0])


def _fifths(values: npt.NDArray[np.float32]) -> Iterable[Group]:
    for k in range(5):
        high = values <= (k + 1) / 5 if k == 4 else values < (k + 1) / 5
        inside = np.nonzero((values >= k / 5) & high)[0]
        # A fifth without anybody keeps its place, so that A and B share their colours.
        yield Group(f"{k / 5:.1f} to {(k + 1) / 5:.1f}", inside)
    unknown = np.nonzero(np.isnan(values))[0]
    if len(unknown):
        yield Group("not known", unknown, "unknown")


CONFIDENCE_NOTE = (
    "Probe confidence: the linear attacker's calibrated probability of a person's true value, cross-fitted in "
    f"{FOLDS} folds of "
    "the people drawn, so nobody's own value was learnt from. The embedding is the exported one, whose training may "
    "have seen it."
)


def full_space(store: RunStore, data: ProjectionData, run_id: str, attribute: str) -> tuple[Fact, ...]:
    """What attackers read of an attribute in all dimensions, and how alike near people are.

    Args:
        store: the run store.
        data: from `projection_data`.
        run_id: the run.
        attribute: an audited attribute.
    """
    run = store.load(run_id)
    out = []
    for metric, attacker, label, about in _MEASURED:
        rows = audit_rows(run, metric=metric, attribute=attribute, attacker=attacker)
        rows = [r for r in rows if r["variant"] in (None, "standard")]
        row = matching_row(rows, "unseen") or matching_row(rows, "seen")
        out.append(_measured(label, about, row, signed=run.signed))
    about = (
        f"Share of the {NEAREST} nearest people in all dimensions "
        f"with the same {attribute}; lower is better, chance is "
        "what neighbours drawn at random give. Alike neighbours also come from links between alike people."
    )
    label, near = f"↓ {NEAREST} nearest alike", alike(run, data.graph).get(attribute)
    if near is None or near.value is None or near.chance is None or near.low is None:
        return (*out, Fact(label, about, "-", "too few people", "not enough evidence"))
    verdict = "more than chance" if near.low > near.chance else "not distinguishable from chance"
    words = f"95 %{interval(near.low, near.high)}, chance {near.chance:.3f}, n = {near.n:,} people"
    return (*out, Fact(label, about, f"{near.value:.3f}", words, verdict))


_MEASURED = (
    (
        "auc",
        "worst",
        "↓ AUC, strongest",
        "Of two people with different values, how often the strongest attacker picks the right one; lower is "
        "better, 0.5 is a coin.",
    ),
    (
        "micro_f1",
        "linear",
        "↓ Micro-F1, linear",
        "Share of right answers of the linear attacker; lower is better. Its balanced classes can put it below the "
        "majority, so a low one is not low leakage: read AUC beside it.",
    ),
)


def _measured(label: str, about: str, row: RowRecord | None, *, signed: bool) -> Fact:
    if row is None or row["value"] is None or row["evidence"] != "ok":
        words = "not measured" if row is None else f"n = {row['n']:,} people"
        return Fact(label, about, "-", words, "not enough evidence")
    shown = as_shown(row, signed=signed)
    named = {"majority": shown["floor_majority"], "random": shown["floor_random"]}
    floors = {name: value for name, value in named.items() if value is not None}
    if row["metric"] == "auc":
        floors = {"a coin": 0.5} | {k: v for k, v in floors.items() if k == "random"}
    exposure = {"unseen": "people hidden from training", "seen": "training may have seen their values"}
    words = ", ".join(
        filter(
            None,
            (
                f"95 %{interval(shown['ci_low'], shown['ci_high'])}" if shown["ci_low"] is not None else "",
                *(f"{name} {value:.3f}" for name, value in floors.items()),
                f"n = {row['n']:,} people",
                exposure.get(row["exposure"] or "", ""),
            ),
        )
    )
    if shown["ci_low"] is None:
        verdict = "not enough evidence"
    else:
        verdict = (
            "more than chance"
            if shown["ci_low"] > max(floors.values(), default=0.0)
            else "not distinguishable from chance"
        )
    return Fact(label, about, f"{shown['value']:.3f}", words, verdict)


@dataclass(frozen=True)
class Suggestion:
    """Something that a text may mean.

    Attributes:
        label: an id with its values, or an attribute with one of them.
        node: the person's node number, or None where it is a value.
        nodes: those drawn who have the value.
    """

    label: str
    node: int | None
    nodes: tuple[int, ...] = ()


def people_search(data: ProjectionData, text: str) -> tuple[tuple[Suggestion, ...], str]:
    """Values and people that a text may mean, and how many people there are in words.

    Args:
        data: who is drawn; people who are not are found too.
        text: what was typed: a part of an id, a value, or several of them.
    """
    if not text.strip():
        return (), ""
    found = search(data.graph, text, people=True)
    suggestions = []
    drawn = data.sample.nodes
    for name, label in found.values:
        a = data.graph.attribute(name)
        inside = drawn[a.codes[drawn] == a.labels.index(label)]
        size = f"{len(inside):,}" if len(inside) >= FEWEST else f"under {FEWEST}"
        suggestions.append(Suggestion(f"all of {name} {label} ({size})", None, tuple(map(int, inside))))
    for node in found.nodes.tolist():
        suggestions.append(Suggestion(person_label(data.graph, node), node))
    if not suggestions:
        return (), f"Nobody's id holds {text.strip()!r}, and no value begins so."
    if not len(found.nodes):
        return tuple(suggestions), ""
    more = found.total - len(found.nodes)
    return tuple(suggestions), f"{more:,} more people fit; type more to narrow them down." if more else ""


def person_label(graph: AttributedGraph, node: int) -> str:
    """The id with the values, as in "p17: north, 34"."""
    values = list(values_of(graph, node).values())[:_LABELLED]
    return ": ".join(filter(None, (graph.ids([node])[0], ", ".join(values))))


@dataclass(frozen=True, eq=False)
class NearView:
    """The people nearest to one in all dimensions of one run's embedding.

    Attributes:
        run_id: the run.
        nodes: their node numbers, the nearest first.
        table: one row each, the nearest first: id, how near, values, whether there is a link.
        caption: by what they are near.
    """

    run_id: str
    nodes: tuple[int, ...]
    table: pd.DataFrame
    caption: str


@dataclass(frozen=True, eq=False)
class PersonView:
    """One person.

    Attributes:
        node: the node number.
        id: the user's own id.
        sentence: id, values and links.
        note: that the person is not among those drawn, or empty.
        sides: nearest people by run, run A's first.
        shared: how many of them are near in both, in words; empty with one run.
    """

    node: int
    id: str
    sentence: str
    note: str
    sides: tuple[NearView, ...]
    shared: str


_NEAR_BY = {"dot": "Dot product", "cosine": "Cosine"}


def person_view(
    store: RunStore, data: ProjectionData, node: int, run_ids: Sequence[str], *, most: int = NEAREST
) -> PersonView:
    """A person with the nearest people in the full space of each run, by the score of the run.

    Args:
        store: the run store.
        data: who is drawn; neighbours are looked for among all people.
        node: a person's node number.
        run_ids: run A and, where there is one, run B.
        most: how many neighbours.
    """
    graph = data.graph
    name = graph.ids([node])[0]
    values = ", ".join(f"{k} {v}" for k, v in values_of(graph, node).items())
    sides = tuple(_near(store.load(run_id), graph, node, most) for run_id in dict.fromkeys(run_ids))
    shared = ""
    if len(sides) > 1:
        same = len(set(sides[0].nodes) & set(sides[1].nodes))
        shared = f"{same} of the {len(sides[0].nodes)} nearest in A are among the nearest in B."
    drawn = bool(np.isin(node, data.sample.nodes))
    note = "" if drawn else f"{name} is not among the {len(data.sample.nodes):,} people drawn."
    sentence = f"{name}: {values or 'no values'}; {many(int(graph.degree[node]), 'link')}."
    return PersonView(node, name, sentence, note, sides, shared)


def _near(run: StoredRun, graph: AttributedGraph, node: int, most: int) -> NearView:
    score = score_of(run)
    everybody = np.arange(graph.num_nodes)[graph.people]
    nodes, near = closest(run.embedding, score, node, everybody, most=most)
    kind = score.partition(":")[0]
    heading = _NEAR_BY.get(kind, "Distance")
    linked = _linked(graph, node)
    rows = {
        "id": graph.ids(nodes),
        heading: near,
        "Values": [", ".join(values_of(graph, n).values()) for n in nodes.tolist()],
        "Linked": ["yes" if n in linked else "no" for n in nodes.tolist()],
    }
    way = "the smallest is the nearest" if heading == "Distance" else "the largest is the nearest"
    caption = f"By {heading.lower()} in all {run.embedding.shape[1]} dimensions, as this run scores links; {way}."
    return NearView(run.id, tuple(map(int, nodes)), pd.DataFrame(rows), caption)


def _linked(graph: AttributedGraph, node: int) -> set[int]:
    mine = graph.edges[:, (graph.edges == node).any(axis=0)]
    return set(mine[mine != node].tolist())


@dataclass(frozen=True, eq=False)
class SelectionView:
    """Some of the people drawn, against all of them.

    Attributes:
        table: one row per group: n and share in the selection, its interval, the share of everybody drawn, p, verdict.
        people: the first 200 selected: id, values, neighbours.
        ids: the users' own ids of all selected.
        sentence: what stands out.
        caption: how it was compared.
    """

    table: pd.DataFrame
    people: pd.DataFrame
    ids: tuple[str, ...]
    sentence: str
    caption: str


def selected_groups(data: ProjectionData, attribute: str, values: Sequence[str]) -> list[int]:
    """Node numbers of the people drawn who have one of these values."""
    column = data.graph.attribute(attribute)
    wanted = [i for i, label in enumerate(column.labels) if label in values]
    nodes = data.sample.nodes
    return [int(n) for n in nodes[np.isin(column.codes[nodes], wanted)]]


def selected_ids(data: ProjectionData, text: str) -> tuple[list[int], str]:
    """Node numbers of the people drawn whose own ids stand in a text, with commas, blanks or lines between them.

    Returns:
        The numbers, and what was not found, in words; empty where all were.
    """
    people = np.arange(data.graph.num_nodes)[data.graph.people]
    everybody = dict(zip(data.graph.ids(data.graph.people), people.tolist(), strict=True))
    asked: dict[str, None] = {}
    for line in map(str.strip, text.splitlines()):
        # An id may hold what else stands between ids.
        parts = [line] if line in everybody else [p for p in map(str.strip, re.split("[,;]", line)) if p]
        for part in parts:
            asked |= dict.fromkeys([part] if part in everybody else part.split())
    number = {name: everybody[name] for name in asked if name in everybody}
    drawn = set(data.sample.nodes.tolist())
    nodes = [n for name in asked if (n := number.get(name)) is not None and n in drawn]
    lost, left_out = [a for a in asked if a not in number], len(number) - len(nodes)
    words = []
    if lost:
        words.append(
            f"There is nobody called {', '.join(lost[:3])}{f' and {len(lost) - 3:,} more' if len(lost) > 3 else ''}."
        )
    if left_out:
        words.append(f"{left_out:,} of those named are not among the people drawn.")
    return sorted(nodes), " ".join(words)


def selection_view(data: ProjectionData, nodes: Sequence[int], attribute: str) -> SelectionView:
    """The selection's mix of an attribute's values against everybody drawn.

    Args:
        data: who is drawn.
        nodes: node numbers; those that are not drawn are left out.
        attribute: an attribute of people.
    """
    graph, drawn = data.graph, data.sample.nodes
    chosen = np.intersect1d(np.asarray(nodes, dtype=np.int64), drawn)
    column = graph.attribute(attribute)
    inside, whole = (
        np.bincount(c[c >= 0], minlength=column.num_values) for c in (column.codes[chosen], column.codes[drawn])
    )
    m, n = int(inside.sum()), int(whole.sum())
    rows = [_row(column.labels[g], int(inside[g]), m, int(whole[g]), n) for g in np.nonzero(whole)[0]]
    _adjust(rows)
    rows.sort(key=lambda r: (-r["_share"], r["Group"]))
    first = chosen[:LISTED]
    people = pd.DataFrame({"id": graph.ids(first)})
    for a in graph.audited:
        people[a.name] = [a.labels[c] if c >= 0 else a.unknown_label for c in a.codes[first]]
    people["neighbours"] = graph.degree[first]
    # An exact p of a small group would tell how many of it are selected.
    shown = [row | {"p": None} if row["_small"] else row for row in rows]
    table = pd.DataFrame([{k: v for k, v in row.items() if k[0] != "_"} for row in shown])
    caption = (
        f"{m:,} of the {len(chosen):,} selected and {n:,} of the {len(drawn):,} drawn have a {attribute}. Shares "
        "with Wilson's 95 % interval; "
        f"p by the exact hypergeometric test, two-sided, adjusted over the groups (Holm). Groups of under {FEWEST} "
        "are suppressed. "
        "A selection made by eye is described here; it tests no run."
    )
    return SelectionView(
        table, people, tuple(graph.ids(chosen)), _stands_out(rows, len(chosen), len(drawn), attribute), caption
    )


def _row(label: str, k: int, m: int, size: int, n: int) -> dict[str, Any]:
    """One group; numbers that could point at people are left out."""
    from scipy.stats import binomtest, fisher_exact

    small = k < FEWEST or size < FEWEST
    ends = binomtest(k, m).proportion_ci(method="wilson") if m and not small else None
    # A group that should have had twelve people among the selected can be found to have fewer.
    tested = m >= FEWEST and size >= FEWEST and (not small or m * size / n >= FEWEST)
    return {
        "Group": label,
        "Against everybody": "not enough evidence",
        "Selected": f"under {FEWEST}" if small else f"{k:,}",
        "Share of the selected": None if small else k / m,
        "95 %": interval(ends.low, ends.high).strip() if ends else "",
        "Share of everybody": None if size < FEWEST else size / n,
        "p": float(fisher_exact(np.array([[k, m - k], [size - k, n - m - size + k]])).pvalue) if tested else None,
        "_share": size / n,
        "_difference": k / m - size / n if m else 0.0,
        "_small": small,
    }


def _adjust(rows: Sequence[dict[str, Any]]) -> None:
    """Holm's adjustment over the groups tested, and the verdict."""
    tested = [r for r in rows if r["p"] is not None]
    for row, p in zip(tested, holm([r["p"] for r in tested]).tolist(), strict=True):
        more = "more" if row["_difference"] > 0 else "fewer"
        row |= {"p": p, "Against everybody": more if p < 0.05 else "no difference shown"}


def _stands_out(rows: Sequence[Mapping[str, Any]], m: int, n: int, attribute: str) -> str:
    text = f"{many(m, 'person', 'people')} selected, {100 * m / n:.1f} % of those drawn."
    told = [r for r in rows if r["Against everybody"] in ("more", "fewer") and not r["_small"]]
    if not told:
        tested = any(r["p"] is not None for r in rows)
        end = "their mix is not distinguishable from everybody's" if tested else "they are too few to compare"
        return f"{text} By {attribute}, {end}."
    top = max(told, key=lambda r: abs(r["_difference"]))
    return (
        f"{text} {attribute} {top['Group']} is {100 * top['Share of the selected']:.1f} % of them {top['95 %']} "
        f"and {100 * top['Share of everybody']:.1f} % of everybody: {top['Against everybody']} than a random "
        "selection would have."
    )
