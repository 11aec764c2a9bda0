"""Saved models with the parameter names of earlier versions load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import longtail
from longtail import LabelSubsetClassifier, Ridge, RidgeCV
from longtail.errors import ModelFormatError
from longtail.estimator.checks import planted
from longtail.store import read_model, write_model

NOTHING = {"keep": None, "threshold": None, "top_features_per_label": None}


def with_params(state, changed):
    params = {name: value for name, value in state.params.items() if name not in ("density", "prune")}
    return replace(state, params={**params, **changed})


@pytest.mark.parametrize("learner", [Ridge, RidgeCV])
@pytest.mark.parametrize(
    ("old", "density", "prune"),
    [
        ({"top_features_per_label": 5}, None, 5),
        ({"threshold": 0.1}, None, 0.1),
        ({"threshold": 2}, None, 2.0),
        ({"threshold": 0}, None, 0.0),
        ({"keep": 0.5}, 0.5, None),
        ({}, None, None),
    ],
)
def test_old_names_become_new_ones(rng, learner, old, density, prune, tmp_path):
    X, Y = planted(rng)
    model = learner(density=density, prune=prune).fit(X, Y)
    write_model(with_params(model.to_state(), {**NOTHING, **old}), tmp_path / "old")
    again = longtail.load(tmp_path / "old")
    assert (again.density, again.prune) == (density, prune)
    assert type(again.prune) is type(prune)
    np.testing.assert_array_equal(again.predict_topk(X)[0], model.predict_topk(X)[0])
    again.save(tmp_path / "new")
    assert read_model(tmp_path / "new").params == model.to_state().params


def test_old_names_inside_another_model_become_new_ones(rng, tmp_path):
    X, Y = planted(rng)
    state = LabelSubsetClassifier(Ridge(prune=5), n_labels=4, outliers=0).fit(X, Y).to_state()
    inner = with_params(state.parts["estimator"], {**NOTHING, "top_features_per_label": 5})
    write_model(replace(state, parts={**state.parts, "estimator": inner}), tmp_path / "model")
    assert longtail.load(tmp_path / "model").estimator_.prune == 5


@pytest.mark.parametrize(
    "params",
    [
        {"keep": 0.5, "threshold": 0.1},
        {"keep": 0.5, "prune": 3},
        {"density": 0.5, "prune": 3},
        {"threshold": "much"},
        {"threshold": True},
        {"top_features_per_label": [1]},
        {"keep": 2},
    ],
)
def test_old_names_with_values_that_contradict_each_other_are_refused(rng, params, tmp_path):
    model = Ridge().fit(*planted(rng))
    write_model(with_params(model.to_state(), params), tmp_path / "model")
    with pytest.raises(ModelFormatError):
        longtail.load(tmp_path / "model")
