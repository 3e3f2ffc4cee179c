"""The what-if process, a real one: it comes up, answers, is killed and comes up again, and ends with its parent."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from background import processes_of

import uge_core as uge
from uge_core.errors import StoreError, UgeError
from uge_core.explore.whatif import client
from uge_core.explore.whatif.answers import Answers
from uge_core.explore.whatif.channel import address
from uge_core.explore.whatif.client import WhatifEnded, ask, warm
from uge_core.explore.whatif.edits import DropEdges, DropValue
from uge_core.explore.whatif.scenario import Scenario
from uge_core.explore.whatif.server import serve
from uge_core.machine import alive, birth
from uge_core.runs.external import add_external

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def own(encoders: Path, tmp_path: Path) -> Iterator[uge.RunStore]:
    """A store whose what-if processes are ended with the test."""
    target = tmp_path / "store"
    shutil.copytree(encoders, target)
    store = uge.RunStore(target)
    yield store
    for pid in processes(store):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def processes(store: uge.RunStore) -> list[int]:
    """The what-if processes of a store."""
    return processes_of(store, "whatif-worker")


def gone(pid: int, seconds: float = 15) -> bool:
    until = time.monotonic() + seconds
    while birth(pid) is not None and time.monotonic() < until:
        time.sleep(0.05)
    return birth(pid) is None


def silent(store: uge.RunStore, seconds: float = 15) -> bool:
    """Whether nobody listens any more: threads of a killed process hold its socket for a moment."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            client._connect(store).close()
        except OSError:
            return True
        time.sleep(0.05)
    return False


def gcn(store: uge.RunStore) -> uge.StoredRun:
    return next(r for r in store.list() if (r.config["backbone"], r.config["method"]) == ("gcn", "none"))


