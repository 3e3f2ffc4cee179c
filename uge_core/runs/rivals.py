"""All methods on one graph: what each hides of an attribute, from whom, and what it costs, a row per method and seed.

Each method trains with its own default lambda, or as an entry says, its seeds in one pass. Figures are rows of the
audit that `uge audit` would make of the run. A row is written to a file as soon as it is measured, so that hours of
work survive an end, and a second call goes on where the first stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uge_core.audit import version
from uge_core.audit.attacker_order import DEFAULT_ATTACKERS, chosen, ordered_attackers
from uge_core.audit.base import RowRecord
from uge_core.audit.run import audit_embedding
from uge_core.errors import ConfigError, OutOfMemory, UgeError
from uge_core.graph.graph import AttributedGraph
from uge_core.machine import stamp
from uge_core.registry import find, names, unknown_name
from uge_core.runs.audits import Splits, attributes_read
from uge_core.runs.disclosure import Release
from uge_core.training.config import RunConfig, known_settings, split_names

if TYPE_CHECKING:
    from uge_core.audit.ndcg import BiasFree
    from uge_core.training.fit import Fitted

SCHEMA = "uge-rivals/2"
_OF_ALL = ("seed", "split_seed", "test_share")  # settings that no entry has for itself
_GAPS: Mapping[str, Mapping[str, str | None]] = {
    "dp": {"calibrated": "calibrated", "top-10": "top-10", "raw": None},
    "eo": {"calibrated": "calibrated", "top-10": "top-10", "raw": "held-out"},
}
"""Variants of the rows of DP and EO, by what a row of `rivals` calls them."""
_KEPT = ("value", "ci_low", "ci_high", "n", "floor_random", "floor_majority", "floor_degree")
_DIGITS = 6
Cell = dict[str, Any]
"""One figure of a row: what applies of these fields of the audit's row; no value where the evidence does not reach."""


@dataclass(frozen=True)
class Entry:
    """A method with its lambda and its own settings, as the table lists it."""

    method: str
    lam: float | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Entry:
        """From "uge-c", "uge-c:1.9" or "uge-ork:1:num_features=512".

        Raises:
            ConfigError: the lambda is no number, or a setting is given twice.
        """
        method, *parts = text.split(":")
        lam = parts.pop(0) if parts and "=" not in parts[0] else ""
        form = "write METHOD, METHOD:LAMBDA or METHOD:LAMBDA:KEY=VALUE, as uge-c:0.5"
        options: dict[str, str] = {}
        for part in parts:
            key, equals, value = part.partition("=")
            if not (key and equals) or key in options:
                raise ConfigError(f"{text!r}: {part!r} is no setting, or is given twice; {form}")
            options[key] = value
        try:
            return cls(method, float(lam) if lam else None, options)
        except ValueError as error:
            raise ConfigError(f"{text!r}: {lam!r} is no lambda; {form}") from error


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
    there, earlier = _stored(rows)
    if earlier:
        on_note(f"{rows}: {earlier} rows of an earlier schema are left as they are, and not read")
    kept = {row["run"]: row for row in there if row["run"] and measured.items() <= row.items()}
    measure = _Measure(graph, treated, tried, device)
    results: list[dict[str, Any]] = []
    for entry in listed:
        own = {"method": entry.method, "lam": entry.lam, "options": dict(entry.options)}
        ids: list[str] = []
        try:
            configs = [_config(graph, treated, backbone, entry, seed, common) for seed in seeds]
            own["lam"], ids = configs[0].lam, [c.run_id(graph.fingerprint) for c in configs]
            for config, figures in measure([c for c, i in zip(configs, ids, strict=True) if i not in kept]):
                run = config.run_id(graph.fingerprint)
                kept[run] = about | own | {"run": run, "seed": config.seed} | figures | {"refused": None}
                _append(rows, kept[run])
        except UgeError as error:
            refused = about | own | {"run": None, "seed": None, "refused": str(error)}
            if refused not in there:
                _append(rows, refused)
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
    found, earlier = _stored(path)
    if not found:
        why = f"{earlier} rows of an earlier schema" if earlier else "nothing" if path.exists() else "no file there"
        raise ConfigError(f"{path} holds no row of {SCHEMA} ({why}); measure with uge rivals DATA --rows {path}")
    return found


def _stored(path: Path | None) -> tuple[list[dict[str, Any]], int]:
    """The rows of this schema, and how many there are of others."""
    found: list[dict[str, Any]] = []
    if path is not None and path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            # The last line of a process that was killed may be half a line: its run is measured again.
            with suppress(json.JSONDecodeError):
                found.append(json.loads(line))
    mine = [row for row in found if row.get("schema") == SCHEMA]
    return mine, len(found) - len(mine)


