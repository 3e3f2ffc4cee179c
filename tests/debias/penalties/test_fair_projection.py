from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reference import fair_projection
from toys import inputs, shop, town

from uge_core.debias.methods.fipr import FIPR
from uge_core.debias.penalties._fair_projection import multipliers
from uge_core.debias.penalties.fair_projection import FairProjection


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def people(n=40, dim=3, groups=2, seed=0, apart=1.0):
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(groups), rng.integers(0, groups, n - groups)]
    return rng.normal(size=(n, dim)) + apart * rng.normal(size=(groups, dim))[codes], codes


def penalty(codes, **more):
    return FairProjection(codes, np.zeros(len(codes), np.int64), **more)


def blocks_of(codes, drawn):
    return [tuple(sorted((int(codes[i]), int(codes[j])))) for i in drawn[0] for j in drawn[1]]


@given(st.integers(1, 3), st.integers(0, 1000), st.sampled_from([0.0, 0.5, 1.0]))
def test_is_the_divergence_of_the_closest_fair_model_and_so_is_its_slope(groups, seed, apart):
    z, codes = people(10, 3, groups, seed, apart)
    gap = penalty(codes)
    drawn = gap.draw(generator(seed), 3)
    x = torch.tensor(z, requires_grad=True)
    value = gap.measure(x, drawn)
    value.backward()
    first, second = (t.numpy() for t in drawn)
    assert not set(first) & set(second) and len(first) == len(second) == 5
    scores = z[first] @ z[second].T
    want, fair = fair_projection(scores.ravel().tolist(), blocks_of(codes, (first, second)))
    assert float(value.detach()) == pytest.approx(want, rel=1e-4, abs=1e-9)
    slope = (1 / (1 + np.exp(-scores)) - np.reshape(fair, scores.shape)) / scores.size
    by_hand = np.zeros_like(z)
    by_hand[first], by_hand[second] = slope @ z[second], slope.T @ z[first]
    np.testing.assert_allclose(x.grad.numpy(), by_hand, atol=1e-6)


@given(st.integers(2, 6), st.integers(0, 100), st.floats(0.1, 5.0), st.floats(0.0, 5.0))
def test_newtons_steps_get_there(groups, seed, spread, apart):
    """All blocks end at one mean, and multipliers weighed by pairs sum to 0."""
    rng = np.random.default_rng(seed)
    left, right = (np.r_[np.arange(groups), rng.integers(0, groups, 60)] for _ in range(2))
    table = rng.normal(size=(groups, groups)) * apart
    scores = rng.normal(size=(len(left), len(right))) * spread + (table + table.T)[left][:, right] - 2
    given_as = (torch.tensor(scores, dtype=torch.float32), torch.tensor(left), torch.tensor(right))
    shift = multipliers(*given_as, groups).numpy()
    np.testing.assert_array_equal(shift, shift.T)
    of_pairs = shift[left][:, right]
    chance = 1 / (1 + np.exp(-scores - of_pairs))
    pair = np.minimum(left[:, None], right) * groups + np.maximum(left[:, None], right)
    means = [chance[pair == b].mean() for b in np.unique(pair)]
    assert max(means) - min(means) < 1e-3 and abs(of_pairs.mean()) < 1e-4


def test_two_blocks_by_hand():
    """Half of the pairs have chance 1/2 and half 4/5: log odds 0 and log 4, which meet half way at log 2."""
    scores = torch.tensor([[0.0, float(np.log(4))]], dtype=torch.float64)
    shift = multipliers(scores, torch.tensor([0]), torch.tensor([0, 1]), 3).numpy()
    np.testing.assert_allclose(shift[0], [np.log(2), -np.log(2), 0], atol=1e-6)
    assert shift[1, 1] == shift[2, 2] == 0  # no pair there


def test_descent_makes_blocks_alike_and_leaves_a_fair_model_alone():
    z, codes = people(300, 6, 2, apart=1.5)
    other = np.random.default_rng(1).permutation(codes)  # negative control
    assert float(penalty(other)(torch.tensor(z), generator())) < 0.02 * float(
        penalty(codes)(torch.tensor(z), generator())
    )
    x = torch.tensor(z, dtype=torch.float32, requires_grad=True)
    adam, gap, drawn = torch.optim.Adam([x], lr=0.02), penalty(codes), generator(1)
    for _ in range(100):
        adam.zero_grad()
        gap(x, drawn).backward()
        adam.step()

    def apart(x):
        chance = 1 / (1 + np.exp(-x @ x.T))
        same = codes[:, None] == codes
        return abs(chance[same].mean() - chance[~same].mean())

    assert apart(z) > 0.15 and apart(x.detach().numpy()) < 0.02


def test_nothing_is_counted_twice_and_nobody_is_left_out():
    z, codes = people(41)
    codes[5] = -1
    first, second = penalty(codes).draw(generator(), 3)
    assert sorted([*first.tolist(), *second.tolist()]) == [i for i in range(41) if i != 5]
    first, second = penalty(codes, num_nodes=4).draw(generator(), 3)
    assert len({*first.tolist(), *second.tolist()}) == 8
    one = np.full(41, -1)
    one[3] = 0
    assert float(penalty(one)(torch.tensor(z), generator())) == 0


def test_bits_do_not_depend_on_threads():
    z, codes = people(2000, 7, 3)
    found, before = [], torch.get_num_threads()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            x = torch.tensor(z, dtype=torch.float32, requires_grad=True)
            value = penalty(codes)(x, generator())
            value.backward()
            found.append(torch.cat([x.grad.ravel(), value.detach()[None]]))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*found) and (found[0] != 0).any()


def test_far_apart_and_overflowing_scores_have_finite_slopes():
    z, codes = people(60)
    for scale in (1e-6, 30.0, 1e8):
        x = torch.tensor(z * scale, dtype=torch.float32, requires_grad=True)
        value = penalty(codes)(x, generator())
        value.backward()
        assert torch.isfinite(value) and torch.isfinite(x.grad).all()


def test_groups_are_of_the_sensitive_attributes_and_pairs_cross_to_items():
    gap = FIPR(num_nodes=7).penalty(inputs(town(), ("city",)))
    assert gap.group.max() == 2 and gap.num_nodes == 7
    assert FIPR().penalty(inputs(town(), ("city", "gender"))).group.max() == 5
    graph = shop()
    gap = FIPR().penalty(inputs(graph, ("gender",)))
    first, second = gap.draw(generator(), 3)
    assert sorted(first.tolist()) == list(range(50)) and sorted(second.tolist()) == list(range(50, 80))
    assert len(np.unique(gap.group[50:])) == 1
    z = torch.tensor(np.random.default_rng(0).normal(size=(80, 3)))
    want, _ = fair_projection((z[first] @ z[second].T).ravel().tolist(), blocks_of(gap.group, (first, second)))
    assert float(gap.measure(z, (first, second))) == pytest.approx(want, rel=1e-4)
    told_of = inputs(graph, ("gender",))
    (gender,) = told_of.sensitive
    told_of = replace(told_of, sensitive=(replace(gender, codes=np.where(np.arange(80) < 9, -1, gender.codes)),))
    first, _ = FIPR().penalty(told_of).draw(generator(), 3)
    assert sorted(first.tolist()) == list(range(9, 50))
