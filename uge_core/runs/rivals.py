"""All methods on one graph: what each hides of an attribute, from whom, and what it costs, a row per method and seed.

Each method trains with its own default lambda, or as an entry says, its seeds in one pass. Figures are rows of the
audit that `uge audit` would make of the run. A row is written to a file as soon as it is measured, so that hours of
work survive an end, and a second call goes on where the first stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from uge_core.audit import version
from uge_core.audit.attacker_order import DEFAULT_ATTACKERS, chosen, ordered_attackers
from uge_core.audit.base import RowRecord
from uge_core.errors import ConfigError, UgeError
from uge_core.graph.graph import AttributedGraph
from uge_core.machine import stamp
from uge_core.registry import find, names, unknown_name
from uge_core.runs.entry import Entry
from uge_core.runs.kept_rows import append_row, read_rows
from uge_core.runs.measured import Audited, Cell, Measure, cell
from uge_core.training.config import RunConfig, known_settings, split_names

SCHEMA = "uge-rivals/2"
_OF_ALL = ("seed", "split_seed", "test_share")  # settings that no entry has for itself
_GAPS: Mapping[str, Mapping[str, str | None]] = {
    "dp": {"calibrated": "calibrated", "top-10": "top-10", "raw": None},
    "eo": {"calibrated": "calibrated", "top-10": "top-10", "raw": "held-out"},
}
"""Variants of the rows of DP and EO, by what a row of `rivals` calls them."""


def rivals(
    graph: AttributedGraph,
    sensitive: str,
    *,
    backbone: str = "node2vec",
    entries: Sequence[str] = (),
    seeds: Sequence[int] = (0, 1, 2),
    options: Mapping[str, Any] | None = None,
    attackers: Sequence[str] = (),
    rows: Path | None = None,
    device: str = "auto",
    on_note: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Trains and audits every method that can serve, and returns the record.

    Args:
        graph: what to train on.
        sensitive: the attribute to hide; "gender+region" hides both jointly and measures the first.
        backbone: a backbone's name.
        entries: "method", "method:lambda" or "method:lambda:key=value"; none: all methods with their defaults.
        seeds: initialisations; the split is one.
        options: further settings, such as epochs; each is given to the methods that know it.
        attackers: who is tried beside the audit's default attackers, such as "graph". `worst` is among the default
            ones, whoever else is tried.
        rows: a file of JSON lines: what it holds of these runs is not measured again, what is measured is added.
        device: "auto", "cpu" or "cuda".
        on_note: given a line as each method ends.

    Returns:
        `uge-rivals/2`: a row per method and seed, or with `refused`, the reason why a method cannot serve here. By
        "seen" and "unseen", which are one of a method that reads no attribute, a row has the AUC of each attacker and
        of "worst", Micro-F1, and NDCG@10 by the strangers it ranks among; DP and EO are the exported embedding's. Each
        figure is a row of the audit with its interval, n and floors.

    Raises:
        ConfigError: a name, a lambda or a setting that is not allowed.
        GraphError: an attribute the graph does not have.
    """
    common = dict(options or {})
    listed = [Entry.parse(e) for e in entries] or [Entry(m) for m in names("debias.methods")]
    listed.sort(key=lambda e: find("debias.methods", e.method).position)
    treated = [graph.attribute(name).name for name in split_names(sensitive)]
    for name in attackers:
        find("audit.attackers", name)
    _check_settings(listed, backbone, common)
    # What no method could serve with is refused before anything trains.
    _config(graph, treated, backbone, Entry("none"), 0, common)
    tried = [a.name for a in ordered_attackers() if a.name in {*DEFAULT_ATTACKERS, *attackers}]
    about = {
        "schema": SCHEMA,
        "audit": version.VERSION,
        "data": graph.name,
        "fingerprint": graph.fingerprint,
        "backbone": backbone,
        "sensitive": "+".join(treated),
        "attackers": tried,
        "settings": {key: str(value) for key, value in common.items()},
    }
    # A run's id does not tell for which attribute, and by whom, it was measured, nor how.
    measured = {key: about[key] for key in ("audit", "sensitive", "attackers")}
    there, earlier = read_rows(rows, SCHEMA)
    if earlier:
        on_note(f"{rows}: {earlier} rows of an earlier schema are left as they are, and not read")
    kept = {row["run"]: row for row in there if row["run"] and measured.items() <= row.items()}
    measure = Measure(graph, tried, device)
    results: list[dict[str, Any]] = []
    for entry in listed:
        own = {"method": entry.method, "lam": entry.lam, "options": dict(entry.options)}
        ids: list[str] = []
        try:
            configs = [_config(graph, treated, backbone, entry, seed, common) for seed in seeds]
            own["lam"], ids = configs[0].lam, [c.run_id(graph.fingerprint) for c in configs]
            missing = [c for c, i in zip(configs, ids, strict=True) if i not in kept]
            for ended in measure(missing, treated[:1], treated):
                which = {"run": ended.id, "seed": ended.fitted.config.seed}
                kept[ended.id] = about | own | which | _figures(ended, treated, tried) | {"refused": None}
                append_row(rows, kept[ended.id])
        except UgeError as error:
            refused = about | own | {"run": None, "seed": None, "refused": str(error)}
            if refused not in there:
                append_row(rows, refused)
            results.append(refused)
            on_note(f"{entry.method}: {error}")
        shown = {row["run"] for row in results}
        results += [kept[i] | own for i in ids if i in kept and i not in shown]
        if ids and ids[0] in kept:
            on_note(f"{entry.method}: {_words(kept[ids[0]])}")
    return {**about, "seeds": list(seeds), "machine": stamp(None), "rows": results}


