"""What a report is made of, as one sealed JSON object that each format carries: by it a report is made anew.

In HTML it stands in a script element that nothing runs, in CSV in the last line, whose kind is `report`, in PDF in a
comment before the file's end. The JSON format needs none, as each record there says all of itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from uge_core.audit.record import canonical, digest, seal
from uge_core.errors import RecordError

NAME = "uge-report/1"
_EARLIER = ("title", "author", "purpose")


@dataclass(frozen=True)
class Recipe:
    """What a report is made of.

    Attributes:
        made: when, as the report says it.
        sheet: what was typed, by field of `Sheet`.
        runs: the SHA-256 of each run's record, by run id, in the report's order.
        scenarios: the SHA-256 of each what-if scenario's record, by scenario id.
        maker: what `maker` gave.
        chosen: what is set side by side and how: `before`, `after`, `attribute`, `data`, `policy` and `rules`, the
            policy's name and text.
        notes: what was pinned to runs then, by run id.
    """

    made: str
    sheet: dict[str, str]
    runs: dict[str, str]
    scenarios: dict[str, str] = field(default_factory=dict)
    maker: str = ""
    chosen: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def sealed(self, content: str) -> str:
        """One line of ASCII; `content` is the SHA-256 of the rest of the file, as its format counts it."""
        record = seal({"schema": NAME, **asdict(self), "content": content})
        # As HTML, JSON and a PDF's comment may hold it.
        return json.dumps(record, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")


def read(text: str) -> tuple[Recipe, str, bool]:
    """A recipe, the SHA-256 of the file's content in it, and whether it is as it was written.

    Raises:
        RecordError: it is none.
    """
    try:
        record = json.loads(text)
        if record["schema"] != NAME:
            raise RecordError(f"schema {str(record['schema'])[:40]!r} is not allowed; allowed: {NAME!r}")
        # An earlier version had three texts, beside the rest.
        known = {"sheet": {k: record[k] for k in _EARLIER if k in record}, "chosen": {}, "notes": {}} | record
        told: dict[str, Any] = {k: _text(record[k]) for k in ("made", "maker")}
        by_name = ("sheet", "runs", "scenarios", "chosen", "notes")
        told |= {k: {_text(i): _text(v) for i, v in known[k].items()} for k in by_name}
        return Recipe(**told), _text(record["content"]), record["sha256"] == digest(record)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise RecordError(
            "what says how the report was made cannot be read; it was changed after it was written"
        ) from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # half of a character stands in no report of ours
    return value


def sha256(content: Any) -> str:
    """Of bytes, or of the canonical bytes of what JSON has."""
    return hashlib.sha256(content if isinstance(content, bytes) else canonical(content)).hexdigest()


@cache
def maker() -> str:
    """What tells this version's reports from others': the beginning of a SHA-256 of the package's sources."""
    found = hashlib.sha256()
    with resources.as_file(resources.files("uge_core")) as folder:
        for path in sorted(p for p in Path(folder).rglob("*") if p.suffix in (".py", ".html")):
            found.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def differing(reported: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """The first key whose value is another now, or None."""
    return next((key for key, value in reported.items() if now.get(key) != value), None)
