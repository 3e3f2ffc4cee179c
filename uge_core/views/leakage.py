"""Stored audits as what a page shows: tables, choices and sentences. Nothing is computed anew here.

Leakage is shown as an attacker sees it: an AUC below 0.5 is an attacker whose answers point the
wrong way and who would simply turn them round, so it is shown as its distance from 0.5, and said.
"""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from uge_core import registry
from uge_core.debias.base import Method
from uge_core.runs.store import LEADING, RunStore, StoredRun
from uge_core.spreadsheet import to_csv

METRIC_LABELS = {
    "micro_f1": "Micro-F1", "balanced_accuracy": "balanced accuracy", "auc": "AUC", "usable_bits": "usable information (bits)",
    "ndcg_at_10": "NDCG@10",
    "ndcg_at_10_bias_free": "bias-free NDCG@10", "ndcg_gap": "NDCG@10 gap", "ndkl": "NDKL", "dp": "DP gap", "eo": "EO gap",
}  # fmt: skip
# AUC first: it has one floor for every attribute, where a low Micro-F1 can be a balanced probe of a rare value
_LEAKAGE = ("auc", "micro_f1", "balanced_accuracy", "usable_bits")
_SHORT = ("method", "file", "sensitive", "backbone", "seed")
_ATTACKER_ORDER = {name: i for i, name in enumerate(("worst", "linear", "trees", "mlp", "knn", "graph"))}


def method_class(name: str) -> type[Method]:
    """The method that made a run; one this version does not have keeps its name and a neutral look."""
    if name in registry.names("debias.methods"):
        found: type[Method] = registry.find("debias.methods", name)
        return found
    return type("Foreign", (Method,), {"label": name})


def config_parts(config: Mapping[str, Any], *, typed: bool = True) -> dict[str, str]:
    """A run's config in words, by field, empty where it does not apply.

    Args:
        config: the record of a `RunConfig`.
        typed: names as they are typed in commands; else the method's label.
    """
    method, lam = config.get("method", ""), config.get("lambda")
    penalty = "" if lam is None else f" {'lambda' if typed else 'λ'} {lam:g}"
    return {
        "backbone": config.get("backbone", ""),
        "method": (method if typed else method_class(method).label) + penalty,
        "file": config.get("file", ""),
        "sensitive": "+".join(config.get("sensitive", ())),
        "dim": f"dim {config['dim']}" if "dim" in config else "",
        "seed": f"seed {config['seed']}" if "seed" in config else "",
        "split": "" if config.get("split_seed") is None else f"split {config['split_seed']}",
        "epochs": f"{config['epochs']} epochs" if "epochs" in config else "",
    }


def config_words(config: Mapping[str, Any], *fields: str, typed: bool = True, joint: str = ", ") -> str:
    """Some `fields` of `config_parts` in one line; all of them where none is named."""
    parts = config_parts(config, typed=typed)
    return joint.join(parts[f] for f in fields or parts if parts[f])


@dataclass(frozen=True)
class Overview:
    """What the first page shows.

    Attributes:
        table: one row per audited run and attribute.
        sentences: what the table says, an attribute at a time, in plain words.
        unfinished: runs that are being trained, failed or were interrupted.
        num_runs: audited runs.
        root: where the store lies.
        first_command: what makes a first run in this store.
        shipped: how many of the audited runs came with the package, and the version that made them, or None.
    """

    table: pd.DataFrame
    sentences: tuple[Sentence, ...]
    unfinished: pd.DataFrame
    num_runs: int
    root: str
    first_command: str
    shipped: tuple[int, str] | None = None


def overview(store: RunStore) -> Overview:
    """The stored runs with their leakage and utility beside the floors."""
    runs = store.list(audits="lead")
    audited = sorted((r for r in runs if r.audited), key=run_order)
    names = labels(audited)
    table = pd.DataFrame([row for run in audited for row in _overview_rows(run, names[run.id])])
    waiting = pd.DataFrame(
        [
            {
                "Run": run.id,
                "Status": run.status if run.status != "finished" else "finished, not audited yet",
                "Config": config_words(run.config, *_SHORT, typed=False, joint=" · "),
                "Data": run.dataset.get("name", ""),
                "Started": time.strftime("%Y-%m-%d %H:%M", time.localtime(run.created)),
                "Reason": run.reason or "",
            }
            for run in runs
            if not run.audited
        ]
    )
    first = f"uge sweep sample:town --sensitive region --methods none,uge-w,uge-c,uge-ok --epochs 300 --store {shlex.quote(str(store.root))}"
    versions = [str(run.dataset["shipped"]) for run in audited if run.dataset.get("shipped")]
    shipped = (len(versions), max(versions)) if versions else None
    return Overview(table, sentences(audited), waiting, len(audited), str(store.root), first, shipped)


