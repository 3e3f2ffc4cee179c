r"""Rank exposure: how far the groups' shares at the top of a list are from their shares in the whole list.

    NDKL@k = (1/Z) sum_{i <= k} KL(D_i || D_ref) / log2(i + 1),     Z = sum_{i <= k} 1 / log2(i + 1)

D_i are the groups' shares among the first i candidates, D_ref those among all candidates of the list; KL
in nats, 0 where the top is composed as the list is. Candidates of unknown group leave the list, and a list
shorter than k is read to its end. A short top can never have the shares of many groups, so chance alone is
well above 0: compare with the same measure of a random order. Source: Geyik, Ambler and Kenthapadi (KDD 2019).

That is known exactly. Of a random order of L candidates, n of them of a group, the first i hold X of it,
hypergeometric with (L, n, i), and

    E[KL(D_i || D_ref)] = sum over the groups of E[(X / i) log(X L / (i n))]

so that the floor is drawn from nothing and does not depend on the embedding.

Lists share their candidates, popular people above all, so a bootstrap of lists covers 54 % where it says 95.
The interval is of a jackknife over people instead: a twentieth of them at a time leaves all lists.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from scipy.special import comb
from scipy.stats import t

from uge_core.arrays import Float64, IntArray
from uge_core.graph.scores import Factors, Scored
from uge_core.graph.split import RankingTask

TOP = 10

BLOCKS = 20
_LISTS = 4_000  # lists behind an interval at most
_CHUNK = 2048


def ndkl_per_target(
    embedding: Scored, task: RankingTask, group: IntArray, *, top: int = TOP, seed: int = 0
) -> tuple[Float64, Float64]:
    """NDKL of every list, and what a random order of it gives on average.

    Args:
        embedding: (N, d) float32 for dot products, or factors; lists are ordered by the score with their target.
        task: the lists; -1 pads.
        group: (N,) group of each node; below 0 leaves it out.
        top: k.
        seed: keys the order of ties.

    Returns:
        (T,) and (T,), at least 0; NaN for a list with no candidate of a known group.
    """
    ordered = in_order(embedding, task, seed=seed)
    return ndkl_of_ordered(ordered, group, top=top), random_ndkl_per_target(task, group, top=top)


def in_order(embedding: Scored, task: RankingTask, *, seed: int = 0) -> IntArray:
    """(T, C) the candidates of every list by falling score with their target, ties at random; -1 pads.

    It serves all groupings of people; arguments as in `ndkl_per_target`.
    """
    rng = np.random.default_rng([seed, 14])
    ordered = np.empty_like(task.candidates)
    for start in range(0, len(task.targets), _CHUNK):
        part = slice(start, start + _CHUNK)
        ordered[part] = _sorted(embedding, task, part, rng)
    return ordered


def ndkl_of_ordered(ordered: IntArray, group: IntArray, *, top: int = TOP) -> Float64:
    """(T,) NDKL of lists `in_order`; NaN for a list with no candidate of a known group.

    Args:
        ordered: (T, C) the lists.
        group: (N,) group of each node; below 0 leaves it out.
        top: k.
    """
    ndkl = np.full(len(ordered), np.nan)
    for start in range(0, len(ordered), _CHUNK):
        candidates = ordered[start : start + _CHUNK]
        ndkl[start : start + _CHUNK] = _value(np.where(candidates >= 0, group[candidates], -1), top)
    return ndkl


def random_ndkl_per_target(task: RankingTask, group: IntArray, *, top: int = TOP) -> Float64:
    """What a random order of the same lists gives on average, exactly; arguments as in `ndkl_per_target`.

    Returns:
        (T,) at least 0; NaN for a list with no candidate of a known group.
    """
    expected = np.full(len(task.targets), np.nan)
    for start in range(0, len(task.targets), _CHUNK):
        candidates = task.candidates[start : start + _CHUNK]
        sizes = _sizes(np.where(candidates >= 0, group[candidates], -1))
        length = sizes.sum(axis=1)
        for known in np.unique(length[length > 0]).tolist():
            lists = length == known
            expected[start + np.nonzero(lists)[0]] = _expected(known, top)[sizes[lists]].sum(axis=1)
    return expected


@cache
def _expected(length: int, top: int) -> Float64:
    """(length + 1,) by the size of a group what it adds to the NDKL of a random order of `length` candidates."""
    size, total, weight = np.arange(length + 1), np.zeros(length + 1), 0.0
    for i in range(1, min(top, length) + 1):
        for held in range(1, i + 1):
            chance = comb(size, held) * comb(length - size, i - held) / comb(length, i)
            ratio = held * length / (i * np.maximum(size, 1))
            total += chance * (held / i) * np.log(ratio) / np.log2(i + 1.0)
        weight += 1.0 / np.log2(i + 1.0)
    return total / weight


def half_width(embedding: Scored, task: RankingTask, group: IntArray, *, top: int = TOP, seed: int = 0) -> float | None:
    """Half the 95 % interval of the mean NDKL over people, by a delete-a-block jackknife of `BLOCKS` blocks.

    A person of a block left out is neither target nor candidate. Above `_LISTS` lists a sample of them is
    taken, which makes the interval a little wider.

    Returns:
        Half the width; None where some block leaves no list.
    """
    rng = np.random.default_rng([seed, 36])
    if len(task.targets) > _LISTS:
        few = np.sort(rng.choice(len(task.targets), _LISTS, replace=False))
        task = replace(task, targets=task.targets[few], candidates=task.candidates[few], relevant=task.relevant[few])
    block = rng.permutation(len(group)) % BLOCKS
    ordered = _sorted(embedding, task, slice(None), rng)
    own, where = np.where(ordered >= 0, group[ordered], -1), block[ordered]
    means = np.full(BLOCKS, np.nan)
    for j in range(BLOCKS):
        value = _value(np.where(where == j, -1, own), top)
        kept = np.isfinite(value) & (block[task.targets] != j)
        if not kept.any():
            return None
        means[j] = value[kept].mean()
    variance = (BLOCKS - 1) / BLOCKS * np.square(means - means.mean()).sum()
    return float(t.ppf(0.975, BLOCKS - 1) * np.sqrt(variance))


def _sorted(embedding: Scored, task: RankingTask, part: slice, rng: np.random.Generator) -> IntArray:
    """(t, C) the candidates of some lists by falling score, ties at random; -1 pads."""
    candidates = task.candidates[part]
    scores = Factors.of(embedding).of_lists(task.targets[part], candidates)
    order = np.lexsort((rng.random(scores.shape, dtype=np.float32), -scores), axis=1)
    return np.asarray(np.take_along_axis(candidates, order, axis=1))


def _value(own: IntArray, top: int) -> Float64:
    """(t,) NDKL of lists in their order, whose candidates of no group (below 0) do not count."""
    return _ndkl(own, _reference(own), np.argsort(own < 0, axis=1, kind="stable")[:, :top])


def _sizes(own: IntArray) -> IntArray:
    """(t, G) how many candidates of each group a list has."""
    num, known = int(own.max(initial=-1)) + 1, own >= 0
    place = (np.arange(len(own))[:, None] * num + own)[known]
    return np.bincount(place, minlength=len(own) * num).reshape(len(own), num)


def _reference(own: IntArray) -> Float64:
    """(t, C) share of each candidate's own group in its list; 1 where it has none."""
    known = own >= 0
    share = np.ones(own.shape)
    share[known] = (_sizes(own) / np.maximum(known.sum(axis=1, keepdims=True), 1))[np.nonzero(known)[0], own[known]]
    return share


def _ndkl(own: IntArray, reference: Float64, first: IntArray) -> Float64:
    """(t,) of lists whose `first` columns stand on top, candidates without a group last."""
    group, share = np.take_along_axis(own, first, axis=1), np.take_along_axis(reference, first, axis=1)
    length = (group >= 0).sum(axis=1)
    total, weight = np.zeros(len(own)), np.zeros(len(own))
    for i in range(1, group.shape[1] + 1):
        top = group[:, :i]
        same = (top[:, :, None] == top[:, None, :]).sum(axis=2)
        divergence = np.log(same / (i * share[:, :i])).mean(axis=1)
        counts = (i <= length) / np.log2(i + 1.0)
        total += counts * np.maximum(divergence, 0.0)
        weight += counts
    return np.where(length > 0, total / np.where(length > 0, weight, 1.0), np.nan)
