"""One embedding trained over several processes: real ones, started by torchrun, stopped, killed and resumed."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
import torch.distributed
import trained_by_ranks as program
from hypothesis import given
from hypothesis import strategies as st

from uge_core.adam import Adam
from uge_core.backbones._inputs import Inputs
from uge_core.cli import torchrun
from uge_core.cli.main import run
from uge_core.datasets import load
from uge_core.errors import ConfigError, OutOfMemory, ProcessLost
from uge_core.graph.split import split_links
from uge_core.ranks import ALONE, Ranks
from uge_core.runs.store import RunStore
from uge_core.runs.sweep import sweep
from uge_core.training.edge_loss.pairs import Pairs
from uge_core.training.fit import fit
from uge_core.training.members import MemberBuilder, build_backbone
from uge_core.training.ranks import UNKNOWN, Several, shared_out
from uge_core.training.ranks_model import needs

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
LONG = 120.0  # seconds after which something is wrong on a busy machine
MARK = "UGE_TEST_RANKS"


@contextmanager
def running(ranks: int, *words: str, store: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """These words for Python in several processes; none is left afterwards, and that none was is made sure of."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    mark = uuid.uuid4().hex
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    environment |= {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]), MARK: mark}
    environment |= {"GLOO_SOCKET_IFNAME": "lo"} | ({} if store is None else {"UGE_STORE": str(store)})
    started = subprocess.Popen(
        [*launcher, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        # a background job's children ignore it
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        yield started
    finally:
        left = marked(mark)
        for one in left:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        started.communicate()
    assert not left


def marked(mark: str) -> list[psutil.Process]:
    """The living processes that were started with a mark; torchrun gives each a session of its own."""
    out = []
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            if one.environ().get(MARK) == mark and one.status() != psutil.STATUS_ZOMBIE:
                out.append(one)
    return out


def the_rank(started: subprocess.Popen[str], rank: int) -> psutil.Process:
    """The process that has this number."""
    for one in psutil.Process(started.pid).children(recursive=True):
        with suppress(psutil.Error):
            if one.environ().get("RANK") == str(rank):
                return one
    raise AssertionError(f"no rank {rank}")


def until(what, seconds: float = LONG):
    """What `what` gives, once it is something."""
    ends = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < ends
        time.sleep(0.02)
    return found


# The same bits


@pytest.fixture(scope="module")
def alone() -> dict[str, list[str]]:
    return dict(program.trained(program.CASES))


# Those that differ most: a table, messages, a kernel gap, several members, items, and fewer rows than a block.
BY_THREE = (
    "a path, seeds and twins",
    "a path of gcn",
    "sgc",
    "messages weighed",
    "people and items",
    "fewer than a block",
)


def together(ranks: int, out: Path, *cases: str) -> dict[str, list[str]]:
    """What so many processes train."""
    with running(ranks, str(ROOT / "tests" / "trained_by_ranks.py"), str(out), *cases) as started:
        _, errors = started.communicate()
        assert started.returncode == 0, errors
    found: dict[str, list[str]] = json.loads(out.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def by_two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return together(2, tmp_path_factory.mktemp("two") / "digests.json")


@pytest.fixture(scope="module")
def by_three(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return together(3, tmp_path_factory.mktemp("three") / "digests.json", *BY_THREE)


@pytest.mark.slow
@pytest.mark.parametrize("case", program.CASES)
def test_two_processes_train_the_bits_of_one(
    case: str, alone: dict[str, list[str]], by_two: dict[str, list[str]]
) -> None:
    assert alone[case] == by_two[case]
    assert len(set(alone[case])) == len(alone[case])


@pytest.mark.slow
@pytest.mark.parametrize("case", BY_THREE)
def test_three_processes_train_the_bits_of_one(
    case: str, alone: dict[str, list[str]], by_three: dict[str, list[str]]
) -> None:
    assert alone[case] == by_three[case]


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small graph in files, quickly audited."""
    folder = tmp_path_factory.mktemp("links") / "graph"
    folder.mkdir()
    graph = program.people(num=300)
    codes = graph.attribute("city").codes
    (folder / "nodes.csv").write_text("id,city\n" + "".join(f"{i},{'abcd'[c]}\n" for i, c in enumerate(codes)))
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"{u},{v}\n" for u, v in graph.edges.T))
    return folder


WORDS = ["--sensitive", "city", "--method", "uge-ok"]


def files(store: Path, run_id: str) -> dict[str, bytes]:
    """What says something of the embedding, rather than of how it was made."""
    how = ("diagnostics.json", "environment.json")
    return {path.name: path.read_bytes() for path in (store / "runs" / run_id).iterdir() if path.name not in how}


@pytest.mark.slow
def test_train_and_sweep_store_what_one_process_stores(
    links: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", str(links), *WORDS, "--epochs", "40"]
    assert run([*words, "--store", str(tmp_path / "one")]) == 0
    first = capsys.readouterr().out
    run_id = first.splitlines()[-1]
    with running(2, "-m", "uge_core", *words, "--store", str(tmp_path / "two")) as started:
        out, errors = started.communicate()
        assert started.returncode == 0, errors
    assert out == first
    found = files(tmp_path / "one", run_id)
    assert {"embedding.npy", "twin.npy", "audit.json"} <= set(found) and found == files(tmp_path / "two", run_id)
    assert "rows shared out to 2 processes" in (tmp_path / "two" / "runs" / run_id / "diagnostics.json").read_text()
    assert "training" in errors and errors.count("audit done") == 1

    # a grid with two passes, of which one run is there
    grid = ["sweep", str(links), "--sensitive", "city", "--methods", "uge-ok,none", "--split-seeds", "0,1"]
    grid += ["--epochs", "40", "--exposure", "both"]
    with running(2, "-m", "uge_core", *grid, store=tmp_path / "two") as started:
        out, errors = started.communicate()
        assert started.returncode == 0, errors
    ids = out.split()
    assert len(ids) == 4 and run_id in ids and "(pass 2 of 2)" in errors
    store = RunStore(tmp_path / "two")
    assert all(store.load(i).audited for i in ids)


@pytest.mark.slow
def test_a_run_that_diverges_leaves_the_others_of_its_pass(links: Path, tmp_path: Path) -> None:
    store = RunStore(tmp_path / "store")
    grid = ["sweep", str(links), "--sensitive", "city", "--methods", "uge-c,none", "--lams", "0.5,1e60"]
    with running(2, "-m", "uge_core", *grid, "--epochs", "20", "--exposure", "seen", store=store.root) as started:
        _, errors = started.communicate()
        assert started.returncode != 0
    assert "training 3 runs" in errors and "training 2 runs" in errors
    assert sorted(r.status for r in store.list()) == ["failed", "finished", "finished"]
    assert sum(r.audited for r in store.list()) == 2
    # the other process was let go before the audits
    assert "exitcode  : 2" in errors and errors.count("exitcode  :") == 1


# Ends


def begun(links: Path, store: Path, ranks: int = 2):
    """A training of several processes that has written a checkpoint, and whose epochs take days."""
    return running(ranks, "-m", "uge_core", "train", str(links), *WORDS, "--epochs", "100000000", "--store", str(store))


def shortened(store: RunStore) -> tuple[str, Path]:
    """The run that was cut off, and its checkpoint."""
    (run_id,) = [r.id for r in store.list()]
    (checkpoint,) = store.checkpoints.glob("*.npz")
    return run_id, checkpoint


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_ends_the_others_and_leaves_words(links: Path, tmp_path: Path, rank: int) -> None:
    store = RunStore(tmp_path / "store")
    with begun(links, store.root) as started:
        until(lambda: list(store.checkpoints.glob("*.npz")))
        the_rank(started, rank).send_signal(signal.SIGKILL)
        _, errors = started.communicate(timeout=LONG)
        assert started.returncode != 0
    run_id, _ = shortened(store)
    run_ = store.load(run_id)
    assert run_.status == "interrupted"
    if rank == 1:
        assert "2 processes" in run_.reason or "2 that train together" in run_.reason
        assert "uge runs resume" in run_.reason
        assert any(line.startswith("uge: ") and "goes on from there" in line for line in errors.splitlines())
    else:
        # torchrun may end the other before it has said what it found; torchrun's own report says it then
        said = "rank 1: a process of the 2 that train together has ended"
        assert said in errors or "Signal 9 (SIGKILL)" in errors


@pytest.mark.slow
def test_ctrl_c_ends_all_and_marks_the_run(links: Path, tmp_path: Path) -> None:
    store = RunStore(tmp_path / "store")
    with begun(links, store.root) as started:
        until(lambda: list(store.checkpoints.glob("*.npz")))
        started.send_signal(signal.SIGINT)  # which torchrun passes on; its processes are not in the terminal's group
        _, errors = started.communicate(timeout=LONG)
        assert started.returncode != 0
    assert "uge: interrupted" in errors.splitlines()
    run_ = store.load(shortened(store)[0])
    assert (run_.status, run_.reason) == ("interrupted", "stopped by the user")


RESUMED = ["--backbone", "gcn", *WORDS, "--exposure", "seen", "--epochs", "600"]
# `uge` with a checkpoint as soon as there is something to keep, so that a quick machine is cut off in time.
AT_ONCE = (
    "import sys; from uge_core.training import checkpoint; checkpoint._OFTEN = 0.0;"
    "from uge_core.cli.main import run; sys.exit(run(sys.argv[1:]))"
)


@pytest.fixture(scope="module")
def whole(links: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a training that nothing cut off, by one process that torchrun started."""
    root = tmp_path_factory.mktemp("whole") / "store"
    with running(1, "-m", "uge_core", "train", str(links), *RESUMED, "--store", str(root)) as started:
        _, errors = started.communicate()
        assert started.returncode == 0 and "went on" not in errors, errors
    return root


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(2, 1), (2, 3), (1, 2)])
def test_a_training_goes_on_with_another_number_of_processes(
    links: Path, whole: Path, tmp_path: Path, before: int, after: int
) -> None:
    """As many processes as cores at most are quick; one more shows that nothing depends on it."""
    store, script = RunStore(tmp_path / "store"), tmp_path / "at_once.py"
    script.write_text(AT_ONCE)
    words = ["train", str(links), *RESUMED, "--store", str(store.root)]
    with running(before, str(script), *words) as started:
        until(lambda: list(store.checkpoints.glob("*.npz")))
        the_rank(started, before - 1).send_signal(signal.SIGKILL)
        started.communicate(timeout=LONG)
    run_id, _ = shortened(store)
    assert store.load(run_id).status == "interrupted"
    with running(after, "-m", "uge_core", *words) as started:
        _, errors = started.communicate()
        assert started.returncode == 0, errors
    assert "went on after epoch" in errors
    found = files(store.root, run_id)
    assert "parameters.npz" in found and found == files(whole, run_id)
    assert not list(store.checkpoints.glob("*.npz"))


@pytest.mark.slow
def test_a_process_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    with running(2, str(ROOT / "tests" / "trained_by_ranks.py"), "hang") as started:
        assert started.stdout
        out = started.stdout.readline()
        # torchrun would wait half a minute for a process that does not even hear its signal
        the_rank(started, 1).kill()
        started.communicate(timeout=LONG)
        assert started.returncode != 0
    assert out.startswith("rank 0: a process of the 2 that train together has ended or was not heard of for ")
    assert "Timed out" in out


# Refusals


@pytest.mark.slow
def test_processes_with_other_graphs_are_refused(links: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "nodes.csv").write_text((links / "nodes.csv").read_text())
    (other / "edges.csv").write_text("\n".join((links / "edges.csv").read_text().splitlines()[:-1]) + "\n")
    code = (
        "import os, sys; from uge_core.cli.main import run; data = sys.argv[1:3][int(os.environ['RANK'])];"
        "sys.exit(run(['train', data, *sys.argv[3:]]))"
    )
    script = tmp_path / "each_its_own.py"
    script.write_text(code)
    store = tmp_path / "store"
    with running(2, str(script), str(links), str(other), *WORDS, "--store", str(store)) as started:
        _, errors = started.communicate(timeout=LONG)
        assert started.returncode != 0
    said = [line for line in errors.splitlines() if line.startswith("uge: ")]
    fingerprints = [load(str(folder)).fingerprint for folder in (links, other)]
    assert [f"differ in the graph: {fingerprints[0]} and {fingerprints[1]}; " in line for line in said] == [True]
    assert not RunStore(store).list()

    # files that one of them cannot read are named, with the one that cannot
    unknown = tmp_path / "unknown"
    unknown.mkdir()
    (unknown / "notes.txt").write_text("nothing\n")
    with running(2, str(script), str(links), str(unknown), *WORDS, "--store", str(store)) as started:
        _, errors = started.communicate(timeout=LONG)
        assert started.returncode != 0
    assert any(line.startswith("uge: rank 1: ") and "unknown" in line for line in errors.splitlines()), errors


@pytest.mark.slow
def test_a_refusal_is_said_once(links: Path, tmp_path: Path) -> None:
    words = ["train", str(links), "--backbone", "mf", "--store", str(tmp_path / "store")]
    with running(2, "-m", "uge_core", *words) as started:
        _, errors = started.communicate(timeout=LONG)
        assert started.returncode != 0
    said = [line for line in errors.splitlines() if line.startswith("uge: ")]
    assert (
        len(said) == 1 and "backbone = mf cannot be trained over several processes; allowed: gcn, node2vec" in said[0]
    )
    assert not RunStore(tmp_path / "store").list()


def ranks_of(size: int) -> Ranks:
    """Ranks that are asked for nothing but their number."""
    several = Ranks()
    several.size = size
    return several


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"backbone": "mf"}, "backbone = mf .* allowed: gcn, node2vec, sgc, and line of order 1"),
        ({"backbone": "deepwalk"}, "backbone = deepwalk"),
        ({"backbone": "gat"}, "backbone = gat"),
        ({"backbone": "line"}, "backbone = line"),
        ({"negatives": "listed"}, "negatives = listed .* allowed: shared"),
        ({"method": "cfc"}, "method = cfc .* without an adversary"),
        ({"method": "fairgnn"}, "method = fairgnn"),
        ({"method": "monet"}, "method = monet"),
        ({}, "9 processes, but .* 8 tasks; use --nproc-per-node 8 or fewer"),
    ],
    ids=lambda v: "-".join(map(str, v.values())) if isinstance(v, dict) else "",
)
def test_what_several_processes_cannot_train_is_refused(settings: dict[str, str], words: str) -> None:
    graph = program.people(num=150)
    config = program.config(graph, **settings)
    split, backbone = split_links(graph), build_backbone(config)
    member = MemberBuilder(graph, split, backbone, None).member(config, twin=False)
    pairs = Pairs(split.train, graph.num_nodes, None, 0)
    with pytest.raises(ConfigError, match=words):
        shared_out(ranks_of(9), config, backbone, pairs, [member], torch.device("cpu"))
    assert shared_out(ALONE, config, backbone, pairs, [member], torch.device("cpu")) is ALONE


