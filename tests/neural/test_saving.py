"""Saving a network checks that it can be loaded, without side effects."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

import longtail
from longtail.estimator.checks import planted
from longtail.neural import DeepMIML, MultiHeadClassifier
from longtail.store import put_together


def test_a_model_is_saved_although_there_is_no_memory_to_check_it(rng, tmp_path, monkeypatch):
    X, Y = planted(rng)
    model = DeepMIML(epochs=1, hidden=4, n_jobs=1).fit(X, np.eye(X.shape[0]), Y)
    monkeypatch.setenv("LONGTAIL_MEMORY", "1K")
    model.save(tmp_path / "model")
    monkeypatch.delenv("LONGTAIL_MEMORY")
    assert isinstance(longtail.load(tmp_path / "model"), DeepMIML)


def test_saving_and_loading_leave_the_random_numbers_of_torch_alone(rng, tmp_path):
    X, Y = planted(rng)
    model = MultiHeadClassifier(width=4, epochs=1, n_jobs=1).fit(X, Y)
    before = torch.get_rng_state()
    model.save(tmp_path / "model")
    longtail.load(tmp_path / "model")
    assert torch.equal(torch.get_rng_state(), before)


def test_a_model_saved_with_the_earlier_parameter_names_loads(rng):
    X, Y = planted(rng)
    state = MultiHeadClassifier(width=4, epochs=1, holdout=0.2, n_jobs=1).fit(X, Y).to_state()
    params = {**state.params, "validation": 0.2, "weighting": "none"}
    del params["holdout"]
    loaded = put_together(replace(state, params=params))
    assert (loaded.holdout, loaded.weighting) == (0.2, None)
