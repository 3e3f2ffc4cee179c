import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reference import discriminator_loss

from uge_core.debias.penalties.adversary import Adversary
from uge_core.debias.penalties.discriminator import Answer, Build

STILL = Build(depth=1, width=5, steps=0, batch=0, learning_rate=0.01)
LEARNING = Build(depth=1, width=8, steps=3, batch=32, learning_rate=0.01)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def adversary(*codes, build=LEARNING):
    return Adversary(tuple(Answer.of_codes(np.asarray(c), int(np.max(c)) + 1) for c in codes), build)


def layers(state, k=0):
    numbers = [t.double().numpy() for name, t in state.items() if name.startswith(f"{k}.") and name.count(".") == 1]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def test_who_knows_the_shares_alone_is_at_minus_1():
    # 1 of 4 nodes has value 0. A linear discriminator of weight 0 and bias (log 1/4, log 3/4) loses
    # -(1/4) log 1/4 - (3/4) log 3/4 = H on average, so the penalty is -H / H = -1; the node without a value is not
    # asked.
    penalty = adversary([0, 1, -1, 1, 1], build=Build(0, 1, 0, 0, 0.01))
    penalty.restore({"0.0": torch.zeros(2, 2), "0.1": torch.tensor([math.log(1 / 4), math.log(3 / 4)])})
    z = torch.randn(5, 2, generator=generator(), requires_grad=True)
    assert float(penalty(z, generator()).detach()) == pytest.approx(-1, rel=1e-6)


def test_certain_and_right_is_0_certain_and_wrong_is_worse_than_chance():
    z = torch.tensor([[-9.0], [-9.0], [9.0], [9.0]])
    for sign, least, most in ((1.0, -0.001, 0.0), (-1.0, -60.0, -20.0)):
        penalty = adversary([0, 0, 1, 1], build=Build(0, 1, 0, 0, 0.01))
        penalty.restore({"0.0": torch.tensor([[-sign, sign]]), "0.1": torch.zeros(2)})
        assert least <= float(penalty(z, generator())) <= most


@given(st.lists(st.integers(-1, 2), min_size=4, max_size=12).filter(lambda c: {0, 1, 2} <= set(c)), st.integers(0, 2))
def test_equals_the_loops(codes, depth):
    penalty = adversary(codes, build=Build(depth, 5, 0, 0, 0.01))
    z = torch.randn(len(codes), 3, generator=generator())
    soft = [[float(c == g) for g in range(3)] for c in codes]
    value = float(penalty(z, generator(1)))
    assert value == pytest.approx(-discriminator_loss(z.tolist(), soft, layers(penalty.state())), rel=1e-4)


def test_soft_labels_equal_the_loops():
    z = torch.randn(6, 3, generator=generator())
    soft = torch.rand(6, 2, generator=generator(1))
    soft = soft / soft.sum(1, keepdim=True)
    penalty = Adversary((Answer(np.arange(6), soft.numpy(), 2),), STILL)
    value = float(penalty(z, generator(2)))
    assert value == pytest.approx(-discriminator_loss(z.tolist(), soft.tolist(), layers(penalty.state())), rel=1e-4)


def test_a_value_that_everybody_has_counts_nothing():
    penalty = Adversary((Answer.of_codes(np.zeros(4, np.int64), 2),), LEARNING)
    z = torch.randn(4, 2, generator=generator(), requires_grad=True)
    value = penalty(z, generator())
    value.backward()
    assert float(value.detach()) == 0 and (z.grad == 0).all()


def test_the_encoders_step_moves_z_and_no_discriminator():
    codes = np.array([0, 1, -1, 1, 0])
    penalty = adversary(codes, build=STILL)
    z = torch.randn(5, 3, generator=generator(), requires_grad=True)
    penalty(z, generator()).backward()
    assert (z.grad[2] == 0).all() and (z.grad[[0, 1, 3, 4]] != 0).any(1).all()
    assert all(leaf.grad is None for leaf in penalty._networks[0].leaves)
    soft = [[float(c == g) for g in (0, 1)] for c in codes]
    step, numeric = 1e-5, np.zeros((5, 3))
    for u in range(5):
        for j in range(3):
            up, down = z.detach().double().numpy().copy(), z.detach().double().numpy().copy()
            up[u, j] += step
            down[u, j] -= step
            found = [-discriminator_loss(x.tolist(), soft, layers(penalty.state())) for x in (up, down)]
            numeric[u, j] = (found[0] - found[1]) / (2 * step)
    np.testing.assert_allclose(z.grad.numpy(), numeric, rtol=1e-3, atol=1e-5)


def test_each_discriminator_learns_from_its_own_loss_alone():
    # in the public code the first of two is moved by the second's loss as well
    a, b = np.arange(60) % 2, np.arange(60) % 3
    z = torch.randn(60, 4, generator=generator())
    alone, both = adversary(a), adversary(a, b)
    both(z, generator())
    alone.restore({name: t for name, t in both.state().items() if name.startswith("0.")})
    for seed in range(5):
        alone(z, generator(seed)), both(z, generator(seed))
    for name, found in alone.state().items():
        np.testing.assert_array_equal(found, both.state()[name])


def test_those_that_are_off_neither_learn_nor_count():
    a, b = np.arange(60) % 2, np.arange(60) % 3
    z = torch.randn(60, 4, generator=generator())
    penalty = adversary(a, b)
    penalty(z, generator())
    before = {name: t.clone() for name, t in penalty.state().items()}
    penalty.on = (1,)
    value = penalty(z, generator(1))
    after = penalty.state()
    moved = {name for name, t in after.items() if not torch.equal(t, before[name])}
    assert moved and all(name.startswith("1.") for name in moved)
    soft = [[float(c == g) for g in range(3)] for c in b]
    assert float(value) == pytest.approx(-discriminator_loss(z.tolist(), soft, layers(after, 1)), rel=1e-4)
    penalty.on = ()
    assert float(penalty(z, generator(2))) == 0


def test_going_on_from_its_state_gives_the_same_bits():
    z = torch.randn(60, 4, generator=generator())
    whole, first, second = (adversary(np.arange(60) % 3, np.arange(60) % 2) for _ in range(3))
    one, two = generator(1), generator(1)
    for _ in range(4):
        expected = whole(z, one)
    for _ in range(2):
        first(z, two)
    second.restore({name: torch.tensor(t.numpy()) for name, t in first.state().items()})
    for _ in range(2):
        found = second(z, two)
    assert float(found) == float(expected)
    for name, t in whole.state().items():
        np.testing.assert_array_equal(t, second.state()[name])


def test_what_was_restored_and_not_stepped_is_still_there():
    # a warm path resumed right after its cold end: the state goes on to the next stage without a step in between
    answers = (Answer.of_codes(np.arange(40) % 2, 2),)
    build = Build(depth=1, width=8, steps=1, batch=0, learning_rate=0.01)
    first = Adversary(answers, build)
    first(torch.randn(40, 4, generator=torch.Generator().manual_seed(0)), torch.Generator().manual_seed(1))
    second = Adversary(answers, build)
    second.restore(first.state())
    assert second.state().keys() == first.state().keys() and len(first.state()) > 4
    assert all(torch.equal(second.state()[k], t) for k, t in first.state().items())
