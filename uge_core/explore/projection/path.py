"""Runs in the order in which their pictures are aligned: an untreated one, then lambda by lambda."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from uge_core.runs.names import run_order
from uge_core.runs.stored_run import StoredRun

_VARIES = ("lambda", "warm_from", "warm_epochs")
_ALIKE = ("backbone", "dim", "seed", "split_seed", "epochs")


def lambda_path(run: StoredRun, runs: Iterable[StoredRun]) -> tuple[StoredRun, ...]:
    """The audited runs that differ from `run` in nothing but lambda, rising; `run` alone where it has none."""
    if run.config.get("lambda") is None:
        return (run,)
    by_id = {r.id: r for r in (*runs, run) if r.audited and _series(r) == _series(run)}
    by_lambda = {r.config["lambda"]: r for r in (*by_id.values(), run)}
    return tuple(by_lambda[lam] for lam in sorted(by_lambda))


def chains(runs: Sequence[StoredRun]) -> list[list[StoredRun]]:
    """Any runs as paths: each lambda path once, an untreated run like it in front where there is one."""
    runs = sorted(runs, key=run_order)
    plain = [r for r in runs if not r.config.get("sensitive")]
    out: dict[str, list[StoredRun]] = {}
    for run in runs:
        if run in plain:
            continue
        key = _series(run)
        if key not in out:
            like = [p for p in plain if all(p.config.get(f) == run.config.get(f) for f in _ALIKE)]
            out[key] = like[:1]
        out[key].append(run)
    led = {r.id for chain in out.values() for r in chain}
    return [*([p] for p in plain if p.id not in led), *out.values()]


def _series(run: StoredRun) -> str:
    fixed = {k: v for k, v in run.config.items() if k not in _VARIES}
    return json.dumps([run.dataset.get("fingerprint"), fixed], sort_keys=True)
