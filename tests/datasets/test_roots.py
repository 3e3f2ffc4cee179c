"""Which folders graphs are read from where that is limited, whoever asks and however a path is written."""

import shutil
from pathlib import Path

import pytest

import uge_core.dashboard as ui
from uge_core.datasets import load, locate, roots
from uge_core.datasets.layouts.sample import folder
from uge_core.errors import DatasetMissing, GraphError
from uge_core.runs.store import RunStore


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A folder that may be read, and one beside it."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for place in (ours, theirs):
        place.mkdir()
        for name in ("edges.csv", "nodes.csv"):
            shutil.copy(folder("town") / name, place)
    monkeypatch.setenv(roots.VARIABLE, str(ours))
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "store"))
    return ours, theirs


def test_what_lies_outside_is_refused_however_it_is_asked_for(places: tuple[Path, Path], tmp_path: Path) -> None:
    ours, theirs = places
    store = RunStore(tmp_path / "store")
    (ours / "link").symlink_to(theirs)
    (ours / "linked").mkdir()
    for name in ("edges.csv", "nodes.csv"):
        (ours / "linked" / name).symlink_to(theirs / name)
    assert load(ours, may_fetch=False).num_nodes == load("sample:town", may_fetch=False).num_nodes
    outside = (theirs, theirs / "edges.csv", ours / "link", ours / "linked", ours / ".." / "theirs", f"{theirs}:x")
    for spec in map(str, outside):
        asks = (
            lambda spec=spec: load(spec, may_fetch=False),
            lambda spec=spec: locate(spec),
            lambda spec=spec: ui.data_stamp(spec, store.root),
            lambda spec=spec: ui.data_view(spec, store),
            lambda spec=spec: ui.training_form(spec, store),
            lambda spec=spec: ui.enqueue_reading(spec, store),
        )
        for ask in asks:
            with pytest.raises(DatasetMissing, match=f"--data-root FOLDER .{roots.VARIABLE}"):
                ask()
    assert ui.mapping_folder(str(theirs)) is None and ui.written_mapping(theirs) is None
    for ask in (
        lambda: ui.readable_files(theirs),
        lambda: ui.read_pair(theirs, "edges.csv", "nodes.csv"),
        lambda: ui.read_pair(ours / "linked", "edges.csv", "nodes.csv"),
        lambda: ui.read_pair(ours, "../theirs/edges.csv", "nodes.csv"),
    ):
        with pytest.raises(GraphError, match="lies outside"):
            ask()


def test_it_is_not_told_what_lies_outside(places: tuple[Path, Path]) -> None:
    _, theirs = places
    said = []
    for spec in (theirs, theirs.parent / "nowhere"):
        with pytest.raises(DatasetMissing) as told:
            load(spec, may_fetch=False)
        said.append(str(told.value).replace(str(spec), ""))
    assert said[0] == said[1]


def test_who_signs_in_reads_uploads_and_samples(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = places
    uploads = tmp_path / "store" / "uploads" / "graph"
    shutil.copytree(theirs, uploads)
    ui.limit_roots(signed_in=False)  # a folder was named: it and the uploads
    for spec in (ours, uploads, "sample:town"):
        load(spec, may_fetch=False)
    monkeypatch.delenv(roots.VARIABLE)
    ui.limit_roots(signed_in=False)
    assert roots.given() is None and load(theirs, may_fetch=False)
    ui.limit_roots(signed_in=True)
    for spec in (uploads, "sample:town"):
        load(spec, may_fetch=False)
    with pytest.raises(DatasetMissing, match="lies outside"):
        load(ours, may_fetch=False)
