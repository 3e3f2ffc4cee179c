"""Ranks of coordinates: against counting, what they do not depend on, and whitening."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from uge_core.audit.normal_scores import normal_scores, whitened


@given(st.integers(0, 9999), st.integers(1, 30), st.integers(1, 8))
def test_against_counting(seed, n, more):
    rng = np.random.default_rng(seed)
    z = rng.integers(-3, 4, (n + more, 2)).astype(np.float32)
    people = rng.permutation(n + more)[:n]
    found = normal_scores(z, people)
    for i in range(n + more):
        for c in range(2):
            assert found[i, c] == pytest.approx(reference.normal_score(z[i, c], z[people, c].tolist()), abs=1e-6)


def test_a_rising_function_of_a_coordinate_changes_nothing():
    z = np.random.default_rng(0).normal(size=(300, 3))
    people = np.arange(0, 300, 2)
    plain = normal_scores(z, people)
    for other in (z * [1e-5, 1.0, 1e5], z + 1e3, z**3, np.exp(3 * z)):
        np.testing.assert_array_equal(normal_scores(other, people), plain)
    far = z.copy()
    far[1] = 1e30  # nobody of those whose distribution it is
    np.testing.assert_array_equal(np.delete(normal_scores(far, people), 1, 0), np.delete(plain, 1, 0))


@pytest.mark.processors
def test_whitening_leaves_no_correlation():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 5)) @ rng.normal(size=(5, 5))
    z = np.column_stack([z, np.full(500, 3.0), z[:, 0], z[:, 0] + 1e-3 * z[:, 1]])  # constant, repeated, nearly so
    people = np.arange(400)
    white = whitened(normal_scores(z, people), people)
    square = white[people].T @ white[people] / 400
    np.testing.assert_allclose(square[:5, :5], np.eye(5), atol=1e-3)
    assert not white[people, 5].any() and np.abs(white[:, 6]).max() < 0.01 and np.isfinite(white).all()


def test_one_person_and_people_all_alike():
    for z, people in ((np.ones((3, 2)), np.arange(3)), (np.arange(6.0).reshape(3, 2), np.array([1]))):
        assert np.isfinite(whitened(normal_scores(z, people), people)).all()
