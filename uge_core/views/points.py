"""Runs that differ in their seed alone, as one point with an interval.

Over three or more seeds a reading is their mean with Student's t interval,

    mean +- t(0.975; k - 1) * s / sqrt(k),

for what the mean over all training seeds would be on the same split and the same people; of one seed it
is the audit's own interval over people, of two it reaches from the lower end to the upper end of theirs,
as t with one degree of freedom (12.7) says nothing. All are 95 %. Leakage and link quality are of the
same member.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from uge_core.audit.base import RowRecord
from uge_core.runs.names import config_words, labels, method_class, run_order, settings_apart
from uge_core.runs.stored_run import StoredRun
from uge_core.views.rows import Verdict, as_shown, audit_rows, audited_attributes, bounds, matching_row, usable

ENOUGH_SEEDS = 3  # for an interval over seeds
COMPARED = ("backbone", "split_seed", "epochs", "dim")
"""What runs that are compared have in common, besides their graph."""
Quality = Literal["matched", "degree", "usual"]
"""Of whom the strangers are that a link is ranked among: of the friend's group, of its decile of degree too, of all."""
Form = Literal["calibrated", "thresholded", "top-10", "relative", "raw"]
"""How a gap between groups is measured: none but the last changes with the length of the vectors."""
_STRANGERS: Mapping[Quality, str] = {"matched": "held-out", "degree": "degree"}
_VARIANTS: Mapping[tuple[str, Form], tuple[str | None, ...]] = {
    ("dp", "raw"): (None, "difference"),
    ("eo", "raw"): ("held-out", "all-edges"),
}


@dataclass(frozen=True)
class Reading:
    """One measured number of a point.

    Attributes:
        value: the number, the mean over seeds where there are several.
        low: lower end of its 95 % interval, or None.
        high: upper end, or None.
        kind: what the interval is over: "seeds", "nodes", or None without one.
        n: people, targets, pairs or edges it rests on.
        random: what random embeddings or chance alone give, or None.
        majority: what always answering the commonest value gives, or None.
        degree: what the training degree alone gives as an embedding, or None.
        seeds: how many it is the mean of.
    """

    value: float
    low: float | None
    high: float | None
    kind: str | None
    n: int | None
    random: float | None
    majority: float | None
    degree: float | None
    seeds: int = 1


@dataclass(frozen=True)
class Point:
    """One method at one lambda, over its seeds.

    Attributes:
        series: label of the method with what tells it apart, the same for all its lambdas.
        method: the method's name.
        lam: lambda, or None where the method has none.
        runs: the runs behind it, one a seed.
        sensitive: the attributes it treats.
    """

    series: str
    method: str
    lam: float | None
    runs: tuple[StoredRun, ...]
    sensitive: tuple[str, ...]

    @property
    def label(self) -> str:
        """The series with its lambda."""
        return self.series if self.lam is None else f"{self.series} λ {self.lam:g}"

    @property
    def verdict(self) -> Verdict:
        """Of all its runs: the mean over seeds of which one is not usable is none."""
        verdicts = [usable(run) for run in self.runs]
        order = ("not usable", "not known", "usable")
        worst = min(verdicts, key=lambda v: order.index(v.state))
        failed = sum(v.state == worst.state for v in verdicts)
        if worst.state == "usable" or len(verdicts) in (1, failed):
            return worst
        return replace(worst, why=f"{failed} of {len(verdicts)} seeds: {worst.why}")

    def leakage(self, attribute: str, metric: str, exposure: str = "unseen") -> Reading | None:
        """How much the strongest attacker reads; `metric` may be "normalised", (F1 - majority) / (1 - majority)."""
        rows = [self._leak(run, attribute, metric, exposure) for run in self.runs]
        strongest = reading(rows)
        turned = not all(run.signed for run in self.runs)
        if strongest and metric == "auc" and strongest.low is not None and turned:
            # No attacker does worse than a coin. Turned one by one, seeds at chance lie above it on average, so they
            # are distinguishable from a coin only where one of them is by itself.
            alone = [r["ci_low"] for r in rows if r and r["ci_low"] is not None and r["evidence"] == "ok"]
            at_chance = strongest.kind == "seeds" and alone and max(alone) <= 0.5
            return replace(strongest, low=0.5 if at_chance else max(0.5, strongest.low))
        return strongest

    def utility(self, attribute: str, exposure: str = "unseen", quality: Quality = "matched") -> Reading | None:
        """NDCG@10 of held-out links, of the member whose leakage is shown."""
        rows = []
        for run in self.runs:
            leak = self._leak(run, attribute, "auc", exposure) or self._leak(run, attribute, "micro_f1", exposure)
            rows.append(matching_row(_ranked(run, attribute, quality), leak["exposure"] if leak else exposure))
        return reading(rows)

    def gap(self, attribute: str, metric: str, form: Form = "calibrated") -> Reading | None:
        """The DP or EO gap of the exported embedding."""
        return reading([gap_row(run.rows, attribute, metric, form) for run in self.runs])

    def exported_utility(self, attribute: str, quality: Quality = "matched") -> Reading | None:
        """NDCG@10 of held-out links of the exported embedding, whose DP and EO are measured."""
        return reading([matching_row(_ranked(run, attribute, quality), "seen") for run in self.runs])

    def seeds(self, attribute: str, metric: str, exposure: str = "unseen") -> list[tuple[StoredRun, RowRecord]]:
        """The strongest attacker's row of each seed that has one."""
        found = [(run, self._leak(run, attribute, metric, exposure)) for run in self.runs]
        return [(run, row) for run, row in found if row is not None]

    @staticmethod
    def _leak(run: StoredRun, attribute: str, metric: str, exposure: str) -> RowRecord | None:
        name = "micro_f1" if metric == "normalised" else metric
        rows = audit_rows(run, metric=name, attribute=attribute, attacker="worst")
        row = matching_row([r for r in rows if r["exposure"] in (exposure, None)], exposure)
        if row is None:
            return None
        return _normalised(row) if metric == "normalised" else as_shown(row, signed=run.signed)


