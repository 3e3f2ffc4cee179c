"""`uge report`: writes audits as HTML, PDF, JSON or CSV."""

from __future__ import annotations

import argparse
from dataclasses import fields

from uge_core.cli.arguments import DONE, Parsers, add_command, nonempty, text_list
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
    one.add_argument(
        "--before", default="", metavar="RUN", help="what it is compared with (default: the untreated one)"
    )
    one.add_argument(
        "--after", default="", metavar="RUN", help="what the report is about (default: the last treated one)"
    )
    one.add_argument("--attribute", default="", metavar="A", help="told first (default: the first that was treated)")
    one.add_argument(
        "--policy", type=nonempty, metavar="FILE", help="judge each run by the rules of a YAML file, as uge audit does"
    )
    one.add_argument(
        "--sections", type=text_list, metavar="S,..", help="only these parts of the appendix (another name lists them)"
    )
    one.add_argument("--title", default="Audit of graph embeddings", help="heading of the HTML and PDF")
    one.add_argument("--author", default="", help="name of who made the audit and signs it")
    one.add_argument("--role", default="", help="the author's role")
    one.add_argument("--purpose", default="", help="what the embedding is for and what the audit covers")
    one.add_argument("--threshold-by", default="", metavar="NAME", help="who set the threshold")
    one.add_argument("--threshold-on", default="", metavar="DATE", help="the date on which it was set, as a text")
    one.add_argument("--threshold-when", default="", choices=("before", "after"), help="before or after seeing results")
    one.add_argument("--remarks", default="", help="what else is to be known")
    one.add_argument("--source", default="", help="where the data are from (default: what their dataset.yaml says)")
    one.add_argument("--licence", default="", help="the data's (default: what their dataset.yaml says)")
    one.add_argument(
        "--scenarios", type=text_list, default=[], metavar="S,..", help="stored what-if scenarios to add, by id or name"
    )
    one.add_argument(
        "--sensitive-output", action="store_true", help="write scenarios too whose edits name people and their values"
    )


def run(args: argparse.Namespace) -> int:
    """Writes the files, and prints where they are."""
    from uge_core.views.report import Sheet, report

    sheet = Sheet(**{f.name: getattr(args, f.name) for f in fields(Sheet)})
    for path in report(
        args.runs,
        args.out,
        formats=args.format,
        sheet=sheet,
        scenarios=args.scenarios,
        sensitive_output=args.sensitive_output,
        store=RunStore(args.store),
        before=args.before,
        after=args.after,
        attribute=args.attribute,
        policy=args.policy,
        sections=args.sections,
    ):
        print(path)
    return DONE
