"""A report's first two pages: what a reviewer has to know before signing.

What data, how many people, which attribute, what leaked before and after, how sure that is, what it cost, what was not
tested, who set the threshold, how to run it again, and what must not be concluded. All is of the records that the report
holds, so that the pages can be made anew from them.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from uge_core.audit.attacker_order import DEFAULT_ATTACKERS
from uge_core.errors import ConfigError
from uge_core.graph.suppression import SUPPRESSED
from uge_core.runs.names import labels, method_class
from uge_core.runs.stored_run import StoredRun
from uge_core.views.fairness import GapSide, GapView, fairness_view
from uge_core.views.points import Fold, folds, gap_row
from uge_core.views.report.drawing import Mark, Square, square, tradeoff_drawing
from uge_core.views.report.told import Told, besides, told
from uge_core.views.report.wording import cut, listed, method_words, of_this_package, short, short_label
from uge_core.views.rows import attacker_labels, attackers_tried, audited_attributes
from uge_core.views.verdicts import Card, judged, tried
from uge_core.views.words import interval, many, records

if TYPE_CHECKING:
    from uge_core.runs.store import RunStore
    from uge_core.views.report import Sheet

MOST_CARDS, MOST_LINES = 4, 3
"""Attributes that are drawn, and that have a line; of more than these together fewer are drawn, and more have a line."""
FEW_CARDS, MANY_LINES = 2, 7
MOST_MARKS = 10
MOST_GROUPS = 5
SECTIONS: Mapping[str, str] = {
    "embeddings": "All embeddings, a table for each attribute",
    "attackers": "What each attacker reads",
    "pairs": "Pairs of groups",
    "remarks": "Remarks of the audit",
    "figures": "What the figures are",
    "settings": "Settings and versions",
}
"""Parts of the appendix that may be left out; the runs with their hashes always stand there."""
_LONGEST = {
    "title": 90,
    "author": 60,
    "role": 60,
    "purpose": 400,
    "remarks": 170,
    "threshold_by": 60,
    "threshold_on": 30,
}
_ORDER = ("leaks", "not usable", "reduced", "too few people", "not shown")
_MADE_UP = "nobody in it is real"  # as the package's samples say in their dataset.yaml
_MISSING = {
    "exclude": "people without a value of an attribute are left out of that attribute",
    "level": "a missing value counts as a value of its own",
    "impute": "a missing value is drawn from what neighbours have",
}


@dataclass(frozen=True)
class HeatMap:
    """One embedding's cells.

    Attributes:
        label: whose they are.
        heads: the columns' groups; none where a cell is one group.
        lines: a group's name and its cells.
        sentence: the gap with its interval, floor and verdict.
    """

    label: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, tuple[Square, ...]], ...]
    sentence: str


@dataclass(frozen=True)
class Judgement:
    """What a policy says of one embedding.

    Attributes:
        label: which.
        verdict: pass, fail or not enough evidence; the worst of its seeds.
        rules: verdict and sentence of each rule of the first seed with that verdict, failed ones first.
    """

    label: str
    verdict: str
    rules: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Summary:
    """The first two pages.

    Attributes:
        attribute: which attribute is told first.
        before: the embedding that is compared with, or None.
        now: the embedding that the report is about.
        lead: the first attribute's card.
        told: each attribute's badge, cost and what is not ruled out, by attribute.
        besides: which other attributes leak, a sentence.
        methods: what the methods do that are compared, a sentence each.
        ours: which methods of the chart are this package's own, a sentence.
        made_up: the data are of nobody.
        cards: those that are drawn.
        lines: further ones in a line each.
        more: how many attributes are in the appendix alone.
        facts: what is to be known of the data, name and text.
        marks: what the chart's letters are.
        chart: the trade-off as SVG, "" without link quality.
        maps: heat maps of the first attribute.
        maps_caption: what they show, or why there are none.
        judgements: what a policy says, of what is compared.
        policy: the policy's name, "" without.
        sure: how sure the findings are.
        untested: what was not tested.
        never: what must not be concluded.
        commands: how to run it again, a command and what it does.
        version: of this package, by which the embedding was made; "" where that is not known.
        digest: SHA-256 of the record, or of the records' SHA-256 one after another.
        shortened: sign-off texts that go on in the appendix, by field.
        runs: how many.
        left: how many embeddings are in no chart.
    """

    attribute: str
    before: Fold | None
    now: Fold
    lead: Card
    told: Mapping[str, Told]
    besides: str
    methods: tuple[str, ...]
    ours: str
    made_up: bool
    cards: tuple[Card, ...]
    lines: tuple[Card, ...]
    more: int
    facts: tuple[tuple[str, str], ...]
    marks: tuple[Mark, ...]
    chart: str
    maps: tuple[HeatMap, ...]
    maps_caption: str
    judgements: tuple[Judgement, ...]
    policy: str
    sure: tuple[str, ...]
    untested: tuple[str, ...]
    never: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]
    version: str
    digest: str
    shortened: Mapping[str, str]
    runs: int
    left: int

    @property
    def dense(self) -> bool:
        """There is so much to say that the two pages need smaller letters."""
        words = sum(len(t) for t in (*self.shortened.values(), *(text for _, text in self.facts), *self.methods))
        words += len(self.lead.sentence + self.besides)
        in_cards = []
        for i, c in enumerate(self.cards):
            own = self.told[c.attribute]
            more = [own.open, own.cost if c.treated else ""] if i else []  # the first one's stand above the cards
            in_cards.append(sum(map(len, (*c.details[:1], c.now.label, *more))))
        words += sum(2 * max(in_cards[i : i + 2]) for i in range(0, len(in_cards), 2))  # two stand side by side
        words += len(self.told[self.lead.attribute].open + self.told[self.lead.attribute].cost)
        # About the height that the second page's tables take, in pixels.
        rules = sum(25 + 26 * min(3, len(j.rules)) for j in self.judgements[-1:])
        groups = max((len(m.lines) for m in self.maps), default=0)
        height = 14 * len(self.marks) + 32 * groups + rules + (26 if self.shortened["remarks"] else 0)
        beside = max(_lines(self.sure, 66), _lines(self.untested, 48))
        under = _lines(self.never, 115) + _lines([" ".join(c) for c in self.commands], 115)
        return words + 60 * len(self.lines) > 2200 or height + 14 * (beside + under) > 500


def _lines(texts: Iterable[str], letters: int) -> int:
    """How many lines texts take, of so many letters each."""
    return sum(-(-len(text) // letters) for text in texts)


def report_rows(runs: Sequence[StoredRun]) -> tuple[Fold, ...]:
    """The report's embeddings, a row for all seeds; a run that no row holds is a row of its own."""
    rows = tuple(map(short, folds(runs)))
    held = {i for row in rows for i in row.ids}
    alone = [r for r in runs if r.id not in held]
    return (*rows, *(short(Fold(labels([r])[r.id], (r,))) for r in alone))


