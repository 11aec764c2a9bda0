"""`TwoStage` keeps the contract of estimators, uses all its sources, and explains both stages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logit

from longtail import LabelTree, load
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator import Revision, check_estimator
from longtail.ranking import TwoStage
from longtail.ranking.sources import Statistics
from longtail.store import put_together

N_LABELS, N_WORDS = 40, 60


def titles(rng, n_rows, n_labels=N_LABELS):
    """Each label has a word of its own (its name) and shares others; rows show the names of their labels at times."""
    rows, columns, labels = [], [], []
    for row in range(n_rows):
        own = rng.choice(n_labels, size=2, replace=False)
        words = {N_LABELS + int(label) % (N_WORDS - N_LABELS) for label in own}
        words |= {int(label) for label in own if rng.random() < 0.7}
        rows += [row] * len(words)
        columns += sorted(words)
        labels.append(own)
    X = sparse.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(n_rows, N_WORDS))
    X = sparse.csr_array(X.multiply(1 / np.sqrt(X.sum(axis=1))[:, None])).astype(np.float32)
    Y = np.zeros((n_rows, N_LABELS), np.int8)
    Y[np.repeat(np.arange(n_rows), 2), np.concatenate(labels)] = 1
    return X, sparse.csr_array(Y)


NAMES = sparse.csr_array(sparse.eye_array(N_LABELS, N_WORDS, dtype=np.float32))


def small(**options):
    tree = LabelTree(leaf_size=8, branching=4)
    return TwoStage([("tree", tree)], rounds=40, **options)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return titles(rng, 400, n_labels=30), titles(rng, 200)


@pytest.fixture(scope="module")
def model(data):
    (X, Y), _ = data
    return small().fit(X, Y, NAMES)


def test_two_stages_keep_the_contract_of_estimators():
    check_estimator(TwoStage([("tree", LabelTree())], rounds=5))


def test_two_stages_keep_the_contract_where_learners_see_only_some_features():
    check_estimator(TwoStage([("tree", LabelTree())], rounds=5, learned=20))


@pytest.mark.parametrize("sources", [(), ("neighbours",), ("statistics", "names")])
def test_two_stages_keep_the_contract_without_some_sources(sources):
    check_estimator(TwoStage([("tree", LabelTree())], rounds=5, sources=sources))


def test_only_the_sources_asked_for_take_part(data):
    (X, Y), (X_test, _) = data
    model = small(sources=("names", "neighbours")).fit(X, Y, NAMES)
    assert [source.kind for source in model.sources_] == ["Learner", "Neighbours", "Names"]
    assert model.explain(X_test[[0]], 35).label == 35
    assert (small(sources=()).fit(X, Y, NAMES).predict_topk(X_test, k=10)[0] < 30).all()


def test_sources_of_a_similar_model_are_used_again(data):
    (X, Y), _ = data
    whole = small().rehearse(X, Y, NAMES)
    fitted = small().rehearse(X, Y, NAMES, like=whole).finish(X, Y, NAMES)
    some = small(sources=["names"]).rehearse(X, Y, NAMES, like=whole).finish(X, Y, NAMES, like=fitted)
    assert some.sources_[0] is fitted.sources_[0]
    assert some.sources_[1] is fitted.sources_[3]
    alone = small(sources=["names"]).fit(X, Y, NAMES)
    assert some.gains_ == alone.gains_
    np.testing.assert_array_equal(some.predict_topk(X)[1], alone.predict_topk(X)[1])


def test_a_file_must_have_the_sources_that_its_parameters_name(data):
    (X, Y), _ = data
    for sources in ((), ("neighbours",), ("names",), ("neighbours", "statistics", "names")):
        state = small(sources=sources).fit(X, Y, NAMES).to_state()
        put_together(state)
        for other in ((), ("neighbours",), ("names",), ("statistics", "names"), ("neighbours", "statistics")):
            if other not in (sources, (*sources, "names")):
                with pytest.raises(ModelFormatError, match="the sources are"):
                    put_together(replace(state, params={**state.params, "sources": list(other)}))
        for other in (["learners"], [["names"]], "names", 3, None):
            with pytest.raises(ModelFormatError):
                put_together(replace(state, params={**state.params, "sources": other}))


def test_labels_without_training_rows_are_found_by_their_texts(data, model):
    _, (X, Y) = data
    labels, _ = model.predict_topk(X, k=10)
    unseen = Y[:, 30:].toarray()
    named = X[:, 30:40].toarray() > 0
    rows, columns = np.nonzero(unseen.astype(bool) & named)
    found = [(labels[row] == 30 + column).any() for row, column in zip(rows, columns, strict=True)]
    assert len(found) > 20
    assert np.mean(found) > 0.5
    (X_train, Y_train), _ = data
    without = small().fit(X_train, Y_train).predict_topk(X, k=10)[0]
    assert (without < 30).all()


def test_the_gains_compare_both_stages_with_each_learner_alone(data):
    (X, Y), _ = data
    gains = small().rehearse(X[:60], Y[:60, :30], NAMES[:30]).gains_
    assert set(gains) == {"tree", "two stages"}
    assert 0.5 < gains["tree"] < gains["two stages"] <= 1


def test_labels_that_are_hidden_from_learners_do_not_count_against_them(data):
    (X, Y), _ = data
    closed, opened = (small().rehearse(X, Y[:, :n], NAMES[:n]) for n in (30, N_LABELS))
    assert opened.gains_["tree"] == pytest.approx(closed.gains_["tree"], abs=0.02)


def test_the_labels_of_held_out_rows_are_not_given_away_by_their_texts():
    # Each row has a label of its own, whose text it contains. In the model, such a label would have no rows.
    X = sparse.csr_array(sparse.eye_array(200, dtype=np.float32))
    assert small().rehearse(X, X, X).gains_["two stages"] == 0


def test_the_evidence_adds_up_to_the_log_odds_of_the_score(data, model):
    _, (X, _) = data
    labels, scores = model.predict_topk(X[:5], k=1)
    for row in range(5):
        found = model.explain(X[[row]], int(labels[row, 0]))
        assert found.score == pytest.approx(float(scores[row, 0]), abs=1e-6)
        assert sum(each.contribution for each in found.evidence) == pytest.approx(logit(found.score), abs=1e-4)
        assert found.evidence[0].value is None


def test_a_label_without_rows_is_explained_by_the_words_of_its_text(data, model):
    _, (X, _) = data
    row = int(np.flatnonzero(X[:, [35]].toarray())[0])
    found = model.explain(X[[row]], 35)
    assert found.features.tolist() == [35]
    assert found.margin == pytest.approx(X[row, 35])
    assert found.evidence


def test_more_places_do_not_change_the_first_ones(data, model):
    _, (X, _) = data
    few, few_scores = model.predict_topk(X, k=3)
    many, many_scores = model.predict_topk(X, k=N_LABELS)
    np.testing.assert_array_equal(many[:, :3], few)
    np.testing.assert_array_equal(many_scores[:, :3], few_scores)


def test_a_row_alone_and_in_a_batch_get_the_same_answer(data, model):
    _, (X, _) = data
    labels, scores = model.predict_topk(X[:20], k=5)
    for row in range(20):
        alone = model.predict_topk(X[[row]], k=5)
        np.testing.assert_array_equal(alone[0][0], labels[row])
        np.testing.assert_array_equal(alone[1][0], scores[row])


def test_denied_labels_make_room_for_others(data, model):
    _, (X, _) = data
    best = model.predict_topk(X, k=1)[0][:, 0]
    labels, _ = model.predict_topk(X, k=3, deny=np.unique(best)[:10])
    assert not np.isin(labels, np.unique(best)[:10]).any()
    assert (labels >= 0).all()


def test_scores_are_probabilities_that_fit_rows_like_the_training_rows(data, model):
    X, Y = titles(np.random.default_rng(5), 300, n_labels=30)
    labels, scores = model.predict_topk(X, k=5)
    hits = np.take_along_axis(Y.toarray(), labels, axis=1)
    assert scores.mean() == pytest.approx(hits.mean(), abs=0.05)


def test_the_same_bytes_whatever_the_threads(data, tmp_path):
    (X, Y), _ = data
    for n_jobs in (1, 3):
        model = TwoStage([("tree", LabelTree(leaf_size=8, n_jobs=n_jobs))], rounds=5, n_jobs=n_jobs)
        model.fit(X, Y, NAMES).save(tmp_path / str(n_jobs))
    files = [{path.name: path.read_bytes() for path in (tmp_path / n).glob("*.npy")} for n in ("1", "3")]
    assert files[0] == files[1]


def test_a_loaded_model_knows_the_label_texts(data, model, tmp_path):
    _, (X, _) = data
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_topk(X)[0], model.predict_topk(X)[0])


def test_models_fitted_before_are_used_for_the_first_part(data):
    (X, Y), _ = data
    whole = TwoStage([("tree", LabelTree(leaf_size=8))], rounds=5).fit(X, Y)
    from longtail.choice import folds

    [(_, rest), *_] = folds(X.shape[0], 0)
    fitted = LabelTree(leaf_size=8).fit(X[rest], Y[rest])
    again = TwoStage([("tree", LabelTree(leaf_size=8))], rounds=5).fit(X, Y, fitted=[fitted])
    np.testing.assert_array_equal(again.ranker_.values, whole.ranker_.values)


def test_label_features_of_another_shape_are_refused(data):
    (X, Y), _ = data
    with pytest.raises(InvalidInput, match="label_features has 7 rows for 40 labels"):
        small().fit(X, Y, NAMES[:7])


def test_a_mask_does_not_change_the_score_of_a_label(data, model):
    _, (X, _) = data
    labels, scores = model.predict_topk(X, k=5)
    for place in (0, 2):
        only = np.unique(labels[:, place])
        masked, masked_scores = model.predict_topk(X, k=len(only), allow=only)
        for row in range(0, X.shape[0], 10):
            [at] = np.flatnonzero(masked[row] == labels[row, place])
            assert masked_scores[row, at] == scores[row, place]


def test_rows_without_labels_are_no_trouble():
    TwoStage([("tree", LabelTree())]).fit(np.eye(8), np.zeros((8, 3)), np.eye(3, 8))


def test_with_very_few_rows_the_first_learner_decides():
    X, Y = np.tile(np.eye(3), (4, 1)), np.tile(np.eye(3), (4, 1))
    model = TwoStage([("tree", LabelTree())]).fit(X, Y)
    assert model.predict_topk(np.eye(3), k=1)[0].ravel().tolist() == [0, 1, 2]


@pytest.mark.parametrize("names", [[], ["one", "one"], ["two stages"]])
def test_learners_need_names_of_their_own(data, names):
    (X, Y), _ = data
    with pytest.raises(InvalidInput, match="estimators has the names"):
        TwoStage([(name, LabelTree()) for name in names]).fit(X, Y)


def test_finish_needs_a_rehearsal(data):
    (X, Y), _ = data
    with pytest.raises(InvalidInput, match="rehearse first"):
        small().finish(X, Y)


def grown(model, X, Y, first, last):
    return model.updated(Revision.of(X[:first], Y[:first], X[:last], Y[:last], np.arange(first), np.arange(Y.shape[1])))


def test_updates_learn_to_rank_from_new_rows_when_these_are_many(monkeypatch, tmp_path):
    monkeypatch.setattr("longtail.ranking.two_stage._FEWEST_NEW", 60)
    X, Y = titles(np.random.default_rng(1), 500)
    first = small().fit(X[:120], Y[:120], NAMES)
    first.save(tmp_path / "first")
    few = grown(load(tmp_path / "first"), X, Y, 120, 160)
    assert (few.rows_ranked_, few.held_out_) == (120, None)
    np.testing.assert_array_equal(few.ranker_.thresholds, first.ranker_.thresholds)
    many = grown(few, X, Y, 160, 300)
    assert (many.rows_ranked_, many.held_out_.n_rows) == (300, 140)
    before, after = (len(each._candidates(X[160:300]).pairs.labels) for each in (few, many))
    assert len(many.held_out_.rows) == before != after  # judged before they were learned
    labels, scores = many.predict_topk(X[300:], 2)
    right = np.take_along_axis(Y[300:].toarray(), labels, axis=1)
    assert abs(scores.mean() - right.mean()) < 0.1
    again = grown(many, X, Y, 300, 400)
    assert (again.rows_ranked_, again.held_out_) == (300, None)


@pytest.mark.parametrize("labelled", [True, False])
def test_new_rows_without_known_labels_leave_the_ranker_as_it_is(monkeypatch, labelled):
    monkeypatch.setattr("longtail.ranking.two_stage._FEWEST_NEW", 60)
    X, Y = titles(np.random.default_rng(1), 400)
    first = small().fit(X[:120], Y[:120], NAMES)
    of_new = Y[120:] if labelled else sparse.csr_array(Y[120:].shape, dtype=Y.dtype)
    now = sparse.csr_array(sparse.block_array([[Y[:120], None], [None, of_new]]))
    labels = np.concatenate([np.arange(N_LABELS), np.full(N_LABELS, -1)])
    found = first.updated(Revision.of(X[:120], Y[:120], X, now, np.arange(120), labels))
    assert (found.rows_ranked_, found.held_out_) == (120, None)
    np.testing.assert_array_equal(found.ranker_.thresholds, first.ranker_.thresholds)


def told_counts(model, X):
    """The number of rows of each label of the first row's candidates, as the ranker is told."""
    found = model._candidates(X[[0]])
    return found.pairs.labels, found.features[:, model._columns().index("number of the label's rows")]


