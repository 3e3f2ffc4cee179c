"""`uge audit --against`: what two runs, or a file and a run, differ by."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from uge_core.audit.record import about
from uge_core.cli.arguments import DONE, NOT_ENOUGH_EVIDENCE, text_list
from uge_core.cli.loading import load_again, read_file, say_trust
from uge_core.cli.printing import ProgressLine, comparison_text, print_json
from uge_core.errors import ConfigError, StoreError
from uge_core.runs.audits import DEFAULT_ATTACKERS
from uge_core.runs.store import RunStore


def compare_with(args: argparse.Namespace, attributes: list[str] | None) -> int:
    """Prints what two runs, two groups of runs, or a file and a run differ by."""
    from uge_core.explore.comparison import compare, compare_record, compare_seeds
    from uge_core.progress import Progress
    from uge_core.runs.external import external_config, external_id

    store = RunStore(args.store)
    b = [store.load(run_id) for run_id in text_list(args.against)]
    a = [store.load(run_id) for run_id in text_list(args.run_id)] if args.run_id else []
    sides = [{run.id: run.config for run in runs} for runs in (a, b)]
    if len(b) > 1 or len(a) > 1:
        if not a or args.attackers or args.data:
            raise ConfigError(
                "several runs are compared by their stored audits; leave --embeddings, --attackers and --data out"
            )
        comparison = compare_seeds(a, b)
    else:
        for run in (*a, *b):
            if run.finished is None:
                raise StoreError(f"run {run.id} is {run.status} and has no embedding to compare; train it first")
        if args.attributes:
            raise ConfigError("--attributes are those of the run in --against; leave this out")
        graph = load_again(b[0], args.data, args.store)
        first: Any = a[0] if a else None
        options: dict[str, Any] = {}
        if first is None:
            first, given = read_file(args, graph)
            sides[0] = {external_id(first, graph, given["score"]): external_config(first, graph, **given)}
            options = {"score": given["score"], "split_seed": given["split_seed"]}
        with ProgressLine(sys.stderr) as on_progress:
            comparison = compare(
                first,
                b[0],
                graph,
                sensitive=attributes,
                attackers=args.attackers or DEFAULT_ATTACKERS,
                store=store,
                progress=lambda text: on_progress(Progress("comparing", 0, 1, text)),
                **options,
            )
        say_trust(args)
    record = compare_record(comparison, b[0].dataset, *sides)
    if attributes and len(b) > 1:
        record |= {"rows": about(record["rows"], attributes, args.run_id)}
    if args.json:
        print_json(record)
    else:
        print(comparison_text(record["rows"]))
    return DONE if any(row["evidence"] == "ok" for row in record["rows"]) else NOT_ENOUGH_EVIDENCE
