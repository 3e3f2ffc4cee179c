"""Shared fixtures, and which tests run where.

By default `pytest` leaves out slow, realdata, browser and acceptance tests; with CI=true only
acceptance tests are left out, and each property is tried on four times as many examples. ``-m`` chooses
by hand. What a machine lacks (the shared graphs, a CUDA device, a browser) skips its tests with the
reason; with CI=true a missing browser fails.
"""

from __future__ import annotations

import os

# Before torch or scikit-learn is loaded: their OpenMP runtimes must not spin against each other.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
if "PYTEST_XDIST_WORKER" in os.environ:
    # A process a core: more threads would only get in each other's way.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import gc
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from uge_core.runs.store import RunStore


ROOT = Path(__file__).resolve().parents[1]
# Real graphs are never part of the project; they lie beside the checkout, or where the variable says.
SHARED_DATA = Path(os.environ.get("UGE_SHARED_DATA", ROOT.parent / "shared" / "data"))
CI = os.environ.get("CI") == "true"
# The first example compiles kernels, and a busy machine is no failure.
settings.register_profile("default", deadline=None, max_examples=40 if CI else 10)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make test` runs tests side by side, then those that measure time by themselves."""
    parser.addoption("--only-alone", action="store_true", help="only tests that measure time")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files without a test that measures time need not be loaded, which takes longer than such tests do."""
    if config.getoption("--only-alone") and collection_path.suffix == ".py":
        return "mark.alone" not in collection_path.read_text(encoding="utf-8") or None
    return None


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Without CI=true all tests that measure time are left out, and none is no failure then."""
    if session.config.getoption("--only-alone") and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def pytest_collection_finish(session: pytest.Session) -> None:
    """Streamlit collects garbage after each run of a page, which takes longer than the run where all packages are looked at."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects by marker unless -m was given, and skips what this machine cannot run."""
    only = config.getoption("--only-alone")
    if only or "PYTEST_XDIST_WORKER" in os.environ:
        items[:] = [i for i in items if (i.get_closest_marker("alone") is not None) == only]
    if not config.getoption("-m"):
        left_out = {"acceptance"} if CI else {"acceptance", "slow", "realdata", "browser"}
        kept = [i for i in items if not left_out.intersection(m.name for m in i.iter_markers())]
        dropped = [i for i in items if i not in set(kept)]
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept
    # Files with long tests first, so that no worker is left alone with one at the end.
    marked = {i: {m.name for m in i.iter_markers()} for i in items}
    longest = {i.path for i in items if "processes" in marked[i]}
    long = {i.path for i in items if {"browser", "processors", "realdata"} & marked[i]}
    items.sort(key=lambda i: (i.path not in longest, i.path not in long))
    for item in items:
        marks = {m.name for m in item.iter_markers()}
        if "realdata" in marks and not SHARED_DATA.exists():
            item.add_marker(
                pytest.mark.skip(reason=f"no real graphs in {SHARED_DATA}; set UGE_SHARED_DATA to their folder")
            )
        if "gpu" in marks and not _cuda():
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


def _cuda() -> bool:
    import torch

    return torch.cuda.is_available()


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """A folder of real data by name; a test skips where it is missing."""

    def locate(name: str) -> Path:
        if not (SHARED_DATA / name).exists():
            pytest.skip(f"real data {name} is not in {SHARED_DATA}")
        return SHARED_DATA / name

    return locate


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium; without one the test is skipped, with CI=true it fails."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        (pytest.fail if CI else pytest.skip)("no chromium on this machine (apt-get install chromium)")
    assert path is not None
    return path


def write_town(folder: Path, num_nodes: int = 200, seed: int = 0, known: int = 3) -> Path:
    """A small graph as edges.csv and nodes.csv: city, gender and circles of friends shape the links, age has gaps.

    `known` of the attributes are there, circles never, so that links can be told without any of them.
    """
    rng = np.random.default_rng(seed)
    city, gender = rng.integers(0, 3, num_nodes), rng.integers(0, 2, num_nodes)
    age = rng.choice(["young", "old", ""], num_nodes, p=[0.5, 0.4, 0.1])
    circle = rng.permutation(num_nodes) % 8
    chance = 0.02 + 0.13 * (city[:, None] == city) + 0.04 * (gender[:, None] == gender)
    chance += 0.4 * (circle[:, None] == circle)
    u, v = np.nonzero(np.triu(rng.random((num_nodes, num_nodes)) < chance, 1))
    folder.mkdir(parents=True, exist_ok=True)
    edges = [f"p{a},p{b}" for a, b in zip(u, v, strict=True)]
    columns = {"city": np.array(list("ABC"))[city], "gender": np.array(list("fm"))[gender], "age": age}
    table = [["id", *columns], *zip([f"p{i}" for i in range(num_nodes)], *columns.values(), strict=True)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    (folder / "nodes.csv").write_text("".join(",".join(row[: 1 + known]) + "\n" for row in table))
    return folder


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small graph."""
    return write_town(tmp_path_factory.mktemp("data") / "town")


@pytest.fixture(scope="session")
def plain_town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the same graph with cities alone, of which an audit takes a third of the time."""
    return write_town(tmp_path_factory.mktemp("data") / "plain-town", known=1)


@pytest.fixture(scope="session")
def seeded(town: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a few real, audited runs of the small graph."""
    import uge_core as uge

    root = tmp_path_factory.mktemp("seeded") / "store"
    uge.sweep(
        uge.load(town),
        sensitive="city",
        methods=["none", "uge-w", "uge-c", "uge-ok"],
        store=uge.RunStore(root),
        epochs=60,
        options={"learning_rate": 0.05},
        device="cpu",
        source={"spec": str(town), "attributes": None},
    )
    gc.collect()
    gc.freeze()  # the packages that training and audits have loaded
    return root


@pytest.fixture
def store_copy(seeded: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the seeded store that a test may change."""
    target = tmp_path / "store"
    shutil.copytree(seeded, target, ignore=shutil.ignore_patterns("*.sock", "*.pid"))
    yield target


@pytest.fixture
def work_here(monkeypatch: pytest.MonkeyPatch) -> Callable[[RunStore], None]:
    """Works off a store's queue in this process, where what a job does is asked and not who does it.

    No other begins.
    """
    from uge_core.dashboard.jobs import worker
    from uge_core.dashboard.jobs.queue import Queue

    monkeypatch.setattr(Queue, "_start", lambda self, lane: None)
    monkeypatch.setattr(worker, "_log_to", lambda queue, job: None)

    def work(store: RunStore) -> None:
        for lane in ("cpu", "gpu"):
            assert worker.work(store, lane)

    return work


@pytest.fixture(scope="session")
def sample_audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store as a first start leaves it."""
    import uge_core as uge
    import uge_core.dashboard as ui

    root = tmp_path_factory.mktemp("first") / "store"
    assert ui.first_start(uge.RunStore(root)), "sample_data has no town-audit.zip; make sample-audit makes it"
    return root
