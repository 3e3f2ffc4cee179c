"""The search for the best candidates: against sorting them all, and who is ahead of equals."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from uge_core.graph.scores import Factors
from uge_core.kernels.top import best_columns


def search(asked, among, left_out=None, k=10, key=5, node=None):
    """`best_columns` of rows (m, d) and (n, d) float32, filled up to a multiple of four."""
    width = -asked.shape[1] % 4
    rows, columns = (np.pad(x.astype(np.float64), ((0, 0), (0, width))) for x in (asked, among))
    lists = [np.sort(np.array(x, np.int64)) for x in (left_out or [[]] * len(rows))]
    begin = np.append(0, np.cumsum([len(x) for x in lists]))
    node = np.arange(len(rows)) if node is None else node
    return best_columns(rows, np.ascontiguousarray(columns.T), node, begin, np.concatenate(lists), k, np.uint64(key))


@pytest.mark.processors
@given(st.data())
def test_equal_to_sorting_all_candidates(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 9999)))
    n, dim = data.draw(st.integers(2, 1100)), data.draw(st.integers(1, 9))
    z = rng.normal(size=(n, dim)).astype(np.float32)
    left_out = [rng.choice(n, rng.integers(0, min(n, 40)), replace=False) for _ in range(5)]
    left_out = [np.union1d(x, [i]) for i, x in zip(range(5), left_out, strict=True)][: min(n, 5)]
    found = search(z[: len(left_out)], z, left_out)
    for i, mine in enumerate(left_out):
        expected = reference.ten_best(z, i, range(n), set(mine.tolist()))
        assert found[i].tolist() == expected + [-1] * (10 - len(expected))


@given(st.integers(0, 9999), st.integers(1, 12))
def test_of_equal_scores_the_best_are_taken(seed, k):
    rng = np.random.default_rng(seed)
    z = rng.integers(-2, 3, (70, 3)).astype(np.float32)
    scores = z @ z.T
    found = search(z, z, [[i] for i in range(70)], k)
    for i, line in enumerate(found):
        assert len(set(line.tolist())) == k and i not in line
        assert scores[i, line].tolist() == sorted(np.delete(scores[i], i))[::-1][:k]


@pytest.mark.processors
def test_equal_candidates_are_drawn_by_the_key_and_not_by_their_number():
    same = np.full((40, 2), 0.3, np.float32)
    asked = np.full((3000, 2), 0.7, np.float32)
    found = search(asked, same)
    times = np.bincount(found.ravel(), minlength=40)
    # each is in a list with probability 1/4: 750 +- 24
    assert np.abs(times - 750).max() < 4.5 * 24
    first = np.bincount(found[:, 0], minlength=40)
    assert np.abs(first - 75).max() < 5 * 9
    assert len({tuple(line) for line in found.tolist()}) == 3000
    assert np.array_equal(found, search(asked, same))
    assert np.mean(found == search(asked, same, key=6)) < 0.1
    # by its node, not by where it stands in a call
    assert np.array_equal(search(asked[:5], same, node=np.arange(7, 12)), found[7:12])


@pytest.mark.processors
def test_scores_are_those_of_listed_pairs_to_the_bit():
    # neighbours in the last bit: only sums in the same order put them in the same order
    rng = np.random.default_rng(1)
    z = (rng.normal(size=(1, 7)) * (1 + 1e-7 * rng.integers(0, 3, (400, 7)))).astype(np.float32)
    found = search(z[:20], z, k=400)
    scores = Factors(z, z).of_lists(np.arange(20), found)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert len(np.unique(scores[0])) > 20
