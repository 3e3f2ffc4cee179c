"""Plug-ins: a backbone, a method, an attacker or a dataset layout is one file in its folder.

The file's name is the plug-in's name (``uge_c.py`` is ``uge-c``); its one class carries
`register`. Names are listed without importing anything, so that ``--help`` and the web process
stay light; files that start with an underscore and ``base.py`` are not plug-ins.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import reprlib
from dataclasses import MISSING, field, fields
from functools import cache
from typing import Any, get_type_hints

from uge_core.errors import ConfigError

_KINDS = {
    "backbones": "backbone",
    "debias.methods": "method",
    "audit.attackers": "attacker",
    "explore.projection.methods": "projection",
}
_LONGEST = 80  # characters of a value in a message
_MOST = 2**63 - 1  # what a 64-bit integer holds


def register(cls: Any) -> Any:
    """Marks `cls` as the plug-in of its file; its ``name`` is the file's name with hyphens."""
    cls.name = cls.__module__.rsplit(".", 1)[-1].replace("_", "-")
    module = importlib.import_module(cls.__module__)
    vars(module)["PLUGIN"] = cls
    return cls


@cache
def names(folder: str) -> tuple[str, ...]:
    """The plug-ins of `folder` (``"backbones"``, ``"debias.methods"`` or ``"audit.attackers"``), sorted, nothing imported.

    Raises:
        ConfigError: a file's name has hyphens, so that it could not be told from one with underscores.
    """
    assert folder in _KINDS
    package = importlib.import_module(f"uge_core.{folder}")
    files = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name != "base" and m.name[0] != "_"]
    for file in files:
        if "-" in file:
            where = f"uge_core/{folder.replace('.', '/')}"
            raise ConfigError(
                f"{where}/{file}.py: the name of a {_KINDS[folder]}'s file has underscores, no hyphens; "
                f"rename it to {file.replace('-', '_')}.py, and the {_KINDS[folder]} is called {file}"
            )
    return tuple(sorted(file.replace("_", "-") for file in files))


def find(folder: str, name: str) -> Any:
    """The plug-in class called `name`.

    Raises:
        ConfigError: no such plug-in; the message lists those that exist.
    """
    if name not in names(folder):
        raise ConfigError(unknown_name(_KINDS[folder], name, names(folder)))
    module = importlib.import_module(f"uge_core.{folder}.{name.replace('-', '_')}")
    return module.PLUGIN


def unknown_name(kind: str, name: str, allowed: tuple[str, ...] | list[str]) -> str:
    """The text of an error about a name that is not among `allowed`, with the nearest one."""
    near = difflib.get_close_matches(str(name).lower()[:_LONGEST], [str(a) for a in allowed], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"unknown {kind} {found(name)}; allowed: {', '.join(map(str, allowed))}.{hint}"


def found(value: Any) -> str:
    """A value as messages quote it: of one that is very long its two ends."""
    short = reprlib.Repr()
    short.maxstring = short.maxlong = short.maxother = _LONGEST
    # turning a huge integer into text is refused by Python itself
    huge = isinstance(value, int) and value.bit_length() > 1024
    return f"a number of {value.bit_length()} bits" if huge else short.repr(value)


def option(
    default: Any,
    help: str,
    *,
    choices: tuple[Any, ...] | None = None,
    low: float | None = None,
    high: float | None = None,
    label: str = "",
    words: tuple[str, ...] = (),
) -> Any:
    """A dataclass field with its default, help text and allowed values, declared once.

    Forms, ``--set``, validation and documentation all read it.

    Args:
        default: its value where nothing is said.
        help: what it is, in a line.
        choices: the allowed values.
        low: the smallest allowed.
        high: the largest allowed.
        label: what a form calls it; empty: its name.
        words: what a form calls each of `choices`; empty: the value itself.
    """
    said = {"help": help, "choices": choices, "low": low, "high": high, "label": label, "words": words}
    return field(default=default, metadata=said)


def build_options(cls: type, given: dict[str, Any], owner: str) -> Any:
    """Makes the plug-in `cls` from `given` values (text is converted to each field's type).

    Raises:
        ConfigError: an unknown field, or a value of the wrong type or out of range.
    """
    known = {f.name: f for f in fields(cls)}
    for key in given:
        if key not in known:
            raise ConfigError(unknown_name(f"option of {owner}", key, tuple(known) or ("none",)))
    return cls(**{k: check_option(cls, k, v, owner) for k, v in given.items()})


def check_option(cls: type, name: str, value: Any, owner: str) -> Any:
    """`value` converted and checked against the field `name` of the dataclass `cls`."""
    spec = next(f for f in fields(cls) if f.name == name)
    kind = _types(cls)[name]
    meta = spec.metadata
    sample = spec.default if spec.default is not MISSING else None
    try:
        if kind is bool or isinstance(sample, bool):
            value = _as_bool(value)
        elif isinstance(sample, int):
            value = _as_int(value)
        elif isinstance(sample, float):
            value = float(value)
            if value != value or value in (float("inf"), float("-inf")):
                raise ValueError
        elif isinstance(sample, str) and not isinstance(value, str):
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{owner}: {name} must be {type(sample).__name__}, found {found(value)}") from None
    if meta.get("choices") and value not in meta["choices"]:
        raise ConfigError(
            f"{owner}: {name} = {found(value)} is not allowed; allowed: {', '.join(map(str, meta['choices']))}"
        )
    low, high = meta.get("low"), meta.get("high")
    if isinstance(sample, int) and high is None and value > _MOST:
        high = _MOST
    if (low is not None and value < low) or (high is not None and value > high):
        span = f"at least {low}" if high is None else f"{low} to {high}"
        raise ConfigError(f"{owner}: {name} = {found(value)} is out of range; allowed: {span}")
    return value


@cache
def _types(cls: type) -> dict[str, Any]:
    """The types of a class's fields; working them out from their texts takes milliseconds."""
    return get_type_hints(cls)


def _as_int(value: Any) -> int:
    if isinstance(value, bool):
        raise ValueError(value)
    if isinstance(value, float):
        if value != int(value):
            raise ValueError(value)
        return int(value)
    return int(value)


def _as_bool(value: Any) -> bool:
    table = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in table:
        raise ValueError(value)
    return table[str(value).lower()]
