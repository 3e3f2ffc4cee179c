"""`uge verify`: checks that a report still says what was measured."""

from __future__ import annotations

import argparse

from uge_core.cli.arguments import Parsers, add_command, moved_data_argument, nonempty
from uge_core.cli.loading import load_again
from uge_core.runs.store import RunStore


def add(parsers: Parsers) -> None:
    """Declares `verify`."""
    one = add_command(
        parsers,
        "verify",
        run,
        help="check that a report still says what was measured",
        description="Compares a report's SHA-256, shape and policy with "
        "its content, then audits the stored run again and "
        "names the first difference.",
    )
    one.add_argument(
        "report", type=nonempty, metavar="REPORT.json", help="what audit, train or sweep printed with --json"
    )
    moved_data_argument(one)


def run(args: argparse.Namespace) -> int:
    """Prints what was checked of a report, and what came of it."""
    from uge_core import datasets
    from uge_core.audit import record
    from uge_core.runs import verify

    if args.data:
        # A place that does not exist is a slip of the hand, not missing evidence.
        datasets.locate(args.data, store=args.store)
    store, findings = RunStore(args.store), []
    reports = record.read(args.report)
    for report in reports:
        if len(reports) > 1:
            print(_one_line(f"run {report.get('run_id')}"))
        for finding in verify.verify(report, store, lambda run: load_again(run, args.data, args.store)):
            findings.append(finding)
            print(_one_line(f"{finding.what}: {finding.words}: {finding.text}"), flush=True)
    return verify.exit_code(findings)


def _one_line(text: str, most: int = 2_000) -> str:
    """What a file says of itself, as one line: it could write lines of its own, or move the terminal's cursor."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:most])
    return line + "..." * (len(text) > most)
