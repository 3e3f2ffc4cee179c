"""A package whose names load when they are first used, so that importing it costs nothing.

The names are written once, as imports under ``TYPE_CHECKING`` in the package's ``__init__.py``, one a line:
``from uge_core.runs.store import RunStore as RunStore``. Type checkers read them there, and so does `lazily`.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

_NAME = re.compile(r"^    from (\S+) import (\w+) as \2$", re.MULTILINE)


class _Lazy(ModuleType):
    """A package with names of its own, which stay what they are although submodules have the same names."""

    _homes: dict[str, str]

    def __setattr__(self, name: str, value: Any) -> None:
        # Python binds a submodule to its package on import, which would hide the function.
        if not (name in self._homes and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name not in self._homes:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(self._homes[name]), name)
        super().__setattr__(name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._homes})


def lazily(package: str) -> list[str]:
    """Makes a package's names load when they are used, and returns them.

    Args:
        package: its ``__name__``.
    """
    module = sys.modules[package]
    written = Path(str(module.__file__)).read_text(encoding="utf-8")
    vars(module)["_homes"] = {name: home for home, name in _NAME.findall(written)}
    module.__class__ = _Lazy
    return sorted(vars(module)["_homes"])
