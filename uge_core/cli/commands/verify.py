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
        description="Takes any format of a report: HTML, PDF, CSV or JSON. Audits its stored runs again, makes the "
        "report anew, and names the first figure that differs. Exit code 0: all is equal; 1: something differs; 3: not "
        "all could be checked.",
    )
    one.add_argument(
        "report", type=nonempty, metavar="REPORT", help="what uge report wrote, or audit, train or sweep with --json"
    )
    one.add_argument(
        "--quick",
        action="store_true",
        help="believe the store's audits instead of measuring the embeddings again: what was changed in the report is found, "
        "what was changed in the store is not",
    )
    moved_data_argument(one)


def run(args: argparse.Namespace) -> int:
    """Prints what was checked of a report, and what came of it."""
    from uge_core import datasets
    from uge_core.runs import verify
    from uge_core.views.report.check import check

    if args.data:
        # A place that does not exist is a slip of the hand, not missing evidence.
        datasets.locate(args.data, store=args.store)
    findings: list[verify.Finding] = []
    about = ""
    for finding in check(
        args.report, RunStore(args.store), lambda run: load_again(run, args.data, args.store), measure=not args.quick
    ):
        if finding.about != about and (about := finding.about):
            print(_one_line(about))
        findings.append(finding)
        print(_one_line(f"{finding.what}: {finding.words}: {finding.text}"), flush=True)
    return verify.exit_code(findings)


def _one_line(text: str, most: int = 2_000) -> str:
    """What a file says of itself, as one line: it could write lines of its own, or move the terminal's cursor."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:most])
    return line + "..." * (len(text) > most)
