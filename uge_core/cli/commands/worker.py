"""`uge worker` and `uge whatif-worker`: the processes that the dashboard starts."""

from __future__ import annotations

import argparse

from uge_core.cli.arguments import DONE, Parsers, add_command, nonempty
from uge_core.cli.printing import remark
from uge_core.runs.store import RunStore


def add(parsers: Parsers) -> None:
    """Declares `worker` and `whatif-worker`."""
    one = add_command(parsers, "worker", work_off, help="work off the dashboard's queue of jobs, then end")
    one.add_argument(
        "--lane", choices=("cpu", "gpu"), default="cpu", help="the jobs of the processor (default) or of a GPU"
    )

    one = add_command(
        parsers, "whatif-worker", answer, help="answer the dashboard's What-if page, and end when nobody asks"
    )
    one.add_argument("--parent", type=nonempty, metavar="PID:BIRTH", help="end with this process")


def work_off(args: argparse.Namespace) -> int:
    """Works off the jobs of a lane."""
    from uge_core.dashboard.jobs.worker import work

    if not work(RunStore(args.store), args.lane):
        remark(f"another process works off the {args.lane} jobs of this store")
    return DONE


def answer(args: argparse.Namespace) -> int:
    """Answers what-if questions."""
    from uge_core.explore.whatif.server import serve

    pid, _, born = (args.parent or "").partition(":")
    if not serve(RunStore(args.store), parent=(int(pid), born) if pid.isdecimal() else None):
        remark("another process answers what-if questions about this store")
    return DONE
