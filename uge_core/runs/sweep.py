"""From a graph to stored, audited runs: plan a grid, reuse what is there, train the rest, audit.

One run is `train`, a grid is `sweep`; both go the same way. A finished run with the same id (the
same config on the same data) is returned, not trained again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from uge_core import machine
from uge_core.errors import ConfigError, OutOfMemory, ProcessLost, StoreError, TrainingDiverged, UgeError
from uge_core.graph.graph import AttributedGraph
from uge_core.progress import OnProgress as OnProgress
from uge_core.progress import Progress as Progress
from uge_core.progress import rounded
from uge_core.ranks import ALONE, Ranks
from uge_core.runs import timing
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.training.checkpoint import Checkpoint, checkpoints_in, drop
from uge_core.training.config import RunConfig, split_names

if TYPE_CHECKING:
    from uge_core.training.fit import Fitted
    from uge_core.training.loop import EpochProgress
from uge_core.runs.audits import Splits, audit_record, sealed_record
from uge_core.runs.data import check_data, dataset_record, scenario_of
from uge_core.runs.names import EXTERNAL, run_words
from uge_core.runs.plan import DEVICES, Planned, plan


def train(
    graph: AttributedGraph,
    *,
    sensitive: str | Sequence[str] = (),
    backbone: str = "node2vec",
    method: str = "none",
    lam: float | None = None,
    seed: int = 0,
    split_seed: int = 0,
    store: RunStore | None = None,
    force: bool = False,
    device: str = "auto",
    on_progress: OnProgress | None = None,
    source: dict[str, Any] | None = None,
    **settings: Any,
) -> StoredRun:
    """Trains one run, audits it, stores it; a finished run with the same id is returned as it is.

    Args:
        graph: what to train on.
        sensitive: the attributes to debias, jointly.
        backbone: a backbone's name.
        method: a debiasing method's name.
        lam: weight of the penalty, for methods that have one.
        seed: initialisation and the method's draws.
        split_seed: split, negatives and probe split.
        store: where runs live; None means ``$UGE_STORE``, else ``./uge-store``.
        force: train although a finished run is there.
        device: auto, cpu or cuda.
        on_progress: called as the work goes on.
        source: how to load the graph again, kept with the run.
        **settings: fields of `RunConfig`, such as epochs.

    Raises:
        ConfigError, GraphError, StoreError, TrainingDiverged: each says what to do.
    """
    jointly = "+".join(split_names(sensitive if isinstance(sensitive, str) else list(sensitive)))
    lams = () if lam is None else (lam,)
    return sweep(
        graph,
        sensitive=jointly,
        methods=(method,),
        lams=lams,
        seeds=(seed,),
        split_seeds=(split_seed,),
        backbones=(backbone,),
        store=store,
        force=force,
        device=device,
        on_progress=on_progress,
        source=source,
        **settings,
    )[0]


def sweep(
    graph: AttributedGraph,
    *,
    store: RunStore | None = None,
    force: bool = False,
    since: float | None = None,
    device: str = "auto",
    deterministic: bool = False,
    solo: bool = False,
    on_progress: OnProgress | None = None,
    source: dict[str, Any] | None = None,
    audits: bool = True,
    ranks: Ranks = ALONE,
    **grid: Any,
) -> list[StoredRun]:
    """Trains, audits and stores every run of a grid that is not there yet.

    A run whose loss leaves the finite numbers is marked as failed; the others are trained, audited
    and stored before its error is raised. A pass that was cut off goes on from its checkpoint.

    Args:
        graph: what to train on.
        store: where runs live; None means ``$UGE_STORE``, else ``./uge-store``.
        force: train from the start although finished runs or checkpoints are there.
        since: with `force`, when that began, in seconds since 1970: what was finished from then on stays, and the rest
            goes on from its checkpoints.
        device: auto, cpu or cuda.
        deterministic: only operations that give the same bits each time; slower on a GPU.
        solo: each run in a pass of its own; else runs that can share a pass do.
        on_progress: called as the work goes on.
        source: how to load the graph again, kept with the runs.
        audits: whether runs are audited; without, `uge audit` or the next sweep of the same grid does it.
        ranks: this process, which leads, and those that train with it (`follow`); they are let go before the audits.
        **grid: arguments of `plan`.

    Returns:
        The runs in the grid's order.

    Raises:
        ConfigError, GraphError, StoreError, TrainingDiverged: each says what to do.
    """
    if device not in DEVICES:
        raise ConfigError(f"device = {device!r} is not allowed; allowed: {', '.join(DEVICES)}")
    store = store or RunStore()
    return _carry_out(
        graph,
        plan(graph, **grid),
        store,
        force=force,
        since=since,
        device=device,
        deterministic=deterministic,
        solo=solo,
        on_progress=on_progress,
        source=source,
        audits=audits,
        ranks=ranks,
    )


def resume(
    run_id: str, graph: AttributedGraph, store: RunStore, *, device: str = "auto", on_progress: OnProgress | None = None
) -> list[StoredRun]:
    """Takes up a run that was cut off, from its checkpoint where there is one, with the runs of the same pass.

    Args:
        run_id: an interrupted or failed run; a finished one is audited where it is not yet.
        graph: what it was trained on.
        store: where it lives.
        device: auto, cpu or cuda; only on the device it began on can it go on from a checkpoint.
        on_progress: called as the work goes on.

    Raises:
        ConfigError, StoreError, TrainingDiverged: each says what to do.
    """
    run = store.load(run_id)
    if run.config["method"] == EXTERNAL:
        raise StoreError(f"run {run_id} was not trained here, so there is nothing to resume; audit its file again")
    check_data(run, graph)
    checkpoints = [record for _, record in checkpoints_in(store.checkpoints) if run_id in record["runs"]]
    together = checkpoints[0]["runs"] if checkpoints else [run_id]
    runs = [r for r in map(store.find, together) if r]
    planned = [Planned(r.id, RunConfig.from_json(r.config)) for r in runs]
    return _carry_out(
        graph,
        planned,
        store,
        device=device,
        deterministic=bool(checkpoints and checkpoints[0]["deterministic"]),
        on_progress=on_progress,
        source=run.dataset.get("source"),
    )


def train_planned(
    graph: AttributedGraph,
    planned: Sequence[Planned],
    store: RunStore,
    *,
    device: str = "auto",
    deterministic: bool = False,
    source: dict[str, Any] | None = None,
    on_progress: OnProgress | None = None,
) -> list[StoredRun]:
    """Trains and stores runs whose configs are at hand, without auditing them; arguments and errors as for `sweep`."""
    if device not in DEVICES:
        raise ConfigError(f"device = {device!r} is not allowed; allowed: {', '.join(DEVICES)}")
    return _carry_out(
        graph,
        planned,
        store,
        device=device,
        deterministic=deterministic,
        on_progress=on_progress,
        source=source,
        audits=False,
    )


def _carry_out(
    graph: AttributedGraph,
    planned: Sequence[Planned],
    store: RunStore,
    *,
    force: bool = False,
    since: float | None = None,
    device: str,
    deterministic: bool,
    solo: bool = False,
    on_progress: OnProgress | None,
    source: dict[str, Any] | None,
    audits: bool = True,
    ranks: Ranks = ALONE,
) -> list[StoredRun]:
    """Trains what is not there yet of `planned`, and audits it where that is asked for."""
    data = dataset_record(graph) | {"source": source}
    todo = []
    for p in planned:
        # One that is trained anew may be damaged.
        run = None if force and since is None else store.find(p.run_id)
        again = force and (since is None or run is None or (run.finished or 0.0) < since)
        if again or run is None or not usable(run):
            todo.append(p)
        else:
            _refresh(run, data, store)
    splits = Splits(graph)
    diverged: dict[str, TrainingDiverged] = {}
    if force and since is None:
        drop(store.checkpoints, [p.run_id for p in todo])
    if todo:
        diverged = _train(
            graph,
            todo,
            store,
            splits,
            data,
            device=device,
            deterministic=deterministic,
            solo=solo,
            on_progress=on_progress,
            ranks=ranks,
        )
    ranks.dismiss()
    missing = [
        p for p in planned if audits and p.run_id not in diverged and not _audit_is_whole(store.load(p.run_id), graph)
    ]
    expected = [_audit_seconds(p.config, graph, store.timings()) for p in missing]
    began = time.monotonic()
    for done, p in enumerate(missing):

        def on_share(what: str, share: float, done: int = done, p: Planned = p) -> None:
            if on_progress:
                text = f"auditing {p.run_id} ({run_words(p.config)}), {what}"
                past = sum(expected[:done]) + share * expected[done]
                spent = time.monotonic() - began
                # The first moments say little about the speed of now.
                left = (sum(expected) - past) * (spent / past if past > 0.1 * expected[0] else 1.0)
                on_progress(Progress("auditing", done, len(missing), text, left, None, left))

        started = time.monotonic()
        record = audit_record(store.load(p.run_id), graph, store, split=splits(p.config), on_share=on_share)
        store.save_audit(p.run_id, record)
        took = time.monotonic() - started
        store.note_timing(timing.timed("audit", graph.fingerprint, "", timing.audit_work(p.config, graph), took))
    if diverged:
        raise next(iter(diverged.values()))
    return [store.load(p.run_id) for p in planned]


def _audit_seconds(config: RunConfig, graph: AttributedGraph, stored: Sequence[timing.Timing]) -> float:
    """About how long an audit takes."""
    span = timing.span(stored, "audit", timing.audit_work(config, graph), graph=graph.fingerprint, kind="")
    return float((span.low * span.high) ** 0.5)


def _audit_is_whole(run: StoredRun, graph: AttributedGraph) -> bool:
    """Whether a run is audited, against the planted truth too where this graph brings one (a copy of it may not)."""
    try:
        if run.audit is None or graph.truth is None:
            return run.audited
    except StoreError:  # it was damaged, and is measured again
        return False
    return any(row["variant"] == "planted-truth" for row in run.audit["rows"])


def usable(run: StoredRun) -> bool:
    """A finished run whose files are there and can be read."""
    if run.status != "finished":
        return False
    try:
        run.check()
    except StoreError:
        return False
    return True


def _refresh(run: StoredRun, data: dict[str, Any], store: RunStore) -> None:
    """Notes where a reused run's data were found this time: a copy may have other ids, in another place."""
    data = data | {"fingerprint": run.dataset["fingerprint"]}
    if data["source"] is None and data["ids"] == run.dataset.get("ids"):
        data = data | {"source": run.dataset.get("source")}
    if run.dataset.get("source") and scenario_of(data) != scenario_of(run.dataset):
        data = run.dataset  # other edits that make the same graph
    if data == run.dataset and run.archived is None:
        return
    store.refresh(run.id, data)
    if run.audit is not None and run.audit["dataset"]["name"] != data["name"]:
        store.save_audit(run.id, sealed_record(store.load(run.id), run.audit["rows"], run.audit.get("asked")))


