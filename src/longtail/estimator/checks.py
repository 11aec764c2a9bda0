"""`check_estimator`: check that a learner keeps the contract of `Estimator`. Our own tests run it on every learner."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from longtail.errors import InvalidInput, LongtailError, NotEnoughMemory
from longtail.estimator.base import Estimator
from longtail.estimator.revision import Revision
from longtail.store import load, read_model

Fit = Callable[[Any, Any, Any], Any]

_TOLERANCE = 1e-5


def planted(
    rng: np.random.Generator, n_rows: int = 80, n_features: int = 30, n_labels: int = 12
) -> tuple[sparse.csr_array[Any], sparse.csr_array[Any]]:
    """Sparse rows whose labels depend on them; row 0 is empty and the last label has no rows."""
    X = sparse.csr_array(sparse.random(n_rows, n_features, 0.3, format="csr", random_state=rng, dtype=np.float32))
    X = sparse.csr_array(sparse.vstack([sparse.csr_array((1, n_features), dtype=np.float32), X[1:]], format="csr"))
    scores = X @ rng.normal(size=(n_features, n_labels)) + 0.3 * rng.normal(size=(n_rows, n_labels))
    Y = (scores > np.quantile(scores, 0.8, axis=0)).astype(np.float32)
    Y[0] = 0
    Y[:, -1] = 0
    return X, sparse.csr_array(Y)


class Case:
    """An estimator to check, a fitted copy of it, and the training data."""

    def __init__(self, estimator: Estimator, fit: Fit, rows: bool, seed: int) -> None:
        self.estimator, self._fit, self.learns_rows = estimator, fit, rows
        self.X, self.Y = planted(np.random.default_rng(seed))
        self.n_labels = self.Y.shape[1]
        self.fitted = self.fit(self.X, self.Y)

    def fit(self, X: Any, Y: Any, **params: Any) -> Any:
        return self._fit(self.fresh(**params), X, Y)

    def fresh(self, **params: Any) -> Any:
        """An unfitted copy with some other parameters, as far as the estimator has them."""
        fresh = clone(self.estimator)
        known = fresh.get_params(deep=False)
        return fresh.set_params(**{name: value for name, value in params.items() if name in known})


def topk_has_the_promised_shapes_and_order(case: Case) -> None:
    labels, scores = case.fitted.predict_topk(case.X, k=4)
    assert labels.shape == scores.shape == (case.X.shape[0], 4)
    assert labels.dtype == np.int64
    assert scores.dtype == np.float32
    assert not np.isnan(scores).any()
    assert (scores[:, 1:] <= scores[:, :-1]).all(), "scores must fall from place to place"
    tied = (scores[:, 1:] == scores[:, :-1]) & (labels[:, 1:] >= 0)
    assert (labels[:, 1:][tied] > labels[:, :-1][tied]).all(), "ties go to the lowest label"


def no_label_comes_twice(case: Case) -> None:
    labels, _ = case.fitted.predict_topk(case.X, k=case.n_labels)
    for row in labels:
        given = row[row >= 0]
        assert len(np.unique(given)) == len(given)
        assert ((given >= 0) & (given < case.n_labels)).all()


def topk_agrees_with_the_decision_function(case: Case) -> None:
    labels, scores = case.fitted.predict_topk(case.X, k=case.n_labels)
    full = case.fitted.decision_function(case.X)
    assert full.shape == case.Y.shape
    assert np.isfinite(full).all()
    rows, places = np.nonzero(labels >= 0)
    np.testing.assert_allclose(full[rows, labels[rows, places]], scores[rows, places], atol=_TOLERANCE)


def places_beyond_the_last_label_are_empty(case: Case) -> None:
    labels, scores = case.fitted.predict_topk(case.X, k=case.n_labels + 3)
    assert (labels[:, case.n_labels :] == -1).all()
    np.testing.assert_array_equal(labels == -1, np.isneginf(scores))
    assert (np.diff((labels >= 0).astype(int), axis=1) <= 0).all(), "empty places come last"


def only_allowed_labels_are_given(case: Case) -> None:
    labels, _ = case.fitted.predict_topk(case.X, k=3, allow=[1, 5, 7], deny=[5])
    assert (np.sort(labels, axis=1) == [-1, 1, 7]).all(), "labels are filtered before they compete"
    mask = np.zeros(case.n_labels, dtype=bool)
    mask[[1, 7]] = True
    np.testing.assert_array_equal(case.fitted.predict_topk(case.X, k=3, allow=mask)[0], labels)
    assert (case.fitted.predict_topk(case.X, k=3, allow=[])[0] == -1).all()


def any_form_of_the_features_gives_the_same_answer(case: Case) -> None:
    X = case.X
    wide = sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    expected = case.fitted.predict_topk(X)[0]
    for form in (X.toarray(), X.tocsc(), sparse.csr_matrix(X), wide, X.astype(np.float64)):
        np.testing.assert_array_equal(case.fitted.predict_topk(form)[0], expected)


def half_precision_is_accepted(case: Case) -> None:
    X, Y = (matrix.toarray().astype(np.float16) for matrix in (case.X, case.Y))
    exact = X.astype(np.float32)
    for model in (case.fitted, case.fit(X, Y), case.fit(exact, case.Y)):
        np.testing.assert_array_equal(model.predict_topk(X, 3)[0], model.predict_topk(exact, 3)[0])
    _same_answers(case.fit(X, Y), case.fit(exact, case.Y), exact)


def any_form_of_the_labels_gives_the_same_model(case: Case) -> None:
    for form in (case.Y.toarray(), case.Y.tocsc(), case.Y.astype(np.int64), case.Y.toarray().astype(bool)):
        _same_answers(case.fit(case.X, form), case.fitted, case.X)


def a_second_fit_gives_the_same_model(case: Case) -> None:
    _same_answers(case.fit(case.X, case.Y), case.fitted, case.X)
    again = case._fit(case.fit(case.X[:, :20], case.Y[:, :5]), case.X, case.Y)
    _same_answers(again, case.fitted, case.X)


def fit_leaves_its_data_alone(case: Case) -> None:
    X, Y = case.X.copy(), case.Y.copy()
    case.fit(X, Y)
    for given, kept in ((X, case.X), (Y, case.Y)):
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(given, part), getattr(kept, part))


def one_thread_and_many_agree(case: Case) -> None:
    one, many = (case.fit(case.X, case.Y, n_jobs=n_jobs).decision_function(case.X) for n_jobs in (1, 3))
    np.testing.assert_allclose(one, many, atol=1e-4)


def a_saved_model_answers_alike(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        case.fitted.save(f"{folder}/model")
        again = load(f"{folder}/model")
        again.save(f"{folder}/again")
        read_model(f"{folder}/again", verify=True)
    assert type(again) is type(case.fitted)
    saved = {name: value for name, value in again.get_params(deep=False).items() if name not in again._not_saved}
    kept = case.fitted.get_params(deep=False)
    assert saved == {name: kept[name] for name in saved}
    _same_answers(again, case.fitted, case.X)
    np.testing.assert_array_equal(again.predict(case.X).toarray(), case.fitted.predict(case.X).toarray())


def explanations_add_up(case: Case) -> None:
    if not case.fitted.explains:
        with _refused("explain"):
            case.fitted.explain(case.X[[3]], 0)
        return
    full = case.fitted.decision_function(case.X)
    for row, label in ((0, 0), (3, 2), (7, case.n_labels - 1)):
        found = case.fitted.explain(case.X[[row]], label)
        assert found.label == label
        np.testing.assert_allclose(found.contributions.sum() + found.intercept, found.margin, atol=_TOLERANCE)
        np.testing.assert_allclose(found.score, full[row, label], atol=_TOLERANCE)
        assert set(found.features.tolist()) <= set(case.X[[row]].indices.tolist())
        for step in found.steps:
            np.testing.assert_allclose(step.contributions.sum() + step.intercept, step.margin, atol=_TOLERANCE)
    for n_rows, label in ((2, 0), (1, case.n_labels), (1, -1), (1, True)):
        with _refused("explain with a bad row or label"):
            case.fitted.explain(case.X[:n_rows], label)


def predictions_are_a_sparse_matrix_of_zeros_and_ones(case: Case) -> None:
    predicted = case.fitted.predict(case.X)
    assert sparse.issparse(predicted)
    assert predicted.shape == case.Y.shape
    assert set(np.unique(predicted.toarray())) <= {0, 1}


def an_update_learns_rows_and_labels_and_leaves_the_model_alone(case: Case) -> None:
    X, Y, n_labels = case.X, case.Y, case.n_labels
    first = case.fit(X[:60], Y[:60, :10])
    before = first.predict_topk(X)
    now = sparse.csr_array(sparse.vstack([sparse.hstack([Y[5:60, 1:10], sparse.csr_array((55, 2))]), Y[60:, 1:]]))
    had = np.flatnonzero(np.diff(Y[5:60, :1].indptr))  # the first label is dropped
    labels = np.concatenate([np.arange(1, 10), [-1, -1]])
    revision = Revision.of(X[:60], Y[:60, :10], X[5:], now, np.arange(5, 60), labels, had)
    if not first.takes_revisions:
        with _refused("an update"):
            first.updated(revision)
        return
    updated = first.updated(revision)
    assert type(updated) is type(first)
    for found, known in zip(first.predict_topk(X), before, strict=True):
        np.testing.assert_array_equal(found, known)
    assert (updated.n_labels_, updated.n_features_in_) == (n_labels - 1, X.shape[1])
    labels, scores = updated.predict_topk(X, n_labels - 1)
    assert np.isfinite(scores[labels >= 0]).all()
    assert 9 in labels[:, :3], "new labels are found"
    with tempfile.TemporaryDirectory() as folder:
        updated.save(f"{folder}/model")
        _same_answers(load(f"{folder}/model"), updated, X)
    with _refused("old rows of another width"):
        updated.updated(revision)


def it_answers_about_itself(case: Case) -> None:
    assert case.fitted.summary()
    for answer in ("explains", "updates", "takes_revisions", "reads_label_texts", "scores_are_probabilities"):
        assert isinstance(getattr(case.fitted, answer), bool), answer
    assert case.estimator.memory_plan(case.X, case.Y).total > 0


def it_is_fitted_only_after_fit(case: Case) -> None:
    fresh = clone(case.estimator)
    for use in (fresh.predict_topk, fresh.predict, fresh.decision_function):
        try:
            use(case.X)
        except NotFittedError:
            continue
        raise AssertionError(f"{use.__name__} works before fit")


def bad_arguments_are_refused(case: Case) -> None:
    for k in (0, -1, 1.5, True, "3"):
        with _refused(f"k={k!r}"):
            case.fitted.predict_topk(case.X, k=k)
    with _refused("another number of features"):
        case.fitted.predict_topk(case.X[:, :5])
    broken = case.X.copy()
    broken.indices[-1] = 1000
    with _refused("a column index out of range"):
        case.fitted.predict_topk(broken)
    for labels in ([case.n_labels], [-1], [0.5]):
        with _refused(f"allow={labels}"):
            case.fitted.predict_topk(case.X, allow=labels)


def bad_data_is_refused(case: Case) -> None:
    bad_values = [-1.0, np.nan] + [2.0] * case.learns_rows + [0.5] * (not case.fitted.takes_relevance)
    for bad in bad_values:
        with _refused(f"a label value of {bad}"):
            case.fit(case.X, bad * case.Y)
    with _refused("rows of label ids"):
        case.fit(case.X, [row.indices.tolist() for row in case.Y])
    for bad in (np.nan, np.inf, 1e300):
        dense = case.X.toarray().astype(np.float64)
        dense[3, 3] = bad
        with _refused(f"a feature value of {bad}"):
            case.fit(dense, case.Y)


def weights_count_rows(case: Case) -> None:
    """A row of weight 0 is absent; other weights count, or are refused."""
    if not case.learns_rows:
        return
    weights = np.arange(case.X.shape[0]) % 3
    kept = weights > 0
    some = case.fresh().fit(case.X, case.Y, sample_weight=kept)
    _same_answers(some, case.fresh().fit(case.X[kept], case.Y[kept]), case.X)
    if not case.fitted.takes_weights:
        with _refused("sample_weight"):
            case.fresh().fit(case.X, case.Y, sample_weight=weights)
        return
    heavy = case.fresh().fit(case.X, case.Y, sample_weight=weights)
    assert not np.array_equal(heavy.decision_function(case.X), some.decision_function(case.X))
    for bad in (weights[1:], -weights, np.full(len(weights), np.nan), weights[:, None], "heavy", 0 * weights):
        with _refused("weights that are no weights"):
            case.fresh().fit(case.X, case.Y, sample_weight=bad)


def one_class_for_each_row_makes_a_classifier(case: Case) -> None:
    if not case.learns_rows:
        return
    names = np.array(["pear", "apple", "fig"], dtype=object)
    targets = np.arange(case.X.shape[0]) % 3
    for y, classes in ((names[targets], ["apple", "fig", "pear"]), (5 * targets + 2, [2, 7, 12])):
        model = case.fresh(n_labels=2).fit(case.X, y)
        assert model.classes_.tolist() == classes
        predicted = model.predict(case.X)
        assert predicted.shape == y.shape
        best = model.predict_topk(case.X, k=1)[0][:, 0]
        np.testing.assert_array_equal(predicted, model.classes_[best])
        with tempfile.TemporaryDirectory() as folder:
            model.save(f"{folder}/model")
            again = load(f"{folder}/model")
        assert again.classes_.tolist() == classes
        np.testing.assert_array_equal(again.predict(case.X), predicted)
        if hasattr(model, "predict_proba"):
            np.testing.assert_allclose(model.predict_proba(case.X).sum(axis=1), 1, atol=_TOLERANCE)
    again.fit(case.X, case.Y)
    assert not hasattr(again, "classes_"), "a label matrix leaves no classes"
    for bad in (np.linspace(0, 1, len(y)), [*y[:-1], np.nan], [*names[targets][:-1], 3], y[1:]):
        with _refused("classes that are no classes"):
            case.fresh().fit(case.X, bad)


def bad_parameters_are_refused(case: Case) -> None:
    for name, constraint in type(case.estimator)._parameters.items():
        for bad in constraint.bad_values():
            with _refused(f"{name}={bad!r}", parameter=name):
                case.fit(case.X, case.Y, **{name: bad})


def a_ranking_too_large_for_memory_is_refused(case: Case) -> None:
    for k in (10**12, 2**63):
        with _refused(f"k={k}", NotEnoughMemory):
            case.fitted.predict_topk(case.X, k)


def no_rows_to_predict_is_no_error(case: Case) -> None:
    labels, _ = case.fitted.predict_topk(sparse.csr_array((0, case.X.shape[1]), dtype=np.float32))
    assert labels.shape == (0, 5)


def one_row_and_one_label_suffice(case: Case) -> None:
    assert case.fit([[1.0, 2.0]], [[1]]).predict_topk([[1.0, 2.0]], k=1)[0].tolist() == [[0]]


CHECKS: tuple[Callable[[Case], None], ...] = (
    topk_has_the_promised_shapes_and_order,
    no_label_comes_twice,
    topk_agrees_with_the_decision_function,
    places_beyond_the_last_label_are_empty,
    only_allowed_labels_are_given,
    any_form_of_the_features_gives_the_same_answer,
    any_form_of_the_labels_gives_the_same_model,
    a_second_fit_gives_the_same_model,
    half_precision_is_accepted,
    fit_leaves_its_data_alone,
    one_thread_and_many_agree,
    a_saved_model_answers_alike,
    explanations_add_up,
    predictions_are_a_sparse_matrix_of_zeros_and_ones,
    an_update_learns_rows_and_labels_and_leaves_the_model_alone,
    it_answers_about_itself,
    it_is_fitted_only_after_fit,
    bad_arguments_are_refused,
    bad_data_is_refused,
    weights_count_rows,
    one_class_for_each_row_makes_a_classifier,
    bad_parameters_are_refused,
    a_ranking_too_large_for_memory_is_refused,
    no_rows_to_predict_is_no_error,
    one_row_and_one_label_suffice,
)


def _fit_rows(estimator: Any, X: Any, Y: Any) -> Any:
    return estimator.fit(X, Y)


def check_estimator(estimator: Estimator, *, fit: Fit = _fit_rows, rows: bool = True, seed: int = 0) -> None:
    """Raise `AssertionError`, which names the check, unless a learner keeps the contract of `Estimator`.

    Parameters
    ----------
    estimator : Estimator
        An unfitted estimator; small settings keep the checks quick. Copies of it are fitted to 80 rows with 12 labels.
    fit : callable
        ``fit(estimator, X, Y)`` fits a copy and returns it. For learners that take groups of rows.
    rows : bool
        Whether the learner itself takes rows with labels, not groups: weights and classes of rows are then checked.
    seed : int
        Random seed for the data.

    Examples
    --------
    >>> from longtail import Ridge
    >>> from longtail.estimator import check_estimator
    >>> check_estimator(Ridge())
    """
    if not isinstance(estimator, Estimator):
        raise AssertionError(f"{type(estimator).__name__} does not derive from longtail.estimator.Estimator")
    case = Case(estimator, fit, rows, seed)
    for check in CHECKS:
        try:
            check(case)
        except Exception as error:
            name = check.__name__.replace("_", " ")
            raise AssertionError(f"{type(estimator).__name__} breaks the contract: {name}: {error}") from error


def _same_answers(one: Any, other: Any, X: Any) -> None:
    for mine, theirs in zip(one.predict_topk(X), other.predict_topk(X), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@contextmanager
def _refused(
    what: str, error_class: type[LongtailError] = InvalidInput, parameter: str | None = None
) -> Iterator[None]:
    try:
        yield
    except error_class as error:
        if parameter is not None and error.name != parameter:
            raise AssertionError(f"{what} is refused, but the error names {error.name}, not {parameter}") from error
        return
    raise AssertionError(f"{what} is accepted")
