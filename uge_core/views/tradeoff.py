"""The trade-off of leakage, or of a gap between groups, against link quality, and the lambda explorer.

A point dominates another where it is better on both axes and both pairs of intervals separate. A
point that another beats on both axes, but not by more than the intervals, is "tied": no one can say.
An embedding that is not usable leaks nothing and treats all alike, so it is shown as what it is and takes no part:
it neither beats nor leads.

Link quality is the attribute-matched NDCG@10 and a gap the calibrated one, where audits have them: the usual NDCG@10
pays for reading the attribute, and a raw gap shrinks with the vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from uge_core.audit.metrics import METRICS
from uge_core.errors import shell_word
from uge_core.files import to_csv
from uge_core.registry import find
from uge_core.runs.names import run_order
from uge_core.runs.store import RunStore
from uge_core.training.config import RunConfig
from uge_core.views.leakage import LeakageView
from uge_core.views.points import Form, Point, Quality, Reading, gap_row, points, settings
from uge_core.views.rows import AGAIN, of_one_set
from uge_core.views.separation import separation
from uge_core.views.words import interval, known, many, records

TRADEOFF_METRICS: Mapping[str, str] = {
    "auc": METRICS["auc"].short,
    "micro_f1": METRICS["micro_f1"].short,
    "normalised": "Normalised leakage",
    "dp": METRICS["dp"].short,
    "eo": METRICS["eo"].short,
}
QUALITIES: Mapping[Quality, str] = {
    "matched": "matched NDCG@10",
    "degree": "degree-matched NDCG@10",
    "usual": "NDCG@10",
}
_FORM_WORDS: Mapping[Form, str] = {
    "calibrated": "of calibrated probabilities, which no scaling of the vectors changes",
    "thresholded": "of the share of pairs predicted as links, which no scaling of the vectors changes",
    "top-10": "in the first ten recommendations, which no scaling of the vectors changes",
    "relative": "as the AUC of one pair of groups' scores against the others', which no scaling of the vectors changes",
    "raw": "of raw scores, which shrinks with the vectors",
}
DEGREE = "training degree alone"
"""What a floor by the degree is called."""
_MOST_NAMES = 6
_NAMED = ("epochs", "seed", "split_seed", "warm_epochs")  # settings that the command line has a flag of its own for
_LEAKAGE = ("auc", "micro_f1", "normalised")


@dataclass(frozen=True)
class TradeoffView:
    """One record for the chart, the explorer, the table and the file.

    Attributes:
        metric: what lies on the x axis, a key of `TRADEOFF_METRICS`.
        attribute: whose.
        exposure: "unseen" or "seen".
        quality: which NDCG@10 lies on the y axis.
        form: how gaps are measured.
        points: the measured points, in the order of `table`.
        table: one row per point: value and interval on both axes, what chance and the training degree alone give, n,
            seeds, status, whether it is usable and why not.
        floors: by name, a value on the x axis.
        heights: by name, a value on the y axis.
        no_debiasing: the y axis of the untreated point, or None.
        settings: what the runs can be limited to; the chosen one is `setting`.
        setting: backbone, dimension, split and epochs that all points share.
        attributes: all audited attributes of these runs.
        title: the finding.
        caption: what is drawn.
        alt: the chart in words.
        remarks: what was left out, and why.
        root: where the store lies.
    """

    metric: str
    attribute: str
    exposure: str
    quality: Quality
    form: Form
    points: tuple[Point, ...]
    table: pd.DataFrame
    floors: Mapping[str, float]
    heights: Mapping[str, float]
    no_debiasing: float | None
    settings: tuple[str, ...]
    setting: str
    attributes: tuple[str, ...]
    title: str
    caption: str
    alt: str
    remarks: tuple[str, ...]
    root: str

    def csv(self) -> str:
        """The table as CSV."""
        return to_csv(self.table)

    @property
    def series(self) -> tuple[str, ...]:
        """Those that have a lambda."""
        return tuple(dict.fromkeys(p.series for p in self.points if p.lam is not None))

    @property
    def all_series(self) -> tuple[str, ...]:
        """All, in the order of lists."""
        return tuple(dict.fromkeys(p.series for p in self.points))

    def point_of(self, run_id: str | None) -> Point | None:
        """The point that a run is one seed of."""
        return next((p for p in self.points if any(r.id == run_id for r in p.runs)), None)

    def point_at(self, series: str, lam: float | None) -> Point | None:
        """What was measured of a series at a lambda; of one without a lambda at any."""
        mine = [p for p in self.points if p.series == series]
        return next((p for p in mine if p.lam is None or p.lam == lam), None)

    @property
    def lambdas(self) -> tuple[float, ...]:
        """Every lambda that was measured for some series, rising."""
        return tuple(sorted({p.lam for p in self.points if p.lam is not None}))


_OTHER = {"unseen": "seen", "seen": "unseen"}
_COLUMNS = [
    "run",
    "series",
    "method",
    "lambda",
    "value",
    "value_low",
    "value_high",
    "chance",
    "degree",
    "ndcg",
    "ndcg_low",
    "ndcg_high",
    "ndcg_chance",
    "ndcg_degree",
    "interval",
    "seeds",
    "n",
    "n_ranked",
    "status",
    "usable",
    "why",
    "run_ids",
]


def tradeoff_view(
    store: RunStore,
    *,
    data: str,
    attribute: str,
    metric: str = "auc",
    exposure: str = "unseen",
    setting: str | None = None,
    like: str | None = None,
    quality: Quality = "matched",
    form: Form = "calibrated",
) -> TradeoffView:
    """Every method's points for one attribute.

    Args:
        store: the run store.
        data: key of the data, as in `Frame.datasets`.
        attribute: an audited attribute.
        metric: a key of `TRADEOFF_METRICS`; leakage is the strongest attacker's.
        exposure: "unseen" or "seen", of leakage and of the link quality beside it; gaps are the exported embedding's.
        setting: one of `TradeoffView.settings`; None takes that of `like`, else the first.
        like: a run's id.
        quality: which NDCG@10 is wanted; the usual one where no point has it.
        form: how gaps are wanted; raw where no point has it.
    """
    # Rows are read of the chosen setting alone.
    light = (r for r in store.list(audits=False) if r.audited and r.dataset["fingerprint"][:8] == data)
    groups = settings(light)
    default = next((name for name, runs in groups.items() if any(r.id == like for r in runs)), next(iter(groups), ""))
    setting = setting if setting in groups else default
    ids = [r.id for r in groups.get(setting, ())]
    runs = sorted((r for r in store.list(only=ids) if r.audited), key=run_order)
    comparable, mixed = of_one_set(runs, attribute) if metric in _LEAKAGE else (list(runs), "")
    there = points(comparable, attribute)
    asked = quality
    if not any(p.exported_utility(attribute, quality) or p.utility(attribute, exposure, quality) for p in there):
        quality = "usual"
    if metric not in _LEAKAGE and not any(gap_row(r.rows, attribute, metric, form) for p in there for r in p.runs):
        form = "raw"
    measured, rows, across, up, otherwise, earlier = [], [], [], [], 0, 0
    for point in there:
        if metric in _LEAKAGE:
            x, y = point.leakage(attribute, metric, exposure), point.utility(attribute, exposure, quality)
        else:
            x, y = point.gap(attribute, metric, form), point.exported_utility(attribute, quality)
        if x and y:
            measured.append(point)
            rows.append(_record(point, x, y))
            across.append(x)
            up.append(y)
        elif x is None and metric in _LEAKAGE and point.leakage(attribute, metric, _OTHER[exposure]):
            otherwise += 1
        elif not all(r.signed for r in point.runs):
            earlier += 1
    table = pd.DataFrame(rows, columns=_COLUMNS)
    table["status"] = _status(table)
    heights = _heights(quality, up)
    alike = _alike(store, measured, table, metric, attribute, exposure)
    drawn = {i for p in measured for i in (r.id for r in p.runs)}
    return TradeoffView(
        metric,
        attribute,
        exposure,
        quality,
        form,
        tuple(measured),
        table,
        _floors(metric, across),
        heights,
        None if (plain := _untreated(table)) is None else float(plain["ndcg"]),
        tuple(groups),
        setting,
        tuple(dict.fromkeys(r["attribute"] for run in runs for r in run.rows if r["attacker"] and r["attribute"])),
        _title(table, metric, attribute, quality, alike),
        _caption(table, metric, attribute, exposure, quality, form),
        _alt(table, metric, attribute, quality, heights, alike),
        (
            *_verdicts(there, table, quality),
            *([mixed] if mixed else []),
            *_fallbacks(table, asked, quality, earlier, attribute),
            *_remarks(len(comparable) - len(drawn), otherwise, table, exposure, metric),
        ),
        str(store.root),
    )


def _record(point: Point, x: Reading, y: Reading) -> dict[str, Any]:
    verdict = point.verdict
    return {
        "run": point.label,
        "series": point.series,
        "method": point.method,
        "lambda": point.lam,
        "value": x.value,
        "value_low": x.low,
        "value_high": x.high,
        "chance": x.random,
        "degree": x.degree,
        "ndcg": y.value,
        "ndcg_low": y.low,
        "ndcg_high": y.high,
        "ndcg_chance": y.random,
        "ndcg_degree": y.degree,
        "interval": x.kind or "none",
        "seeds": x.seeds,
        "n": x.n,
        "n_ranked": y.n,
        "usable": verdict.state,
        "why": verdict.why,
        "run_ids": " ".join(r.id for r in point.runs),
    }


def _floors(metric: str, readings: Sequence[Reading]) -> dict[str, float]:
    """The lines of a chart's x axis: one value each, as all points share data and attackers.

    What a gap is by chance differs by embedding; that of the training degree is one.
    """
    if metric in ("dp", "eo"):
        degree = _mean(r.degree for r in readings)
        return {} if degree is None else {f"{TRADEOFF_METRICS[metric]} of the {DEGREE}": degree}
    out = {}
    for name, values in (
        ("random embeddings", [r.random for r in readings]),
        ("majority", [r.majority for r in readings]),
    ):
        there = [v for v in values if v is not None]
        if there:
            out["a coin" if metric == "auc" and name == "majority" else name] = sum(there) / len(there)
    return out


def _heights(quality: Quality, readings: Sequence[Reading]) -> dict[str, float]:
    """The lines of a chart's y axis: all points rank the same lists."""
    found = {
        f"{QUALITIES[quality]} of the {DEGREE}": _mean(r.degree for r in readings),
        f"{QUALITIES[quality]} of a random order": _mean(r.random for r in readings),
    }
    return {name: value for name, value in found.items() if value is not None}


