from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import longtail
from longtail import Corpus, Tagger
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator.checks import planted
from longtail.neural import MultiHeadClassifier
from longtail.neural.classifier import HEADS

QUICK = {"width": 16, "epochs": 3, "batch_size": 16, "head_width": 8, "n_jobs": 1}


def test_topk_gives_the_highest_scores(rng):
    X, Y = planted(rng)
    fitted = MultiHeadClassifier(**QUICK).fit(X, Y)
    _, scores = fitted.predict_topk(X, k=4)
    np.testing.assert_allclose(scores, -np.sort(-fitted.decision_function(X), axis=1)[:, :4], atol=1e-5)
    with pytest.raises(InvalidInput, match="not linear") as refused:
        fitted.explain(X[[0]], 0)
    assert refused.value.code == "cannot_explain"


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("task", ["multi-label", "single-label"])
def test_every_head_learns_saves_and_loads(head: str, task: str, tmp_path) -> None:
    X = np.eye(12, dtype=np.float32)[np.arange(48) % 12]
    Y = X[:, :9].copy()
    Y[np.arange(48) % 12 >= 9, 3] = 1
    model = MultiHeadClassifier(
        head, n_heads=3, task=task, width=32, head_width=8, epochs=60, batch_size=8, learning_rate=0.02, n_jobs=1
    ).fit(X, Y)
    labels, scores = model.predict_topk(X, k=2)
    assert (labels[:, 0] == Y.argmax(axis=1)).mean() >= (0.9 if head != "product" else 0.7)
    assert ((scores >= 0) & (scores <= 1)).all()
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_topk(X, k=2)[0], labels)
    np.testing.assert_array_equal(again.predict_topk(X, k=2)[1], scores)


def test_dense_rows_and_sparse_ones_choose_their_encoder(rng) -> None:
    X, Y = planted(rng)
    assert MultiHeadClassifier(**QUICK).fit(X, Y).encoder_ == "dense"
    assert MultiHeadClassifier(**QUICK).fit(X * (X.toarray() > 0.8), Y).encoder_ == "bag-of-words"


def test_trimmed_labels_are_the_rarest_and_are_never_given(rng) -> None:
    X, Y = planted(rng, n_rows=200)
    Y = sparse.csr_array(Y.toarray() * (rng.random(Y.shape) < np.linspace(0.1, 1, 12)))
    counts = np.asarray(Y.sum(axis=0)).ravel()
    model = MultiHeadClassifier(trim=0.5, **QUICK).fit(X, Y)
    left_out = np.setdiff1d(np.flatnonzero(counts), model.labels_)
    assert len(left_out) == np.count_nonzero(counts) // 2
    assert counts[left_out].max() <= counts[model.labels_].min()
    assert not np.isin(model.predict_topk(X, k=12)[0], left_out).any()


def test_weighting_the_loss_raises_rare_labels(rng) -> None:
    X, _ = planted(rng, n_rows=200)
    Y = np.zeros((200, 4), np.float32)
    Y[:, 0] = 1
    Y[:4, 1] = 1
    options = {**QUICK, "head": "one-hot", "epochs": 20, "learning_rate": 0.02}
    plain = MultiHeadClassifier(**options).fit(X, Y).decision_function(X)
    weighted = MultiHeadClassifier(weighting="loss", **options).fit(X, Y).decision_function(X)
    assert weighted[:, 1].mean() > 1.2 * plain[:, 1].mean()


