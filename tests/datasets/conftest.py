"""Made files in real formats, and the folder of real graphs where a machine has it."""

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Write = Callable[[Mapping[str, str | bytes]], Path]


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
