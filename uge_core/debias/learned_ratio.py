r"""R as a smooth function of the attributes, for many attributes and thin cells, instead of a table.

The edges of a cell are taken as negative binomial around a log-linear mean,

    E_ab ~ NB(mu_ab, s),   mu_ab = n_a n_b exp(base + sum_{k <= l} (T_kl[a_k, b_l] + T_kl[b_k, a_l]))

with an effect T_kl for every value of attribute k on one end and of l on the other: what one attribute
does alone, and what two do across the edge, but nothing that only whole combinations do. Effects have a
normal prior of deviation 1, so that a value few people have stays near no effect. The size s, found by
maximum likelihood, says how far cells stray from that mean; a cell's estimate is its posterior mean

    E^_ab = mu_ab (E_ab + s) / (mu_ab + s),

the table's own count where edges are many, the log-linear mean where they are few. O(A cells) a step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaln

from uge_core.arrays import IntArray
from uge_core.debias.bias_free import Counts, Table

_STEPS = 200
_SIZES = (-4.0, 12.0)  # log s; at the upper end cells follow the mean


@dataclass(frozen=True, eq=False)
class Smoothed:
    """What was learnt.

    Attributes:
        counts: the given counts with E^ for E.
        mean: (G, G) mu, edges of each cell in the log-linear model.
        size: s.
    """

    counts: Counts
    mean: Table
    size: float


def smooth(counts: Counts, values: IntArray) -> Smoothed:
    """Counts whose cells borrow from cells with the same values.

    Args:
        counts: of the joint groups.
        values: (G, A) the value of each attribute in each group, -1 where it has none.

    Returns:
        The counts as they are where they hold no edge.
    """
    if not counts.edges.any():
        return Smoothed(counts, counts.edges, np.inf)
    mean = _log_linear(counts, values)
    twice = counts.entries_per_edge
    above = np.triu(counts.pairs > 0)
    seen, expected = (counts.edges / twice)[above], (mean / twice)[above]
    size = _dispersion(seen, expected)
    edges = np.where(counts.pairs > 0, mean * (counts.edges / twice + size) / (mean / twice + size), 0.0)
    return Smoothed(replace(counts, edges=edges), mean, size)


def _log_linear(counts: Counts, values: IntArray) -> Table:
    """(G, G) mu by penalised maximum likelihood over unordered pairs of groups."""
    columns = [np.unique(column, return_inverse=True)[1].reshape(-1) for column in values.T]
    sizes = [int(c.max()) + 1 for c in columns]
    spans = np.cumsum([0, *(sizes[k] * sizes[m] for k in range(len(sizes)) for m in range(k, len(sizes)))])
    sums = [np.eye(size)[:, column] for size, column in zip(sizes, columns, strict=True)]
    base = counts.edges.sum() / counts.pairs.sum() * counts.pairs

    def effects(theta: npt.NDArray[np.float64]) -> Table:
        table: Table = np.zeros_like(base)
        at = 0
        for k, column in enumerate(columns):
            rows = np.zeros((sizes[k], len(column)))
            for m in range(k, len(columns)):
                part = theta[spans[at] : spans[at + 1]].reshape(sizes[k], sizes[m])
                rows += part[:, columns[m]]
                at += 1
            table += rows[column]
        return np.asarray(table + table.T)

    def objective(theta: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        log_factor = np.clip(effects(theta), -30, 30)
        mean = base * np.exp(log_factor)
        loss = 0.5 * float(mean.sum() - (counts.edges * log_factor).sum()) + 0.5 * float(theta @ theta)
        residual = mean - counts.edges
        gradient = [
            (by_row @ sums[m].T).ravel()
            for k in range(len(columns))
            for by_row in (sums[k] @ residual,)
            for m in range(k, len(columns))
        ]
        return loss, np.concatenate(gradient) + theta

    optimum = minimize(objective, np.zeros(spans[-1]), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    return np.asarray(base * np.exp(np.clip(effects(optimum.x), -30, 30)))


def _dispersion(seen: npt.NDArray[np.float64], mean: npt.NDArray[np.float64]) -> float:
    """S that makes the cells' counts likeliest."""

    def loss(log_size: float) -> float:
        s = np.exp(log_size)
        fits = gammaln(seen + s) - gammaln(s) + s * np.log(s / (s + mean)) + seen * np.log(mean / (s + mean))
        return -float(fits.sum())

    return float(np.exp(minimize_scalar(loss, bounds=_SIZES, method="bounded").x))
