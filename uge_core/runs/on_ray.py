"""Passes and audits as tasks of Ray: on the cores of this machine, or on the machines of a cluster that runs.

Ray decides what runs where, and carries out anew what was lost with a machine. The graph and each split go into its
object store once. Tasks know nothing of the run store: what they give, what they tell and their checkpoints come back
here, to the process that called `sweep`, by way of a mailbox, an actor on this process's own node.

Ray's processes exchange pickles, and whoever may connect to a cluster runs code on it. A cluster of this process's own
listens on the loopback alone, asks for a token that only its processes know, keeps its files in a private folder, and
ends with the sweep. Nothing is told to Ray's makers (usage statistics).
"""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import platform
import re
import secrets
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from uge_core.errors import ConfigError, OutOfMemory, UgeError, WorkerLost
from uge_core.files import temporary_folder
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit
from uge_core.machine import cores, threads, version
from uge_core.machine import stamp as machine_stamp
from uge_core.ranks import ALONE
from uge_core.runs.audits import Splits
from uge_core.runs.places import AnyJob, Crew, Job, Jobs, Outcome, Place, Task
from uge_core.runs.store import RunStore
from uge_core.training.checkpoint import Checkpoint, Held

INSTALL = "pip install 'uge-core[ray]'"
_PATIENCE = 10.0  # seconds in which the head of a cluster has to answer
_SILENCE = 120.0  # seconds in which each node has to say what it has
_TURN = 0.3  # seconds between two looks at the mailbox
_OFTEN = 0.2  # seconds between two tellings of a task
_GRACE = 4.0  # seconds in which tasks that are stopped may bring their checkpoints
_RETRIES = 3  # times that what was lost with a machine is done again
_ROOM = 256 * 2**20  # bytes of the object store beside the graph
# Ray's own switch for the loopback as a node's address: it takes 127.0.0.1 that is asked for by name for another.
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_task_oom_retries": "1"}


class _Stopped(BaseException):
    """The sweep is over for who waits for a task."""


@dataclass(frozen=True)
class Ray(Place):
    """A cluster of Ray.

    Attributes:
        address: HOST:PORT of a cluster that runs, "auto" for the one of this machine; None: one of our own.
        cpus: processor cores, and threads, of each task.

    Raises:
        ConfigError: Ray is not installed, or `cpus` is not 1 or more.
    """

    address: str | None
    cpus: int = 1

    def __post_init__(self) -> None:
        if version("ray") is None:
            raise ConfigError(f"Ray is not installed; install it ({INSTALL}), or leave out --on")
        if self.cpus < 1:
            raise ConfigError(f"cpus = {self.cpus} is not allowed; allowed: 1 or more")
        if self.address not in (None, "auto") and not re.fullmatch(r"[^/]+:[0-9]{1,5}", self.address or ""):
            raise ConfigError(f"{self.address!r} is no address of a cluster; allowed: HOST:PORT of its head, or auto")

    @contextmanager
    def crew(self, graph: AttributedGraph, splits: Splits, store: RunStore) -> Iterator[Crew]:
        """The cluster's workers; it is begun, or connected to, when the first job is there."""
        with ExitStack() as stack:
            yield _Workers(self, graph, splits, store, stack)

    def found(self) -> str:
        """What the cluster has, in words.

        Raises:
            ConfigError: there is none, or its machines have other versions than this one.
        """
        with ExitStack() as stack:
            ray = _connected(self, _ROOM, stack)
            nodes = _nodes(ray)
            has = ray.cluster_resources()
            gpus = f", {has['GPU']:.0f} GPUs" if has.get("GPU") else ""
            return f"{len(nodes)} node{'s' * (len(nodes) != 1)}, {has.get('CPU', 0):.0f} processor cores{gpus}"


def answers(address: str, patience: float) -> bool:
    """Whether anything listens at HOST:PORT, within so many seconds."""
    host, _, port = address.rpartition(":")
    with suppress(OSError, OverflowError, UnicodeError), socket.create_connection((host, int(port or "-1")), patience):
        return True
    return False