def _mean(values: Iterable[float | None]) -> float | None:
    numbers = [v for v in values if v is not None]
    return sum(numbers) / len(numbers) if numbers else None


def _usable(table: pd.DataFrame) -> pd.DataFrame:
    """The points that take part."""
    return table[table["usable"] != "not usable"]


def _untreated(table: pd.DataFrame) -> Mapping[str, Any] | None:
    """The untreated point, where it is usable."""
    plain = records(_usable(table[(table["method"] == "none") & table["lambda"].isna()]))
    return plain[0] if plain else None


def _status(table: pd.DataFrame) -> list[str]:
    """Best where nothing beats the point on both axes, dominated, tied or not usable (see the module)."""
    rows = records(_usable(table))
    out = []
    for q in records(table):
        if q["usable"] == "not usable":
            out.append("not usable")
            continue
        better = [p for p in rows if p["value"] < q["value"] and p["ndcg"] > q["ndcg"]]
        clear = any(_apart(p, q) for p in better)
        out.append("dominated" if clear else "tied" if better else "best")
    return out


def _apart(p: Mapping[str, Any], q: Mapping[str, Any]) -> bool:
    return _below(p, q) and known(p["ndcg_low"]) and known(q["ndcg_high"]) and bool(p["ndcg_low"] > q["ndcg_high"])


