"""What is shown of each attribute, as one of five verdicts with its figures: what a first page and a report begin with.

For an embedding, and where there is one another "before" it:

- **not usable**: it says nothing about links, so no other figure of it is a verdict (`views.rows.usable`).
- **too few people**: the evidence is not enough. The strongest attacker was not measured, has no interval, or one so wide
  (over 0.2) that neither a leak nor its absence can be told; or, where no leak is shown, attackers that are tried by
  default did not try, or it could not be told whether the embedding is usable. The headline says which.
- **reduced**: the attacker's AUC is lower than before by a test (`views.separation`), on people hidden from training. It
  *still leaks* as long as the next holds.
- **leaks**: the lower bound of the AUC of the strongest attacker is above 0.5 + margin, 0.05 unless it is said otherwise,
  and above what random embeddings give: that of the mean, or of any seed, as one of them is handed out.
- **not shown**: none of these.

People hidden from training are those whose values it did not see; of an embedding from elsewhere nobody here knows. Where
an attribute was measured on others, a leak is a leak, but less of it is no success: such a row never says reduced.

Of one seed the interval is over the people tested. Of several it reaches over both: from the lower of the mean's end
over seeds and the mean of the ends over people, to the higher of the two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from uge_core.audit.attacker_order import DEFAULT_ATTACKERS, chosen_among
from uge_core.audit.base import RowRecord
from uge_core.runs.names import EXTERNAL
from uge_core.runs.store import RunStore
from uge_core.views.points import COMPARED, Fold, Reading, folded, folds, reading
from uge_core.views.rows import (
    AGAIN,
    Verdict,
    as_shown,
    audit_rows,
    audited_attributes,
    bounds,
    lead_of,
    matched_row,
    matching_row,
)
from uge_core.views.separation import Measured, Separation, difference_words, separation
from uge_core.views.words import many, rough

MARGIN = 0.05
WIDEST = 0.2
Finding = Literal["leaks", "reduced", "not shown", "too few people", "not usable"]
VERDICT_ICONS: Mapping[Finding, str] = {
    "leaks": "visibility",
    "reduced": "trending_down",
    "not shown": "visibility_off",
    "too few people": "group_off",
    "not usable": "block",
}
"""Of Material Symbols."""
_MOST_POLICIES = 10
_UNTESTED = re.compile(r"AUC over \d+ of \d+ tested values; too few nodes: [^;]+")
_POLICY_ORDER = ("fail", "not enough evidence", "pass")


@dataclass(frozen=True)
class Side:
    """The strongest attacker on one embedding, and the embedding's link quality.

    Attributes:
        key: id of the run that stands for it.
        label: method and lambda, with the number of seeds.
        method: the method's name.
        auc: with the interval over people, and over seeds where there are several; None where it was not measured.
        hidden: measured on people hidden from training, or training reads no attribute.
        leaking: the lower bound of the mean, or of the seed that gives most away, None without intervals.
        people_wide: the mean width of the seeds' intervals over people, None without.
        lacking: what the evidence lacks where it shows no leak: "attackers", "usability", or "".
        notes: the remarks of the attackers' rows.
        quality: NDCG@10 of the same member, by the metric that both sides have; None without.
        usable: whether it says anything about links.
    """

    key: str
    label: str
    method: str
    auc: Reading | None
    hidden: bool
    leaking: float | None
    people_wide: float | None
    lacking: str
    notes: tuple[str, ...]
    quality: Reading | None
    usable: Verdict


@dataclass(frozen=True)
class Step:
    """What to do next.

    Attributes:
        page: the page's file without its ending.
        label: for a button.
        why: one sentence.
    """

    page: str
    label: str
    why: str


@dataclass(frozen=True)
class Card:
    """One attribute's verdict.

    Attributes:
        attribute: whose.
        treated: the embedding that the verdict is of was trained to hide it.
        finding: one of five.
        still_leaks: it is reduced, and leaks.
        headline: the verdict in a few words.
        sentence: the figures behind it, in plain words.
        cost: what became of link quality; "" with one embedding.
        details: how sure that is, by which test, n and floors, a sentence each.
        before: the embedding that is compared with, or None.
        now: the embedding that the verdict is of.
        margin: how far above a coin the lower bound of a leak lies.
        policy: what the rules of its policy about this attribute say together, or "".
        policy_words: the rules that were not kept, or all, with the policy's name; "" without.
        step: what to do next.
    """

    attribute: str
    treated: bool
    finding: Finding
    still_leaks: bool
    headline: str
    sentence: str
    cost: str
    details: tuple[str, ...]
    before: Side | None
    now: Side
    margin: float
    policy: str
    policy_words: str
    step: Step


def cards(
    store: RunStore, before: str | None, after: str | None, *, margin: float = MARGIN, attributes: Sequence[str] = ()
) -> tuple[Card, ...]:
    """A card for each attribute that was audited of an embedding, treated ones first.

    Args:
        store: the run store.
        before: id of a run, which stands for all that differ from it in their seed alone; or None.
        after: the same of the embedding that the verdict is of; None takes `before`.
        margin: how far above a coin the lower bound of a leak lies.
        attributes: these alone, in this order; none takes all.

    Raises:
        RunNotFound: no such run.
    """
    ids = [i for i in dict.fromkeys((before, after)) if i]
    asked = [store.load(i) for i in ids]
    data = {run.dataset["fingerprint"] for run in asked}
    every = [r for r in store.list(audits=False, archived=True) if r.audited and r.dataset["fingerprint"] in data]
    there = [r for r in every if r.archived is None or r.id in ids]
    found = {fold.key: fold for i in ids if (fold := folded(there, i))}  # two seeds of one embedding are one
    whole = {run.id: run for run in store.list(only=[i for fold in found.values() for i in fold.ids])}
    sides = [Fold(f.label, tuple(whole.get(r.id, r) for r in f.runs)) for f in found.values()]
    if not sides:
        return ()
    first = sides[0] if len(sides) > 1 else None
    now = sides[-1]
    whole_row = folded(every, now.key)
    return judged(
        store,
        first,
        now,
        margin=margin,
        attributes=attributes,
        tried=tried(folds(every), now),
        archived=0 if whole_row is None else len(whole_row.runs) - len(now.runs),
    )


def tried(rows: Iterable[Fold], now: Fold) -> Mapping[str, int]:
    """How many embeddings were trained to hide each attribute on the graph and split of one of them, as it was."""

    def like(row: Fold) -> tuple[Any, ...]:
        run = row.runs[0]
        return run.dataset["fingerprint"], *(run.config.get(name) for name in COMPARED)

    return Counter(name for row in rows if like(row) == like(now) for name in row.runs[0].config["sensitive"])


def judged(
    store: RunStore | None,
    before: Fold | None,
    now: Fold,
    *,
    margin: float = MARGIN,
    attributes: Sequence[str] = (),
    tried: Mapping[str, int] | None = None,
    archived: int = 0,
) -> tuple[Card, ...]:
    """The same of runs that are at hand, with their rows; without a store by these rows alone.

    `tried` is how many embeddings of the graph were trained to hide each attribute, of which this is one; `archived` how
    many of its seeds are archived.
    """
    among = tried or {}
    treated = list(now.runs[0].config["sensitive"])
    found = dict.fromkeys(a for run in now.runs for a in audited_attributes(run))
    names = list(attributes) or sorted(found, key=lambda a: (a not in treated, treated.index(a) if a in treated else 0))
    return tuple(_card(store, before, now, name, margin, among.get(name, 1), archived) for name in names)


def _card(
    store: RunStore | None, before: Fold | None, now: Fold, attribute: str, margin: float, among: int, archived: int
) -> Card:
    rows = [_leak_rows(fold, attribute) if fold else [] for fold in (before, now)]
    metric, ranked = _quality_rows(rows, attribute)
    first = None if before is None else _side(before, attribute, rows[0], ranked[0])
    second = _side(now, attribute, rows[1], ranked[1])
    leak = separation(store, rows[0], rows[1]) if before else None
    quality = separation(store, ranked[0], ranked[1]) if before and all(ranked) else None
    finding, still = _finding(second, leak, margin)
    apart = [] if before is None else _apart(before, now)
    policy, policy_words = _policy(now, attribute)
    treated = attribute in now.runs[0].config["sensitive"]
    return Card(
        attribute,
        treated,
        finding,
        still,
        _headline(attribute, finding, still, leak, second),
        _sentence(attribute, first, second, leak, finding, apart),
        _cost(first, second, leak if treated else None, quality, metric),
        tuple(_details(attribute, second, leak, quality, metric, finding, margin, among if treated else 1, archived)),
        first,
        second,
        margin,
        policy,
        policy_words,
        _step(finding, still, treated, second),
    )


_COMPARED_WORDS = {"backbone": "backbone", "split_seed": "split", "epochs": "epochs", "dim": "number of dimensions"}


def _apart(before: Fold, now: Fold) -> list[str]:
    """What else than the method the two differ in."""
    a, b = before.runs[0].config, now.runs[0].config
    return [_COMPARED_WORDS[name] for name in COMPARED if a.get(name) != b.get(name)]


def _leak_rows(fold: Fold, attribute: str) -> list[Measured]:
    """The strongest attacker's AUC of each seed, on people hidden from training where there is such a row."""
    found = [(run, lead_of(audit_rows(run, metric="auc", attribute=attribute, attacker="worst"))) for run in fold.runs]
    return [(run, row) for run, row in found if row is not None]


