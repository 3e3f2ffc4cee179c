"""`uge bench`: times training against the same written plainly."""

from __future__ import annotations

import argparse

from uge_core.cli.arguments import (
    DONE,
    Parsers,
    add_command,
    device_argument,
    nonempty,
    number,
    text_list,
    whole_number_list,
)
from uge_core.cli.loading import load_graph
from uge_core.cli.printing import print_json, remark, text_table


def add(parsers: Parsers) -> None:
    """Declares `bench`."""
    one = add_command(
        parsers,
        "bench",
        run,
        help="time training against the same written plainly",
        description="Ratios within one run on this machine: our engine against the paper's recipe word for word, and "
        "against cheaper losses, in plain torch and torch-geometric. A quiet machine and some minutes are needed.",
    )
    one.add_argument("data", type=nonempty, nargs="*", metavar="DATA", help="default: sample:town sample:titles")
    one.add_argument("--what", type=text_list, metavar="P,..", help="of epochs, lambdas, scaling (default: all)")
    one.add_argument("--backbone", type=text_list, metavar="B,..", help="default: node2vec,gcn,sgc,gat; bipartite: mf")
    one.add_argument(
        "--nodes", type=whole_number_list, metavar="N,..", help="scaling: default 20000,90000,400000,1600000"
    )
    one.add_argument("--degree", type=number, metavar="D", help="scaling: mean degree (default 27.5)")
    device_argument(one)
    one.add_argument("--quick", action="store_true", help="small and inexact, to see that it works")
    one.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Prints the timings, as tables or JSON."""
    from uge_core.cli.bench.run import PARTS, bench
    from uge_core.cli.bench.tables import heading, sections

    parts = args.what or PARTS
    specs = (args.data or ["sample:town", "sample:titles"]) if set(parts) != {"scaling"} else []
    record = bench(
        [load_graph(spec, None, args.store)[0] for spec in specs],
        parts=parts,
        backbones=args.backbone or (),
        nodes=args.nodes or (),
        degree=args.degree,
        device=args.device,
        quick=args.quick,
        on_note=remark,
    )
    if args.json:
        for warning in record["warnings"]:
            remark(f"warning: {warning}")
        print_json(record)
        return DONE
    print("\n".join(heading(record)))
    for title, head, rows in sections(record):
        print(f"\n{title}\n\n{text_table(head, rows)}")
    return DONE
