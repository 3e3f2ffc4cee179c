import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import least_erasure
from sklearn.linear_model import LogisticRegression

from uge_core.debias.postprocess.leace import Leace

EVERYONE = np.ones(400, dtype=bool)


def planted(seed=0, n=400, d=6, values=3):
    """Correlated rows whose mean depends on the group."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, values, n)
    z = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=(values, d))[codes] * 2 + 1
    return z.astype(np.float32), codes


def covariance(z, codes):
    """(d, G) with the indicators, by loops."""
    out = np.zeros((z.shape[1], codes.max() + 1))
    centre = z.mean(axis=0, dtype=np.float64)
    for row, code in zip(z, codes, strict=True):
        out[:, code] += (row - centre) / len(z)
    return out


def test_no_indicator_correlates_with_any_dimension_on_the_fitted_nodes():
    z, codes = planted()
    fitted = np.arange(400) % 5 > 0
    out = Leace((codes,), fitted, EVERYONE)(z)
    # negative control: it did before, and nodes it was not fitted on keep what chance gave them
    assert np.abs(covariance(z, codes)).max() > 0.1
    assert np.abs(covariance(out[fitted], codes[fitted])).max() < 1e-6
    assert np.abs(covariance(out[~fitted], codes[~fitted])).max() > 1e-4
    np.testing.assert_allclose(out[fitted].mean(0), z[fitted].mean(0), atol=1e-5)


@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(4, 8))
def test_equals_the_least_change_by_pseudo_inverses(seed, values, d):
    z, codes = planted(seed, 60, d, values)
    everyone = np.ones(60, dtype=bool)
    np.testing.assert_allclose(
        Leace((codes,), everyone, everyone)(z), least_erasure(z, [codes.tolist()]), rtol=2e-4, atol=2e-4
    )


@given(st.integers(0, 10_000))
def test_no_other_linear_erasure_moves_the_nodes_less(seed):
    z, codes = planted()
    out = Leace((codes,), EVERYONE, EVERYONE)(z).astype(np.float64)
    centred = z - z.mean(0, dtype=np.float64)
    cross = covariance(z, codes)
    # any other map that erases differs by one whose rows are orthogonal to the class means
    kernel = np.eye(6) - cross @ np.linalg.pinv(cross, rcond=1e-9)
    other = out + centred @ (np.random.default_rng(seed).normal(size=(6, 6)) @ kernel).T * 0.01
    assert np.abs(covariance(other, codes)).max() < 1e-6
    assert np.square(other - z).sum() > np.square(out - z).sum()


def test_is_the_orthogonal_projection_where_dimensions_are_alike():
    rng = np.random.default_rng(0)
    codes = np.arange(400) % 2
    z = rng.normal(size=(400, 4))
    z[codes == 0, 0] += 3
    z -= z.mean(0)
    z = z @ np.linalg.inv(np.linalg.cholesky(z.T @ z / 400)).T  # unit covariance
    gap = z[codes == 0].mean(0) - z[codes == 1].mean(0)
    gap /= np.linalg.norm(gap)
    z = z.astype(np.float32)
    np.testing.assert_allclose(Leace((codes,), EVERYONE, EVERYONE)(z), z - np.outer(z @ gap, gap), atol=1e-5)


def test_a_linear_classifier_is_at_chance_and_a_second_erasure_changes_nothing():
    z, codes = planted(values=2)
    eraser = Leace((codes,), EVERYONE, EVERYONE)
    out = eraser(z)
    before, after = (LogisticRegression(tol=1e-10).fit(x.astype(np.float64), codes) for x in (z, out))
    assert before.score(z, codes) > 0.8
    assert np.abs(after.coef_).max() < 1e-4
    np.testing.assert_allclose(eraser(out), out, atol=1e-5)


def test_joint_attributes_flat_dimensions_and_nodes_that_stay():
    z, codes = planted()
    z[:, 5] = 2.0  # a dimension without spread
    other = (z[:, 0] > 1).astype(np.int64)
    people = np.arange(400) < 300
    out = Leace((codes, other), people, people)(z)
    for c in (codes, other):
        assert np.abs(covariance(out[people], c[people])).max() < 1e-6
    assert (out[~people] == z[~people]).all() and np.isfinite(out).all() and out.dtype == np.float32
    # three directions go: two of three values, one of two
    assert np.linalg.matrix_rank(out[people] - out[people].mean(0), tol=1e-3) == 2


def test_what_does_not_correlate_is_left_alone():
    z = np.array([[1, 0], [-1, 0], [1, 1], [-1, 1]], np.float32)
    half = np.array([0, 0, 1, 1])
    everyone = np.ones(4, dtype=bool)
    out = Leace((half,), everyone, everyone)(z)
    assert out == pytest.approx(np.array([[1, 0.5], [-1, 0.5], [1, 0.5], [-1, 0.5]]))