def _ranked(run: StoredRun, attribute: str, quality: Quality) -> list[RowRecord]:
    if quality == "usual":
        return audit_rows(run, metric="ndcg_at_10", variant="held-out")
    return audit_rows(run, metric="ndcg_at_10_matched", variant=_STRANGERS[quality], attribute=attribute)


def reading(rows: Sequence[RowRecord | None]) -> Reading | None:
    """The rows of a point's seeds as one; None where none was measured."""
    ok = [r for r in rows if r and r["value"] is not None and r["evidence"] == "ok"]
    if not ok:
        return None
    values = np.array([r["value"] for r in ok])
    ends = [interval for r in ok if (interval := bounds(r))]
    whole = len(ends) == len(ok)  # an interval of some seeds need not hold the mean of all
    low, high = (min(e[0] for e in ends), max(e[1] for e in ends)) if whole else (None, None)
    kind = "nodes" if whole else None
    if len(ok) >= ENOUGH_SEEDS:
        from scipy.special import stdtrit

        half = float(stdtrit(len(ok) - 1, 0.975) * values.std(ddof=1) / math.sqrt(len(ok)))
        bottom = 0.0 if (values >= 0).all() else -math.inf
        low, high, kind = max(values.mean() - half, bottom), min(values.mean() + half, 1.0), "seeds"
    return Reading(
        float(values.mean()),
        low,
        high,
        kind,
        ok[0]["n"],
        _mean(r["floor_random"] for r in ok),
        _mean(r["floor_majority"] for r in ok),
        _mean(r.get("floor_degree") for r in ok),
        len(ok),
    )


def gap_row(rows: Iterable[RowRecord], attribute: str, metric: str, form: Form) -> RowRecord | None:
    """The row of the largest gap between cells, beside whatever other summaries an audit has."""
    variants = _VARIANTS.get((metric, form), (form,))
    mine = [r for r in rows if r["metric"] == metric and r["attribute"] == attribute and r["exposure"] != "unseen"]
    return next((r for v in variants for r in mine if r["variant"] == v), None)


def settings(runs: Iterable[StoredRun]) -> dict[str, tuple[StoredRun, ...]]:
    """Runs that differ in nothing but method, lambda, attributes and seed, by a name of what they share."""
    groups: dict[tuple[Any, ...], list[StoredRun]] = {}
    for run in sorted(runs, key=run_order):
        key = (run.dataset["fingerprint"], *(run.config.get(f) for f in COMPARED))
        groups.setdefault(key, []).append(run)
    out: dict[str, tuple[StoredRun, ...]] = {}
    for group in groups.values():
        words = config_words(group[0].config, "backbone", "dim", "split", "epochs")
        while words in out:
            words += "'"
        out[words] = tuple(group)
    return out


def points(runs: Sequence[StoredRun], attribute: str) -> tuple[Point, ...]:
    """The runs that treat the attribute, and those that treat none, as points in lambda order."""
    mine = [r for r in runs if attribute in r.config["sensitive"] or not r.config["sensitive"]]
    mine = [r for r in mine if attribute in audited_attributes(r)]
    grouped: dict[str, dict[float | None, list[StoredRun]]] = {}
    for run in mine:
        grouped.setdefault(_series(run), {}).setdefault(run.config["lambda"], []).append(run)
    names = _series_labels({key: next(iter(of.values()))[0] for key, of in grouped.items()})
    return tuple(
        Point(names[key], group[0].config["method"], lam, _one_a_seed(group), tuple(group[0].config["sensitive"]))
        for key, of in grouped.items()
        for lam, group in sorted(of.items(), key=lambda pair: -1.0 if pair[0] is None else pair[0])
    )