def _alike(
    store: RunStore, measured: Sequence[Point], table: pd.DataFrame, metric: str, attribute: str, exposure: str
) -> int:
    """How many usable points no test separates from the lowest: of leakage as elsewhere, of gaps their intervals."""
    rows = records(_usable(table))
    if len(rows) < 2:
        return 0
    best = min(rows, key=lambda r: float(r["value"]))
    others = [r for r in rows if r is not best]
    if metric not in _LEAKAGE:
        return sum(not _below(best, r) for r in others)
    name = "micro_f1" if metric == "normalised" else metric
    by_label = {p.label: p.seeds(attribute, name, exposure) for p in measured}
    return sum(separation(store, by_label[best["run"]], by_label[r["run"]]).state != "higher" for r in others)


def _title(table: pd.DataFrame, metric: str, attribute: str, quality: Quality, alike: int) -> str:
    if table.empty:
        return f"No run was measured this way for {attribute}"
    rows, label = records(_usable(table)), TRADEOFF_METRICS[metric]
    if not rows:
        return f"No usable embedding was measured this way for {attribute}"
    best = min(rows, key=lambda r: float(r["value"]))
    number = f"{label} {best['value']:.3f}" if metric in _LEAKAGE else f"{best['value']:.3f}"
    ranked = f"{QUALITIES[quality]} {best['ndcg']:.3f}"
    if len(rows) == 1:
        alone = "is usable" if len(table) > 1 else "was measured this way"
        return f"Only {best['run']} {alone}: {number}, {ranked}"
    if alike:
        what = "least leakage" if metric in _LEAKAGE else f"lowest {label}"
        text = (
            f"{best['run']}: {what} of {attribute} measured, {number}, not distinguishable from "
            f"{many(alike, 'other')}; {ranked}"
        )
    else:
        what = f"leaks {attribute} least" if metric in _LEAKAGE else f"has the smallest {label} of {attribute}"
        text = f"{best['run']} {what}: {number}, {ranked}"
    plain = _untreated(table)
    if plain and best["method"] != "none":
        text += f"; without debiasing {plain['value']:.3f} and {plain['ndcg']:.3f}"
    if known(best["ndcg_degree"]) and best["ndcg"] <= best["ndcg_degree"]:
        text += f"; no better at ranking than the {DEGREE} ({best['ndcg_degree']:.3f})"
    return text