def test_labels_are_told_to_be_as_frequent_as_they_were_while_the_ranker_learned(data, model, tmp_path):
    (X, Y), _ = data
    counts = Y.sum(axis=0)
    model.save(tmp_path / "model")
    for each in (model, load(tmp_path / "model")):
        labels, told = told_counts(each, X)
        np.testing.assert_allclose(told, np.maximum(0.75 * counts[labels], np.minimum(counts[labels], 1)), rtol=1e-6)


def test_more_rows_after_an_update_do_not_make_every_label_look_more_frequent(data):
    (X, Y), _ = data
    first = small(sources=("statistics",)).fit(X, Y)
    twice = [sparse.csr_array(sparse.vstack([each, each])) for each in (X, Y)]
    revision = Revision.of(X, Y, *twice, np.arange(400), np.arange(N_LABELS), np.zeros(0, dtype=np.int64))
    for before, after in zip(told_counts(first, X), told_counts(first.updated(revision), X), strict=True):
        np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("share", [0, -1, float("nan"), float("inf"), "half", True])
def test_a_spoilt_share_of_rows_is_refused(data, share):
    (X, Y), _ = data
    state = Statistics.fit(X, Y.astype(np.float32), 1).to_state()
    with pytest.raises(ModelFormatError):
        Statistics.from_state(replace(state, facts={"share": share}), N_WORDS, N_LABELS)
