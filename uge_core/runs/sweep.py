"""From a graph to stored, audited runs: plan a grid, reuse what is there, train the rest, audit.

One run is `train`, a grid is `sweep`; both go the same way. A finished run with the same id (the
same config on the same data) is returned, not trained again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from uge_core import machine as environment
from uge_core.audit import version
from uge_core.audit.record import NAME, seal
from uge_core.debias.base import Method
from uge_core.errors import ConfigError, OutOfMemory, StoreError, TrainingDiverged, UgeError
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit, split_links
from uge_core.progress import OnStep as OnStep
from uge_core.progress import Step as Step
from uge_core.progress import rounded
from uge_core.registry import build_options, find
from uge_core.runs import timing as rates
from uge_core.runs.store import RunStore, StoredRun
from uge_core.training.checkpoint import Checkpoint, drop, kept
from uge_core.training.config import RunConfig, known_settings, split_names
from uge_core.views.leakage import config_words

if TYPE_CHECKING:
    from uge_core.audit import Audit
    from uge_core.audit.base import Row
    from uge_core.audit.ndcg import BiasFree
    from uge_core.training.fit import Fitted, Progress

DEFAULT_ATTACKERS = ("linear", "trees")
DEVICES = ("auto", "cpu", "cuda")
EXTERNAL = "external"
"""The method of a run whose embedding came from elsewhere."""


@dataclass(frozen=True)
class Planned:
    """One point of a grid and the id its run has."""

    run_id: str
    config: RunConfig


def plan(
    graph: AttributedGraph,
    *,
    sensitive: str | Sequence[str] = (),
    methods: Sequence[str] = ("none",),
    lams: Sequence[float] = (),
    warm: bool = False,
    seeds: Sequence[int] = (0,),
    split_seeds: Sequence[int] = (0,),
    backbones: Sequence[str] = ("node2vec",),
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> list[Planned]:
    """The runs of a grid, each once.

    Args:
        graph: what is trained on.
        sensitive: text or list; a comma takes each in turn, ``gender+region`` both jointly.
        methods: names of debiasing methods; one that reads no attribute is one run for all of `sensitive`.
        lams: weights of the penalty, for the methods that have one; empty takes each method's default.
        warm: train the middle lambda alone, and the others from its end for `warm_epochs` more.
        seeds: initialisations.
        split_seeds: splits.
        backbones: names of backbones.
        options: further settings; each is given to the backbones and methods that know it.
        **settings: passed on to `RunConfig.resolve`.

    Raises:
        ConfigError: a value that is not allowed, or an empty list.
        GraphError: an attribute the graph does not have.
    """
    for name, given in (
        ("methods", methods), ("seeds", seeds), ("split-seeds", split_seeds), ("backbones", backbones),
    ):  # fmt: skip
        if not given:
            raise ConfigError(f"{name} is empty; name at least one")
    targets = [t.strip() for t in sensitive.split(",") if t.strip()] if isinstance(sensitive, str) else list(sensitive)
    for target in targets or [""]:
        for lam in lams or (None,):
            # Refused even where the methods would drop it: a misspelt name is a slip of the hand.
            RunConfig.resolve(graph, sensitive=split_names(target), lam=lam)
    if warm and len(set(lams)) < 2:
        raise ConfigError("warm starts need two lambdas or more; name them as 0.1,0.5,1.9")
    warm_from = sorted(set(lams))[len(set(lams)) // 2] if warm else None
    known_somewhere: set[str] = set()
    planned: dict[str, Planned] = {}
    for backbone in backbones:
        for method in methods:
            method_cls = find("debias.methods", method)
            known = known_settings(backbone, method)
            known_somewhere |= known
            alone = len(methods) * len(backbones) == 1
            own = {k: v for k, v in (options or {}).items() if alone or k in known}
            for target in targets or [""] if method_cls.reads_attributes else [""]:
                for lam in lams or (None,) if method_cls.uses_lambda else (None,):
                    for split_seed in split_seeds:
                        for seed in seeds:
                            config = RunConfig.resolve(
                                graph, sensitive=split_names(target), backbone=backbone, method=method, lam=lam,
                                warm_from=warm_from, options=own, seed=seed, split_seed=split_seed, **settings,
                            )  # fmt: skip
                            run_id = config.run_id(graph.fingerprint)
                            planned.setdefault(run_id, Planned(run_id, config))
    for key in options or {}:
        if key not in known_somewhere:
            raise ConfigError(
                f"--set {key}: no such setting of these backbones and methods; allowed: {', '.join(sorted(known_somewhere))}"
            )
    return list(planned.values())


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
    on_step: OnStep | None = None,
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
        on_step: called as the work goes on.
        source: how to load the graph again, kept with the run.
        **settings: fields of `RunConfig`, such as epochs.

    Raises:
        ConfigError, GraphError, StoreError, TrainingDiverged: each says what to do.
    """
    jointly = "+".join(split_names(sensitive if isinstance(sensitive, str) else list(sensitive)))
    lams = () if lam is None else (lam,)
    return sweep(
        graph, sensitive=jointly, methods=(method,), lams=lams, seeds=(seed,), split_seeds=(split_seed,),
        backbones=(backbone,), store=store, force=force, device=device, on_step=on_step, source=source, **settings,
    )[0]  # fmt: skip


