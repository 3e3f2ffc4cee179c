"""From a graph to stored, audited runs: plan a grid, reuse what is there, train the rest, audit.

One run is `train`, a grid is `sweep`; both go the same way. A finished run with the same id (the
same config on the same data) is returned, not trained again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uge_core.errors import ConfigError, StoreError, TrainingDiverged
from uge_core.graph.graph import AttributedGraph
from uge_core.progress import OnProgress as OnProgress
from uge_core.progress import Progress as Progress
from uge_core.ranks import ALONE, Ranks
from uge_core.runs.auditing import Auditing
from uge_core.runs.audits import Splits, sealed_record
from uge_core.runs.data import check_data, dataset_record, scenario_of
from uge_core.runs.names import EXTERNAL
from uge_core.runs.passes import Training
from uge_core.runs.places import HERE, Here, Place, place
from uge_core.runs.plan import DEVICES, Planned, plan
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.training.checkpoint import checkpoints_in, drop
from uge_core.training.config import RunConfig, split_names


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
    on: str = HERE,
    cpus: int = 1,
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
        on: where passes and audits run, a name that `places.place` knows: "here", or by Ray "ray" or "ray:HOST:PORT".
        cpus: by Ray, processor cores of each pass and audit.
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
    where = place(on, cpus=cpus, ranks=ranks)
    return _carry_out(
        graph,
        plan(graph, **grid),
        store,
        where=where,
        force=force,
        since=since,
        device=device,
        deterministic=deterministic,
        solo=solo,
        on_progress=on_progress,
        source=source,
        audits=audits,
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
    where: Place | None = None,
    force: bool = False,
    since: float | None = None,
    device: str,
    deterministic: bool,
    solo: bool = False,
    on_progress: OnProgress | None,
    source: dict[str, Any] | None,
    audits: bool = True,
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
    with (where or Here()).crew(graph, splits, store) as crew:
        if todo:
            training = Training(graph, store, data, device, deterministic, on_progress)
            diverged = training.run(crew, splits, todo, solo=solo)
        crew.trained()
        missing = [
            p
            for p in planned
            if audits and p.run_id not in diverged and not _audit_is_whole(store.load(p.run_id), graph)
        ]
        if missing:
            Auditing(graph, store, missing, on_progress).run(crew)
    if diverged:
        raise next(iter(diverged.values()))
    return [store.load(p.run_id) for p in planned]


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
