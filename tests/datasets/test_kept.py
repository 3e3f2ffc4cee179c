"""A large graph is read once and kept: equal to what the files say, read anew when they change, never trusted damaged."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, fields, replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from uge_core.cli.purge import age, older_than
from uge_core.datasets import kept, load
from uge_core.datasets.arrays_of import apart, together
from uge_core.datasets.kept import KeptGraphs
from uge_core.datasets.layouts.sample import folder as sample_folder
from uge_core.datasets.layouts.sample import names
from uge_core.graph.graph import AttributedGraph
from uge_core.runs.store import RunStore
from uge_core.runs.uploads import remove_upload, save_upload

WEIGHTED = {
    "dataset.yaml": (
        "edges: {file: e.csv, source: a, target: b, weight: w}\nnodes: {file: n.csv, id: id}\ndirected: true\n"
        "attributes:\n  age: {bins: 'quantile:3', missing: [0]}\n  sex: {}\nsensitive: [sex]\nfeatures: [x]\n"
    ),
    "e.csv": "a,b,w\n" + "\n".join(f"p{i},p{i * 7 % 40},{1 + i % 3}" for i in range(40)),
    "n.csv": "id,age,sex,x\n" + "\n".join(f"p{i},{i % 30},{'mf'[i % 2]},{i / 7}" for i in range(41)),
}


@pytest.fixture(autouse=True)
def _small_graphs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "LEAST", 0)


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The layouts that read files, one for each reading."""
    seen: list[str] = []
    found = KeptGraphs.read

    def read(self, layout, dataset, asked):
        def counted(*args):
            seen.append(layout.name)
            return layout.read(*args)

        return found(self, replace(layout, read=counted), dataset, asked)

    monkeypatch.setattr(KeptGraphs, "read", read)
    return seen


def same(one: object, other: object) -> bool:
    """Whether two graphs, or parts of them, are equal to the last bit and type."""
    if isinstance(one, np.ndarray):
        assert isinstance(other, np.ndarray)
        return one.dtype == other.dtype and one.shape == other.shape and (one == other).all()
    if type(one) is not type(other):
        return False
    if hasattr(one, "__dataclass_fields__"):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def check_same(one: AttributedGraph, other: AttributedGraph) -> None:
    different = [f.name for f in fields(one) if not same(getattr(one, f.name), getattr(other, f.name))]
    assert not different
    assert one.fingerprint == other.fingerprint


@pytest.mark.parametrize("name", [*names(), "weighted"])
@pytest.mark.parametrize("attributes", [None, "first"])
def test_a_kept_graph_is_the_one_that_was_read(tmp_path, write, readings, name, attributes):
    spec = write(WEIGHTED) if name == "weighted" else f"sample:{name}"
    plain = load(spec)
    asked = attributes and [plain.audited[0].name]
    plain = load(spec, attributes=asked)
    first = load(spec, attributes=asked, store=tmp_path / "store", keep=True)
    second = load(spec, attributes=asked, store=tmp_path / "store", keep=True)
    assert len(readings) == 1
    check_same(first, plain)
    check_same(second, plain)
    second.edges[0, 0] += 0  # may be written to, as what was read
    if plain.features is not None:
        second.features[0, 0] += 0


def test_nothing_is_kept_of_small_graphs_or_unasked(tmp_path, monkeypatch):
    load("sample:town", store=tmp_path)
    monkeypatch.undo()
    load("sample:town", store=tmp_path, keep=True)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """A copy of the town, to be changed."""
    place = tmp_path / "town"
    shutil.copytree(sample_folder("town"), place)
    return place


