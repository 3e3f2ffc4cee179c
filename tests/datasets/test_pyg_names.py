"""Graphs fetched by name, from a real server on this machine; the hosts they come from are never asked."""

import gzip
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from uge_core.cli.main import run
from uge_core.datasets import download, load
from uge_core.datasets.layouts import pyg_names
from uge_core.errors import ConfigError, DatasetMissing, GraphError

ROOT = Path(__file__).resolve().parents[2]
LASTFM = "/datasets/ptg/lastfm_asia.npz"
N, ROWS = 7_624, 55_612


@dataclass
class Answer:
    """What the server says: a body, and what is said about it. A length of None is left out, -1 is the true one."""

    body: bytes = b""
    status: int = 200
    length: int | None = -1
    location: str = ""
    stalls: bool = False


@dataclass
class Host:
    """A server's files by path, and the paths it was asked for."""

    url: str
    files: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A server on loopback as the mirror of all hosts, and a store of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            there.asked.append(self.path)
            answer = there.files.get(self.path, Answer(b"not here", 404))
            self.send_response(answer.status)
            if answer.length is not None:
                self.send_header("Content-Length", str(len(answer.body) if answer.length == -1 else answer.length))
            if answer.location:
                self.send_header("Location", answer.location)
            self.end_headers()
            half = len(answer.body) // 2 if answer.stalls else len(answer.body)
            self.wfile.write(answer.body[:half])
            if answer.stalls:
                time.sleep(0.5)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    there = Host(f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("UGE_MIRROR", there.url + "/")
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "store"))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield there
    server.shutdown()
    thread.join()
    server.server_close()


