"""A training that ended with nothing learnt: every pair scores alike, linked or not.

Nothing else stops such a run: its loss is finite, an attacker reads little out of it, and groups have equal chances of
links. The loss is then that of knowing nothing, log 2 a pair.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from uge_core.arrays import FloatArray
from uge_core.graph.scores import scorer
from uge_core.registry import find
from uge_core.training.members import Member

ALIKE = 0.02
"""Scores that differ by less are alike: 0.005 in the probability of a link, where that is near a half."""
_PAIRS = 5000  # of links, and of pairs drawn at random


def spread(member: Member, embedding: FloatArray) -> float:
    """How far scores of links and of random pairs stray from their common median: at most so far in 95 % of either.

    Args:
        member: what was trained; for its graph, its training edges and how it scores pairs.
        embedding: (N, d) that it ended with.
    """
    links, graph = member.inputs.train_edges, member.inputs.graph
    rng = np.random.default_rng([member.config.split_seed, 71])
    users = graph.num_users or graph.num_nodes
    strangers = np.stack([rng.integers(0, users, _PAIRS), rng.integers(graph.num_users or 0, graph.num_nodes, _PAIRS)])
    factors = scorer(member.config.score).factors(embedding)
    few = links[:, rng.integers(0, links.shape[1], _PAIRS)]
    scores = [factors.scores(*pairs) for pairs in (few, strangers)]
    middle = np.median(np.concatenate(scores))
    return max(float(np.quantile(np.abs(s - middle), 0.95)) for s in scores)


def collapse_advice(member: Member, embedding: FloatArray) -> Iterator[str]:
    """What was found, the likely causes and the settings to change, where a training collapsed."""
    found = spread(member, embedding)
    if found <= ALIKE:
        yield (
            f"{member.label} has collapsed: links and random pairs score alike, within {found:.1g} of their median, "
            f"so that its embedding tells nobody apart; {'; '.join(_causes(member))}"
        )


def _causes(member: Member) -> Iterator[str]:
    """Each with the setting to change, the likeliest first."""
    config = member.config
    if config.weight_decay and find("backbones", config.backbone).uses_features:
        yield (
            f"weight_decay = {config.weight_decay:g} pulls the layers towards 0: "
            f"use --set weight_decay={config.weight_decay / 10:g}"
        )
    if config.lam:
        yield f"the penalty may outweigh the links: use a lambda below {config.lam:g} (--lam, --lams)"
    yield (
        f"learning_rate = {config.learning_rate:g} may be too high, or too low for {config.epochs} epochs: "
        f"use --set learning_rate={config.learning_rate / 10:g}, or more epochs"
    )
