"""Whether one embedding's figure is lower or higher than another's, by the strongest test that was made of the two.

In this order:

1. In pairs: of one run beside one run, a stored comparison measured both on the same people or links
   (`explore.comparison`), with Holm's p-values.
2. Over seeds: where both have the same k >= 3 training seeds and the same people, the mean difference d is beyond
   sqrt(t(0.975; k - 1)^2 s^2 / k + h_a^2 + h_b^2), with s the differences' standard deviation over seeds and h the mean
   half-width of the 95 % intervals over people: as if the two had nothing in common, so that what is shown holds for other
   seeds and other people. Differences under a hundredth are not shown by it, nor such as do not vary at all.
3. By intervals: the two 95 % intervals over people do not meet. This holds whatever the two have in common: if
   |a - b| > h_a + h_b, then |a - b| > 1.96 sd(a - b), as sd(a - b) <= sd(a) + sd(b). Of several seeds all must be so,
   on one side: each against the other's of the same seed, or against all of the other's where they differ in seeds.

Two are not compared where they are of different graphs, held out other shares of links or treat missing values
otherwise; where one was measured on people whose values training saw and the other was not; or where their strongest
attackers were chosen among different ones.

Where nothing is shown, `enough` says how many people, or seeds, would show a difference as large as the one measured:
an interval's half-width h shrinks with the square root of n, so n * (h / d)^2 of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from uge_core.audit.base import RowRecord
from uge_core.explore.comparison import other_people, paired_record
from uge_core.runs.names import EXTERNAL
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.views.points import ENOUGH_SEEDS
from uge_core.views.rows import as_shown, attackers_tried, bounds, order, pair_as_shown
from uge_core.views.words import interval, rough

_TIMES = 100  # as many people: beyond, a difference is none that anybody will show
_LEAST = 0.01
_NO_SPREAD = 1e-9


@dataclass(frozen=True)
class Separation:
    """What is shown of after - before.

    Attributes:
        state: "not comparable" where one was not measured, has no interval, or was attacked by others.
        difference: after - before, the mean over seeds that both have; None where it is not comparable.
        how: the test in words, or why there is none.
        enough: how many people or seeds would show the difference that was measured, in words; "" where it is shown,
            or under a hundredth, which is no finding that anybody should go after.
        low: lower end of the difference's 95 % interval by that test, or None. Of two intervals over people it reaches
            from the one's end to the other's, so that it covers whatever the two have in common.
        high: its upper end.
    """

    state: Literal["lower", "higher", "not shown", "not comparable"]
    difference: float | None
    how: str
    enough: str = ""
    low: float | None = None
    high: float | None = None

    @property
    def shown(self) -> bool:
        """A difference is shown."""
        return self.state in ("lower", "higher")


Measured = tuple[StoredRun, RowRecord]
"""A run of one seed with the row that is compared."""


def separation(store: RunStore | None, before: Sequence[Measured], after: Sequence[Measured]) -> Separation:
    """What is shown of the difference between two embeddings.

    Args:
        store: keeps the comparisons that were measured in pairs; None looks at none.
        before: runs that differ in their seed alone, each with its row of one metric.
        after: the same of the other embedding.
    """
    told = [[(run, as_shown(row, signed=run.signed)) for run, row in side if _known(row)] for side in (before, after)]
    if not all(told):
        return Separation("not comparable", None, "not measured of both")
    (first, x), (second, y) = told[0][0], told[1][0]
    if why := other_people(first, second, but=("split_seed",)):
        return Separation("not comparable", None, f"{why[0].lower()}{why[1:].rstrip('.')}")
    if x["attacker"] is not None and len({_exposure(run, row) for side in told for run, row in side} - {"both"}) > 1:
        return Separation("not comparable", None, "not both were measured on people hidden from training")
    if x["attacker"] == "worst":
        tried = {attackers_tried(run, str(row["attribute"])) for side in told for run, row in side} - {""}
        if len(tried) > 1:
            return Separation("not comparable", None, "the strongest attackers were chosen among different ones")
    # Runs of another split are tested on other people.
    alike = not other_people(first, second)
    of_seed = [{run.config.get("seed"): (run, row) for run, row in side} for side in told]
    common = [seed for seed in of_seed[0] if seed in of_seed[1]] if alike else []
    if (
        len(told[0]) == len(told[1]) == 1
        and (paired := _in_pairs(store, first, second, x, x["exposure"] or y["exposure"])) is not None
    ):
        return paired
    if ENOUGH_SEEDS <= len(common) == len(told[0]) == len(told[1]):
        by_seeds = _over_seeds([(of_seed[0][s], of_seed[1][s]) for s in common])
        if by_seeds is not None:  # else all seeds on one side, a coin's three heads, would show a difference
            return by_seeds
    # Each seed against its own, or against all of the other's where they have few in common: no lucky one decides.
    pairs = [(of_seed[0][s], of_seed[1][s]) for s in common]
    if len(common) < max(len(told[0]), len(told[1])):
        pairs = [(a, b) for a in told[0] for b in told[1]]
    mean = sum(_value(b) - _value(a) for a, b in pairs) / len(pairs)
    apart = {order(a[1], b[1]) for a, b in pairs}
    if len(apart) == 1 and (one := apart.pop()) in ("lower", "higher"):
        each = " of each of its seeds" if len(pairs) > 1 else ""
        return Separation(one, mean, f"the 95 % intervals{each} do not meet", "", *_reach(pairs))
    if any(bounds(row) is None for pair in pairs for _, row in pair):
        return Separation("not comparable", mean, "no interval was measured")
    return Separation("not shown", mean, "the 95 % intervals meet", _people(pairs, mean), *_reach(pairs))


def _reach(matched: Sequence[tuple[Measured, Measured]]) -> tuple[float | None, float | None]:
    """From the lowest to the highest difference that the intervals over people allow."""
    ends = [(bounds(a), bounds(b)) for (_, a), (_, b) in matched]
    both = [(y[0] - x[1], y[1] - x[0]) for x, y in ends if x and y]
    return (min(low for low, _ in both), max(high for _, high in both)) if both else (None, None)


def _value(measured: Measured) -> float:
    value = measured[1]["value"]
    assert value is not None  # only known ones are compared
    return value


def _known(row: RowRecord | None) -> bool:
    return row is not None and row["value"] is not None and row["evidence"] == "ok"


def _in_pairs(
    store: RunStore | None, a: StoredRun, b: StoredRun, row: RowRecord, exposure: str | None
) -> Separation | None:
    """What a comparison in pairs shows of this row on people of that exposure, None where there is none."""
    record = None if store is None else paired_record(store, a, b)
    if record is None:
        return None
    key = (row["metric"], row["attribute"], row["attacker"], row["variant"])
    mine = [r for r in record["rows"] if (r["metric"], r["attribute"], r["attacker"], r["variant"]) == key]
    found = next((r for r in mine if r["exposure"] in (exposure, None)), None)
    if found is None or found["value"] is None or found["evidence"] != "ok":
        return None
    pair = pair_as_shown(found, signed=record.get("audit_version", 0) > 2)
    if pair["p_holm"] is None or pair["ci_low"] is None:
        return None
    difference = -float(pair["value"])  # a row is A - B
    how = f"measured in pairs, p = {pair['p_holm']:.2g} after Holm"
    ends = -float(pair["ci_high"]), -float(pair["ci_low"])
    if pair["p_holm"] < 0.05:
        return Separation("lower" if difference < 0 else "higher", difference, how, "", *ends)
    half = (ends[1] - ends[0]) / 2
    return Separation("not shown", difference, how, _of_people(row["n"], half, difference), *ends)


def _exposure(run: StoredRun, row: RowRecord) -> str:
    """What training saw of the tested people's values; "both" where it reads none."""
    return row["exposure"] or ("not known" if run.config["method"] == EXTERNAL else "both")