def compared(rows: Sequence[Fold], before: str = "", after: str = "") -> tuple[Fold | None, Fold]:
    """The two that a report sets side by side: those named by a run's id, else an untreated one and the last treated one.

    Raises:
        ConfigError: they are of two graphs.
    """
    by_id = {i: row for row in rows for i in row.ids}
    asked = by_id.get(before)
    here = [row for row in rows if asked is None or _graph(row) == _graph(asked)]
    treated = [row for row in here if row.runs[0].config["sensitive"]]
    now = by_id.get(after) or (treated or here)[-1]
    like = _graph(now)
    if asked is not None and _graph(asked) != like:
        raise ConfigError(
            f"run {before} is of {asked.runs[0].dataset['name']} with fingerprint {_graph(asked)[:12]}, run {after} of "
            f"{now.runs[0].dataset['name']} with {like[:12]}; before and after must be of one graph: name two runs of "
            "the same data, or leave before out"
        )
    plain = (row for row in rows if row is not now and row.runs[0].config["method"] == "none" and _graph(row) == like)
    first = asked or next(plain, None)
    return (None if first is now else first), now


def _graph(row: Fold) -> str:
    """The fingerprint of an embedding's data."""
    return str(row.runs[0].dataset["fingerprint"])


def _unattacked(first: Fold | None, now: Fold) -> Card:
    """What is told where the data have no attribute of people: that nothing was tried, which is no sign of safety."""
    (card,) = judged(None, first, now, attributes=[""])
    return replace(
        card,
        finding="too few people",
        headline="Nothing could be read, for want of an attribute",
        sentence="The data have no attribute of people that was audited, so no attacker had anything to learn or to read. "
        "What this embedding gives away is not known; that nothing was read is no sign that it gives nothing away.",
        cost="",
        details=(),
    )


