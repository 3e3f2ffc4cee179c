import numpy as np
import pytest
import torch

from uge_core.debias.penalties.base import Ahead, NoPenalty, Penalty
from uge_core.debias.penalties.kernel_gap import KernelGap
from uge_core.debias.penalties.mixture import Mixture


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


def test_draws_made_ahead_are_those_of_the_call():
    codes = np.random.default_rng(0).integers(0, 3, 60)
    gap, moments = KernelGap((codes,), 16), KernelGap((codes,), 16, moments=2)
    z = torch.randn(60, 4, generator=generator())
    for parts in (((2.0, gap), (0.5, moments)), ((0.0, moments), (1.5, gap)), ()):
        mixture, stream = Mixture(parts), generator()
        assert isinstance(mixture, Ahead)
        for _ in range(2):
            assert mixture.measure(z, mixture.draw(stream, 4)) == pytest.approx(mixture(z, before(stream, mixture)))


def before(stream, mixture):
    """A stream as it was before a step of `mixture`, which is the first or second."""
    again = generator()
    while True:
        start = again.get_state()
        mixture.draw(again, 4)
        if torch.equal(again.get_state(), stream.get_state()):
            again.set_state(start)
            return again


def test_a_part_that_cannot_draw_ahead_leaves_the_stream_as_it_was():
    stream = generator()
    codes = np.arange(8) % 2
    assert Mixture(((1.0, KernelGap((codes,), 16)), (1.0, Drawn()))).draw(stream, 2) is None
    assert torch.equal(stream.get_state(), generator().get_state())
