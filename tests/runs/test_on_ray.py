"""Sweeps on a cluster of Ray: two nodes of this machine, each with processes of its own, one of which is killed."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

import uge_core as uge
from uge_core.errors import ConfigError
from uge_core.files import TEMPORARY, remove_abandoned
from uge_core.machine import threads
from uge_core.runs import on_ray, places
from uge_core.runs.store import RunStore

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 180.0  # seconds that a busy machine may take
MARK = "UGE_TEST_NODES"


def line(process: subprocess.Popen[str]) -> str:
    """What a process says next; it says one line at a time."""
    assert process.stdout
    ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
    said = process.stdout.readline().strip() if ready else ""
    assert said, f"it said nothing; exit code {process.poll()}"
    return said


@dataclass
class Nodes:
    """The cluster."""

    process: subprocess.Popen[str]
    address: str
    head: str
    added: list[str] = field(default_factory=list)

    def ask(self, what: str) -> str:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return line(self.process)

    def two(self) -> None:
        """Makes sure that there is one node beside the head."""
        if not self.added:
            self.added.append(self.ask("add"))

    def kill(self) -> None:
        assert self.ask("kill") == "killed"
        self.added.pop()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "ray_nodes.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), MARK: (mark := uuid.uuid4().hex)},
        start_new_session=True,
    )
    assert process.stdin and process.stdout
    left: list[psutil.Process] = []
    try:
        yield Nodes(process, *line(process).split())
    finally:
        with suppress(OSError):
            process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=60)
        _, left = psutil.wait_procs(marked(mark), timeout=30)
        for one in left:
            one.kill()
        process.wait()
        process.stdout.close()
    assert not left, "processes of Ray outlive their cluster"


def marked(mark: str) -> list[psutil.Process]:
    """The living processes that were started with a mark, whoever their parents are by now."""
    out = []
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            if one.environ().get(MARK) == mark and living(one):
                out.append(one)
    return out


class Sweep:
    """`uge sweep` of four seeds, each a pass of its own."""

    def __init__(self, data: Path, store: Path, *options: str, on: str, **environment: str) -> None:
        command = ["sweep", str(data), "--methods", "uge-w", "--sensitive", "city", "--seeds", "0,1,2,3", "--solo"]
        command += ["--device", "cpu", "--store", str(store), "--on", on, *options]
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "uge_core", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
            start_new_session=True,
            # a background job's children ignore it
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr
        self.lines.extend(iter(self.process.stderr.readline, ""))

    def until(self, done: Callable[[], object]) -> None:
        limit = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < limit and self.process.poll() is None, self.lines[-20:]
            time.sleep(0.05)

    def end(self) -> tuple[int, list[str]]:
        """The exit code, and what was printed."""
        assert self.process.stdout
        out = self.process.stdout.read().split()
        code = self.process.wait(timeout=PATIENCE)
        self._reader.join(timeout=PATIENCE)
        assert self.process.stderr
        self.process.stdout.close()
        self.process.stderr.close()
        return code, out


@pytest.fixture(scope="module")
def plain(plain_town: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunStore, list[str]]:
    """The same sweep without Ray, one thread each, and its ids."""
    root = tmp_path_factory.mktemp("plain") / "store"
    code, ids = Sweep(plain_town, root, "--epochs", "2500", on="here", **threads(1)).end()
    assert code == 0 and len(set(ids)) == 4
    return RunStore(root), ids


def assert_same(one: RunStore, other: RunStore, ids: list[str]) -> None:
    """Runs, audits and floors are the same, to the bit."""
    for run_id in ids:
        a, b = one.load(run_id), other.load(run_id)
        assert "embedding.npy" in a.sums
        for name in ("embedding.npy", "twin.npy", "hidden.npz", "history.csv"):
            assert a.sums.get(name) == b.sums.get(name), (run_id, name)
        assert a.audit == b.audit and a.audit
        # sources that are edited meanwhile are another commit
        assert {**a.environment, "commit": None} == {**b.environment, "commit": None}
    assert {key: one.floors[key] for key in one.floors} == {key: other.floors[key] for key in other.floors}


@pytest.mark.slow
def test_a_node_is_killed_and_the_sweep_finishes_with_the_same_bits(
    nodes: Nodes, plain: tuple[RunStore, list[str]], plain_town: Path, tmp_path: Path
) -> None:
    nodes.two()
    doomed = nodes.added[-1][:4]
    sweep = Sweep(plain_town, tmp_path / "store", "--epochs", "2500", on=f"ray:{nodes.address}")
    store = RunStore(tmp_path / "store")
    sweep.until(lambda: any(f"({doomed})" in line and "loss" in line for line in sweep.lines))
    before = [run.id for run in store.list() if run.status == "finished"]
    nodes.kill()
    code, ids = sweep.end()
    assert code == 0, sweep.lines[-20:]
    assert len(before) < 4 and ids == plain[1]
    assert_same(plain[0], store, ids)
    assert list(store.checkpoints.glob("*.npz")) == []


@pytest.mark.slow
def test_an_interrupt_keeps_checkpoints_and_the_sweep_goes_on(
    nodes: Nodes, plain: tuple[RunStore, list[str]], plain_town: Path, tmp_path: Path
) -> None:
    nodes.two()
    store = RunStore(tmp_path / "store")
    sweep = Sweep(plain_town, store.root, "--epochs", "2500", on=f"ray:{nodes.address}")
    sweep.until(lambda: any("loss" in line for line in sweep.lines))
    sweep.process.send_signal(signal.SIGINT)
    code, ids = sweep.end()
    assert (code, ids) == (130, []), sweep.lines
    cut = [run for run in store.list() if run.status == "interrupted"]
    assert cut and len(list(store.checkpoints.glob("*.npz"))) > 0
    sweep = Sweep(plain_town, store.root, "--epochs", "2500", on=f"ray:{nodes.address}")
    code, ids = sweep.end()
    assert (code, ids) == (0, plain[1]), sweep.lines[-20:]
    assert any(store.load(run.id).diagnostics["resumed_at_epoch"] for run in cut)
    assert_same(plain[0], store, ids)


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for temporary files, with a short name, as those of Ray's sockets may not be long; empty in the end."""
    folder = Path("/tmp") / f"uge-{os.getpid()}"
    folder.mkdir(mode=0o700)
    yield folder
    folder.rmdir()


