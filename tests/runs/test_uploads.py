"""What is brought through the browser: where it lies, who may read it, and how it goes again."""

import io
import stat
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import uge_core.runs.uploads as kept
from tests.campaigns._harness import operations
from tests.campaigns.disks import fill, may_mount, said, small_disk
from uge_core.cli.purge import older_than
from uge_core.dashboard.jobs.queue import Queue
from uge_core.dashboard.queue import removal
from uge_core.datasets import load
from uge_core.errors import ConfigError, GraphError, StoreError
from uge_core.explore.whatif.edits import FlipValue
from uge_core.explore.whatif.scenario import Scenario, Scenarios
from uge_core.runs.store import RunStore
from uge_core.runs.uploads import list_uploads, remove_upload, save_upload, upload_removal, uploads_folder


def files(**contents: bytes) -> list[tuple[str, io.BytesIO]]:
    return [(name.replace("__", "."), io.BytesIO(content)) for name, content in contents.items()]


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "store")


def test_an_upload_is_private_and_listed(store: RunStore) -> None:
    upload = save_upload("", files(friends_edges__csv=b"source,target\na,b\n", nodes__csv=b"id,g\na,x\n"), store)
    assert (upload.name, upload.files) == ("friends", ("friends_edges.csv", "nodes.csv"))
    assert upload.folder == uploads_folder(store) / "friends" and upload.size == 27
    for path in (store.root, uploads_folder(store), upload.folder):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in upload.folder.iterdir())
    again = save_upload("friends", files(e__csv=b"x", n__csv=b"y"), store)
    assert again.name == "friends-2" and {u.name for u in list_uploads(store)} == {"friends", "friends-2"}


def test_names_stay_in_their_folder(store: RunStore) -> None:
    names = ["../../evil.csv", "C:\\data\\my table.csv", ".hidden.csv", "a/b/evil.csv"]
    upload = save_upload("../../out", [(n, io.BytesIO(b"x")) for n in names], store)
    assert upload.name == "out" and upload.folder.parent == uploads_folder(store)
    assert upload.files == ("2-evil.csv", "evil.csv", "hidden.csv", "my_table.csv")
    assert upload.written == ("evil.csv", "my_table.csv", "hidden.csv", "2-evil.csv")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("big.csv", b"x" * 20, "is larger than 1e-05 MB, the most that can be uploaded; give the place"),
        ("empty.csv", b"", "empty.csv: is empty"),
        ("dataset.yaml", b"edges: e.csv", "files that can be uploaded end in"),
        ("model.pkl", b"x", "files that can be uploaded end in"),
    ],
)
def test_what_is_refused_leaves_nothing(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, said: str
) -> None:
    monkeypatch.setattr(kept, "LARGEST_MB", 0.00001)
    with pytest.raises(GraphError, match=said):
        save_upload("graph", [("ok.csv", io.BytesIO(b"x")), (name, io.BytesIO(content))], store)
    assert list(uploads_folder(store).iterdir()) == [] and list_uploads(store) == ()


def test_removing_says_what_goes_and_what_stays(store: RunStore) -> None:
    upload = save_upload("friends", files(e__csv=b"x", n__csv=b"y"), store)
    store.begin(
        "f" * 12,
        {"method": "none", "backbone": "gcn"},
        {"name": "friends", "fingerprint": "0", "source": {"spec": upload.spec}},
    )
    first, second = upload_removal("friends", store)
    assert first == "2 files of friends (e.csv, n.csv), 1 kB" and "1 run trained on it stays" in second
    assert remove_upload("friends", store) == (f"{upload.folder}/e.csv", f"{upload.folder}/n.csv")
    assert not upload.folder.exists() and list_uploads(store) == ()
    for name in ("friends", "..", "."):
        with pytest.raises(GraphError, match="there is no upload"):
            remove_upload(name, store)


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="uploads cannot be kept there"):
        save_upload("g", files(e__csv=b"x"), RunStore(tmp_path / "file"))
    with pytest.raises(GraphError, match="no file was chosen"):
        save_upload("g", [], RunStore(tmp_path))


@pytest.mark.parametrize("what", ["removal", "upload"])
def test_a_process_that_is_killed_leaves_no_half_upload(what: str, tmp_path: Path) -> None:
    def act(store: RunStore) -> None:
        if what == "removal":
            remove_upload("friends", store)
        else:
            save_upload("mine", files(e__csv=b"x", n__csv=b"y"), store)

    def fresh(name: object) -> RunStore:
        store = RunStore(tmp_path / str(name) / "store")
        save_upload("friends", files(e__csv=b"x", n__csv=b"y"), store)
        return store

    steps = operations(tmp_path, lambda: act(fresh("whole")))
    assert steps is not None
    begun = next(i for i, (kind, path) in enumerate(steps) if kind == "rename" and path.endswith("friends")) + 2
    for at in range(begun, len(steps)):
        assert operations(tmp_path, lambda at=at: act(fresh(at)), kill_at=at) is None  # type: ignore[misc]
        store = RunStore(tmp_path / str(at) / "store")
        there = list_uploads(store)
        assert all(upload.files == ("e.csv", "n.csv") for upload in there)
        save_upload("others", files(e__csv=b"x"), store)
        assert {path.name for path in uploads_folder(store).iterdir()} == {"others", *(u.name for u in there)}


