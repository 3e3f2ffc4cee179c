"""Where the passes and audits of a sweep are carried out: in this process, or wherever another `Place` sends them.

A sweep has jobs: each begins when a place takes it up, gives a task, and is told how far that is. A task is fit to be
sent to another process. What comes of it goes back to the sweep, the one writer of the store.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, MutableMapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from uge_core.errors import ConfigError, UgeError
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit
from uge_core.machine import version
from uge_core.ranks import ALONE, Ranks
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

    @property
    def ranks(self) -> Ranks:
        """The processes that train together."""

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
        if self.error is None:
            return self.value
        error = self.error
        try:
            raise error
        finally:
            del error, self  # else the error's traceback would hold the error, and so all that its pass held


AnyJob = TypeVar("AnyJob", bound=Job)


Jobs: TypeAlias = Generator[tuple[AnyJob, Outcome], None, None]


class Crew(ABC):
    """Those who carry out the jobs of one sweep.

    Attributes:
        ranks: the processes that train a pass together.
        abreast: how many processes that train share the memory of a machine, as far as is known.
    """

    ranks: Ranks = ALONE
    abreast: int = 1

    def trained(self) -> None:  # noqa: B027  most have nothing to do
        """Called as all passes are over, before audits begin."""

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


@dataclass(frozen=True)
class Here(Place):
    """This process, one job after the other.

    Attributes:
        ranks: the processes that train a pass together, which this one leads.
    """

    ranks: Ranks = ALONE

    def crew(self, graph: AttributedGraph, splits: Splits, store: RunStore) -> AbstractContextManager[Crew]:
        """This process."""
        return nullcontext(_One(graph, splits, store, self.ranks))


class _One(Crew):
    def __init__(self, graph: AttributedGraph, splits: Splits, store: RunStore, ranks: Ranks) -> None:
        self.graph, self.splits, self.store, self.ranks = graph, splits, store, ranks
        self.abreast = ranks.here

    def trained(self) -> None:
        self.ranks.dismiss()

    def outcomes(self, waiting: deque[AnyJob], tick: Callable[[], None]) -> Jobs[AnyJob]:
        while waiting:
            job = waiting.popleft()
            yield job, self._outcome(job, tick)  # in no name here, as an error holds what its pass held

    def _outcome(self, job: Job, tick: Callable[[], None]) -> Outcome:
        task = job.begin()
        try:
            value = task.carry_out(self.graph, self.splits(job.config), _Direct(job, tick, self.store, self.ranks))
        except UgeError as error:
            return Outcome(error=error)
        return Outcome(value, timed=self.ranks.size == 1)  # estimates are for one process


@dataclass(frozen=True, eq=False)
class _Direct:
    """The line of a task in this process."""

    job: Job
    tick: Callable[[], None]
    store: RunStore
    ranks: Ranks

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
            with suppress(ConfigError):  # one that `place` would refuse
                place(f"{RAY}:{address}")
                words[f"{RAY}:{address}"] = f"on the cluster of Ray at {address}"
    return words


def place(on: str = HERE, *, cpus: int = 1, ranks: Ranks = ALONE) -> Place:
    """A place by its name.

    Args:
        on: "here", this process; "ray", the processor cores of this machine, by Ray; "ray:HOST:PORT" or "ray:auto", the
            machines of a cluster that runs.
        cpus: processor cores of each pass and audit by Ray.
        ranks: the processes that train a pass together, in this process's place alone.

    Raises:
        ConfigError: another name, Ray is not installed, several processes where Ray shares out passes, or `cpus` that
            is not 1 or more, or that nobody heeds.
    """
    kind, _, address = on.partition(":")
    if on == HERE:
        if cpus != 1:
            raise ConfigError(
                f"cpus = {cpus} is for passes by Ray; in this process a pass takes all cores: leave it out, or name a "
                f"place such as {RAY}"
            )
        return Here(ranks)
    if ranks.size > 1:
        raise ConfigError(
            f"on = {on!r}: Ray shares out whole passes; leave it out under torchrun, which shares out each"
        )
    if kind != RAY or (":" in on and not address):
        raise ConfigError(f"on = {on!r} is not allowed; allowed: {HERE}, {RAY}, {RAY}:HOST:PORT, {RAY}:auto")
    from uge_core.runs.on_ray import Ray

    return Ray(address or None, cpus)
