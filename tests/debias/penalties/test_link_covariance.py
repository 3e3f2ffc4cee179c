import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from reference import link_covariance as slow

from uge_core.debias.penalties.discriminator import Build
from uge_core.debias.penalties.link_covariance import CovariantAdversary

BUILD = Build(depth=0, width=1, steps=0, batch=0, learning_rate=0.01)


def penalty(soft, num_users=None, alpha=2.0):
    return CovariantAdversary((np.asarray(soft, np.float32),), num_users, alpha, BUILD)


def test_by_hand():
    # labels a b, z = 1 and 3: pairs aa, ab, ba, bb score 1, 3, 3, 9 with s = 1, 0, 0, 1.
    # mean of s y = 10/4, of s 1/2, of y 4: C = 5/2 - 2 = 1/2.
    z = torch.tensor([[1.0], [3.0]])
    assert float(penalty([[1, 0], [0, 1]]).covariance(z)) == pytest.approx(1 / 2)
    # users a b with z = 1 and 3, one item of 2: scores 2 and 6, by value a: mean of s y 1, of s 1/2, of y 4: -1; by b
    # +1
    z = torch.tensor([[1.0], [3.0], [2.0]])
    assert float(penalty([[1, 0], [0, 1], [0, 0]], num_users=2).covariance(z)) == pytest.approx(2)


@given(
    arrays(np.float32, (7, 2), elements=st.floats(-2, 2, width=32)),
    arrays(np.float32, (7, 3), elements=st.floats(0.125, 1, width=32)),
    st.booleans(),
)
def test_equals_the_loop_over_pairs(z, soft, bipartite):
    soft = soft / soft.sum(1, keepdims=True)
    soft[5 if bipartite else 6 :] = 0
    users = 5 if bipartite else None
    got = float(penalty(soft, users).covariance(torch.tensor(z)))
    assert got == pytest.approx(slow(z, soft, users), rel=1e-4, abs=1e-5)


def test_items_may_be_the_side_that_has_the_attribute():
    z = torch.tensor([[2.0], [1.0], [3.0]])
    assert float(penalty([[0, 0], [1, 0], [0, 1]], num_users=1).covariance(z)) == pytest.approx(2)


def test_it_is_added_to_the_adversarys():
    z = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    soft = np.eye(2)[[0, 1, 1, 0]]
    low, high = (float(penalty(soft, alpha=a)(z, torch.Generator().manual_seed(1))) for a in (0.0, 2.0))
    assert low < 0
    assert high - low == pytest.approx(2 * float(penalty(soft).covariance(z)), rel=1e-4)
