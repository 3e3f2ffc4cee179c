"""From a graph to stored, audited runs: plan a grid, reuse what is there, train the rest, audit.

One run is `train`, a grid is `sweep`; both go the same way. A finished run with the same id (the
same config on the same data) is returned, not trained again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from uge_core import environment
from uge_core.config import RunConfig, split_names
from uge_core.errors import ConfigError, StoreError, UgeError
from uge_core.graph import AttributedGraph
from uge_core.registry import find
from uge_core.split import LinkSplit, split_links
from uge_core.store import RunStore, StoredRun

if TYPE_CHECKING:
    from uge_core.audit import Audit
    from uge_core.train import Fitted, Progress

SCHEMA = "uge-audit/1"
ATTACKERS = ("linear", "trees")


@dataclass(frozen=True)
class Step:
    """Where a long job stands.

    Attributes:
        stage: "training" or "auditing".
        done: epochs or runs done.
        total: epochs or runs in all.
        text: what is being done, for people.
        seconds_left: an estimate, or None.
    """

    stage: str
    done: int
    total: int
    text: str
    seconds_left: float | None = None


OnStep = Callable[[Step], None]


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
        seeds: initialisations.
        split_seeds: splits.
        backbones: names of backbones.
        options: further settings; each is given to the backbones and methods that know it.
        **settings: passed on to `RunConfig.resolve`.

    Raises:
        ConfigError: a value that is not allowed, or an empty list.
    """
    for name, given in (
        ("methods", methods), ("seeds", seeds), ("split-seeds", split_seeds), ("backbones", backbones),
    ):  # fmt: skip
        if not given:
            raise ConfigError(f"{name} is empty; name at least one")
    targets = [t.strip() for t in sensitive.split(",") if t.strip()] if isinstance(sensitive, str) else list(sensitive)
    training = {f.name for f in fields(RunConfig) if f.metadata}
    known_somewhere: set[str] = set(training)
    planned: dict[str, Planned] = {}
    for backbone in backbones:
        for method in methods:
            method_cls = find("debias", method)
            known = training | {f.name for cls in (find("backbones", backbone), method_cls) for f in fields(cls)}
            known_somewhere |= known
            alone = len(methods) * len(backbones) == 1
            own = {k: v for k, v in (options or {}).items() if alone or k in known}
            for target in targets or [""] if method_cls.reads_attributes else [""]:
                for lam in lams or (None,) if method_cls.uses_lambda else (None,):
                    for split_seed in split_seeds:
                        for seed in seeds:
                            config = RunConfig.resolve(
                                graph, sensitive=split_names(target), backbone=backbone, method=method, lam=lam,
                                options=own, seed=seed, split_seed=split_seed, **settings,
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
    if lam is not None:
        _check_lam(lam)
    return sweep(
        graph, sensitive=jointly, methods=(method,), lams=lams, seeds=(seed,), split_seeds=(split_seed,),
        backbones=(backbone,), store=store, force=force, device=device, on_step=on_step, source=source, **settings,
    )[0]  # fmt: skip


def sweep(
    graph: AttributedGraph,
    *,
    store: RunStore | None = None,
    force: bool = False,
    device: str = "auto",
    solo: bool = False,
    on_step: OnStep | None = None,
    source: dict[str, Any] | None = None,
    **grid: Any,
) -> list[StoredRun]:
    """Trains, audits and stores every run of a grid that is not there yet.

    Args:
        graph: what to train on.
        store: where runs live; None means ``$UGE_STORE``, else ``./uge-store``.
        force: train although finished runs are there.
        device: auto, cpu or cuda.
        solo: each run in a pass of its own; else runs that can share a pass do.
        on_step: called as the work goes on.
        source: how to load the graph again, kept with the runs.
        **grid: arguments of `plan`.

    Returns:
        The runs in the grid's order.
    """
    for lam in grid.get("lams", ()):
        _check_lam(lam)
    store = store or RunStore()
    planned = plan(graph, **grid)
    there = {p.run_id: store.find(p.run_id) for p in planned}
    todo = [p for p in planned if force or (run := there[p.run_id]) is None or run.status != "finished"]
    splits = _Splits(graph)
    if todo:
        _train(graph, todo, store, splits, device=device, solo=solo, on_step=on_step, source=source)
    missing = [p for p in planned if store.load(p.run_id).audit is None]
    for done, p in enumerate(missing):
        if on_step:
            on_step(Step("auditing", done, len(missing), f"auditing {p.run_id} ({_words(p.config)})"))
        store.save_audit(p.run_id, audit_record(store.load(p.run_id), graph, store, split=splits(p.config)))
    return [store.load(p.run_id) for p in planned]


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
    *,
    device: str,
    solo: bool,
    on_step: OnStep | None,
    source: dict[str, Any] | None,
) -> None:
    from uge_core.train import ensembles, fit

    configs = [p.config for p in todo]
    groups = [[i] for i in range(len(todo))] if solo else ensembles(configs, graph)
    record = dataset_record(graph) | {"source": source}
    for number, group in enumerate(groups):
        members = [todo[i] for i in group]
        words = f"training {len(members)} runs" if len(members) > 1 else f"training {_words(members[0].config)}"
        words += f" (pass {number + 1} of {len(groups)})" if len(groups) > 1 else ""

        def on_epoch(progress: Progress, words: str = words) -> None:
            if on_step:
                text = f"{words}, loss {progress.loss:.4f}"
                on_step(Step("training", progress.epoch, progress.epochs, text, progress.seconds_left))

        begun: list[str] = []
        try:
            for p in members:
                store.begin(p.run_id, p.config.to_json(), record)
                begun.append(p.run_id)
            fitted = fit(
                [p.config for p in members], graph, splits(members[0].config), device=device, on_epoch=on_epoch
            )
            for p, result in zip(members, fitted, strict=True):
                _finish(store, p.run_id, result)
        except KeyboardInterrupt:
            for run_id in begun:
                store.interrupt(run_id)
            raise
        except ConfigError as error:
            for run_id in begun:
                store.withdraw(run_id, str(error))
            raise
        except Exception as error:
            for run_id in begun:
                store.fail(run_id, str(error) if isinstance(error, UgeError) else f"{type(error).__name__}: {error}")
            raise


