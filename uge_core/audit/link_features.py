r"""What a person's predicted links say about their value: how high they score with the labelled people of each group.

Whoever has the vectors and some people's values can score everyone against those people, as the embedding itself would
to predict links, and look at whom the best scores are with. For person i, similarity s and group g, with L_g the
labelled people of g, i left out:

    mean of the k largest s_ij, j in L_g, k = 1, 3, 10 (k = min(k, |L_g|))
    share of g among the k labelled people with the largest s_ij, k = 10, 25, 100

for s the cosine, the dot product and the negative squared distance, and of the whitened ranks of coordinates
(`normal_scores`) the cosine and the distance again: what an offset, a long coordinate or a huge vector hides from the
first three is seen by these two, and what many short coordinates hide from these, by the first three. A labelled person's features are cross-fitted: the
people of its own tenth, drawn by class, take no part, so that its own value is nowhere in them and no class is thinned
out by leaving it out. No edge is looked at.

Of each group a reader gets these 30 numbers, how far they lie from those of the best other group, and the logarithm of
the group's share: 61 numbers a person and group, whatever the number of groups, so that one small model serves all.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uge_core.arrays import Float64, FloatArray, IntArray
from uge_core.audit.normal_scores import normal_scores, whitened
from uge_core.machine import cores

FOLDS = 10
MOST_PEOPLE = 20_000
"""People to learn from; of more a draw by class is learnt from, while all of them are whom others score with."""
MOST_ROWS = 150_000
"""People times values to learn from."""
_MEANS = (1, 3, 10)
_SHARES = (10, 25, 100)
_ROWS = 1_024  # people asked at once


def link_features(
    embedding: FloatArray, train: IntArray, y: IntArray, learn: IntArray, asked: IntArray, *, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """The features of labelled people and of others.

    Args:
        embedding: (N, d) vectors.
        train: (n,) the labelled people.
        y: (n,) their classes, 0 to K - 1.
        learn: (l,) positions in `train` of those whose features are wanted.
        asked: (m,) other people.
        seed: keys the folds, and who stands first of equal scores.

    Returns:
        (l, K, 61) and (m, K, 61) float32.
    """
    from uge_core.kernels.links import highest  # compiles when imported, and lists of attackers import this file

    rng = np.random.default_rng([seed, 76])
    num = int(y.max()) + 1
    fold = np.empty(len(y), dtype=np.int64)
    by_class = np.lexsort((rng.random(len(y)), y))
    fold[by_class] = np.arange(len(y)) % FOLDS
    order = rng.permutation(len(y))
    ranks = whitened(normal_scores(embedding, train), train)
    views = [_sized(embedding.astype(np.float64), train), _sized(ranks, train)]
    labelled = [np.ascontiguousarray(rows[train[order]].T) for rows in views]
    share = np.log(np.bincount(y) / len(y))

    def of(people: IntArray, own_fold: IntArray) -> FloatArray:
        out = np.empty((len(people), num, 2 * 5 * (len(_MEANS) + len(_SHARES)) + 1), dtype=np.float32)

        def some(begin: int) -> None:
            part = slice(begin, begin + _ROWS)
            found = [
                highest(
                    rows[people[part]], own_fold[part], others, y[order], fold[order], num, max(_MEANS), max(_SHARES)
                )
                for rows, others in zip(views, labelled, strict=True)
            ]
            for (scores, _), rows in zip(found, views, strict=True):
                scores[:, 2] -= np.square(rows[people[part]]).sum(axis=1, dtype=np.float64)[:, None, None]
            scores, groups = (np.concatenate(both, axis=1)[:, [0, 1, 2, 3, 5]] for both in zip(*found, strict=True))
            out[part] = _features(scores, groups, share)

        # other attackers of this embedding wait for the features, and would leave cores idle
        with ThreadPoolExecutor(cores()) as pool:
            list(pool.map(some, range(0, len(people), _ROWS)))
        return out

    return of(train[learn], fold[learn]), of(asked, np.full(len(asked), -1))


def _sized(z: Float64, train: IntArray) -> FloatArray:
    """Of mean square 1 among the labelled people, as the kernel takes it."""
    size = np.sqrt(np.mean(np.square(z[train])))
    return np.pad(z / size if size > 0 else z, ((0, 0), (0, -z.shape[1] % 4))).astype(np.float32)


def _features(scores: FloatArray, groups: IntArray, share: Float64) -> Float64:
    """(m, K, 61) from what the kernel finds, and (K,) logarithms of the groups' shares."""
    scores = scores.astype(np.float64)
    there = np.isfinite(scores)
    columns = []
    for k in _MEANS:
        held = there[..., :k].sum(axis=-1)
        total = np.where(there[..., :k], scores[..., :k], 0.0).sum(axis=-1)
        mean = np.divide(total, held, out=np.full(total.shape, np.inf), where=held > 0)
        # A group without a labelled person outside the fold is as far as the farthest other.
        least = np.where(np.isfinite(mean.min(axis=-1)), mean.min(axis=-1), 0.0)
        columns.append(np.where(held > 0, mean, least[..., None]))
    num = scores.shape[2]
    for k in _SHARES:
        top = groups[..., :k]
        count = np.zeros((*top.shape[:2], num + 1))
        cell = np.arange(count.shape[0] * count.shape[1]).reshape(count.shape[:2])[..., None] * (num + 1) + top + 1
        count = np.bincount(cell.ravel(), minlength=count.size).reshape(count.shape)[..., 1:]
        columns.append(count / np.maximum(count.sum(axis=-1, keepdims=True), 1))
    own = np.concatenate(columns, axis=1).transpose(0, 2, 1)  # (m, K, 30)
    ranked = np.sort(own, axis=1)
    best, second = ranked[:, -1:], ranked[:, -2:-1]
    other = np.where(own == best, second, best)
    return np.concatenate([own, own - other, np.broadcast_to(share[:, None], (*own.shape[:2], 1))], axis=2)


@dataclass(frozen=True)
class ByValue:
    """One question for each person and value: is it this person's?

    Attributes:
        num: K, the number of values.
    """

    num: int

    def rows(self, x: npt.NDArray[np.floating]) -> Float64:
        """(n K, p) from (n, K p)."""
        return np.asarray(x.reshape(len(x) * self.num, -1), dtype=np.float64)

    def has(self, y: IntArray) -> IntArray:
        """(n K,) 1 where it is."""
        return np.asarray(y[:, None] == np.arange(self.num), dtype=np.int64).ravel()

    def answers(self, model: Callable[[Float64], Float64]) -> Callable[[Float64], Float64]:
        """From (m, K p) to (m, K) with rows of sum 1, of a model that says of (rows, p) how likely each value is."""

        def probability(x: Float64) -> Float64:
            parts = [model(self.rows(x[i : i + _ROWS])) for i in range(0, len(x), _ROWS)]
            alone = np.concatenate(parts or [np.zeros(0)]).reshape(-1, self.num)
            return np.asarray(alone / np.maximum(alone.sum(axis=1, keepdims=True), 1e-300))

        return probability