@pytest.mark.parametrize("grid", [{"backbones": ("gcn", "gat")}, {"methods": ("none", "cfc")}], ids=str)
def test_a_grid_is_refused_before_anything_trains(links: Path, tmp_path: Path, grid: dict[str, Any]) -> None:
    store, said = RunStore(tmp_path), []
    with pytest.raises(ConfigError, match="cannot be trained over several processes"):
        sweep(
            load(str(links)),
            sensitive="city",
            epochs=1,
            store=store,
            ranks=ranks_of(2),
            device="cpu",
            solo=True,
            on_progress=said.append,
            **grid,
        )
    assert not store.list() and not said


def test_what_ends_one_rank_alone_is_said_with_its_number(
    links: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def out_of_memory(*_: object) -> None:
        raise OutOfMemory("3 runs at once did not fit the memory")

    monkeypatch.setattr("uge_core.runs.follow.follow", out_of_memory)
    one = ranks_of(2)
    one.rank = 1
    assert torchrun._follow(argparse.Namespace(data=str(links), attributes=None, store=None), one) == 2
    assert capsys.readouterr().err == "uge: rank 1: 3 runs at once did not fit the memory\n"


class _Left(Ranks):
    """One whose others have ended by the time that it says so."""

    def told(self, word: bool, *, slow: bool = False) -> bool:
        if word:
            raise ProcessLost("nobody is there")
        return word


def test_what_ended_a_training_is_raised_where_nobody_is_left_to_hear_of_it() -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    graph = program.people(num=150)
    with pytest.raises(KeyboardInterrupt):
        fit([program.config(graph)], graph, split_links(graph), device="cpu", on_epoch=stop, ranks=_Left())


def a_rank(size: int = 2) -> Several:
    return Several(0, size, torch.distributed.HashStore(), 60.0)


def test_signals_end_a_process_whose_others_were_let_go() -> None:
    """A SIGTERM that says what is known already is not heeded, as long as the others train."""
    ranks = a_rank()
    ranks.lose()
    with torchrun._signals(ranks):
        signal.raise_signal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), torchrun._signals(ranks):
        signal.raise_signal(signal.SIGINT)
    ranks.dismissed = True
    with pytest.raises(ProcessLost, match="torchrun has ended"), torchrun._signals(ranks):
        signal.raise_signal(signal.SIGTERM)