def _side(fold: Fold, attribute: str, rows: Sequence[Measured], ranked: Sequence[Measured]) -> Side:
    shown = [as_shown(row, signed=run.signed) for run, row in rows]
    ok = [r for r in shown if r["value"] is not None and r["evidence"] == "ok"]
    ends = [b for r in ok if (b := bounds(r))]
    auc = over_people_and_seeds(shown)
    lows = [low for low in (auc.low if auc else None, *(e[0] for e in ends)) if low is not None]
    return Side(
        fold.key,
        fold.label,
        str(fold.runs[0].config["method"]),
        auc,
        bool(rows) and all(row["exposure"] != "seen" and run.config["method"] != EXTERNAL for run, row in rows),
        max(lows) if lows and auc and auc.low is not None else None,
        sum(e[1] - e[0] for e in ends) / len(ends) if ends else None,
        _lacking(fold, rows),
        tuple(row["note"] or "" for _, row in rows),
        over_people_and_seeds([row for _, row in ranked]),
        fold.verdict,
    )


def _lacking(fold: Fold, rows: Sequence[Measured]) -> str:
    """What is lacking before low leakage may be told: attackers of the default, or whether the embedding is usable."""
    if any(set(DEFAULT_ATTACKERS) - {*chosen_among(row["note"])} for _, row in rows):
        return "attackers"
    return "usability" if fold.verdict.state == "not known" else ""