def test_a_file_that_may_not_grow_is_said_and_leaves_nothing(store: RunStore) -> None:
    """Runs everywhere, also where no small disk can be mounted."""
    save_upload("friends", files(e__csv=b"x"), store)
    text = said(lambda small: save_upload("mine", files(e__csv=b"1,2\n" * 20_000), small), store.root, limit=8192)
    assert "files in" in text and "may not grow that large" in text and "nothing that was stored is lost" in text
    assert [u.name for u in list_uploads(store)] == ["friends"] and len(list(uploads_folder(store).iterdir())) == 1


def test_a_full_disk_is_said(store: RunStore) -> None:
    if not may_mount():
        pytest.skip("may not mount a small disk; the test above limits the size of files instead")
    with small_disk() as home:
        small = RunStore(home / "store")
        save_upload("friends", files(e__csv=b"x"), small)
        fill(home, 8192)
        with pytest.raises(
            StoreError, match=r"uploads cannot be kept there: the disk at .* is full .*; nothing that was"
        ):
            save_upload("mine", files(e__csv=b"1,2\n" * 20_000), small)
        assert [u.name for u in list_uploads(small)] == ["friends"] and len(list(uploads_folder(small).iterdir())) == 1
        fill(home, 0)
        remove_upload("friends", small)
        assert list(uploads_folder(small).iterdir()) == []


def test_an_upload_called_like_a_leftover_is_none(store: RunStore) -> None:
    upload = save_upload("friends.4194305", files(e__csv=b"x"), store)
    assert upload.name == "friends.4194305"
    store.begin("f" * 12, {"method": "none", "backbone": "gcn"}, {"name": "x", "fingerprint": "0", "source": None})
    assert not any("leftover" in old.what for old in older_than(timedelta(0), store))


def test_edits_of_its_people_go_with_the_upload_and_with_the_last_run(store: RunStore) -> None:
    upload = save_upload("friends", files(e__csv=b"x", n__csv=b"y"), store)
    place = {"name": "friends", "source": {"spec": upload.spec}}
    about = {"method": "none", "backbone": "gcn"}

    def edited(data: str) -> tuple[Scenario, int]:
        scenario = Scenario(data, (FlipValue("region", ("p0123",), "North"),), f"north {data}")
        Scenarios(store).save(scenario)
        job_id = Queue(store).add({"device": "cpu", "scenario": scenario.to_json(), "like": "x"})
        with store.writing() as db:
            db.execute("UPDATE jobs SET status = 'failed'")
        return scenario, job_id

    def left() -> list[str]:
        return [p.name for p in store.root.rglob("*") if p.is_file() and b"p0123" in p.read_bytes()]

    for run_id, data in (("a" * 12, "0"), ("b" * 12, "0"), ("c" * 12, "1")):
        store.begin(run_id, about, place | {"fingerprint": data})
        store.interrupt(run_id)
    _, first = edited("0")
    edited("1")
    assert len(left()) == 3
    assert "1 scenario (north 1), as no other run of their graph is left" in removal(["c" * 12], store)
    assert not any("scenario" in line for line in removal(["b" * 12], store))
    store.delete("b" * 12)
    gone = store.delete("c" * 12)
    assert [s.scenario.name for s in Scenarios(store).list()] == ["north 0"] and any("scenarios" in p for p in gone)
    assert "1 scenario of it: north 0" in upload_removal("friends", store)
    assert any("scenarios" in path for path in remove_upload("friends", store))
    assert not Scenarios(store).list() and not left()
    with pytest.raises(ConfigError, match="were deleted"):
        Scenario.from_json(Queue(store).load(first).settings["scenario"])


def test_endings_are_written_as_layouts_know_them(store: RunStore) -> None:
    assert save_upload("", [("Friends.GraphML", io.BytesIO(b"<x/>"))], store).files == ("Friends.graphml",)


ROWS = "id,city\n10,A\n11,A\n12,B\n"
UPLOADS = {
    "mtx": [
        ("Friends.MTX", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n"),
        ("people.csv", ROWS),
    ],
    "pajek": [("club.net", '*Vertices 3\n1 "10"\n2 "11"\n3 "12"\n*Edges\n1 2\n2 3\n')],
    "json": [
        (
            "club.json",
            '{"directed": false, "nodes": [{"id": 10, "city": "A"}, {"id": 11, "city": "A"}, {"id": 12, "city": "B"}],'
            ' "links": [{"source": 10, "target": 11}, {"source": 11, "target": 12}]}',
        )
    ],
}


@pytest.mark.parametrize("kind", UPLOADS)
def test_what_is_uploaded_is_read_as_it_would_be_from_a_folder(kind: str, store: RunStore) -> None:
    given = [(name, io.BytesIO(text.encode())) for name, text in UPLOADS[kind]]
    assert kept.stands_alone(given[0][0]) == (len(given) == 1)
    graph = load(save_upload("", given, store).spec)
    assert graph.node_ids is not None and list(graph.node_ids) == ["10", "11", "12"]
    assert sorted(map(tuple, graph.edges.T.tolist())) == [(0, 1), (1, 2)]
    assert kind == "pajek" or graph.attribute("city").codes.tolist() == [0, 0, 1]


def test_a_sparse_matrix_and_people_called_otherwise_are_a_graph(store: RunStore) -> None:
    file = io.BytesIO()
    sparse.save_npz(file, sparse.coo_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])))
    file.seek(0)
    upload = save_upload("", [("friends.npz", file), ("people.csv", io.BytesIO(ROWS.encode()))], store)
    assert upload.files == ("edges.npz", "nodes.csv") and upload.name == "friends"
    assert load(upload.spec).num_edges == 2