@pytest.mark.slow
def test_it_comes_up_answers_and_is_one_a_store(own: uge.RunStore) -> None:
    warm(own)
    run = gcn(own)
    told = ask(own, "describe", run=run.id, attribute="city")
    assert told["num_nodes"] == 200 and told["no_reencode"] is None
    graph = uge.load(run.dataset["source"]["spec"])
    edge = tuple(graph.ids(graph.edges[:, 3]))
    scenario = Scenario(graph.fingerprint, (DropEdges((edge,)),), "x").to_json()  # type: ignore[arg-type]
    answer = ask(own, "judge", run=run.id, scenario=scenario, attribute="city")
    assert answer["tier"] == "re-encode" and answer["moved"]
    # a NaN or an infinity would not be JSON; what is not measured is None
    ego = ask(own, "ego", run=run.id, nodes=["p3"], attribute="age")
    assert ego["edges"] and all(np.isfinite(e["weight"]) for e in ego["edges"])
    with pytest.raises(UgeError, match="no node is called 'x'"):
        ask(own, "ego", run=run.id, nodes=["x"])
    (pid,) = processes(own)
    assert alive(pid, birth(pid))
    warm(own)
    second = subprocess.run(
        [sys.executable, "-m", "uge_core", "whatif-worker", "--store", str(own.root)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert second.returncode == 0 and "another process answers" in second.stderr
    assert processes(own) == [pid]
    assert ((own.root / "whatif").stat().st_mode & 0o077) == 0


@pytest.mark.slow
def test_kill_9_is_a_plain_message_and_another_process(own: uge.RunStore) -> None:
    ask(own, "hello")
    (pid,) = processes(own)
    os.kill(pid, signal.SIGSTOP)
    errors: list[Exception] = []

    def question() -> None:
        try:
            ask(own, "describe", run=gcn(own).id)
        except StoreError as error:
            errors.append(error)

    asking = threading.Thread(target=question)
    asking.start()
    time.sleep(0.3)
    os.kill(pid, signal.SIGKILL)
    asking.join(timeout=30)
    assert isinstance(errors[0], WhatifEnded) and "ask again" in str(errors[0])
    assert ask(own, "describe", run=gcn(own).id)["num_nodes"] == 200
    (other,) = processes(own)
    assert other != pid
    os.kill(other, signal.SIGKILL)
    assert gone(other) and silent(own)
    # killed while nobody waited, the next question simply starts it
    assert ask(own, "hello") == {}


def test_it_ends_with_the_process_it_is_for(own: uge.RunStore) -> None:
    code = (
        "import sys, uge_core as uge; from uge_core.explore.whatif.client import ask; "
        "print(ask(uge.RunStore(sys.argv[1]), 'hello'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(own.root)], capture_output=True, text=True, cwd=ROOT, timeout=60, check=True
    )
    assert done.stdout.strip() == "{}"
    assert all(gone(pid) for pid in processes(own))


def test_it_ends_when_nobody_asks(tmp_path: Path) -> None:
    began = time.monotonic()
    assert serve(uge.RunStore(tmp_path), idle=0.5)
    assert time.monotonic() - began > 0.4
    assert not address(tmp_path).exists()


def test_a_long_path_has_its_socket_elsewhere_and_private(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 120)
    path = address(long)
    assert len(os.fsencode(path)) <= 100 and path != address(tmp_path / ("y" * 120))
    assert address(Path("/tmp/s")) == Path("/tmp/s/whatif/worker.sock").resolve()
    serving = threading.Thread(target=serve, args=(uge.RunStore(long),), kwargs={"idle": 2.0})
    serving.start()
    assert ask(uge.RunStore(long), "hello") == {}
    assert (path.parent.stat().st_mode & 0o077) == 0
    serving.join()


def test_a_request_that_is_none_gets_an_answer(tmp_path: Path) -> None:
    store = uge.RunStore(tmp_path)
    serving = threading.Thread(target=serve, args=(store,), kwargs={"idle": 2.0})
    serving.start()
    with client._reach(store) as connection:
        connection.sendall(b"[1\n")
        assert "could not be read" in json.loads(connection.recv(1 << 16))["error"]
    with pytest.raises(UgeError, match="knows no 'fly'"):
        ask(store, "fly")
    with pytest.raises(UgeError, match="no run 'x'"):
        ask(store, "describe", run="x")
    with pytest.raises(UgeError, match="this is a fault of the program"):
        ask(store, "hello", extra=1)
    serving.join()


@pytest.mark.slow
def test_what_asks_loads_nothing_heavy_and_what_answers_no_torch_before_it_must(own: uge.RunStore) -> None:
    code = (
        "import sys, uge_core as uge, uge_core.dashboard as ui; ui.whatif_judge, ui.whatif_edit, ui.ego_figure;"
        "print(sorted({'torch', 'sklearn', 'numba'} & set(sys.modules)));"
        "from uge_core.explore.whatif.answers import Answers; answers = Answers(uge.RunStore(sys.argv[1]));"
        "answers.describe(sys.argv[2]); answers.ego(sys.argv[2], ['p3'], attribute='city');"
        "print(sorted({'torch', 'streamlit'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(own.root), gcn(own).id], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.split() == ["[]", "[]"]


def test_memory_is_of_the_files_and_runs_there_are_now(town: Path, tmp_path: Path) -> None:
    store, folder = uge.RunStore(tmp_path / "store"), tmp_path / "town"
    shutil.copytree(town, folder)
    answers, source = Answers(store), {"spec": str(folder), "attributes": None}
    z = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)

    def added(**options: Any) -> str:
        return add_external(z, uge.load(folder), store, file="z.npy", source=source, **options).id

    def held_out(run_id: str) -> bool:
        scenario = Scenario(answers.describe(run_id)["data"], (DropValue("city", "A"),)).to_json()
        rows = answers.judge(run_id, scenario, "city")["rows"]
        return any(r["before"]["variant"] == "held-out" and r["before"]["n"] for r in rows)

    first = added(split_seed=0)
    edges = answers.describe(first)["num_edges"]
    assert held_out(first)
    assert added() == first and not held_out(first)  # nobody knows its split now
    lines = (folder / "edges.csv").read_text().splitlines()
    (folder / "edges.csv").write_text("\n".join(lines[:-5]) + "\n")
    assert answers.describe(added())["num_edges"] == edges - 5
    with pytest.raises(StoreError, match="embeds other data"):
        answers.describe(first)
