"""A verdict as a picture: how well an attacker reads an attribute, from a coin to certain, before and after.

HTML and CSS alone, so that a page and a printed report draw the same. Text is text; names are escaped.
"""

from __future__ import annotations

from collections.abc import Iterator

from uge_core.runs.names import method_class
from uge_core.views.figures.look import escape, faded, ink
from uge_core.views.points import Reading
from uge_core.views.verdicts import Card, Side
from uge_core.views.words import interval

STYLE = """
.uge-gauge { font-size: 14px; line-height: 1.35; margin: 0 0 .4rem; }
.uge-gauge .lane { display: grid; grid-template-columns: minmax(0, 1fr) auto; column-gap: 12px; margin-top: 6px; }
.uge-gauge .lane b { font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
.uge-gauge .lane span { overflow-wrap: anywhere; }
.uge-gauge .track { position: relative; height: 22px; border-left: 1.5px solid currentColor; border-right: 1px solid; margin: 2px 0; }
.uge-gauge .track * { position: absolute; box-sizing: border-box; }
.uge-gauge .rail { left: 0; right: 0; top: 10px; border-top: 1.5px solid; opacity: .35; }
.uge-gauge .zone { left: 0; top: 0; bottom: 0; }
.uge-gauge .ends { top: 8px; height: 6px; border-radius: 3px; min-width: 2px; }
.uge-gauge .dot { top: 3px; width: 16px; height: 16px; margin-left: -8px; border-radius: 50%; border: 3px solid; }
.uge-gauge .axis { display: flex; justify-content: space-between; font-size: 12.5px; }
.uge-gauge .none { font-size: 13px; }
"""
"""What a page that holds such pictures needs once."""


def gauge(card: Card, *, dark: bool = False) -> str:
    """`tracks` with their style, for a page that holds nothing else of it."""
    return f"<style>{STYLE}</style>{tracks(card, dark=dark)}"


def tracks(card: Card, *, dark: bool = False) -> str:
    """The verdict's dots with their intervals, each on a track that begins at a coin's 0.5 and ends at 1.

    Args:
        card: the verdict.
        dark: the page is dark.
    """
    color = ink(dark)
    lanes = "".join(_lane(name, side, card, color) for name, side in _sides(card))
    margin = f"shaded: within {card.margin:g} of a coin"
    return (
        f'<div class="uge-gauge" style="color: {color}" role="img" aria-label="{escape(spoken(card))}">{lanes}'
        f'<div class="axis"><span>0.5, a coin ({margin})</span><span>1, certain</span></div></div>'
    )


def spoken(card: Card) -> str:
    """The picture in words."""
    parts = [
        f"{name} {side.label}: " + (f"{side.auc.value:.3f}{_ends(side.auc)}" if side.auc else "not measured")
        for name, side in _sides(card)
    ]
    return f"AUC of the strongest attacker on {card.attribute}, from 0.5, a coin, to 1. {'. '.join(parts)}."


def _sides(card: Card) -> Iterator[tuple[str, Side]]:
    if card.before is not None:
        yield "Before:", card.before
    yield ("After:" if card.before is not None else "Embedding:"), card.now


def _lane(name: str, side: Side, card: Card, color: str) -> str:
    shade = method_class(side.method).color
    auc = side.auc
    said = "not measured" if auc is None else f"{auc.value:.3f}{_ends(auc)}"
    zone = f'<i class="zone" style="width: {200 * card.margin:.2f}%; background: {faded(color, 0.13)}"></i>'
    drawn = ""
    if auc is not None:
        if auc.low is not None and auc.high is not None:
            left, right = _place(auc.low), _place(auc.high)
            drawn += f'<i class="ends" style="left: {left:.2f}%; width: {right - left:.2f}%; background: {faded(shade, 0.55)}"></i>'
        fill = shade if side is card.now and side.usable.counts else "transparent"
        drawn += (
            f'<i class="dot" style="left: {_place(auc.value):.2f}%; border-color: {shade}; background: {fill}"></i>'
        )
    n = "" if auc is None or auc.n is None else f", n = {auc.n:,}"
    unfit = "" if side.usable.counts else ", not usable"
    return (
        f'<div class="lane"><span>{name} {escape(side.label)}{unfit}</span><b>{said}{n}</b></div>'
        f'<div class="track">{zone}<i class="rail"></i>{drawn}</div>'
    )


def _ends(auc: Reading) -> str:
    return interval(auc.low, auc.high)


def _place(auc: float) -> float:
    """Per cent of the track; below a coin is at its start."""
    return 200 * (min(max(auc, 0.5), 1.0) - 0.5)
