from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail.errors import InvalidInput
from longtail.neural import SparseRows, TokenRows
from longtail.neural.encoders import BagOfWords, Dense, ImageCNN, TextCNN, TokenIds


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def test_bag_of_words_is_a_linear_layer_over_the_dense_rows(rng):
    X = sparse.random_array((12, 9), density=0.3, format="csr", rng=rng, dtype=np.float32)
    X.data[:3] *= -1
    encoder = BagOfWords(9, 5)
    features = encoder(SparseRows(X).batch(np.arange(12)))
    expected = torch.relu(torch.from_numpy(X.toarray()) @ encoder.table + encoder.bias)
    torch.testing.assert_close(features, expected)


def test_bag_of_words_has_the_same_gradient_sparse_and_dense(rng):
    X = sparse.random_array((12, 9), density=0.2, format="csr", rng=rng, dtype=np.float32)
    gradients = []
    for sparse_gradients in (False, True):
        torch.manual_seed(3)
        encoder = BagOfWords(9, 5, layers=2, normalise=True, sparse_gradients=sparse_gradients)
        encoder(SparseRows(X).batch(np.arange(12))).square().sum().backward()
        assert encoder.table.grad.is_sparse == sparse_gradients
        assert [id(table) for table in encoder.sparse_parameters()] == [id(encoder.table)] * sparse_gradients
        gradients.append(encoder.table.grad.to_dense())
    torch.testing.assert_close(*gradients)


def test_an_empty_row_gets_the_features_of_the_bias():
    encoder = BagOfWords(3, 4)
    torch.nn.init.constant_(encoder.bias, 0.5)
    assert encoder(SparseRows([[0.0, 0.0, 0.0]]).batch(np.array([0]))).tolist() == [[0.5] * 4]


def test_input_dropout_leaves_out_entries_in_training_only():
    encoder = BagOfWords(50, 4, input_dropout=0.5)
    batch = SparseRows(np.ones((1, 50))).batch(np.array([0]))
    assert not torch.equal(encoder(batch), encoder(batch))
    encoder.eval()
    assert torch.equal(encoder(batch), encoder(batch))


@given(st.lists(st.lists(st.integers(1, 9), max_size=6), min_size=1, max_size=5), st.integers(0, 4))
def test_text_cnn_does_not_see_padding(texts, more):
    torch.manual_seed(0)
    encoder = TextCNN(10, maps=6, width=3, embedding_width=4).eval()
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
    rows = TokenRows(np.array([token for text in texts for token in text], dtype=np.int64), offsets)
    together = encoder(rows.batch(np.arange(len(texts))))
    for row, text in enumerate(texts):
        alone = rows.batch(np.array([row]))
        padded = type(alone)(
            torch.nn.functional.pad(alone.ids, (0, more)), torch.nn.functional.pad(alone.mask, (0, more))
        )
        torch.testing.assert_close(together[row], encoder(padded)[0])
        if not text:
            assert not together[row].any()


def test_text_cnn_takes_the_largest_answer_over_the_windows():
    encoder = TextCNN(9, maps=20, width=2, embedding_width=4).eval()
    text = [3, 4, 5, 6]
    features = encoder(TokenRows(np.array(text), np.array([0, 4])).batch(np.array([0])))[0]
    vectors = torch.cat([encoder.embedding.weight[text], torch.zeros(1, 4)])
    answers = [
        torch.einsum("mew,we->m", encoder.convolution.weight, vectors[start : start + 2]) + encoder.convolution.bias
        for start in range(4)
    ]
    torch.testing.assert_close(features, torch.relu(torch.stack(answers).amax(0)))


def test_token_ids_go_by_frequency_then_by_code_point():
    tokens = TokenIds.learn(["red red sky", "sky blue", "ant"], size=5)
    assert tokens.vocabulary == ("red", "sky", "ant")
    assert len(tokens) == 5
    rows = tokens.rows(["sky and ant", "", "red"])
    assert rows.ids.tolist() == [3, 1, 4, 2]
    assert rows.offsets.tolist() == [0, 3, 3, 4]


def test_token_ids_leave_out_what_is_rare_and_what_is_too_long():
    tokens = TokenIds.learn(["red red sky"], min_count=2, longest=2)
    assert tokens.vocabulary == ("red",)
    assert tokens.rows(["red red red"]).ids.tolist() == [2, 2]


@pytest.mark.parametrize("shape", [(28, 28), (28, 84), (7, 5)])
def test_image_cnn_takes_images_of_its_size(shape):
    encoder = ImageCNN(*shape, n_features=11)
    assert encoder(torch.rand(3, *shape)).shape == (3, 11)
    assert torch.equal(encoder(torch.ones(1, *shape)), encoder(torch.ones(1, 1, *shape)))


def test_image_cnn_refuses_an_image_that_pooling_uses_up():
    with pytest.raises(InvalidInput, match="at least one pixel"):
        ImageCNN(3, 28, maps=(4, 4))


@pytest.mark.parametrize(
    ("encoder", "arguments"),
    [(BagOfWords, (0, 3)), (Dense, (3, [])), (Dense, (3, [0])), (TextCNN, (5, 0)), (BagOfWords, (3, 3, 0))],
)
def test_encoders_refuse_to_have_no_width(encoder, arguments):
    with pytest.raises(InvalidInput, match="at least one"):
        encoder(*arguments)