def _connected(place: Ray, room: int, stack: ExitStack) -> Any:
    """Ray, connected to the place until `stack` is closed.

    Args:
        place: the place.
        room: bytes that the object store of a cluster of our own has.
        stack: what undoes it.
    """
    # Ray sets its own answer to SIGTERM, an exit by which blocks are left in order.
    if threading.current_thread() is threading.main_thread():
        stack.callback(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
    ray = _ray()
    if ray.is_initialized():
        raise ConfigError("this process is connected to a cluster of Ray already; call ray.shutdown() first")
    options: dict[str, Any] = {"address": place.address}
    if place.address is None:
        folder = stack.enter_context(temporary_folder())
        stack.enter_context(_guarded())
        options = {
            "address": "local",
            "num_cpus": cores(),
            "include_dashboard": False,
            "object_store_memory": room,
            "_node_ip_address": "127.0.0.1",
            "_temp_dir": str(folder / "r"),  # Ray opens it to all; the folder around it is private
        }
    stack.enter_context(_heard_apart())
    stack.callback(ray.shutdown)
    where = place.address or "this machine"
    if ":" in where and not answers(where, _PATIENCE):
        raise ConfigError(f"no cluster of Ray on {where}: nothing listens there; start one with ray start --head")
    try:
        with _environment(_QUIET):  # which Ray reads again as it connects
            ray.init(
                **options, log_to_driver=False, logging_level="ERROR", runtime_env={"env_vars": threads(place.cpus)}
            )
    except (ConnectionError, RuntimeError, ValueError, OSError, AssertionError, ray.exceptions.RayError) as error:
        raise ConfigError(f"no cluster of Ray on {where}: {' '.join(str(error).split())[:500]}") from error
    most = max((node["Resources"].get("CPU", 0) for node in _nodes(ray)), default=0)
    if most < place.cpus:
        raise ConfigError(f"cpus = {place.cpus}, but no node of {where} has more than {most:.0f}; ask for fewer")
    _check_alike(ray)
    return ray


@cache
def _ray() -> Any:
    """The library; how it is to begin is asked of the environment when it is first loaded."""
    with _environment(_QUIET | _LOOPBACK):
        import ray
    return ray


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _guarded() -> Iterator[None]:
    """Clusters that begin in this block ask whoever connects for a token that nobody else knows."""
    raylet: Any = import_module("ray._raylet")

    def look_again() -> None:
        raylet.Config.initialize("")
        raylet.AuthenticationTokenLoader.instance().reset_cache()

    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    try:
        with _environment(_QUIET | token):
            look_again()
            yield
    finally:
        look_again()


@contextmanager
def _heard_apart() -> Iterator[None]:
    """What Ray says of its nodes goes to stderr in this block, and no more than a sentence; it takes stdout, which has results."""
    worker: Any = import_module("ray._private.worker")
    before = worker.print_to_stdstream

    def say(data: Mapping[str, Any], **_: object) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.write("".join(f"Ray: {str(line).strip().partition('. ')[0]}\n" for line in data["lines"]))
            sys.stderr.flush()

    worker.print_to_stdstream = say
    try:
        yield
    finally:
        worker.print_to_stdstream = before


def _nodes(ray: Any) -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


@cache
def stamp() -> dict[str, str]:
    """What has to be the same on two machines for the same bits: Python, our sources, and what computes."""
    digest = hashlib.sha256()
    package = Path(__file__).resolve().parents[1]
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    packages = machine_stamp()["packages"]
    kept = {name: str(packages[name]) for name in ("torch", "numpy", "scipy", "scikit-learn", "numba")}
    ours = f"{version('uge-core')} ({digest.hexdigest()[:12]})"
    return {"Python": platform.python_version(), "uge_core": ours, **kept}


def _on_node(node: str) -> Any:
    """The node with this number and no other."""
    _ray()  # before anything of it
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node, soft=False)


