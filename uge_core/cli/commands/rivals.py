"""`uge rivals`: trains and audits all methods beside one another."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from uge_core.audit.attacker_order import DEFAULT_ATTACKERS, ordered_attackers
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
from uge_core.errors import ConfigError
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
        "the same split, several seeds. A method that cannot serve this graph is listed with the reason. "
        "Without DATA the tables of --rows FILE are printed, and nothing is measured.",
    )
    data_arguments(one, required=False)
    one.add_argument("--sensitive", type=nonempty, metavar="A", help="the attribute to hide")
    one.add_argument("--backbone", default="node2vec", help=f"one of {', '.join(names('backbones'))}")
    one.add_argument(
        "--methods",
        type=text_list,
        default=[],
        metavar="M,M:L,..",
        help="methods, as uge-c, uge-c:1.9 or uge-ork:1:num_features=512",
    )
    one.add_argument("--seeds", type=whole_number_list, default=[0, 1, 2], metavar="S,..", help="default 0,1,2")
    epochs_argument(one)
    set_argument(one)
    device_argument(one)
    others = ", ".join(a.name for a in ordered_attackers() if a.name not in DEFAULT_ATTACKERS)
    one.add_argument(
        "--attackers",
        type=text_list,
        default=[],
        metavar="X,Y",
        help=f"tried beside {', '.join(DEFAULT_ATTACKERS)}: of {others}",
    )
    one.add_argument(
        "--rows",
        type=nonempty,
        metavar="FILE",
        help="JSON lines: what is measured is added, what is there is not redone",
    )
    one.add_argument(
        "--figure", type=nonempty, metavar="FILE", help="draw the front, to FILE.html, FILE.png or FILE.svg"
    )
    one.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    one.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Prints one table of all methods, or those of a file of rows."""
    from uge_core.views.figures.files import check_figure_file, write_figure
    from uge_core.views.figures.rivals import rivals_figure
    from uge_core.views.rivals import rivals_tables

    figure = Path(args.figure) if args.figure else None
    if figure is not None:
        check_figure_file(figure)
    record = _measured(args) if args.data else _read(args)
    tables = rivals_tables(record["rows"])
    if figure is not None and len(tables) > 1:
        listed = "; ".join(table.title for table in tables)
        raise ConfigError(
            f"{args.rows} holds {len(tables)} tables ({listed}); --figure draws one, so keep each in a file"
        )
    if args.json:
        print_json(record)
    for table in () if args.json else tables:
        shown = table.markdown() if args.markdown else f"{text_table(table.head, table.lines)}\n\n{table.front_words}"
        print(f"{table.title}\n\n{table.floors}\n\n{shown}" + "\n" * (table is not tables[-1]))
    if figure is not None:
        write_figure(rivals_figure(tables[0]), figure)
    return DONE


def _measured(args: argparse.Namespace) -> dict[str, Any]:
    from uge_core.runs.rivals import rivals

    if not args.sensitive:
        raise ConfigError("--sensitive A is missing, the attribute to hide")
    return rivals(
        load_graph(args.data, args.attributes, args.store)[0],
        args.sensitive,
        backbone=args.backbone,
        entries=args.methods,
        seeds=args.seeds,
        options=key_values(args.set) | ({} if args.epochs is None else {"epochs": args.epochs}),
        attackers=args.attackers,
        rows=Path(args.rows) if args.rows else None,
        device=args.device,
        on_note=remark,
    )


def _read(args: argparse.Namespace) -> dict[str, Any]:
    from uge_core.runs.rivals import SCHEMA, stored_rows

    of_measuring = ("sensitive", "methods", "attackers", "set", "epochs", "attributes")
    given = [f"--{name}" for name in of_measuring if getattr(args, name)]
    if given or not args.rows:
        said = f" beside {', '.join(given)}" if given else ""
        raise ConfigError(f"DATA is missing{said}; without it, --rows FILE alone prints what FILE holds")
    return {"schema": SCHEMA, "rows": stored_rows(Path(args.rows))}
