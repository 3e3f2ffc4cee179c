"""The passes of a sweep: which runs train together, how far they are, and what becomes of each run."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from uge_core import machine
from uge_core.errors import ConfigError, OutOfMemory, ProcessLost, StoreError, TrainingDiverged, UgeError
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit
from uge_core.progress import OnProgress, Progress, rounded
from uge_core.runs import timing
from uge_core.runs.auditing import at_once, audit_seconds
from uge_core.runs.audits import Splits
from uge_core.runs.names import run_words
from uge_core.runs.places import Crew, Line
from uge_core.runs.plan import Planned
from uge_core.runs.store import RunStore
from uge_core.training.checkpoint import Checkpoint, checkpoints_in, drop
from uge_core.training.config import RunConfig

if TYPE_CHECKING:
    from uge_core.training.fit import Fitted
    from uge_core.training.loop import EpochProgress


@dataclass(frozen=True, eq=False)
class PassTask:
    """A pass as it is sent."""

    configs: tuple[RunConfig, ...]
    device: str
    deterministic: bool

    def carry_out(self, graph: AttributedGraph, split: LinkSplit, line: Line) -> Any:
        """What `fit` gives, and what it was made with."""
        from uge_core.training.fit import fit

        configs = [config.to_json() for config in self.configs]
        line.ranks.announce({"configs": configs, "device": self.device, "deterministic": self.deterministic})
        fitted = fit(
            self.configs,
            graph,
            split,
            device=self.device,
            deterministic=self.deterministic,
            on_epoch=line.tell,
            checkpoint=line.checkpoint,
            ranks=line.ranks,
        )
        return fitted, machine.stamp(fitted[0].device) | {"deterministic": self.deterministic}


@dataclass(eq=False)
class _Pass:
    """One pass, as the sweep looks after it; see `places.Job`.

    Attributes:
        members: the runs that train together.
        training: all passes.
        words: what people are told it is.
        number: how manieth it is.
        work: how much there is to do in it.
        news: what its task told last.
        where: on which machine it is.
        ticks: the first epoch, which compiles kernels, and the last, with when they were told of.
        pace: seconds that a unit of its work takes; 0 while that is not known.
    """

    members: Sequence[Planned]
    training: Training
    work: float
    words: str = ""
    number: int = 0
    news: EpochProgress | None = None
    where: str = ""
    ticks: list[tuple[int, float]] = field(default_factory=list)
    pace: float = 0.0
    floors: str | None = None

    @property
    def config(self) -> RunConfig:
        return self.members[0].config

    @property
    def runs(self) -> tuple[str, ...]:
        """The ids of its runs."""
        return tuple(p.run_id for p in self.members)

    @property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self.training.store.checkpoints, self.runs, deterministic=self.training.deterministic)

    @property
    def left(self) -> float:
        """How much there is still to do in it."""
        return self.work if self.news is None else self.work * (1 - self.news.epoch / self.news.epochs)

    def begin(self) -> PassTask:
        self.training.begin(self)
        configs = tuple(p.config for p in self.members)
        return PassTask(configs, self.training.device, self.training.deterministic)

    def heard(self, news: Any, where: str) -> None:
        self.news, self.where = news, where
        self.ticks[1:] = [(news.epoch, time.monotonic())]
        if news.epoch < news.epochs:
            self.pace = news.seconds_left / self.left


class Training:
    """All passes of a sweep."""

    def __init__(
        self,
        graph: AttributedGraph,
        store: RunStore,
        data: dict[str, Any],
        device: str,
        deterministic: bool,
        on_progress: OnProgress | None,
    ) -> None:
        """Nothing is begun yet; `data` is what runs keep about their data, the rest as for `sweep`."""
        self.graph, self.store, self.data = graph, store, data
        self.device, self.deterministic, self.on_progress = device, deterministic, on_progress
        self._waiting: deque[_Pass] = deque()
        self._under_way: list[_Pass] = []
        self._open: list[_Pass] = []  # those whose runs are marked as being trained, under way or waiting
        self._begun = 0
        self._audits = 0.0
        self._remarks: dict[str, None] = {}
        self._diverged: dict[str, TrainingDiverged] = {}

    def run(self, crew: Crew, splits: Splits, todo: Sequence[Planned], *, solo: bool) -> dict[str, TrainingDiverged]:
        """Trains and stores; returns the error of each run that diverged.

        Raises:
            UgeError: what ended the training; what was finished is stored.
        """
        from uge_core.training.fit import check

        groups = _together(todo, self.graph, self.store, crew, deterministic=self.deterministic, solo=solo)
        # What cannot be trained is told of now, not when the passes before its own have trained for hours.
        for group in groups[1:]:
            configs = [p.config for p in group]
            check(configs, self.graph, splits(configs[0]), device=self.device, ranks=crew.ranks)
        stored = self.store.timings()
        self._audits = sum(audit_seconds(p.config, self.graph, stored) for p in todo)
        self._waiting.extend(map(self._pass, groups))
        try:
            with closing(crew.outcomes(self._waiting, self._tell)) as outcomes:
                for done, outcome in outcomes:
                    try:
                        self._store(done, *outcome.result(), timed=outcome.timed)
                    except TrainingDiverged as error:
                        self._without_lost(done, error)
                    except OutOfMemory as error:
                        self._halved(done, error, crew)
                    except BaseException as error:
                        self._give_up(done, error)
                        raise
                    self._under_way.remove(done)
                    self._open.remove(done)
                    del outcome  # what a pass gave, or held when it failed, makes room for the next
        except BaseException as error:
            for left in self._open:
                self._stop(left, error)
            raise
        for text in self._remarks:
            if self.on_progress:
                self.on_progress(Progress("note", 1, 1, text))
        return self._diverged

    def begin(self, one: _Pass) -> None:
        """Called as a pass is taken up."""
        self._begun += 1
        one.number, total = self._begun, self._begun + len(self._waiting)
        members = one.members
        one.words = f"training {len(members)} runs" if len(members) > 1 else f"training {run_words(members[0].config)}"
        one.words += f" (pass {one.number} of {total})" if total > 1 else ""
        self._remarks |= dict.fromkeys(_begin(members, self.store, self.data))
        self._under_way.append(one)
        if one not in self._open:
            self._open.append(one)

    def _pass(self, members: Sequence[Planned]) -> _Pass:
        return _Pass(members, self, sum(_work(p.config, self.graph) for p in members))

    def _again(self, *groups: Sequence[Planned]) -> None:
        """Puts runs of a pass that is over in front of those that wait; they stay marked as being trained."""
        passes = [self._pass(group) for group in groups]
        self._waiting.extendleft(reversed(passes))
        self._open += passes
        self._begun -= 1

    def _store(self, done: _Pass, fitted: Sequence[Fitted], made: dict[str, Any], *, timed: bool) -> None:
        if timed and len(done.ticks) > 1:
            (first, began), (last, ended) = done.ticks
            kind, share = timing.kind(fitted[0].device, [p.config for p in done.members]), (last - first) / last
            rate = timing.timed("train", self.graph.fingerprint, kind, done.work * share, ended - began)
            self.store.note_timing(rate)
        for p, result in zip(done.members, fitted, strict=True):
            _finish(self.store, p.run_id, result, made)
            self._remarks |= dict.fromkeys(_remarks(result))
        drop(self.store.checkpoints, done.runs)

    def _without_lost(self, done: _Pass, error: TrainingDiverged) -> None:
        """The others of a pass with a run that diverged did nothing wrong: they train again without the lost ones."""
        drop(self.store.checkpoints, done.runs)
        lost = {done.members[i].run_id for i in error.members} or set(done.runs)
        for run_id in lost:
            self.store.fail(run_id, str(error))
        self._diverged |= dict.fromkeys(lost, error)
        rest = [p for p in done.members if p.run_id not in lost]
        self._again(*([rest] if rest else []))

    def _halved(self, done: _Pass, error: OutOfMemory, crew: Crew) -> None:
        """A pass that did not fit the memory trains in halves."""
        # Of several processes others wait for what this one could not hold.
        if len(done.members) == 1 or crew.ranks.size > 1:
            self._give_up(done, error)
            raise error
        half = (len(done.members) + 1) // 2
        self._again(done.members[:half], done.members[half:])
        self._remarks[f"{len(done.members)} runs at once did not fit the memory; they were trained in halves"] = None

    def _give_up(self, one: _Pass, error: BaseException) -> None:
        for run_id in one.runs:
            _give_up(self.store, run_id, error)

    def _stop(self, one: _Pass, error: BaseException) -> None:
        """Of an error of ours, which another pass or the place has, a pass is no more than interrupted."""
        if not isinstance(error, UgeError):
            self._give_up(one, error)
            return
        for run_id in one.runs:
            with suppress(StoreError):
                self.store.interrupt(run_id, f"stopped, as the sweep could not go on: {error}")

    def _tell(self) -> None:
        """Says how far the first of those under way is, and all of them together."""
        if not self.on_progress or not self._under_way:
            return
        lead, *beside = self._under_way
        on = f" on {lead.where}" if lead.where else ""
        if lead.news is None:
            self.on_progress(Progress("training", 0, lead.config.epochs, f"{lead.words}, waiting"))
            return
        news = lead.news
        # Passes to come are as fast as those under way are; audits as fast as they were, or as the rule has it.
        speed = sum(1 / p.pace for p in self._under_way if p.pace > 0)
        work = sum(p.left for p in self._under_way) + sum(p.work for p in self._waiting)
        whole = (work / speed if speed else 0.0) + self._audits / len(self._under_way)
        others = [(f"pass {p.number}", p.where, f" ({1 - p.left / p.work:.0%})") for p in beside if p.work]
        text = f"{lead.words}{on}, loss {rounded(news.loss)}{at_once(others)}"
        self.on_progress(Progress("training", news.epoch, news.epochs, text, news.seconds_left, news.loss, whole))


def _work(config: RunConfig, graph: AttributedGraph) -> float:
    return timing.training_work(config, graph.num_nodes, graph.num_edges)


def _together(
    todo: Sequence[Planned], graph: AttributedGraph, store: RunStore, crew: Crew, *, deterministic: bool, solo: bool
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
    alone = [[i] for i in range(len(rest))]
    groups = alone if solo else fitting_ensembles([p.config for p in rest], graph, crew.abreast)
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


def _finish(store: RunStore, run_id: str, result: Fitted, environment: dict[str, Any]) -> None:
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
        environment=environment,
        seconds=result.seconds,
        device=result.device,
    )
