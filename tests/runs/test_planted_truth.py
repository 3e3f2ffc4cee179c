"""Does debiasing work? On planted graphs the bias-free graph is at hand, and embeddings are asked to rank its edges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from uge_core.audit.ndcg import ndcg_per_target, planted_task, rank_candidates
from uge_core.datasets.planted.recipe import plant
from uge_core.datasets.planted.samples import recipe
from uge_core.graph.split import split_links
from uge_core.training.config import RunConfig
from uge_core.training.fit import fit


def ranks_the_truth(embedding, task):
    ranking = rank_candidates(embedding, task, seed=0)
    return np.nanmean(ndcg_per_target(ranking, np.ones(len(ranking.rank)), len(task.targets)))


def gain_over_none(graph, seeds, epochs, backbone="gcn"):
    """Mean and 95 % interval, over seeds, of how much better UGE-O ranks the bias-free graph than none does."""
    configs = [
        RunConfig.resolve(
            graph,
            sensitive="region,gender,age",
            backbone=backbone,
            method=method,
            exposure="seen",
            seed=seed,
            epochs=epochs,
            options={"independence": True} if method == "uge-o" else {},
        )
        for method in ("none", "uge-o")
        for seed in range(seeds)
    ]
    task = planted_task(graph, seed=0)
    found = [ranks_the_truth(f.embedding, task) for f in fit(configs, graph, split_links(graph, seed=0), device="cpu")]
    difference = np.subtract(found[seeds:], found[:seeds])
    half = stats.t.ppf(0.975, seeds - 1) * stats.sem(difference)
    return difference.mean(), (difference.mean() - half, difference.mean() + half)


@pytest.mark.slow
def test_uge_o_ranks_the_bias_free_town_better():
    gain, _ = gain_over_none(plant(recipe("town"), 1).observed, seeds=3, epochs=200)
    assert gain > 0.01


@pytest.mark.acceptance
def test_uge_o_ranks_a_larger_bias_free_town_better_for_certain():
    """With 60 edges a person; with 20 the links say too little of clubs and work for any method (+0.002 +- 0.002)."""
    graph = plant(recipe("town", nodes=20_000, edges=600_000), 1).observed
    gain, (low, high) = gain_over_none(graph, seeds=5, epochs=400, backbone="node2vec")
    print(f"gain {gain:.4f}, 95 % interval {low:.4f} to {high:.4f}")
    assert low > 0


@pytest.mark.slow
def test_without_planted_bias_there_is_nothing_to_gain():
    """The negative control: a town whose sensitive attributes do nothing."""
    town = recipe("town")
    neutral = replace(town, effects=tuple(e for e in town.effects if e.first in ("club", "work")))
    gain, _ = gain_over_none(plant(neutral, 1).observed, seeds=2, epochs=60)
    assert abs(gain) < 0.015