def test_the_first_step_of_each_pass_may_take_long() -> None:
    ranks = a_rank()
    assert ranks._patience.seconds == UNKNOWN
    for step in (30.0, 1.0, 4.0):
        ranks.pace(step)
    assert ranks._patience.seconds == 80.0
    bound = ranks.cut([0, 50, 100], 1)
    assert bound._patience.seconds == UNKNOWN
    bound.pace(30.0)
    bound.pace(1.0)
    assert ranks._patience.seconds == 60.0


def test_a_gpu_is_refused() -> None:
    graph = program.people(num=150)
    config = program.config(graph)
    with pytest.raises(ConfigError, match=r"device = cuda .* allowed: --device cpu"):
        shared_out(
            ranks_of(2), config, build_backbone(config), Pairs(graph.edges, 150, None, 0), [], torch.device("cuda")
        )


@pytest.mark.parametrize("dim", [5, 7])
def test_adam_moves_own_rows_as_it_moves_all(dim: int) -> None:
    """Its kernel takes the last numbers of a tensor otherwise, so that rows are cut where no vector is cut."""
    graph = program.people(num=3001)
    config = program.config(graph, options={"dim": dim})
    split, backbone = split_links(graph), build_backbone(config)
    member = MemberBuilder(graph, split, backbone, None).member(config, twin=False)
    pairs = Pairs(split.train, graph.num_nodes, None, 0)
    draws = torch.Generator().manual_seed(0)
    table = torch.randn(2, 3001, dim, generator=draws)
    slopes = [torch.randn(2, 3001, dim, generator=draws) for _ in range(30)]

    def moved(ranks: Ranks) -> torch.Tensor:
        leaf = ranks.own(table.clone()).requires_grad_()
        adam = Adam([([leaf], 0.0)], 0.01, eps=1e-15)
        for slope in slopes:
            leaf.grad = ranks.own(slope.clone())
            adam.step()
        return leaf.detach()

    whole = moved(ALONE)
    cuts = []
    for rank in range(7):
        one = Several(rank, 7, torch.distributed.HashStore(), 60.0)
        ranks = shared_out(one, config, backbone, pairs, [member], torch.device("cpu"))
        cuts.append(ranks.span(3001))
        assert torch.equal(moved(ranks), whole[:, slice(*cuts[-1])])
    assert cuts[0][0] == 0 and cuts[-1][1] == 3001 and all(a[1] == b[0] for a, b in pairwise(cuts))


