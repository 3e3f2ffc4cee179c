"""Which folders of this machine graphs may be read from, where that is limited: a dashboard that others reach."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from uge_core.datasets.layouts.sample import PLACES
from uge_core.errors import DatasetMissing

VARIABLE = "UGE_DATA_ROOT"
"""The folders, as in PATH; the processes that work for a dashboard take it over. Unset: all that its user may read."""


def joined(folders: Iterable[str | Path]) -> str:
    """What `VARIABLE` says for these folders."""
    return os.pathsep.join(dict.fromkeys(str(Path(f).expanduser().resolve()) for f in folders))


def given() -> tuple[str, ...] | None:
    """The folders that `VARIABLE` names, or None where it is unset."""
    named = os.environ.get(VARIABLE)
    return None if named is None else tuple(filter(None, named.split(os.pathsep)))


def check_root(path: Path) -> None:
    """Refuses a folder or file outside, wherever a link leads; it does not tell whether there is one.

    Raises:
        DatasetMissing: it lies outside.
    """
    roots = given()
    if roots is None:
        return
    try:
        place = path.resolve()
        if any(place.is_relative_to(root.resolve()) for root in (*map(Path, roots), *PLACES)):
            return
    except (OSError, RuntimeError, ValueError):
        pass  # a link that leads to itself, or a name that no path has
    allowed = ", ".join(roots) or "none"
    raise DatasetMissing(
        f"{path}: lies outside the folders that this dashboard may read, which are the samples and: {allowed}; upload "
        f"the graph, or have the dashboard started with --data-root FOLDER ({VARIABLE})"
    )
