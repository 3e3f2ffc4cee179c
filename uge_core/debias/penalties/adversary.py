r"""An adversary's penalty: minus the loss of discriminators that read the sensitive attributes out of z.

    - sum_{k in S} L_k(D_k(z), a_k),   L_k = mean cross-entropy / H(a_k)

D_k is a multilayer perceptron, one per attribute; H(a_k) is the entropy of the attribute's values, so
that L_k is 1 for a discriminator that knows no more than the groups' shares, and lambda means the same
for two regions and for ninety ages. Before each step of the encoder the discriminators of S take
`steps` steps of Adam on z as it is, each down its own loss, on nodes drawn anew (`batch`; 0: all);
the penalty itself is over all nodes that have a value, and its gradient stops at z. Every node counts
once, whatever its degree; nodes without a value take no part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uge_core.debias.penalties.base import Penalty
from uge_core.debias.penalties.discriminator import Answer, Build

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor

    from uge_core.debias.penalties._adversary import Discriminator, Target


class Adversary(Penalty):
    """Discriminators that learn beside the encoder.

    Attributes:
        answers: per attribute what its discriminator is asked for.
        build: how they are made.
        on: the attributes S of this step; a head that draws S sets it before each call.
    """

    def __init__(self, answers: tuple[Answer, ...], build: Build) -> None:
        """Makes nothing yet: the first call's z gives the width, its generator the first weights."""
        self.answers, self.build = answers, build
        self.on: tuple[int, ...] = tuple(range(len(answers)))
        self._held: dict[str, Tensor] = {}
        self._networks: list[Discriminator] = []
        self._targets: dict[str, list[Target]] = {}

    def __call__(self, z: Tensor, generator: Generator) -> Tensor:
        """Trains the discriminators of `on`, then gives minus the sum of their losses on `z` (N, d)."""
        import torch

        if not self._networks:
            self._begin(z, generator)
        targets = self.targets(z.device)
        detached = z.detach()
        for _ in range(self.build.steps):
            drawn = torch.rand(self.build.batch, generator=generator, dtype=torch.float64) if self.build.batch else None
            for k in self.on:
                target, rows = targets[k], None
                if drawn is not None:
                    # one draw for all attributes: what a discriminator learns from does not depend on the others
                    rows = (drawn * len(target.nodes)).long().to(z.device)
                nodes = target.nodes if rows is None else target.nodes.index_select(0, rows)
                self._networks[k].learn(detached.index_select(0, nodes), target, rows)
        total = z.new_zeros(())
        for k in self.on:
            target = targets[k]
            total = total - target.loss(self._networks[k](z.index_select(0, target.nodes), frozen=True))
        return total

    def targets(self, device: torch.device) -> list[Target]:
        """The answers on a device, made once."""
        from uge_core.debias.penalties._adversary import Target

        if str(device) not in self._targets:
            self._targets[str(device)] = [Target.of(answer, device) for answer in self.answers]
        return self._targets[str(device)]

    def _begin(self, z: Tensor, generator: Generator) -> None:
        from uge_core.debias.penalties._adversary import Discriminator

        for k, answer in enumerate(self.answers):
            prefix = f"{k}."
            state = {name[len(prefix) :]: t for name, t in self._held.items() if name.startswith(prefix)}
            self._networks.append(
                Discriminator.from_state(state, self.build.learning_rate, z.device)
                if state
                else Discriminator.fresh(z.shape[1], answer.num_values, self.build, generator, z.device)
            )
        self._held = {}

    def state(self) -> dict[str, Tensor]:
        """Weights of the discriminators, with Adam's moments and steps."""
        if not self._networks:
            return dict(self._held)  # taken back, and no step since
        networks = enumerate(self._networks)
        return {f"{k}.{name}": t for k, network in networks for name, t in network.state().items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Takes back what `state` gave."""
        self._held = dict(tensors)
