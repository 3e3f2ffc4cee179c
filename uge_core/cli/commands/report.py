"""`uge report`: writes audits as HTML, PDF, JSON or CSV."""

from __future__ import annotations

import argparse

from uge_core.cli.arguments import DONE, Parsers, add_command, text_list
from uge_core.runs.store import RunStore


def add(parsers: Parsers) -> None:
    """Declares `report`."""
    one = add_command(
        parsers,
        "report",
        run,
        help="write audits as HTML, PDF, JSON or CSV",
        description="One offline file per format, all from the same "
        "stored audits; each prints the SHA-256 of every record.",
    )
    one.add_argument("runs", nargs="+", metavar="RUN", help="ids of audited runs")
    one.add_argument("--out", required=True, metavar="PATH", help="a folder, or a file whose ending says the format")
    one.add_argument(
        "--format", type=text_list, metavar="F,..", help="of html, pdf, json, csv (default: the file's, else html)"
    )
    one.add_argument("--title", default="Audit of graph embeddings", help="heading of the HTML and PDF")
    one.add_argument("--author", default="", help="who made the audit")
    one.add_argument("--purpose", default="", help="what the embedding is for and what the audit covers")
    one.add_argument(
        "--scenarios", type=text_list, default=[], metavar="S,..", help="stored what-if scenarios to add, by id or name"
    )
    one.add_argument(
        "--sensitive-output", action="store_true", help="write scenarios too whose edits name people and their values"
    )


def run(args: argparse.Namespace) -> int:
    """Writes the files, and prints where they are."""
    from uge_core.views.report import Sheet, report

    sheet = Sheet(args.title, args.author, args.purpose)
    for path in report(
        args.runs,
        args.out,
        formats=args.format,
        sheet=sheet,
        scenarios=args.scenarios,
        sensitive_output=args.sensitive_output,
        store=RunStore(args.store),
    ):
        print(path)
    return DONE