def _look() -> Callable[[], dict[str, str]]:
    """A function that travels by value, as a machine may have another uge_core, or none."""

    def look() -> dict[str, str]:
        import platform

        try:
            from uge_core.runs.on_ray import stamp
        except ImportError as error:
            return {"Python": platform.python_version(), "uge_core": f"one that cannot be loaded ({error})"}
        return stamp()

    return look


def _check_alike(ray: Any) -> None:
    """Refuses a cluster with a machine that would compute other bits.

    Raises:
        ConfigError: what was found, and where.
    """
    look = ray.remote(num_cpus=0)(_look())
    nodes = _nodes(ray)
    asked = [look.options(scheduling_strategy=_on_node(node["NodeID"])).remote() for node in nodes]
    try:
        found = ray.get(asked, timeout=_SILENCE)
    except ray.exceptions.RayError as error:
        raise ConfigError(f"a node of the cluster does not answer ({_first_line(error)}); see to it") from error
    for node, there in zip(nodes, found, strict=True):
        _refuse_others(there, node["NodeManagerAddress"])


def _refuse_others(there: Mapping[str, str], where: str) -> None:
    here = stamp()
    other = [f"{name} {there.get(name, 'none')} (here {here[name]})" for name in here if there.get(name) != here[name]]
    if other:
        raise ConfigError(
            f"node {where} of the cluster has {', '.join(other)}, by which bits would differ; install there what is here"
        )


class _Mailbox:
    """Where tasks put what they tell, and look whether they are to stop; it keeps the last of each."""

    def __init__(self) -> None:
        self.stopped = False
        self._news: dict[int, tuple[Any, str]] = {}
        self._held: dict[tuple[int, str], Held] = {}
        self._new: set[tuple[int, str]] = set()

    def tell(self, job: int, news: Any, where: str) -> bool:
        if news is not None:
            self._news[job] = (news, where)
        return self.stopped

    def keep(self, job: int, stage: str, held: Held, new: bool = True) -> None:
        self._held[job, stage] = copy.deepcopy(held)  # so that the object store is free again
        self._new |= {(job, stage)} if new else set()

    def held(self, job: int, stage: str) -> Held | None:
        return self._held.get((job, stage))

    def take(self) -> tuple[dict[int, tuple[Any, str]], dict[tuple[int, str], Held]]:
        """What was told since the last time."""
        news, held = self._news, {key: self._held[key] for key in self._new}
        self._news, self._new = {}, set()
        return news, held

    def forget(self, job: int) -> None:
        self._held = {key: held for key, held in self._held.items() if key[0] != job}
        self._new = {key for key in self._new if key[0] != job}

    def stop(self) -> None:
        self.stopped = True