def summary(
    rows: Sequence[Fold],
    kept: Mapping[str, Mapping[str, Any]],
    store: RunStore,
    sheet: Sheet,
    *,
    before: str = "",
    after: str = "",
    attribute: str = "",
    data: str = "",
) -> Summary:
    """The first two pages of a report.

    Args:
        rows: its embeddings.
        kept: the records of all its runs, by run id.
        store: where the runs lie.
        sheet: what was typed.
        before: a run's id of the embedding that is compared with, "" for the untreated one.
        after: the same of the embedding that the report is about.
        attribute: which is told first; "" takes the first that was treated.
        data: how the data are named in commands where everybody has them, as ``sample:town``.
    """
    first, now = compared(rows, before, after)
    here = [row for row in rows if _graph(row) == _graph(now)]
    cards = judged(None, first, now, tried=tried(rows, now))
    words = {card.attribute: told(card, first, now) for card in cards}
    # After those that were treated, what leaks comes first.
    cards = tuple(
        sorted(
            cards,
            key=lambda c: (c.attribute != attribute, not c.treated, _ORDER.index(c.finding), *words[c.attribute].order),
        )
    )
    cards = tuple(map(_short, cards))
    lead = cards[0] if cards else _unattacked(first, now)
    words.setdefault(lead.attribute, told(lead, first, now))
    drawn, lined = (MOST_CARDS, MOST_LINES) if len(cards) <= MOST_CARDS + MOST_LINES else (FEW_CARDS, MANY_LINES)
    marks = tuple(_marks(here, first, now, lead.attribute))
    view = fairness_view(
        store, metric="dp", attribute=lead.attribute, before=(first or now).key, after=now.key if first else None
    )
    shown, caption = _maps(view, [row for row in (first, now) if row], kept)
    judgements, policy = _judgements([row for row in (first, now) if row], kept)
    made_up = is_made_up(now, sheet)
    digest = _digest([str(r["sha256"]) for r in kept.values()])
    texts = {name: str(getattr(sheet, name)) for name in _LONGEST}
    quality = "matched NDCG@10" if any("matched" in c.cost for c in cards) or not first else "NDCG@10"
    chart = ""
    if marks:
        chart = tradeoff_drawing(
            marks,
            across=f"AUC, {cut(lead.attribute, 20)} (left is better)",
            up=f"{quality} (up is better)",
            coin=True,
            leak=0.5 + lead.margin,
            alt=" ".join(f"{m.letter}, {m.label}: AUC {m.x.value:.3f}, link quality {m.y.value:.3f}." for m in marks),
        )
    return Summary(
        lead.attribute,
        first,
        now,
        lead,
        words,
        besides(lead, cards[1:], words),
        tuple(method_words([row for row in (first, now) if row])),
        of_this_package(here[:MOST_MARKS]),
        made_up,
        cards[:drawn],
        cards[drawn : drawn + lined],
        max(0, len(cards) - drawn - lined),
        tuple(_facts(now, kept, sheet, lead)),
        marks,
        chart,
        shown,
        caption,
        judgements,
        policy,
        tuple(_sure(lead, first, now, sheet, chosen=bool(after))),
        tuple(_untested(now, cards, here)),
        tuple(_never(lead, cards, made_up)),
        tuple(_commands(data)),
        str(now.runs[0].environment.get("uge_core") or ""),
        digest,
        {name: cut(text, _LONGEST[name]) for name, text in texts.items()},
        len(kept),
        max(0, len(here) - len(marks)),
    )


def _short(card: Card) -> Card:
    """The card with labels that leave room for figures."""
    before = None if card.before is None else replace(card.before, label=cut(card.before.label, 56))

    def brief(text: str) -> str:
        return text.replace(card.attribute, cut(card.attribute, 40)) if card.attribute[40:] else text

    return replace(
        card,
        headline=cut(brief(card.headline), 110),
        sentence=cut(brief(card.sentence), 300),
        details=tuple(map(brief, card.details)),
        before=before,
        now=replace(card.now, label=cut(card.now.label, 56)),
    )


