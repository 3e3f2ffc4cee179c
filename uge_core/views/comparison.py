"""Two stored runs side by side: what their settings differ in, what was measured of both, and what that shows.

The figures are those of the two audits. Where the same people and links were measured, a job of the queue
measures the differences in pairs (`jobs.comparison`) and keeps its record here; until then, and for figures
that are not paired, a difference is shown only where the two intervals do not meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from uge_core.audit.base import RowRecord
from uge_core.audit.metrics import ordered_metrics
from uge_core.explore.comparison import paired_record, why_no_pairs
from uge_core.files import to_csv
from uge_core.runs.names import labels
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.views.rows import as_shown, attackers_tried, audited_attributes, order, pair_as_shown, row_label, usable
from uge_core.views.words import interval, known

LOWER, HIGHER, SAME = "B is lower", "B is higher", "No difference is shown"
ALIKE, LITTLE = "The same", "Not enough evidence"
_WHO = {"worst": "strongest attacker"}
_LEADING = tuple(m.name for m in ordered_metrics() if m.leads)
_PLAIN = (None, "standard", "held-out")
_GAPS = ("calibrated", "top-10")  # the forms of a gap that no scaling of the vectors changes
OTHERS = "Not compared: other attackers"
NO_BITS = "Not compared: probabilities worse than none"
"""Of usable bits at 0 or less: an attacker that knows less than the shares of the groups is badly calibrated, which says
nothing of how much there is to read."""
_METRICS = {m.name: i for i, m in enumerate(ordered_metrics())}
_EXPOSURES = {"unseen": 0, None: 1, "seen": 2}
_OF_PAIRS = ["B - A, 95 %, paired", "p (Holm)"]


@dataclass(frozen=True)
class ComparisonView:
    """Run A and run B.

    Attributes:
        names: what A and B are called.
        sentences: the finding, in plain words.
        settings: Setting, A and B, of the settings that differ.
        table: the leading measures, a row each: A, B, B - A with its interval, what it shows.
        full: the same of every measure that both audits have.
        caption: how to read the table.
        paired: the differences were measured in pairs.
        no_pairs: why they cannot be, or "".
        address: the pages' query parameters that set A and B, empty where they cannot show the two together.
        no_address: why they cannot, or "".
    """

    names: tuple[str, str]
    sentences: tuple[str, ...]
    settings: pd.DataFrame
    table: pd.DataFrame
    full: pd.DataFrame
    caption: str
    paired: bool
    no_pairs: str
    address: dict[str, str]
    no_address: str

    def csv(self) -> str:
        """Settings that differ and all figures as one CSV."""
        settings = self.settings.rename(columns={"Setting": "Measure"}).assign(Part="setting")
        figures = self.full.assign(Part="figure")
        both = pd.concat([settings, figures]) if len(figures) else settings
        return to_csv(both[["Part", *(c for c in both.columns if c != "Part")]])


def comparison_view(store: RunStore, before: str, after: str) -> ComparisonView:
    """What two runs differ in.

    Args:
        store: the run store.
        before: run A.
        after: run B.

    Raises:
        RunNotFound: no such run.
        StoreError: what the store holds about one cannot be read.
    """
    a, b = store.load(before), store.load(after)
    both = labels([a, b])
    names = both[a.id], both[b.id]
    record = paired_record(store, a, b)
    treated = {*a.config.get("sensitive", ()), *b.config.get("sensitive", ())}
    figures = sorted(_figures(a, b, record), key=lambda f: _place(f, treated))
    full = pd.DataFrame(figures)
    table = full
    if len(full):
        # The raw gaps lead where nothing better was measured.
        better = {f["_metric"] for f in figures if f["_variant"] in _GAPS}
        raw = full["_metric"].isin(better) & ~full["_variant"].isin(_GAPS)
        table = full[full["_leads"] & ~raw]
        hidden = [*(c for c in figures[0] if c.startswith("_")), *(() if record else _OF_PAIRS)]
        full, table = (t.drop(columns=hidden) for t in (full, table))
    no_pairs = why_no_pairs(a, b)
    address, no_address = _address(a, b)
    caption = (
        "A and B with their 95 % intervals over the people tested, for one training seed. B - A: "
        + (
            "measured in pairs, on the same people and links, with "
            "Holm's p-values over all rows; rows without a p-value "
            "are not paired. "
            if record
            else "not paired, so that a difference is shown only where the two intervals do not meet. "
        )
        + "Chance: what random embeddings, a random order or groups that do not differ give; degree: what the training "
        "degree alone gives as an embedding."
    )
    return ComparisonView(
        names,
        tuple(_sentences(a, b, figures, paired=record is not None)),
        _settings(a, b),
        table,
        full,
        caption,
        record is not None,
        no_pairs,
        address,
        no_address,
    )


def _place(figure: Mapping[str, Any], treated: set[str]) -> tuple[Any, ...]:
    """Where a figure stands: treated attributes and unseen values first."""
    about = figure["_about"]
    exposure = _EXPOSURES.get(figure["_exposure"], 3)
    form = {"calibrated": 0, "top-10": 1, "held-out": 0}.get(figure["_variant"], 2)
    return _METRICS.get(figure["_metric"], 99), about not in treated, about or "", form, exposure, figure["Of"]


def _settings(a: StoredRun, b: StoredRun) -> pd.DataFrame:
    """What the two were told that is not the same."""
    sides = [
        {
            "data": run.dataset["name"],
            "data's fingerprint": run.dataset["fingerprint"][:12],
            **run.config,
            "trained on": run.device,
            "trained in": None if run.seconds is None else f"{run.seconds:.0f} s",
        }
        for run in (a, b)
    ]
    for side in sides:
        side.pop("dataset", None)  # the fingerprint again
        side |= {
            f"{k}": v for name in ("backbone_options", "method_options") for k, v in (side.pop(name, {}) or {}).items()
        }
    rows = [
        {"Setting": name, "A": _told(sides[0].get(name)), "B": _told(sides[1].get(name))}
        for name in dict.fromkeys([*sides[0], *sides[1]])
        if sides[0].get(name) != sides[1].get(name)
    ]
    return pd.DataFrame(rows, columns=["Setting", "A", "B"])


def _told(value: Any) -> str:
    if value is None or value == []:
        return "-"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _figures(a: StoredRun, b: StoredRun, record: Mapping[str, Any] | None) -> Iterable[dict[str, Any]]:
    pairs = {_key(row): row for row in record["rows"]} if record else {}
    of_a, of_b = _by_exposure(a), _by_exposure(b)
    for what, first in of_a.items():
        second = of_b.get(what)
        if second is None:
            continue
        for exposure, x, y in _matched(first, second):
            x, y = as_shown(x, signed=a.signed), as_shown(y, signed=b.signed)
            pair = pairs.get((*what, exposure))
            if pair is not None:
                pair = pair_as_shown(pair, signed=(record or {}).get("audit_version", 0) > 2)
            same = x["attacker"] != "worst" or attackers_tried(a, str(what[1])) == attackers_tried(b, str(what[1]))
            yield _figure(x, y, exposure, pair, same)


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["metric"], row["attribute"], row["attacker"], row["variant"], row["exposure"]


def _by_exposure(run: StoredRun) -> dict[tuple[Any, ...], dict[str | None, RowRecord]]:
    by_exposure: dict[tuple[Any, ...], dict[str | None, RowRecord]] = {}
    for row in run.rows:
        by_exposure.setdefault(_key(row)[:-1], {})[row["exposure"]] = row
    return by_exposure


def _matched(
    a: Mapping[str | None, RowRecord], b: Mapping[str | None, RowRecord]
) -> Iterable[tuple[str | None, RowRecord, RowRecord]]:
    """Rows of the same exposure; a row without one counts as both."""
    if set(a) == set(b) == {None}:
        yield None, a[None], b[None]
        return
    for exposure in ("unseen", "seen"):
        x, y = a.get(exposure, a.get(None)), b.get(exposure, b.get(None))
        if x is not None and y is not None:
            yield exposure, x, y


def _figure(
    x: RowRecord, y: RowRecord, exposure: str | None, pair: Mapping[str, Any] | None, same: bool
) -> dict[str, Any]:
    """A row of the table; `same`: its attackers are chosen among the same."""
    metric, attacker, label = x["metric"], x["attacker"], row_label(x)
    of = [x["attribute"], _WHO.get(attacker or "", f"{attacker} attacker" if attacker else None), exposure]
    first, second = x["value"], y["value"]
    low = high = p = None
    if pair is not None and pair["value"] is not None and pair["evidence"] == "ok":
        first, second, p = pair["a"], pair["b"], pair["p_holm"]
        low, high = (None if pair[e] is None else -pair[e] for e in ("ci_high", "ci_low"))
        same = True  # the same attackers were set on both
    few = "insufficient" in (x["evidence"], y["evidence"])
    return {
        "Measure": label,
        "Of": " · ".join(filter(None, of)),
        "A": first,
        "B": second,
        "B - A": None if first is None or second is None or not same else second - first,
        "Shows": OTHERS
        if not same
        else LITTLE
        if few
        else NO_BITS
        if metric == "usable_bits" and any(known(r["value"]) and (r["value"] or 0.0) <= 0 for r in (x, y))
        else _verdict(x, y)
        if p is None
        else _paired_verdict(pair, p),
        "B - A, 95 %, paired": interval(low, high).strip(),
        "p (Holm)": p,
        "A, 95 %": interval(x["ci_low"], x["ci_high"]).strip(),
        "B, 95 %": interval(y["ci_low"], y["ci_high"]).strip(),
        "Better": x["direction"],
        "Chance, A": x["floor_random"],
        "Chance, B": y["floor_random"],
        "Degree": y.get("floor_degree"),
        "n": y["n"] if x["n"] == y["n"] else min((n for n in (x["n"], y["n"]) if n is not None), default=None),
        "_metric": metric,
        "_about": x["attribute"],
        "_exposure": exposure,
        "_variant": x["variant"],
        "_leads": metric in _LEADING and attacker in (None, "worst") and x["variant"] in (*_PLAIN, *_GAPS),
    }


def _paired_verdict(pair: Mapping[str, Any] | None, p: float) -> str:
    return SAME if p >= 0.05 or pair is None else LOWER if pair["b"] < pair["a"] else HIGHER


def _verdict(x: RowRecord, y: RowRecord) -> str:
    """One of three from two intervals: a difference, none that is shown, or not enough evidence."""
    if not (known(x["value"]) and known(y["value"])):
        return LITTLE
    if x["value"] == y["value"]:
        return ALIKE
    return {"lower": LOWER, "higher": HIGHER, "overlap": SAME, None: LITTLE}[order(x, y)]


def _sentences(a: StoredRun, b: StoredRun, figures: Sequence[Mapping[str, Any]], *, paired: bool) -> Iterable[str]:
    if not figures:
        missing = [name for name, run in zip("AB", (a, b), strict=True) if not run.audited]
        yield (
            f"Run {' and run '.join(missing)} {'has' if len(missing) == 1 else 'have'} no audit, so there are no "
            "figures to compare."
            if missing
            else "The two audits have no measure in common."
        )
        return
    for name, run in zip("AB", (a, b), strict=True):
        if not (verdict := usable(run)).counts:
            yield f"{name} is not usable: {verdict.why}. What it does not leak, and how alike it treats groups, is no success."
    # The figures are sorted: of a treated attribute first, unseen values before seen ones.
    leads = [f for f in figures if f["_leads"]]
    auc = next((f for f in leads if f["_metric"] == "auc"), None)
    if auc:
        where = {"unseen": ", on values that training did not see", "seen": ", on values that training may have seen"}
        yield (
            f"{auc['_about']}: the strongest attacker picks the right one of two people with different values "
            f"{_share(auc['A'])} of the time from A "
            f"and {_share(auc['B'])} from B{where.get(auc['_exposure'], '')}; a coin "
            f"gets 50 %. {auc['Shows']}."
        )
    matched, usual = (
        next((f for f in leads if f["_metric"] == metric and known(f["A"]) and known(f["B"])), None)
        for metric in ("ndcg_at_10_matched", "ndcg_at_10")
    )
    if matched:
        degree = f"; the training degree alone gives {matched['Degree']:.3f}" if known(matched["Degree"]) else ""
        yield (
            f"Link quality, NDCG@10 among strangers of the friend's own {matched['_about']} group: {matched['A']:.3f} "
            f"with A, {matched['B']:.3f} with B{degree}. {matched['Shows']}."
        )
    if usual:
        pays = f", which also pays for reading {matched['_about']}" if matched else " among all strangers"
        yield f"The usual NDCG@10{pays}: {usual['A']:.3f} with A, {usual['B']:.3f} with B. {usual['Shows']}."
    differ = sum(f["Shows"] in (LOWER, HIGHER) for f in figures)
    few = sum(f["Shows"] == LITTLE for f in figures)
    how = "differ by more than chance" if paired else "have intervals that do not meet"
    yield f"{differ} of {len(figures)} measures {how}" + (
        f"; {few} {'has' if few == 1 else 'have'} not enough evidence." if few else "."
    )


def _share(value: Any) -> str:
    return f"{100 * value:.1f} %" if known(value) else "(not measured)"


def _address(a: StoredRun, b: StoredRun) -> tuple[dict[str, str], str]:
    for name, run in zip("AB", (a, b), strict=True):
        if not run.audited:
            return {}, f"Run {name} has no audit for the other pages to show."
        if run.archived is not None:
            return {}, f"Run {name} is archived; bring it back, and the other pages show the two."
    if a.dataset["fingerprint"] != b.dataset["fingerprint"]:
        return {}, "The other pages show two runs of one graph; these are of two."
    address = {"data": a.dataset["fingerprint"][:8], "before": a.id, "after": b.id}
    treated = [t for t in (*b.config["sensitive"], *a.config["sensitive"]) if t in audited_attributes(b)]
    return address | ({"attribute": treated[0]} if treated else {}), ""
