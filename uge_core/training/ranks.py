"""Several processes that train one embedding, started by torchrun: who is there, and how rows go between them.

Messages are sent from one rank to another (torch.distributed, gloo): rows of (N, w), blocks' sums, and what rank 0 says.
What is trained next goes through the rendezvous' store, where others wait for it as long as it takes.
"""

from __future__ import annotations

import copy
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import psutil
import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from uge_core import row_products
from uge_core.autograd import apply
from uge_core.backbones.base import Backbone
from uge_core.debias.heads.base import NoHead
from uge_core.errors import ConfigError, ProcessLost
from uge_core.machine import processor
from uge_core.ranks import Ranks
from uge_core.registry import find, names
from uge_core.training.checkpoint import Held
from uge_core.training.config import RunConfig
from uge_core.training.edge_loss.compiled import tasks
from uge_core.training.edge_loss.pairs import Pairs
from uge_core.training.members import Member
from uge_core.training.state import TABLES

LEAST = 60.0
"""Seconds that a rank waits for another at least."""
UNKNOWN = 600.0
"""Seconds that it waits before a step's time is known, and after rank 0 has written a checkpoint."""
_STEPS = 20  # steps of the longest kind that a rank may be behind
_LOOK = 0.01  # seconds between two looks for what is trained next
_ROWS = 64  # tables are cut at multiples of it: the fused Adam takes the last few numbers of a tensor otherwise