@pytest.mark.slow
def test_a_cluster_of_our_own_is_private_and_leaves_nothing(plain_town: Path, tmp_path: Path, temporary: Path) -> None:
    store = RunStore(tmp_path / "store")
    diverging = ("--methods", "uge-r", "--lams", "1e308", "--epochs", "50")
    sweep = Sweep(plain_town, store.root, *diverging, on="ray", TMPDIR=str(temporary))
    seen: dict[int, psutil.Process] = {}
    listening: set[str] = set()
    folders: set[int] = set()

    def look() -> bool:
        family = psutil.Process(sweep.process.pid).children(recursive=True)
        seen.update({one.pid: one for one in family})
        for one in family:
            try:
                listening.update(c.laddr.ip for c in one.net_connections("inet") if c.status == psutil.CONN_LISTEN)
            except psutil.Error:
                continue
        folders.update(path.stat().st_mode & 0o777 for path in temporary.iterdir())
        return any("training" in line for line in sweep.lines)

    sweep.until(look)
    code, _ = sweep.end()
    assert code == 2 and any("not finite" in line or "diverged" in line for line in sweep.lines), sweep.lines
    assert {run.status for run in store.list()} == {"failed"}
    assert len(seen) > 3 and folders == {0o700}
    assert {re.sub("^::ffff:", "", ip) for ip in listening} == {"127.0.0.1"}
    _, left = psutil.wait_procs(list(seen.values()), timeout=30)
    assert not left and list(temporary.iterdir()) == []