def over_people_and_seeds(rows: Sequence[RowRecord | None]) -> Reading | None:
    """The rows of one figure's seeds as one, its interval over seeds and over people both."""
    together = reading(rows)
    if together is None or together.kind != "seeds":
        return together
    ok = [r for r in rows if r is not None and r["value"] is not None and r["evidence"] == "ok"]
    ends = [b for r in ok if (b := bounds(r))]
    if len(ends) < len(ok) or together.low is None or together.high is None:
        return replace(together, low=None, high=None, kind=None)  # an interval over seeds alone is none over people
    low = min(together.low, sum(e[0] for e in ends) / len(ends))
    high = max(together.high, sum(e[1] for e in ends) / len(ends))
    return replace(together, low=low, high=high)


_MATCHED = "matched NDCG@10"


def _quality_rows(
    rows: Sequence[Sequence[Measured]], attribute: str
) -> tuple[str, tuple[list[Measured], list[Measured]]]:
    """The link quality of both sides' members by one metric: matched where all have it, else the usual one."""
    matched = [[(run, matched_row(run.rows, attribute, row["exposure"])) for run, row in side] for side in rows]
    usual = [
        [
            (run, matching_row(audit_rows(run, metric="ndcg_at_10", variant="held-out"), row["exposure"]))
            for run, row in side
        ]
        for side in rows
    ]
    whole = all(row is not None for side in matched for _, row in side)
    first, second = ([(run, row) for run, row in side if row is not None] for side in (matched if whole else usual))
    return (_MATCHED if whole else "NDCG@10"), (first, second)