def _finish(store: RunStore, run_id: str, result: Fitted) -> None:
    diagnostics = dict(result.diagnostics) | {
        "members": list(result.members), "notes": dict(result.notes), "best_epoch": result.best_epoch,
    }  # fmt: skip
    store.finish(
        run_id, embedding=result.embedding, twin=result.twin, hidden=result.hidden, history=result.history,
        diagnostics=diagnostics, environment=environment.stamp(result.device), seconds=result.seconds,
        device=result.device,
    )  # fmt: skip


def dataset_record(graph: AttributedGraph) -> dict[str, Any]:
    """What an audit says about the data: name, fingerprint and counts."""
    return {
        "name": graph.name,
        "fingerprint": graph.fingerprint,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
    }


def audit_run(
    run: StoredRun,
    graph: AttributedGraph,
    store: RunStore,
    *,
    split: LinkSplit | None = None,
    attributes: Sequence[str] | None = None,
    attackers: Sequence[str] = ATTACKERS,
    on_step: OnStep | None = None,
) -> Audit:
    """Audits a stored run: its embedding, and its twin where it has one.

    Args:
        run: the run.
        graph: the graph it was trained on; the fingerprint is checked.
        store: where random floors are kept.
        split: the run's split, where it is at hand.
        attributes: names to audit; None audits all.
        attackers: which attackers to try.
        on_step: called before the audit starts.

    Raises:
        StoreError: the graph is not the one the run was trained on.
    """
    from uge_core.audit import audit_embedding

    if graph.fingerprint != run.dataset["fingerprint"]:
        raise StoreError(
            f"run {run.id} was trained on other data than {graph.name} holds now (fingerprint {run.dataset['fingerprint'][:12]}, found {graph.fingerprint[:12]}); load the data it was trained on, or train again"
        )
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
        treated=config.sensitive,
        read=find("debias", config.method).reads_attributes,
        twin=None if run.twin is None else np.asarray(run.twin),
        bias_free=_bias_free(config, graph, split),
        calibrated=find("backbones", config.backbone).loss != "bpr",
        notes=run.diagnostics.get("notes", {}),
        floors=store.floors,
    )


