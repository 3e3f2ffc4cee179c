"""How an epoch's step runs: as it is written, or recorded once on a GPU and replayed.

Written out, a step of many members is thousands of small launches, each of which the host must issue; a
recording (a CUDA graph) is one. What a step draws is made by the host beforehand and sent to places that
stay, so that nothing in the loop waits for the device. Recording is tried where all members allow it; where
it fails the step runs as it is written, and the stamp says which ran and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Generator, Tensor

from uge_core.adam import Adam
from uge_core.debias.penalties.base import Ahead, Penalty

Gaps = Callable[[Sequence[Tensor]], list[Tensor]]
"""From what loss and penalties see of each member to the members' penalties."""
Body = Callable[[int, bool, Gaps], tuple[Tensor, Tensor]]
"""An epoch's step, with the epoch, whether the losses are wanted and the penalties: (K,) losses and (K,) penalties."""
Recorder = Callable[[Callable[[], tuple[Tensor, Tensor]]], tuple[Callable[[], None], tuple[Tensor, Tensor]]]
"""Records a call: what runs it again, and the places its results are in."""


class EpochRunner(Protocol):
    """Runs the steps of a training."""

    @property
    def how(self) -> str:
        """In what way, for the stamp."""

    def __call__(self, epoch: int, want_loss: bool) -> tuple[Tensor, Tensor]:
        """(K,) losses, of use where they were wanted, and (K,) penalties; parameters have moved on."""


@dataclass(frozen=True, eq=False)
class AsWritten:
    """Runs the step anew each time."""

    body: Body
    penalties: Sequence[Penalty]
    streams: Sequence[Generator]
    how: str

    def __call__(self, epoch: int, want_loss: bool) -> tuple[Tensor, Tensor]:
        """See `EpochRunner`."""
        return self.body(epoch, want_loss, self._gaps)

    def _gaps(self, seen: Sequence[Tensor]) -> list[Tensor]:
        return [p(z, g) for p, z, g in zip(self.penalties, seen, self.streams, strict=True)]


class Replayed:
    """Replays a recorded step after its draws were put in place."""

    how = "recorded"

    def __init__(
        self,
        body: Body,
        load: Callable[[int], None],
        penalties: Sequence[Ahead],
        streams: Sequence[Generator],
        dim: int,
        device: torch.device,
        record: Recorder,
    ) -> None:
        """Records the step; the caller puts parameters and moments back to where they were."""
        self.load, self.penalties, self.streams, self.dim, self.device = load, penalties, streams, dim, device
        # of copies of the streams, as recording is no step
        self.places = [tuple(t.to(device) for t in drawn) for drawn in self._draws([_copy(g) for g in streams])]
        load(1)

        def gaps(seen: Sequence[Tensor]) -> list[Tensor]:
            return [p.measure(z, at) for p, z, at in zip(penalties, seen, self.places, strict=True)]

        self.again, self.results = record(lambda: body(1, True, gaps))

    def __call__(self, epoch: int, want_loss: bool) -> tuple[Tensor, Tensor]:
        """See `EpochRunner`."""
        self.load(epoch)
        for places, drawn in zip(self.places, self._draws(self.streams), strict=True):
            for place, fresh in zip(places, drawn, strict=True):
                place.copy_(fresh.pin_memory() if self.device.type == "cuda" else fresh, non_blocking=True)
        self.again()
        return self.results

    def _draws(self, streams: Sequence[Generator]) -> list[tuple[Tensor, ...]]:
        return [p.draw(g, self.dim) or () for p, g in zip(self.penalties, streams, strict=True)]


def choose(
    body: Body,
    load: Callable[[], Callable[[int], None] | None],
    penalties: Sequence[Penalty],
    streams: Sequence[Generator],
    dim: int,
    device: torch.device,
    adam: Adam,
    *,
    fixed: bool,
    record: Recorder | None = None,
) -> EpochRunner:
    """The steps of a training: replayed on a GPU where that is possible, else as written.

    Args:
        body: the step.
        load: stages the edge loss's draws, see `EdgeLoss.stage`; called only where the step is recorded.
        penalties: of the members.
        streams: of the members' penalties.
        dim: d.
        device: where the members live.
        adam: the optimiser, whose parameters and moments stay what they are.
        fixed: whether the members' steps do the same at every epoch but for their draws.
        record: how a call is recorded; None: as a CUDA graph on a GPU, and not at all elsewhere.
    """
    if record is None and device.type != "cuda":
        return AsWritten(body, penalties, streams, "compiled passes")
    ahead = [p for p in penalties if isinstance(p, Ahead) and p.draw(_copy(streams[0]), dim) is not None]
    if not fixed or len(ahead) < len(penalties):
        return AsWritten(body, penalties, streams, "as written: a member's steps differ by more than their draws")
    if torch.are_deterministic_algorithms_enabled():
        return AsWritten(body, penalties, streams, "as written: the same bits were asked for")
    staged = load()
    if staged is None:
        return AsWritten(body, penalties, streams, "as written: epochs differ in size")
    before = _Snapshot(adam)
    try:
        steps: EpochRunner = Replayed(body, staged, ahead, streams, dim, device, record or _cuda_graph)
    except RuntimeError as error:
        # the edge loss stays staged, so that what is written out must load its draws too
        def loaded(epoch: int, want_loss: bool, gaps: Gaps) -> tuple[Tensor, Tensor]:
            staged(epoch)
            return body(epoch, want_loss, gaps)

        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        steps = AsWritten(loaded, penalties, streams, f"as written: recording failed ({reason})")
    finally:
        before.put_back()
    return steps


def _copy(stream: Generator) -> Generator:
    copy = Generator()
    copy.set_state(stream.get_state())
    return copy


class _Snapshot:
    """Parameters and moments as they were, put back in place: a recording reads and writes at their addresses."""

    def __init__(self, adam: Adam) -> None:
        self.adam = adam
        self.parameters = [(p, p.detach().clone()) for p in adam.leaves]
        self.state = [(t, t.clone()) for t in self._state()]
        self.known = {id(t) for t, _ in self.state}

    def _state(self) -> Iterable[Tensor]:
        return (t for state in self.adam.state.values() for t in state.values() if isinstance(t, Tensor))

    def put_back(self) -> None:
        """Undoes every step since."""
        with torch.no_grad():
            for p, before in self.parameters:
                p.copy_(before)
            for t, before in self.state:
                t.copy_(before)
            for t in self._state():
                if id(t) not in self.known:
                    t.zero_()


def _cuda_graph(call: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Callable[[], None], tuple[Tensor, Tensor]]:
    """Records `call` as a CUDA graph after three warm-up calls on a stream of their own, as torch asks for."""
    side: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = call()
    return graph.replay, results
