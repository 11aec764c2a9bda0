"""The behaviour every estimator of the package must show; the tests of each inherit it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import longtail
from longtail.errors import InvalidInput, NotEnoughMemory
from longtail.estimator.checks import planted


class EstimatorContract:
    """Give `make(**params)` a fresh estimator and inherit."""

    gives_unseen_labels = True  # whether labels without rows can be predicted
    scores_are_margins = True  # whether a score is the sum of contributions itself, and not a function of such sums

    def make(self, **params):
        raise AssertionError("each class of tests says how to make its estimator")

    @property
    def n_given(self):
        """How many of the 12 labels of `planted` can be predicted."""
        return 12 if self.gives_unseen_labels else 11

    @pytest.fixture
    def data(self, rng):
        return planted(rng)

    @pytest.fixture
    def fitted(self, data):
        return self.make().fit(*data)

    def test_topk_has_the_promised_shapes_and_order(self, fitted, data):
        labels, scores = fitted.predict_topk(data[0], k=4)
        assert labels.shape == scores.shape == (data[0].shape[0], 4)
        assert labels.dtype == np.int64
        assert scores.dtype == np.float32
        assert (np.diff(scores, axis=1) <= 0).all()
        assert all(len(set(row)) == 4 for row in labels.tolist())

    def test_topk_agrees_with_the_decision_function(self, fitted, data):
        labels, scores = fitted.predict_topk(data[0], k=self.n_given)
        full = fitted.decision_function(data[0])
        assert (labels >= 0).all()
        np.testing.assert_allclose(np.take_along_axis(full, labels, axis=1), scores, atol=1e-5)

    def test_more_labels_than_there_are_leave_minus_one(self, fitted, data):
        labels, scores = fitted.predict_topk(data[0], k=15)
        assert (labels[:, self.n_given :] == -1).all()
        assert (scores[:, self.n_given :] == -np.inf).all()
        assert (labels[:, : self.n_given] >= 0).all()
        assert self.gives_unseen_labels == (labels == 11).any()

    def test_allowed_and_denied_labels_are_filtered_before_the_search(self, fitted, data):
        labels, _ = fitted.predict_topk(data[0], k=3, allow=[1, 5, 7], deny=[5])
        assert set(labels.ravel().tolist()) == {1, 7, -1}
        mask = np.zeros(12, dtype=bool)
        mask[[1, 7]] = True
        np.testing.assert_array_equal(fitted.predict_topk(data[0], k=3, allow=mask)[0], labels)

    def test_any_form_of_the_same_features_gives_the_same_answer(self, fitted, data):
        X = data[0]
        wide = sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
        expected = fitted.predict_topk(X)[0]
        for form in (X.toarray(), X.tocsc(), sparse.csr_matrix(X), wide, X.astype(np.float64)):
            np.testing.assert_array_equal(fitted.predict_topk(form)[0], expected)

    def test_any_form_of_the_same_labels_gives_the_same_model(self, data):
        X, Y = data
        expected = self.make().fit(X, Y).predict_topk(X)
        for form in (Y.toarray(), Y.tocsc(), Y.astype(np.int64), Y.toarray().astype(bool)):
            labels, scores = self.make().fit(X, form).predict_topk(X)
            np.testing.assert_array_equal(labels, expected[0])
            np.testing.assert_array_equal(scores, expected[1])

    def test_one_thread_and_many_agree(self, data):
        X, Y = data
        one = self.make(n_jobs=1).fit(X, Y).predict_topk(X)
        many = self.make(n_jobs=3).fit(X, Y).predict_topk(X)
        np.testing.assert_array_equal(one[0], many[0])
        np.testing.assert_array_equal(one[1], many[1])

    def test_saved_and_loaded_models_answer_alike(self, fitted, data, tmp_path):
        fitted.save(tmp_path / "model")
        again = longtail.load(tmp_path / "model")
        assert type(again) is type(fitted)
        assert again.get_params() == fitted.get_params()
        for one, other in zip(fitted.predict_topk(data[0]), again.predict_topk(data[0]), strict=True):
            np.testing.assert_array_equal(one, other)

    def test_explanations_add_up_to_the_score(self, fitted, data):
        X = data[0]
        full = fitted.decision_function(X)
        for row, label in ((0, 0), (3, 2), (7, 11)):
            found = fitted.explain(X[[row]], label)
            assert found.contributions.sum() + found.intercept == pytest.approx(found.margin)
            assert not self.scores_are_margins or found.score == pytest.approx(found.margin)
            assert found.score == pytest.approx(float(full[row, label]), abs=1e-5)
            assert set(found.features.tolist()) <= set(X[[row]].indices.tolist())

    def test_predictions_are_a_sparse_matrix_of_zeros_and_ones(self, fitted, data):
        predicted = fitted.predict(data[0])
        assert predicted.shape == (data[0].shape[0], 12)
        assert set(np.unique(predicted.toarray())) <= {0, 1}

    @pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
    def test_a_bad_k_is_refused(self, fitted, data, k):
        with pytest.raises(InvalidInput, match="k is"):
            fitted.predict_topk(data[0], k=k)

    def test_labels_other_than_zero_and_one_are_refused(self, data):
        X, Y = data
        with pytest.raises(InvalidInput, match="only 0 and 1"):
            self.make().fit(X, 2 * Y)

    def test_features_that_are_not_finite_are_refused(self, data):
        X, Y = data
        for bad in (np.nan, np.inf, 1e300):
            dense = X.toarray().astype(np.float64)
            dense[3, 3] = bad
            with pytest.raises(InvalidInput, match=r"NaN|too large"):
                self.make().fit(dense, Y)

    def test_another_number_of_features_is_refused(self, fitted, data):
        with pytest.raises(InvalidInput, match="features"):
            fitted.predict_topk(data[0][:, :5])

    def test_a_sparse_matrix_with_indices_out_of_range_is_refused(self, fitted, data):
        X = data[0].copy()
        X.indices[-1] = 1000
        with pytest.raises(InvalidInput, match="outside"):
            fitted.predict_topk(X)

    def test_bad_parameters_are_refused_by_name(self, data):
        for name, constraint in type(self.make())._parameters.items():
            for bad in constraint.bad_values():
                with pytest.raises(InvalidInput, match=name):
                    clone(self.make()).set_params(**{name: bad}).fit(*data)

    def test_no_rows_to_predict_is_no_error(self, fitted):
        labels, _ = fitted.predict_topk(sparse.csr_array((0, 30), dtype=np.float32))
        assert labels.shape == (0, 5)

    def test_one_row_and_one_label_suffice(self):
        model = self.make().fit([[1.0, 2.0]], [[1]])
        assert model.predict_topk([[1.0, 2.0]], k=1)[0].tolist() == [[0]]

    def test_a_ranking_that_fits_into_no_memory_is_refused(self, fitted, data):
        for k in (10**12, 2**63):
            with pytest.raises(NotEnoughMemory, match=r"a ranking of .* labels for each of 80 rows needs "):
                fitted.predict_topk(data[0], k)

    def test_half_precision_is_taken(self, fitted, data):
        X, Y = (matrix.toarray().astype(np.float16) for matrix in data)
        exact = X.astype(np.float32)
        assert np.array_equal(fitted.predict_topk(X, 3)[0], fitted.predict_topk(exact, 3)[0])
        one, other = self.make().fit(X, Y), self.make().fit(exact, data[1])
        assert np.array_equal(one.predict_topk(X, 3)[0], other.predict_topk(exact, 3)[0])

    def test_lists_of_labels_are_no_matrix(self, data):
        lists = [row.indices.tolist() for row in data[1]]
        with pytest.raises(InvalidInput, match=r"Y: the rows differ in length; .* MultiLabelBinarizer"):
            self.make().fit(data[0], lists)
