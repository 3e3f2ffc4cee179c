"""What a report tells of each attribute beside its verdict: what got worse, what is not ruled out, what the cost allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from uge_core.audit.base import RowRecord
from uge_core.runs.stored_run import StoredRun
from uge_core.views.points import Fold
from uge_core.views.report.wording import cut
from uge_core.views.rows import audit_rows, lead_of, matched_row, matching_row
from uge_core.views.separation import Measured, Separation, separation
from uge_core.views.verdicts import Card

BADGES: Mapping[str, str] = {
    "leaks": "LEAKS",
    "reduced": "REDUCED",
    "not shown": "NO LEAK SHOWN",
    "too few people": "NOT ENOUGH EVIDENCE",
    "not usable": "NOT USABLE",
}
_MOST_NAMED = 4


@dataclass(frozen=True)
class Told:
    """One attribute's card in a report's words.

    Attributes:
        badge: the verdict in capitals, with what is worse or remains.
        worse: more of it is shown to be read than before.
        by_seed: the lower end of the seed's interval that alone shows the leak, where that of the mean does not; or "".
        up_to: up to which AUC a leak is not ruled out where none is shown; "" where one is, or the interval ends below
            the threshold.
        cost: what became of link quality, with the difference's interval and the loss that it allows; "" without.
    """

    badge: str
    worse: bool
    by_seed: str
    up_to: str
    cost: str

    @property
    def order(self) -> tuple[bool, bool]:
        """What got worse comes first, what one seed alone shows last."""
        return not self.worse, bool(self.by_seed)

    @property
    def open(self) -> str:
        """`up_to` or `by_seed` as a sentence."""
        if self.by_seed:
            return f"It leaks by one of its seeds, whose interval begins at {self.by_seed}."
        return f"A leak of up to {self.up_to} is not ruled out." if self.up_to else ""


def told(card: Card, before: Fold | None, now: Fold) -> Told:
    """A card's words, by the rows of the two embeddings alone."""
    leak, quality = _changes(card, before, now)
    worse = leak is not None and leak.state == "higher"
    badge = BADGES[card.finding]
    if card.still_leaks:
        badge += ", STILL LEAKS"
    elif card.finding == "leaks" and worse:
        badge += ", MORE THAN BEFORE"
    return Told(badge, worse, _by_seed(card), _up_to(card), _cost(card, quality))


def _changes(card: Card, before: Fold | None, now: Fold) -> tuple[Separation | None, Separation | None]:
    """Of the strongest attacker's AUC and of the link quality that the card's cost names."""
    if before is None:
        return None, None
    leaks = [list(_leaks(fold, card.attribute)) for fold in (before, now)]
    ranked = [[(run, row) for run, leak in side if (row := _ranked(run, card, leak))] for side in leaks]
    return separation(None, *leaks), separation(None, *ranked)


def _leaks(fold: Fold, attribute: str) -> Iterator[Measured]:
    for run in fold.runs:
        if row := lead_of(audit_rows(run, metric="auc", attribute=attribute, attacker="worst")):
            yield run, row


def _ranked(run: StoredRun, card: Card, leak: RowRecord) -> RowRecord | None:
    if "matched" in card.cost:
        return matched_row(run.rows, card.attribute, leak["exposure"])
    return matching_row(audit_rows(run, metric="ndcg_at_10", variant="held-out"), leak["exposure"])


def _by_seed(card: Card) -> str:
    auc, most = card.now.auc, card.now.leaking
    if auc is None or auc.low is None or most is None or not (card.finding == "leaks" or card.still_leaks):
        return ""
    return f"{most:.3f}" if auc.low <= max(0.5 + card.margin, auc.random or 0.0) < most else ""


def _up_to(card: Card) -> str:
    shown = card.finding == "not shown" or (card.finding == "reduced" and not card.still_leaks)
    high = card.now.auc.high if card.now.auc else None
    return f"{high:.3f}" if shown and high is not None and high > 0.5 + card.margin else ""


def _cost(card: Card, quality: Separation | None) -> str:
    """The card's cost with the difference's interval, and the loss that it allows where the card does not say it."""
    if not card.cost or quality is None or quality.low is None or quality.high is None:
        return card.cost
    loss = f"a loss of up to {-quality.low:.3f} is not ruled out" if quality.low < 0 else ""
    more = f": {loss}" if loss and loss not in card.cost else ""
    return f"{card.cost} The difference lies between {quality.low:+.3f} and {quality.high:+.3f}{more}."


def besides(lead: Card, others: Sequence[Card], words: Mapping[str, Told]) -> str:
    """Which other attributes leak, those first that leak more than before, with the AUC before and after.

    Args:
        lead: the attribute that was told already.
        others: the other cards.
        words: each card's, by attribute.
    """
    if lead.finding == "not usable" or not others:
        return ""
    leaking = [c for c in others if c.finding == "leaks" or c.still_leaks]
    risen = [c for c in others if words[c.attribute].worse and c not in leaking]
    if not leaking and not risen:
        return "No leak is shown of any other attribute tested."
    ranked = sorted(leaking, key=lambda c: (*words[c.attribute].order, c.still_leaks))
    parts = [_clause(c, words[c.attribute]) for c in [*ranked, *risen]]
    more = f"; and {len(parts) - _MOST_NAMED} more, below" if parts[_MOST_NAMED:] else ""
    return f"Besides, {'; '.join(parts[:_MOST_NAMED])}{more}."


def _clause(card: Card, words: Told) -> str:
    name = cut(card.attribute, 24)
    if card.still_leaks:
        said = f"{name} is reduced, still leaks"
    elif card.finding == "leaks":
        said = f"{name} leaks{', more than before' if words.worse else ''}"
    else:
        said = f"{name} is read better than before, no leak is shown"
    if words.by_seed:
        said += " by one of its seeds"
    after = card.now.auc
    if after is None:
        return said
    before = card.before.auc if card.before else None
    if before is None:
        return f"{said} ({after.value:.3f})"
    ends = f"{before.value:.3f}", f"{after.value:.3f}"
    return (
        f"{said} ({ends[0]} before and after)" if ends[0] == ends[1] else f"{said} ({ends[0]} before, {ends[1]} after)"
    )
