"""`uge methods`: what each method and backbone does, supports and cannot."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from uge_core.cli.arguments import DONE, Parsers, add_command
from uge_core.cli.printing import text_table
from uge_core.errors import ConfigError

if TYPE_CHECKING:
    from uge_core.plugin import Info


def add(parsers: Parsers) -> None:
    """Declares `methods`."""
    one = add_command(
        parsers,
        "methods",
        run,
        store=False,
        help="what each method and backbone does, supports and cannot, with its source",
    )
    one.add_argument("name", metavar="NAME", nargs="?", help="of a method or backbone (default: list the methods)")
    one.add_argument("--markdown", action="store_true", help="print the page docs/methods.md")


def run(args: argparse.Namespace) -> int:
    """Prints the list of methods, one of them, or the page of all."""
    from uge_core.registry import unknown_name
    from uge_core.views import catalogue

    if args.markdown and args.name:
        raise ConfigError("--markdown prints the page of all methods; leave the name or --markdown out")
    if args.markdown:
        print(catalogue.markdown(), end="")
        return DONE
    known = {info.name: info for info in catalogue.methods()}
    if args.name is None:
        print(text_table(["method", "", "lambda", "bipartite"], [_method_row(info) for info in known.values()]))
        return DONE
    known |= {info.name: info for info in catalogue.backbones()}
    if args.name not in known:
        raise ConfigError(unknown_name("method or backbone", args.name, tuple(known)))
    print(catalogue.plain(known[args.name]))
    return DONE


def _method_row(info: Info) -> list[str]:
    supports = dict(info.supports)
    return [
        info.name,
        f"{info.label}, {info.citation}",
        supports["Lambda"].split(" ")[0].replace("none", ""),
        supports["Bipartite"].split(":")[0],
    ]