def audit_record(
    run: StoredRun, graph: AttributedGraph, store: RunStore, *, split: LinkSplit | None = None, **options: Any
) -> dict[str, Any]:
    """The `uge-audit/1` record of a stored run; options as in `audit_run`."""
    return record(run, audit_run(run, graph, store, split=split, **options).to_json())


def record(run: StoredRun, rows: Iterable[Any]) -> dict[str, Any]:
    """A run's `uge-audit/1` record around `rows`."""
    dataset = {key: run.dataset[key] for key in ("name", "fingerprint", "num_nodes", "num_edges")}
    body = {"schema": SCHEMA, "run_id": run.id, "dataset": dataset, "config": run.config, "rows": list(rows)}
    cleaned: dict[str, Any] = _no_nan(body)
    return cleaned


def audit(
    embedding: npt.ArrayLike,
    graph: AttributedGraph,
    *,
    sensitive: str | Sequence[str] | None = None,
    attackers: Sequence[str] = ATTACKERS,
    split_seed: int | None = 0,
) -> Audit:
    """Audits any embedding of a graph's nodes, wherever it comes from.

    Args:
        embedding: (N, d) one row per node, in the node table's order.
        graph: the graph.
        sensitive: attribute names; None audits every attribute of people.
        attackers: which attackers to try.
        split_seed: the split the embedding was trained on, which also keys the probe's nodes; None where
            nobody knows which edges training saw, and no link quality is measured.

    Returns:
        The audit; ``audit.frame()`` is a table.

    Raises:
        ConfigError: the embedding has not one finite row per node.
        GraphError: an attribute the graph does not have.
    """
    from uge_core.audit import audit_embedding

    z = np.asarray(embedding, dtype=np.float32)
    if z.ndim != 2 or len(z) != graph.num_nodes:
        raise ConfigError(
            f"the embedding has shape {z.shape}; allowed: ({graph.num_nodes}, d), one row per node of {graph.name}"
        )
    if not np.isfinite(z).all():
        raise ConfigError(f"the embedding holds {int((~np.isfinite(z)).sum())} values that are not finite numbers")
    attributes = (
        None if sensitive is None else split_names(sensitive if isinstance(sensitive, str) else list(sensitive))
    )
    split = None if split_seed is None else split_links(graph, seed=split_seed)
    return audit_embedding(
        z, graph, split, attributes=attributes, split_seed=split_seed or 0, attackers=tuple(attackers)
    )


def training_weights(run: StoredRun, graph: AttributedGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """The training edges of a run, (2, E), and the weight R~/R of each, (E,)."""
    from uge_core.train import edge_weights

    config = RunConfig.from_json(run.config)
    split = _Splits(graph)(config)
    return split.train, edge_weights(config, graph, split, split.train)


def _bias_free(config: RunConfig, graph: AttributedGraph, split: LinkSplit) -> dict[str, npt.NDArray[np.float32]]:
    """Weights of the held-out edges by sensitive set: the run's own, or each attribute in turn for a run without."""
    from uge_core.train import bias_free_gains

    sets = [config.sensitive] if config.sensitive else [(a.name,) for a in graph.audited if (a.sizes > 0).sum() > 1]
    return {"+".join(names): bias_free_gains(graph, split, names, unknown=config.unknown) for names in sets}


def _check_lam(lam: float) -> None:
    """Refused even where the method would drop it: a negative lambda is a slip of the hand."""
    if not (math.isfinite(lam) and lam >= 0):
        raise ConfigError(f"lambda = {lam} is out of range; allowed: 0 or more (0.5 is the paper's choice)")


def _words(config: RunConfig) -> str:
    parts = [config.backbone, config.method]
    parts += [f"lambda {config.lam:g}"] if config.lam is not None else []
    parts += ["+".join(config.sensitive)] if config.sensitive else []
    return ", ".join(parts)


def _no_nan(value: Any) -> Any:
    """JSON has no NaN: null where a number does not apply."""
    if isinstance(value, dict):
        return {k: _no_nan(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_no_nan(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
