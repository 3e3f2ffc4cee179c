"""`uge store purge`: removes what is older than an age."""

from __future__ import annotations

import argparse
from contextlib import suppress

from uge_core.cli.arguments import DONE, USER_ERROR, Parsers, add_command, add_group
from uge_core.cli.printing import remark
from uge_core.errors import StoreError, UgeError
from uge_core.runs.store import RunStore


def add(parsers: Parsers) -> None:
    """Declares `store purge`."""
    store = add_group(parsers, "store", help="what the store keeps")
    one = add_command(
        store,
        "purge",
        purge,
        help="remove what is older than an age",
        description="Removes runs with their embeddings, uploads, kept graphs, scenarios, "
        "finished jobs and checkpoints, and says what "
        "was removed; what is at work stays.",
    )
    one.add_argument("--older-than", required=True, metavar="AGE", help="12h, 30d, 4w; 0d for everything")
    one.add_argument("--dry-run", action="store_true", help="say what would be removed, and stop")


def purge(args: argparse.Namespace) -> int:
    """Removes what is old, and prints what was removed."""
    from uge_core.cli.purge import age, older_than

    store = RunStore(args.store)
    done = left = 0
    if not args.dry_run:
        with suppress(StoreError):  # which is said of each thing below
            for line in store.tidy():
                print(line)
                done += 1
    for old in older_than(age(args.older_than), store):
        try:
            for line in [f"{old.what}, {old.age / 86400:.1f} days old"] if args.dry_run else old.remove():
                print(line)
            done += 1
        except UgeError as error:
            remark(f"{old.what}: {error}")
            left += 1
    remark(f"{done} things {'would be' if args.dry_run else 'were'} removed" + (f", {left} were not" if left else ""))
    return USER_ERROR if left else DONE
