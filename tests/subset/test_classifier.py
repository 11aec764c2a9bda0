"""LabelSubsetClassifier: its contract, the identity with plain ridge, decoders, budgets, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import longtail
from longtail import LabelSubsetClassifier, LabelTree, OneVsRest, Ridge, RidgeCV, Tagger, TextFeatures
from longtail.errors import InvalidInput, ModelFormatError, NotEnoughMemory
from longtail.estimator import Estimator, register
from longtail.estimator.checks import planted
from longtail.metrics import ndcg_at_k
from longtail.ridge import label_predictability
from longtail.store import State
from longtail.subset.decoding import ridge_decoding
from longtail.subset.outliers import Outliers
from longtail.validation import as_labels


@pytest.fixture
def seed():
    """One is enough here; hypothesis brings others where they matter."""
    return 0


def ridge(alpha=1.0):
    return Ridge(alpha=alpha, fit_intercept=True, solver="primal")


@pytest.mark.parametrize("outliers", [0, 3])
def test_a_saved_model_keeps_its_subset_and_outliers(rng, outliers, tmp_path):
    X, Y = planted(rng)
    fitted = LabelSubsetClassifier(n_labels=4, outliers=outliers).fit(X, Y)
    fitted.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model", verify=True)
    np.testing.assert_array_equal(again.labels_, fitted.labels_)
    np.testing.assert_array_equal(again.outlier_labels_, fitted.outlier_labels_)
    found = again.explain(X[[3]], 2)
    assert found.score == pytest.approx(found.margin)


@pytest.mark.parametrize("decoder", ["ridge", "l1"])
@pytest.mark.parametrize("criterion", ["predictable cut", "frequency", "random"])
def test_with_one_ridge_for_all_it_is_plain_ridge_whatever_the_subset(rng, decoder, criterion):
    X, Y = planted(rng, n_labels=20)
    model = LabelSubsetClassifier(ridge(), 5, "all", ridge(), decoder=decoder, criterion=criterion).fit(X, Y)
    expected = ridge().fit(X, Y).decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=2e-5)
    without = LabelSubsetClassifier(ridge(), 5, 0, decoder=decoder, criterion=criterion).fit(X, Y)
    assert np.abs(without.decision_function(X) - expected).max() > 0.05


def test_a_criterion_may_have_a_hyphen(rng):
    X, Y = planted(rng)
    hyphen, blank = (
        LabelSubsetClassifier(n_labels=3, outliers=0, criterion=criterion).fit(X, Y)
        for criterion in ("predictable-cut", "predictable cut")
    )
    assert hyphen.subset_.criterion == "predictable cut"
    assert hyphen.labels_.tolist() == blank.labels_.tolist()


def test_predictability_gets_the_seed_and_the_threads(rng, monkeypatch):
    seen = []

    def spied(X, Y, **given):
        seen.append(given)
        return label_predictability(X, Y, **given)

    monkeypatch.setattr("longtail.subset.classifier.label_predictability", spied)
    X, Y = planted(rng)
    LabelSubsetClassifier(n_labels=3, outliers=0, random_state=7, n_jobs=1).fit(X, Y)
    assert seen == [{"random_state": 7, "n_jobs": 1}]


def test_a_decoder_too_large_for_the_memory_is_refused_before_it_is_made(rng, monkeypatch):
    Y = as_labels(sparse.eye_array(2000, format="csr"))
    monkeypatch.setenv("LONGTAIL_MEMORY", "100M")
    with pytest.raises(NotEnoughMemory, match=r"the decoder of 2,000 labels needs .* Select fewer labels"):
        ridge_decoding(Y, np.arange(2000), 1.0)
    ridge_decoding(Y, np.arange(500), 1.0)


def test_weights_of_outliers_too_many_for_the_memory_are_refused_before_they_are_learned(rng, monkeypatch):
    X, Y = planted(rng)
    X.resize((80, 100_000))
    decoding, _ = ridge_decoding(Y, np.arange(2), 1.0)
    monkeypatch.setenv("LONGTAIL_MEMORY", "8M")  # the weights of 12 labels take 4.6, their copy for the outliers 3.8
    with pytest.raises(NotEnoughMemory, match="learning outliers needs"):
        Outliers.learn(ridge(), X, Y, np.arange(2, 12), np.arange(2), decoding)


def test_with_every_label_in_the_subset_it_is_plain_ridge(rng):
    X, Y = planted(rng)
    for decoder in ("ridge", "l1"):
        model = LabelSubsetClassifier(ridge(), 12, decoder=decoder).fit(X, Y)
        assert sorted(model.labels_.tolist()) == list(range(12))
        assert not len(model.outlier_labels_)
        np.testing.assert_allclose(model.decision_function(X), ridge().fit(X, Y).decision_function(X), atol=1e-5)


def test_outliers_with_a_penalty_of_their_own_are_ridge_on_the_residuals(rng):
    X, Y = planted(rng)
    model = LabelSubsetClassifier(ridge(), 4, 3, ridge(20.0)).fit(X, Y)
    dense, rows = Y.toarray().astype(np.float64), X.toarray().astype(np.float64)
    Z = model.decoding_.columns(np.arange(12)).astype(np.float64)
    residual = dense - dense[:, model.labels_] @ Z
    centred = rows - rows.mean(axis=0)
    weights = np.linalg.solve(centred.T @ centred + 20 * np.eye(30), centred.T @ (residual - residual.mean(axis=0)))
    expected = ridge().fit(X, Y).decision_function(X)[:, model.labels_] @ Z
    own = model.outlier_labels_
    expected[:, own] += (centred @ weights + residual.mean(axis=0))[:, own]
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-5)


def test_the_decoder_of_least_squares_is_that_of_numpy(rng):
    Y = as_labels(planted(rng, n_labels=20)[1])
    subset = np.array([7, 2, 11])
    decoding, norms = ridge_decoding(Y, subset, 0.5)
    dense = Y.toarray().astype(np.float64)
    chosen = dense[:, subset]
    Z = np.linalg.solve(chosen.T @ chosen + 0.5 * np.eye(3), chosen.T @ dense)
    left = np.linalg.norm(dense - chosen @ Z, axis=0)
    Z[:, subset], left[subset] = np.eye(3), 0
    np.testing.assert_allclose(decoding.columns(np.arange(20)), Z, atol=1e-6)
    np.testing.assert_allclose(norms, left, atol=1e-6)


def test_labels_of_the_subset_keep_their_own_scores(rng):
    X, Y = planted(rng)
    model = LabelSubsetClassifier(OneVsRest(), 4, 0).fit(X, Y)
    np.testing.assert_allclose(
        model.decision_function(X)[:, model.labels_], model.estimator_.decision_function(X), atol=1e-6
    )


def test_outliers_are_the_labels_that_the_decoder_leaves_most_of(rng):
    X, Y = planted(rng, n_labels=20)
    model = LabelSubsetClassifier(ridge(), 5, 4).fit(X, Y)
    rest = np.setdiff1d(np.arange(20), np.concatenate([model.labels_, model.outlier_labels_]))
    assert len(model.outlier_labels_) == 4
    assert model.outlier_norms_[model.outlier_labels_].min() >= model.outlier_norms_[rest].max()
    share = LabelSubsetClassifier(ridge(), 5, 0.4).fit(X, Y)
    assert len(share.outlier_labels_) == 6
    assert not len(LabelSubsetClassifier(ridge(), 5, 0.0).fit(X, Y).outlier_labels_)


def test_a_label_without_rows_is_never_an_outlier(rng):
    X, Y = planted(rng)
    model = LabelSubsetClassifier(ridge(), 4, "all").fit(X, Y)
    assert 11 not in model.outlier_labels_
    assert len(model.outlier_labels_) == 7


def outlying(rng, n_rows=400):
    """Labels 0 to 9 are copies of each other; 10 and 11 depend on features of their own."""
    X = rng.normal(size=(n_rows, 8))
    Y = np.zeros((n_rows, 12), dtype=int)
    Y[:, :10] = (X[:, 0] > 0.5)[:, None]
    Y[:, 10] = X[:, 1] > 0.3
    Y[:, 11] = X[:, 2] > 0.3
    return X, Y


def test_the_budget_is_the_smallest_that_ranks_held_out_rows_well(rng):
    X, Y = outlying(rng)
    given = {"subset": [0], "holdout": 0.3}
    model = LabelSubsetClassifier(n_labels=1, outliers="auto", **given).fit(X, Y)
    assert set(model.budgets_) == {0, 1, 2, 6, 11}
    assert model.outlier_labels_.tolist() == [10, 11]
    best, none = model.budgets_[2], model.budgets_[0]
    assert best > none + 0.05
    assert best >= max(model.budgets_.values()) - 0.002


def test_few_rows_say_nothing_about_budgets_and_all_outliers_are_learned(rng):
    X, Y = outlying(rng, 40)
    model = LabelSubsetClassifier(subset=[0]).fit(X, Y)
    assert model.budgets_ == {}
    assert len(model.outlier_labels_) == 11


def test_outliers_learned_as_labels_stand_in_for_decoded_ones(rng):
    X, Y = outlying(rng)
    model = LabelSubsetClassifier(subset=[0], outliers=2, outlier_estimator=OneVsRest()).fit(X, Y)
    alone = OneVsRest().fit(X, Y[:, [10, 11]])
    np.testing.assert_array_equal(model.decision_function(X)[:, 10:], alone.decision_function(X))
    assert (model.predict(X)[:, [10, 11]] != alone.predict(X)).nnz == 0
    top, _ = model.predict_topk(X, 12)
    without, _ = LabelSubsetClassifier(subset=[0], outliers=0).fit(X, Y).predict_topk(X, 12)
    assert ndcg_at_k(Y, top, 5) > ndcg_at_k(Y, without, 5) + 0.1


def test_ties_between_copies_go_to_the_lowest_label(rng):
    X, Y = outlying(rng)
    model = LabelSubsetClassifier(subset=[3], outliers=0, decoder_alpha=1e-9).fit(X, Y)
    labels, _ = model.predict_topk(X[:5], 3, deny=[0, 3, 10, 11])
    assert labels.tolist() == [[1, 2, 4]] * 5


def test_explanations_of_tree_scores_that_were_decoded_are_refused(rng):
    X, Y = planted(rng)
    model = LabelSubsetClassifier(LabelTree(), 4, 2).fit(X, Y)
    decoded = np.setdiff1d(np.arange(11), np.concatenate([model.labels_, model.outlier_labels_]))[0]
    with pytest.raises(InvalidInput, match="not linear"):
        model.explain(X[[3]], int(decoded))
    chosen = int(model.labels_[1])
    assert model.explain(X[[3]], chosen).score == pytest.approx(model.decision_function(X[[3]])[0, chosen], abs=1e-6)


def test_by_default_the_subset_has_at_most_as_many_labels_as_there_are(rng):
    X, Y = planted(rng)
    assert sorted(LabelSubsetClassifier().fit(X, Y).labels_.tolist()) == list(range(12))
    many = sparse.csr_array(rng.random((60, 130)) < 0.1, dtype=np.float32)
    assert len(LabelSubsetClassifier(outliers=0).fit(rng.random((60, 5)), many).labels_) == 100


def test_more_labels_than_there_are_is_refused_with_both_numbers(rng):
    with pytest.raises(InvalidInput, match="n_labels is 13, but there are only 12"):
        LabelSubsetClassifier(n_labels=13).fit(*planted(rng))


@pytest.mark.parametrize("subset", [[], [12], [-1], [1, 1], [0.5], [[1]]])
def test_a_subset_that_is_no_list_of_labels_is_refused(rng, subset):
    with pytest.raises(InvalidInput, match="subset"):
        LabelSubsetClassifier(subset=subset).fit(*planted(rng))


def test_an_estimator_from_elsewhere_is_refused(rng):
    from sklearn.linear_model import Ridge as Other

    with pytest.raises(InvalidInput, match="the estimator is a Ridge, not a longtail"):
        LabelSubsetClassifier(Other(), 4).fit(*planted(rng))
    with pytest.raises(InvalidInput, match="the estimator is a LabelSubsetClassifier itself"):
        LabelSubsetClassifier(LabelSubsetClassifier(), 4).fit(*planted(rng))


class Means(Estimator):
    """Scores each label by its frequency; not linear, and without explanations."""

    _fitted_by = "means_"

    def fit(self, X, Y):
        self.n_features_in_, self.n_labels_ = X.shape[1], Y.shape[1]
        self.means_ = np.asarray(Y.mean(axis=0), dtype=np.float32).ravel()
        return self

    def _scores(self, X):
        return np.tile(self.means_, (X.shape[0], 1))

    def to_state(self):
        return State("Means", {}, {"n_features": self.n_features_in_}, {"means": self.means_})

    @classmethod
    def from_state(cls, state):
        model = cls()
        model.means_ = state.array("means", np.float32, (None,))
        model.n_features_in_, model.n_labels_ = state.size("n_features"), len(model.means_)
        return model


def test_any_learner_of_rows_learns_subset_and_outliers(rng, tmp_path):
    X, Y = planted(rng)
    register(Means)
    model = LabelSubsetClassifier(Means(), 4, 3, Means()).fit(X, Y)
    counts = np.asarray(Y.mean(axis=0)).ravel()
    known = np.concatenate([model.labels_, model.outlier_labels_])
    np.testing.assert_allclose(model.decision_function(X)[0][known], counts[known], rtol=1e-6)
    assert not model.explains
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_one_label_stands_for_all(rng):
    X, Y = planted(rng)
    model = LabelSubsetClassifier(n_labels=1, outliers=0).fit(X, Y)
    labels, scores = model.predict_topk(X, 3)
    assert np.isfinite(scores).all()
    assert (labels >= 0).all()


def test_a_tagger_keeps_it(tmp_path):
    texts = ["red apples and pears", "green apples", "clear blue sky", "grey sky and rain"]
    labels = [["fruit", "food"], ["fruit", "food"], ["weather"], ["weather"]]
    tagger = Tagger(TextFeatures(min_df=1), LabelSubsetClassifier(n_labels=2)).fit(texts, labels)
    tagger.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    assert {tag.label for tag in again.predict(["green pears"], k=2)[0]} == {"fruit", "food"}
    assert again.explain("green pears", "fruit").score == pytest.approx(again.predict(["green pears"], k=3)[0][0].score)


def damaged(state, **changes):
    arrays = {**state.arrays, **{name: value for name, value in changes.items() if name in state.arrays}}
    facts = {**state.facts, **{name: value for name, value in changes.items() if name in state.facts}}
    parts = {**state.parts, **{name: value for name, value in changes.items() if name in state.parts}}
    return State(state.kind, state.params, facts, arrays, parts)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"labels": np.array([0, 0, 1, 2])}, "distinct label ids"),
        ({"labels": np.array([0, 1, 2, 12])}, "distinct label ids"),
        ({"labels": np.array([0, 1, 2])}, "shape"),
        ({"outlier_labels": np.array([1, 0, 2])}, "distinct label ids"),
        ({"outlier_labels": np.array([5])}, "outliers' estimator has"),
        ({"mixing": np.full((4, 8), np.nan, dtype=np.float32)}, "finite"),
        ({"residual": 1}, "residual"),
    ],
)
def test_a_damaged_model_is_refused(rng, changes, reason):
    state = LabelSubsetClassifier(ridge(), 4, 3, ridge(), subset=[8, 9, 10, 11]).fit(*planted(rng)).to_state()
    with pytest.raises(ModelFormatError, match=reason):
        LabelSubsetClassifier.from_state(damaged(state, **changes))


def test_residuals_of_trees_are_refused_on_load(rng):
    state = LabelSubsetClassifier(ridge(), 4, 3, LabelTree()).fit(*planted(rng)).to_state()
    with pytest.raises(ModelFormatError, match="residuals need a linear estimator"):
        LabelSubsetClassifier.from_state(damaged(state, residual=True))


def test_a_subset_inside_a_subset_is_refused_on_load(rng):
    state = LabelSubsetClassifier(ridge(), 4, 0).fit(*planted(rng)).to_state()
    with pytest.raises(ModelFormatError, match="'estimator' is a LabelSubsetClassifier itself"):
        LabelSubsetClassifier.from_state(damaged(state, estimator=state))


def test_many_labels_never_make_a_dense_matrix(rng):
    """200,000 labels and 600 rows: scores of all pairs would take 480 MB."""
    import tracemalloc

    rows, n_labels = 600, 200_000
    X = sparse.csr_array(sparse.random(rows, 50, 0.2, format="csr", random_state=rng, dtype=np.float32))
    columns = np.concatenate([rng.integers(0, 30, 2 * rows), rng.integers(0, n_labels, 2 * rows)])
    Y = sparse.csr_array((np.ones(len(columns)), (np.tile(np.arange(rows), 4), columns)), shape=(rows, n_labels))
    Y.data[:] = 1
    model = LabelSubsetClassifier(RidgeCV(fit_intercept=True), 30, 20, criterion="frequency", n_jobs=1)
    tracemalloc.start()
    model.fit(X, Y)
    labels, _ = model.predict_topk(X, 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert labels.shape == (rows, 5)
    assert peak < 120 * 2**20
