"""Layouts of files, one a file: which files there are, and how they become a graph.

A file has a constant ``LAYOUTS``, and a ``POSITION`` among the files: layouts are tried from low to high.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uge_core.datasets.layouts.base import Layout


@cache
def all_layouts() -> tuple[Layout, ...]:
    """The layouts of all files of this folder, in the order they are tried."""
    modules = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    written = [m for m in modules if hasattr(m, "LAYOUTS")]
    return tuple(layout for m in sorted(written, key=lambda m: m.POSITION) for layout in m.LAYOUTS)