def _finding(now: Side, leak: Separation | None, margin: float) -> tuple[Finding, bool]:
    if not now.usable.counts:
        return "not usable", False
    auc = now.auc
    if auc is None or auc.low is None or auc.high is None or now.leaking is None:
        return "too few people", False
    leaks = now.leaking > max(0.5 + margin, auc.random or 0.0)
    if not leaks and (auc.high - auc.low > WIDEST or now.lacking):
        return "too few people", False
    if now.hidden and leak is not None and leak.state == "lower":
        return "reduced", leaks
    return ("leaks" if leaks else "not shown"), False


def _headline(attribute: str, finding: Finding, still: bool, leak: Separation | None, now: Side) -> str:
    more = ", more than before" if leak is not None and leak.state == "higher" else ""
    lacking = {"attackers": "too few attackers to tell", "usability": "it is not known whether the embedding is usable"}
    # Above a coin, yet not by the margin: neither a leak nor its absence.
    above = now.auc is not None and now.auc.low is not None and now.auc.low > 0.5
    left = "whether it still leaks is undecided" if above else "no leak is shown any more"
    few = lacking.get(now.lacking if now.leaking is not None else "", "too few people to tell")
    if few.startswith("too few people") and now.people_wide is not None and now.people_wide <= WIDEST:
        few = "too few seeds to tell"
    return {
        "leaks": f"{attribute} leaks{more}",
        "reduced": f"{attribute}: reduced, {'still leaks' if still else left}",
        "not shown": f"{attribute}: no leak is shown",
        "too few people": f"{attribute}: {few}",
        "not usable": f"{attribute}: the embedding is not usable",
    }[finding]


_CHANGES = {
    "lower": "the fall is shown",
    "higher": "the rise is shown",
    "not shown": "no difference is shown",
    "not comparable": "not compared",
}


def _sentence(
    attribute: str, before: Side | None, now: Side, leak: Separation | None, finding: Finding, apart: Sequence[str]
) -> str:
    if finding == "not usable":
        return f"{_capital(now.usable.why)}. What such an embedding does not give away is no success."
    if now.auc is None:
        return "The attackers could not be tested: too few people have a value, or too few of each value."
    said = (
        f"Of two people with different values of {attribute}, the strongest attacker picks the right one "
        f"{100 * now.auc.value:.1f} % of the time; a coin gets 50 %."
    )
    if before is None or before.auc is None or leak is None:
        return said
    other = f" (with another {' and '.join(apart)})" if apart else ""
    return f"{said} Before{other} it was {100 * before.auc.value:.1f} %: {_CHANGES[leak.state]}."


def _cost(before: Side | None, now: Side, leak: Separation | None, quality: Separation | None, metric: str) -> str:
    if before is None or before.quality is None or now.quality is None or quality is None:
        return ""
    change = _CHANGES[quality.state]
    if quality.state == "not shown" and quality.low is not None and quality.low < 0:
        change += f"; a loss of up to {-quality.low:.3f} is not ruled out"
    degree = now.quality.degree
    if degree is not None and now.quality.value <= degree:
        who = "neither ranks" if before.quality.value <= degree else "it does not rank"
        change += f"; {who} better than the training degree alone ({degree:.3f})"
    text = f"Link quality ({metric}) {before.quality.value:.3f} before, {now.quality.value:.3f} after: {change}."
    if leak is not None and leak.state in ("not shown", "higher") and quality.state == "lower":
        read = "more is read" if leak.state == "higher" else "no less is shown to be read"
        return f"Nothing is gained: {read}, and links are ranked worse. {text}"
    return text


