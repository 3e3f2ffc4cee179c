r"""A maximum-entropy prior as what the training loop adds to a pair's logit.

The loss sees each edge once and, of the pairs without one, a sample: sources in proportion to their degree, strangers
at random. A pair is drawn as a stranger q_ij times as often as it would be seen as an edge,

    q_ij = (r_i + r_j) / 2,   r_i = (degree of i) / (strangers of i),

so with a prior P the loss is right where the logit is z_i . z_j + logit P_ij - log q_ij (case-control sampling:
Prentice and Pyke, Biometrika 66, 1979). log q has no exact form offset[g_i, g_j] + node_offset[i, g_j] + node_offset[j,
g_i]. Nodes are put into classes of like r, within which log q is taken as linear in log r; that is at most 1/8 of the
classes' width squared off. Under BPR the rate cancels, as the ends are compared for one source and strangers are
drawn evenly.
"""

from __future__ import annotations

import numpy as np

from uge_core.debias.bias_free import CellTable, MethodInputs
from uge_core.debias.priors import Array, Prior
from uge_core.errors import ConfigError

_WIDTH = 0.7  # of a class, in log r: at most 0.06 off
_ENTRIES = 1 << 25  # node_offset entries beyond which classes get wider
_MOST = 1 << 28  # numbers of a prior: some 10 GB while it is made


def prior_cells(inputs: MethodInputs, prior: Prior, *, sampled: bool, notes: tuple[str, ...] = ()) -> CellTable:
    """The table that adds a prior's log odds.

    Args:
        inputs: of the member.
        prior: fitted on its training edges.
        sampled: whether log q is taken off; False where the dot product is to learn it, and under BPR.
        notes: what the table's owner should be told.
    """
    group, level, node_offset = prior.group, prior.level, prior.node_offset
    if sampled:
        log_r = _log_rate(inputs)
        most = max(1, _ENTRIES // node_offset.size)
        low, high = float(log_r.min()), float(log_r.max())
        parts = max(1, min(most, int(np.ceil((high - low) / _WIDTH))))
        grade = np.minimum(((log_r - low) / max(high - low, 1e-9) * parts).astype(np.int64), parts - 1)
        pair, group = np.unique(group * parts + grade, return_inverse=True)
        group = group.reshape(-1)
        centre = np.bincount(group, log_r) / np.bincount(group)
        own = log_r - centre[group]
        together = np.logaddexp(centre[:, None], centre[None, :])
        level = level[np.ix_(pair // parts, pair // parts)] - (together - np.log(2.0))
        node_offset = node_offset[:, pair // parts] - own[:, None] * np.exp(centre[:, None] - together)[group]
    table = np.pad(level, ((0, 1), (0, 1))).astype(np.float32)
    return CellTable(
        group,
        np.ones(table.shape, np.float32),
        table,
        notes=notes,
        node_offset=np.pad(node_offset, ((0, 0), (0, 1))).astype(np.float32),
    )


def without(prior: Prior, base: Prior) -> Prior:
    """What `prior` adds to `base`, a prior on coarser groups."""
    coarse = np.zeros(prior.level.shape[0], np.int64)
    coarse[prior.group] = base.group
    return Prior(
        prior.group,
        prior.level - base.level[np.ix_(coarse, coarse)],
        prior.node_offset - base.node_offset[:, coarse],
        prior.error,
        prior.saturated,
    )


def check_size(num_nodes: int, num_groups: int) -> None:
    """Each node has a number per group."""
    if num_nodes * num_groups > _MOST:
        raise ConfigError(
            f"a prior of {num_nodes} nodes and {num_groups} groups holds more than {_MOST} numbers; "
            "name fewer attributes, or bin them coarser"
        )


def _log_rate(inputs: MethodInputs) -> Array:
    """(N,) log r: a node's (weighted) degree over the nodes it has no edge to; half an edge where it has none."""
    num, users = inputs.graph.num_nodes, inputs.graph.num_users
    ends = inputs.train_edges.ravel()
    weights = None if inputs.weights is None else np.tile(inputs.weights, 2)
    degree = np.bincount(ends, minlength=num)
    others = np.full(num, num - 1) if users is None else np.where(inputs.side == 0, num - users, users)
    strength = np.bincount(ends, weights, minlength=num)
    out: Array = np.log(np.where(strength > 0, strength, 0.5)) - np.log(np.maximum(others - degree, 1))
    return out
