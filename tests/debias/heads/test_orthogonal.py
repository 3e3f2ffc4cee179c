import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from uge_core.debias.heads.orthogonal import Orthogonal


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def head(*codes, width=4, free=()):
    codes = tuple(np.asarray(c) for c in codes)
    return Orthogonal(codes, tuple(int(c.max()) + 1 for c in codes), np.asarray(free, np.int64), width)


def test_by_hand():
    # groups a a b with W = (1, 2): m = 1, 1, 2, |m|^2 = 6; z = 1, 2, 3: m . z = 9, so z_perp = z - 1.5 m = -.5, .5, 0
    unit = head([0, 0, 1], width=1)
    parameters = {"metadata": torch.tensor([[1.0], [2.0]])}
    z = torch.tensor([[1.0], [2.0], [3.0]])
    torch.testing.assert_close(unit.exported(z, parameters), torch.tensor([[-0.5], [0.5], [0.0]]))
    torch.testing.assert_close(
        unit.seen(z, parameters, generator()), torch.tensor([[1.0, -0.5], [1.0, 0.5], [2.0, 0.0]])
    )


@given(
    st.lists(st.integers(-1, 2), min_size=8, max_size=12).filter(lambda c: max(c) == 2),
    st.integers(1, 6),
    st.integers(0, 5),
)
def test_equals_least_squares_and_is_orthogonal(codes, width, seed):
    other = np.arange(len(codes)) % 2
    unit = head(codes, other, width=width)
    parameters = unit.start(3, generator(seed))
    z = torch.randn(len(codes), 3, generator=generator(seed + 1)) + 5
    out, m = unit.exported(z, parameters).double().numpy(), unit.metadata(parameters).double().numpy()
    expected = z.double().numpy() - m @ np.linalg.lstsq(m, z.double().numpy(), rcond=1e-5)[0]
    np.testing.assert_allclose(out, expected, atol=2e-4)
    assert np.abs(m.T @ out).max() <= 1e-4 * np.linalg.norm(m) * np.linalg.norm(z)


def test_nothing_linear_is_left_on_what_it_saw():
    """As wide as there are values: every group's mean is 0, whatever W; narrower: it is not."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, 500)
    z = torch.randn(500, 8, generator=generator())
    z[:, :5] += 3 * torch.nn.functional.one_hot(torch.as_tensor(codes), 5)

    def leak(width):
        unit = head(codes, width=width)
        out = unit.exported(z, unit.start(8, generator(1))).double().numpy()
        return np.abs(np.eye(5)[codes].T @ out).max() / np.abs(np.eye(5)[codes].T @ z.numpy()).max()

    assert leak(5) < 1e-4 and leak(2) > 0.05


def test_nodes_without_a_value_stay_as_they_are():
    unit = head([0, 1, -1, 1, 0], width=2)
    parameters, z = unit.start(3, generator()), torch.randn(5, 3, generator=generator(1))
    out = unit.seen(z, parameters, generator())
    assert (out[2, 2:] == z[2]).all() and (out[2, :2] == 0).all() and (out[0, 2:] != z[0]).any()


def test_free_nodes_learn_their_own():
    unit = head([0, 1, -1, -1], width=2, free=(2, 3))
    parameters, z = unit.start(3, generator()), torch.randn(4, 3, generator=generator(1))
    out = unit.seen(z, parameters, generator())
    assert (out[2:, :2] == parameters["free"]).all() and (out[2:, 2:] == z[2:]).all()
    assert (unit.exported(z, parameters)[2:] == z[2:]).all()


def test_the_projection_is_a_constant_to_the_gradient():
    unit = head([0, 0, 1, 1, 2], width=2)
    parameters = {n: t.requires_grad_() for n, t in unit.start(3, generator()).items()}
    z = torch.randn(5, 3, generator=generator(1), requires_grad=True)
    upstream = torch.randn(5, 5, generator=generator(2))
    (unit.seen(z, parameters, generator()) * upstream).sum().backward()
    m = unit.metadata(parameters).detach()
    inside = m @ torch.linalg.pinv(m)
    torch.testing.assert_close(z.grad, upstream[:, 2:] - inside @ upstream[:, 2:], rtol=1e-3, atol=1e-4)
    # W hears of its own part of the logit alone
    sums = torch.zeros(3, 2).index_add(0, torch.tensor([0, 0, 1, 1, 2]), upstream[:, :2])
    torch.testing.assert_close(parameters["metadata"].grad, sums)


@pytest.mark.parametrize("width", [1, 3])
def test_equal_seeds_start_alike(width):
    a, b = (head([0, 1], width=width).start(3, generator(s))["metadata"] for s in (0, 0))
    assert (a == b).all() and a.shape == (2, width)
