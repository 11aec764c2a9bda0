"""Saved label trees with overwritten files: refused if loading sees it, harmless if not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import longtail
from longtail import LabelTree, OneVsRest
from longtail.errors import ModelFormatError
from longtail.estimator.checks import planted
from tests.store.stored_states import fields_of, replace_file

LARGE = ("shifts", "masks", "bucket_rows", "bucket_weights", "lows", "counts", "slots", "weights")
SMALL = ("pointers", "children", "intercepts", "scales", "first_bucket", "first_row", "first_low", "first_weight")


def rows():
    """Rows with so many features without weights that the low bits of the others are stored."""
    X, Y = planted(np.random.default_rng(0))
    wide = (X.data, X.indices * 100, X.indptr)
    return sparse.csr_array(wide, shape=(X.shape[0], 100 * X.shape[1])), Y


@pytest.fixture(params=[16, 32])
def model(request, tmp_path):
    X, Y = rows()
    LabelTree(leaf_size=3, n_trees=2, prune=0.05, precision=request.param).fit(X, Y).save(tmp_path / "model")
    return tmp_path / "model"


def overwrite(model, rng, names):
    """Write random bytes behind the header of these arrays of both trees, with matching checksums."""
    for tree in ("tree0", "tree1"):
        for name in names:
            fields = fields_of(model)
            entry = fields["model"]["parts"][tree]["arrays"][name]["files"]["values"]
            content = (model / entry["name"]).read_bytes()
            size = np.load(model / entry["name"]).nbytes
            replace_file(model, fields, entry, content[: len(content) - size] + rng.bytes(size))


def check_sound(found, X):
    with np.errstate(all="ignore"):
        for rows in (X[[5]], X):
            labels, scores = found.predict_topk(rows, k=5)
            given = labels >= 0
            assert (labels < 12).all()
            assert ((scores[given] > 0) & (scores[given] <= 1)).all()
            assert (scores[~given] == -np.inf).all()
        full = found.decision_function(X)
        assert ((full >= 0) & (full <= 1)).all()
        assert set(found.predict_topk(X, k=3, allow=[2, 7])[0].ravel().tolist()) <= {-1, 2, 7}
        assert set(np.unique(found.predict(X).toarray())) <= {0, 1}
        alone = found.decision_function(X[[5]])[0]
        for label in range(12):
            assert found.explain(X[[5]], label).score == alone[label]


@pytest.mark.parametrize("names", [*((name,) for name in LARGE), LARGE], ids="-".join)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_large_arrays_of_any_bytes_give_sound_answers(model, names):
    X, _ = rows()
    for seed in range(2):
        overwrite(model, np.random.default_rng(seed), names)
        check_sound(longtail.load(model), X)


@pytest.mark.parametrize("name", [name for name in SMALL if name not in ("intercepts", "scales")])
def test_small_arrays_of_any_bytes_are_refused(model, name):
    overwrite(model, np.random.default_rng(0), (name,))
    with pytest.raises(ModelFormatError):
        longtail.load(model)


@pytest.mark.parametrize("name", ["intercepts", "scales"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_intercepts_and_scales_of_any_bytes_are_refused_or_sound(model, name):
    X, _ = rows()
    for seed in range(6):
        overwrite(model, np.random.default_rng(seed), (name,))
        try:
            found = longtail.load(model)
        except ModelFormatError:
            continue
        check_sound(found, X)


@pytest.mark.parametrize("estimator", [LabelTree, OneVsRest])
@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        *(("facts", "n_trees", value) for value in (0, 2, -1, 2**64, None, 1.0)),
        *(("facts", "n_features", value) for value in (29, 31, 0, -1, 2**70)),
        *(("facts", "n_labels", value) for value in (11, 13, 0, -1, 2**70)),
        *(("params", "C", value) for value in (0, -1, "1", None, 1e300)),
        *(("params", "loss", value) for value in (None, "hinge", 3)),
        *(("params", "prune", value) for value in (-0.5, "x", 2**70)),
        *(("params", "propensity", value) for value in ([0.5], [0.5, -1], 3)),
        ("params", "surprise", 1),
    ],
)
def test_facts_and_parameters_that_contradict_the_trees_are_refused(estimator, part, name, value, tmp_path):
    X, Y = planted(np.random.default_rng(0))
    state = estimator().fit(X, Y).to_state()
    getattr(state, part)[name] = value
    with pytest.raises(ModelFormatError):
        estimator.from_state(state)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_propensities_that_are_none_are_refused(bad):
    X, Y = planted(np.random.default_rng(0))
    state = OneVsRest().fit(X, Y).to_state()
    hostile = state.arrays["inverse_propensity"].copy()
    hostile[3] = bad
    state.arrays["inverse_propensity"] = hostile
    with pytest.raises(ModelFormatError, match="propensities"):
        OneVsRest.from_state(state)