@given(st.integers(1, 40), st.integers(1, 60))
def test_whole_blocks_are_shared_out_in_order(size: int, count: int) -> None:
    shares = []
    for rank in range(size):
        one = ranks_of(size)
        one.rank = rank
        shares.append(one.share(count))
    assert [block for share in shares for block in share] == list(range(count))
    assert shares[0] and max(map(len, shares)) - min(map(len, shares)) <= 1


def test_one_process_has_all_rows() -> None:
    z = torch.randn(5, 3)
    assert all(one(z) is z for one in (ALONE.own, ALONE.complete, ALONE.whole, ALONE.collected))
    assert ALONE.span(5) == ALONE.slopes(5) == (0, 5) and list(ALONE.share(4)) == [0, 1, 2, 3]
    assert torch.equal(ALONE.added([z.clone(), z.clone()], z), 2 * z)
    assert Inputs(5, np.zeros((2, 0), np.int64), None, torch.device("cpu")).ranks is ALONE


# What large graphs need


@cache
def measured(people: int, dim: int, backbone: str) -> list[dict[str, int]]:
    """What two ranks have measured of themselves."""
    words = ["measure", str(people), str(dim), backbone]
    with running(2, str(ROOT / "tests" / "trained_by_ranks.py"), *words) as started:
        out, errors = started.communicate()
        assert started.returncode == 0, errors
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backbone", "small", "large"),
    [
        ("node2vec", (50_000, 16), (250_000, 16)),
        ("node2vec", (50_000, 16), (100_000, 128)),
        ("gcn", (20_000, 16), (120_000, 16)),
    ],
)
def test_the_model_says_what_two_ranks_took(backbone: str, small: tuple[int, int], large: tuple[int, int]) -> None:
    hidden = 64 if backbone == "gcn" else 0
    took, said = [], []
    for people, dim in (small, large):
        found = measured(people, dim, backbone)
        assert sorted(f["rank"] for f in found) == [0, 1]
        model = needs(people, found[0]["edges"], dim, 2, hidden=hidden)
        for f in found:  # shares of rows differ, as they are of equal work
            assert f["sent"] == pytest.approx(model.sent, rel=0.05)
        took.append(max(f["peak"] for f in found))
        said.append(model.memory)
        assert took[-1] == pytest.approx(model.memory, rel=0.25)
    # What the allocator keeps of freed memory differs between machines, and a difference of two peaks holds it twice.
    assert took[1] - took[0] == pytest.approx(said[1] - said[0], rel=0.4)


