"""A trained network can be audited like a linear model if its head is a linear layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

import longtail
from longtail.audit import UNARGMAXABLE, LabelSets, audit
from longtail.errors import InvalidInput, NotEnoughMemory
from longtail.neural import DeepMIML, MultiHeadClassifier
from longtail.validation import as_features

LINEAR = ("one-hot", "sampling", "bottleneck", "dft")
N_LABELS = 10


def rows(n_rows: int = 240, seed: int = 0) -> tuple[Any, Any]:
    """Rows with up to three of ten labels, the last of which never occurs; the features are noisy labels."""
    rng = np.random.default_rng(seed)
    Y = np.zeros((n_rows, N_LABELS), dtype=np.float32)
    for row in Y:
        row[rng.choice(N_LABELS - 1, size=rng.integers(1, 4), replace=False)] = 1
    return (Y + 0.1 * rng.normal(size=Y.shape)).astype(np.float32), Y


def trained(head: str, **settings: Any) -> MultiHeadClassifier:
    usual = {"width": 24, "head_width": 2, "epochs": 30, "batch_size": 8, "learning_rate": 0.02, "n_jobs": 1}
    X, Y = rows()
    if settings.get("task") == "single-label":
        Y = np.eye(N_LABELS)[Y.argmax(axis=1)]
    return MultiHeadClassifier(head, **{**usual, **settings}).fit(X, Y)


def inputs(model: MultiHeadClassifier, X: Any) -> np.ndarray:
    """The inputs of the network's last layer."""
    [network] = model.networks_
    with torch.no_grad():
        features = network.encoder(model._rows(as_features(X)).batch(np.arange(len(X))))
        projection = getattr(network.head, "projection", None)
        return (features if projection is None else projection(features)).double().numpy()


@pytest.mark.parametrize("head", LINEAR)
def test_the_layer_gives_the_labels_that_the_saved_network_predicts(head: str, tmp_path) -> None:
    trained(head).save(tmp_path / "model")
    model = longtail.load(tmp_path / "model")
    X, _ = rows(seed=1)
    layer = model.output_layer()
    assert layer.n_labels == N_LABELS
    given = inputs(model, X) @ layer.weights.T + layer.offsets >= 0
    expected = model.predict(X).toarray() > 0
    # Scores at the threshold may fall on either side in 32-bit floats.
    assert np.count_nonzero(given != expected) <= 2
    assert expected.any(axis=0)[:-1].any()
    assert not given[:, -1].any()


@pytest.mark.parametrize("head", LINEAR)
def test_no_set_that_the_network_gives_is_said_to_be_out_of_reach(head: str) -> None:
    model = trained(head)
    X, Y = rows(seed=1)
    found = audit(model.output_layer(), LabelSets.of(model.predict(X)))
    assert found.count(UNARGMAXABLE) == 0
    wanted = audit(model.output_layer(), LabelSets.of(sparse.csr_array(Y)))
    # Nine labels over two numbers cannot form all sets; sines and cosines can.
    assert (wanted.count(UNARGMAXABLE) > 0) == (head == "bottleneck")


@pytest.mark.parametrize("task", ["multi-label", "single-label"])
@pytest.mark.parametrize("head", LINEAR)
def test_the_layer_ranks_as_the_network_does(head: str, task: str) -> None:
    X, _ = rows(seed=1)
    Y = np.eye(N_LABELS)[np.arange(len(X)) % N_LABELS]
    settings = {"width": 24, "head_width": 4, "epochs": 2, "batch_size": 8, "n_jobs": 1, "task": task}
    model = MultiHeadClassifier(head, **settings).fit(X, Y)
    layer = model.output_layer("topk")
    best = np.argmax(inputs(model, X) @ layer.weights.T + layer.offsets, axis=1)
    assert np.mean(best == model.predict_topk(X, k=1)[0].ravel()) > 0.99


@pytest.mark.parametrize(
    ("head", "settings", "rule", "message"),
    [
        ("product", {}, "predict", "multiplies the outputs of several short layers.* 'bottleneck' and 'dft' have one"),
        ("cascade", {}, "topk", "scores only the members of a row's best groups.*--head"),
        ("one-hot", {"n_networks": 2}, "predict", "2 networks.*n_networks=1"),
        ("one-hot", {}, "topk", "1 of 10 labels were never trained .* audit the label sets of `predict`"),
        ("one-hot", {"task": "single-label"}, "predict", "audit the ranking .*--rule topk"),
        ("one-hot", {}, "best", "'best'"),
    ],
)
def test_what_is_no_linear_layer_is_told_and_what_to_do(
    head: str, settings: dict[str, Any], rule: Any, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        trained(head, epochs=1, **settings).output_layer(rule)


def test_bags_have_no_linear_layer() -> None:
    X, Y = rows(20)
    model = DeepMIML(hidden=8, epochs=1).fit(X, np.eye(20), Y)
    with pytest.raises(InvalidInput, match="is not one linear layer"):
        model.output_layer()


def test_a_layer_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained("one-hot", epochs=1)
    monkeypatch.setenv("LONGTAIL_MEMORY", "1K")
    with pytest.raises(NotEnoughMemory, match="weights in 64 bits"):
        model.output_layer()