def _marks(rows: Sequence[Fold], before: Fold | None, now: Fold, attribute: str) -> Iterator[Mark]:
    ordered = [row for row in (before, now) if row] + [row for row in rows if row not in (before, now)]
    letters = iter(string.ascii_uppercase)
    for row in ordered[:MOST_MARKS]:
        if attribute not in {a for run in row.runs for a in audited_attributes(run)}:
            continue
        side = judged(None, None, row, attributes=[attribute])[0].now
        if side.auc is not None and side.quality is not None:
            role = "A" if row is before else "B" if row is now else ""
            color = method_class(side.method).color
            yield Mark(next(letters), row.label, color, side.auc, side.quality, role, side.usable.counts)


def _maps(
    view: GapView | None, rows: Sequence[Fold], kept: Mapping[str, Mapping[str, Any]]
) -> tuple[tuple[HeatMap, ...], str]:
    if view is None or view.table.empty:
        return (), "Demographic parity was not measured of these embeddings."
    told = records(view.table)
    several = bool(view.table["b"].notna().any())
    names = list(dict.fromkeys(c[end] for c in told for end in ("a", "b") if c[end] is not None))
    order = [g for g in view.groups if g in names] or names
    shown = order[:MOST_GROUPS]
    by_pair = {frozenset((c["a"], c["b"])) if several else c["a"]: c for c in told}
    maps = []
    for name, side in zip(("before", "after"), view.sides, strict=False):

        def cell(a: str, b: str | None, name: str = name) -> Square:
            found = by_pair.get(frozenset((a, b)) if several else a)
            if found is None:
                return Square("", "")
            if found[f"{name}_suppressed"]:
                return Square(SUPPRESSED, "")
            value = found[f"{name}_value"]
            thin = value is not None and value == value and not found[f"{name}_counts"]
            made = square(None if value is None or value != value else float(value), view.scale, "none")
            return replace(made, style="", text=f"{made.text} (thin)") if thin else made

        lines = [
            (cut(a, 12), tuple(cell(a, b) if i <= j else Square("", "") for i, b in enumerate(shown)))
            if several
            else (cut(a, 12), (cell(a, None),))
            for j, a in enumerate(shown)
        ]
        maps.append(
            HeatMap(
                short_label(side.label, side.method),
                tuple(cut(g, 9) for g in shown) if several else (),
                tuple(lines),
                _gap_words(side, gap_row(kept[side.run_id]["rows"], view.attribute, view.metric, view.form)),
            )
        )
    counted = [int(n) for s in ("before", "after")[: len(view.sides)] for n in view.table[f"{s}_n"] if n]
    n = f"; n from {min(counted):,} to {max(counted):,} pairs a cell" if counted else ""
    seeds = [row for row in rows if len(row.runs) > 1]
    one = f"; of seed {seeds[0].runs[0].config['seed']} alone" if seeds and "seed" in seeds[0].runs[0].config else ""
    left = (
        f" The {len(shown)} largest of {len(order)} groups; the others are in the CSV." if order[len(shown) :] else ""
    )
    balanced = (
        ", where as many pairs with a link as without are compared (no density of links)"
        if view.form == "calibrated"
        else ""
    )
    pairs = "each pair of groups" if several else "each group"
    return tuple(maps), (
        f"Heat maps: demographic parity of {cut(view.attribute, 24)}: {view.what} of a link{balanced}, {pairs}{n}{one}. Deeper is likelier; "
        f"both share one scale. Alike cells are better.{left}"
    )


def _gap_words(side: GapSide, row: Mapping[str, Any] | None) -> str:
    """The largest gap with interval, floors and verdict."""
    if row is None or row["value"] is None:
        return "Not enough evidence for a gap."
    floors = ((", by chance", row["floor_random"]), (", of the training degree alone", row.get("floor_degree")))
    beside = "".join(f"{name} {value:.3f}" for name, value in floors if value is not None)
    p = "" if row["p_value"] is None else f" (p = {row['p_value']:.2g})"
    return f"Largest gap {row['value']:.3f}{interval(row['ci_low'], row['ci_high'])}{beside}: {side.verdict}{p}."