def _below(p: Mapping[str, Any], q: Mapping[str, Any]) -> bool:
    """The interval of one lies below that of the other."""
    return known(p["value_high"]) and known(q["value_low"]) and bool(p["value_high"] < q["value_low"])


def _caption(table: pd.DataFrame, metric: str, attribute: str, exposure: str, quality: Quality, form: Form) -> str:
    if table.empty:
        return ""
    seen = {"unseen": "did not see", "seen": "may have seen"}[exposure]
    x = {
        "auc": f"AUC of the strongest attacker on {attribute}, on people whose values training {seen}",
        "micro_f1": f"Micro-F1 of the strongest attacker on {attribute}, on people whose values training {seen}",
        "normalised": f"(Micro-F1 - majority) / (1 - majority) of the strongest attacker on {attribute}, on people "
        f"whose values training {seen}",
        "dp": f"DP gap between {attribute} groups {_FORM_WORDS[form]}; of the exported embedding",
        "eo": f"EO gap between {attribute} groups {_FORM_WORDS[form]}; of the exported embedding",
    }[metric]
    y = {
        "matched": f"NDCG@10 of each held-out link among strangers of the friend's own {attribute} group, so that "
        f"knowing {attribute} gains nothing",
        "degree": f"NDCG@10 of each held-out link among strangers of the friend's own {attribute} group and decile of "
        f"degree, so that knowing {attribute} or who is popular gains nothing",
        "usual": f"NDCG@10 of held-out links among uniform strangers, which also pays for reading {attribute}",
    }[quality]
    kinds = set(table["interval"])
    over = []
    if "seeds" in kinds:
        over.append("of three or more seeds: Student's t over training seeds, around their mean")
    if "nodes" in kinds:
        over.append("of one seed: over the people tested, of two: both seeds' together")
    intervals = f"95 % intervals, {'; '.join(over)}" if over else "No intervals were measured"
    n, ranked = table["n"].max(), table["n_ranked"].max()
    unit = {"dp": "slots in lists" if form == "top-10" else "pairs", "eo": "edges"}.get(metric, "people tested")
    chance = ""
    if metric not in _LEAKAGE and table["chance"].notna().any():
        chance = " What gap is expected by chance alone differs by embedding: hover over a point, or see the table."
    return (
        f"Across: {x} (n = {int(n):,} {unit}); left is better. Up: {y} (n = {int(ranked):,} "
        f"{'people with links' if quality == 'usual' else 'links'} ranked); up is better. Numbers on the points are λ. "
        f"{intervals}. Solid: no other point is "
        "better on both axes; hollow: one is, by more than the "
        "intervals; hollow with a dot: tied, the intervals do not tell; hollow with a cross: not usable, and in no "
        "comparison." + chance
    )