def sweep(
    graph: AttributedGraph,
    *,
    store: RunStore | None = None,
    force: bool = False,
    since: float | None = None,
    device: str = "auto",
    deterministic: bool = False,
    solo: bool = False,
    on_step: OnStep | None = None,
    source: dict[str, Any] | None = None,
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
        on_step: called as the work goes on.
        source: how to load the graph again, kept with the runs.
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
        graph, plan(graph, **grid), store, force=force, since=since, device=device, deterministic=deterministic,
        solo=solo, on_step=on_step, source=source,
    )  # fmt: skip


def resume(
    run_id: str, graph: AttributedGraph, store: RunStore, *, device: str = "auto", on_step: OnStep | None = None
) -> list[StoredRun]:
    """Takes up a run that was cut off, from its checkpoint where there is one, with the runs of the same pass.

    Args:
        run_id: an interrupted or failed run; a finished one is audited where it is not yet.
        graph: what it was trained on.
        store: where it lives.
        device: auto, cpu or cuda; only on the device it began on can it go on from a checkpoint.
        on_step: called as the work goes on.

    Raises:
        ConfigError, StoreError, TrainingDiverged: each says what to do.
    """
    run = store.load(run_id)
    if run.config["method"] == EXTERNAL:
        raise StoreError(f"run {run_id} was not trained here, so there is nothing to resume; audit its file again")
    check_data(run, graph)
    found = [record for _, record in kept(store.checkpoints) if run_id in record["runs"]]
    together = found[0]["runs"] if found else [run_id]
    runs = [r for r in map(store.find, together) if r]
    planned = [Planned(r.id, RunConfig.from_json(r.config)) for r in runs]
    return _carry_out(
        graph, planned, store, device=device, deterministic=bool(found and found[0]["deterministic"]),
        on_step=on_step, source=run.dataset.get("source"),
    )  # fmt: skip


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
    on_step: OnStep | None,
    source: dict[str, Any] | None,
) -> list[StoredRun]:
    """Trains and audits what is not there yet of `planned`."""
    data = dataset_record(graph) | {"source": source}
    todo = []
    for p in planned:
        run = store.find(p.run_id)
        # A run on a scenario once had the id of one on files with the same content, which has another split.
        other = run is not None and graph.base is None and scenario_of(run.dataset)
        again = force and (since is None or run is None or (run.finished or 0.0) < since)
        if again or run is None or other or not usable(run):
            todo.append(p)
        else:
            _refresh(run, data, store)
    splits = _Splits(graph)
    diverged: dict[str, TrainingDiverged] = {}
    if force and since is None:
        drop(store.checkpoints, [p.run_id for p in todo])
    if todo:
        diverged = _train(
            graph, todo, store, splits, data, device=device, deterministic=deterministic, solo=solo, on_step=on_step
        )
    missing = [p for p in planned if p.run_id not in diverged and not _audit_is_whole(store.load(p.run_id), graph)]
    expected = [_audit_seconds(p.config, graph, store.rates()) for p in missing]
    began = time.monotonic()
    for done, p in enumerate(missing):

        def on_share(what: str, share: float, done: int = done, p: Planned = p) -> None:
            if on_step:
                text = f"auditing {p.run_id} ({_words(p.config)}), {what}"
                past = sum(expected[:done]) + share * expected[done]
                spent = time.monotonic() - began
                # The first moments say little about the speed of now.
                left = (sum(expected) - past) * (spent / past if past > 0.1 * expected[0] else 1.0)
                on_step(Step("auditing", done, len(missing), text, left, None, left))

        started = time.monotonic()
        found = audit_record(store.load(p.run_id), graph, store, split=splits(p.config), on_share=on_share)
        store.save_audit(p.run_id, found)
        took = time.monotonic() - started
        store.note_rate(rates.rate("audit", graph.fingerprint, "", rates.audit_work(p.config, graph), took))
    if diverged:
        raise next(iter(diverged.values()))
    return [store.load(p.run_id) for p in planned]