def test_the_models_parts_shrink_with_ranks_or_do_not() -> None:
    by_ranks = [needs(1e8, 14e8, 128, ranks) for ranks in (1, 2, 4, 8)]
    assert by_ranks[0].sent == 0
    rows = 4e8 * 128
    for ranks, one in zip((1, 2, 4, 8), by_ranks, strict=True):
        assert one.sent == pytest.approx(rows * (ranks - 1) / ranks)
        assert one.memory > 14e8 * 100 + 2 * rows  # the graph and the embedding are whole on each
    assert needs(1e8, 14e8, 16, 8, hidden=64).sent > 10 * needs(1e8, 14e8, 16, 8).sent


def test_the_page_says_what_the_model_says() -> None:
    page = (ROOT / "docs" / "several-processes.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if " million |" in line]
    assert len(rows) == 6
    for people, dim, *cells in rows:
        n = 1e6 * float(people.removesuffix(" million").replace(",", ""))
        for ranks, (memory, sent) in zip((2, 8), pairwise_of(cells), strict=True):
            said = needs(n, 14 * n, int(dim), ranks)
            assert memory == f"{said.memory / 1e9:,.0f} GB"
            assert sent == f"{said.sent / 1e9:,.1f} GB"


def pairwise_of(cells: list[str]) -> list[tuple[str, str]]:
    return list(zip(cells[::2], cells[1::2], strict=True))
