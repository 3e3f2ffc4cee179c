from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reference import soft_neighbour_divergence

from uge_core.debias.penalties._neighbour_gap import neighbour_divergence, whitened
from uge_core.debias.penalties.neighbour_gap import NeighbourGap


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def people(n=60, dim=5, groups=3, seed=0, unknown=0.2):
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(2 * groups) % groups, rng.integers(0, groups, n - 2 * groups)]
    codes[2 * groups :][rng.random(n - 2 * groups) < unknown] = -1
    return rng.normal(size=(n, dim)) * rng.uniform(0.2, 3, dim) + rng.normal(size=dim), codes


def both_views(gap, z):
    """The penalty with the gradient of (N, d) `z` as the vectors stand, and in axes in which they vary alike."""
    found = {}
    for seed in range(50):
        x = z.clone().requires_grad_()
        value = gap(x, generator(seed))
        value.backward()
        found.setdefault(round(float(value.detach()), 5), (value.detach(), x.grad))
    assert len(found) == 2
    return [found[value] for value in sorted(found)]


@given(st.integers(2, 4), st.integers(1, 6), st.integers(0, 100), st.sampled_from([0.3, 1.0]))
def test_is_the_divergence_of_all_pairs_where_everybody_is_drawn(groups, dim, seed, temperature):
    z, codes = people(30, dim + 1, groups, seed)
    t = temperature / (dim + 1) ** 0.5
    known = np.flatnonzero(codes >= 0)
    want = sorted(soft_neighbour_divergence(z, range(len(z)), known, codes, t, spread) for spread in (False, True))
    gap = NeighbourGap((codes,), np.arange(len(z)), temperature)
    values = {round(float(gap(torch.tensor(z), generator(seed))), 9) for seed in range(40)}
    assert sorted(values) == pytest.approx(want, abs=2e-6)


def test_attributes_are_summed_and_of_one_group_there_is_nothing_to_mix():
    z, codes = people(unknown=0.0)
    other, one = np.arange(len(z)) % 2, np.zeros(len(z), int)

    def value(*attributes):
        return sorted(float(v) for v, _ in both_views(NeighbourGap(attributes, np.arange(len(z))), torch.tensor(z)))

    assert value(codes, other) == pytest.approx(np.add(value(codes), value(other)))
    assert float(NeighbourGap((one,), np.arange(len(z)))(torch.tensor(z), generator())) == pytest.approx(0, abs=1e-12)


def test_gradient_is_that_of_finite_differences():
    z = torch.tensor(people(30)[0], requires_grad=True)
    own = torch.cat([torch.full((10,), -1), torch.arange(5)])  # five are asked and possible neighbours
    code = torch.arange(20) // 8
    prior = torch.bincount(code).double() / 20
    assert torch.autograd.gradcheck(lambda t: neighbour_divergence(t[:15], t[10:], own, code, prior, 0.3), (z,))


@given(st.integers(2, 5), st.integers(2, 9), st.integers(0, 50))
def test_compiled_pass_equals_torchs_in_double(groups, dim, seed):
    z, codes = people(200, dim, groups, seed)
    gap = NeighbourGap((codes,), np.arange(200), 0.3, num_asked=90, num_others=120)
    results = []
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor(z, dtype=dtype, requires_grad=True)
        value = gap(x, generator(seed))
        value.backward()
        results.append((value.detach().double(), x.grad.double()))
    (value, slope), (want, wanted) = results
    assert float(value) == pytest.approx(float(want), rel=1e-4, abs=1e-6)
    torch.testing.assert_close(slope, wanted, rtol=1e-3, atol=2e-3 * float(wanted.abs().max()) + 1e-9)


def test_bits_do_not_depend_on_threads():
    rng = np.random.default_rng(0)
    z = torch.tensor(rng.normal(size=(3000, 16)), dtype=torch.float32)
    code = torch.arange(2500) // 900
    prior = torch.bincount(code).double() / 2500
    found = []
    for pool in (None, ThreadPoolExecutor(3)):
        x = z.clone().requires_grad_()
        asked, others = whitened(x[:200], x[500:])
        neighbour_divergence(asked, others, torch.full((200,), -1), code, prior, 0.05, pool).backward()
        found.append(x.grad)
    assert torch.equal(*found) and (found[0] != 0).any()


def test_people_without_a_value_are_moved_and_are_nobodys_neighbours():
    z, codes = people(50, unknown=0.0)
    codes[7] = -1
    gap = NeighbourGap((codes,), np.arange(50))
    without = np.delete(np.arange(50), 7)
    for (value, slope), spread in zip(both_views(gap, torch.tensor(z)), (False, True), strict=True):
        assert (slope[7] != 0).any()
        want = [soft_neighbour_divergence(z, range(50), without, codes, 0.2 / 5**0.5, s) for s in (False, True)]
        assert float(value) == pytest.approx(sorted(want)[spread])


def test_items_are_neither_asked_nor_neighbours():
    z, codes = people(50, unknown=0.0)
    codes[30:] = -1
    x = torch.tensor(z, requires_grad=True)
    NeighbourGap((codes,), np.arange(30))(x, generator()).backward()
    assert (x.grad[30:] == 0).all() and (x.grad[:30] != 0).any()


def descended(gap, z, steps):
    x = z.clone().requires_grad_()
    adam = torch.optim.Adam([x], lr=0.02)
    drawn = generator(3)
    for _ in range(steps):
        adam.zero_grad()
        gap(x, drawn).backward()
        adam.step()
    return x.detach()


def test_mixes_groups_that_lie_apart_although_nobody_has_a_neighbour_of_another_group():
    """A squared difference of shares has no slope there."""
    rng = np.random.default_rng(0)
    codes = np.arange(400) % 2
    z = torch.tensor(rng.normal(size=(400, 8)) * 0.3 + 2 * codes[:, None], dtype=torch.float32)
    z[codes == 0, 0] -= 6
    before = z / z.norm(dim=1, keepdim=True)
    assert float((before[codes == 0] @ before[codes == 1].T).max()) < 0.5
    after = descended(NeighbourGap((codes,), np.arange(400)), z, 300)

    def same(x):
        x = x / x.norm(dim=1, keepdim=True)
        near = (x @ x.T).fill_diagonal_(-1).topk(5).indices
        return float((torch.tensor(codes)[near] == torch.tensor(codes)[:, None]).double().mean())

    assert same(z) == 1.0 and same(after) < 0.6


def test_is_small_where_groups_are_drawn_by_chance():
    rng = np.random.default_rng(1)
    z = torch.tensor(rng.normal(size=(3000, 4)), dtype=torch.float32)
    by_chance, apart = rng.integers(0, 2, 3000), (z[:, 0] > 0).numpy().astype(int)
    for seed in range(4):
        random, split = (
            float(NeighbourGap((c,), np.arange(3000), 0.5)(z, generator(seed))) for c in (by_chance, apart)
        )
        assert 0 <= random < 0.05 * split