def formed(least: float = LEAST) -> Several:
    """This process as one of those that torchrun has started, once all are there.

    Messages stay on the loopback interface where all processes are on this machine, unless GLOO_SOCKET_IFNAME names
    another.

    Args:
        least: how many seconds it waits for another at least.

    Raises:
        ProcessLost: some did not come.
    """
    size, here = int(os.environ["WORLD_SIZE"]), os.environ.get("LOCAL_WORLD_SIZE", "1")
    loopback = _loopback() if int(here) == size else None
    if loopback is not None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)
    limit = timedelta(seconds=UNKNOWN)
    try:
        store, rank, size = next(iter(rendezvous("env://", timeout=limit)))
        # workers that torchrun starts again must not read what those before have said
        store = PrefixStore(f"uge/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=limit)
    except (RuntimeError, ValueError) as error:
        raise ProcessLost(f"the {size} processes of this training did not all come together: {error}") from error
    return Several(rank, size, store, least)


def _here() -> list[int]:
    """The processor cores this thread may use, by number; empty where the system does not say."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _use(cores: Sequence[int]) -> None:
    if cores:
        os.sched_setaffinity(0, cores)
        torch.set_num_threads(len(cores))


def _loopback() -> str | None:
    """The interface that 127.0.0.1 is on."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(a.address == "127.0.0.1" for a in addresses):
            return str(name)
    return None


def shared_out(
    ranks: Ranks, config: RunConfig, backbone: Backbone, pairs: Pairs, members: Sequence[Member], device: torch.device
) -> Ranks:
    """The ranks with the rows of a graph shared out among them: by what the edge loss does for each.

    Args:
        ranks: who is there.
        config: any member's.
        backbone: theirs.
        pairs: of the training edges.
        members: those that train.
        device: where.

    Raises:
        ConfigError: several processes cannot train this together; it says what they can.
    """
    if ranks.size == 1:
        return ranks
    check_shared(config, backbone, members, device)
    cuts, _ = tasks(pairs)
    if ranks.size > len(cuts):
        raise ConfigError(
            f"{ranks.size} processes, but the edge loss of this graph is cut into {len(cuts)} tasks; use "
            f"--nproc-per-node {len(cuts)} or fewer"
        )
    begins = [cuts[-(-len(cuts) * r // ranks.size)][1] for r in range(ranks.size)]
    multiple = _ROWS if backbone.messages == "none" else row_products.BLOCK
    return ranks.cut([*begins, pairs.num_nodes], multiple)


def check_shared(config: RunConfig, backbone: Backbone, members: Sequence[Member], device: torch.device) -> None:
    """Refuses what several processes cannot train together, whatever the graph; arguments as for `shared_out`.

    Raises:
        ConfigError: what was found, and what they can.
    """
    for found, allowed in _unsupported(config, backbone, members, device):
        raise ConfigError(
            f"{found} cannot be trained over several processes; allowed: {allowed}. Use one process, without torchrun"
        )


def _unsupported(
    config: RunConfig, backbone: Backbone, members: Sequence[Member], device: torch.device
) -> Iterator[tuple[str, str]]:
    """What several processes cannot train, each with what they can."""
    if device.type != "cpu":
        yield f"device = {device.type}", "--device cpu"
    if not _by_rows(backbone):
        known = [name for name in names("backbones") if _by_rows(find("backbones", name)())]
        yield f"backbone = {backbone.name}", f"{', '.join(known)}, and line of order 1"
    if config.negatives != "shared":
        yield f"negatives = {config.negatives}", "shared"
    for m in members:
        if not isinstance(m.head, NoHead) or not m.penalty.by_rows:
            yield f"method = {m.config.method}", "methods without an adversary, a filter or a projection in training"


def _by_rows(backbone: Backbone) -> bool:
    simple = not backbone.has_context and backbone.plan() is None
    return backbone.by_rows and backbone.loss == "cross-entropy" and simple


@dataclass
class Traffic:
    """What this rank has sent.

    Attributes:
        sent: bytes handed to torch.distributed.
        messages: in how many messages.
    """

    sent: int = 0
    messages: int = 0


@dataclass
class _Patience:
    """How long to wait: by the longest step so far. Nobody is waited for once one is lost."""

    least: float
    lost: bool = False
    seconds: float = UNKNOWN
    longest: float = 0.0
    steps: int = 0

    def begin(self) -> None:
        """Another pass begins, with steps of another length."""
        self.seconds, self.longest, self.steps = UNKNOWN, 0.0, 0

    def note(self, step: float) -> None:
        self.steps += 1
        if self.steps > 1:  # the first loads kernels
            self.longest = max(self.longest, step)
            self.seconds = max(self.least, _STEPS * self.longest)


class Several(Ranks):
    """One of several processes.

    Attributes:
        traffic: what it has sent so far.
        dismissed: whether this one, which leads, has told the others that nothing more comes.
    """

    def __init__(self, rank: int, size: int, store: Store, least: float) -> None:
        """Of a group that `torch.distributed` has formed; `store` is its rendezvous, `least` as for `formed`."""
        self.rank, self.size, self.traffic = rank, size, Traffic()
        self.here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        self.dismissed = False
        self._store, self._patience = store, _Patience(least)
        self._tasks = 0
        self._cores = _here()
        self._rows: list[int] = []
        self._slopes: list[int] = []

    @property
    def lost(self) -> bool:
        """Whether another process is known to have ended, also to those that `cut` gave."""
        return self._patience.lost

    def lose(self) -> None:
        """Notes that another process has ended."""
        self._patience.lost = True

    @property
    def others(self) -> list[int]:
        """The other ranks' numbers."""
        return [r for r in range(self.size) if r != self.rank]

    def cut(self, slopes: Sequence[int], multiple: int) -> Several:
        """See `Ranks.cut`, which begins a pass; rank 0 has some row of every graph."""
        self._patience.begin()
        bound, n = copy.copy(self), slopes[-1]
        inner = [min(n, max(1, -(-cut // multiple)) * multiple) for cut in slopes[1:-1]]
        bound._rows, bound._slopes = [0, *inner, n], list(slopes)
        return bound

    def span(self, num_nodes: int) -> tuple[int, int]:
        """See `Ranks.span`."""
        return self._rows[self.rank], self._rows[self.rank + 1]

    def slopes(self, num_nodes: int) -> tuple[int, int]:
        """See `Ranks.slopes`."""
        return self._slopes[self.rank], self._slopes[self.rank + 1]

    def zeros(self, z: Tensor) -> Tensor:
        """See `Ranks.zeros`; memory that nobody writes to is not taken."""
        first, last = self.slopes(z.shape[-2])
        out = torch.empty_like(z, memory_format=torch.contiguous_format)
        out[..., first:last, :] = 0
        return out

    def scaled(self, gradient: Tensor, factor: Tensor) -> Tensor:
        """See `Ranks.scaled`."""
        first, last = self.slopes(gradient.shape[-2])
        out = torch.empty_like(gradient)
        torch.mul(gradient[..., first:last, :], factor, out=out[..., first:last, :])
        return out

    def own(self, rows: Tensor) -> Tensor:
        """See `Ranks.own`."""
        first, last = self.span(rows.shape[-2])
        return rows[..., first:last, :].clone()

    def complete(self, own: Tensor) -> Tensor:
        """See `Ranks.complete`."""
        return self._moved(own, self._rows, [(0, self._rows[-1])] * self.size)

    def whole(self, own: Tensor) -> Tensor:
        """See `Ranks.whole`."""
        return apply(_Whole, own, self)

    def collected(self, own: Tensor) -> Tensor:
        """See `Ranks.collected`."""
        return self._moved(own, self._rows, [(0, self._rows[-1]), *[(0, 0)] * (self.size - 1)])

    def from_slopes(self, gradient: Tensor) -> Tensor:
        """(..., n, w) the gradient of this rank's rows, of one (..., N, w) that each rank has for its `slopes`."""
        first, last = self._slopes[self.rank], self._slopes[self.rank + 1]
        return self._moved(gradient[..., first:last, :], self._slopes, self._spans)

    def pooled(self, parts: Sequence[Tensor]) -> None:
        """See `Ranks.pooled`."""
        bounds = [-(-len(parts) * r // self.size) for r in range(self.size + 1)]
        works = []
        for peer in self.others:
            for i in self.share(len(parts)):
                works.append(self._send(parts[i], peer, i))
            for i in range(bounds[peer], bounds[peer + 1]):
                works.append(self._receive(parts[i], peer, i))
        self._wait(works)

    def added(self, parts: Sequence[Tensor], like: Tensor) -> Tensor:
        """See `Ranks.added`: a total goes from rank to rank, each of which adds its parts to it."""
        left, last = list(parts), self.size - 1
        if self.rank == 0:
            total = left.pop(0).contiguous()
        else:
            total = torch.empty_like(like, memory_format=torch.contiguous_format)
            self._wait([self._receive(total, self.rank - 1, 0)])
        for part in left:
            total += part
        if self.rank < last:
            self._wait([self._send(total, self.rank + 1, 0)])
            self._wait([self._receive(total, last, 1)])
        else:
            self._wait([self._send(total, peer, 1) for peer in self.others])
        return total

    def told(self, word: bool, *, slow: bool = False) -> bool:
        """See `Ranks.told`."""
        said = torch.tensor([int(word)])
        self._tell(said, UNKNOWN if slow else 0.0)
        return bool(said.item())

    def dealt(self, held: Held | None) -> Held | None:
        """See `Ranks.dealt`: each rank is sent its own rows of tables, and all of the rest."""
        about: dict[str, Any] = {}
        if held is not None:
            arrays = {name: [str(a.dtype), list(a.shape)] for name, a in held.arrays.items()}
            about = {"record": held.record, "arrays": arrays}
        about = self._told_json(about)
        if not about:
            return None
        out = {}
        for name, (kind, shape) in about["arrays"].items():
            whole = torch.tensor(held.arrays[name]) if held is not None else torch.empty(0)
            if name.startswith(TABLES):
                whole = whole if held is not None else torch.empty(*shape[:-2], 0, shape[-1])
                spread = [0, *[shape[-2]] * self.size]  # rank 0 has all rows
                out[name] = self._moved(whole, spread, self._spans).numpy()
                continue
            if held is None:
                whole = torch.from_numpy(np.empty(shape, kind))
            self._tell(whole, UNKNOWN)
            out[name] = whole.numpy()
        return Held(about["record"], out)

    def pace(self, seconds: float) -> None:
        """See `Ranks.pace`."""
        self._patience.note(seconds)

    # What goes through the store

    def agree(self, about: Callable[[], Mapping[str, str]]) -> None:
        """See `Ranks.agree`; the processor's kind must be one too, as what each rank computes for itself goes by it.

        Raises:
            ConfigError: two ranks differ; each rank raises it.
        """
        kind = f"{processor()}, {torch.backends.cpu.get_cpu_capability()}"
        self._write(f"about/{self.rank}", json.dumps({**about(), "the processor": kind}))
        first = json.loads(self._read("about/0"))
        for rank in range(1, self.size):
            other = json.loads(self._read(f"about/{rank}"))
            for name in sorted({*first, *other}):
                if first.get(name) != other.get(name):
                    raise ConfigError(
                        f"rank 0 and rank {rank} differ in {name}: {first.get(name)} and {other.get(name)}; processes "
                        "that train one embedding must have the same graph, command, code, packages and kind of "
                        "processor, so give each machine copies"
                    )

    def announce(self, task: dict[str, Any]) -> None:
        """See `Ranks.announce`."""
        self._write(f"task/{self._tasks}", json.dumps(task))
        self._tasks += 1

    def dismiss(self) -> None:
        """See `Ranks.dismiss`; this one has all processor cores again. Further calls do nothing."""
        if not self.dismissed:
            self.dismissed = True
            with suppress(ProcessLost):  # nobody is left to be told
                self.announce({})
            _use(self._cores)

    def next_task(self) -> dict[str, Any] | None:
        """What rank 0 announces next, however long that takes; None where nothing more comes."""
        task: dict[str, Any] = json.loads(self._read(f"task/{self._tasks}"))
        self._tasks += 1
        return task or None

    def _write(self, key: str, text: str) -> None:
        try:
            self._store.set(key, text)
        except RuntimeError as error:
            raise self._lost(error) from error

    def _read(self, key: str) -> bytes:
        try:
            while not self._store.check([key]):
                time.sleep(_LOOK)
            return bytes(self._store.get(key))
        except RuntimeError as error:  # torch's errors of a store that is gone
            raise self._lost(error) from error

    # Messages

    @property
    def _spans(self) -> list[tuple[int, int]]:
        return list(zip(self._rows[:-1], self._rows[1:], strict=True))

    def _moved(self, source: Tensor, cuts: Sequence[int], wanted: Sequence[tuple[int, int]]) -> Tensor:
        """Rows from where they are to where they are wanted.

        Args:
            source: (..., n, w) this rank's, from row ``cuts[rank]`` to ``cuts[rank + 1]``.
            cuts: (size + 1,) which rows each rank has.
            wanted: by rank, the first row that it wants and the one after the last.

        Returns:
            (..., m, w) those that this rank wants.
        """
        begin, (low, high) = cuts[self.rank], wanted[self.rank]
        lead, (height, width) = source.shape[:-2], source.shape[-2:]
        source = source.detach().reshape(math.prod(lead), height, width)
        target = source.new_empty(len(source), high - low, source.shape[-1])
        works = []
        for peer in range(self.size):
            first, last = max(begin, wanted[peer][0]), min(cuts[self.rank + 1], wanted[peer][1])
            if peer == self.rank:
                if first < last:
                    target[:, first - low : last - low] = source[:, first - begin : last - begin]
                continue
            if first < last:
                works += [self._send(s[first - begin : last - begin], peer, k) for k, s in enumerate(source)]
            first, last = max(cuts[peer], low), min(cuts[peer + 1], high)
            if first < last:
                works += [self._receive(t[first - low : last - low], peer, k) for k, t in enumerate(target)]
        self._wait(works)
        return target.reshape(*lead, high - low, width)

    def _told_json(self, value: dict[str, Any]) -> dict[str, Any]:
        text = torch.tensor(list(json.dumps(value).encode()), dtype=torch.uint8)
        length = torch.tensor([len(text)])
        self._tell(length, UNKNOWN)
        if self.rank:
            text = torch.empty(int(length.item()), dtype=torch.uint8)
        self._tell(text, UNKNOWN)
        said: dict[str, Any] = json.loads(bytes(text.tolist()))
        return said

    def _tell(self, word: Tensor, patience: float) -> None:
        if self.rank == 0:
            self._wait([self._send(word, peer, 2) for peer in self.others], patience)
        else:
            self._wait([self._receive(word, 0, 2)], patience)

    def _send(self, tensor: Tensor, peer: int, tag: int) -> dist.Work:
        self.traffic.sent += tensor.numel() * tensor.element_size()
        self.traffic.messages += 1
        return self._begun(lambda: dist.isend(tensor.contiguous(), peer, tag=tag))

    def _receive(self, tensor: Tensor, peer: int, tag: int) -> dist.Work:
        return self._begun(lambda: dist.irecv(tensor, peer, tag=tag))

    def _begun(self, begin: Callable[[], dist.Work | None]) -> dist.Work:
        try:
            work = begin()
        except RuntimeError as error:
            raise self._lost(error) from error
        assert work is not None  # this rank is part of the group
        return work

    def _wait(self, works: Sequence[dist.Work], patience: float = 0.0) -> None:
        limit = timedelta(seconds=max(patience, self._patience.seconds))
        try:
            for work in works:
                work.wait(limit)
        except RuntimeError as error:
            raise self._lost(error) from error

    def share_cores(self) -> None:
        """Takes a share of the processor cores, where the ranks of this machine have been given the same ones."""
        machine, place = os.environ.get("GROUP_RANK", "0"), int(os.environ.get("LOCAL_RANK", "0"))
        count = self.here
        self._write(f"cores/{machine}/{place}", json.dumps(self._cores))
        given = [json.loads(self._read(f"cores/{machine}/{i}")) for i in range(count)]
        if any(cores != self._cores for cores in given):
            _use(self._cores)
        elif len(self._cores) >= count:
            begin, end = (len(self._cores) * i // count for i in (place, place + 1))
            _use(self._cores[begin:end])
        elif self._cores:  # threads of more processes than cores would only wait for one another
            _use([self._cores[place % len(self._cores)]])

    def close(self) -> None:
        """Ends the group."""
        self.dismiss() if self.rank == 0 and not self.lost else None
        with suppress(RuntimeError):
            dist.destroy_process_group()

    def _lost(self, error: RuntimeError) -> ProcessLost:
        self.lose()
        why = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        return ProcessLost(
            f"a process of the {self.size} that train together has ended or was not heard of for "
            f"{self._patience.seconds:.0f} s; what was trained up to the last checkpoint is kept: run the same command "
            f"again, under torchrun or not, or `uge runs resume RUN_ID`, and it goes on from there ({why})"
        )


class _Whole(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor, ranks: Several) -> Tensor:
        ctx.ranks = ranks
        return ranks.complete(own)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return ctx.ranks.from_slopes(grads[0]), None
