"""A million labels: no array of rows x labels and no Python loop over labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import longtail
from longtail import LabelTree

N_LABELS, N_ROWS, LABELS_PER_ROW, N_WORDS = 1_000_000, 250_000, 4, 50_000


@pytest.fixture(scope="module")
def rows():
    """Every label has one row and two words, which it shares with others; a row has the words of its labels."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(N_LABELS).reshape(N_ROWS, LABELS_PER_ROW)
    words = rng.integers(N_WORDS, size=(N_LABELS, 2))[labels].reshape(N_ROWS, 2 * LABELS_PER_ROW)
    Y, X = (
        sparse.csr_array(
            (np.ones(each.size, np.float32), each.ravel(), np.arange(0, each.size + 1, each.shape[1])),
            shape=(N_ROWS, width),
        )
        for each, width in ((labels, N_LABELS), (words, N_WORDS))
    )
    X.sum_duplicates()
    X.data /= np.sqrt(2 * LABELS_PER_ROW)
    return X, Y, labels


@pytest.mark.slow
def test_a_tree_learns_finds_saves_and_explains_a_million_labels(rows, tmp_path, monkeypatch):
    X, Y, labels = rows
    monkeypatch.setenv("LONGTAIL_MEMORY", "4G")  # what is planned for must fit
    model = LabelTree().fit(X, Y)
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    for each in (model, loaded):
        top, scores = each.predict_topk(X[:500], LABELS_PER_ROW)
        np.testing.assert_array_equal(np.sort(top, axis=1), np.sort(labels[:500], axis=1))
        assert ((scores > 0) & (scores <= 1)).all()
    denied, _ = loaded.predict_topk(X[:1], LABELS_PER_ROW, deny=labels[0, :2])
    assert set(denied[0]) & set(labels[0]) == set(labels[0, 2:])
    assert loaded.predict(X[:100]).shape == (100, N_LABELS)
    explanation = loaded.explain(X[:1], int(labels[0, 0]))
    assert explanation.margin == pytest.approx(explanation.contributions.sum() + explanation.intercept, abs=1e-4)