def _over_seeds(pairs: Sequence[tuple[Measured, Measured]]) -> Separation | None:
    """None where there is no interval over people, or the differences do not vary."""
    ends = [(bounds(a), bounds(b)) for (_, a), (_, b) in pairs]
    halves = [((x[1] - x[0]) / 2, (y[1] - y[0]) / 2) for x, y in ends if x and y]
    differences = np.array([_value(b) - _value(a) for a, b in pairs])
    k, mean, spread = len(pairs), float(differences.mean()), float(differences.std(ddof=1))
    if len(halves) < k or spread < _NO_SPREAD:
        return None
    of_seeds, of_people = halves_over_seeds(differences, halves)
    half = math.hypot(of_seeds, of_people)
    how = f"over {k} seeds and the people tested"
    ends_of_difference = mean - half, mean + half
    if abs(mean) > max(half, _LEAST):
        return Separation("lower" if mean < 0 else "higher", mean, how, "", *ends_of_difference)
    enough = ""
    if abs(mean) >= _LEAST and of_seeds > of_people:
        need = k * (half / abs(mean)) ** 2
        enough = f"about {rough(need)} seeds" if need <= 100 else ""
    elif abs(mean) >= _LEAST:
        enough = _of_people(pairs[0][0][1]["n"], half, mean)
    return Separation("not shown", mean, how, enough, *ends_of_difference)


