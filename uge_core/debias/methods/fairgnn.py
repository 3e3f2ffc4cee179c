"""FairGNN: an adversary where many values are missing, and predictions that do not vary with the labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uge_core.debias.base import Method
from uge_core.debias.bias_free import MethodInputs
from uge_core.debias.penalties.base import Penalty
from uge_core.debias.penalties.discriminator import Build
from uge_core.debias.penalties.link_covariance import CovariantAdversary
from uge_core.graph.values import soft_values
from uge_core.plugin import Reference
from uge_core.registry import option, register


@register
@dataclass(frozen=True)
class FairGNN(Method):
    r"""Adapted to links: loss + lambda * (alpha * |Cov(s_uv, z_u . z_v)| - L(D(z), p)), s_uv = p_u . p_v.

    p_u is a soft label: 1 at a value that is known; elsewhere (missing in the data, or hidden from the
    twin) the posterior that its neighbours in the training edges give. Values that were imputed are not taken for
    known. D is an adversary on z, linear by default as theirs, L its cross-entropy over the entropy of the labels, and
    s_uv the probability that both ends have the same value; the covariance is over all pairs, exact.

    Departures: the covariance is of a pair's score with having the same value; theirs is of a node's label and its
    predicted class, which links do not have. Scores are dot products, not probabilities, whose covariance has no
    closed form. Soft labels are a posterior where FairGNN trains a graph network for them. L is 1 by chance.

    Cannot: hide an attribute from attackers that are not linear unless the adversary has hidden layers
    (`discriminator_depth`). Attributes are treated one by one, their combinations are not.
    """

    label: ClassVar[str] = "FairGNN (links)"
    summary: ClassVar[str] = "Trains against an adversary that guesses the attribute, known or likely."
    citation: ClassVar[str] = "Dai and Wang, WSDM 2021, adapted to links"
    references: ClassVar[tuple[Reference, ...]] = (
        Reference(
            "E. Dai, S. Wang",
            "Say No to the Discrimination: Learning Fair Graph "
            "Neural Networks with Limited Sensitive Attribute Information",
            "WSDM",
            2021,
            "arXiv:2009.01454",
        ),
    )
    formula: ClassVar[str] = (
        r"\ell + \lambda \sum_k \left( \alpha\, |\text{Cov}(p_u \cdot p_v,\ z_u \cdot z_v)| - \frac{L(D(z), p)}{H(p)} \right)"
    )
    color: ClassVar[str] = "#0072B2"
    symbol: ClassVar[str] = "triangle-left"
    position: ClassVar[int] = 23
    uses_lambda: ClassVar[bool] = True
    default_lam: ClassVar[float] = 1.0

    alpha: float = option(
        4.0,
        "what the covariance weighs beside the adversary; theirs: 2 to 100",
        low=0,
        high=1e6,
        label="Weight of the covariance",
    )
    discriminator_steps: int = option(
        1,
        "steps of the adversary per step of the encoder",
        low=1,
        high=100,
        label="Adversary: steps per step of training",
    )
    discriminator_depth: int = option(
        0, "hidden layers of the adversary; 0: linear, as theirs", low=0, high=10, label="Adversary: hidden layers"
    )
    discriminator_width: int = option(
        64, "units of each hidden layer", low=1, high=1024, label="Adversary: width of a layer"
    )
    discriminator_rate: float = option(
        0.01, "learning rate of the adversary", low=1e-6, high=1, label="Adversary: learning rate"
    )

    def unread(self, bipartite: bool) -> set[str]:
        """Without hidden layers they have no width."""
        return super().unread(bipartite) | ({"discriminator_width"} if not self.discriminator_depth else set())

    def penalty(self, inputs: MethodInputs) -> Penalty:
        """The adversary on soft labels, and the covariance."""
        soft = tuple(soft_values(v, inputs.graph, inputs.train_edges) for v in inputs.sensitive)
        build = Build(
            self.discriminator_depth, self.discriminator_width, self.discriminator_steps, 0, self.discriminator_rate
        )
        return CovariantAdversary(soft, inputs.graph.num_users, self.alpha, build)
