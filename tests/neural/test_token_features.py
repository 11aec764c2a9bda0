"""Token ids as features: a column per position, saved without the tokenizer, checked when the first text comes."""

from __future__ import annotations

import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.errors import ModelFormatError
from longtail.neural import TokenFeatures
from longtail.store import put_together
from longtail.text import ENCODER_VARIABLE
from tests.neural.tiny import POSITIONS, write_tiny_encoder

pytest.importorskip("transformers")

TEXTS = ["red apples", "green apples", "", "a blue sky"]
WORDS = ["red", "green", "blue", "apples", "sky"]
# The ids of the tiny encoder: 1 unknown, 2 the start, 3 the end, then the words.
IDS = [[2, 4, 7, 3], [2, 5, 7, 3], [2, 3], [2, 1, 6, 8, 3]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    return write_tiny_encoder(tmp_path_factory.mktemp("tiny"), WORDS)


@pytest.fixture
def features(folder: Path) -> TokenFeatures:
    return TokenFeatures(folder).fit()


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENCODER_VARIABLE, raising=False)


def ids_of(X: Any) -> list[list[int]]:
    return [(X.data[start:end] - 1).astype(int).tolist() for start, end in zip(X.indptr, X.indptr[1:], strict=False)]


def test_a_column_holds_the_id_of_a_token_plus_one(features: TokenFeatures) -> None:
    X = features.transform(TEXTS)
    assert X.dtype == np.float32
    assert X.shape == (4, POSITIONS)
    assert ids_of(X) == IDS
    assert X.toarray()[0, :5].tolist() == [3, 5, 8, 4, 0]
    assert features.transform([]).shape == (0, POSITIONS)
    assert features.feature_names_[:2] == ("token 0", "token 1")


def test_long_texts_are_cut_but_keep_their_end(folder: Path) -> None:
    features = TokenFeatures(folder, max_tokens=3).fit()
    assert ids_of(features.transform(["red green blue sky"])) == [[2, 4, 3]]
    assert features.n_features_out_ == 3


def test_the_state_says_where_the_encoder_is(features: TokenFeatures, folder: Path) -> None:
    state = features.to_state()
    assert not state.arrays
    assert dict(state.facts) == {
        "folder": str(folder),
        "fingerprint": features.fingerprint_,
        "max_tokens": POSITIONS,
    }
    for again in (put_together(state), pickle.loads(pickle.dumps(features))):
        assert "_loaded" not in vars(again)
        assert ids_of(again.transform(TEXTS)) == IDS


def test_a_missing_encoder_is_named_with_the_first_text(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = Path(shutil.copytree(folder, tmp_path / "moved"))
    state = TokenFeatures(moved).fit().to_state()
    shutil.rmtree(moved)
    again = put_together(state)
    with pytest.raises(ModelFormatError, match="there is no such folder") as caught:
        again.transform(TEXTS)
    assert str(moved) in str(caught.value)
    assert ENCODER_VARIABLE in str(caught.value.advice)
    monkeypatch.setenv(ENCODER_VARIABLE, str(folder))
    assert ids_of(again.transform(TEXTS)) == IDS


@pytest.mark.parametrize("facts", [{"folder": ""}, {"fingerprint": "abc"}, {"max_tokens": 0}, {"max_tokens": 2**40}])
def test_forged_facts_are_refused(features: TokenFeatures, facts: dict[str, Any]) -> None:
    state = features.to_state()
    with pytest.raises(ModelFormatError):
        put_together(replace(state, facts={**state.facts, **facts}))