def labels(runs: Sequence[StoredRun]) -> dict[str, str]:
    """A short name per run id, told apart where two would read the same: method, lambda, what was treated."""
    parts = {run.id: {"dataset": run.dataset["name"]} | config_parts(run.config, typed=False) for run in runs}
    differing = [
        field
        for field in ("dataset", "backbone", "dim", "seed", "split", "epochs")
        if len({p[field] for p in parts.values()}) > 1
    ]
    names = {
        i: " · ".join(filter(None, (p[f] for f in ("method", "file", "sensitive", *differing))))
        for i, p in parts.items()
    }
    for settings in settings_apart({run.id: run.config for run in runs}, names), {i: [i[:6]] for i in names}:
        count = Counter(names.values())
        names = {i: " · ".join([n, *settings[i][:3]]) if count[n] > 1 else n for i, n in names.items()}
    return names


_NO_SETTING = {"lambda", "seed", "warm_from", "warm_epochs", "method", "file", "sensitive"}


def settings_apart(configs: Mapping[str, Mapping[str, Any]], names: Mapping[str, str]) -> dict[str, list[str]]:
    """By key, the settings in which runs of one name differ, as "score distance"; none where a name stands once."""
    alike: dict[str, list[str]] = {}
    for key, name in names.items():
        alike.setdefault(name, []).append(key)
    out: dict[str, list[str]] = {key: [] for key in names}
    for keys in alike.values():
        flat = {key: _flat(configs[key]) for key in keys} if len(keys) > 1 else {}
        for field in sorted({f for settings in flat.values() for f in settings} - _NO_SETTING):
            if len({settings.get(field) for settings in flat.values()}) > 1:
                for key in keys:
                    out[key] += [f"{field.rsplit('.', 1)[-1]} {flat[key][field]}"] if field in flat[key] else []
    return out


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    out: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[prefix + key] = str(value)
    return out


def run_order(run: StoredRun) -> tuple[Any, ...]:
    """What runs are sorted by wherever they are listed: data, backbone, method, attributes, lambda, seed."""
    c = run.config
    return (
        run.dataset["name"], c["backbone"], c["split_seed"] or 0, method_class(c["method"]).position, c["method"],
        c["sensitive"], c["lambda"] or 0.0, c.get("seed", 0), run.id,
    )  # fmt: skip


def audit_rows(run: StoredRun, **criteria: Any) -> list[dict[str, Any]]:
    """The rows of a run's audit whose fields equal `criteria`."""
    rows = list(run.rows)
    for key, value in criteria.items():  # the first leaves few to the others: a thousand runs are a second, not eight
        rows = [r for r in rows if r.get(key) == value]
    return rows


