"""`uge rivals`: trains and audits all methods beside one another."""

from __future__ import annotations

import argparse
from pathlib import Path

from uge_core.audit.attacker_order import ordered_attackers
from uge_core.cli.arguments import (
    DONE,
    Parsers,
    add_command,
    data_arguments,
    device_argument,
    epochs_argument,
    key_values,
    nonempty,
    set_argument,
    text_list,
    whole_number_list,
)
from uge_core.cli.loading import load_graph
from uge_core.cli.printing import print_json, remark, text_table
from uge_core.registry import names


def add(parsers: Parsers) -> None:
    """Declares `rivals`."""
    one = add_command(
        parsers,
        "rivals",
        run,
        help="train and audit all methods beside one another",
        description="One table of what each method hides of an attribute, "
        "from whom, and what it costs: its default lambda, "
        "the same split, several seeds. A method that cannot serve this graph is listed with the reason.",
    )
    data_arguments(one)
    one.add_argument("--sensitive", type=nonempty, required=True, metavar="A", help="the attribute to hide")
    one.add_argument("--backbone", default="node2vec", help=f"one of {', '.join(names('backbones'))}")
    one.add_argument("--methods", type=text_list, default=[], metavar="M,M:L,..", help="methods, as uge-c or uge-c:1.9")
    one.add_argument("--seeds", type=whole_number_list, default=[0, 1, 2], metavar="S,..", help="default 0,1,2")
    epochs_argument(one)
    set_argument(one)
    device_argument(one)
    one.add_argument(
        "--attackers",
        type=text_list,
        metavar="X,Y",
        help=f"of {', '.join(a.name for a in ordered_attackers())} (default: all)",
    )
    one.add_argument(
        "--rows",
        type=nonempty,
        metavar="FILE",
        help="JSON lines: what is measured is added, what is there is not redone",
    )
    one.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    one.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Prints one table of all methods."""
    from uge_core.runs.rivals import ATTACKERS, markdown, rivals, table

    record = rivals(
        load_graph(args.data, args.attributes, args.store)[0],
        args.sensitive,
        backbone=args.backbone,
        entries=args.methods,
        seeds=args.seeds,
        options=key_values(args.set) | ({} if args.epochs is None else {"epochs": args.epochs}),
        attackers=args.attackers or ATTACKERS,
        rows=Path(args.rows) if args.rows else None,
        device=args.device,
        on_note=remark,
    )
    if args.json:
        print_json(record)
    else:
        print(markdown(*table(record)) if args.markdown else text_table(*table(record)))
    return DONE