def test_an_interrupted_training_goes_on_to_the_same_result(rng, tmp_path, monkeypatch) -> None:
    X, Y = planted(rng)
    whole = MultiHeadClassifier(**QUICK).fit(X, Y).predict_topk(X)
    model = MultiHeadClassifier(**QUICK, checkpoint=str(tmp_path / "checkpoint"))
    from longtail.neural import training

    write = training.write_checkpoint

    def interrupt(*arguments, **options):
        write(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "write_checkpoint", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    monkeypatch.setattr(training, "write_checkpoint", write)
    resumed = model.fit(X, Y)
    assert len(resumed.histories_[0].losses) == 3
    for one, other in zip(whole, resumed.predict_topk(X), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_state_that_claims_more_than_it_holds_is_refused(rng) -> None:
    X, Y = planted(rng)
    state = MultiHeadClassifier(**QUICK).fit(X, Y).to_state()
    for name, value in (("n_features", 10**9), ("radices", [2**31, 2**31]), ("radices", []), ("n_networks", 7)):
        with pytest.raises(ModelFormatError):
            MultiHeadClassifier.from_state(
                type(state)(state.kind, state.params, {**state.facts, name: value}, state.arrays, state.parts)
            )
    for name, value in (("width", 2**20), ("head_width", 2**20), ("layers", 100), ("head", "none")):
        with pytest.raises(ModelFormatError):
            MultiHeadClassifier.from_state(
                type(state)(state.kind, {**state.params, name: value}, state.facts, state.arrays, state.parts)
            )


def test_a_cascade_of_many_stages_is_counted_before_it_is_made(rng) -> None:
    X, Y = planted(rng)
    state = MultiHeadClassifier(**{**QUICK, "head": "cascade", "radices": (3, 2, 4)}).fit(X, Y).to_state()
    assert MultiHeadClassifier.from_state(state).radices_ == (3, 2, 4)
    many = {**state.facts, "radices": [Y.shape[1], *[1] * 300]}
    with pytest.raises(ModelFormatError, match="tables of"):
        MultiHeadClassifier.from_state(type(state)(state.kind, state.params, many, state.arrays, state.parts))


def test_positions_that_are_no_permutation_are_refused(rng) -> None:
    X, Y = planted(rng)
    model = MultiHeadClassifier(**QUICK).fit(X, Y)
    model.networks_[0].head.position[0] = model.networks_[0].head.position[1]
    with pytest.raises(ModelFormatError, match="permutation"):
        MultiHeadClassifier.from_state(model.to_state())


def test_labels_without_any_row_leave_nothing_to_learn() -> None:
    with pytest.raises(InvalidInput, match="nothing to learn from"):
        MultiHeadClassifier().fit([[1.0]], [[0]])


def test_few_rows_are_taken_in_small_steps(rng) -> None:
    X, Y = planted(rng)
    options = {"width": 16, "epochs": 1, "n_jobs": 1}
    by_itself = MultiHeadClassifier(**options).fit(X, Y).decision_function(X)
    told = MultiHeadClassifier(**options, batch_size=4).fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(by_itself, told)  # 80 rows in twenty steps


@pytest.mark.parametrize("head", HEADS)
def test_a_single_label_network_always_gives_a_class(rng, head):
    X = rng.normal(size=(60, 5)).astype(np.float32)
    y = rng.integers(0, 6, size=60)  # noise: no class gets half of the probability
    settings = {"task": "single-label", "width": 8, "epochs": 2, "batch_size": 16, "n_jobs": 1}
    model = MultiHeadClassifier(head, **settings).fit(X, np.eye(6)[y])
    given = model.predict(X)
    assert (given.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(given.indices, model.predict_topk(X, k=1)[0][:, 0])
    classes = MultiHeadClassifier(head, **settings).fit(X, y)
    np.testing.assert_array_equal(classes.predict(X), given.indices)


OPTIONS: list[tuple[str, dict[str, Any], str, Any]] = [
    ("cascade", {"loss": "stages"}, "trained_on", "stages"),
    ("product", {"loss": "softmax"}, "outputs", "softmax"),
    ("kronecker", {"products": 3}, "groups", 3),
    ("cascade", {"sparse_gradients": True}, "sparse_gradients", True),
    ("sampling", {"sparse_gradients": True}, "sparse_gradients", True),
    ("sampling", {"own_blocks": True, "sampled": 2, "n_heads": 3, "task": "single-label"}, "fast", False),
    ("sampling", {"margin": 0.2, "n_heads": 3, "task": "single-label"}, "margin", 0.2),
    ("bottleneck", {"head_width": 12}, "width", 12),
    ("dft", {"active": 3}, "k", 3),
    ("dft", {"slack": 4}, "slack", 4),
    ("dft", {}, "slack", 0),
]


@pytest.mark.parametrize(("head", "options", "name", "value"), OPTIONS)
def test_options_of_a_head_reach_it_and_it_learns(
    head: str, options: dict[str, Any], name: str, value: Any, tmp_path
) -> None:
    X = np.eye(9, dtype=np.float32)[np.arange(36) % 9]
    settings = {"width": 32, "epochs": 60, "batch_size": 9, "learning_rate": 0.02, "n_jobs": 1}
    model = MultiHeadClassifier(head, **options, **settings).fit(X, X)
    assert getattr(model.networks_[0].head, name) == value
    found = model.predict_topk(X, k=1)
    assert (found[0][:, 0] == np.arange(36) % 9).mean() > 0.8
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    assert getattr(again.networks_[0].head, name) == value
    np.testing.assert_array_equal(again.predict_topk(X, k=1)[0], found[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head": "one-hot", "loss": "stages"}, "loss is 'stages', which needs head='cascade'$"),
        ({"head": "product", "loss": "stages"}, "loss is 'stages', which needs head='cascade'$"),
        ({"head": "cascade", "loss": "softmax"}, "loss is 'softmax', which needs head='product'$"),
        ({"head": "cascade", "margin": 0.5}, "margin is 0.5, which needs head='sampling'"),
        ({"head": "sampling", "margin": 0.5}, "margin is 0.5, which needs task='single-label'"),
        ({"head": "sampling", "own_blocks": True}, "own_blocks is True, which needs task='single-label'"),
        ({"head": "dft", "sparse_gradients": True}, "which needs head='cascade' or head='sampling'"),
    ],
)
def test_options_of_other_heads_and_tasks_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        MultiHeadClassifier(**options).fit(np.eye(3), np.eye(3))
    assert (refused.value.code, refused.value.name in options) == ("bad_parameter", True)


def test_slack_is_added_where_32_bit_floats_do_not_resolve_label_sets(
    rng, tmp_path, caplog: pytest.LogCaptureFixture
) -> None:
    Y = np.zeros((40, 120), dtype=np.float32)
    np.put_along_axis(Y, np.argsort(rng.random((40, 120)), axis=1)[:, :8], 1, axis=1)
    settings = {"head": "dft", "width": 8, "epochs": 1, "batch_size": 20, "n_jobs": 1}
    with caplog.at_level("INFO"):
        model = MultiHeadClassifier(**settings).fit(np.eye(40), Y)
    assert model.slack_ == model.networks_[0].head.slack == 16
    assert "16 slack columns" in caplog.text
    assert "sets of 8 of" in caplog.text
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_topk(np.eye(40), 3)[0], model.predict_topk(np.eye(40), 3)[0])
    caplog.clear()
    assert MultiHeadClassifier(**settings, slack=0).fit(np.eye(40), Y).networks_[0].head.slack == 0
    assert MultiHeadClassifier(**settings, active=1).fit(np.eye(40), Y).networks_[0].head.slack == 0
    assert "slack" not in caplog.text


def test_sampling_has_short_blocks_unless_told_otherwise(rng):
    X, y = rng.normal(size=(1000, 4)).astype(np.float32), np.arange(1000)
    settings = {"task": "single-label", "width": 4, "epochs": 1, "n_jobs": 1}
    model = MultiHeadClassifier("sampling", **settings).fit(X, y)
    assert model.networks_[0].head.length == 10
    blocks = MultiHeadClassifier("sampling", n_heads=2, **settings).fit(X, y)
    assert blocks.networks_[0].head.length == 500


def test_sets_that_a_dft_head_cannot_promise_are_refused_or_told(rng, caplog):
    X, Y = rng.normal(size=(40, 4)).astype(np.float32), np.eye(8)[np.arange(40) % 8]
    settings = {"width": 4, "epochs": 1, "n_jobs": 1}
    with pytest.raises(InvalidInput, match=r"active is 4; .* 8 labels can predict all sets of at most 3") as refused:
        MultiHeadClassifier("dft", active=4, **settings).fit(X, Y)
    assert (refused.value.code, refused.value.name) == ("bad_parameter", "active")
    assert MultiHeadClassifier("dft", active=3, **settings).fit(X, Y).networks_[0].head.k == 3
    assert not caplog.records
    Y[0] = 1
    model = MultiHeadClassifier("dft", **settings).fit(X, Y)
    assert model.active_ == model.networks_[0].head.k == 3
    assert "a row has 8 of 8 labels; the dft head can predict all sets of at most 3" in caplog.text


def test_trainings_of_a_tagger_without_held_out_rows_keep_checkpoints_of_their_own(rng, tmp_path):
    X, Y = planted(rng)
    corpus = Corpus(labels=Y, label_names=[f"label {number}" for number in range(Y.shape[1])], features=X)
    plain, kept = (MultiHeadClassifier(**QUICK, checkpoint=where) for where in (None, str(tmp_path / "kept")))
    for holdout in (None, 0.2):
        found, expected = (Tagger(estimator=each).fit_corpus(corpus, holdout=holdout) for each in (kept, plain))
        assert found.decision_ is not None
        assert found.decision_.rule == expected.decision_.rule
        again = Tagger(estimator=kept).fit_corpus(corpus, holdout=holdout)
        np.testing.assert_array_equal(again.predict_topk(X)[1], expected.predict_topk(X)[1])
    assert {path.name for path in tmp_path.iterdir()} >= {"kept-0", "kept-rest-0", "kept-part1-0", "kept-rest-part1-0"}


@pytest.mark.parametrize(
    ("head", "options"),
    [
        ("one-hot", {"loss": "stages"}),
        ("one-hot", {"sparse_gradients": True}),
        ("kronecker", {"loss": "binary"}),
        ("dft", {"margin": 0.5}),
        ("sampling", {"own_blocks": True}),
    ],
)
def test_a_saved_model_cannot_have_options_of_another_head(head: str, options: dict[str, Any], rng) -> None:
    state = MultiHeadClassifier(head, **QUICK).fit(*planted(rng)).to_state()
    with pytest.raises(ModelFormatError, match="which needs"):
        MultiHeadClassifier.from_state(replace(state, params={**state.params, **options}))
