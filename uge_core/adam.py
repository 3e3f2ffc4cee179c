"""Adam (Kingma & Ba, 2015) as `torch.optim.Adam` takes its steps, without what its class loads.

The class imports torch's compiler when it is first made, which takes every process that trains two seconds.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam


class Adam:
    """The optimiser of some tensors, by torch's fused kernel, with beta 0.9 and 0.999.

    Attributes:
        groups: tensors, and how fast these decay.
        state: what it keeps of each tensor: ``step``, ``exp_avg`` and ``exp_avg_sq``; a tensor without a gradient so
            far has none.
    """

    def __init__(self, groups: Iterable[tuple[list[Tensor], float]], learning_rate: float, eps: float = 1e-8) -> None:
        """Nothing is allocated before the first step."""
        self.groups = [(list(tensors), decay) for tensors, decay in groups]
        self.state: dict[Tensor, dict[str, Tensor]] = {}
        self._learning_rate, self._eps = learning_rate, eps

    @property
    def leaves(self) -> list[Tensor]:
        """All its tensors."""
        return [leaf for tensors, _ in self.groups for leaf in tensors]

    def clear(self) -> None:
        """Forgets the gradients of the step before."""
        for leaf in self.leaves:
            leaf.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Moves the tensors that have a gradient."""
        for tensors, decay in self.groups:
            moved = [leaf for leaf in tensors if leaf.grad is not None]
            if not moved:
                continue
            kept = [self._kept(leaf) for leaf in moved]
            adam(
                moved,
                [leaf.grad for leaf in moved if leaf.grad is not None],
                [k["exp_avg"] for k in kept],
                [k["exp_avg_sq"] for k in kept],
                [],
                [k["step"] for k in kept],
                fused=True,
                capturable=moved[0].is_cuda,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=self._learning_rate,
                weight_decay=decay,
                eps=self._eps,
                maximize=False,
            )

    def _kept(self, leaf: Tensor) -> dict[str, Tensor]:
        if leaf not in self.state:
            step = torch.zeros((), device=leaf.device)
            self.state[leaf] = {"step": step, "exp_avg": torch.zeros_like(leaf), "exp_avg_sq": torch.zeros_like(leaf)}
        return self.state[leaf]