def test_a_changed_file_is_read_anew_and_what_was_kept_before_goes(tmp_path, town, readings):
    store = tmp_path / "store"
    first = load(town, store=store, keep=True)
    edges = (town / "edges.csv").read_bytes()
    facts = (town / "edges.csv").stat()
    lines = edges.splitlines(keepends=True)
    (town / "edges.csv").write_bytes(b"".join([lines[0], *lines[2:], lines[1]]))  # as long as before
    os.utime(town / "edges.csv", ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert load(town, store=store, keep=True).fingerprint == first.fingerprint
    assert len(readings) == 2
    (town / "edges.csv").write_bytes(b"".join(lines[:-1]))
    changed = load(town, store=store, keep=True)
    assert len(readings) == 3
    assert changed.num_edges == first.num_edges - 1
    assert len(KeptGraphs(store).list()) == 1
    load(town, store=store, keep=True, attributes="region")
    assert len(KeptGraphs(store).list()) == 2  # asked for otherwise


def test_a_file_that_a_card_names_counts(tmp_path, write, readings):
    folder = write(WEIGHTED)
    load(folder, store=tmp_path / "store", keep=True)
    (folder / "n.csv").write_text(WEIGHTED["n.csv"].replace("p3,3,f", "p3,3,m"))
    again = load(folder, store=tmp_path / "store", keep=True)
    assert len(readings) == 2
    assert same(again.attribute("sex").codes, load(folder).attribute("sex").codes)


def test_a_table_beside_the_graph_is_said_of_a_kept_one_too(tmp_path, write, readings):
    files = {"net.gml": "graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 ] ]"}
    folder = write(files)
    load(folder / "net.gml", store=tmp_path / "store", keep=True)
    (folder / "nodes.csv").write_text("id\n0\n1\n")
    graph = load(folder / "net.gml", store=tmp_path / "store", keep=True)
    assert len(readings) == 1
    assert [m.code for m in graph.messages].count("files-not-read") == 1


def test_another_version_of_the_reader_reads_anew(tmp_path, readings, monkeypatch):
    load("sample:town", store=tmp_path, keep=True)
    monkeypatch.setattr(kept, "_reader", lambda: "another")
    load("sample:town", store=tmp_path, keep=True)
    assert len(readings) == 2
    assert len(KeptGraphs(tmp_path).list()) == 1


FILES = ["edges.npy", "codes_0.npy", "ids.json", "graph.json", "bias_free.npy", "ratio.npy"]


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "gone"])
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_one_is_thrown_away_and_read_anew(tmp_path, readings, file, harm):
    plain = load("sample:town", store=tmp_path, keep=True)
    (folder,) = (k.folder for k in KeptGraphs(tmp_path).list())
    path = folder / file
    content = bytearray(path.read_bytes())
    if harm == "gone":
        path.unlink()
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes({"flip": bytes(content), "cut": bytes(content[:-9]), "empty": b""}[harm])
    check_same(load("sample:town", store=tmp_path, keep=True), plain)
    assert len(readings) == 2
    check_same(load("sample:town", store=tmp_path, keep=True), plain)
    assert len(readings) == 2


def test_arrays_of_another_graph_are_refused():
    graph = load("sample:town")
    record, arrays, ids = apart(graph)
    check_same(together(record, arrays.get, ids), graph)
    other = arrays["codes_0"].copy()
    other[:2] = other[:2][::-1] if other[0] != other[1] else 1 - other[:2]
    with pytest.raises(ValueError, match="another graph"):
        together(record, {**arrays, "codes_0": other}.get, ids)
    assert apart(replace(graph, base=graph)) is None
    assert apart(replace(graph, node_ids=np.arange(graph.num_nodes).astype(object))) is None


def test_a_store_that_cannot_be_written_is_no_fault(tmp_path, readings):
    (tmp_path / "store").write_text("no folder")
    graph = load("sample:town", store=tmp_path / "store", keep=True)
    check_same(graph, load("sample:town"))


KILLED = """
import os, signal, sys
from uge_core.datasets import kept, load
kept.LEAST = 0
counted, at = [0], int(sys.argv[2])
sync = kept.sync
def dies(path):
    counted[0] += 1
    if counted[0] == at:
        os.kill(os.getpid(), signal.SIGKILL)
    sync(path)
kept.sync = dies
load("sample:town", store=sys.argv[1], keep=True)
print(counted[0])
"""


@pytest.mark.slow
def test_killed_while_writing_leaves_nothing_that_is_taken_for_a_graph(tmp_path, readings):
    plain = load("sample:town")

    def run(store: Path, at: int) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(Path(kept.__file__).parents[2])}
        command = [sys.executable, "-c", KILLED, str(store), str(at)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    steps = int(run(tmp_path / "whole", 0).stdout)
    for at in (1, steps // 2, steps - 1, steps):
        store = tmp_path / str(at)
        assert run(store, at).returncode == -signal.SIGKILL
        readings.clear()
        check_same(load("sample:town", store=store, keep=True), plain)
        assert len(readings) == (at < steps)  # the last step is after the renaming
        assert [p.name for p in (store / "graphs").iterdir()] == [k.folder.name for k in KeptGraphs(store).list()]


def test_purge_and_the_removal_of_an_upload_take_it_along(tmp_path, town):
    store = RunStore(tmp_path / "store")
    load("sample:town", store=store.root, keep=True)
    files = [(name, BytesIO((town / name).read_bytes())) for name in ("edges.csv", "nodes.csv")]
    upload = save_upload("mine", files, store)
    load(upload.folder, store=store.root, keep=True)
    assert len(KeptGraphs(store.root).list()) == 2
    removed = remove_upload("mine", store)
    (left,) = KeptGraphs(store.root).list()
    assert left.name == "town"
    assert sum("graphs" in line for line in removed) == 1
    assert not [old for old in older_than(age("1d"), store) if "kept graph" in old.what]
    (old,) = [old for old in older_than(age("0d"), store) if "kept graph" in old.what]
    assert old.what == "kept graph town"
    old.remove()
    assert not KeptGraphs(store.root).list()
    assert asdict(left)["size"] > 0