def living(process: psutil.Process) -> bool:
    """Whether a process is there; one that ended and that nobody waited for is not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.slow
def test_a_sweep_that_is_killed_takes_its_cluster_with_it(plain_town: Path, tmp_path: Path, temporary: Path) -> None:
    # The seconds that agents of a node that is gone look for its head, else a minute; all others end at once.
    quick = {"TMPDIR": str(temporary), "RAY_gcs_rpc_server_reconnect_timeout_s": "5"}
    sweep = Sweep(plain_town, tmp_path / "store", "--epochs", "90000", on="ray", **quick)
    sweep.until(lambda: any("loss" in line for line in sweep.lines))
    family = psutil.Process(sweep.process.pid).children(recursive=True)
    sweep.process.kill()
    assert sweep.end()[0] == -signal.SIGKILL
    limit = time.monotonic() + PATIENCE
    while left := [one for one in family if living(one)]:
        assert time.monotonic() < limit, left
        time.sleep(0.2)
    assert len(family) > 5
    assert len(remove_abandoned(temporary, TEMPORARY)) == 1  # as whoever needs such a folder next does


@pytest.mark.slow
def test_one_that_diverges_leaves_the_others_of_its_pass_alone(nodes: Nodes, plain_town: Path, tmp_path: Path) -> None:
    stores = [RunStore(tmp_path / name) for name in ("here", "ray")]
    for store, on in zip(stores, ("here", f"ray:{nodes.address}"), strict=True):
        sweep = ["sweep", str(plain_town), "--methods", "none,uge-r", "--lams", "1e308", "--sensitive", "city"]
        sweep += ["--epochs", "30", "--device", "cpu", "--store", str(store.root), "--on", on]
        process = subprocess.run(
            [sys.executable, "-m", "uge_core", *sweep],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | threads(1),
        )
        assert process.returncode == 2, process.stderr
    found = [{run.id: (run.status, run.reason) for run in store.list()} for store in stores]
    assert found[0] == found[1] and sorted(s for s, _ in found[1].values()) == ["failed", "finished"]
    (good,) = [i for i, (status, _) in found[1].items() if status == "finished"]
    assert_same(stores[0], stores[1], [good])


def test_a_node_with_other_sources_is_refused_by_what_was_found() -> None:
    here = on_ray.stamp()
    on_ray._refuse_others(here, "10.0.0.2")
    with pytest.raises(ConfigError, match=r"10\.0\.0\.2 of the cluster has uge_core 0\.0\.9 \(abc\) \(here"):
        on_ray._refuse_others(here | {"uge_core": "0.0.9 (abc)"}, "10.0.0.2")
    with pytest.raises(ConfigError, match=r"Python 3\.9\.1 .*numba none"):
        on_ray._refuse_others({**{k: v for k, v in here.items() if k != "numba"}, "Python": "3.9.1"}, "10.0.0.2")


def test_without_ray_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, plain_town: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(on_ray, "version", lambda name: None)
    monkeypatch.setattr(places, "version", lambda name: None)
    with pytest.raises(ConfigError, match=r"Ray is not installed; install it \(pip install 'uge-core\[ray\]'\)"):
        uge.sweep(uge.load(plain_town), store=RunStore(tmp_path), epochs=1, on="ray")
    assert list(places.offered()) == ["here"]


@pytest.mark.parametrize("on", ["ray:", "there", "ray:ray://x:1", "ray:x", "here:1"])
def test_other_places_are_refused(on: str) -> None:
    with pytest.raises(ConfigError, match="allowed: "):
        places.place(on)


def test_a_place_without_a_cluster_is_said_at_once() -> None:
    with pytest.raises(ConfigError, match="nothing listens there"):
        on_ray.Ray("127.0.0.1:1").found()


def test_cores_that_nobody_heeds_are_refused() -> None:
    with pytest.raises(ConfigError, match="cpus = 0 is not allowed"):
        places.place("ray", cpus=0)
    for cpus in (0, 2):
        with pytest.raises(ConfigError, match=f"cpus = {cpus} is for passes by Ray"):
            places.place("here", cpus=cpus)
    assert places.place("here", cpus=1) == places.Here()


@pytest.mark.parametrize(("address", "names"), [("10.0.0.1:6379", 3), ("auto", 3), ("local", 2), ("ray://x:1", 2)])
def test_a_cluster_is_offered_where_it_could_be_named(
    monkeypatch: pytest.MonkeyPatch, address: str, names: int
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    offered = list(places.offered())
    assert len(offered) == names
    for name in offered:
        places.place(name)


def test_a_named_cluster_is_asked_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray reads the environment again as it connects."""
    seen = []

    def connect(**_: object) -> None:
        seen.append({name: os.environ.get(name) for name in on_ray._QUIET})
        raise ConnectionError("that is all")

    monkeypatch.setattr(on_ray._ray(), "init", connect)
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(ConfigError, match="that is all"):
        on_ray.Ray(f"127.0.0.1:{server.getsockname()[1]}").found()
    assert seen == [on_ray._QUIET] and "RAY_task_oom_retries" not in os.environ