def _judgements(rows: Sequence[Fold], kept: Mapping[str, Mapping[str, Any]]) -> tuple[tuple[Judgement, ...], str]:
    """What the policy blocks of the records say, where they have one."""
    out, names = [], []
    for row in rows:
        blocks = [block for run in row.runs if (block := kept[run.id].get("policy"))]
        if blocks:
            worst = next(b for v in ("fail", "not enough evidence", "pass") for b in blocks if b["verdict"] == v)
            names += [str(b["name"]) for b in blocks]
            order = ("fail", "not enough evidence", "pass")
            ranked = sorted(worst["rules"], key=lambda r: order.index(r["verdict"]) if r["verdict"] in order else 3)
            rules = tuple((str(r["verdict"]), str(r["sentence"])) for r in ranked)
            out.append(Judgement(row.label, str(worst["verdict"]), rules))
    return tuple(out), ", ".join(dict.fromkeys(names))


def _digest(shas: Sequence[str]) -> str:
    """The record's SHA-256; of several that of their SHA-256 one after another."""
    return shas[0] if len(shas) == 1 else hashlib.sha256("".join(shas).encode()).hexdigest()


_KNOWN = re.compile(r"permutation test \(Pillai's trace, (\d+) nodes")
_LEFT_OUT = re.compile(r"([\d,]+) people are left out: ([^;]+)")


def _facts(now: Fold, kept: Mapping[str, Mapping[str, Any]], sheet: Sheet, lead: Card) -> Iterator[tuple[str, str]]:
    record = kept[now.key]
    data = record["dataset"]
    yield "Data", cut(str(data["name"]), 80)
    yield "Source", cut(sheet.source, 160) or "not said in its dataset.yaml"
    yield "Licence", cut(sheet.licence, 80) or "not said in its dataset.yaml"
    nodes = "nodes (people and items)" if _bipartite(record) else "people"
    yield "Size", f"{data['num_nodes']:,} {nodes}, {data['num_edges']:,} edges"
    people = lead.now.auc.n if lead.now.auc else None
    links = lead.now.quality.n if lead.now.quality else None
    learned = _learned_from(record, lead.attribute)
    held = [
        f"{people:,} people tested by attackers" if people else "",
        f"who learned from {learned:,} others" if people and learned else "",
        f"{links:,} links ranked" if links else "",
    ]
    yield "Tested", ", ".join(filter(None, held)) or ("not known" if lead.attribute else "no attribute of people")
    yield "Fingerprint", f"{data['fingerprint']}, SHA-256 of the graph"
    yield "Left out", _left_out(record)


def is_made_up(now: Fold, sheet: Sheet) -> bool:
    """The data came with the package, or what is said of them says that nobody in them is real."""
    data = now.runs[0].dataset
    return bool(data.get("shipped")) or _MADE_UP in sheet.source


def _learned_from(record: Mapping[str, Any], attribute: str) -> int | None:
    """How many people attackers learned from: those whom the permutation test was over, but for those tested."""
    for row in record["rows"]:
        if (row["attribute"], row["attacker"], row["metric"]) == (attribute, "worst", "auc"):
            found = _KNOWN.search(row["note"] or "") if row["exposure"] != "unseen" and row["n"] else None
            if found and int(found[1]) > row["n"]:
                return int(found[1]) - int(row["n"])
    return None


def _bipartite(record: Mapping[str, Any]) -> bool:
    """Whether nodes are of two kinds: there DP's cells are single groups."""
    return any(c["b"] is None for row in record["rows"] if row["metric"] == "dp" for c in row["cells"])


def _left_out(record: Mapping[str, Any]) -> str:
    """Who is in no figure, and why."""
    told: dict[str, list[str]] = {}
    for row in record["rows"]:
        if row["attribute"] and (found := _LEFT_OUT.search(row["note"] or "")):
            told.setdefault(f"{found[1]} people ({found[2].strip()})", []).append(str(row["attribute"]))
    groups = [f"{what} of {', '.join(cut(a, 24) for a in dict.fromkeys(whose))}" for what, whose in told.items()]
    missing = _MISSING.get(str(record["config"].get("unknown")), "")
    exact = "nobody: it was measured with --exact and is not to be passed on" if "disclosure" in record else ""
    nobody = "nobody is left out for being in a small group (under twelve people)"
    return cut("; ".join(filter(None, (exact or "; ".join(groups) or nobody, missing))), 260)