@dataclass(frozen=True)
class Fold:
    """Runs of one graph that differ in their training seed alone, as lists and pickers show them: one row.

    Attributes:
        label: method, lambda and what tells it apart from the others, with the number of seeds where there are several.
        runs: in the order of their seeds.
    """

    label: str
    runs: tuple[StoredRun, ...]

    @property
    def key(self) -> str:
        """The id of its first run, which stands for it."""
        return self.runs[0].id

    @property
    def ids(self) -> tuple[str, ...]:
        """Of all its runs."""
        return tuple(run.id for run in self.runs)

    @property
    def verdict(self) -> Verdict:
        """Whether it says anything about links: the worst of its runs."""
        verdicts = [usable(run) for run in self.runs]
        return min(verdicts, key=lambda v: ("not usable", "not known", "usable").index(v.state))


def folds(runs: Iterable[StoredRun]) -> tuple[Fold, ...]:
    """The runs by what they share but for the seed, in the order of lists.

    A warm start is the same seed again; its cold run stands for both, as in a point of a chart.
    """
    grouped: dict[tuple[str, str], list[StoredRun]] = {}
    for run in sorted(runs, key=run_order):
        config = {k: v for k, v in run.config.items() if k not in ("seed", "warm_from", "warm_epochs")}
        grouped.setdefault((run.dataset["fingerprint"], json.dumps(config, sort_keys=True)), []).append(run)
    several = [_one_a_seed(group) for group in grouped.values()]
    # Without their seeds, which the label counts.
    named = labels([replace(of[0], config={k: v for k, v in of[0].config.items() if k != "seed"}) for of in several])
    return tuple(Fold(named[of[0].id] + (f" · {len(of)} seeds" if len(of) > 1 else ""), of) for of in several)


def folded(runs: Iterable[StoredRun], run_id: str | None) -> Fold | None:
    """The fold that a run belongs to; None where none of the runs has that id."""
    whole = list(runs)
    by_id = {run.id: run for run in whole}
    if run_id not in by_id:
        return None
    asked = by_id[run_id]
    found = next((f for f in folds(whole) if run_id in f.ids), None)
    # A warm start stands for itself where it is asked for by its id.
    return found or Fold(labels([asked])[asked.id], (asked,))


_VARIES = ("lambda", "seed", "warm_from", "warm_epochs")


def _one_a_seed(runs: Iterable[StoredRun]) -> tuple[StoredRun, ...]:
    """One run for each seed: a warm start is the same seed again, so the cold run stands for both."""
    kept: dict[tuple[Any, ...], StoredRun] = {}
    for run in runs:
        seed = run.config.get("seed"), run.config.get("split_seed")
        if seed not in kept or run.config.get("warm_from") is None:
            kept[seed] = run
    return tuple(kept.values())


def _series(run: StoredRun) -> str:
    return json.dumps({k: v for k, v in run.config.items() if k not in _VARIES}, sort_keys=True)


def _series_labels(firsts: Mapping[str, StoredRun]) -> dict[str, str]:
    """Method labels, with the attributes, then the settings, where two would read the same."""
    treated = {tuple(r.config["sensitive"]) for r in firsts.values() if r.config["sensitive"]}
    names = {}
    for key, run in firsts.items():
        parts = [method_class(run.config["method"]).label, run.config.get("file", "")]
        parts += ["+".join(run.config["sensitive"])] if len(treated) > 1 else []
        names[key] = " · ".join(filter(None, parts))
    apart = settings_apart({key: run.config for key, run in firsts.items()}, names)
    return {key: " · ".join([name, *apart[key]]) for key, name in names.items()}


def _normalised(row: RowRecord) -> RowRecord | None:
    """Micro-F1 with the majority rate at 0 and always being right at 1."""
    base = row["floor_majority"]
    if base is None or base >= 1.0:
        return None

    def scaled(value: float | None) -> float | None:
        return None if value is None else (value - base) / (1.0 - base)

    return {
        **row,
        "value": scaled(row["value"]),
        "ci_low": scaled(row["ci_low"]),
        "ci_high": scaled(row["ci_high"]),
        "floor_random": scaled(row["floor_random"]),
        "floor_majority": 0.0,
    }


def _mean(values: Iterable[float | None]) -> float | None:
    numbers = [v for v in values if v is not None]
    return sum(numbers) / len(numbers) if numbers else None