def saved(**arrays: object) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def zipped(**members: str | bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def social(num_nodes: int, num_rows: int, loops: bool = False) -> np.ndarray:
    """(num_rows, 2) rows: every pair both ways, and every node with itself where `loops`."""
    rng = np.random.default_rng(num_nodes)
    own = np.repeat(np.arange(num_nodes)[:, None], 2, axis=1) if loops else np.empty((0, 2), int)
    keys = np.unique(rng.integers(0, num_nodes**2, 2 * num_rows))
    low, high = keys // num_nodes, keys % num_nodes
    pairs = np.stack([low, high], axis=1)[low < high][: (num_rows - len(own) + 1) // 2]
    return np.concatenate([pairs, pairs[:, ::-1], own])[:num_rows]


def lastfm(**changed: object) -> dict[str, object]:
    """The arrays of a made-up graph with the real one's keys, types and counts."""
    made = {"edges": social(N, ROWS), "features": np.ones((N, 3)) * np.arange(N)[:, None], "target": np.arange(N) % 18}
    return {k: v for k, v in (made | changed).items() if v is not None}


@pytest.fixture(scope="module")
def made() -> bytes:
    return saved(**lastfm())


def kept(tmp_path: Path) -> list[str]:
    return sorted(p.name for p in (tmp_path / "store" / "datasets").glob("*"))


def test_a_graph_is_fetched_when_it_is_first_named(host, made, tmp_path, capsys):
    host.files[LASTFM] = Answer(made)
    graph = load("pyg:LastFMAsia")
    assert (graph.name, graph.layout, graph.num_nodes, graph.num_edges) == (
        "LastFMAsia",
        "PyG LastFMAsia",
        N,
        ROWS // 2,
    )
    assert graph.attribute("target") is graph.attribute("country")
    assert graph.attribute("country").labels == tuple(map(str, range(18)))
    assert graph.features.shape == (N, 3) and graph.features[5].tolist() == [5, 5, 5]
    roles = [(c.name, c.role) for c in graph.columns]
    assert roles == [("target", "attribute"), ("features", "feature"), ("edges", "source"), ("edges", "target")]
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err == f"note: pyg:LastFMAsia is not in {tmp_path}/store/datasets yet: fetching {host.url}{LASTFM}\n"

    again = load("pyg:lastfmasia")
    assert host.asked == [LASTFM]
    assert (again.name, again.fingerprint) == ("LastFMAsia", graph.fingerprint)
    assert capsys.readouterr().err == ""
    assert kept(tmp_path) == ["LastFMAsia"]
    record = json.loads((tmp_path / "store/datasets/LastFMAsia/source.json").read_text())
    assert (record["url"], record["bytes"]) == (host.url + LASTFM, len(made))
    (note,) = [m for m in again.messages if m.code == "fetched"]
    assert host.url in note.text and record["sha256"] in note.text
    assert (tmp_path / "store").stat().st_mode & 0o777 == 0o700


def test_the_second_use_needs_no_network(host, made, monkeypatch):
    host.files[LASTFM] = Answer(made)
    first = load("pyg:LastFMAsia")
    monkeypatch.setenv("UGE_MIRROR", "http://127.0.0.1:9")
    assert load("pyg:LastFMAsia", attributes="country").fingerprint == first.fingerprint
    with pytest.raises(DatasetMissing, match="cannot be reached"):
        load("pyg:DeezerEurope")


def test_the_command_line_shows_how_much_has_come(host, made, tmp_path, capsys):
    host.files[LASTFM] = Answer(made)
    elsewhere = tmp_path / "elsewhere"
    assert run(["data", "inspect", "pyg:LastFMAsia", "--json", "--store", str(elsewhere)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["layout"] == "PyG LastFMAsia"
    lines = err.splitlines()
    assert lines[0].startswith("note: pyg:LastFMAsia is not in") and host.url in lines[0]
    size = f"{len(made) / 1e6:.1f}"
    assert lines[-1] == f"fetching pyg:LastFMAsia {size} of {size} MB (100%), 0 s left"
    assert 1 < len(lines) < 14
    assert run(["data", "inspect", "pyg:LastFMAsia", "--store", str(elsewhere)]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "layout PyG LastFMAsia" in out and host.asked == [LASTFM]
    assert not (tmp_path / "store").exists()


@pytest.mark.slow
def test_a_run_is_no_request_to_fetch_its_graph_anew(host, tmp_path, capsys):
    path = "/datasets/ptg/twitch/PT.npz"
    pairs = social(1_912, 64_510, loops=True)
    host.files[path] = Answer(saved(edges=pairs, features=np.zeros((1_912, 2)), target=np.arange(1_912) % 2))
    arguments = ["--sensitive", "mature", "--epochs", "2", "--device", "cpu", "--exposure", "seen"]
    assert run(["train", "pyg:Twitch:PT", *arguments]) == 0
    run_id = capsys.readouterr().out.splitlines()[-1]
    export = ["runs", "export", run_id, "--what", "weights", "--sensitive-output", "--out", str(tmp_path / "out")]
    assert run(export) == 0
    shutil.rmtree(tmp_path / "store/datasets/Twitch-PT")
    capsys.readouterr()
    assert run(export) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "is fetched only when it is named" in err and "--data DATA" in err
    assert host.asked == [path]
    assert run([*export, "--data", "pyg:Twitch:PT"]) == 0
    assert host.asked == [path, path]


@pytest.mark.slow
def test_self_loops_and_other_keys(host):
    path = "/datasets/ptg/twitch/PT.npz"
    pairs = social(1_912, 64_510, loops=True)
    host.files[path] = Answer(
        saved(edges=pairs, features=np.zeros((1_912, 0)), target=np.arange(1_912) % 2), length=None
    )
    graph = load("pyg:Twitch:PT")
    assert (graph.num_edges, graph.features) == ((64_510 - 1_912) // 2, None)
    assert {m.code: m.count for m in graph.messages}["self-loops"] == 1_912
    assert [a.name for a in graph.attributes] == ["mature"]

    path = "/yandex-research/heterophilous-graphs/raw/main/data/tolokers.npz"
    pairs = social(11_758, 2 * 519_000)[:519_000]
    arrays = {"edges": pairs, "node_features": np.eye(11_758, 10), "node_labels": np.arange(11_758) % 2}
    host.files[path] = Answer(saved(**arrays, train_masks=np.zeros((10, 11_758), bool)))
    graph = load("pyg:HeterophilousGraphDataset:Tolokers")
    assert (graph.num_nodes, graph.num_edges, graph.attribute("banned").num_values) == (11_758, 519_000, 2)


def movielens(**changed: str | None) -> bytes:
    """A made-up archive with the names, forms and counts of MovieLens-100K."""
    rng = np.random.default_rng(0)
    pairs = rng.choice(943 * 1_682, 100_000, replace=False)
    made: dict[str, str | bytes | None] = {
        "ml-100k/": "",
        "ml-100k/README": "what it is",
        "ml-100k/u.data": "".join(f"{p // 1_682 + 1}\t{p % 1_682 + 1}\t3\t881250949\n" for p in pairs.tolist()),
        "ml-100k/u.user": "".join(f"{i + 1}|{18 + i % 40}|{'MF'[i % 2]}|writer|85711\n" for i in range(943)),
        "ml-100k/u.item": "".join(
            f"{i + 1}|Café {i}|01-Jan-1995||http://x|" + "|".join("01"[g == i % 19] for g in range(19)) + "\n"
            for i in range(1_682)
        ).encode("latin-1"),
    }
    return zipped(**{k: v for k, v in (made | changed).items() if v is not None})


def test_movielens_is_unpacked_and_read_as_its_own_layout(host, tmp_path):
    host.files["/datasets/movielens/ml-100k.zip"] = Answer(movielens())
    graph = load("pyg:MovieLens100K")
    assert (graph.name, graph.layout) == ("MovieLens100K", "PyG MovieLens100K")
    assert (graph.num_users, graph.num_edges, graph.defaults.test_share) == (943, 100_000, 0.2)
    assert [a.name for a in graph.attributes] == ["age", "gender", "genre"]
    folder = tmp_path / "store/datasets/MovieLens100K"
    assert sorted(p.name for p in folder.iterdir()) == ["source.json", "u.data", "u.item", "u.user"]
    assert load("pyg:MovieLens100K").fingerprint == graph.fingerprint and len(host.asked) == 1
    text = (folder / "u.user").read_text()
    (folder / "u.user").write_text(text.replace("M", "F", 1))
    with pytest.raises(GraphError, match=r"u\.user: has changed since it came from"):
        load("pyg:MovieLens100K")


def outside() -> np.ndarray:
    pairs = social(N, ROWS)
    pairs[7] = 3, N
    return pairs


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda made: Answer(made[:-9], length=len(made)), "broke off after"),
        (lambda made: Answer(made, length=len(made) - 9), "lastfm_asia.npz: is not a readable .npz file"),
        (lambda made: Answer(made[:-9], length=None), "lastfm_asia.npz: is not a readable .npz file"),
        (lambda _: Answer(b""), "broke off after 0 of 0 bytes"),
        (
            lambda made: Answer(made, stalls=True),
            "(no answer within 0.2 seconds); check the connection, or name a mirror",
        ),
        (lambda _: Answer(b"<!DOCTYPE html><p>Sorry"), "begins with b'<!DOCTYPE html>' and is no archive"),
        (lambda _: Answer(zipped(page="sorry")), "lastfm_asia.npz: lacks edges, features, target; expected the arrays"),
        (lambda _: Answer(zipped(edges="sorry", features="", target="x")), "edges: found |S5 of shape ()"),
        (lambda _: Answer(saved(**lastfm(features=None))), "lastfm_asia.npz: lacks features"),
        (
            lambda _: Answer(saved(**lastfm(edges=outside()))),
            "1 edge with a node that does not exist, first: row 7 (3, 7624); allowed: 0 to 7623",
        ),
        (lambda _: Answer(saved(**lastfm(edges=-outside()))), "with a node that does not exist, first: row"),
        (lambda _: Answer(saved(**lastfm(edges=social(N, ROWS).T))), "edges: found int64 of shape (2, 55612)"),
        (lambda _: Answer(saved(**lastfm(edges=social(N, ROWS) / 2))), "edges: found float64 of shape (55612, 2)"),
        (lambda _: Answer(saved(**lastfm(target=np.array(["x"] * N)))), "target: found <U1; one number per node"),
        (lambda _: Answer(saved(**lastfm(features=np.ones((3, 3))))), "features: found float64 of shape (3, 3)"),
        (lambda _: Answer(saved(**lastfm(features=np.full((N, 1), np.nan)))), "features: 7,624 cells not finite"),
        (
            lambda _: Answer(saved(**lastfm(edges=social(N, ROWS - 1)))),
            "found 7,624 nodes and 55,611 edge rows; PyG has 7,624 and 55,612",
        ),
        (lambda _: Answer(saved(**lastfm(target=np.zeros(9)))), "found 9 nodes and 55,612 edge rows; PyG has"),
        (lambda _: Answer(b"gone", 404), "answered 404 Not Found; name a mirror in UGE_MIRROR"),
        (lambda _: Answer(b"busy", 503), "answered 503 Service Unavailable"),
        (
            lambda _: Answer(status=302, location="http://192.0.2.1/x.npz"),
            "it sends on to http://192.0.2.1/x.npz, and only https is followed",
        ),
        (lambda _: Answer(status=301, location="/other.npz"), "other.npz, and only https is followed"),
        (lambda _: Answer(status=302, location="file:///etc/passwd"), "answered 302 Found"),
    ],
)
def test_what_came_is_not_it(host, made, tmp_path, monkeypatch, answer, text):
    # A busy machine answers late, too: only where nothing is to come is it not waited for.
    monkeypatch.setattr(download, "TIMEOUT", 0.2 if "no answer" in text else 20)
    host.files[LASTFM] = answer(made)
    with pytest.raises(DatasetMissing) as error:
        load("pyg:LastFMAsia", on_progress=lambda step: None)
    assert str(error.value).startswith("pyg:LastFMAsia: ") and host.url in str(error.value)
    assert text in str(error.value) and "\n" not in str(error.value)
    assert kept(tmp_path) == [] and len(host.asked) == 1


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_no_object_is_loaded(host, tmp_path):
    exploded = tmp_path / "exploded"
    host.files[LASTFM] = Answer(saved(**lastfm(target=np.array([Bomb(exploded)] * N, dtype=object))))
    with pytest.raises(
        DatasetMissing, match=r"lastfm_asia\.npz: holds Python objects, which are never loaded; expected"
    ):
        load("pyg:LastFMAsia")
    assert not exploded.exists() and kept(tmp_path) == []


@pytest.mark.parametrize("length", [-1, None])
def test_what_is_too_large(host, made, tmp_path, monkeypatch, length):
    monkeypatch.setattr(download, "LARGEST", 70_000)
    host.files[LASTFM] = Answer(made, length=length)
    with pytest.raises(DatasetMissing, match="70,000"):
        load("pyg:LastFMAsia")
    monkeypatch.setattr(download, "LARGEST", 2**28)
    monkeypatch.setenv("UGE_MAX_UNPACKED", "100000")
    with pytest.raises(DatasetMissing, match="unpacks into more than 100,000 bytes"):
        load("pyg:LastFMAsia")
    assert kept(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"../evil": "x"}, "its member '../evil' would lie outside the folder"),
        ({"ml-100k/../../evil": "x"}, "would lie outside the folder"),
        ({"/tmp/evil": "x"}, "would lie outside the folder"),
        ({"..\\evil": "x"}, "would lie outside the folder"),
        ({"ml-100k/u.user": None}, "There is no item named 'ml-100k/u.user' in the archive"),
        ({"ml-100k/u.user": "1|24|M\n"}, "u.user: line 1 has 3 fields"),
        ({"ml-100k/u.user": "1|24|M|writer|85711\n"}, "edges name a node that does not exist"),
        ({"ml-100k/u.data": "1\t1\t3\t0\n"}, "found 943 users and 1 rating; PyG has 943 and 100,000"),
    ],
)
def test_an_archive_that_is_not_it(host, tmp_path, changed, text):
    host.files["/datasets/movielens/ml-100k.zip"] = Answer(movielens(**changed))
    with pytest.raises(DatasetMissing) as error:
        load("pyg:MovieLens100K")
    assert text in str(error.value) and "\n" not in str(error.value)
    assert kept(tmp_path) == [] and not list(tmp_path.rglob("evil*"))


