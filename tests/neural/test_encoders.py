"""Encoders and the batches they take."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail.errors import InvalidInput
from longtail.neural.batches import BagRows, DenseRows, SparseRows, TokenRows, as_rows, blocks, epoch_order
from longtail.neural.encoders import BagOfWords, Dense, ImageCNN, TextCNN
from longtail.neural.token_ids import TokenIds


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def test_a_sparse_batch_holds_the_rows_in_the_order_asked(rng):
    X = sparse.random_array((20, 7), density=0.3, format="csr", rng=rng, dtype=np.float32)
    rows = rng.permutation(20)[:6]
    batch = SparseRows(X).batch(rows)
    dense = np.zeros((6, 7), dtype=np.float32)
    owner = np.repeat(np.arange(6), batch.offsets.diff().numpy())
    dense[owner, batch.ids.numpy()] = batch.values.numpy()
    assert (dense == X.toarray()[rows]).all()


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


def test_dense_divides_bytes_and_leaves_other_numbers():
    rows = np.array([[0, 255], [51, 102]])
    assert DenseRows(rows.astype(np.uint8)).batch(np.array([0])).tolist() == [[0.0, 1.0]]
    assert DenseRows(rows).batch(np.array([0])).tolist() == [[0.0, 255.0]]


@pytest.mark.parametrize("bad", [np.array([1.0, 2.0]), np.array([["a"]]), np.array([[np.nan]])])
def test_dense_rows_refuse_what_is_not_rows_of_finite_numbers(bad):
    with pytest.raises(InvalidInput, match=r"expected numbers|NaN"):
        DenseRows(bad)


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


def test_bags_hold_their_instances_and_pad_them():
    rows = BagRows(DenseRows(np.arange(10.0).reshape(5, 2)), sparse.csr_array([[1, 0, 0, 1, 1], [0, 1, 0, 0, 0]]))
    bags = rows.batch(np.array([1, 0]))
    features, mask = bags.padded(bags.instances)
    assert mask.tolist() == [[True, False, False], [True, True, True]]
    assert features[0].tolist() == [[2, 3], [0, 0], [0, 0]]
    assert features[1].tolist() == [[0, 1], [6, 7], [8, 9]]


def test_the_order_of_an_epoch_follows_from_seed_and_epoch():
    first = epoch_order(50, seed=1, epoch=2)
    assert sorted(first) == list(range(50))
    assert (first == epoch_order(50, seed=1, epoch=2)).all()
    assert not (first == epoch_order(50, seed=1, epoch=3)).all()
    assert not (first == epoch_order(50, seed=2, epoch=2)).all()


def test_blocks_hold_every_row_once():
    assert [block.tolist() for block in blocks(np.array([4, 2, 9]), 2)] == [[4, 2], [9]]


def test_matrices_become_rows_of_their_kind():
    assert isinstance(as_rows(sparse.csr_array((2, 3))), SparseRows)
    assert isinstance(as_rows(np.zeros((2, 3))), DenseRows)
    rows = TokenRows(np.array([], dtype=np.int64), np.array([0, 0]))
    assert as_rows(rows) is rows


@pytest.mark.parametrize(
    ("encoder", "arguments"),
    [(BagOfWords, (0, 3)), (Dense, (3, [])), (Dense, (3, [0])), (TextCNN, (5, 0)), (BagOfWords, (3, 3, 0))],
)
def test_encoders_refuse_to_have_no_width(encoder, arguments):
    with pytest.raises(InvalidInput, match="at least one"):
        encoder(*arguments)
