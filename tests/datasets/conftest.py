"""Made files in real formats, and the folder of real graphs where a machine has it."""

import gzip
import os
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


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """A folder of real data by name: under $UGE_SHARED_DATA, else in shared/data beside the checkout."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    root = Path(os.environ.get("UGE_SHARED_DATA", beside))

    def _locate(name: str) -> Path:
        if not (root / name).is_dir():
            pytest.skip(f"real data {name} is not in {root}; set UGE_SHARED_DATA to the folder that holds it")
        return root / name

    return _locate
