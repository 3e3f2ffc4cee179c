"""Where the passes and audits of a sweep are carried out: in this process, or wherever another `Place` sends them.

A sweep has jobs: each begins when a place takes it up, gives a task, and is told how far that is. A task is fit to be
sent to another process. What comes of it goes back to the sweep, the one writer of the store.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from uge_core.errors import ConfigError, UgeError
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit
from uge_core.machine import version
from uge_core.runs.audits import Splits
from uge_core.runs.store import RunStore
from uge_core.training.checkpoint import Checkpoint
from uge_core.training.config import RunConfig

HERE = "here"
RAY = "ray"


class Line(Protocol):
    """What a task has of those who wait for it."""

    @property
    def floors(self) -> MutableMapping[str, Any]:
        """Floors of audits that are known; what is measured goes in."""

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint of a pass."""

    def tell(self, news: Any) -> None:
        """Says how far the task is; what it raises ends the task."""


class Task(Protocol):
    """A pass or an audit, fit to be sent: all it needs but the graph and its split.

    Attributes:
        device: auto, cpu or cuda.
    """

    @property
    def device(self) -> str:
        """Auto, cpu or cuda."""

    def carry_out(self, graph: AttributedGraph, split: LinkSplit, line: Line) -> Any:
        """Does it."""


class Job(Protocol):
    """A pass or an audit, as the sweep looks after it.

    Attributes:
        config: that of a run of it, which says which split it needs.
        floors: names the floors that it measures and others need too, or None where there are none.
        checkpoint: that of a pass.
    """

    @property
    def config(self) -> RunConfig:
        """That of a run of it."""

    @property
    def floors(self) -> str | None:
        """Names floors."""

    @property
    def checkpoint(self) -> Checkpoint | None:
        """Where a pass goes on."""

    def begin(self) -> Task:
        """Called as it is taken up."""

    def heard(self, news: Any, where: str) -> None:
        """Takes what its task told, and on which machine that is, empty where it is this one."""


@dataclass(frozen=True)
class Outcome:
    """What became of a job.

    Attributes:
        value: what its task gave.
        error: what it raised instead.
        timed: it had this machine as others will have it, so that its seconds say how fast it is.
    """

    value: Any = None
    error: UgeError | None = None
    timed: bool = False

    def result(self) -> Any:
        """The value.

        Raises:
            UgeError: what the task raised.
        """
        if self.error is not None:
            raise self.error
        return self.value


AnyJob = TypeVar("AnyJob", bound=Job)


Jobs: TypeAlias = Generator[tuple[AnyJob, Outcome], None, None]


class Crew(ABC):
    """Those who carry out the jobs of one sweep."""

    @abstractmethod
    def outcomes(self, waiting: deque[AnyJob], tick: Callable[[], None]) -> Jobs[AnyJob]:
        """Takes up jobs and gives each back with what became of it, in any order.

        Args:
            waiting: the jobs; who hears of an outcome may put in others.
            tick: called now and then, after jobs were told of their tasks' news; what it raises ends all of them.

        Raises:
            BaseException: what `tick`, a job or a task raised; what errors of ours tasks raise are outcomes.
        """


class Place(ABC):
    """Where jobs are carried out."""

    @abstractmethod
    def crew(self, graph: AttributedGraph, splits: Splits, store: RunStore) -> AbstractContextManager[Crew]:
        """Those who work on a graph there; they go home at the end of the block.

        Args:
            graph: the graph.
            splits: its splits.
            store: where checkpoints and floors lie.
        """


class Here(Place):
    """This process, one job after the other."""

    def crew(self, graph: AttributedGraph, splits: Splits, store: RunStore) -> AbstractContextManager[Crew]:
        """This process."""
        return nullcontext(_Alone(graph, splits, store))


@dataclass(frozen=True, eq=False)
class _Alone(Crew):
    graph: AttributedGraph
    splits: Splits
    store: RunStore

    def outcomes(self, waiting: deque[AnyJob], tick: Callable[[], None]) -> Jobs[AnyJob]:
        while waiting:
            job = waiting.popleft()
            task = job.begin()
            try:
                line = _Direct(job, tick, self.store)
                outcome = Outcome(task.carry_out(self.graph, self.splits(job.config), line), timed=True)
            except UgeError as error:
                outcome = Outcome(error=error)
            yield job, outcome


@dataclass(frozen=True, eq=False)
class _Direct:
    """The line of a task in this process."""

    job: Job
    tick: Callable[[], None]
    store: RunStore

    @property
    def floors(self) -> MutableMapping[str, Any]:
        return self.store.floors

    @property
    def checkpoint(self) -> Checkpoint | None:
        return self.job.checkpoint

    def tell(self, news: Any) -> None:
        self.job.heard(news, "")
        self.tick()


def offered() -> dict[str, str]:
    """The places that a form offers here, in words by name: a cluster where ``$RAY_ADDRESS`` names it."""
    words = {HERE: "here, one pass after the other"}
    if version("ray") is not None:
        words[RAY] = "here, a pass on each core, by Ray"
        if address := os.environ.get("RAY_ADDRESS", ""):
            words[f"{RAY}:{address}"] = f"on the cluster of Ray at {address}"
    return words


def place(on: str = HERE, *, cpus: int = 1) -> Place:
    """A place by its name.

    Args:
        on: "here", this process; "ray", the processor cores of this machine, by Ray; "ray:HOST:PORT" or "ray:auto", the
            machines of a cluster that runs.
        cpus: processor cores of each pass and audit by Ray.

    Raises:
        ConfigError: another name, or Ray is not installed.
    """
    kind, _, address = on.partition(":")
    if on == HERE:
        return Here()
    if kind != RAY or (":" in on and not address):
        raise ConfigError(f"on = {on!r} is not allowed; allowed: {HERE}, {RAY}, {RAY}:HOST:PORT, {RAY}:auto")
    from uge_core.runs.on_ray import Ray

    return Ray(address or None, cpus)
