import numpy as np
import pytest
import torch
from reference import filtered

from uge_core.debias.heads.filters import Filters
from uge_core.debias.penalties.adversary import Adversary
from uge_core.debias.penalties.discriminator import Answer, Build

NAMES = ("weight0", "bias0", "weight1", "bias1", "scale", "shift")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def filters(side=(0, 0), num_users=None, chance=0.5):
    answers = tuple(Answer.of_codes(np.arange(6) % 2, 2) for _ in side)
    return Filters(side, num_users, chance, Adversary(answers, Build(0, 1, 0, 0, 0.01)))


def numbers(parameters, *on):
    return [[parameters[f"filter{k}.{name}"].double().numpy() for name in NAMES] for k in on]


def test_one_dimension_by_hand():
    # W1 = (1, -1), so (x, -x) and after lrelu of x = 1, -1: (1, -.01), (-.01, 1); W2 = (2, 0)^T: 2 and -.02 -> -.0002.
    # Two rows normalise to +1 and -1 whatever they are; scale 3 and shift 5 make 8 and 2.
    head = filters(side=(0,))
    parameters = head.start(1, generator())
    for name, value in zip(NAMES, ([[1.0, -1.0]], [0.0, 0.0], [[2.0], [0.0]], [0.0], [3.0], [5.0]), strict=True):
        parameters[f"filter0.{name}"] = torch.tensor(value)
    z = head.exported(torch.tensor([[1.0], [-1.0]]), parameters)
    torch.testing.assert_close(z, torch.tensor([[8.0], [2.0]]), rtol=1e-4, atol=1e-4)


def test_equals_the_loops_and_is_the_mean_of_the_filters():
    head, z = filters(), torch.randn(6, 3, generator=generator())
    parameters = head.start(3, generator(1))
    assert parameters["filter0.weight0"].shape == (3, 6) and parameters["filter1.weight1"].shape == (6, 3)
    np.testing.assert_allclose(
        head.exported(z, parameters), filtered(z.tolist(), numbers(parameters, 0, 1)), rtol=1e-3, atol=1e-4
    )
    one = [filtered(z.tolist(), numbers(parameters, k)) for k in (0, 1)]
    np.testing.assert_allclose(head.exported(z, parameters), np.mean(one, axis=0), rtol=1e-3, atol=1e-4)


def test_each_step_draws_the_filters_and_tells_the_adversary():
    head, z = filters(), torch.randn(6, 3, generator=generator())
    parameters, draws, seen = head.start(3, generator(1)), generator(2), []
    for _ in range(400):
        out = head.seen(z, parameters, draws)
        on = head.adversary.on
        seen.append(on)
        expected = z if not on else torch.tensor(filtered(z.tolist(), numbers(parameters, *on))).float()
        if len(seen) < 9:
            torch.testing.assert_close(out, expected, rtol=1e-3, atol=1e-4)
    share = {on: seen.count(on) / 400 for on in set(seen)}
    assert set(share) == {(), (0,), (1,), (0, 1)} and all(0.18 < s < 0.32 for s in share.values())


def test_without_any_filter_the_loss_sees_z_itself():
    head, z = filters(chance=0.0), torch.randn(6, 3, generator=generator())
    parameters = head.start(3, generator(1))
    torch.testing.assert_close(head.seen(z, parameters, generator(2)), z, rtol=0, atol=0)
    assert head.adversary.on == ()


@pytest.mark.parametrize("side", [0, 1])
def test_only_the_side_that_has_the_attribute_is_filtered(side):
    head, z = filters(side=(side,), num_users=2), torch.randn(6, 3, generator=generator())
    parameters = head.start(3, generator(1))
    out = head.exported(z, parameters)
    mine, other = (slice(0, 2), slice(2, 6)) if side == 0 else (slice(2, 6), slice(0, 2))
    torch.testing.assert_close(out[other], z[other], rtol=0, atol=0)
    np.testing.assert_allclose(out[mine], filtered(z[mine].tolist(), numbers(parameters, 0)), rtol=1e-3, atol=1e-4)
