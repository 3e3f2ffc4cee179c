"""A report's HTML as a list of pieces: texts, tags and data, each with its place in words.

Two pages that say the same have the same pieces, whatever the white space between and in texts and the order of keys in
data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import zip_longest
from typing import Any, NamedTuple, NoReturn

from uge_core.errors import RecordError

RECIPE, RECORDS = "recipe", "records"
"""Ids of the scripts that say how the page was made and what was measured, and the kinds of these pieces."""
_VOID = {"meta", "br", "link", "img", "hr", "input", "wbr"}


class Piece(NamedTuple):
    """A part of a page.

    Attributes:
        place: where it stands, in words.
        kind: text, tag, script, or the id of a script that holds JSON.
        content: the text, or what JSON has.
    """

    place: str
    kind: str
    content: Any


def pieces(html: str) -> list[Piece]:
    """The page's pieces in their order.

    Raises:
        RecordError: its markup cannot be made out.
    """
    reader = _Reader()
    try:
        reader.feed(html)
        reader.close()
    except AssertionError:  # the parser's own, of markup that it cannot make out
        raise RecordError("the page cannot be read: its markup is broken") from None
    reader.flush()
    return reader.made


def first_difference(reported: Sequence[Piece], anew: Sequence[Piece]) -> str | None:
    """The first difference of a page and the same made anew in words, or None."""
    # What says how the page was made has a SHA-256 of its own, and is what it is made anew by.
    before, after = ([p for p in page if p.kind != RECIPE] for page in (reported, anew))
    for old, new in zip_longest(before, after):
        if old is None or new is None:
            one = old or new
            where = "in the report alone" if new is None else "missing in the report"
            return f"{one.place}: {_brief(one.content)} is {where}"
        if (old.kind, old.content) != (new.kind, new.content):
            if old.kind == new.kind and not isinstance(old.content, str):
                return _inside(old.content, new.content, old.place)
            # A text and a tag: a part is missing, or there is one more.
            named = new if new.kind == "text" or old.kind != "text" else old
            return f"{named.place}: {_both(old.content, new.content)}"
    return None


def difference(reported: Any, anew: Any) -> str | None:
    """The first difference of two values of JSON in words, or None."""
    return None if reported == anew else _inside(reported, anew, "the record")


def _inside(reported: Any, anew: Any, where: str) -> str:
    """The first difference of two JSON values that are not equal."""
    if isinstance(reported, dict) and isinstance(anew, dict):
        for key in dict.fromkeys([*anew, *reported]):
            if key not in reported or key not in anew:
                return f"{where}, {key} is {'missing in the report' if key in anew else 'in the report alone'}"
            if reported[key] != anew[key]:
                return _inside(reported[key], anew[key], f"{where}, {key}")
    if isinstance(reported, list) and isinstance(anew, list):
        if len(reported) != len(anew):
            return f"{where}: the report has {len(reported)} entries, it should have {len(anew)}"
        for i, (old, new) in enumerate(zip(reported, anew, strict=True), start=1):
            if old != new:
                name = new.get("name") if isinstance(new, dict) else None
                return _inside(old, new, f"{where}, {name if isinstance(name, str) and name else i}")
    return f"{where}: {_both(reported, anew)}"


def _both(reported: Any, anew: Any) -> str:
    """What is said and what should be; of long texts what stands around the first difference."""
    if isinstance(reported, str) and isinstance(anew, str):
        at = next((i for i, (a, b) in enumerate(zip(reported, anew, strict=False)) if a != b), 0)
        if at > 80:
            reported, anew = (f"... {text[at - 40 : at + 60]}" for text in (reported, anew))
    return f"the report says {_brief(reported)}, it should say {_brief(anew)}"


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return repr(text if len(text) <= 200 else text[:197] + "...")


@dataclass
class _Table:
    """A table while it is read."""

    name: str
    heads: list[str] = field(default_factory=list)
    row: int = 0
    column: int = 0
    first: str = ""
    head: bool = False


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.made: list[Piece] = []
        self._text: list[str] = []
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self._sections = {"h1": "", "h2": "", "h3": ""}
        self._table: _Table | None = None
        self._name = ""
        self._scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.flush()
        if tag in self._sections:
            for lower in ("h1", "h2", "h3")[("h1", "h2", "h3").index(tag) :]:
                self._sections[lower] = self._name = ""
        elif tag == "table":
            self._table = _Table(self._name)
        elif self._table and tag == "tr":
            self._table.row += not self._table.head
            self._table.column, self._table.first = 0, ""
        elif self._table and tag in ("td", "th"):
            self._table.column += 1
        elif self._table and tag == "thead":
            self._table.head = True
        shown = " ".join([tag, *(f"{name}={value!r}" for name, value in attrs)])
        self._add("tag", f"<{shown}>")
        if tag not in _VOID:
            self._open.append((tag, dict(attrs)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.flush()
        self._add("tag", f"<{' '.join([tag, *(f'{name}={value!r}' for name, value in attrs)])}/>")

    def handle_endtag(self, tag: str) -> None:
        self.flush()
        self._add("tag", f"</{tag}>")
        if tag == "table":
            self._table = None
        elif tag == "thead" and self._table:
            self._table.head = False
        elif tag == "details":
            self._name = ""
        if self._open and self._open[-1][0] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    # A report has neither; a browser may read one otherwise than this.
    def handle_comment(self, data: str) -> None:
        self._mark(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self._mark(f"<!{' '.join(decl.lower().split())}>")

    def unknown_decl(self, data: str) -> None:
        self._mark(f"<![{data}]>")

    def handle_pi(self, data: str) -> None:
        self._mark(f"<?{data}>")

    def _mark(self, text: str) -> None:
        self.flush()
        self._add("tag", text)

    def flush(self) -> None:
        """Ends the text that is being read."""
        raw, self._text = "".join(self._text), []
        text = " ".join(raw.split())
        if not text:
            return
        tag, attributes = self._open[-1] if self._open else ("", {})
        if tag == "script":
            self.made.append(_script(text, raw, attributes))
            return
        if tag in self._sections and self._open:
            self._sections[tag] = " ".join(filter(None, (self._sections[tag], text)))
        within = [name for name, _ in self._open]
        if "caption" in within and self._table:
            self._name = self._table.name = self._table.name if "span" in within else text
        if tag == "summary":
            self._name = text
        if (table := self._table) and tag in ("td", "th", "code"):
            if table.head:
                table.heads.append(text)
            elif table.column == 1:
                table.first = text
        self._add("text", text)

    def _add(self, kind: str, content: Any) -> None:
        self.made.append(Piece(self._place(), kind, content))

    def _place(self) -> str:
        where = [text for text in (self._sections["h2"], self._sections["h3"]) if text]
        table = self._table
        if table:
            where += [f"table {table.name!r}"] if table.name else ["table"]
            if table.head:
                where.append("heads")
            elif table.row:
                about = f" ({table.first})" if table.first and table.column > 1 else ""
                where.append(f"row {table.row}{about}")
                if 0 < table.column <= len(table.heads):
                    where.append(table.heads[table.column - 1])
        return ", ".join(where) or (self._open[-1][0] if self._open else "the page")


def _script(text: str, raw: str, attributes: dict[str, str | None]) -> Piece:
    """A script: JSON, or code."""
    name = attributes.get("id")
    if attributes.get("type") == "application/json" and name in (RECIPE, RECORDS):
        try:
            return Piece(f"the {name} in the page", name, json.loads(raw, **_STRICT))
        except (ValueError, RecursionError):
            return Piece(f"the {name} in the page", name, text)
    return Piece("the page's script", "script", text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands twice")
    return members


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


def _finite(word: str) -> float:
    value = float(word)
    return value if math.isfinite(value) else _refuse(word)


_STRICT: dict[str, Any] = {"object_pairs_hook": _once, "parse_constant": _refuse, "parse_float": _finite}
