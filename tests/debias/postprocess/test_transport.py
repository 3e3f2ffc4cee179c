from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference import least_cost_matching
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from toys import inputs, shop, town

from uge_core.debias.methods.fairot import FairOT
from uge_core.debias.postprocess.leace import Leace
from uge_core.debias.postprocess.transport import Transport, transported

SHARP = 1e-3  # so narrow a blur, beside median squared distances, that plans are matchings


def planted(n=900, seed=0):
    """Two groups of like means, one on a ring around the other; two fifths are of the ring. Every fifth is not fitted on."""
    rng = np.random.default_rng(seed)
    codes = (rng.random(n) < 0.4).astype(np.int64)
    z = rng.normal(size=(n, 3))
    ring = z / np.linalg.norm(z, axis=1, keepdims=True) * 4 + 0.3 * z
    return np.where(codes[:, None] == 1, ring, z).astype(np.float32), codes, np.arange(n) % 5 > 0


def told(z, codes, fitted):
    """AUC of trees on people that nothing was fitted on."""
    model = HistGradientBoostingClassifier(max_iter=40).fit(z[fitted], codes[fitted])
    return roc_auc_score(codes[~fitted], model.predict_proba(z[~fitted])[:, 1])


def test_trees_are_at_chance_where_a_linear_eraser_leaves_everything():
    z, codes, fitted = planted()
    everyone = np.ones(len(z), dtype=bool)
    assert told(z, codes, fitted) > 0.95 and told(Leace((codes,), fitted, everyone)(z), codes, fitted) > 0.9
    out = Transport(codes, everyone)(z)
    assert abs(told(out, codes, fitted) - 0.5) < 0.12
    # whom no plan is fitted on stand a little otherwise than those who taught the trees
    assert told(Transport(codes, fitted)(z), codes, fitted) < 0.75
    # a group that is larger has more of a say, and what all have in common stays
    assert np.abs(out.mean(0) - z.mean(0)).max() < 0.15
    # negative control: of two groups that are told apart by chance alone, places are kept in the main
    other = np.random.default_rng(1).permutation(codes)
    assert np.square(Transport(other, everyone)(z) - z).mean() < 0.5 * np.square(out - z).mean()


@given(st.integers(0, 10_000))
def test_two_groups_of_one_block_meet_half_way_of_their_least_cost_matching(seed):
    rng = np.random.default_rng(seed)
    x = np.stack(np.divmod(rng.choice(16, 5, replace=False), 4), axis=1) * 4.0
    y = rng.permutation(x) + rng.normal(size=(5, 2)) * 0.4
    y += 20
    partner = least_cost_matching(x, y)
    middle = (x + y[partner]) / 2
    of_x, of_y = transported([x, y], [x, y], np.array([0.5, 0.5]), SHARP * 400)
    np.testing.assert_allclose(of_x, middle, atol=0.01)
    np.testing.assert_allclose(of_y[partner], middle, atol=0.01)


def test_in_one_dimension_three_groups_meet_at_their_mean_quantiles():
    rng = np.random.default_rng(0)
    places = np.sort(rng.normal(size=(3, 8)), axis=1) * [[1], [2], [3]] + np.arange(8) * 2 + [[0], [10], [-5]]
    clouds = list(places[:, :, None])
    for goal in transported(clouds, clouds, np.full(3, 1 / 3), SHARP * 100):
        np.testing.assert_allclose(goal[:, 0], places.mean(0), atol=0.15)


def test_a_share_stops_on_the_way_and_the_seed_draws_the_blocks():
    z, codes, fitted = planted()
    whole = Transport(codes, fitted, block=64)
    out = whole(z)
    assert out.dtype == np.float32 and (out == whole(z)).all()
    assert (out != replace(whole, seed=1)(z)).any()
    assert (replace(whole, share=0.0)(z) == z).all()
    np.testing.assert_allclose(replace(whole, share=0.25)(z), z + (out - z) / 4, atol=1e-5)


def test_everybody_with_a_value_is_moved_once_and_nobody_else():
    z, codes, fitted = planted()
    codes = codes.copy()
    codes[:7] = 2  # fewer than a block
    codes[7:12] = 3  # nobody is fitted on
    fitted = fitted & (codes < 3)
    codes[20:40], fitted[20:40] = -1, False
    transport = Transport(codes, fitted, block=50)
    blocks = list(transport._blocks(np.arange(3), np.random.default_rng(0)))
    moved = np.concatenate([rows for _, of_groups in blocks for rows in of_groups])
    np.testing.assert_array_equal(np.sort(moved), np.nonzero((codes >= 0) & (codes < 3))[0])
    for learnt, sent in blocks:
        for fitted_on, rows in zip(learnt, sent, strict=True):
            assert len(fitted_on) and fitted[fitted_on].all() and not np.isin(rows, fitted_on).any()
    stays = (transport(z) == z).all(1)
    np.testing.assert_array_equal(stays, (codes < 0) | (codes == 3))


def test_nobody_to_fit_on_and_groups_of_one():
    z, codes, _ = planted(60)
    assert (Transport(codes, np.zeros(60, dtype=bool))(z) == z).all()
    alone = np.where(np.arange(60) < 3, np.arange(60) + 2, codes)
    out = Transport(alone, np.ones(60, dtype=bool))(z)
    assert np.isfinite(out).all() and (out != z).any(1).all()
    assert np.isfinite(Transport(np.arange(2), np.ones(2, dtype=bool))(z[:2])).all()


def test_vectors_that_are_all_alike_or_far_off_stay_finite():
    z, codes, fitted = planted(100)
    assert np.isfinite(Transport(codes, fitted)(np.ones_like(z))).all()
    z[0] = 1e6
    assert np.isfinite(Transport(codes, fitted)(z)).all()


def test_groups_are_of_all_attributes_and_items_stay():
    transport = FairOT().postprocess(inputs(town(), ("city", "gender")))
    assert len(np.unique(transport.group)) == 6 and transport.group.min() >= 0
    graph = shop()
    told_of = inputs(graph, ("gender",))
    transport = FairOT(share=0.5).postprocess(told_of)
    assert (transport.group[50:] < 0).all() and (transport.group[:50] >= 0).all() and transport.share == 0.5
    assert FairOT().dimensions(told_of) == 0
    # people whose value is imputed are moved by it and are not fitted on; who has none is left
    told_of = inputs(graph, ("gender",), hidden=np.arange(80) % 10 == 0)
    (gender,) = told_of.sensitive
    nobody = np.arange(80) % 20 == 0
    told_of = replace(told_of, sensitive=(replace(gender, codes=np.where(nobody, -1, np.maximum(gender.codes, 0))),))
    transport = FairOT().postprocess(told_of)
    assert not transport.fitted[::10].any() and (transport.group[10:50:20] >= 0).all()
    assert (transport.group[nobody] < 0).all()
