import numpy as np
import pytest
import torch
from reference import mmd2

from uge_core.group_means import Groups
from uge_core.penalties._kernel_gap import fourier_gap
from uge_core.penalties.kernel_gap import SCALES, KernelGap


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def split_normals(shift, n=300, seed=0):
    group = np.arange(n) % 3
    z = torch.randn(n, 4, generator=generator(seed))
    z[group == 0] += shift
    return z, group


def test_approaches_the_exact_mmd_with_many_features():
    z, group = split_normals(1.0)
    penalty = KernelGap((group,), num_features=4096)
    got = np.mean([float(penalty(z, generator(s))) for s in range(4)])
    x = z.double().numpy()
    median = np.median([((x[i] - x[j]) ** 2).sum() for i in range(0, 300, 3) for j in range(1, 300, 7)])
    exact = sum((group == g).mean() * mmd2(x[group == g], x, [s * median for s in SCALES]) for g in range(3))
    assert got == pytest.approx(exact, rel=0.1)


@pytest.mark.parametrize("moments", [0, 2])
def test_grows_with_the_difference_and_is_small_without_one(moments):
    values = [
        float(KernelGap((g,), moments=moments)(z, generator(1))) for z, g in (split_normals(s) for s in (0.0, 1.0, 3.0))
    ]
    assert 0 <= values[0] < values[1] < values[2]
    assert values[0] < 0.2 * values[1]


def test_a_spread_that_leaves_means_equal_is_seen_too():
    # the mean gap of UGE-R is blind to this: same means, different spread
    group = np.arange(400) % 2
    z = torch.randn(400, 4, generator=generator())
    wide = z.clone()
    wide[group == 0] *= 3
    wide -= torch.stack([wide[group == g].mean(0) for g in (0, 1)])[group]
    assert float(KernelGap((group,))(wide, generator(1))) > 5 * float(KernelGap((group,))(z, generator(1)))


def test_closed_form_gradient_equals_autograd():
    z, group = split_normals(0.5, n=60)
    other = (np.arange(60) % 4) - 1  # some nodes outside
    weight, phase = torch.randn(4, 32, generator=generator(2)), torch.rand(32, generator=generator(3)) * 6
    a = z.clone().requires_grad_()
    made = [Groups.of(g, int(g.max()) + 1, torch.device("cpu")) for g in (group, other)]
    fourier_gap(a, made, weight, phase).backward()
    b = z.clone().requires_grad_()
    f = 2**0.5 * torch.cos(b @ weight + phase)
    total = 0.0
    for g in (group, other):
        inside = torch.as_tensor(g >= 0)
        overall = f[inside].mean(0)
        for c in range(g.max() + 1):
            rows = torch.as_tensor(g == c)
            total = total + rows.sum() / inside.sum() * (f[rows].mean(0) - overall).square().mean()
    total.backward()
    torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-7)


def test_nodes_outside_every_group_do_not_move():
    z, group = split_normals(1.0, n=30)
    group = group.copy()
    group[5] = -1
    z.requires_grad_()
    KernelGap((group,))(z, generator()).backward()
    assert (z.grad[5] == 0).all() and (z.grad[6] != 0).any()