def _append(rows: Path | None, row: Mapping[str, Any]) -> None:
    """Adds a line, on a line of its own where the last one was cut."""
    if rows is None:
        return
    with rows.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(row).encode() + b"\n")


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


class _Measure:
    """Trains the seeds of one entry in one pass and audits each; floors and the bias-free counts are made once."""

    def __init__(self, graph: AttributedGraph, treated: list[str], attackers: Sequence[str], device: str) -> None:
        self.graph, self.device, self.treated, self.attackers = graph, device, treated, attackers
        self.floors: dict[str, Any] = {}
        self.splits = Splits(graph)
        self.bias_free: dict[tuple[Any, ...], BiasFree] = {}

    def __call__(self, configs: Sequence[RunConfig]) -> Iterator[tuple[RunConfig, dict[str, Any]]]:
        from uge_core.training.fit import fit

        if not configs:
            return
        try:
            fitted = fit(configs, self.graph, self.splits(configs[0]), device=self.device)
        except OutOfMemory:
            if len(configs) == 1:
                raise
            half = len(configs) // 2
            yield from self(configs[:half])
            yield from self(configs[half:])
            return
        for one in fitted:
            yield one.config, self._figures(one) | {"seconds": one.seconds / len(configs)}

    def _figures(self, fitted: Fitted) -> dict[str, Any]:
        config, joint = fitted.config, "+".join(self.treated)
        rows: Any = audit_embedding(
            fitted.embedding,
            self.graph,
            self.splits(config),
            attributes=self.treated[:1],
            unknown=config.unknown,
            split_seed=config.split_seed,
            attackers=self.attackers,
            treated=config.sensitive,
            read=attributes_read(config, self.graph),
            twin=fitted.twin,
            bias_free={joint: self._bias_free(config)},
            calibrated=config.calibrated,
            score=config.score,
            notes=fitted.notes,
            twin_notes=fitted.twin_notes,
            floors=self.floors,
            disclosure=Release(),
        ).to_json()
        matched = {"metric": "ndcg_at_10_matched", "attribute": self.treated[0]}
        with_edges = [a for a in self.attackers if find("audit.attackers", a).knows_edges]
        length = np.linalg.norm(fitted.embedding.astype(np.float64), axis=1)
        return {
            "usable": _both(rows, "note", metric="usable"),
            "auc": {a: _both(rows, metric="auc", attacker=a) for a in self.attackers if a not in with_edges}
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
                gap: {form: _cell(rows, "seen", metric=gap, variant=variant) for form, variant in forms.items()}
                for gap, forms in _GAPS.items()
            },
            "length": float(np.median(length)),
        }

    def _bias_free(self, config: RunConfig) -> BiasFree:
        from uge_core.training.weights import bias_free_gains

        key = (config.test_share, config.validation, config.split_seed, config.unknown)
        if key not in self.bias_free:
            self.bias_free[key] = bias_free_gains(self.graph, self.splits(config), self.treated, unknown=config.unknown)
        return self.bias_free[key]


def _both(rows: Sequence[RowRecord], *more: str, **asked: Any) -> dict[str, Cell]:
    """A figure of the exported embedding and of the twin; one row counts as both where training read no attribute."""
    return {exposure: _cell(rows, exposure, *more, **asked) for exposure in ("seen", "unseen")}


def _cell(rows: Sequence[RowRecord], exposure: str, *more: str, **asked: Any) -> Cell:
    """The row that was asked for, with `more` of its fields."""
    for row in rows:
        record: Mapping[str, Any] = row
        if record["exposure"] in (exposure, None) and asked.items() <= record.items():
            known = {name: record[name] for name in (*_KEPT, *more) if record[name] is not None}
            return {name: round(v, _DIGITS) if isinstance(v, float) else v for name, v in known.items()}
    return {}


def _named(cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """Of the strongest attacker, its name in place of the note that has it."""
    return {
        exposure: {k: v for k, v in cell.items() if k != "note"} | {"attacker": chosen(cell.get("note"))}
        for exposure, cell in cells.items()
    }


def _words(row: Mapping[str, Any]) -> str:
    """A row's leading figures."""
    leading = {"worst AUC unseen": row["auc"]["worst"]["unseen"], "matched NDCG@10": row["ndcg"]["matched"]["unseen"]}
    known = {name: cell["value"] for name, cell in leading.items() if "value" in cell}
    return ", ".join(f"{name} {value:.3f}" for name, value in known.items()) or "too little evidence"
