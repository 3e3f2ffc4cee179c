import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from uge_core.debias.postprocess.inlp import Inlp


def planted(seed=0, n=1000, d=6, values=2, shift=2.0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % values
    return (rng.normal(size=(n, d)) + rng.normal(size=(values, d))[codes] * shift).astype(np.float32), codes


def balanced(z, codes):
    model = LogisticRegression(class_weight="balanced").fit(z, codes)
    return np.mean([(model.predict(z[codes == c]) == c).mean() for c in np.unique(codes)])


def inlp(codes, rounds=0):
    everyone = np.ones(len(codes), dtype=bool)
    return Inlp((codes,), everyone, everyone, rounds)


@pytest.mark.parametrize("values", [2, 3])
def test_a_linear_probe_is_at_chance_on_the_fitted_nodes(values):
    z, codes = planted(n=6000, values=values)
    assert balanced(z, codes) > 0.9
    assert balanced(inlp(codes)(z), codes) < 1 / values + 0.05


def test_one_round_of_two_values_takes_the_classifiers_direction():
    z, codes = planted(n=1000)
    basis = inlp(codes, rounds=1).basis(z.astype(np.float64))
    aside = np.zeros(1000, dtype=bool)
    aside[np.argsort(codes, kind="stable")[::5]] = True
    own = LogisticRegression(class_weight="balanced", tol=1e-8).fit(z[~aside], codes[~aside]).coef_[0]
    assert basis.shape == (6, 1)
    assert abs(own @ basis[:, 0]) / np.linalg.norm(own) == pytest.approx(1, abs=1e-4)


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_is_an_orthogonal_projection_that_leaves_a_dimension(seed, values):
    z, codes = planted(seed, 300, 5, values, shift=5.0)
    project = inlp(codes)
    basis = project.basis(z.astype(np.float64))
    assert basis.shape[1] < 5
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-9)
    np.testing.assert_allclose(project(z) @ basis, 0, atol=1e-4)


def test_nothing_is_taken_where_nothing_can_be_read():
    z, codes = planted(shift=0.0)
    assert (inlp(codes)(z) == z).all()


def test_fitted_on_some_moves_others_and_leaves_items():
    z, codes = planted()
    fitted, people = np.arange(1000) < 600, np.arange(1000) < 800
    wrong = codes.copy()
    wrong[600:] = 0  # values it must not look at
    a, b = (Inlp((c,), fitted, people)(z) for c in (codes, wrong))
    assert (a == b).all() and (a[800:] == z[800:]).all() and (a[600:800] != z[600:800]).any()
