"""All methods on one graph, in one table: what each hides, from whom, and what it costs.

Each method trains with its own default lambda (or the one named as "method:lambda"), its seeds in one pass, and is
audited for the attribute it was to hide. A row is written to a file as soon as it is measured, so that hours of work
survive an end, and a second call goes on where the first stopped.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uge_core.audit.attacker_order import ordered_attackers
from uge_core.audit.base import Audit, Row
from uge_core.audit.run import audit_embedding
from uge_core.errors import ConfigError, OutOfMemory, UgeError
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit, split_links
from uge_core.machine import stamp
from uge_core.registry import find, names, unknown_name
from uge_core.training.config import RunConfig, known_settings, split_names

SCHEMA = "uge-rivals/1"
ATTACKERS = tuple(attacker.name for attacker in ordered_attackers())
FIGURES = {
    "f1_seen": "Micro-F1, linear, seen",
    "auc_seen": "AUC, linear, seen",
    "auc_worst": "AUC, worst of vectors, unseen",
    "auc_graph": "AUC, with neighbours, unseen",
    "ndcg": "NDCG@10",
    "ndcg_bias_free": "bias-free NDCG@10",
    "dp": "DP",
    "eo": "EO",
    "seconds": "seconds a run",
}
"""Columns of the table, by the key of a row's figures."""


@dataclass(frozen=True)
class Entry:
    """A method and its lambda, as the table lists it."""

    method: str
    lam: float | None = None

    @classmethod
    def parse(cls, text: str) -> Entry:
        """From "uge-c" or "uge-c:1.9".

        Raises:
            ConfigError: the lambda is no number.
        """
        method, _, lam = text.partition(":")
        try:
            return cls(method, float(lam) if lam else None)
        except ValueError as error:
            raise ConfigError(f"{text!r}: {lam!r} is no lambda; write METHOD or METHOD:LAMBDA, as uge-c:0.5") from error