class _Floors(dict[str, Any]):
    """Known floors, with those apart that were measured since."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        super().__init__(known)
        self.new: dict[str, Any] = {}

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self.new[key] = value


class _SentCheckpoint(Checkpoint):
    """One that goes by the mailbox to the process that waits, which writes it."""

    def __init__(self, mailbox: Any, job: int, runs: Sequence[str], deterministic: bool) -> None:
        super().__init__(Path(), runs, deterministic=deterministic)
        self._mailbox, self._job = mailbox, job

    def write(self, stage: str, held: Held) -> None:
        # Waited for, so that what it costs is counted, and no more than one is on its way.
        _ray().get(self._mailbox.keep.remote(self._job, stage, held))

    def load(self, stage: str) -> Held | None:
        held: Held | None = _ray().get(self._mailbox.held.remote(self._job, stage))
        return held


class _Wire:
    """The line of a task on a cluster.

    Attributes:
        floors: those that were sent, and those that were measured.
        checkpoint: that of a pass.
        ranks: one process by itself trains a pass.
    """

    def __init__(self, parcel: _Parcel) -> None:
        """Asks whether the task is still wanted, as it may have waited for long."""
        self._mailbox, self._job = parcel.mailbox, parcel.job
        self.floors = _Floors(parcel.floors)
        self.checkpoint = parcel.pass_ and _SentCheckpoint(self._mailbox, self._job, *parcel.pass_)
        self.ranks = ALONE
        self._where, self._last = _where(), 0.0
        self._asked = self._mailbox.tell.remote(self._job, None, self._where)
        if _ray().get(self._asked):
            raise _Stopped

    def tell(self, news: Any) -> None:
        now = time.monotonic()
        if now - self._last < _OFTEN:
            return
        self._last, ray = now, _ray()
        ready, _ = ray.wait([self._asked], timeout=0)
        if not ready:
            return
        if ray.get(self._asked):
            raise _Stopped
        self._asked = self._mailbox.tell.remote(self._job, news, self._where)


def _where() -> str:
    """The number of this node."""
    return str(_ray().get_runtime_context().get_node_id())


@dataclass(frozen=True, eq=False)
class _Parcel:
    """What goes with a task.

    Attributes:
        job: its number.
        mailbox: where its news go.
        floors: those of audits that are known.
        pass_: of a pass, what names its checkpoint: its runs, and whether it is deterministic.
        stamp: what has to be on the worker.
    """

    job: int
    mailbox: Any
    floors: Mapping[str, Any]
    pass_: tuple[Sequence[str], bool] | None
    stamp: Mapping[str, str]


def _carry_out(
    task: Task, graph: AttributedGraph, split: LinkSplit, parcel: _Parcel
) -> tuple[Any, UgeError | None, dict[str, Any]]:
    """A task on a worker: what it gave, or the error of ours that it raised, and the floors that it measured."""
    try:
        _refuse_others(parcel.stamp, _where())
        line = _Wire(parcel)
        return task.carry_out(graph, split, line), None, line.floors.new
    except UgeError as error:
        return None, error, {}
    except _Stopped:
        return None, WorkerLost("it was stopped"), {}


class _Workers(Crew):
    """Whoever works for one sweep on a cluster."""

    def __init__(self, place: Ray, graph: AttributedGraph, splits: Splits, store: RunStore, stack: ExitStack) -> None:
        """Nobody is called before the first job is there; `stack` says when the sweep is over."""
        self._place, self._graph, self._split_of, self._store, self._stack = place, graph, splits, store, stack
        self.abreast = max(1, cores() // place.cpus)
        self._sent = 0
        self._splits: dict[int, Any] = {}
        self._names: dict[str, str] = {}
        self._told: set[int] = set()
        self._measuring: set[str] = set()
        self._measured: set[str] = set()

    def outcomes(self, waiting: deque[AnyJob], tick: Callable[[], None]) -> Jobs[AnyJob]:
        ray, running = self._cluster[0], dict[Any, tuple[int, AnyJob]]()
        try:
            while waiting or running:
                # One more than there is room for, so that nobody waits; more would be marked as begun for nothing.
                most = ray.cluster_resources().get("CPU", 0) // self._place.cpus + 1
                while len(running) < most and (job := self._next(waiting)) is not None:
                    waiting.remove(job)
                    number, ref = self._send(job)
                    running[ref] = number, job
                done, _ = ray.wait(list(running), num_returns=1, timeout=_TURN)
                self._hear(dict(running.values()))
                tick()
                for ref in done:
                    number, job = running.pop(ref)
                    outcome = self._outcome(ref, number, job)
                    del ref
                    yield job, outcome
        finally:
            self._stop(running)

    @cached_property
    def _cluster(self) -> tuple[Any, Any, Any, Any]:
        """Ray, connected; the mailbox; what carries out a task; the graph, which is in the object store once."""
        ray = _connected(self._place, _ROOM + 4 * _size(self._graph), self._stack)
        own = _on_node(ray.get_runtime_context().get_node_id())
        mailbox = ray.remote(num_cpus=0, scheduling_strategy=own)(_Mailbox).remote()
        task = ray.remote(num_cpus=self._place.cpus, max_retries=_RETRIES)(_carry_out)
        return ray, mailbox, task, ray.put(self._graph)

    def _next(self, waiting: deque[AnyJob]) -> AnyJob | None:
        """The first that waits for no floors which another is measuring."""
        return next((job for job in waiting if job.floors not in self._measuring), None)

    def _send(self, job: Job) -> tuple[int, Any]:
        """Sends a job; its number, and where its result will be."""
        ray, mailbox, carry_out, graph = self._cluster
        task, checkpoint = job.begin(), job.checkpoint
        self._sent += 1
        for stage, held in (checkpoint.stages() if checkpoint else {}).items():
            mailbox.keep.remote(self._sent, stage, held, new=False)
        split = self._split_of(job.config)
        if id(split) not in self._splits:
            self._splits[id(split)] = ray.put(split)
        parcel = _Parcel(
            self._sent,
            mailbox,
            self._store.floors.about(self._graph.fingerprint),
            (checkpoint.runs, checkpoint.deterministic) if checkpoint else None,
            stamp(),
        )
        if job.floors and job.floors not in self._measured:
            self._measuring.add(job.floors)
        gpus = 1 if task.device != "cpu" and ray.cluster_resources().get("GPU") else 0
        return self._sent, carry_out.options(num_gpus=gpus).remote(task, graph, self._splits[id(split)], parcel)

    def _hear(self, running: Mapping[int, Job]) -> None:
        """Tells jobs what their tasks told, and puts their checkpoints into the store."""
        ray, mailbox, *_ = self._cluster
        try:
            told, kept = ray.get(mailbox.take.remote())
        except ray.exceptions.RayError as error:
            raise WorkerLost(f"the cluster of Ray is gone ({_first_line(error)}); resume when it is back") from error
        for number, (news, where) in told.items():
            if number in running:
                self._told.add(number)
                running[number].heard(news, self._name(where))
        for (number, stage), held in kept.items():
            if number in running and (checkpoint := running[number].checkpoint):
                checkpoint.write(stage, held)

    def _name(self, node: str) -> str:
        """A node as people are told: its address, and the beginning of its number, as a machine may have several."""
        if node not in self._names:
            addresses = {n["NodeID"]: n["NodeManagerAddress"] for n in self._cluster[0].nodes()}
            self._names[node] = f"{addresses.get(node, 'a node')} ({node[:4]})"
        return self._names[node]

    def _outcome(self, ref: Any, number: int, job: Job) -> Outcome:
        ray, mailbox, *_ = self._cluster
        wrong = ray.exceptions
        try:
            value, error, floors = ray.get(ref)
        except wrong.OutOfMemoryError as lost:
            value, error, floors = None, OutOfMemory(f"a machine's memory was used up: {_first_line(lost)}"), {}
        except wrong.RayTaskError as raised:
            raise (raised.cause or raised) from raised
        except wrong.RayError as lost:
            text = f"a task was lost with the machine it ran on, {_RETRIES + 1} times ({_first_line(lost)})"
            value, error, floors = None, WorkerLost(f"{text}; resume when the cluster is well"), {}
        for key, floor in floors.items():
            self._store.floors[key] = floor
        if job.floors and error is None:
            self._measured.add(job.floors)
        self._measuring.discard(job.floors or "")
        mailbox.forget.remote(number)
        return Outcome(value, error)

    def _stop(self, running: Mapping[Any, tuple[int, Job]]) -> None:
        """Ends what still runs; passes that have trained have a moment to bring their checkpoints."""
        if not running:
            return
        ray, mailbox, *_ = self._cluster
        left = list(running)
        try:
            with suppress(WorkerLost):
                mailbox.stop.remote()
                trained = [ref for ref, (n, job) in running.items() if n in self._told and job.checkpoint]
                for ref in set(running) - set(trained):
                    ray.cancel(ref, force=True)
                left, until = trained, time.monotonic() + _GRACE
                while left and time.monotonic() < until:
                    _, left = ray.wait(left, num_returns=len(left), timeout=_TURN)
                    self._hear(dict(running.values()))
        finally:
            for ref in left:
                ray.cancel(ref, force=True)


def _size(thing: Any) -> int:
    """Bytes of a thing on its way to another process."""
    parts: list[pickle.PickleBuffer] = []
    head = pickle.dumps(thing, 5, buffer_callback=parts.append)
    return len(head) + sum(part.raw().nbytes for part in parts)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:300]
