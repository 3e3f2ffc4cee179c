"""Discriminators: one small network per attribute, each with an Adam of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy, leaky_relu

from uge_core.adam import Adam
from uge_core.debias.penalties.discriminator import Answer, Build
from uge_core.row_products import plus, times

_SLOPE = 0.2
_KEPT = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True, eq=False)
class Target:
    """An attribute's answers, ready on a device.

    Attributes:
        nodes: (n,) the nodes that have one.
        values: (n,) int64 codes, or (n, G) float32 shares.
        chance: the loss of who knows the groups' shares alone, in nats.
    """

    nodes: Tensor
    values: Tensor
    chance: float

    @classmethod
    def of(cls, answer: Answer, device: torch.device) -> Target:
        """From an attribute's answers."""
        nodes, values = (torch.as_tensor(x, device=device) for x in (answer.nodes, answer.values))
        return cls(nodes, values, answer.chance)

    def loss(self, logits: Tensor, rows: Tensor | None = None) -> Tensor:
        """Mean cross-entropy in units of `chance`; `rows` are those of `nodes` that are asked, None all."""
        values = self.values if rows is None else self.values.index_select(0, rows)
        # one value for everybody says nothing about anybody
        return cross_entropy(logits, values) * (1 / self.chance if self.chance > 0 else 0.0)


class Discriminator:
    """A network from an embedding to the logits of an attribute's values, and what it learns with."""

    def __init__(self, leaves: list[Tensor], learning_rate: float) -> None:
        """From its weights and biases in turn."""
        self.leaves = [leaf.detach().clone().requires_grad_() for leaf in leaves]
        self.adam = Adam([(self.leaves, 0.0)], learning_rate)

    @classmethod
    def fresh(
        cls, dim: int, num_values: int, build: Build, generator: Generator, device: torch.device
    ) -> Discriminator:
        """Untrained: every number uniform in +-1 / sqrt(inputs), as torch's linear layers start."""
        sizes = [dim, *[build.width] * build.depth, num_values]
        leaves = []
        for fan_in, fan_out in pairwise(sizes):
            for shape in ((fan_in, fan_out), (fan_out,)):
                drawn = (torch.rand(shape, generator=generator) * 2 - 1) / math.sqrt(fan_in)
                leaves.append(drawn.to(device))
        return cls(leaves, build.learning_rate)

    def __call__(self, x: Tensor, *, frozen: bool) -> Tensor:
        """(n, G) logits; frozen: no gradient reaches the network."""
        leaves = [leaf.detach() for leaf in self.leaves] if frozen else self.leaves
        for i in range(0, len(leaves), 2):
            x = plus(times(x, leaves[i]), leaves[i + 1])
            if i + 2 < len(leaves):
                x = leaky_relu(x, _SLOPE)
        return x

    def learn(self, x: Tensor, target: Target, rows: Tensor | None) -> None:
        """One step on its own loss; `x` carries no gradient."""
        with torch.enable_grad():
            gradients = torch.autograd.grad(target.loss(self(x, frozen=False), rows), self.leaves)
        for leaf, gradient in zip(self.leaves, gradients, strict=True):
            leaf.grad = gradient
        self.adam.step()

    def state(self) -> dict[str, Tensor]:
        """Its numbers with Adam's."""
        tensors = {}
        for i, leaf in enumerate(self.leaves):
            tensors[str(i)] = leaf.detach()
            tensors |= {f"{i}.{name}": self.adam.state[leaf][name] for name in _KEPT if leaf in self.adam.state}
        return tensors

    @classmethod
    def from_state(cls, state: dict[str, Tensor], learning_rate: float, device: torch.device) -> Discriminator:
        """What `state` gave."""
        made = cls([state[str(i)].to(device) for i in range(sum(name.isdigit() for name in state))], learning_rate)
        for i, leaf in enumerate(made.leaves):
            if f"{i}.step" in state:
                made.adam.state[leaf] = {name: state[f"{i}.{name}"].clone().to(device) for name in _KEPT}
        return made