def rivals(
    graph: AttributedGraph,
    sensitive: str,
    *,
    backbone: str = "node2vec",
    entries: Sequence[str] = (),
    seeds: Sequence[int] = (0, 1, 2),
    options: Mapping[str, Any] | None = None,
    attackers: Sequence[str] = ATTACKERS,
    rows: Path | None = None,
    device: str = "auto",
    on_note: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Trains and audits every method that can serve, and returns the record.

    Args:
        graph: what to train on.
        sensitive: the attribute to hide; "gender+region" hides both jointly and measures the first.
        backbone: a backbone's name.
        entries: "method" or "method:lambda"; none: all methods with their defaults.
        seeds: initialisations; the split is one.
        options: further settings, such as epochs; each is given to the methods that know it.
        attackers: who is tried on values that training did not see. The worst is told among those who have the vectors
            alone; those who know who is linked to whom have a column of their own.
        rows: a file of JSON lines: what it holds of these runs is not measured again, what is measured is added.
        device: "auto", "cpu" or "cuda".
        on_note: given a line as each method ends.

    Returns:
        `uge-rivals/1`: a row per method and seed with its figures (those of `FIGURES`, None where the evidence does
        not reach), or with `refused`, the reason why a method cannot serve here.

    Raises:
        ConfigError: a name, a lambda or a setting that is not allowed.
        GraphError: an attribute the graph does not have.
    """
    listed = [Entry.parse(e) for e in entries] or [Entry(m) for m in names("debias.methods")]
    listed.sort(key=lambda e: find("debias.methods", e.method).position)
    if "seed" in (options or {}):
        raise ConfigError("seeds are named by --seeds (seeds=), not as a setting")
    target = split_names(sensitive)[0]
    for name in split_names(sensitive):
        graph.attribute(name)
    for name in attackers:
        find("audit.attackers", name)
    everywhere = {name for e in listed for name in known_settings(backbone, e.method)}
    for key in options or {}:
        if key not in everywhere:
            raise ConfigError(unknown_name("setting of these methods", key, sorted(everywhere)))
    # What no method could serve with is refused before anything trains.
    _config(graph, sensitive, backbone, Entry("none"), 0, options or {})
    # A run's id does not tell for which attribute, and by whom, it was measured.
    measured = {"sensitive": target, "attackers": sorted(attackers)}
    kept = {row["run"]: row for row in _read(rows) if measured.items() <= row.items()}
    measure = _Measure(graph, sensitive, attackers, device)
    results = []
    for entry in listed:
        try:
            configs = [_config(graph, sensitive, backbone, entry, seed, options or {}) for seed in seeds]
            ids = [c.run_id(graph.fingerprint) for c in configs]
            missing = [c for c, i in zip(configs, ids, strict=True) if i not in kept]
            fresh = measure(missing) if missing else []
        except UgeError as error:
            results.append({"method": entry.method, "lam": entry.lam, "refused": str(error)})
            on_note(f"{entry.method}: {error}")
            continue
        for config, figures in zip(missing, fresh, strict=True):
            run = config.run_id(graph.fingerprint)
            head = {"run": run, "method": entry.method, "lam": config.lam, "seed": config.seed}
            kept[run] = head | measured | figures
            if rows is not None:
                _append(rows, kept[run])
        results += [kept[i] for i in ids]
        on_note(f"{entry.method}: {_words(kept[ids[0]])}")
    about = {
        "data": graph.name,
        "sensitive": sensitive,
        "backbone": backbone,
        "seeds": list(seeds),
        "attackers": list(attackers),
    }
    return {"schema": SCHEMA, **about, "options": dict(options or {}), "machine": stamp(None), "rows": results}


def _read(rows: Path | None) -> Iterator[dict[str, Any]]:
    """The rows a file holds."""
    if rows is None or not rows.exists():
        return
    for line in rows.read_text(encoding="utf-8").splitlines():
        # The last line of a process that was killed may be half a line: its run is measured again.
        with suppress(json.JSONDecodeError):
            yield json.loads(line)


def _append(rows: Path, row: Mapping[str, Any]) -> None:
    """Adds a line, on a line of its own where the last one was cut."""
    with rows.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(row).encode() + b"\n")


def _config(
    graph: AttributedGraph, sensitive: str, backbone: str, entry: Entry, seed: int, options: Mapping[str, Any]
) -> RunConfig:
    known = known_settings(backbone, entry.method)
    return RunConfig.resolve(
        graph,
        sensitive=split_names(sensitive),
        backbone=backbone,
        method=entry.method,
        lam=entry.lam,
        seed=seed,
        options={k: v for k, v in options.items() if k in known},
    )


class _Measure:
    """Trains the seeds of one entry in one pass and audits each; floors and the bias-free counts are made once."""

    def __init__(self, graph: AttributedGraph, sensitive: str, attackers: Sequence[str], device: str) -> None:
        self.graph, self.device, self.names = graph, device, split_names(sensitive)
        self.attackers = tuple(attackers)
        self.floors: dict[str, Any] = {}
        self.split: LinkSplit | None = None
        self.bias_free: dict[str, Any] = {}

    def __call__(self, configs: Sequence[RunConfig]) -> list[dict[str, Any]]:
        from uge_core.training.fit import fit
        from uge_core.training.weights import bias_free_gains

        first = configs[0]
        if self.split is None:
            self.split = split_links(
                self.graph, test_share=first.test_share, validation_share=first.validation, seed=first.split_seed
            )
            self.bias_free = {
                "+".join(self.names): bias_free_gains(self.graph, self.split, self.names, unknown=first.unknown)
            }
        try:
            fitted = fit(configs, self.graph, self.split, device=self.device)
        except OutOfMemory:
            if len(configs) == 1:
                raise
            half = len(configs) // 2
            return self(configs[:half]) + self(configs[half:])
        return [self._audited(f, len(configs)) for f in fitted]

    def _audited(self, fitted: Any, together: int) -> dict[str, Any]:
        config: RunConfig = fitted.config
        reads = self.names if find("debias.methods", config.method).reads_attributes else []
        # Of the embedding that saw all values the table tells the linear attacker alone.
        seen_by = [a for a in self.attackers if a == "linear" or fitted.twin is None]
        audit = audit_embedding(
            fitted.embedding,
            self.graph,
            self.split,
            attributes=self.names[:1],
            attackers=seen_by,
            unknown=config.unknown,
            split_seed=config.split_seed,
            treated=reads,
            read=reads,
            calibrated=config.calibrated,
            bias_free=self.bias_free,
            floors=self.floors,
            notes=fitted.notes,
            score=config.score,
            quick=True,
        )
        unseen = audit
        if fitted.twin is not None:
            unseen = audit_embedding(
                fitted.twin,
                self.graph,
                self.split,
                attributes=self.names[:1],
                attackers=self.attackers,
                unknown=config.unknown,
                split_seed=config.split_seed,
                floors=self.floors,
                parts=("leakage",),
                quick=True,
            )

        def row(among: Audit = audit, **want: Any) -> Row | None:
            return next((r for r in among.rows if all(getattr(r, k) == v for k, v in want.items())), None)

        aucs = {
            a: r.value
            for a in self.attackers
            if (r := row(unseen, metric="auc", attacker=a)) is not None and r.value is not None
        }
        of_edges = {a: v for a, v in aucs.items() if find("audit.attackers", a).knows_edges}
        of_vectors = {a: v for a, v in aucs.items() if a not in of_edges}
        worst = _strongest(of_vectors)
        f1 = row(metric="micro_f1", attacker="linear", variant="standard")
        ndcg = row(metric="ndcg_at_10", variant="held-out")
        figures = {
            "f1_seen": f1,
            "auc_seen": row(metric="auc", attacker="linear"),
            "ndcg": ndcg,
            "ndcg_bias_free": row(metric="ndcg_at_10_bias_free"),
            "dp": row(metric="dp", variant=None),
            "eo": row(metric="eo", variant="held-out"),
        }
        return {
            **{key: None if r is None else r.value for key, r in figures.items()},
            "seconds": fitted.seconds / together,
            "aucs": aucs,
            "auc_worst": of_vectors.get(worst or ""),
            "auc_graph": of_edges.get(_strongest(of_edges) or ""),
            "worst_attacker": worst,
            "majority": f1.floor_majority if f1 else None,
            "ndcg_random": ndcg.floor_random if ndcg else None,
            "refused": None,
        }


def _strongest(aucs: Mapping[str, float]) -> str | None:
    """The attacker whose AUC is farthest from a coin's; None where there is none."""
    return max(aucs, key=lambda a: abs(aucs[a] - 0.5), default=None)


def _words(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{FIGURES[k]} {row[k]:.3f}" for k in FIGURES if row.get(k) is not None)


def table(record: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the record: the mean over the seeds, and the range where there are more than one.

    An AUC below .5 is turned before, as whoever reads it would turn the attacker's answers.
    """
    groups: dict[tuple[str, float | None], list[Mapping[str, Any]]] = {}
    for row in record["rows"]:
        groups.setdefault((row["method"], row["lam"]), []).append(row)
    out = []
    for (method, lam), rows in groups.items():
        name = method if lam is None else f"{method} {lam:g}"
        if rows[0]["refused"]:
            out.append([name, *[""] * len(FIGURES), rows[0]["refused"]])
            continue
        worst = sorted({r["worst_attacker"] for r in rows if r["worst_attacker"]})
        out.append([name, *(_spread([_shown(r, key) for r in rows], key) for key in FIGURES), ", ".join(worst)])
    return ["method", *FIGURES.values(), "worst attacker"], out


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _shown(row: Mapping[str, Any], key: str) -> float | None:
    value: float | None = row[key]
    return max(value, 1 - value) if value is not None and key.startswith("auc") else value


def _spread(values: Sequence[float | None], key: str) -> str:
    known = [v for v in values if v is not None]
    if key == "seconds":
        return f"{statistics.mean(known):.0f}" if known else ""
    if not known:
        return "too little evidence"
    half = (max(known) - min(known)) / 2
    return f"{statistics.mean(known):.3f}" + (f" +- {half:.3f}" if len(known) > 1 else "")
