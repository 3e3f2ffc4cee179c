r"""FairGNN's penalty on links: an adversary, and a covariance of having the same value with the predicted link.

    alpha * sum_k |C_k| - sum_k L_k(D_k(z), p_k)

p_k (N, G) are soft labels: 1 at a known value, the posterior elsewhere. FairGNN's covariance is that of
a node's label with its predicted class; here the prediction is a pair's, so over all ordered pairs of
the n nodes with a label, self-pairs included,

    C = mean_uv s_uv y_uv - (mean_uv s_uv) (mean_uv y_uv),   s_uv = p_u . p_v,   y_uv = z_u . z_v
      = (||P^T Z||_F^2 - |sum_u p_u|^2 |sum_u z_u|^2 / n^2) / n^2

which is exact in O(N G d): s_uv is the probability that both have the same value. Bipartite, where items
have no label, |C| is the sum over values c of |cov_u(p_uc, z_u . mean of the items' z)|.
Departures: raw dot products instead of probabilities, whose covariance has no closed form; the
adversary's loss is divided by the entropy of the labels, so that it is 1 by chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from uge_core.arrays import FloatArray
from uge_core.debias.penalties.adversary import Adversary
from uge_core.debias.penalties.discriminator import Answer, Build

if TYPE_CHECKING:
    from torch import Generator, Tensor


class CovariantAdversary(Adversary):
    """Discriminators of soft labels, and the covariance of labels with links.

    Attributes:
        soft: per attribute (N, G) probabilities; rows of 0 have no label.
        num_users: of a bipartite graph, else None.
        alpha: what the covariance weighs beside the adversary.
    """

    def __init__(self, soft: tuple[FloatArray, ...], num_users: int | None, alpha: float, build: Build) -> None:
        """Makes nothing yet."""
        labelled = [np.nonzero(p.sum(1) > 0)[0] for p in soft]
        super().__init__(tuple(Answer(n, p[n], p.shape[1]) for n, p in zip(labelled, soft, strict=True)), build)
        self.num_users, self.alpha = num_users, alpha

    def __call__(self, z: Tensor, generator: Generator) -> Tensor:
        """The penalty of `z` (N, d), a scalar."""
        return super().__call__(z, generator) + self.alpha * self.covariance(z)

    def covariance(self, z: Tensor) -> Tensor:
        """sum_k |C_k|, a float32 scalar of at least 0."""
        total = z.new_zeros(())
        for answer, target in zip(self.answers, self.targets(z.device), strict=True):
            p, mine = target.values, z.index_select(0, target.nodes)
            n, both = len(answer.nodes), (p.T @ mine).double()
            labels, whole = p.double().sum(0), mine.double().sum(0)
            if self.num_users is None:
                gap = (both.square().sum() - labels.square().sum() * whole.square().sum() / n**2) / n**2
                total = total + gap.abs().float()
            else:
                # the other side of the pairs, where nobody has a label
                other = z[self.num_users :] if answer.nodes[0] < self.num_users else z[: self.num_users]
                gaps = (both / n - (labels[:, None] / n) * (whole / n)) @ other.double().mean(0)
                total = total + gaps.abs().sum().float()
        return total
