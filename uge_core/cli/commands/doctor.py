"""`uge doctor`: looks at what this machine has, and says what is missing."""

from __future__ import annotations

import argparse
import json

from uge_core.cli.arguments import CHECK_FAILED, DONE, Parsers, add_command, whole_number
from uge_core.cli.printing import text_table
from uge_core.runs.store import RunStore


def add(parsers: Parsers) -> None:
    """Declares `doctor`."""
    one = add_command(
        parsers,
        "doctor",
        run,
        help="look at what this machine has, and say what is missing",
        description="Looks at Python, packages, compiled kernels, devices, the store, memory, disk, the browser that "
        "prints PDFs and the port. Exit code 1 where something will not work.",
    )
    one.add_argument("--port", type=whole_number, help="where the dashboard would listen (default 8501)")
    one.add_argument(
        "--check", action="store_true", help="read all that is stored, and name what is not as it was written"
    )
    one.add_argument(
        "--on", metavar="ray:HOST:PORT", help="look at a cluster of Ray too: its machines, and their versions"
    )
    one.add_argument("--json", action="store_true", help="print one JSON list")


def run(args: argparse.Namespace) -> int:
    """Prints the checks."""
    from dataclasses import asdict

    from uge_core.cli.doctor import PORT, examine

    port = PORT if args.port is None else args.port
    checks = examine(RunStore(args.store), port=port, check=args.check, on=args.on)
    if args.json:
        print(json.dumps(list(map(asdict, checks)), indent=2))
    else:
        print(text_table(["", "", "found", "what to do"], [[c.verdict, c.name, c.found, c.remedy] for c in checks]))
    return CHECK_FAILED if any(c.verdict == "problem" for c in checks) else DONE