def _train(
    graph: AttributedGraph,
    todo: Sequence[Planned],
    store: RunStore,
    splits: Splits,
    data: dict[str, Any],
    *,
    device: str,
    deterministic: bool,
    solo: bool,
    on_progress: OnProgress | None,
    ranks: Ranks,
) -> dict[str, TrainingDiverged]:
    """Trains and stores; returns the error of each run that diverged."""
    from uge_core.training.fit import check, fit

    passes = _passes(todo, graph, store, deterministic=deterministic, solo=solo)
    # A method that cannot serve is told of now, not when the passes before its own have trained for hours.
    for group in passes[1:]:
        check([p.config for p in group], graph, splits(group[0].config))
    diverged: dict[str, TrainingDiverged] = {}
    remarks: dict[str, None] = {}
    number = 0
    stored = store.timings()
    audits = sum(_audit_seconds(p.config, graph, stored) for p in todo)
    while passes:
        left_work = [sum(_work(p.config, graph) for p in group) for group in passes]
        members = passes.pop(0)
        number += 1
        words = f"training {len(members)} runs" if len(members) > 1 else f"training {run_words(members[0].config)}"
        words += f" (pass {number} of {number + len(passes)})" if number + len(passes) > 1 else ""

        ticks: list[tuple[int, float]] = []
        pace = [0.0]

        def on_epoch(
            progress: EpochProgress,
            words: str = words,
            work: Sequence[float] = left_work,
            ticks: Any = ticks,
            pace: list[float] = pace,
        ) -> None:
            ticks[1:] = [(progress.epoch, time.monotonic())]  # the first, which compiles kernels, and the last
            if on_progress:
                text = f"{words}, loss {rounded(progress.loss)}"
                # Passes to come are as fast as this one is; audits as fast as they were, or as the rule has it.
                if progress.epoch < progress.epochs:
                    pace[0] = progress.seconds_left / (work[0] * (1 - progress.epoch / progress.epochs))
                whole = progress.seconds_left + pace[0] * sum(work[1:]) + audits
                on_progress(
                    Progress(
                        "training", progress.epoch, progress.epochs, text, progress.seconds_left, progress.loss, whole
                    )
                )

        remarks |= dict.fromkeys(_begin(members, store, data))
        try:
            split = splits(members[0].config)
            ids = [p.run_id for p in members]
            ranks.announce(
                {"configs": [p.config.to_json() for p in members], "device": device, "deterministic": deterministic}
            )
            fitted = fit(
                [p.config for p in members],
                graph,
                split,
                device=device,
                deterministic=deterministic,
                on_epoch=on_epoch,
                checkpoint=Checkpoint(store.checkpoints, ids, deterministic=deterministic),
                ranks=ranks,
            )
            if len(ticks) > 1 and ranks.size == 1:  # estimates are for one process
                (first, began), (last, ended) = ticks
                kind, share = timing.kind(fitted[0].device, [p.config for p in members]), (last - first) / last
                rate = timing.timed("train", graph.fingerprint, kind, left_work[0] * share, ended - began)
                store.note_timing(rate)
            for p, result in zip(members, fitted, strict=True):
                _finish(store, p.run_id, result, deterministic)
                remarks |= dict.fromkeys(_remarks(result))
            drop(store.checkpoints, ids)
        except TrainingDiverged as error:
            drop(store.checkpoints, [p.run_id for p in members])
            # The others of this pass did nothing wrong: they train again without the lost ones.
            lost = {members[i].run_id for i in error.members} or {p.run_id for p in members}
            for run_id in lost:
                store.fail(run_id, str(error))
            diverged |= dict.fromkeys(lost, error)
            rest = [p for p in members if p.run_id not in lost]
            passes[:0], number = [rest] if rest else [], number - 1
        except OutOfMemory as error:
            if len(members) == 1 or ranks.size > 1:  # others wait for what this one could not hold
                for p in members:
                    _give_up(store, p.run_id, error)
                raise
            half = (len(members) + 1) // 2
            passes[:0], number = [members[:half], members[half:]], number - 1
            remarks[f"{len(members)} runs at once did not fit the memory; they were trained in halves"] = None
        except BaseException as error:
            for p in members:
                _give_up(store, p.run_id, error)
            raise
    for text in remarks:
        if on_progress:
            on_progress(Progress("note", 1, 1, text))
    return diverged


