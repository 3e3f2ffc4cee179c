"""The commands: a file for each subject, where `add` declares arguments beside the function that does the work.

A new file here is a new command. Files that start with an underscore hold parts of a command.
"""

from __future__ import annotations

import importlib
import pkgutil

from uge_core.cli.arguments import Parsers

_ORDER = (
    "data",
    "train",
    "audit",
    "verify",
    "rerun",
    "report",
    "runs",
    "bench",
    "rivals",
    "reproduce",
    "worker",
    "store",
    "doctor",
    "methods",
    "app",
)


def add_all(parsers: Parsers) -> None:
    """Declares every command, in the order of --help; a file whose place is not given comes last."""
    files = {file.name for file in pkgutil.iter_modules(__path__) if not file.name.startswith("_")}
    for name in (*_ORDER, *sorted(files.difference(_ORDER))):
        importlib.import_module(f"{__name__}.{name}").add(parsers)
