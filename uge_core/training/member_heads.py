"""The heads of an ensemble's members: their parameters, their draws and what penalties have learnt beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from uge_core.adam import Adam
from uge_core.training.checkpoint import Held
from uge_core.training.ends import End
from uge_core.training.members import Member
from uge_core.training.streams import stream

MOMENTS = ("exp_avg", "exp_avg_sq")
"""What Adam keeps of a parameter beside the number of its steps."""


def leaves(tensors: dict[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    """The tensors on the device, each one to be trained."""
    return {name: t.to(device).requires_grad_() for name, t in tensors.items()}


class MemberHeads:
    """The members' heads with their parameters, and what their penalties have learnt."""

    def __init__(self, members: Sequence[Member], starts: Sequence[End] | None, dim: int, device: torch.device) -> None:
        """Heads of `members` that go on from the ends `starts`, or begin where there are none."""
        self.members, self.starts = members, starts
        self.streams = [stream(m.config.seed, "head") for m in members]
        initial = [m.head.start(dim, g) for m, g in zip(members, self.streams, strict=True)]
        if starts is not None:
            # copies, as several members may go on from one end
            initial = [{name: t.clone() for name, (t, _) in end.head.items()} for end in starts]
            for m, end in zip(members, starts, strict=True):
                m.penalty.restore(end.learned)
        self.parameters = [leaves(part, device) for part in initial]

    @property
    def leaves(self) -> list[Tensor]:
        """All parameters, for the optimiser."""
        return [leaf for part in self.parameters for leaf in part.values()]

    def give_moments(self, adam: Adam) -> None:
        """Gives Adam what it kept where members go on from others' ends."""
        for part, end in zip(self.parameters, self.starts or (), strict=bool(self.starts)):
            for name, leaf in part.items():
                if end.head[name][1]:
                    adam.state[leaf] = {key: t.clone() for key, t in end.head[name][1].items()}

    def seen(self, z: Sequence[Tensor]) -> list[Tensor]:
        """What loss and penalties see of each member."""
        return [
            m.head.seen(zk, p, g) for m, zk, p, g in zip(self.members, z, self.parameters, self.streams, strict=True)
        ]

    def exported(self, z: Tensor) -> Tensor:
        """(K, N, d) what is kept of `z` (K, N, d)."""
        apart = z.unbind(0)
        return stacked(
            z, apart, [m.head.exported(zk, p) for m, zk, p in zip(self.members, apart, self.parameters, strict=True)]
        )

    def end(self, k: int, adam: Adam) -> dict[str, tuple[Tensor, dict[str, Tensor]]]:
        """Member k's parameters with what Adam keeps of each."""
        return {name: (leaf.detach(), dict(adam.state.get(leaf, {}))) for name, leaf in self.parameters[k].items()}

    def state(self, adam: Adam) -> dict[str, Any]:
        """What a checkpoint keeps."""
        arrays = {f"head.{k}": g.get_state() for k, g in enumerate(self.streams)}
        for k, (m, part) in enumerate(zip(self.members, self.parameters, strict=True)):
            arrays |= {f"penalty.{k}.{name}": t for name, t in m.penalty.state().items()}
            for name, leaf in part.items():
                arrays[f"head.{k}.{name}"] = leaf.detach()
                arrays |= {f"head.{k}.{name}.{key}": t for key, t in adam.state.get(leaf, {}).items()}
        return {name: t.cpu().numpy() for name, t in arrays.items()}

    def restore(self, held: Held, adam: Adam) -> None:
        """Takes back what `state` gave."""
        tensors = {name: torch.tensor(array) for name, array in held.arrays.items()}
        for k, (m, part, g) in enumerate(zip(self.members, self.parameters, self.streams, strict=True)):
            g.set_state(tensors[f"head.{k}"])
            prefix = f"penalty.{k}."
            m.penalty.restore({n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)})
            for name, leaf in part.items():
                with torch.no_grad():
                    leaf.copy_(tensors[f"head.{k}.{name}"])
                if f"head.{k}.{name}.step" in tensors:
                    adam.state[leaf] = {
                        key: tensors[f"head.{k}.{name}.{key}"].to(leaf.device) for key in ("step", *MOMENTS)
                    }


def stacked(z: Tensor, apart: Sequence[Tensor], seen: Sequence[Tensor]) -> Tensor:
    """(K, N, d') the members' embeddings in one, `z` itself where nobody changed anything.

    Narrower ones get zeros in front, which score nothing.

    Args:
        z: (K, N, d) what encoders gave.
        apart: its K parts.
        seen: what heads made of them.
    """
    if all(a is b for a, b in zip(apart, seen, strict=True)):
        return z
    width = max(s.shape[1] for s in seen)
    return torch.stack([torch.nn.functional.pad(s, (width - s.shape[1], 0)) for s in seen])
