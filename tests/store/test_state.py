"""The accessors of a state, and which parameters can be stored."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from longtail.errors import InvalidInput, ModelFormatError
from longtail.store import State, check_params, saved_params
from tests.store.stored_states import example_state


class Shrink(BaseEstimator):
    def __init__(self, rate, *, steps=3, solver="auto", inner=None):
        self.rate = rate
        self.steps = steps
        self.solver = solver
        self.inner = inner


def test_numpy_scalars_become_plain_parameters():
    params = saved_params(Shrink(np.float32(0.5), steps=np.int64(7), solver=np.str_("cg"), inner=np.bool_(True)))
    assert params == {"rate": 0.5, "steps": 7, "solver": "cg", "inner": True}
    assert [type(value) for value in params.values()] == [bool, float, str, int]


@pytest.mark.parametrize("value", [np.ones((2, 2)), object(), [[1]], {"a": 1}, float("inf"), [1j], 1j, b"x", 2**64])
def test_a_parameter_that_cannot_be_stored_is_named(value):
    with pytest.raises(InvalidInput, match="Shrink cannot be saved with the parameter solver="):
        saved_params(Shrink(1.0, solver=value))


@pytest.mark.parametrize("value", [[1, 2], (1, 2), np.array([1, 2])])
def test_lists_of_plain_values_come_back_as_tuples(value):
    saved = saved_params(Shrink(value))
    assert saved["rate"] == [1, 2]
    assert check_params(State("Shrink", saved), Shrink)["rate"] == (1, 2)


def test_parameters_stored_otherwise_are_left_out():
    assert "inner" not in saved_params(Shrink(1.0, inner=object()), without=("inner",))


def test_saved_parameters_fit_the_constructor_again():
    params = check_params(State("Shrink", saved_params(Shrink(1.0, steps=9))), Shrink)
    assert Shrink(**params).get_params() == Shrink(1.0, steps=9).get_params()


def test_a_parameter_added_since_takes_its_default():
    assert check_params(State("Shrink", {"rate": 1.0}), Shrink) == {"rate": 1.0}


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"rate": 1.0, "n_jobs": 2}, "no parameter 'n_jobs'"),
        ({"rate": 1.0, "self": 2}, "no parameter 'self'"),
        ({"rate": 1.0, "inner": None}, "no parameter 'inner'"),
        ({"steps": 2}, "'rate' of Shrink is missing"),
        ({"rate": {"a": 1.0}}, "flat list"),
        ({"rate": [[1.0]]}, "flat list"),
    ],
)
def test_parameters_the_constructor_does_not_take_are_refused(params, reason):
    with pytest.raises(ModelFormatError, match=reason):
        check_params(State("Shrink", params), Shrink, without=("inner",))


def test_arrays_are_handed_out_only_in_the_form_asked_for():
    state = example_state()
    inner = state.part("estimator", "Ridge")
    assert state.array("counts", np.int64, (2, None)).shape == (2, 3)
    assert sparse.issparse(inner.csr("coef", np.float32, (None, 4)))
    assert len(state.strings("label_names", 4)) == 4
    refused = [
        lambda: state.array("missing", np.int64, (2, 3)),
        lambda: state.array("counts", np.int32, (2, 3)),
        lambda: state.array("counts", np.int64, (2, 4)),
        lambda: state.array("counts", np.int64, (6,)),
        lambda: state.array("label_names", np.int64, (4,)),
        lambda: inner.array("coef", np.float32, (3, 4)),
        lambda: inner.csr("bias", np.float32, (None, 4)),
        lambda: state.strings("counts"),
        lambda: state.strings("label_names", 5),
        lambda: state.part("estimator", "Tree"),
        lambda: state.part("other"),
    ]
    for ask in refused:
        with pytest.raises(ModelFormatError, match=r"^(Tagger|Ridge): "):
            ask()


def test_facts_are_typed_and_truth_is_not_a_number():
    state = State("A", facts={"n": 3, "flag": True, "rate": 0.5})
    assert (state.fact("n", int), state.fact("flag", bool), state.fact("rate", (int, float))) == (3, True, 0.5)
    for name, kind in (("flag", int), ("flag", (int, float)), ("n", str), ("n", bool), ("missing", int)):
        with pytest.raises(ModelFormatError, match=name):
            state.fact(name, kind)
