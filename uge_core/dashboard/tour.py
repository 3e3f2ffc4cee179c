"""The tour of a first start: five stops, and whether it is over."""

from __future__ import annotations

from collections.abc import Sequence

from uge_core.files import make_folder
from uge_core.runs.store import RunStore

TOUR_STOPS: Sequence[tuple[str, str, str]] = (
    (
        "overview",
        "Overview",
        "A card for each attribute: how well an attacker reads it, from a coin to certain, before and after. Run A and run "
        "B above it are what is compared; every page follows them.",
    ),
    (
        "leakage",
        "Leakage",
        "All methods side by side. What lies near the left edge is no better than guessing; whiskers say how sure that is.",
    ),
    (
        "tradeoff",
        "Trade-off",
        "Move λ: what less leakage costs in link quality. A click on a point makes it run B everywhere.",
    ),
    ("fairness", "Fairness", "Which pairs of groups get links predicted less often, and what run B changed."),
    (
        "report",
        "Report",
        "The finding in two pages that can be signed, with an appendix that others can check. Then bring your own graph on "
        "the Data page.",
    ),
)
"""Page, title and what there is to see."""
_MARK = "tour-over"


def tour_over(store: RunStore) -> bool:
    """Somebody took the tour of this store, or did not want it."""
    return (store.root / _MARK).exists()


def end_tour(store: RunStore) -> None:
    """It is not offered again; where the store cannot be written it is, next time."""
    try:
        make_folder(store.root)
        (store.root / _MARK).touch()
    except OSError:
        return
