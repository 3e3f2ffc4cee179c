"""`uge rerun`: trains and audits a report's runs again, and says what moved."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uge_core.cli.arguments import Parsers, add_command, device_argument, nonempty, text_list
from uge_core.cli.loading import load_again, load_graph
from uge_core.cli.printing import ProgressLine, print_json, remark
from uge_core.errors import ConfigError, GraphError, StoreError
from uge_core.runs.store import RunStore
from uge_core.visible import visible

if TYPE_CHECKING:
    from uge_core.graph.graph import AttributedGraph
    from uge_core.runs.rerun import Outcome

INTO = "uge-rerun"
_MOST = 12  # of the lines on one run


def add(parsers: Parsers) -> None:
    """Declares `rerun`."""
    one = add_command(
        parsers,
        "rerun",
        run,
        help="train and audit a report's runs again, and say what moved",
        description="Trains each run of a report again, with the config and the seeds that its record holds, audits it "
        "as it was audited, and compares every number. The data's fingerprint is checked first. Exit code 0: nothing "
        "moved beyond its interval; 1: something did; 3: not enough evidence, or not the same data. Ctrl-C stops it; the "
        "same command goes on from there.",
    )
    one.add_argument("report", type=nonempty, metavar="REPORT", help="the JSON or HTML file of a report")
    one.add_argument("--into", type=nonempty, metavar="DIR", default=INTO, help=f"the store for the new runs ({INTO})")
    one.add_argument("--runs", type=text_list, metavar="ID,..", help="only these runs of the report")
    one.add_argument(
        "--data",
        type=nonempty,
        metavar="DATA",
        help="what the report was made of, where --store has not its runs (a report does not say where files lie)",
    )
    one.add_argument("--attributes", type=text_list, metavar="A,B", help="of --data: these columns are the attributes")
    device_argument(one)
    one.add_argument("--deterministic", action="store_true", help="the same bits each time; the CPU does so anyway")
    one.add_argument("--json", action="store_true", help="print what came of each run as a JSON list")


def run(args: argparse.Namespace) -> int:
    """Trains, audits, compares, and prints what moved."""
    from uge_core.machine import keep_freed_memory
    from uge_core.runs import rerun
    from uge_core.views.report.check import held_records

    records = held_records(args.report)
    if args.runs:
        known = {str(r["run_id"]) for r in records}
        for name in args.runs:
            if name not in known:
                raise ConfigError(f"{args.report} has no run {name!r}; it has {', '.join(sorted(known))}")
        records = [r for r in records if r["run_id"] in args.runs]
    kept, into = RunStore(args.store), RunStore(args.into)
    if into.root.resolve() == kept.root.resolve():
        raise ConfigError(
            f"--into {into.root} is the store of the reported runs, which have the same ids, so that nothing would be "
            "trained; name another with --into DIR"
        )
    by_data: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        by_data.setdefault(str(record["dataset"]["fingerprint"]), []).append(record)
    outcomes: list[Outcome] = []
    for mine in by_data.values():
        graph, source = _graph(mine, kept, args)
        if not args.json and graph.fingerprint == mine[0]["dataset"]["fingerprint"]:
            print(f"data: the same: {visible(graph.name)}, fingerprint {graph.fingerprint[:12]}", flush=True)
        with ProgressLine(sys.stderr) as on_progress:
            keep_freed_memory()
            for outcome in rerun.rerun(
                mine,
                graph,
                into,
                device=args.device,
                deterministic=args.deterministic,
                source=source,
                on_progress=on_progress,
            ):
                outcomes.append(outcome)
                if not args.json:
                    _tell(outcome, _versions(outcome, kept, into))
    if args.json:
        print_json([o.to_json() | {"versions": _versions(o, kept, into)} for o in outcomes])
    elif any(o.anew for o in outcomes):
        print(f"the new runs lie in {into.root}")
    return rerun.exit_code(outcomes)


def _graph(
    records: list[Mapping[str, Any]], store: RunStore, args: argparse.Namespace
) -> tuple[AttributedGraph, dict[str, Any]]:
    """The data of some records: named, those of the stored run, or a sample of that name."""
    if args.data:
        return load_graph(args.data, args.attributes, args.store)
    name = str(records[0]["dataset"]["name"])
    stored = next((found for r in records if (found := store.find(str(r["run_id"])))), None)
    try:
        if stored is not None:
            # A stored graph that has changed is told as other data below, not refused here.
            return load_again(stored, None, args.store), dict(stored.dataset.get("source") or {})
        if name in ("town", "titles"):
            return load_graph(f"sample:{name}", args.attributes, args.store)
    except (StoreError, GraphError) as error:
        remark(str(error))
    raise ConfigError(f"the report does not say where {visible(name)[:80]!r} lies; name it with --data DATA")


def _versions(outcome: Outcome, kept: RunStore, into: RunStore) -> list[str]:
    """In what the versions of then and now differ, where the store has the run of then."""
    from uge_core.runs.rerun import other_versions, trained_with

    then = kept.find(outcome.run_id)
    now = None if outcome.anew is None else into.find(str(outcome.anew["run_id"]))
    if then is None or now is None or Path(then.folder) == Path(now.folder):
        return []
    return other_versions(trained_with(then), trained_with(now))


def _tell(outcome: Outcome, versions: list[str]) -> None:
    """Prints what came of one run."""
    counts = outcome.counts
    print(f"run {visible(outcome.run_id)[:80]} ({visible(outcome.label)[:200]})")
    if outcome.changed:
        print("  record: DIFFERS: its SHA-256 is not that of its content: it was changed after it was written")
    for text in (*outcome.remarks, *versions):
        print(f"  {visible(text)}")
    if outcome.judged:
        said = ", ".join(f"{counts[v]:,} {words}" for v, words in _WORDS.items() if counts[v] or v == "moved")
        print(f"  {len(outcome.judged):,} numbers: {said}")
    worst = [j for v in ("moved", "no evidence", "not compared") for j in outcome.judged if j.verdict == v]
    for judged in worst[:_MOST]:
        print(f"  {_HEADS[judged.verdict]}: {visible(judged.words)}")
    if worst[_MOST:]:
        print(f"  and {len(worst) - _MOST:,} more (--json names all)")
    sys.stdout.flush()


_WORDS = {
    "equal": "equal",
    "within": "within their intervals",
    "moved": "moved beyond their intervals",
    "no evidence": "with evidence in one of the two alone",
    "not compared": "not compared",
}
_HEADS = {"moved": "MOVED", "no evidence": "NOT ENOUGH EVIDENCE", "not compared": "NOT COMPARED"}