def _work(config: RunConfig, graph: AttributedGraph) -> float:
    return timing.training_work(config, graph.num_nodes, graph.num_edges)


def _passes(
    todo: Sequence[Planned], graph: AttributedGraph, store: RunStore, *, deterministic: bool, solo: bool
) -> list[list[Planned]]:
    """Which runs train together: those whose checkpoint is there as they did before, the others as they fit."""
    from uge_core.training.capacity import fitting_ensembles

    left = {p.run_id: p for p in todo}
    passes = []
    for _, record in checkpoints_in(store.checkpoints):
        together = record["runs"]
        if record["deterministic"] == deterministic and set(together) <= set(left) and (len(together) == 1 or not solo):
            passes.append([left.pop(run_id) for run_id in together])
    rest = list(left.values())
    groups = [[i] for i in range(len(rest))] if solo else fitting_ensembles([p.config for p in rest], graph)
    return passes + [[rest[i] for i in group] for group in groups]


def _begin(members: Sequence[Planned], store: RunStore, data: dict[str, Any]) -> list[str]:
    """Marks the runs of a pass as being trained, all or none; says what dead processes had left of them."""
    begun: list[str] = []
    removed: list[str] = []
    try:
        for p in members:
            removed += store.begin(p.run_id, p.config.to_json(), data)
            begun.append(p.run_id)
    except BaseException:
        for run_id in begun:
            with suppress(StoreError):
                store.withdraw(run_id)
        raise
    return [f"removed {path}, left by a process that died" for path in removed]


