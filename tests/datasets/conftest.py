"""Made files in real formats, and the folder of real graphs where a machine has it."""

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from uge_core.graph.graph import AttributedGraph, Message

Write = Callable[[Mapping[str, str | bytes]], Path]

ABOUT_GROUPS = {"small-groups", "cells-without-edges", "identifier-column", "many-values"}
"""What nearly every tiny graph is told."""


def _about_files(graph: AttributedGraph) -> tuple[Message, ...]:
    return tuple(m for m in graph.messages if m.code not in ABOUT_GROUPS)


@pytest.fixture
def about_files() -> Callable[[AttributedGraph], tuple[Message, ...]]:
    """The messages of a graph but for those on its groups."""
    return _about_files


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes files into a folder called "made" and returns it; names in .gz are compressed unless given as bytes."""

    def _write(files: Mapping[str, str | bytes]) -> Path:
        folder = tmp_path / "made"
        folder.mkdir(exist_ok=True)
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            if name.endswith(".gz") and isinstance(content, str):
                data = gzip.compress(data)
            (folder / name).write_bytes(data)
        return folder

    return _write