def test_a_damaged_archive(host, tmp_path):
    body = bytearray(movielens())
    body[3_000] ^= 255  # inside the first member's packed bytes
    host.files["/datasets/movielens/ml-100k.zip"] = Answer(bytes(body))
    with pytest.raises(DatasetMissing, match=r"ml-100k\.zip: is damaged or of an unknown kind"):
        load("pyg:MovieLens100K")
    assert kept(tmp_path) == []


def test_files_that_changed_are_refused_until_they_are_fetched_again(host, made, tmp_path, capsys):
    host.files[LASTFM] = Answer(made)
    load("pyg:LastFMAsia")
    folder = tmp_path / "store/datasets/LastFMAsia"
    for change in (
        lambda: (folder / "lastfm_asia.npz").write_bytes(saved(**lastfm(target=np.arange(N) % 3))),
        lambda: (folder / "lastfm_asia.npz").unlink(),
        lambda: (folder / "source.json").write_text('{"schema": "uge-download/1", "files": []}'),
        lambda: (folder / "source.json").unlink(),
    ):
        change()
        with pytest.raises(GraphError, match=f"delete {folder} to fetch it again") as error:
            load("pyg:LastFMAsia")
        assert "\n" not in str(error.value)
        capsys.readouterr()
        assert run(["data", "inspect", "pyg:LastFMAsia"]) == 2
        assert capsys.readouterr().err.count("\n") == 1
        asked = len(host.asked)
        shutil.rmtree(folder)
        load("pyg:LastFMAsia")
        assert len(host.asked) == asked + 1


