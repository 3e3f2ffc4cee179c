"""What commands share in their arguments: exit codes, types, and arguments that several of them have."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeAlias

from uge_core.audit.base import RowRecord
from uge_core.errors import ConfigError

DONE, CHECK_FAILED, USER_ERROR, NOT_ENOUGH_EVIDENCE, INTERRUPTED = 0, 1, 2, 3, 130


def evidence_code(rows: Iterable[RowRecord]) -> int:
    """The exit code of audits: whether any leakage could be measured, where some was asked for."""
    leakage = [r["evidence"] for r in rows if r["attacker"]]
    return DONE if "ok" in leakage or not leakage else NOT_ENOUGH_EVIDENCE


class Parser(argparse.ArgumentParser):
    """Says what was wrong in one line, without the usage text; options are written out in full."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **(options | {"allow_abbrev": False}))

    def error(self, message: str) -> NoReturn:
        """Ends the program with one line."""
        text = " ".join(f"{self.prog}: {message}; {self.prog} --help lists what is allowed".split())
        self.exit(USER_ERROR, text + "\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse's own forgets that the output could not be written.
        if message:
            (file or sys.stderr).write(message)


Parsers: TypeAlias = "argparse._SubParsersAction[Parser]"


def add_command(
    parsers: Parsers,
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    help: str,
    description: str | None = None,
    store: bool = True,
) -> Parser:
    """A command, whose own arguments are added to what this returns.

    Args:
        parsers: where the command belongs.
        name: as it is typed.
        run: does the command and gives the exit code.
        help: one line, in the list of commands.
        description: what the command's own --help begins with.
        store: whether the command has --store.
    """
    command = parsers.add_parser(name, parents=[_stored() if store else _common()], help=help, description=description)
    command.set_defaults(command=run)
    return command


def add_group(parsers: Parsers, name: str, *, help: str) -> Parsers:
    """A command that only holds others, such as `uge runs`."""
    return parsers.add_parser(name, help=help).add_subparsers(metavar="COMMAND", required=True)


def _common() -> Parser:
    common = Parser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return common


def _stored() -> Parser:
    stored = Parser(add_help=False, parents=[_common()])
    stored.add_argument(
        "--store",
        type=nonempty,
        metavar="DIR",
        default=None,
        help="where runs live (default: $UGE_STORE, else ./uge-store)",
    )
    return stored


def data_arguments(one: Parser, *, required: bool = True) -> None:
    """DATA and --attributes: a graph and its attributes."""
    one.add_argument(
        "data",
        type=nonempty,
        nargs=None if required else "?",
        metavar="DATA",
        help="a folder, FOLDER:NAME where it holds several graphs, sample:town, sample:titles, or pyg:NAME, one of "
        "PyG's datasets, which is fetched when it is first named and kept in the store (pyg: alone lists them)",
    )
    one.add_argument(
        "--attributes",
        type=text_list,
        metavar="A,B",
        help="exactly these columns are the attributes (default: the layout's)",
    )


def moved_data_argument(one: Parser) -> None:
    """--data of a command that needs the graph a run was trained on."""
    one.add_argument("--data", type=nonempty, metavar="DATA", help="the graph, where it has moved since training")


def epochs_argument(one: Parser) -> None:
    """--epochs of a command that trains."""
    one.add_argument("--epochs", type=whole_number, help="full passes over the training edges (default 800)")


def device_argument(one: Parser) -> None:
    """--device of a command that trains."""
    one.add_argument("--device", default="auto", help="auto (default), cpu or cuda")


def place_arguments(one: Parser) -> None:
    """--on and --cpus of a command that trains."""
    one.add_argument(
        "--on",
        default="here",
        metavar="PLACE",
        help="where passes and audits run: here (default), ray (each core of this machine), or ray:HOST:PORT (a cluster)",
    )
    one.add_argument("--cpus", type=whole_number, default=1, help="by Ray, cores of each pass and audit (default 1)")


def set_argument(one: Parser) -> None:
    """--set of a command that trains; `key_values` reads it."""
    one.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any other setting; repeatable")


def key_values(given: list[str]) -> dict[str, str]:
    """What --set was given."""
    options: dict[str, str] = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise ConfigError(f"--set {pair} is not allowed; write --set KEY=VALUE, such as --set dim=32")
        if key in options:
            raise ConfigError(f"--set {key} is given twice; keep one")
        options[key] = value
    return options


def number(text: str) -> float:
    """A number, as the type of an argument."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def whole_number(text: str) -> int:
    """A whole number of 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


def nonempty(text: str) -> str:
    """A text that names something."""
    if not parts(text):
        raise argparse.ArgumentTypeError(f"{text!r} names nothing")
    return text


def text_list(text: str) -> list[str]:
    """Names set apart by commas, each once."""
    return list(dict.fromkeys(parts(nonempty(text))))


def number_list(text: str) -> list[float]:
    """Numbers set apart by commas, each once."""
    return [number(part) for part in text_list(text)]


def whole_number_list(text: str) -> list[int]:
    """Whole numbers set apart by commas, each once."""
    return [whole_number(part) for part in text_list(text)]


def parts(text: str) -> list[str]:
    """What stands between the commas, empty parts left out."""
    return [part.strip() for part in text.split(",") if part.strip()]
