"""Networks that train the weights of a pretrained encoder, through `MultiHeadClassifier`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import longtail
from longtail.errors import InvalidInput, ModelFormatError, NotEnoughMemory
from longtail.memory import limit
from longtail.neural import MultiHeadClassifier, TokenFeatures
from longtail.progress import listening
from longtail.text import ENCODER_VARIABLE
from tests.neural.tiny import POSITIONS, WIDTH, write_tiny_encoder

pytest.importorskip("transformers")

WORDS = [f"w{number}" for number in range(24)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    return write_tiny_encoder(tmp_path_factory.mktemp("tiny"), WORDS)


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENCODER_VARIABLE, raising=False)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, size=rng.integers(1, 6))) for _ in range(60)]


@pytest.fixture(scope="module")
def tokens(folder: Path, texts: list[str]) -> Any:
    return TokenFeatures(folder).fit().transform(texts)


@pytest.fixture(scope="module")
def labels(texts: list[str]) -> Any:
    """Labels that only the order of words tells: whether the first word has a lower number than the last one."""
    first, last = ([int(text.split()[place][1:]) for text in texts] for place in (0, -1))
    rises = np.array(first) < np.array(last)
    return np.column_stack([rises, ~rises]).astype(np.float32)


def network(folder: Path, **options: Any) -> MultiHeadClassifier:
    settings: dict[str, Any] = {
        "head": "one-hot", "encoder": "pretrained", "encoder_folder": str(folder), "encoder_learning_rate": 0.01,
        "learning_rate": 0.02, "epochs": 2, "batch_size": 10, "n_jobs": 1,
    }  # fmt: skip
    return MultiHeadClassifier(**{**settings, **options})


@pytest.fixture(scope="module")
def model(folder: Path, tokens: Any, labels: Any) -> MultiHeadClassifier:
    return network(folder, epochs=30).fit(tokens, labels)


def weights_of(model: MultiHeadClassifier) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in model.networks_[0].encoder.model.state_dict().items()}


def test_the_weights_of_the_encoder_are_trained(
    model: MultiHeadClassifier, folder: Path, tokens: Any, labels: Any
) -> None:
    from longtail.neural.encoders import Pretrained

    before = Pretrained(folder).model.state_dict()
    after = weights_of(model)
    query = next(name for name in after if "query.weight" in name)
    assert abs(after[query] - before[query].numpy()).max() > 0.01
    assert model.histories_[0].losses[-1] < 0.5 * model.histories_[0].losses[0]
    assert (model.predict_topk(tokens, 1)[0].ravel() == labels.argmax(axis=1)).mean() > 0.9
    assert model.networks_[0].encoder.n_features == WIDTH


def test_the_encoder_has_a_learning_rate_of_its_own(folder: Path, tokens: Any, labels: Any) -> None:
    slow, fast = (
        weights_of(network(folder, encoder_learning_rate=rate, weight_decay=0.0).fit(tokens, labels))
        for rate in (1e-7, 1e-3)
    )
    start = weights_of(network(folder, encoder_learning_rate=1e-30, weight_decay=0.0).fit(tokens, labels))
    query = next(name for name in start if "query.weight" in name)
    assert abs(slow[query] - start[query]).max() < 1e-5
    assert 1e-4 < abs(fast[query] - start[query]).max() < 0.1


@pytest.mark.parametrize("head", ["cascade", "bottleneck", "dft"])
def test_a_loaded_model_predicts_the_same(head: str, folder: Path, tokens: Any, labels: Any, tmp_path: Path) -> None:
    model = network(folder, head=head, n_networks=2).fit(tokens, np.hstack([labels, 1 - labels, labels]))
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    for mine, loaded in zip(model.predict_topk(tokens, 3), again.predict_topk(tokens, 3), strict=True):
        assert mine.tobytes() == loaded.tobytes()
    names = {path.suffix for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert names == {".npy", ".json"}


def test_the_order_of_rows_does_not_matter(model: MultiHeadClassifier, tokens: Any) -> None:
    order = np.random.default_rng(0).permutation(tokens.shape[0])
    np.testing.assert_allclose(
        model.decision_function(tokens[order]), model.decision_function(tokens)[order], rtol=1e-5, atol=1e-6
    )


def test_the_same_seed_gives_the_same_weights(folder: Path, tokens: Any, labels: Any) -> None:
    first, second = (network(folder, epochs=1).fit(tokens, labels) for _ in range(2))
    assert first.predict_topk(tokens, 2)[1].tobytes() == second.predict_topk(tokens, 2)[1].tobytes()


def test_rows_without_tokens_have_finite_scores(model: MultiHeadClassifier, tokens: Any) -> None:
    empty = sparse.csr_array((3, POSITIONS), dtype=np.float32)
    assert np.isfinite(model.predict_topk(empty, 2)[1]).all()


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [(0, 0.5, "has the value 0.5 in column 0"), (0, 29, "has the value 29"), (2, 3, "has the value 3 in column 2")],
)
def test_rows_of_anything_else_are_refused(model: MultiHeadClassifier, column: int, value: float, told: str) -> None:
    rows = np.zeros((2, POSITIONS), dtype=np.float32)
    rows[1, column] = value
    with pytest.raises(InvalidInput, match=f"row 1 {told}.*TokenFeatures"):
        model.predict_topk(rows, 1)


def test_more_positions_than_the_encoder_has_are_refused(folder: Path, labels: Any) -> None:
    rows = np.full((len(labels), POSITIONS + 1), 5.0, dtype=np.float32)
    with pytest.raises(InvalidInput, match=f"up to {POSITIONS + 1} tokens, but the encoder in .* reads {POSITIONS}"):
        network(folder).fit(rows, labels)


def test_progress_tells_the_epoch_and_the_loss(folder: Path, tokens: Any, labels: Any) -> None:
    told: list[tuple[str, str]] = []

    @contextmanager
    def listener(description: str, total: int) -> Iterator[Any]:
        yield lambda amount, note="": told.append((description, note))

    with listening(listener):
        model = network(folder).fit(tokens, labels)
    notes = [note for description, note in told if description == "training"]
    assert notes[0].startswith("epoch 1 of 2, loss ")
    assert notes[-1] == f"epoch 2 of 2, loss {model.histories_[0].losses[1]:.4g}"


def test_memory_is_checked_before_training(folder: Path, tokens: Any, labels: Any) -> None:
    with limit("50K"), pytest.raises(NotEnoughMemory, match="training a network"):
        network(folder, batch_size=60).fit(tokens, labels)


def test_an_encoder_that_is_gone_or_another_is_told_when_loading(
    model: MultiHeadClassifier, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = model.to_state()
    gone = replace(state, facts={**state.facts, "folder": str(tmp_path / "gone")})
    with pytest.raises(ModelFormatError, match=r"the model needs the sentence encoder that was in .*gone"):
        MultiHeadClassifier.from_state(gone)
    other = write_tiny_encoder(tmp_path / "other", [*WORDS, "more"])
    with pytest.raises(ModelFormatError, match="another encoder"):
        MultiHeadClassifier.from_state(replace(state, facts={**state.facts, "folder": str(other)}))
    monkeypatch.setenv(ENCODER_VARIABLE, str(folder))
    assert MultiHeadClassifier.from_state(gone).pretrained_.folder == folder


@pytest.mark.parametrize(
    "facts",
    [{"folder": 3}, {"fingerprint": "a"}, {"encoder": "other"}, {"n_features": POSITIONS + 1}, {"n_features": 2**40}],
)
def test_forged_facts_are_refused(model: MultiHeadClassifier, facts: dict[str, Any]) -> None:
    state = model.to_state()
    with pytest.raises(ModelFormatError):
        MultiHeadClassifier.from_state(replace(state, facts={**state.facts, **facts}))


def test_bags_have_no_pretrained_encoder() -> None:
    from longtail.neural import DeepMIML

    model = DeepMIML(hidden=4, epochs=1, n_jobs=1).fit(np.eye(3), np.eye(3), np.eye(3))
    state = model.to_state()
    with pytest.raises(ModelFormatError, match="unknown encoder 'pretrained'"):
        DeepMIML.from_state(replace(state, facts={**state.facts, "encoder": "pretrained"}))