def _alt(
    table: pd.DataFrame, metric: str, attribute: str, quality: Quality, heights: Mapping[str, float], alike: int
) -> str:
    label = TRADEOFF_METRICS[metric]
    words = [
        f"{r['run']}: {label} {r['value']:.3f}{interval(r['value_low'], r['value_high'])}{_by_chance(r, metric)}, "
        f"{QUALITIES[quality]} {r['ndcg']:.3f}"
        f"{interval(r['ndcg_low'], r['ndcg_high'])}, {r['status']}."
        for r in records(table)
    ]
    floors = [f"{name[0].upper()}{name[1:]}: {value:.3f}." for name, value in heights.items()]
    return " ".join([_title(table, metric, attribute, quality, alike) + ".", *words, *floors])


def _verdicts(there: Sequence[Point], table: pd.DataFrame, quality: Quality) -> Iterable[str]:
    """Who is not usable, and who is no better than the degree alone."""
    why: dict[str, list[str]] = {}
    for point in there:
        if point.verdict.state == "not usable":
            why.setdefault(point.verdict.why, []).append(point.label)
    for reason, labels in why.items():
        yield f"Not usable, and in no comparison: {_listed(labels)} ({reason})."
    beaten = [r for r in records(_usable(table)) if known(r["ndcg_degree"]) and r["ndcg"] <= r["ndcg_degree"]]
    if beaten:
        yield (
            f"No better at ranking than the {DEGREE} ({QUALITIES[quality]} {beaten[0]['ndcg_degree']:.3f}): "
            f"{_listed([r['run'] for r in beaten])}."
        )


def _listed(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - _MOST_NAMES} more" if len(labels) > _MOST_NAMES else ""
    return ", ".join(labels[:_MOST_NAMES]) + more


def _fallbacks(table: pd.DataFrame, asked: Quality, quality: Quality, earlier: int, attribute: str) -> Iterable[str]:
    """What audits of earlier versions lack."""
    if asked != quality and len(table):
        yield (
            f"No run here has a {QUALITIES[asked]}: the usual NDCG@10 is drawn, which also pays for reading {attribute}. "
            f"Audit the runs again for it ({AGAIN})."
        )
    elif earlier:
        yield f"Audited by an earlier version, which did not measure this: {many(earlier, 'point')} left out."


def _by_chance(row: Mapping[str, Any], metric: str) -> str:
    return f", by chance {row['chance']:.3f}" if metric not in _LEAKAGE and known(row["chance"]) else ""


def _remarks(left_out: int, otherwise: int, table: pd.DataFrame, exposure: str, metric: str) -> list[str]:
    out = []
    if otherwise:
        other = {"unseen": "People training saw", "seen": "People hidden from training"}[exposure]
        out.append(f"Measured on the other people alone, and shown under {other}: {otherwise} of the points.")
    elif left_out:
        out.append(
            f"Left out of this setting: {many(left_out, 'run')}, about other attributes, not measured this way, "
            "or of a warm start beside a cold run of the same seed."
        )
    if len(table) and exposure == "seen" and metric in _LEAKAGE:
        out.append(
            "Methods that read the tested people's values look better here than they are; people hidden from "
            "training are the comparison that counts."
        )
    return out


