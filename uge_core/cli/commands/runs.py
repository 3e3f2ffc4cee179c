"""`uge runs`: lists, shows, resumes, archives and removes stored runs."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from uge_core.cli.arguments import (
    DONE,
    Parsers,
    add_command,
    add_group,
    device_argument,
    evidence_code,
    moved_data_argument,
)
from uge_core.cli.commands import _export
from uge_core.cli.loading import load_again
from uge_core.cli.printing import ProgressLine, audit_text, print_json, text_table
from uge_core.errors import ConfigError
from uge_core.machine import keep_freed_memory
from uge_core.runs.disclosure import EXACT, coarse
from uge_core.runs.store import RunStore, default_root
from uge_core.runs.stored_run import StoredRun


def add(parsers: Parsers) -> None:
    """Declares `runs` and its commands."""
    runs = add_group(parsers, "runs", help="stored runs")
    one = add_command(runs, "list", list_runs, help="all runs, the newest first")
    one.add_argument("--archived", action="store_true", help="archived runs too")
    one.add_argument("--json", action="store_true", help="print one JSON list")
    one = add_command(runs, "show", show, help="config, environment, diagnostics and audit of a run")
    one.add_argument("run_id", metavar="RUN_ID")
    one.add_argument("--json", action="store_true", help="print one JSON object")
    one.add_argument(
        "--exact",
        action="store_true",
        help="diagnostics as they are, from which small groups may follow; not to be passed on",
    )
    _export.add(runs)
    one = add_command(
        runs,
        "resume",
        resume_run,
        help="go on with a run that was cut off, and with those of the same pass",
        description="Goes on from the run's checkpoint, with the runs that trained in the same pass; without one it is "
        "trained from its start. On the CPU the result has the bits of a training that was never cut off.",
    )
    one.add_argument("run_id", metavar="RUN_ID")
    moved_data_argument(one)
    device_argument(one)
    one = add_command(
        runs,
        "archive",
        archive,
        help="put runs out of sight, or bring them back",
        description="An archived run is left out of lists and of "
        "the dashboard's choices. Nothing of it is removed, it can "
        "still be named by its id, and training the same again brings it back.",
    )
    one.add_argument("run_ids", nargs="+", metavar="RUN_ID")
    one.add_argument("--undo", action="store_true", help="bring them back")
    one = add_command(runs, "delete", delete, help="remove a run and all its files")
    one.add_argument("run_id", metavar="RUN_ID")


def list_runs(args: argparse.Namespace) -> int:
    """Prints a line for each run."""
    from uge_core.runs.names import config_words

    store = RunStore(args.store)
    runs = store.list(audits=False, archived=args.archived)
    if args.json:
        print_json([_run_record(run) for run in runs])
        return DONE
    if not runs:
        hidden = len(store.list(audits=False, archived=True))
        where = f"no runs in {args.store or default_root()}"
        print(
            f"{where} but {hidden} archived; --archived lists them" if hidden else f"{where}; uge train DATA makes one",
            file=sys.stderr,
        )
        return DONE
    rows = [
        [
            run.id,
            run.status + (", archived" if run.archived is not None else ""),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(run.created)),
            run.dataset.get("name", ""),
            config_words(run.config) or run.reason or "",
            "audited" if run.audited else "",
        ]
        for run in runs
    ]
    print(text_table(["run", "status", "started", "data", "config", "audit"], rows))
    return DONE


def _run_record(run: StoredRun) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "status": run.status,
        "reason": run.reason,
        "created": run.created,
        "finished": run.finished,
        "seconds": run.seconds,
        "device": run.device,
        "audited": run.audited,
        "archived": run.archived,
        "dataset": {k: v for k, v in run.dataset.items() if k != "source"},
        "config": run.config,
    }


def show(args: argparse.Namespace) -> int:
    """Prints all that is kept of a run."""
    run = RunStore(args.store).load(args.run_id)
    record = _run_record(run) | {"folder": str(run.folder), "audit": run.audit}
    if run.finished is not None:
        record |= {"environment": run.environment}
        record |= {"diagnostics": run.diagnostics if args.exact else coarse(run.diagnostics)}
        record |= {"disclosure": EXACT} if args.exact else {}
    if args.json:
        print_json(record)
        return DONE
    for key in ("run_id", "status", "reason", "seconds", "device", "folder"):
        if record[key] is not None:
            print(f"{key + ':':10} {record[key]:.1f}" if key == "seconds" else f"{key + ':':10} {record[key]}")
    for key in ("dataset", "config", "environment", "diagnostics"):
        if record.get(key):
            print(f"\n{key}:")
            print("\n".join(f"  {k}: {json.dumps(v, ensure_ascii=False)}" for k, v in record[key].items()))
    if run.audited:
        print("\n" + audit_text(run.rows))
    return DONE


def resume_run(args: argparse.Namespace) -> int:
    """Goes on from a checkpoint, and prints the ids of the runs."""
    from uge_core.runs.plan import DEVICES
    from uge_core.runs.sweep import resume

    if args.device not in DEVICES:
        raise ConfigError(f"device = {args.device!r} is not allowed; allowed: {', '.join(DEVICES)}")
    store = RunStore(args.store)
    graph = load_again(store.load(args.run_id), args.data, args.store)
    with ProgressLine(sys.stderr) as on_progress:
        keep_freed_memory()
        done = resume(args.run_id, graph, store, device=args.device, on_progress=on_progress)
    for run in done:
        print(run.id)
    return evidence_code(row for run in done for row in run.rows)


def archive(args: argparse.Namespace) -> int:
    """Puts runs out of sight, or brings them back."""
    RunStore(args.store).archive(args.run_ids, undo=args.undo)
    for run_id in args.run_ids:
        print(f"{'brought back' if args.undo else 'archived'} {run_id}")
    return DONE


def delete(args: argparse.Namespace) -> int:
    """Removes a run, and prints what was removed."""
    for line in RunStore(args.store).delete(args.run_id):
        print(f"removed {line}")
    return DONE
