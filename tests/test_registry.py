"""Files of plug-ins: which are found, and what is said of one whose name no plug-in's file may have."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import uge_core.debias.methods
from uge_core.cli.main import run
from uge_core.errors import ConfigError
from uge_core.registry import names


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose files are methods too."""
    monkeypatch.setattr(uge_core.debias.methods, "__path__", [*uge_core.debias.methods.__path__, str(tmp_path)])
    names.cache_clear()
    yield tmp_path
    names.cache_clear()


def test_a_file_of_underscores_is_a_name_of_hyphens(folder: Path) -> None:
    for file in ("uge_toy", "base", "_shared"):
        (folder / f"{file}.py").touch()
    found = names("debias.methods")
    assert "uge-toy" in found and "uge-w" in found and not {"base", "-shared", "_shared"} & set(found)


def test_a_file_of_hyphens_is_refused_by_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "uge-toy.py").touch()
    with pytest.raises(ConfigError, match=r"^uge_core/debias/methods/uge-toy\.py: .* rename it to uge_toy\.py"):
        names("debias.methods")
    for command in (["methods"], ["methods", "uge-toy"], ["train", "sample:town", "--method", "uge-toy"]):
        assert run(command) == 2
        said = capsys.readouterr().err
        assert "uge-toy.py" in said and "uge_toy.py" in said and "internal error" not in said