def _audit_seconds(config: RunConfig, graph: AttributedGraph, stored: Sequence[rates.Rate]) -> float:
    """About how long an audit takes."""
    found = rates.span(stored, "audit", rates.audit_work(config, graph), graph=graph.fingerprint, kind="")
    return float((found.low * found.high) ** 0.5)


def _audit_is_whole(run: StoredRun, graph: AttributedGraph) -> bool:
    """Whether a run is audited, against the planted truth too where this graph brings one (a copy of it may not)."""
    if run.audit is None or graph.truth is None:
        return run.audited
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
        store.save_audit(run.id, record(store.load(run.id), run.audit["rows"], run.audit.get("asked")))


class _Splits:
    """The link split of each config, drawn once per seed and shares."""

    def __init__(self, graph: AttributedGraph) -> None:
        self._graph = graph
        self._made: dict[tuple[float, float, int], LinkSplit] = {}

    def __call__(self, config: RunConfig) -> LinkSplit:
        key = (config.test_share, config.validation, config.split_seed)
        if key not in self._made:
            self._made[key] = split_links(self._graph, test_share=key[0], validation_share=key[1], seed=key[2])
        return self._made[key]


def _train(
    graph: AttributedGraph,
    todo: Sequence[Planned],
    store: RunStore,
    splits: _Splits,
    data: dict[str, Any],
    *,
    device: str,
    deterministic: bool,
    solo: bool,
    on_step: OnStep | None,
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
    stored = store.rates()
    audits = sum(_audit_seconds(p.config, graph, stored) for p in todo)
    while passes:
        left_work = [sum(_work(p.config, graph) for p in group) for group in passes]
        members = passes.pop(0)
        number += 1
        words = f"training {len(members)} runs" if len(members) > 1 else f"training {_words(members[0].config)}"
        words += f" (pass {number} of {number + len(passes)})" if number + len(passes) > 1 else ""

        ticks: list[tuple[int, float]] = []
        pace = [0.0]

        def on_epoch(
            progress: Progress,
            words: str = words,
            work: Sequence[float] = left_work,
            ticks: Any = ticks,
            pace: list[float] = pace,
        ) -> None:
            ticks[1:] = [(progress.epoch, time.monotonic())]  # the first, which compiles kernels, and the last
            if on_step:
                text = f"{words}, loss {rounded(progress.loss)}"
                # Passes to come are as fast as this one is; audits as fast as they were, or as the rule has it.
                if progress.epoch < progress.epochs:
                    pace[0] = progress.seconds_left / (work[0] * (1 - progress.epoch / progress.epochs))
                whole = progress.seconds_left + pace[0] * sum(work[1:]) + audits
                on_step(
                    Step("training", progress.epoch, progress.epochs, text, progress.seconds_left, progress.loss, whole)
                )

        remarks |= dict.fromkeys(_begin(members, store, data))
        try:
            split = splits(members[0].config)
            ids = [p.run_id for p in members]
            fitted = fit(
                [p.config for p in members], graph, split, device=device, deterministic=deterministic, on_epoch=on_epoch,
                checkpoint=Checkpoint(store.checkpoints, ids, deterministic=deterministic),
            )  # fmt: skip
            if len(ticks) > 1:
                (first, began), (last, ended) = ticks
                kind, share = rates.kind(fitted[0].device, [p.config for p in members]), (last - first) / last
                found = rates.rate("train", graph.fingerprint, kind, left_work[0] * share, ended - began)
                store.note_rate(found)
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
            if len(members) == 1:
                _give_up(store, members[0].run_id, error)
                raise
            half = (len(members) + 1) // 2
            passes[:0], number = [members[:half], members[half:]], number - 1
            remarks[f"{len(members)} runs at once did not fit the memory; they were trained in halves"] = None
        except BaseException as error:
            for p in members:
                _give_up(store, p.run_id, error)
            raise
    for text in remarks:
        if on_step:
            on_step(Step("note", 1, 1, text))
    return diverged


def _work(config: RunConfig, graph: AttributedGraph) -> float:
    return rates.training_work(config, graph.num_nodes, graph.num_edges)


def _passes(
    todo: Sequence[Planned], graph: AttributedGraph, store: RunStore, *, deterministic: bool, solo: bool
) -> list[list[Planned]]:
    """Which runs train together: those whose checkpoint is there as they did before, the others as they fit."""
    from uge_core.training.fit import ensembles

    left = {p.run_id: p for p in todo}
    passes = []
    for _, record in kept(store.checkpoints):
        together = record["runs"]
        if record["deterministic"] == deterministic and set(together) <= set(left) and (len(together) == 1 or not solo):
            passes.append([left.pop(run_id) for run_id in together])
    rest = list(left.values())
    groups = [[i] for i in range(len(rest))] if solo else ensembles([p.config for p in rest], graph)
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
        elif isinstance(error, Exception):
            store.fail(run_id, str(error) if isinstance(error, UgeError) else f"{type(error).__name__}: {error}")
        else:
            store.interrupt(run_id)


def _remarks(result: Fitted) -> Iterable[str]:
    """What people should know about a training: where it went on, advice, imputations, a split smaller than asked."""
    if result.diagnostics["resumed_at_epoch"]:
        yield f"went on after epoch {result.diagnostics['resumed_at_epoch'][-1]}, from the checkpoint of a training that was cut off"
    yield from result.diagnostics["advice"]
    yield from result.notes.values()
    yield from (f"{note} (the twin)" for note in result.twin_notes.values() if note not in result.notes.values())
    short = result.diagnostics["split"]["short"]
    if short:
        yield f"{short:,} fewer edges are held out than asked, as each of the rest is some node's last"


def _finish(store: RunStore, run_id: str, result: Fitted, deterministic: bool) -> None:
    diagnostics = dict(result.diagnostics) | {
        "members": list(result.members), "notes": dict(result.notes), "twin_notes": dict(result.twin_notes),
        "best_epoch": result.best_epoch,
    }  # fmt: skip
    store.finish(
        run_id, embedding=result.embedding, twin=result.twin, hidden=result.hidden, parameters=result.parameters,
        history=result.history,
        diagnostics=diagnostics, environment=environment.stamp(result.device) | {"deterministic": deterministic},
        seconds=result.seconds,
        device=result.device,
    )  # fmt: skip


def dataset_record(graph: AttributedGraph) -> dict[str, Any]:
    """What a run keeps about its data: name, fingerprint and counts, and the SHA-256 of the node ids.

    The ids are no part of the fingerprint, as no number depends on them; what is exported does.
    """
    ids = json.dumps(graph.ids(slice(None)))
    return {
        "name": graph.name,
        "fingerprint": graph.fingerprint,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "ids": hashlib.sha256(ids.encode("utf-8", "surrogatepass")).hexdigest(),
    }


def scenario_of(dataset: Mapping[str, Any]) -> str | None:
    """SHA-256 of the scenario that a run's data were made by, or None."""
    return ((dataset.get("source") or {}).get("scenario") or {}).get("sha256")


def check_data(run: StoredRun, graph: AttributedGraph, *, ids: bool = False) -> None:
    """Makes sure that a graph is the one a run was trained on.

    Args:
        run: the run.
        graph: what is loaded now.
        ids: the node ids must be the same too, as they will be written beside the embedding.

    Raises:
        StoreError: it is another one.
    """
    known = {graph.fingerprint}
    if graph.base is not None and scenario_of(run.dataset):
        known.add(graph.content)  # what runs on a scenario once went by
    if run.dataset["fingerprint"] not in known:
        if run.config["method"] == EXTERNAL:
            raise StoreError(
                f"run {run.id} embeds other data than {graph.name} holds now (fingerprint {run.dataset['fingerprint'][:12]}, found {graph.fingerprint[:12]}); name the data it embeds with --data DATA, or audit its file again"
            )
        raise StoreError(
            f"run {run.id} was trained on other data than {graph.name} holds now (fingerprint {run.dataset['fingerprint'][:12]}, found {graph.fingerprint[:12]}); name the data it was trained on with --data DATA, or train again"
        )
    if ids and run.dataset.get("ids") not in (None, dataset_record(graph)["ids"]):
        raise StoreError(
            f"run {run.id} was trained on a graph like {graph.name} whose nodes have other ids; name the data it was trained on with --data DATA, or run uge train on this graph first, which takes over its ids"
        )


def audit_run(
    run: StoredRun,
    graph: AttributedGraph,
    store: RunStore | None = None,
    *,
    split: LinkSplit | None = None,
    attributes: Sequence[str] | None = None,
    attackers: Sequence[str] = DEFAULT_ATTACKERS,
    crossings: Sequence[str] | bool = False,
    on_step: OnStep | None = None,
    on_share: Callable[[str, float], None] | None = None,
) -> Audit:
    """Audits a stored run: its embedding, and its twin where it has one.

    Args:
        run: the run.
        graph: the graph it was trained on; the fingerprint is checked.
        store: where random floors are kept; None keeps none.
        split: the run's split, where it is at hand.
        attributes: names to audit; None audits all.
        attackers: which attackers to try, of ``registry.names("audit.attackers")``.
        crossings: pairs whose leakage is measured together, as "gender+region"; True: all pairs of those audited.
        on_step: called before the audit starts.
        on_share: called with what is being measured and the share done.

    Raises:
        StoreError: the graph is not the one the run was trained on.
    """
    from uge_core.audit import audit_embedding

    check_data(run, graph)
    for name in attackers:
        find("audit.attackers", name)
    if run.config["method"] == EXTERNAL:
        if on_step:
            on_step(Step("auditing", 0, 1, f"auditing {run.id} ({config_words(run.config, 'method', 'file')})"))
        seed, floors = run.config.get("split_seed"), store.floors if store else None
        return _audit_array(
            np.asarray(run.embedding), graph, split_seed=seed, attributes=attributes, attackers=tuple(attackers),
            crossings=crossings, score=run.config["score"], floors=floors,
        )  # fmt: skip
    config = RunConfig.from_json(run.config)
    split = split or _Splits(graph)(config)
    if on_step:
        on_step(Step("auditing", 0, 1, f"auditing {run.id} ({_words(config)})"))
    return audit_embedding(
        np.asarray(run.embedding),
        graph,
        split,
        attributes=attributes,
        unknown=config.unknown,
        split_seed=config.split_seed,
        attackers=tuple(attackers),
        crossings=crossings,
        treated=config.sensitive,
        read=attributes_read(config, graph),
        twin=None if run.twin is None else np.asarray(run.twin),
        bias_free=_bias_free(config, graph, split),
        calibrated=config.calibrated,
        score=config.score,
        notes=run.diagnostics.get("notes", {}),
        twin_notes=run.diagnostics.get("twin_notes", {}),
        floors=store.floors if store else None,
        progress=on_share,
    )


def score_of(run: StoredRun) -> str:
    """What a run's pairs are scored by, a name that `scores.scorer` knows."""
    if run.config["method"] == EXTERNAL:
        return str(run.config["score"])
    return RunConfig.from_json(run.config).score


def attributes_read(config: RunConfig, graph: AttributedGraph) -> tuple[str, ...]:
    """The attributes whose values entered training: those treated, and all where the method's cells are of all."""
    found = find("debias.methods", config.method)
    if not found.reads_attributes:
        return ()
    method: Method = build_options(found, config.method_options, config.method)
    return tuple(a.name for a in graph.audited) if method.reads_others else config.sensitive


def audit_record(
    run: StoredRun, graph: AttributedGraph, store: RunStore, *, split: LinkSplit | None = None, **options: Any
) -> dict[str, Any]:
    """The sealed `uge-audit/1` record of a stored run; options as in `audit_run`."""
    # With the defaults of today, so that whoever verifies the record later asks for the same.
    asked = {"attributes": None, "attackers": list(DEFAULT_ATTACKERS)}
    asked |= {name: value for name, value in options.items() if name not in ("on_step", "on_share")}
    return record(run, audit_run(run, graph, store, split=split, **options).to_json(), asked)


def record(run: StoredRun, rows: Iterable[Any], asked: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A run's `uge-audit/1` record around `rows`, with its SHA-256; `asked` is what the audit was asked for."""
    dataset = {key: run.dataset[key] for key in ("name", "fingerprint", "num_nodes", "num_edges")}
    found = {
        "schema": NAME,
        "audit_version": version.VERSION,
        "run_id": run.id,
        "dataset": dataset,
        "config": run.config,
    }
    return seal(found | {"asked": dict(asked or {}), "rows": list(rows)})


def audit(
    embedding: npt.ArrayLike | StoredRun,
    graph: AttributedGraph,
    *,
    sensitive: str | Sequence[str] | None = None,
    attackers: Sequence[str] = DEFAULT_ATTACKERS,
    crossings: Sequence[str] | bool = False,
    split_seed: int | None = None,
    test_share: float | None = None,
    validation: float | None = None,
    score: str = "dot",
) -> Audit:
    """Audits a stored run, or any embedding of a graph's nodes, wherever it comes from.

    A stored run brings its config, split and twin: the rows are those of its stored audit. Of an
    array nobody knows which edges and whose values its training saw. Without `split_seed` no edge
    counts as held out: link quality is not measured, and EO covers all edges. With it the split is
    drawn again, and the NDCG is right only if training used exactly that split (the same seed and
    shares, on the same data): an embedding that saw the held-out edges looks better than it is. The
    exposure of an array's rows is null; leakage may be understated if training read the values.

    Args:
        embedding: a run of `train`, `sweep` or the store; or (N, d), one row per node in the node
            table's order.
        graph: the graph it embeds.
        sensitive: attribute names; None audits every attribute of people.
        attackers: which attackers to try, of ``registry.names("audit.attackers")``.
        crossings: pairs whose leakage is measured together, as "gender+region"; True: all pairs of those audited.
        split_seed: of an array, the split it was trained on; it keys the attackers' split of the
            people too, which is 0's where it is not given.
        test_share: of an array with `split_seed`, the share of edges held out; None takes the layout's.
        validation: of an array with `split_seed`, the share of training edges set aside; None takes none.
        score: of a pair of nodes of an array, "dot", "cosine" or "distance" (CNE's; "distance:3" with another sigma_2),
            for NDCG, DP and EO; leakage is of the vectors as they are.

    Returns:
        The audit; ``audit.frame()`` is a table.

    Raises:
        ConfigError: the embedding has not one finite row per node, or a setting is not allowed.
        GraphError: an attribute the graph does not have.
        StoreError: the run was trained on other data.
    """
    names = None if sensitive is None else split_names(sensitive if isinstance(sensitive, str) else list(sensitive))
    if names == []:
        raise ConfigError("sensitive names no attribute; name at least one, or leave it out for all")
    given = {"split_seed": split_seed, "test_share": test_share, "validation": validation}
    chosen = [name for name, value in given.items() if value is not None]
    if isinstance(embedding, StoredRun):
        if chosen:
            raise ConfigError(f"{', '.join(chosen)}: a stored run brings its own split; leave this out")
        if score != "dot":
            raise ConfigError("score: a stored run brings its own; leave this out")
        return audit_run(embedding, graph, attributes=names, attackers=attackers, crossings=crossings)
    if chosen and split_seed is None:
        raise ConfigError(f"{', '.join(chosen)} needs split_seed, the seed of the split that training used")
    if split_seed is not None and (
        isinstance(split_seed, bool) or not isinstance(split_seed, int | np.integer) or split_seed < 0
    ):
        raise ConfigError(f"split_seed = {split_seed!r} is not allowed; allowed: a whole number of 0 or more, or None")
    for name, share in (("test_share", test_share), ("validation", validation)):
        if share is not None and (isinstance(share, bool) or not isinstance(share, int | float | np.number)):
            raise ConfigError(f"{name} = {share!r} is not a number; allowed: 0 to 0.9")
    return _audit_array(
        as_embedding(embedding, graph), graph, split_seed=split_seed, test_share=test_share, validation=validation or 0.0,
        attributes=names, attackers=tuple(attackers), crossings=crossings, score=score,
    )  # fmt: skip


def _audit_array(
    z: npt.NDArray[np.float32],
    graph: AttributedGraph,
    *,
    split_seed: int | None,
    test_share: float | None = None,
    validation: float = 0.0,
    score: str,
    **options: Any,
) -> Audit:
    """The audit of an embedding that nobody here trained, with what has to be taken on trust said in its rows."""
    from uge_core.audit import Audit, audit_embedding

    split = None
    if split_seed is not None:
        split = split_links(graph, test_share=test_share, validation_share=validation, seed=int(split_seed))
    found = audit_embedding(z, graph, split, split_seed=int(split_seed or 0), score=score, **options)
    same = "all nodes have the same vector, so nothing can be read from it" if (z == z[:1]).all() else None
    trust = None if split is None else f"right only if training left out the test edges of split seed {split_seed}"

    def said(row: Row) -> Row:
        held_out = row.attacker is None and row.variant == "held-out" and row.value is not None
        notes = (row.note, same, trust if held_out else None)
        return replace(row, note="; ".join(filter(None, notes)) or None)

    return Audit(tuple(map(said, found)))


def as_embedding(embedding: Any, graph: AttributedGraph) -> npt.NDArray[np.float32]:
    """An embedding from elsewhere as numbers; its shape is the audit's to check."""
    try:
        z = np.asarray(embedding)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"the embedding is no array: {error}; allowed: ({graph.num_nodes}, d) numbers") from None
    if z.dtype.kind not in "fiu":
        raise ConfigError(f"the embedding holds {z.dtype}; allowed: ({graph.num_nodes}, d) real numbers")
    with np.errstate(over="ignore"):
        return z.astype(np.float32)


def training_weights(
    run: StoredRun, graph: AttributedGraph
) -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[Any]]]:
    """What a run's training made of its edges.

    Returns:
        The training edges, (2, E), source first, and by name (E,) numbers of each: `weight`, what the method weighs it by,
        as R~/R, of methods that draw anew in the first epoch; or, where the method chooses the steps of walks,
        `step_chance` and `step_chance_back`, that a walk's first step from the source takes it, and from the target;
        and `edge_weight`, its own, where edges have any.
    """
    if run.config["method"] == EXTERNAL:
        raise StoreError(f"run {run.id} was not trained here and has no edge weights; leave --what weights out")
    from uge_core.training.fit import edges_in_training

    check_data(run, graph)
    config = RunConfig.from_json(run.config)
    split = _Splits(graph)(config)
    turned = np.zeros(split.train.shape[1], dtype=bool) if split.directions is None else split.directions < 0
    made = edges_in_training(config, graph, split)
    numbers: dict[str, npt.NDArray[Any]] = {}
    if made.chance is not None:
        there, back = np.where(turned, made.chance[::-1], made.chance)
        numbers = {"step_chance": there, "step_chance_back": back}
    elif made.weight is not None:
        numbers = {"weight": made.weight}
    return np.where(turned, split.train[::-1], split.train), numbers | (
        {} if split.weights is None else {"edge_weight": split.weights}
    )


def _bias_free(config: RunConfig, graph: AttributedGraph, split: LinkSplit) -> Mapping[str, BiasFree]:
    """Weights of the held-out edges by sensitive set: the run's own, or each attribute in turn for a run without."""
    from uge_core.training.fit import bias_free_gains

    sets = [config.sensitive] if config.sensitive else [(a.name,) for a in graph.audited if (a.sizes > 0).sum() > 1]
    return {"+".join(names): bias_free_gains(graph, split, names, unknown=config.unknown) for names in sets}


def _words(config: RunConfig) -> str:
    return config_words(config.to_json(), "backbone", "method", "sensitive")
