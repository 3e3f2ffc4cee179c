import pytest
import torch

from uge_core.penalties.base import NoPenalty, Penalty
from uge_core.penalties.mixture import Mixture


class Squares(Penalty):
    def __call__(self, z, generator):
        return z.square().sum()


class Drawn(Penalty):
    def __call__(self, z, generator):
        return z.sum() * torch.rand((), generator=generator)


def generator():
    return torch.Generator().manual_seed(0)


def test_is_the_weighted_sum_and_so_is_its_gradient():
    z = torch.tensor([[1.0, 2.0]], requires_grad=True)
    value = Mixture(((0.5, Squares()), (3.0, Squares()), (7.0, NoPenalty())))(z, generator())
    value.backward()
    assert float(value.detach()) == pytest.approx(17.5) and z.grad.tolist() == [[7.0, 14.0]]


def test_a_part_of_weight_0_draws_nothing():
    z = torch.ones(2, 2)
    alone = Mixture(((1.0, Drawn()),))(z, generator())
    assert Mixture(((0.0, Drawn()), (1.0, Drawn())))(z, generator()) == alone
    assert Mixture(())(z, generator()) == 0
