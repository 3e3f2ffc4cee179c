"""How long pictures take: by those that were made on this machine, else by a rule of thumb, as a range.

    first of a job   s + w      w = pace n sqrt(n / 20,000), n people; s to load and compile what it needs
    each other       w          the probe's confidence of one run: 0.4 ms a person and attribute

What each took is kept beside the rates of passes and audits (`runs.timing`), in units of this rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from uge_core.explore.projection.cache import projections
from uge_core.machine import cores
from uge_core.runs.timing import Span, Timing, load_average, machine

CONFIDENCE = "confidence"
_NEWEST = 8  # that are looked at
_SPREAD = 1.25  # between two pictures that are alike
_RULE = 2.0  # what a rule of thumb may be wrong by, either way


def kind(method: str, *, first: bool) -> str:
    """What a picture's time is kept under; the first of a job takes longer."""
    return f"{method}/{'first' if first else 'next'}"


def work(method: str, num_people: int, *, first: bool, num_attributes: int = 1) -> float:
    """Seconds by the rule of thumb."""
    if method == CONFIDENCE:
        return 4e-4 * num_people * num_attributes
    made = projections()[method]
    return made.pace / 1e6 * num_people * sqrt(num_people / 20_000) + (made.starts if first else 0.0)


def expected(timings: Sequence[Timing], method: str, num_pictures: int, num_people: int, num_attributes: int) -> Span:
    """How long a job takes that makes pictures by one method, and the probe's confidence of each run.

    Args:
        timings: what was measured, the newest first.
        method: a name from ``projections()``.
        num_pictures: how many.
        num_people: how many are drawn.
        num_attributes: whose confidence is made.
    """
    low = high = 0.0
    known = True
    parts = [(method, True, 1, 1), (method, False, num_pictures - 1, 1)]
    for name, first, times, attributes in (*parts, (CONFIDENCE, False, num_pictures, num_attributes)):
        usual = times * work(name, num_people, first=first, num_attributes=attributes)
        if not usual:
            continue
        rates = _rates(timings, kind(name, first=first))
        known = known and bool(rates)
        spread = _SPREAD if rates else _RULE
        low += usual * min(rates, default=1.0) / spread
        high += usual * max(rates, default=1.0) * spread
    busy = 1.0 + load_average() / cores()
    source = "earlier pictures here" if known else "a rule of thumb"
    return Span(low, high * busy, source, known)


def _rates(timings: Sequence[Timing], kind: str) -> list[float]:
    mine = [t for t in timings if t.what == "project" and t.kind == kind and t.machine == machine() and t.work > 0]
    return [t.seconds / t.work for t in mine[:_NEWEST]]
