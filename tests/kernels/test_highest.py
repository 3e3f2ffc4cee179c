"""The search for the highest scores among labelled people: against sorting all of them, folds left out, equal scores."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from uge_core.kernels.links import highest


def search(asked, labelled, group, *, num=None, asked_fold=None, fold=None, per_group=10, overall=100):
    """`highest` of rows (m, d) and (n, d), filled up to a multiple of four; by (similarity, group) lists without -inf."""
    rows, columns = (np.pad(np.asarray(x, np.float32), ((0, 0), (0, -np.shape(x)[1] % 4))) for x in (asked, labelled))
    group = np.asarray(group, np.int64)
    fold = np.zeros(len(columns), np.int64) if fold is None else fold
    asked_fold = np.full(len(rows), -1) if asked_fold is None else asked_fold
    num = int(group.max()) + 1 if num is None else num
    columns = np.ascontiguousarray(columns.T)
    scores, groups = highest(rows, asked_fold, columns, group, fold, num, per_group, overall)
    scores = scores.astype(np.float64)
    scores[:, 2] -= np.square(rows.astype(np.float64)).sum(axis=1)[:, None, None]
    return scores, groups


@pytest.mark.processors
@given(st.data())
def test_equal_to_sorting_all_labelled_people(data):
    """Small whole numbers, so that dot products and distances are exact and often equal, and some vectors are 0."""
    rng = np.random.default_rng(data.draw(st.integers(0, 9999)))
    n, dim, num = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5))
    per_group, overall = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 30))
    asked, labelled = (rng.integers(-2, 3, (m, dim)) for m in (4, n))
    group, fold = rng.integers(0, num, n), rng.integers(0, 4, n)
    asked_fold = np.array([-1, 0, 1, 2])
    scores, groups = search(
        asked, labelled, group, num=num, asked_fold=asked_fold, fold=fold, per_group=per_group, overall=overall
    )
    for i, person in enumerate(asked):
        there = fold != asked_fold[i]
        for s in range(3):
            by_group, best = reference.predicted_links(person, labelled[there], group[there], num, s)
            for g in range(num):
                expected = by_group[g][:per_group] + [-np.inf] * (per_group - len(by_group[g]))
                np.testing.assert_allclose(scores[i, s, g], expected, rtol=1e-6, atol=1e-7)
            if s:  # which of two equal cosines is ahead is a matter of their last bits
                assert groups[i, s].tolist() == (best + [-1] * overall)[:overall]


@pytest.mark.parametrize("n", [1023, 1024, 1025, 2100])
def test_blocks_of_columns_change_nothing(n):
    rng = np.random.default_rng(n)
    asked, labelled, group = rng.normal(size=(1, 3)), rng.normal(size=(n, 3)), rng.integers(0, 3, n)
    scores, groups = search(asked, labelled, group)
    for s in range(3):
        by_group, best = reference.predicted_links(asked[0], labelled, group, 3, s)
        np.testing.assert_allclose(scores[0, s], [v[:10] for v in by_group], rtol=1e-4, atol=1e-4)
        assert groups[0, s].tolist() == best[:100]


@pytest.mark.processors
def test_of_equal_people_the_first_are_the_highest():
    group = np.arange(200) % 4
    scores, groups = search(np.ones((2, 3)), np.ones((200, 3)), group)
    for s in range(3):
        assert groups[0, s].tolist() == group[:100].tolist()
    np.testing.assert_allclose(scores[0].reshape(3, -1).T, [[1.0, 3.0, 0.0]] * 40, atol=1e-6)


def test_vectors_of_length_zero_have_no_cosine():
    scores, _ = search([[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [3.0, 4.0]], [0, 1], per_group=1)
    np.testing.assert_allclose(scores[0, :, :, 0], [[0, 0], [0, 0], [0, -25]])
    np.testing.assert_allclose(scores[1, :, :, 0], [[0, 0.7 * 2**0.5], [0, 7], [-2, -13]], rtol=1e-6)


def test_what_people_of_the_own_fold_are_changes_nothing():
    rng = np.random.default_rng(0)
    asked, labelled = rng.normal(size=(30, 4)), rng.normal(size=(300, 4))
    group, fold = rng.integers(0, 3, 300), np.arange(300) % 10
    asked_fold = np.arange(30) % 10
    before = search(asked, labelled, group, num=3, asked_fold=asked_fold, fold=fold)
    mine = fold == 4
    other_groups, other_people = group.copy(), labelled.copy()
    other_groups[mine] = (group[mine] + 1) % 3
    other_people[mine] = 9.0
    for changed in ((labelled, other_groups), (other_people, group)):
        after = search(asked, *changed, num=3, asked_fold=asked_fold, fold=fold)
        for one, two in zip(before, after, strict=True):
            same = (one == two).reshape(30, -1).all(axis=1)
            assert same[asked_fold == 4].all() and not same[asked_fold != 4].any()


@pytest.mark.processors
def test_a_row_does_not_depend_on_the_others_asked():
    rng = np.random.default_rng(1)
    asked, labelled, group = rng.normal(size=(50, 7)), rng.normal(size=(400, 7)), rng.integers(0, 2, 400)
    whole = search(asked, labelled, group)
    for one, two in zip(whole, search(asked[20:23], labelled, group), strict=True):
        np.testing.assert_array_equal(one[20:23], two)
