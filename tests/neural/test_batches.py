from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from longtail.errors import InvalidInput
from longtail.neural.batches import BagRows, DenseRows, SparseRows, TokenRows, as_rows, blocks, epoch_order


def test_a_sparse_batch_holds_the_rows_in_the_order_asked(rng):
    X = sparse.random_array((20, 7), density=0.3, format="csr", rng=rng, dtype=np.float32)
    rows = rng.permutation(20)[:6]
    batch = SparseRows(X).batch(rows)
    dense = np.zeros((6, 7), dtype=np.float32)
    owner = np.repeat(np.arange(6), batch.offsets.diff().numpy())
    dense[owner, batch.ids.numpy()] = batch.values.numpy()
    assert (dense == X.toarray()[rows]).all()


def test_dense_divides_bytes_and_leaves_other_numbers():
    rows = np.array([[0, 255], [51, 102]])
    assert DenseRows(rows.astype(np.uint8)).batch(np.array([0])).tolist() == [[0.0, 1.0]]
    assert DenseRows(rows).batch(np.array([0])).tolist() == [[0.0, 255.0]]


@pytest.mark.parametrize("bad", [np.array([1.0, 2.0]), np.array([["a"]]), np.array([[np.nan]])])
def test_dense_rows_refuse_what_is_not_rows_of_finite_numbers(bad):
    with pytest.raises(InvalidInput, match=r"expected numbers|NaN"):
        DenseRows(bad)


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
