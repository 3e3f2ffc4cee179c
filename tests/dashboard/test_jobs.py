"""The queue and its workers, with real processes: what is asked for gets done, once, and survives a kill."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from background import end_processes, processes_of

import uge_core as uge
import uge_core.dashboard as ui
from uge_core.cli import main as cli
from uge_core.dashboard.jobs.queue import Job, Queue
from uge_core.dashboard.jobs.worker import _Heartbeat
from uge_core.dashboard.training_form import training_form
from uge_core.errors import ConfigError, StoreError
from uge_core.explore.whatif.edits import FlipValue
from uge_core.explore.whatif.scenario import Scenario
from uge_core.graph.split import split_links
from uge_core.machine import alive
from uge_core.processes import since_boot
from uge_core.progress import Progress
from uge_core.runs.store import RunStore
from uge_core.runs.timing import duration
from uge_core.training import checkpoint
from uge_core.training.config import RunConfig
from uge_core.training.fit import fit

ROOT = Path(__file__).resolve().parents[2]
LONG = 200_000  # epochs that no test waits for


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    """A store whose workers are ended with the test."""
    store = RunStore(tmp_path / "store")
    yield store
    end_processes(store)


def settings(town: Path, store: RunStore, **chosen: Any) -> tuple[Any, dict[str, Any]]:
    form = training_form(str(town), store)
    choice = {"backbone": "node2vec", "methods": ["none"], "epochs": 30, "device": "cpu"} | chosen
    return form, form.settings(**choice)


def enqueue(town: Path, store: RunStore, **chosen: Any) -> int:
    form, choice = settings(town, store, **chosen)
    return ui.enqueue(form, choice, store)


def until(store: RunStore, job_id: int, done: Callable[[Job], bool], seconds: float = 120) -> Job:
    """The job once `done` says so; looking at the queue keeps it going, as a page does."""
    limit = time.monotonic() + seconds
    while not done(job := Queue(store).load(job_id)):
        assert time.monotonic() < limit, (job, Queue(store).last_lines(job))
        ui.keep_queue_going(store)
        time.sleep(0.05)
    return job


def training(epoch: int = 1) -> Callable[[Job], bool]:
    return lambda job: job.progress.get("stage") == "training" and job.progress["done"] >= epoch


def over(job: Job) -> bool:
    return job.status not in ("queued", "running")


def set_column(store: RunStore, job_id: int, name: str, value: Any) -> None:
    with store.writing() as db:
        db.execute(f"UPDATE jobs SET {name} = ? WHERE id = ?", (value, job_id))


def test_a_job_trains_and_audits_a_grid_in_another_process(plain_town: Path, store: RunStore) -> None:
    job_id = enqueue(plain_town, store, methods=["none", "uge-c"], sensitive=["city"], lams="0.1, 0.5")
    job = until(store, job_id, over)
    assert job.status == "finished" and len(job.runs) == 3, Queue(store).last_lines(job)
    runs = [store.load(run_id) for run_id in job.runs]
    assert all(run.audited for run in runs)
    # a grid goes through the ensemble
    assert len(runs[0].diagnostics["members"]) == 5
    assert ui.queue_words(store) == ""
    limit = time.monotonic() + 20
    while processes_of(store, "worker"):
        assert time.monotonic() < limit, "the worker did not end when nothing waited"
    assert Queue(store).worker("cpu").pid is None


@pytest.mark.slow
def test_the_sample_trains_from_its_name_alone(store: RunStore) -> None:
    job_id = enqueue(Path("sample:town"), store, methods=["uge-c"], sensitive=["region"], epochs=5)
    job = until(store, job_id, over, 300)
    (run_id,) = job.runs
    assert job.status == "finished" and store.load(run_id).audited
    assert store.load(run_id).dataset["source"] == {"spec": "sample:town", "attributes": None}


@pytest.mark.alone
@pytest.mark.slow
def test_one_works_and_the_next_waits_and_cancelling_ends_both(town: Path, store: RunStore) -> None:
    first = enqueue(town, store, epochs=LONG)
    second = enqueue(town, store, epochs=LONG, seeds="1")
    until(store, first, training())
    assert Queue(store).load(second).status == "queued"
    assert ui.queue_words(store) == "1 running, 1 queued"
    view = ui.jobs_view(store)
    assert [c.id for c in view.open] == [first, second]
    facts = dict(view.open[0].facts)
    assert facts["Epoch"].endswith(" of 200,000") and 0 < float(facts["Loss"]) < 2 and view.open[0].share is not None
    ui.cancel(second, store)
    assert Queue(store).load(second).status == "cancelled"
    began = time.monotonic()
    ui.cancel(first, store)
    job = until(store, first, over)
    assert job.status == "cancelled" and time.monotonic() - began < 8
    (run_id,) = job.runs
    assert store.load(run_id).status == "interrupted"
    # what was reached is kept
    assert [record["runs"] for _, record in checkpoint.checkpoints_in(store.checkpoints)] == [[run_id]]


@pytest.mark.slow
def test_a_killed_worker_is_noticed_and_resuming_gives_the_same_bits(
    plain_town: Path, store: RunStore, tmp_path: Path
) -> None:
    # Long enough for a checkpoint on a quick machine too.
    grid: dict[str, Any] = {"methods": ["none", "uge-ok"], "sensitive": ["city"], "epochs": 4_000}
    job_id = enqueue(plain_town, store, **grid)
    limit = time.monotonic() + 120
    while not list(checkpoint.checkpoints_in(store.checkpoints)):
        assert time.monotonic() < limit
        time.sleep(0.02)
    job = Queue(store).load(job_id)
    assert job.status == "running" and job.pid is not None
    os.kill(job.pid, signal.SIGKILL)
    while alive(job.pid, job.born):
        time.sleep(0.02)
    ui.keep_queue_going(store)
    # no sign of life for a moment says nothing yet
    assert Queue(store).load(job_id).status == "running"
    set_column(store, job_id, "beat", since_boot() - 31)
    view = ui.jobs_view(store)
    assert view.over[0].status == "interrupted" and view.over[0].can_resume and view.over[0].log
    ui.resume(job_id, store)
    job = until(store, job_id, over)
    assert job.status == "finished", Queue(store).last_lines(job)
    through = RunStore(tmp_path / "through")
    _, choice = settings(plain_town, through, **grid)
    whole = uge.sweep(uge.load(plain_town), store=through, device="cpu", **choice["grid"])
    for run in whole:
        resumed = store.load(run.id)
        assert resumed.diagnostics["resumed_at_epoch"]
        assert np.array_equal(resumed.embedding, run.embedding)
        assert (resumed.twin is None) == (run.twin is None)
        assert run.twin is None or np.array_equal(resumed.twin, run.twin)
        assert resumed.audit and run.audit and resumed.audit["rows"] == run.audit["rows"]
        assert resumed.history.equals(run.history)
    assert not list(store.checkpoints.iterdir())


def test_two_workers_never_take_one_job(town: Path, store: RunStore) -> None:
    _, choice = settings(town, store)
    queue = Queue(store)
    jobs = [queue.add(choice) for _ in range(12)]
    code = (
        "import sys; from uge_core.dashboard.jobs.queue import Queue; from uge_core.runs.store import RunStore;"
        "queue = Queue(RunStore(sys.argv[1])); print('here', flush=True); sys.stdin.read();"
        "print(*iter(lambda: (j := queue.claim('cpu')) and j.id, None))"
    )
    command = [sys.executable, "-c", code, str(store.root)]
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        workers = [
            stack.enter_context(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT))
            for _ in range(2)
        ]
        outs = [w.stdout for w in workers if w.stdout is not None]
        assert [out.readline() for out in outs] == ["here\n"] * 2
        for w in workers:  # both begin at once
            assert w.stdin is not None
            w.stdin.close()
        taken = [int(n) for out in outs for n in out.read().split()]
    assert sorted(taken) == jobs and [w.returncode for w in workers] == [0, 0]


@pytest.mark.slow
def test_one_worker_a_lane(store: RunStore, town: Path) -> None:
    job_id = enqueue(town, store, epochs=LONG)
    until(store, job_id, training())
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: Queue(store).supervise(), range(8)))
    assert processes_of(store, "worker") == [Queue(store).worker("cpu").pid]
    done = subprocess.run(
        [sys.executable, "-m", "uge_core", "worker", "--store", str(store.root)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert "another process works off the cpu jobs" in done.stderr


@pytest.mark.slow
def test_a_diverging_run_fails_with_its_last_lines_and_a_remedy(plain_town: Path, store: RunStore) -> None:
    job_id = enqueue(plain_town, store, methods=["none", "uge-r"], sensitive=["city"], lams="1e308")
    job = until(store, job_id, over)
    assert job.status == "failed" and job.remedy
    assert "not finite" in (job.reason or "") and "learning rate" in job.remedy
    (card,) = ui.jobs_view(store).over
    assert card.can_resume and any("not finite" in line for line in card.log)
    assert [store.load(r).status for r in job.runs] == ["finished", "failed"]
    assert store.load(job.runs[0]).audited
    ui.forget(job_id, store)
    assert not ui.jobs_view(store).over and not Queue(store).log(job_id).exists()


def test_data_that_went_away_fail_the_job(plain_town: Path, store: RunStore, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(plain_town, copy)
    form, choice = settings(copy, store)
    shutil.rmtree(copy)
    job = until(store, ui.enqueue(form, choice, store), over)
    assert job.status == "failed" and "no such folder" in (job.reason or "") and job.remedy


@pytest.mark.slow
def test_a_job_that_does_not_heed_its_cancelling_is_terminated(town: Path, store: RunStore) -> None:
    job_id = enqueue(town, store, epochs=LONG)
    job = until(store, job_id, training())
    assert job.pid is not None
    os.kill(job.pid, signal.SIGSTOP)
    ui.cancel(job_id, store)
    set_column(store, job_id, "cancel", since_boot() - 11)
    ui.keep_queue_going(store)
    assert Queue(store).load(job_id).status == "cancelled"
    os.kill(job.pid, signal.SIGCONT)
    limit = time.monotonic() + 20
    while alive(job.pid, job.born):
        assert time.monotonic() < limit


def test_only_what_ended_early_can_be_resumed(town: Path, store: RunStore) -> None:
    _, choice = settings(town, store)
    job_id = Queue(store).add(choice)
    with store.writing() as db:
        db.execute("UPDATE jobs SET status = 'finished'")
    with pytest.raises(StoreError, match="is finished"):
        ui.resume(job_id, store)
    with pytest.raises(StoreError, match="no job 77"):
        ui.resume(77, store)


def stop_at(epoch: int) -> Callable[[Any], None]:
    def on_progress(step: Any) -> None:
        if step.stage == "training" and step.done == epoch:
            raise KeyboardInterrupt

    return on_progress


@pytest.mark.slow
@pytest.mark.parametrize("backbone", ["node2vec", "gcn"])
def test_a_training_stopped_twice_has_the_bits_of_one_that_was_not(backbone: str, town: Path, tmp_path: Path) -> None:
    graph = uge.load(town)
    split = split_links(graph, validation_share=0.1)
    shared: dict[str, Any] = {"backbone": backbone, "epochs": 12, "validation": 0.1, "options": {"warm_epochs": 8}}
    configs = [
        RunConfig.resolve(graph, sensitive="city", method=method, lam=lam, warm_from=warm, **shared)
        for method, lam, warm in (("uge-ok", 0.3, None), ("uge-ok", 1.0, 0.3), ("uge-r", 0.3, None))
    ]
    whole = fit(configs, graph, split, device="cpu")
    keep = checkpoint.Checkpoint(tmp_path, ["a", "b", "c"])
    for stop in (5, 16):

        def on_epoch(progress: Any, stop: int = stop) -> None:
            if progress.epoch == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fit(configs, graph, split, device="cpu", on_epoch=on_epoch, checkpoint=keep)
    epochs: list[int] = []
    again = fit(configs, graph, split, device="cpu", on_epoch=lambda p: epochs.append(p.epoch), checkpoint=keep)
    assert epochs == [17, 18, 19, 20]
    for a, b in zip(whole, again, strict=True):
        assert np.array_equal(a.embedding, b.embedding)
        assert a.twin is not None and b.twin is not None and np.array_equal(a.twin, b.twin)
        assert a.history == b.history and a.best_epoch == b.best_epoch
        assert a.diagnostics["validation"] == b.diagnostics["validation"]


def test_a_damaged_checkpoint_and_one_of_others_are_not_taken(plain_town: Path, tmp_path: Path) -> None:
    store, graph = RunStore(tmp_path / "store"), uge.load(plain_town)
    with pytest.raises(KeyboardInterrupt):
        uge.train(graph, store=store, epochs=9, device="cpu", on_progress=stop_at(5))
    (path,) = store.checkpoints.iterdir()
    assert path.stat().st_mode & 0o077 == 0 or store.root.stat().st_mode & 0o077 == 0
    path.write_bytes(path.read_bytes()[:-40])
    run = uge.train(graph, store=store, epochs=9, device="cpu")
    assert run.diagnostics["resumed_at_epoch"] == [] and not list(store.checkpoints.iterdir())


def test_force_begins_anew_and_deleting_a_run_deletes_its_checkpoint(plain_town: Path, tmp_path: Path) -> None:
    store, graph = RunStore(tmp_path / "store"), uge.load(plain_town)
    with pytest.raises(KeyboardInterrupt):
        uge.sweep(graph, seeds=(0, 1), store=store, epochs=9, device="cpu", on_progress=stop_at(5))
    first, second = sorted(run.id for run in store.list())
    removed = " ".join(ui.removal([first], store))
    assert "1 checkpoint, which hold 1 other interrupted runs too" in removed
    (path,) = store.checkpoints.iterdir()
    assert str(path) in ui.delete([first], store) and not path.exists()
    assert store.load(second).status == "interrupted"
    with pytest.raises(KeyboardInterrupt):
        uge.train(graph, store=store, epochs=9, device="cpu", on_progress=stop_at(5))
    run = uge.train(graph, store=store, epochs=9, device="cpu", force=True)
    assert run.diagnostics["resumed_at_epoch"] == []


def test_uge_runs_resume_takes_up_the_whole_pass(
    plain_town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, graph = RunStore(tmp_path / "store"), uge.load(plain_town)
    source = {"spec": str(plain_town), "attributes": None}
    with pytest.raises(KeyboardInterrupt):
        uge.sweep(graph, seeds=(0, 1), store=store, epochs=9, device="cpu", on_progress=stop_at(5), source=source)
    ids = {run.id for run in store.list()}
    arguments = ["runs", "resume", min(ids), "--store", str(store.root), "--device", "cpu"]
    assert cli.run(arguments) == 0
    out, err = capsys.readouterr()
    assert set(out.split()) == ids and "went on after epoch 5" in err
    assert all(run.audited and run.status == "finished" for run in store.list())
    assert cli.run([*arguments[:-1], "tpu"]) == 2


def test_the_form_is_drawn_from_the_config_classes(town: Path, tmp_path: Path) -> None:
    form = training_form(str(town), RunStore(tmp_path))
    assert form.attributes == {"city": 3, "gender": 2, "age": 2} and set(form.missing) == {"age"}
    assert next(iter(form.backbones)) == "node2vec" and next(iter(form.methods)) == "none"
    fields = {f.name: f for f in form.fields("node2vec", ["uge-w", "uge-o"])}
    assert fields["learning_rate"].low == 1e-8 and fields["learning_rate"].kind == "number"
    assert fields["init_std"].owner == "node2vec (walk length 1)"
    assert fields["negatives"].choices == ("shared", "listed")
    assert fields["shrinkage"].default is None and fields["shrinkage"].owner == "UGE-W, UGE-O (ours)"
    assert not {"weight_decay", "edge_weights", "direction", "item_cells", "epochs", "seed"} & set(fields)
    assert {"weight_decay"} <= {f.name for f in form.fields("gcn", ["none"])}


def test_a_choice_is_refused_before_it_waits(town: Path, store: RunStore) -> None:
    form, choice = settings(town, store, methods=["uge-c"])
    assert "needs at least one sensitive attribute" in (ui.estimate(form, choice, store).refusal or "")
    with pytest.raises(ConfigError, match="needs at least one"):
        ui.enqueue(form, choice, store)
    with pytest.raises(ConfigError, match="'x' is not a number; write"):
        settings(town, store, lams="0.1, x")
    with pytest.raises(ConfigError, match="no method"):
        settings(town, store, methods=[])
    with pytest.raises(ConfigError, match="dim"):
        ui.enqueue(*settings(town, store, options={"dim": 0}), store)
    assert not store.root.exists()


def test_the_time_is_by_earlier_runs_where_there_are_some(town: Path, store_copy: Path) -> None:
    store = RunStore(store_copy)
    form, choice = settings(town, store, methods=["none", "uge-w"], sensitive=["city"], epochs=60)
    earlier = ui.estimate(form, choice, store)
    assert (
        "by earlier " in earlier.words and "of this graph" in earlier.words and earlier.to_train == 2 and earlier.known
    )
    assert earlier.low and earlier.high and earlier.low < earlier.high
    # more epochs take longer, and so does a store that knows this machine to be a hundred times slower
    _, longer = settings(town, store, methods=["none", "uge-w"], sensitive=["city"], epochs=60_000)
    assert (ui.estimate(form, longer, store).high or 0) > 5 * earlier.high
    for rate in [r for r in store.timings() if r.what == "train"]:
        store.note_timing(replace(rate, seconds=100 * rate.seconds, at=rate.at + 1))
    assert (ui.estimate(form, longer, store).high or 0) > 100 * earlier.high
    _, same = settings(
        town, store, methods=["none", "uge-w"], sensitive=["city"], epochs=60, options={"learning_rate": 0.05}
    )
    assert "nothing to train" in ui.estimate(form, same, store).words
    rule = ui.estimate(form, same | {"force": True, "grid": same["grid"] | {"backbones": ["sgc"]}}, store)
    assert "rule of thumb" in rule.words and rule.to_train == 2 and not rule.known


def test_a_choice_is_measured_where_nothing_like_it_was(
    town: Path, store: RunStore, work_here: Callable[[RunStore], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    form, choice = settings(town, store, methods=["none", "uge-c"], sensitive=["city"], lams="0.1, 0.5", epochs=4000)
    before = ui.estimate(form, choice, store)
    assert not before.known and store.timings() == []
    monkeypatch.setattr("uge_core.dashboard.jobs.measure._MOST", 30)
    job_id = ui.enqueue_measure(choice, store)
    assert ui.enqueue_measure(choice, store) == job_id
    work_here(store)
    job = Queue(store).load(job_id)
    assert job.status == "finished", job
    assert {(r.what, r.kind) for r in store.timings()} == {("train", "cpu/node2vec/none+uge-c"), ("audit", "attack")}
    after = ui.estimate(form, choice, store)
    assert after.known and "rule of thumb" not in after.words and store.list() == []
    assert after.low and after.high and before.low and before.high and after.high / after.low < before.high / before.low


def test_rates_are_of_this_machine_and_of_the_nearest_kind() -> None:
    from uge_core.runs import timing

    def timing_with(work: float = 10.0, seconds: float = 20.0, **changed: Any) -> timing.Timing:
        known = {"what": "train", "graph": "g", "kind": "cpu/gcn/none", "machine": timing.machine(), "at": 1.0}
        return timing.Timing(**known | {"work": work, "seconds": seconds} | changed)  # type: ignore[arg-type]

    def low(*there: timing.Timing) -> float:
        return timing.span(there, "train", 10.0, graph="g", kind="cpu/gcn/none").low

    assert (
        low(timing_with())
        == low(timing_with(), timing_with(kind="cpu/gcn/uge-c", seconds=1.0))
        > low(timing_with(kind="cpu/gcn/uge-c"))
    )
    assert not timing.span([timing_with(machine="other")], "train", 1.0, graph="g", kind="cpu/gcn/none").known
    assert not timing.span([timing_with(kind="gpu/gcn/none")], "train", 1.0, graph="g", kind="cpu/gcn/none").known
    other = timing.span([timing_with(graph="h")], "train", 10.0, graph="g", kind="cpu/gcn/none")
    assert other.known and other.low < low(timing_with()) and "other graphs" in other.source


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "1 s"), (59, "59 s"), (61, "1 min"), (3700, "1.0 h")])
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_history_filters_and_names_what_was_cut_off(store_copy: Path) -> None:
    store = RunStore(store_copy)
    first = store.list()[0]
    store.begin("f" * 12, first.config, first.dataset)
    store.interrupt("f" * 12)
    assert ui.history_view(store).total == 5
    table = ui.history_view(store, text="uge-c CITY").table
    assert len(table) and set(table["Run"]) == {"UGE-C λ 0.5 · city"}
    view = ui.history_view(store, statuses=["interrupted"])
    assert view.cut_off == ("f" * 12,) and view.table["Reason"].tolist() == ["stopped by the user"]


def test_the_curve_of_a_long_training_stays_small_and_begins_anew_with_a_pass(store: RunStore) -> None:
    queue = Queue(store)
    pulse = _Heartbeat(queue, queue.load(queue.add({"device": "cpu"})))
    for epoch in range(1, 5001):
        pulse(Progress("training", epoch, 5000, "a pass", loss=1.0 / epoch))
    assert 60 <= len(pulse._losses) <= 121 and pulse._losses[-1] == (5000, 1.0 / 5000)
    assert [e for e, _ in pulse._losses] == sorted({e for e, _ in pulse._losses})
    pulse(Progress("training", 1, 5000, "the next", loss=0.5))
    pulse(Progress("training", 2, 5000, "the next", loss=float("nan")))
    assert pulse._losses == [(1, 0.5)]


@pytest.mark.slow
def test_a_job_that_trains_stored_runs_again_goes_on_where_it_was_cut_off(
    plain_town: Path, store: RunStore, work_here: Callable[[RunStore], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    grid: dict[str, Any] = {"sensitive": ["city"], "methods": ["none", "fairwalk"], "epochs": 9}
    uge.sweep(uge.load(plain_town), **grid | {"sensitive": "city"}, store=store, device="cpu")
    before = {run.id: run.finished for run in store.list()}
    _, choice = settings(plain_town, store, **grid, force=True)
    job_id = Queue(store).add(choice | {"solo": True})
    trained: list[str] = []
    finish, tell = RunStore.finish, _Heartbeat.__call__

    def stop(self: _Heartbeat, step: Progress) -> None:
        if trained and step.stage == "training" and step.done == 5:
            self._cancelled.set()
        tell(self, step)

    def note(self: RunStore, run_id: str, **result: Any) -> None:
        finish(self, run_id, **result)
        trained.append(run_id)

    monkeypatch.setattr(RunStore, "finish", note)
    with monkeypatch.context() as patch:
        patch.setattr(_Heartbeat, "__call__", stop)
        work_here(store)
    assert Queue(store).load(job_id).status == "cancelled" and len(trained) == 1
    ui.resume(job_id, store)
    work_here(store)
    assert Queue(store).load(job_id).status == "finished" and sorted(trained) == sorted(before)
    assert all(run.audited and run.finished != before[run.id] for run in store.list())
    assert store.load(trained[1]).diagnostics["resumed_at_epoch"] and not list(store.checkpoints.iterdir())


def test_a_run_deleted_while_it_is_compared_leaves_no_comparison(
    store_copy: Path, work_here: Callable[[RunStore], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from uge_core.explore import comparison

    store = RunStore(store_copy)
    before, after = (run.id for run in store.list() if run.config["method"] in ("none", "uge-w"))
    job_id = ui.enqueue_comparison(store, before, after)
    compare = comparison.compare

    def meanwhile(*arguments: Any, **more: Any) -> Any:
        compared = compare(*arguments, **more)
        store.delete(after)
        return compared

    monkeypatch.setattr(comparison, "compare", meanwhile)
    work_here(store)
    job = Queue(store).load(job_id)
    assert job.status == "failed" and f"no run '{after}'" in (job.reason or "")
    assert not list(store.comparisons.glob("*"))


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["city", "gender"])
def test_a_comparison_takes_as_many_steps_as_it_said(
    changed: str, store_copy: Path, work_here: Callable[[RunStore], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, steps = RunStore(store_copy), []
    run = next(r for r in store.list() if r.config["method"] == "uge-w")
    graph = uge.load(run.dataset["source"]["spec"])
    codes = graph.attribute(changed)
    value = next(v for i, v in enumerate(codes.labels) if i != codes.codes[0])
    scenario = Scenario(run.dataset["fingerprint"], (FlipValue(changed, ("p0",), value),), "one")
    ui.retrain(run.id, scenario, store)
    work_here(store)
    tell = _Heartbeat.__call__

    def note(self: _Heartbeat, step: Progress) -> None:
        steps.append((step.done, step.total))
        tell(self, step)

    monkeypatch.setattr(_Heartbeat, "__call__", note)
    ui.enqueue_comparison(store, run.id, str(ui.retrained(run.id, scenario, store)))
    work_here(store)
    assert Queue(store).list()[0].status == "finished" and steps == [(i, len(steps)) for i in range(len(steps))]
