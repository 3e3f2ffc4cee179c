r"""Turns an attacker's scores into probabilities that can be held against the prior.

    q(c | x) = (1 - e) * p(c | x)^a prior(c)^b / Z(x) + e * prior(c)

a is the inverse of a temperature, b how much of the prior is mixed in: (0, 1) is the prior itself,
(1, 1) undoes balanced classes, (1, 0) leaves p as it is. Both minimise the log loss of nodes that
the attacker did not learn from and that are not tested: a convex problem in two numbers. e =
0.001 is a floor: no node can cost more than log2(1000) = 10 bits over the prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from uge_core.arrays import Float64, IntArray
from uge_core.kernels.settled import settled

FLOOR = 1e-3
_SMALLEST = 1e-12  # of p, before its logarithm


@dataclass(frozen=True, eq=False)
class Calibration:
    """A fitted map.

    Attributes:
        power: a, 0 to 10.
        mix: b, -5 to 5.
        prior: (K,) shares of the classes in training, all above 0.
    """

    power: float
    mix: float
    prior: Float64

    def apply(self, probability: Float64) -> Float64:
        """(n, K) calibrated, from (n, K) as the attacker gives them."""
        logits = self.power * _logs(probability) + self.mix * np.log(self.prior)
        q = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
        return np.asarray((1.0 - FLOOR) * q + FLOOR * self.prior)


def fit_calibration(probability: Float64, y: IntArray, prior: Float64) -> Calibration:
    """Fits a and b.

    Args:
        probability: (n, K) what the attacker says of the validation nodes.
        y: (n,) their classes, columns of `probability`.
        prior: (K,) shares of the classes in training, all above 0.
    """
    terms = np.stack([_logs(probability), np.broadcast_to(np.log(prior), probability.shape)])
    true = terms[:, np.arange(len(y)), y]

    def loss(theta: Float64) -> tuple[float, Float64]:
        logits = np.tensordot(theta, terms, 1)
        total = logsumexp(logits, axis=1)
        expected = (np.exp(logits - total[:, None]) * terms).sum(axis=2)
        return float((total - theta @ true).mean()), (expected - true).mean(axis=1)

    def second(theta: Float64) -> Float64:
        logits = np.tensordot(theta, terms, 1)
        q = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
        apart = terms - (q * terms).sum(axis=2, keepdims=True)
        return np.asarray(np.einsum("nk,ank,bnk->ab", q, apart, apart) / len(y))

    low, high = np.array([0.0, -5.0]), np.array([10.0, 5.0])
    best = minimize(loss, np.array([0.0, 1.0]), jac=True, method="L-BFGS-B", bounds=list(zip(low, high, strict=True)))
    # where it stops depends on the last bits of sums
    power, mix = settled(best.x, lambda theta: loss(theta)[1], second, low, high)
    return Calibration(float(power), float(mix), prior)


def _logs(probability: Float64) -> Float64:
    return np.asarray(np.log(np.maximum(probability, _SMALLEST)))