@dataclass(frozen=True)
class LambdaView:
    """One series at one lambda.

    Attributes:
        point: what was measured, or None.
        sentence: what it says in plain words, or that nothing was measured.
        figures: name, value, what it rests on (interval, n, chance) and the change from no debiasing, of each number.
        bars: leakage of every attribute beside the untreated run's, for `leakage_light`.
        command: trains the point where nothing was measured, or None.
    """

    point: Point | None
    sentence: str
    figures: tuple[tuple[str, str, str, str | None], ...]
    bars: LeakageView | None
    command: str | None


def lambda_view(view: TradeoffView, series: str, lam: float | None) -> LambdaView:
    """What was measured of a series at a lambda; between measured lambdas nothing is made up."""
    point = view.point_at(series, lam)
    if point is None:
        assert lam is not None  # a series without a lambda has its one point
        return LambdaView(None, f"{series} was not trained at λ {lam:g}.", (), None, train_command(view, series, lam))
    plain = next((p for p in view.points if p.method == "none" and p.verdict.counts), None)
    return LambdaView(
        point, _sentence(view, point, plain), tuple(_figures(view, point, plain)), _bars(view, point, plain), None
    )


def train_command(view: TradeoffView, series: str, lam: float) -> str:
    """The command that trains a series at another lambda, with all its seeds."""
    point = next(p for p in view.points if p.series == series)
    config = point.runs[0].config
    given = point.runs[0].dataset.get("source") or {}
    source, columns = given.get("spec") or config.get("dataset", "DATA"), given.get("attributes")
    named = f" --attributes {shell_word(','.join(columns))}" if columns else ""
    seeds = ",".join(str(r.config.get("seed", 0)) for r in point.runs)
    run = RunConfig.from_json(config)
    return (
        f"uge sweep {shell_word(str(source))} --sensitive {shell_word('+'.join(point.sensitive))}{named} "
        f"--backbone {config['backbone']} --methods {point.method} --lams {lam:g} --seeds {seeds} "
        f"--epochs {config['epochs']} --split-seed {config['split_seed']} --exposure {run.exposure} "
        f"--unknown {run.unknown} --hidden {run.hidden or 'impute'}{_sets(run)} --store {shell_word(view.root)}"
    )


def _sets(run: RunConfig) -> str:
    """`--set` of each setting that is not its default."""
    given = []
    for owner, values in (
        (RunConfig, {f.name: getattr(run, f.name) for f in fields(RunConfig) if f.metadata and f.name not in _NAMED}),
        (find("backbones", run.backbone), run.backbone_options),
        (find("debias.methods", run.method), run.method_options),
    ):
        own = {f.name: f.default for f in fields(owner)}
        given += [f"{k}={v}" for k, v in values.items() if k in own and v != own[k]]
    return "".join(f" --set {shell_word(setting)}" for setting in given)


def _percent(reading: Reading) -> str:
    ends = "" if reading.low is None else f", 95 % interval {100 * reading.low:.1f} to {100 * (reading.high or 0):.1f}"
    return f"{100 * reading.value:.1f} % of the time{ends}"


def _sentence(view: TradeoffView, point: Point, plain: Point | None) -> str:
    """What a reader who knows no metric can take away, made from the numbers."""
    metric = "auc" if view.metric == "auc" else "micro_f1"
    leakage = point.leakage(view.attribute, metric, view.exposure)
    before = plain.leakage(view.attribute, metric, view.exposure) if plain else None
    now, then = (
        point.utility(view.attribute, view.exposure, view.quality),
        plain.utility(view.attribute, view.exposure, view.quality) if plain else None,
    )
    text = []
    if not point.verdict.counts:
        text.append(f"Not usable: {point.verdict.why}. Its low figures are no success.")
    if leakage:
        chance = leakage.majority if leakage.majority is not None else leakage.random
        baselines = [f"{100 * before.value:.1f} % without debiasing"] if before else []
        if metric == "auc":
            does = f"picks the right one of two people with different {view.attribute}"
            baselines.append("a coin 50 %")
        else:
            does = f"guesses {view.attribute} right"
            baselines += [f"always the commonest value {100 * chance:.1f} %"] if chance is not None else []
        at = point.label if point.lam is None else f"λ {point.lam:g}"
        text.append(f"At {at} the strongest attacker {does} {_percent(leakage)} ({'; '.join(baselines)}).")
    if now:
        beside = [
            f"{then.value:.3f} without debiasing" if then else "",
            "" if now.degree is None else f"{now.degree:.3f} by the {DEGREE}",
        ]
        held = "; ".join(filter(None, beside))
        text.append(f"Link quality, {QUALITIES[view.quality]}, is {now.value:.3f}" + (f" ({held})." if held else "."))
    return " ".join(text)