def _sure(lead: Card, first: Fold | None, now: Fold, sheet: Sheet, *, chosen: bool) -> Iterator[str]:
    """How sure the findings are."""
    if not lead.attribute:
        yield "No attacker was tried, so there is nothing to be sure of."
    tried = attackers_tried(now.runs[0], lead.attribute)
    names = attacker_labels(tried.split(", ")) if tried and "earlier" not in tried else {}
    if tried:
        yield f"The strongest of these attackers counts: {', '.join(names.values()) or tried}."
    # What changed stands on its card, what a leak is beside the threshold.
    for text in lead.details[1 if first else 0 :]:
        if text.startswith("It is one of"):
            which = "B" if first else "The embedding"
            who = f"was chosen by who made this report{f' ({cut(sheet.author, 30)})' if sheet.author else ''}"
            by = who if chosen else "is the last treated one here, as none was named"
            yield f"{text} {which} {by}. What is not in this report is not counted."
        elif not text.startswith("A leak is"):
            yield text


def _untested(now: Fold, cards: Sequence[Card], rows: Sequence[Fold]) -> Iterator[str]:
    config = now.runs[0].config
    names = ", ".join(cut(c.attribute, 16) for c in cards[:6]) + (f" and {len(cards) - 6} more" if cards[6:] else "")
    yield f"Attributes besides {names}; any other may be readable." if cards else "Any attribute; each may be readable."
    run = now.runs[0]
    tried = set(attackers_tried(run, cards[0].attribute).split(", ")) if cards else {""}
    left = [name for name in DEFAULT_ATTACKERS if name not in tried] if tried != {""} else []
    more = f" ({', '.join(left)} among them)" if left else ""
    known = f"Attackers besides these{more}, or who know more than the embedding and the people they learn from."
    yield known if cards else "Any attacker."
    split = config.get("split_seed")
    seeds = many(len(now.runs), "training seed")
    yield f"Other splits of people and links{'' if split is None else f' than split {split}'}, and seeds besides {seeds}."
    yield "People who join later, another graph, and what a program that uses the embedding decides."


def _never(lead: Card, cards: Sequence[Card], made_up: bool) -> Iterator[str]:
    name = cut(lead.attribute, 24)
    unsure = [c for c in cards if c.finding == "not shown" or (c.finding == "reduced" and not c.still_leaks)]
    read = [cut(c.attribute, 16) for c in unsure if c.now.auc and c.now.auc.low is not None and c.now.auc.low > 0.5]
    several = listed([*read[:3], *(["others"] if read[3:] else [])]) if read else ""
    also = f"; {'that' if len(read) == 1 else 'those'} of {several} {'lies' if len(read) == 1 else 'lie'} above a coin"
    none = f"No leak shown means that no interval lies above the threshold{also if read else ''}."
    nothing = "That nothing can be read of people. No attacker was tried, so none could show anything."
    yield f"That {name} cannot be read. {none}" if name else nothing
    if made_up:
        yield "That an embedding of real people, made in the same way, is anonymous: it would be personal data of those in it."
    else:
        yield "That the embedding is anonymous. It stays personal data of those in it."
    yield "That decisions made with it are lawful or treat groups alike: these figures are of predicted links alone."
    yield "That it holds after another training or on other data. Two figures whose difference is not shown may differ."


def _commands(data: str) -> Iterator[tuple[str, str]]:
    where = f" --data {data}" if data else " --data FOLDER"
    yield f"uge rerun report.json{where}", "trains and audits it again and says what moved beyond its interval"
    yield (
        "uge verify report.html",
        "checks this file against the stored audits and the embeddings, where the store is at hand",
    )


def digest_words(number: int) -> str:
    """What `Summary.digest` is of."""
    return "SHA-256 of the record" if number == 1 else f"SHA-256 of the {number} records' SHA-256 one after another"


def all_attributes(rows: Iterable[Fold]) -> list[str]:
    """Of all runs, in their order."""
    return list(dict.fromkeys(a for row in rows for run in row.runs for a in audited_attributes(run)))