def _details(
    attribute: str,
    now: Side,
    leak: Separation | None,
    quality: Separation | None,
    metric: str,
    finding: Finding,
    margin: float,
    among: int,
    archived: int,
) -> Iterator[str]:
    """How sure it is, by which test, and what it does not say."""
    if leak is not None:
        yield f"AUC, after against before: {difference_words(leak, 'people tested')}."
    if now.auc is not None:
        over = "the people tested and the seeds" if now.auc.seeds > 1 else "the people tested, for one training seed"
        n = "" if now.auc.n is None else f"n = {now.auc.n:,}; "
        yield f"{n}95 % intervals are over {over}."
    if now.auc is not None and now.auc.random is not None:
        yield f"The same attackers get {now.auc.random:.3f} from random embeddings."
    yield from dict.fromkeys(f"{part}." for note in now.notes for part in _UNTESTED.findall(note))
    if now.method == EXTERNAL:
        yield "It came from elsewhere: nobody here knows whose values its training saw, so that less of a leak is no success."
    elif now.auc is not None and not now.hidden:
        yield "The people tested are not hidden from training, so that less of a leak would be no success."
    if now.lacking == "attackers":
        yield f"Not all attackers that are tried by default tried; audit it again: {AGAIN.replace('RUN', now.key)}."
    if now.lacking == "usability":
        yield f"Whether it says anything about links is not known: {now.usable.why}."
    if finding in ("not shown", "reduced", "leaks"):
        yield f"A leak is a lower bound above {100 * (0.5 + margin):g} %. That none is shown is no proof that there is none."
    if archived:
        yield f"{many(archived, 'seed of it is', 'seeds of it are')} archived and not counted."
    if among > 1:
        yield (
            f"It is one of {among} embeddings that were trained to hide {attribute} and tested on the same people; who takes "
            "the best of several is flattered by chance."
        )
    auc = now.auc
    if finding == "too few people" and auc is not None and auc.n and auc.low is not None and auc.high is not None:
        width = auc.high - auc.low
        if now.people_wide is not None and now.people_wide > WIDEST:
            need = auc.n * (now.people_wide / WIDEST) ** 2
            yield f"The interval is too wide to tell; about {rough(need)} people tested would suffice."
        elif width > WIDEST:
            need = auc.seeds * (width / WIDEST) ** 2
            yield f"The seeds differ too much to tell; about {rough(need)} of them may suffice."
    if now.quality is not None:
        pays = "" if metric.startswith("matched") else f", which also pays for reading {attribute}"
        floors = [
            f"{name} {value:.3f}"
            for name, value in (
                ("a random order gives", now.quality.random),
                ("the training degree alone gives", now.quality.degree),
            )
            if value is not None
        ]
        n = "" if now.quality.n is None else f"n = {now.quality.n:,}"
        unit = "links" if metric.startswith("matched") else "people with links"
        test = [] if quality is None else [difference_words(quality, unit)]
        yield f"{_capital(metric)}{pays}: {', '.join(filter(None, (*test, n, *floors)))}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _policy(fold: Fold, attribute: str) -> tuple[str, str]:
    """What its policy's rules about the attribute say, the worst of its seeds; of very many the first, as each is a file."""
    verdicts: list[str] = []
    broken: list[str] = []
    names: list[str] = []
    for run in fold.runs[:_MOST_POLICIES]:
        block: Mapping[str, Any] = (run.audit or {}).get("policy") or {}
        rules = [
            r
            for r in block.get("rules", ())
            if r.get("attribute") in (attribute, None) and r["verdict"] in _POLICY_ORDER
        ]
        names += [str(block["name"])] if rules else []
        verdicts += [r["verdict"] for r in rules]
        broken += [r["sentence"] for r in rules if r["verdict"] != "pass"]
    if not verdicts:
        return "", ""
    verdict = next(v for v in _POLICY_ORDER if v in verdicts)
    told = list(dict.fromkeys(broken))
    more = f" {told[0]}" + (f" (and {len(told) - 1} more)" if len(told) > 1 else "") if told else ""
    of = f" (of the first {_MOST_POLICIES} seeds)" if len(fold.runs) > _MOST_POLICIES else ""
    return verdict, f"{', '.join(dict.fromkeys(names))}: {verdict}{of}.{more}"


def _step(finding: Finding, still: bool, treated: bool, now: Side) -> Step:
    if finding == "not usable":
        return Step(
            "runs",
            "Train it anew",
            "An embedding that says nothing about links cannot be judged; a smaller λ or more epochs may help.",
        )
    if finding == "too few people" and now.lacking and now.leaking is not None:
        return Step(
            "method",
            "Audit it again",
            "With all attackers of the default, by this version; the command stands under How sure is that.",
        )
    if finding == "too few people":
        return Step(
            "data", "Look at the data", "More people with a value, or fewer and larger groups, narrow the interval."
        )
    if finding == "leaks" and not treated:
        return Step(
            "runs", "Train a method that hides it", "Nothing was done about this attribute in the embedding shown."
        )
    if finding == "leaks" or still:
        return Step("tradeoff", "Look for a better λ", "The trade-off shows what less leakage costs.")
    return Step("report", "Write the report", "The finding with its figures, limits and how to repeat it, in one file.")