def _lead(rows: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """The row a report leads with: measured on nodes whose values training did not see, where there is one."""
    ranked = sorted(rows, key=lambda r: {"unseen": 0, None: 1, "seen": 2}.get(r["exposure"], 3))
    return ranked[0] if ranked else None


def matching_row(rows: Iterable[dict[str, Any]], exposure: str | None) -> dict[str, Any] | None:
    """The row of the same member as `exposure`; a row without exposure counts as both."""
    ranked = sorted(
        (r for r in rows if r["exposure"] in (exposure, None) or exposure is None),
        key=lambda r: (r["exposure"] != exposure, r["exposure"] == "seen"),
    )
    return ranked[0] if ranked else None


def audited_attributes(run: StoredRun) -> list[str]:
    """The attributes whose leakage was measured."""
    return list(dict.fromkeys(r["attribute"] for r in audit_rows(run) if r["attacker"] and r["attribute"]))


def as_shown(row: dict[str, Any]) -> dict[str, Any]:
    """The row with an AUC below 0.5 turned round, and its random floor likewise."""
    if row["metric"] != "auc":
        return row
    if row["floor_random"] is not None and row["floor_random"] < 0.5:
        row = dict(row, floor_random=1 - row["floor_random"])
    if row["value"] is None or row["value"] >= 0.5:
        return row
    turned = dict(row, value=1 - row["value"], turned=True)
    if row["ci_low"] is not None:
        # An interval across 0.5 starts at 0.5 once turned: no attacker does worse than a coin.
        turned["ci_low"], turned["ci_high"] = max(0.5, 1 - row["ci_high"]), 1 - row["ci_low"]
    return turned


def pair_as_shown(pair: Mapping[str, Any]) -> dict[str, Any]:
    """A paired row with both AUCs turned to .5 and above; where one alone is turned, its difference was never tested."""
    if pair["metric"] != "auc" or None in (pair["a"], pair["b"]) or min(pair["a"], pair["b"]) >= 0.5:
        return dict(pair)
    a, b = (max(v, 1 - v) for v in (pair["a"], pair["b"]))
    turned = {"a": a, "b": b, "value": a - b}
    if max(pair["a"], pair["b"]) <= 0.5:
        low, high = (None if pair[end] is None else -pair[end] for end in ("ci_high", "ci_low"))
        return dict(pair) | turned | {"ci_low": low, "ci_high": high}
    return dict(pair) | turned | {"ci_low": None, "ci_high": None, "p_value": None, "p_holm": None}


def _overview_rows(run: StoredRun, label: str) -> Iterable[dict[str, Any]]:
    # By what is asked for below, so that a thousand runs are looked through once each.
    found: dict[tuple[str | None, ...], list[dict[str, Any]]] = {}
    for row in run.rows:
        found.setdefault((row["metric"], row["attribute"], row["attacker"]), []).append(row)
        found.setdefault((row["metric"], row["variant"]), []).append(row)
    ranked = found.get(("ndcg_at_10", "held-out"), [])
    for attribute in audited_attributes(run):
        f1 = _lead(found.get(("micro_f1", attribute, "worst"), []))
        f1 = f1 or _lead(audit_rows(run, metric="micro_f1", attribute=attribute))
        exposure = f1["exposure"] if f1 else None
        auc = matching_row(found.get(("auc", attribute, "worst"), []), exposure)
        ndcg = matching_row(ranked, exposure)
        auc = as_shown(auc) if auc else None
        yield {
            "Run": label,
            "Attribute": attribute,
            "Exposure": _exposed(run, exposure),
            "Micro-F1": f1["value"] if f1 else None,
            "majority": f1["floor_majority"] if f1 else None,
            "random": f1["floor_random"] if f1 else None,
            "AUC": auc["value"] if auc else None,
            "random AUC": auc["floor_random"] if auc else None,
            "NDCG@10": ndcg["value"] if ndcg else None,
            "random NDCG": ndcg["floor_random"] if ndcg else None,
            "Evidence": "ok" if f1 and f1["evidence"] == "ok" else "not enough",
            "Micro-F1, 95 %": _interval(f1),
            "AUC, 95 %": _interval(auc),
            "NDCG@10, 95 %": _interval(ndcg),
            "people": f1["n"] if f1 else None,
            "ranked": ndcg["n"] if ndcg else None,
            "Treated": attribute in run.config["sensitive"],
            "Id": run.id,
        }


def _exposed(run: StoredRun, exposure: str | None) -> str:
    """What training saw of the tested people's values; of an embedding from elsewhere nobody here knows."""
    return exposure or ("not known" if run.config["method"] == "external" else "not read")


def _interval(row: dict[str, Any] | None) -> str:
    return "" if row is None or row["ci_low"] is None else f"{row['ci_low']:.3f} to {row['ci_high']:.3f}"


@dataclass(frozen=True)
class Sentence:
    """What is found about something, in plain words; both hold names out of people's data as they are.

    Attributes:
        about: an attribute.
        text: what the runs show of it.
    """

    about: str
    text: str

    def __str__(self) -> str:
        return f"{self.about}: {self.text}"


def sentences(runs: Sequence[StoredRun]) -> tuple[Sentence, ...]:
    """What some audited runs show, an attribute at a time."""
    ordered = sorted(runs, key=run_order)
    return tuple(_sentences(ordered, labels(ordered)))


COMPARED = ("backbone", "split_seed", "epochs", "dim")


def _sentences(runs: Sequence[StoredRun], names: dict[str, str]) -> Iterable[Sentence]:
    """Per attribute: the untreated run, the least leaking one, and what guessing gives.

    Only runs that differ in nothing but method, lambda, attributes and seed are compared.
    """
    groups: dict[tuple[Any, ...], list[StoredRun]] = {}
    for run in runs:
        key = (run.dataset["fingerprint"], *(run.config.get(f) for f in COMPARED))
        groups.setdefault(key, []).append(run)
    data = {key[0]: g[0].dataset["name"] for key, g in groups.items()}
    count = Counter(data.values())
    data = {f: f"{name} {f[:8]}" if count[name] > 1 else name for f, name in data.items()}
    firsts = [{"dataset": data[key[0]]} | config_parts(g[0].config) for key, g in groups.items()]
    told = [f for f in ("dataset", "backbone", "split", "epochs", "dim") if len({p[f] for p in firsts}) > 1]
    for group, first in zip(groups.values(), firsts, strict=True):
        where = ", ".join(first[f] for f in told if first[f])
        for attribute in dict.fromkeys(a for r in group for a in audited_attributes(r)):
            about = f"{attribute} ({where})" if where else attribute
            yield Sentence(about, _sentence(attribute, group, names))


def _sentence(attribute: str, group: Sequence[StoredRun], names: dict[str, str]) -> str:
    found = []
    for run in group:
        row = _lead(audit_rows(run, metric="auc", attribute=attribute, attacker="worst"))
        if row and row["value"] is not None and row["evidence"] == "ok":
            found.append((run, as_shown(row)))
    if not found:
        return "not enough evidence in any run to say how much of it can be read."
    plain = _comparable([pair for pair in found if pair[0].config["method"] == "none"])
    treated = _comparable([pair for pair in found if attribute in pair[0].config["sensitive"]])
    best = min(treated, key=lambda pair: pair[1]["value"], default=None)
    text = []
    before = next((pair for pair in plain if best and pair[0].config["seed"] == best[0].config["seed"]), None)
    before = before or next(iter(plain), None)
    if before:
        text.append(f"without debiasing the strongest attacker picks the right one {_share(before[1])}")
    if best:
        several = f"the lowest of {len(treated)} treated runs" if len(treated) > 1 else "the treated run"
        subject = "" if before else "the strongest attacker picks the right one "
        text.append(f"with {names[best[0].id]}, {several}, {subject}{_share(best[1])}")
    if not text:
        those = _comparable(found)
        low, high = (of(those, key=lambda pair: pair[1]["value"]) for of in (min, max))
        text.append(f"with {names[low[0].id]} the strongest attacker picks the right one {_share(low[1])}")
        if len(those) > 1:
            text[-1] += f", the lowest of {len(those)} runs"
            text.append(f"with {names[high[0].id]}, the highest, {_share(high[1])}")
    return (
        f"given two people with different values, {'; '.join(text)}. A coin gets 50 %. {_utility(before, best)}".strip()
    )


_Measured = tuple[StoredRun, dict[str, Any]]


def _comparable(found: list[_Measured]) -> list[_Measured]:
    """Those measured on people whose values training did not see, where there are any."""
    return [pair for pair in found if pair[1]["exposure"] != "seen"] or found


def _share(row: dict[str, Any]) -> str:
    interval = (
        "" if row["ci_low"] is None else f", 95 % interval {100 * row['ci_low']:.1f} to {100 * row['ci_high']:.1f}"
    )
    coin = ", not told apart from a coin" if row["ci_low"] is not None and row["ci_low"] <= 0.5 else ""
    seen = ", measured on people whose values training saw" if row["exposure"] == "seen" else ""
    return f"{100 * row['value']:.1f} % of the time (n = {row['n']:,}{interval}{coin}{seen})"


def _utility(before: _Measured | None, after: _Measured | None) -> str:
    """Link quality of the same members."""
    values = []
    for run, row in filter(None, (before, after)):
        ndcg = matching_row(audit_rows(run, metric="ndcg_at_10", variant="held-out"), row["exposure"])
        values.append(ndcg["value"] if ndcg else None)
    if len(values) < 2 or None in values:
        return ""
    return f"Link quality NDCG@10 goes from {values[0]:.3f} to {values[1]:.3f}."


@dataclass(frozen=True)
class LeakageChoices:
    """What the leakage page can show.

    Attributes:
        runs: label by run id, in the order drawn.
        attributes: names.
        exposures: "unseen" first.
        attackers: "worst" first.
        metrics: label by name.
    """

    runs: dict[str, str]
    attributes: tuple[str, ...]
    exposures: tuple[str, ...]
    attackers: tuple[str, ...]
    metrics: dict[str, str]


def leakage_choices(store: RunStore, *, only: Sequence[str] | None = None) -> LeakageChoices:
    """What there is to choose from in the stored audits, or in those of some runs, archived or not."""
    runs = sorted((r for r in store.list(audits=False, only=only) if r.audited), key=run_order)
    kinds = [k for k in store.kinds([run.id for run in runs]) if k[2] and k[3] in _LEAKAGE]
    attributes, exposures, attackers, metrics = ({kind[i] for kind in kinds} for i in range(4))
    return LeakageChoices(
        labels(runs),
        tuple(sorted(attributes)),
        tuple(e for e in ("unseen", "seen") if e in exposures or None in exposures),
        tuple(sorted(attackers, key=lambda a: (_ATTACKER_ORDER.get(a, 9), a))),
        {m: METRIC_LABELS[m] for m in _LEAKAGE if m in metrics},
    )


@dataclass(frozen=True)
class LeakageView:
    """The leakage page's numbers, one record for chart, table and file.

    Attributes:
        table: one row per run and attribute: value, interval, floors, n, evidence.
        metric: name of the metric.
        title: the finding.
        caption: what is drawn.
        alt: the chart in words.
        remarks: what to know about single rows.
    """

    table: pd.DataFrame
    metric: str
    title: str
    caption: str
    alt: str
    remarks: tuple[str, ...]

    def csv(self) -> str:
        """The table as CSV."""
        return to_csv(self.table)


def leakage_view(
    store: RunStore,
    *,
    exposure: str,
    attacker: str,
    metric: str,
    runs: Sequence[str] | None = None,
    attributes: Sequence[str] | None = None,
) -> LeakageView:
    """Leakage of the chosen runs and attributes.

    Args:
        store: the run store.
        exposure: "unseen" or "seen"; rows of runs that read no attribute count as both.
        attacker: "worst", or one attacker's name.
        metric: micro_f1, balanced_accuracy or auc.
        runs: run ids; None takes all.
        attributes: names; None takes all.
    """
    # A thousand runs' leading rows are read in a tenth of the time of all.
    leads = attacker == "worst" and metric in LEADING
    chosen = sorted((r for r in store.list(audits="lead" if leads else True, only=runs) if r.audited), key=run_order)
    names = labels(chosen)
    records, other = [], []
    for run in chosen:
        for attribute in audited_attributes(run):
            if attributes is not None and attribute not in attributes:
                continue
            row = matching_row(
                (
                    r
                    for r in audit_rows(run, metric=metric, attribute=attribute, attacker=attacker)
                    if r["variant"] in (None, "standard") and r["exposure"] in (exposure, None)
                ),
                exposure,
            )
            if row:
                records.append(_leakage_record(run, names[run.id], attribute, row))
            else:
                same = audit_rows(run, metric=metric, attribute=attribute, attacker=attacker)
                other.append((attribute, any(r["exposure"] == "seen" for r in same)))
    table = pd.DataFrame(records, columns=_LEAKAGE_COLUMNS)
    label = METRIC_LABELS[metric]
    if table.empty:
        words = "No stored run was audited this way; choose another exposure or attacker."
        return LeakageView(table, metric, words, "", words, tuple(_left_out(other, exposure)))
    who = {"worst": "the strongest attacker"}.get(attacker, f"the {attacker} attacker")
    how = {
        "unseen": "on people whose values training did not see",
        "seen": "on people whose values training may have seen",
    }[exposure]
    caption = (
        f"{label} of {who}, {how}. Left is better. Whiskers: 95 % interval over the people tested. "
        "Ticks: what always answering the commonest value gives (majority) and what random embeddings give (random)."
    )
    if metric == "micro_f1":
        caption += " With one label a person, Micro-F1 is the share of right answers."
    alt = f"{label} of {who}, {how}. " + " ".join(_spoken(r) for r in records)
    return LeakageView(
        table, metric, _finding(table, label), caption, alt, (*_remarks(records), *_left_out(other, exposure))
    )


_LEAKAGE_COLUMNS = [
    "attribute", "run", "run_id", "method", "value", "ci_low", "ci_high", "majority", "random", "n", "evidence",
    "telling", "turned", "treated", "exposure", "note",
]  # fmt: skip


def _leakage_record(run: StoredRun, label: str, attribute: str, row: dict[str, Any]) -> dict[str, Any]:
    shown = as_shown(row)
    floors = [f for f in (shown["floor_majority"], shown["floor_random"]) if f is not None]
    low = shown["ci_low"]
    telling = row["evidence"] == "ok" and low is not None and (not floors or low > max(floors))
    return {
        "attribute": attribute, "run": label, "run_id": run.id, "method": run.config["method"],
        "value": shown["value"], "ci_low": shown["ci_low"], "ci_high": shown["ci_high"],
        "majority": shown["floor_majority"], "random": shown["floor_random"], "n": row["n"],
        "evidence": "ok" if row["evidence"] == "ok" else "not enough", "telling": bool(telling), "turned": bool(shown.get("turned")),
        "treated": attribute in run.config["sensitive"], "exposure": _exposed(run, row["exposure"]), "note": row.get("note") or "",
    }  # fmt: skip


def _spoken(record: dict[str, Any]) -> str:
    if record["value"] is None or record["evidence"] != "ok":
        return f"{record['attribute']}, {record['run']}: not enough evidence."
    text = f"{record['attribute']}, {record['run']}: {record['value']:.3f}"
    if record["ci_low"] is not None:
        text += f", interval {record['ci_low']:.3f} to {record['ci_high']:.3f}"
    for floor in ("majority", "random"):
        if record[floor] is not None:
            text += f", {floor} {record[floor]:.3f}"
    return text + "."


def _finding(table: pd.DataFrame, label: str) -> str:
    """The chart's title: the most and the least telling row."""
    ok = table[(table["evidence"] == "ok") & table["value"].notna()]
    if ok.empty:
        return "Not enough evidence to say how much can be read"
    if ok["ci_low"].isna().all():
        return "No interval was measured, so nothing can be told from guessing"
    if not ok["telling"].any():
        return "No attacker can be told from guessing"
    top = max(ok[ok["telling"]].to_dict("records"), key=lambda r: r["value"])
    best = "read best" if len(ok) > 1 else "read"
    return f"{top['attribute']} is {best} from {top['run']}: {label} {top['value']:.3f}"


def _remarks(records: list[dict[str, Any]]) -> Iterable[str]:
    """What holds for several rows, said once; a row's own note stands in the table."""
    groups = {
        "Cannot be told from guessing (hatched or hollow: the interval reaches a floor)": [
            r for r in records if r["evidence"] == "ok" and not r["telling"] and r["ci_low"] is not None
        ],
        "Without an interval, so not held against guessing": [
            r for r in records if r["evidence"] == "ok" and r["value"] is not None and r["ci_low"] is None
        ],
        "Not enough evidence": [r for r in records if r["evidence"] != "ok"],
        "From elsewhere, so nobody here knows whose values training saw": [
            r for r in records if r["exposure"] == "not known"
        ],
        "Measured AUC below 0.5, so the answers point the wrong way and are turned round here": [
            r for r in records if r["turned"]
        ],
    }
    for words, group in groups.items():
        by_attribute = []
        for attribute in dict.fromkeys(r["attribute"] for r in group):
            runs = [r["run"] for r in group if r["attribute"] == attribute]
            everyone = len(runs) == sum(r["attribute"] == attribute for r in records) > 1
            named = f"all {len(runs)} runs" if everyone else ", ".join(runs) if len(runs) <= 4 else f"{len(runs)} runs"
            by_attribute.append(f"{attribute} in {named}")
        if by_attribute:
            yield f"{words}: {'; '.join(by_attribute)}."


def _left_out(missing: Sequence[tuple[str, bool]], exposure: str) -> Iterable[str]:
    """Runs that were not measured this way, by attribute and whether they were on seen values."""
    for shown_seen in (True, False):
        attributes = [a for a, seen in missing if (seen and exposure == "unseen") == shown_seen]
        counts = ", ".join(f"{attributes.count(a)} for {a}" for a in dict.fromkeys(attributes))
        if counts and shown_seen:
            yield f"Runs left out: {counts}. Training read these people's values; they are shown under Seen values."
        elif counts:
            yield f"Runs left out, as they were not measured this way: {counts}."
