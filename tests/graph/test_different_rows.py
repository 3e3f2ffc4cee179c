"""Rows as one number each are told apart as rows are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uge_core.graph import rows
from uge_core.graph.rows import different_rows

TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.lists(st.sampled_from([-2, -1, 0, 1, 2, 900]), min_size=width, max_size=width), min_size=1, max_size=40
    )
)


@pytest.mark.parametrize("most", [rows._MOST_KEYS, 0.0], ids=["numbers", "rows"])
@given(TABLES)
def test_the_different_rows_are_those_of_numpy(most, table):
    array = np.array(table, dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_MOST_KEYS", most)
        distinct, place = different_rows(list(array.T))
    expected, inverse = np.unique(array, axis=0, return_inverse=True)
    assert distinct.tolist() == expected.tolist()
    assert place.tolist() == inverse.reshape(-1).tolist()