def _figures(view: TradeoffView, point: Point, plain: Point | None) -> list[tuple[str, str, str, str | None]]:
    metric = view.metric if view.metric in _LEAKAGE else "auc"

    def numbers(p: Point) -> list[Reading | None]:
        return [
            p.leakage(view.attribute, metric, view.exposure),
            p.utility(view.attribute, view.exposure, view.quality),
            p.gap(view.attribute, "dp", form),
            p.gap(view.attribute, "eo", form),
        ]

    form: Form = "calibrated"
    if not any(gap_row(r.rows, view.attribute, gap, form) for r in point.runs for gap in ("dp", "eo")):
        form = "raw"
    ranked = QUALITIES[view.quality]
    names = (
        f"Leakage, {TRADEOFF_METRICS[metric]}",
        ranked[0].upper() + ranked[1:],
        f"DP gap, {form}",
        f"EO gap, {form}",
    )
    out = []
    for name, now, then in zip(names, numbers(point), numbers(plain) if plain else [None] * 4, strict=True):
        change = f"{now.value - then.value:+.3f}" if now and then else None
        out.append((name, f"{now.value:.3f}" if now else "not measured", _rests_on(now) if now else "", change))
    return out


def _rests_on(reading: Reading) -> str:
    """Interval, n and what chance gives, as far as they are known."""
    said = [
        interval(reading.low, reading.high).strip(),
        "" if reading.n is None else f"n = {reading.n:,}",
        "" if reading.random is None else f"chance {reading.random:.3f}",
        "" if reading.degree is None else f"degree alone {reading.degree:.3f}",
    ]
    return ", ".join(filter(None, said))


def _bars(view: TradeoffView, point: Point, plain: Point | None) -> LeakageView:
    """Every attribute's leakage with and without debiasing, as `leakage_light` draws it."""
    metric = "micro_f1" if view.metric == "micro_f1" else "auc"
    rows: list[dict[str, Any]] = []
    seen: list[str] = []
    for attribute in view.attributes:
        for p in filter(None, (plain, point)):
            leakage = p.leakage(attribute, metric, view.exposure)
            if leakage is None and (leakage := p.leakage(attribute, metric, "seen")):
                seen.append(attribute)
            if leakage is None:
                continue
            floors = [f for f in (leakage.majority, leakage.random) if f is not None]
            rows.append(
                {
                    "attribute": attribute,
                    "run": p.label,
                    "run_id": p.runs[0].id,
                    "method": p.method,
                    "value": leakage.value,
                    "ci_low": leakage.low,
                    "ci_high": leakage.high,
                    "majority": leakage.majority,
                    "random": leakage.random,
                    "n": leakage.n,
                    "evidence": "ok",
                    "telling": leakage.low is not None and (not floors or leakage.low > max(floors)),
                    "treated": attribute in p.sensitive,
                }
            )
    table = pd.DataFrame(rows)
    words = [f"{r['attribute']}, {r['run']}: {r['value']:.3f}{interval(r['ci_low'], r['ci_high'])}." for r in rows]
    title = f"What {point.label} gives away of every attribute"
    caption = (
        f"{TRADEOFF_METRICS[metric]} of the strongest attacker{', from a coin on' if metric == 'auc' else ''}. Whiskers as in the "
        "chart above; hollow: the interval reaches a floor, or there is none. Ticks: what always answering the commonest value gives (majority) and "
        "what random embeddings give (random)."
    )
    if seen:
        names = ", ".join(dict.fromkeys(seen))
        caption += f" {names}: not treated, so training read these values as they are, and they are measured so (seen)."
    return LeakageView(table, metric, title, caption, " ".join([f"{title}.", *words]), ())