def _give_up(store: RunStore, run_id: str, error: BaseException) -> None:
    """Says of a run that did not come to its end why; the error itself is the caller's to raise."""
    with suppress(StoreError):
        if isinstance(error, ConfigError):
            store.withdraw(run_id)
        elif isinstance(error, ProcessLost):
            store.interrupt(run_id, str(error))
        elif isinstance(error, Exception):
            store.fail(run_id, str(error) if isinstance(error, UgeError) else f"{type(error).__name__}: {error}")
        else:
            store.interrupt(run_id)


def _remarks(result: Fitted) -> Iterable[str]:
    """What people should know about a training: where it went on, advice, imputations, a split smaller than asked."""
    if result.diagnostics["resumed_at_epoch"]:
        yield (
            f"went on after epoch {result.diagnostics['resumed_at_epoch'][-1]}, from the checkpoint of a training "
            "that was cut off"
        )
    yield from result.diagnostics["advice"]
    yield from result.notes.values()
    yield from (f"{note} (the twin)" for note in result.twin_notes.values() if note not in result.notes.values())
    short = result.diagnostics["split"]["short"]
    if short:
        yield f"{short:,} fewer edges are held out than asked, as each of the rest is some node's last"


def _finish(store: RunStore, run_id: str, result: Fitted, deterministic: bool) -> None:
    diagnostics = dict(result.diagnostics) | {
        "members": list(result.members),
        "notes": dict(result.notes),
        "twin_notes": dict(result.twin_notes),
        "best_epoch": result.best_epoch,
    }
    store.finish(
        run_id,
        embedding=result.embedding,
        twin=result.twin,
        hidden=result.hidden,
        parameters=result.parameters,
        history=result.history,
        diagnostics=diagnostics,
        environment=machine.stamp(result.device) | {"deterministic": deterministic},
        seconds=result.seconds,
        device=result.device,
    )