def halves_over_seeds(differences: npt.ArrayLike, halves: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Half the 95 % interval of a mean difference over seeds, and half that of the people tested.

    Args:
        differences: (k,) of two runs with the same seed, k at least 2.
        halves: half the intervals of the two, a pair a seed.
    """
    from scipy.special import stdtrit

    values = np.asarray(differences, dtype=np.float64)
    of_seeds = float(stdtrit(len(values) - 1, 0.975)) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return of_seeds, math.hypot(*np.mean(halves, axis=0))


def _people(matched: Sequence[tuple[Measured, Measured]], difference: float) -> str:
    """By the mean of the half-widths' sums."""
    ends = [(bounds(a), bounds(b)) for (_, a), (_, b) in matched]
    halves = [(x[1] - x[0] + y[1] - y[0]) / 2 for x, y in ends if x and y]
    return _of_people(matched[0][0][1]["n"], sum(halves) / len(halves), difference)


def _of_people(n: int | None, half: float, difference: float) -> str:
    if n is None or abs(difference) < _LEAST:
        return ""
    need = n * (half / abs(difference)) ** 2
    return f"about {rough(need)} in place of {n:,}" if n < need <= _TIMES * n else ""


def difference_words(found: Separation, unit: str, what: Mapping[str, str] | None = None) -> str:
    """The finding as the end of a sentence, as in "no difference is shown (the 95 % intervals meet; ...)".

    Args:
        found: the finding.
        unit: what `n` counts, as in "people tested".
        what: words for "lower" and "higher".
    """
    if found.state == "not comparable":
        return f"not compared: {found.how}"
    by = "" if found.difference is None else f" by {abs(found.difference):.3f}{interval(*_sizes(found))}"
    if found.shown:
        return f"{(what or {}).get(found.state, found.state)}{by} ({found.how})"
    between = "" if found.low is None or found.high is None else f", from {found.low:+.3f} to {found.high:+.3f}"
    counted = f"{found.enough} {unit}" if "in place" in found.enough else found.enough
    more = f"; {counted} would show a difference of this size" if counted else ""
    return f"no difference is shown{between} ({found.how}{more})"


def _sizes(found: Separation) -> tuple[float | None, float | None]:
    """The ends of a shown difference's size."""
    if found.low is None or found.high is None:
        return None, None
    low, high = sorted((abs(found.low), abs(found.high)))
    return low, high
