"""What is known of a plug-in in words: its source, its formula, what it serves and what it cannot do.

Words stand once, in the class's docstring: its first line is the formula in one line, a paragraph that begins with
``Departures:`` says where it leaves its publication, one with ``Cannot:`` what it does not do, and the rest
explains. The same formula as LaTeX, the references and the options are the class's own; what it serves is asked of
its code. The docs, the command line and the dashboard all show this record.
"""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import dataclass, fields
from typing import Any

_DEPARTURES, _CANNOT = "Departures:", "Cannot:"


@dataclass(frozen=True)
class Reference:
    """A publication.

    Attributes:
        authors: all of them, first names short.
        title: as printed.
        venue: where it appeared.
        year: of that.
        identifier: a DOI or arXiv number, with its kind in front; empty where there is none.
    """

    authors: str
    title: str
    venue: str
    year: int
    identifier: str = ""

    def __str__(self) -> str:
        end = f", {self.identifier}" if self.identifier else ""
        return f"{self.authors}: {self.title}. {self.venue} {self.year}{end}"


PAPER = Reference(
    "N. Wang, L. Lin, J. Li, H. Wang",
    "Unbiased Graph Embedding with Biased Graph Observations",
    "WWW",
    2022,
    "arXiv:2110.13957",
)


@dataclass(frozen=True)
class Choice:
    """An option of a plug-in: its name, default and allowed values as text, and what it is for."""

    name: str
    default: str
    allowed: str
    help: str


@dataclass(frozen=True)
class Info:
    r"""A plug-in in words; paragraphs are unwrapped, those that are displays keep their lines and begin with spaces.

    Attributes:
        name: as it is typed.
        label: as on screen.
        summary: what it does, in a line for people who choose.
        citation: short, as in lists.
        references: in full.
        formula: LaTeX.
        line: the formula in one line of text.
        text: paragraphs that explain it.
        departures: where it leaves its publication.
        cannot: what it does not do.
        supports: what it serves, each with its words.
        options: its settings.
    """

    name: str
    label: str
    summary: str
    citation: str
    references: tuple[Reference, ...]
    formula: str
    line: str
    text: tuple[str, ...]
    departures: tuple[str, ...]
    cannot: tuple[str, ...]
    supports: tuple[tuple[str, str], ...]
    options: tuple[Choice, ...]


def describe(cls: Any, supports: tuple[tuple[str, str], ...]) -> Info:
    """The record of a plug-in's class; `supports` is what its code says it serves."""
    line, *rest = _paragraphs(cls.__doc__ or "")
    departures: list[str] = []
    cannot: list[str] = []
    text: list[str] = []
    for paragraph in rest:
        for start, where in ((_DEPARTURES, departures), (_CANNOT, cannot)):
            if paragraph.startswith(start):
                where.append(paragraph.removeprefix(start).strip())
                break
        else:
            text.append(paragraph)
    return Info(
        cls.name,
        cls.label,
        cls.summary,
        cls.citation,
        cls.references,
        cls.formula,
        line,
        tuple(text),
        tuple(departures),
        tuple(cannot),
        supports,
        tuple(_choice(f) for f in fields(cls) if f.metadata),
    )


def _paragraphs(docstring: str) -> list[str]:
    """Prose on one line each; a display, whose lines are all indented, as it stands."""
    found = []
    for block in inspect.cleandoc(docstring).split("\n\n"):
        lines = block.splitlines()
        display = all(line.startswith("    ") for line in lines)
        found.append(textwrap.indent(textwrap.dedent(block), "    ") if display else " ".join(map(str.strip, lines)))
    return found


def _choice(spec: Any) -> Choice:
    meta = spec.metadata
    low, high = meta["low"], meta["high"]
    if meta["choices"]:
        allowed = ", ".join(map(str, meta["choices"]))
    elif isinstance(spec.default, bool):
        allowed = "true, false"
    elif low is None:
        allowed = ""
    else:
        allowed = f"at least {low:g}" if high is None else f"{low:g} to {high:g}"
    default = str(spec.default).lower() if isinstance(spec.default, bool) else f"{spec.default}"
    return Choice(spec.name, default, allowed, meta["help"])