def stored_rows(path: Path) -> list[dict[str, Any]]:
    """The rows that a file of `rivals` holds.

    Raises:
        ConfigError: there is no such file, or it holds none of this schema.
    """
    found, earlier = read_rows(path, SCHEMA)
    if not found:
        why = f"{earlier} rows of an earlier schema" if earlier else "nothing" if path.exists() else "no file there"
        raise ConfigError(f"{path} holds no row of {SCHEMA} ({why}); measure with uge rivals DATA --rows {path}")
    return found


def _check_settings(listed: Sequence[Entry], backbone: str, common: Mapping[str, Any]) -> None:
    """Refuses settings that none of these methods has, and entries' own that it has not or that all share."""
    if "seed" in common:
        raise ConfigError("seeds are named by --seeds (seeds=), not as a setting")
    known = {e.method: known_settings(backbone, e.method) for e in listed}
    everywhere = set[str]().union(*known.values())
    for key in common:
        if key not in everywhere:
            raise ConfigError(unknown_name("setting of these methods", key, sorted(everywhere)))
    for entry in listed:
        for key in entry.options:
            if key in _OF_ALL:
                raise ConfigError(
                    f"{entry.method}: {key} is one for all methods of a table, not an entry's own setting"
                )
            if key not in known[entry.method]:
                raise ConfigError(unknown_name(f"setting of {entry.method}", key, sorted(known[entry.method])))


def _config(
    graph: AttributedGraph, treated: list[str], backbone: str, entry: Entry, seed: int, common: Mapping[str, Any]
) -> RunConfig:
    known = known_settings(backbone, entry.method)
    return RunConfig.resolve(
        graph,
        sensitive=treated,
        backbone=backbone,
        method=entry.method,
        lam=entry.lam,
        seed=seed,
        options={k: v for k, v in common.items() if k in known} | dict(entry.options),
    )


def _figures(run: Audited, treated: list[str], attackers: Sequence[str]) -> dict[str, Any]:
    rows, joint = run.rows, "+".join(treated)
    matched = {"metric": "ndcg_at_10_matched", "attribute": treated[0]}
    with_edges = [a for a in attackers if find("audit.attackers", a).knows_edges]
    length = np.linalg.norm(run.fitted.embedding.astype(np.float64), axis=1)
    return {
        "usable": _both(rows, "note", metric="usable"),
        "auc": {a: _both(rows, metric="auc", attacker=a) for a in attackers if a not in with_edges}
        | {"worst": _named(_both(rows, "note", metric="auc", attacker="worst"))},
        "auc_with_neighbours": {a: _both(rows, metric="auc", attacker=a) for a in with_edges},
        "micro_f1": _both(rows, metric="micro_f1", attacker="linear", variant="standard"),
        "ndcg": {
            "matched": _both(rows, **matched, variant="held-out"),
            "degree": _both(rows, **matched, variant="degree"),
            "uniform twin": _both(rows, **matched, variant="uniform"),
            "uniform": _both(rows, metric="ndcg_at_10", variant="held-out"),
            "bias-free": _both(rows, metric="ndcg_at_10_bias_free", attribute=joint, variant="held-out"),
        },
        **{
            gap: {form: cell(rows, "seen", metric=gap, variant=variant) for form, variant in forms.items()}
            for gap, forms in _GAPS.items()
        },
        "length": float(np.median(length)),
        "seconds": run.seconds,
    }


def _both(rows: Sequence[RowRecord], *more: str, **asked: Any) -> dict[str, Cell]:
    """A figure of the exported embedding and of the twin; one row counts as both where training read no attribute."""
    return {exposure: cell(rows, exposure, *more, **asked) for exposure in ("seen", "unseen")}


def _named(cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """Of the strongest attacker, its name in place of the note that has it."""
    return {
        exposure: {k: v for k, v in one.items() if k != "note"} | {"attacker": chosen(one.get("note"))}
        for exposure, one in cells.items()
    }


def _words(row: Mapping[str, Any]) -> str:
    """A row's leading figures."""
    leading = {"worst AUC unseen": row["auc"]["worst"]["unseen"], "matched NDCG@10": row["ndcg"]["matched"]["unseen"]}
    known = {name: cell["value"] for name, cell in leading.items() if "value" in cell}
    return ", ".join(f"{name} {value:.3f}" for name, value in known.items()) or "too little evidence"
