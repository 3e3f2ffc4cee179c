"""Files that are written under a temporary name and renamed, so that there is never half of one, and who may have left one behind."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    import pandas as pd
from uge_core.machine import birth


def write_atomically(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Writes a file as `.NAME.PID`, for its user's eyes alone, and gives it its name.

    Raises:
        OSError: it cannot be written; the one of before stays, and no temporary file is left.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # One that is there already is another's, or what a link leads to: nobody may have it open.
        temporary.unlink(missing_ok=True)
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            write(file)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def abandoned(path: Path) -> bool:
    """Whether a file or folder has a temporary name, and the process that it names is gone."""
    temporary = re.fullmatch(r".+\.(\d+)(\.(new|deleted))?", path.name)
    return temporary is not None and birth(int(temporary[1])) is None


class StrictLoader(yaml.SafeLoader):  # type: ignore[misc, unused-ignore]
    """The safe loader without aliases, which can unpack into too much, and without repeated keys."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """A node that is no alias."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(
                problem="aliases (*name) are not allowed", problem_mark=self.peek_event().start_mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """A mapping whose keys stand once."""
        seen: set[str] = set()
        for key, _ in node.value:
            # A key that is a list or a mapping is refused below.
            if isinstance(key.value, str):
                if key.value in seen:
                    raise yaml.MarkedYAMLError(problem=f"key {key.value!r} stands twice", problem_mark=key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def quoted(value: Any) -> Any:
    """A cell as a spreadsheet may see it; numbers, and text that is one, stay as they are."""
    if not isinstance(value, str) or value[:1] not in ("=", "+", "-", "@", "\t", "\r", "\n"):
        return value
    try:
        float(value)
    except ValueError:
        return "'" + value
    return value


def to_csv(table: pd.DataFrame) -> str:
    """The table as CSV."""
    text: str = table.map(quoted).to_csv(index=False)
    return text