def test_an_interrupted_fetch_leaves_nothing(host, made, tmp_path):
    host.files[LASTFM] = Answer(made)
    seen = []

    def stop(step):
        seen.append(step)
        if step.stage == "fetching" and step.done > step.total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load("pyg:LastFMAsia", on_progress=stop)
    assert kept(tmp_path) == []
    assert [s.stage for s in seen[:2]] == ["note", "fetching"] and seen[-1].done < len(made)
    assert all(s.total == len(made) and s.seconds_left >= 0 for s in seen[1:])


def test_two_that_fetch_at_once_share_one_copy(host, made, tmp_path):
    host.files[LASTFM] = Answer(made)
    both = threading.Barrier(2)
    found = []

    def wait(step):
        if step.stage == "note":
            both.wait(timeout=30)

    threads = [
        threading.Thread(target=lambda: found.append(load("pyg:LastFMAsia", on_progress=wait).fingerprint))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2 and len(set(found)) == 1 and kept(tmp_path) == ["LastFMAsia"]


def test_a_disk_without_room(host, made, tmp_path):
    host.files[LASTFM] = Answer(made)
    done = subprocess.run(
        f"ulimit -f 20; exec {sys.executable} -m uge_core data inspect pyg:LastFMAsia",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert "cannot be written (File too large); make room" in done.stderr.splitlines()[-1]
    assert kept(tmp_path) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(DatasetMissing, match="cannot be written"):
        load("pyg:LastFMAsia", store=tmp_path / "file")


def test_a_proxy_is_not_asked_for_this_machine(host, made, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    host.files[LASTFM] = Answer(made)
    assert load("pyg:LastFMAsia").num_nodes == N


@pytest.mark.parametrize("spec", ["pyg:", "pyg:Twitch", "pyg:LastFM", "pyg:../../etc", "pyg:many"])
def test_unknown_names_list_the_known_ones(host, spec, capsys):
    spec = spec.replace("many", "x" * 9_000)
    with pytest.raises(DatasetMissing) as error:
        load(spec)
    assert all(name in str(error.value) for name in pyg_names.KNOWN) and len(str(error.value)) < 900
    assert run(["data", "inspect", spec]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and host.asked == []


@pytest.mark.parametrize(
    "mirror",
    [
        "http://192.0.2.1",
        "http://127.0.0.1@192.0.2.1/",
        "ftp://127.0.0.1",
        "file:///tmp",
        "127.0.0.1:8000",
        "https://",
        "https://me:secret@192.0.2.1",
        "https://192.0.2.1/?x=",
        "http://[::1",
        "http://localhost.example",
    ],
)
def test_mirrors_that_are_not_allowed(mirror, monkeypatch, tmp_path):
    monkeypatch.setenv("UGE_MIRROR", mirror)
    with pytest.raises(ConfigError, match="UGE_MIRROR: found"):
        load("pyg:LastFMAsia", store=tmp_path)
    assert not list(tmp_path.iterdir())


def test_mirrors_that_are_allowed(monkeypatch):
    for mirror in ("https://192.0.2.1/copies/", "http://localhost:8000", "http://[::1]:80", "http://127.0.0.1"):
        monkeypatch.setenv("UGE_MIRROR", mirror)
        assert download.at_mirror("https://192.0.2.9/a/b.npz") == mirror.rstrip("/") + "/a/b.npz"
    monkeypatch.setenv("UGE_MIRROR", "")
    assert all(download.at_mirror(known.url) == known.url for known in pyg_names.KNOWN.values())
    assert {urlsplit(known.url).scheme for known in pyg_names.KNOWN.values()} == {"https"}


@pytest.mark.parametrize("name", pyg_names.KNOWN)
def test_addresses_and_counts_are_those_of_pyg(name):
    known = pyg_names.KNOWN[name]
    class_name, _, part = name.partition(":")
    cls = getattr(importlib.import_module("torch_geometric.datasets"), class_name)
    assert known.url == (cls.url + f"/{part if class_name == 'Twitch' else part.lower()}.npz" if part else cls.url)
    # PyG states the 80,000 ratings of its training part of MovieLens-100K
    edges = "100K ratings" if name == "MovieLens100K" else f"{known.edges:,}"
    text = cls.__doc__.partition(f"* - {part}\n")[2] if part else cls.__doc__
    assert f"{known.nodes:,}" in text and edges in " ".join(text.split())


@pytest.mark.realdata
def test_the_real_lastfm_and_deezer(host, shared_data):
    for name, stem, path, attribute in (
        ("LastFMAsia", "lastfm-asia/lastfm_asia", LASTFM, "country"),
        ("DeezerEurope", "deezer-europe/deezer_gendered", "/datasets/ptg/deezer_europe.npz", "gender"),
    ):
        folder = shared_data(stem.partition("/")[0])
        file = folder.parent / f"{stem}_edges.csv"
        with file.open() if file.exists() else gzip.open(f"{file}.gz", "rt") as lines:
            pairs = np.loadtxt(lines, dtype=np.int64, delimiter=",", skiprows=1)
        target = np.loadtxt(folder.parent / f"{stem}_target.csv", dtype=np.int64, delimiter=",", skiprows=1)
        assert (target[:, 0] == np.arange(len(target))).all()
        both = np.concatenate([pairs, pairs[:, ::-1]])
        host.files[path] = Answer(saved(edges=both, features=np.zeros((len(target), 128)), target=target[:, 1]))
        graph, plain = load(f"pyg:{name}"), load(folder)
        assert graph.edges.tolist() == plain.edges.tolist()
        assert graph.attribute(attribute).sizes.tolist() == plain.attribute(attribute).sizes.tolist()
        assert graph.attribute(attribute).codes.tolist() == plain.attribute(attribute).codes.tolist()


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["1m", "100k"])
def test_the_real_movielens(host, shared_data, name):
    folder = shared_data(f"movielens-{name}")
    members: dict[str, bytes] = {}
    if name == "1m":
        pairs = gzip.decompress((folder / "user_movie_pairs.csv.gz").read_bytes()).decode().splitlines()[1:]
        members["ratings.dat"] = "".join(f"{p.replace(',', '::')}::5::978300760\n" for p in pairs).encode()
        members |= {f: (folder / f).read_bytes() for f in ("users.dat", "movies.dat")}
    else:
        members["u.data"] = gzip.decompress((folder / "u.data.gz").read_bytes())
        members |= {f: (folder / f).read_bytes() for f in ("u.user", "u.item")}
    host.files[f"/datasets/movielens/ml-{name}.zip"] = Answer(
        zipped(**{f"ml-{name}/{file}": content for file, content in members.items()})
    )
    assert load(f"pyg:MovieLens{name.upper()}").fingerprint == load(folder).fingerprint
