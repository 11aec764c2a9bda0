"""Scaling of features that came ready-made."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.errors import InvalidInput, ModelFormatError
from longtail.store import State
from longtail.text import RowScaling


def test_rows_get_unit_length_and_empty_ones_stay():
    X = RowScaling().fit_transform([[3.0, 0.0, -4.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(X.toarray(), [[0.6, 0, -0.8], [0, 0, 0]], rtol=1e-6)


def test_logarithms_come_before_the_length():
    X = RowScaling(log=True, unit=False).fit_transform([[0.0, np.e - 1]])
    np.testing.assert_allclose(X.toarray(), [[0, 1]], rtol=1e-6)
    with pytest.raises(InvalidInput, match="negative"):
        RowScaling(log=True).fit_transform([[-0.5]])


def test_the_width_is_remembered_through_its_state():
    scaling = RowScaling(log=True).fit([[1.0, 2.0]])
    again = RowScaling.from_state(scaling.to_state())
    assert again.get_params() == scaling.get_params()
    with pytest.raises(InvalidInput, match="expecting 2 features"):
        again.transform([[1.0]])


@pytest.mark.parametrize("params", [{"log": 1}, {"unit": None}, {"more": True}])
def test_a_state_that_makes_no_sense_is_refused(params):
    with pytest.raises(ModelFormatError):
        RowScaling.from_state(State("RowScaling", params, {"n_features": 2}))
