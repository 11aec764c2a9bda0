"""Checkpoints resume to identical results and refuse other training runs; the store preserves weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

from longtail.errors import InvalidInput, ModelFormatError
from longtail.neural.batches import DenseRows, SparseRows
from longtail.neural.encoders import ImageCNN
from longtail.neural.training import Settings, train
from longtail.neural.weights import load_weights, weights_state
from longtail.store import State, read_model, write_model

from .learnable import dense_network, problem, sparse_network, tensors_equal

SETTINGS = Settings(epochs=4, batch_size=16, learning_rate=0.01, clip=1.0, average=0.6, holdout=0.2, warmup=0.1)


class Interrupted:
    """Rows that are interrupted in the middle of the third epoch."""

    def __init__(self, rows, batches):
        self.rows = rows
        self.left = batches

    def __len__(self):
        return len(self.rows)

    def batch(self, rows):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return self.rows.batch(rows)


def dense_rows(X):
    return DenseRows(X)


def sparse_rows(X):
    return SparseRows(sparse.csr_array(np.where(np.abs(X) > 1, X, 0)))


@pytest.mark.parametrize(("make_rows", "make_network"), [(dense_rows, dense_network), (sparse_rows, sparse_network)])
@pytest.mark.parametrize("settings", [SETTINGS, replace(SETTINGS, holdout=0.0), replace(SETTINGS, average=0.0)])
def test_an_interrupted_training_resumes_to_the_same_bits(tmp_path, make_rows, make_network, settings):
    X, Y = problem()
    rows = make_rows(X)
    through = make_network()
    expected = train(through, rows, Y, settings)

    # Six batches an epoch and one for the held-out rows, or eight without.
    batches = 2 * 7 + 3 if settings.holdout else 2 * 8 + 3
    with pytest.raises(KeyboardInterrupt):
        train(make_network(), Interrupted(rows, batches), Y, settings, checkpoint=tmp_path / "run")
    assert len(read_model(tmp_path / "run").facts["losses"]) == 2

    resumed = make_network(seed=7)  # other weights: those of the checkpoint must replace them
    torch.rand(10)
    history = train(resumed, rows, Y, settings, checkpoint=tmp_path / "run")
    assert history == expected
    assert tensors_equal(resumed, through)


def test_a_finished_training_is_not_repeated(tmp_path):
    X, Y = problem()
    first, second = dense_network(), dense_network(seed=3)
    expected = train(first, X, Y, SETTINGS, checkpoint=tmp_path / "run")
    history = train(second, Interrupted(DenseRows(X), 0), Y, SETTINGS, checkpoint=tmp_path / "run")
    assert history == expected
    assert tensors_equal(first, second)


def test_a_training_that_ran_out_of_patience_stays_stopped(tmp_path):
    X, Y = problem()
    settings = replace(SETTINGS, epochs=60, patience=1, learning_rate=0.05, average=0.0)
    expected = train(dense_network(), X, Y, settings, checkpoint=tmp_path / "run")
    assert expected.stopped_early
    assert train(dense_network(), X, Y, settings, checkpoint=tmp_path / "run") == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learning_rate": 0.02}, "learning_rate was 0.01 and is now 0.02"),
        ({"epochs": 5}, "epochs was 4 and is now 5"),
        ({"seed": 1}, "data was|seed was 0 and is now 1"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused(tmp_path, change, message):
    X, Y = problem()
    train(dense_network(), X, Y, SETTINGS, checkpoint=tmp_path / "run")
    network = dense_network(seed=2)
    with pytest.raises(InvalidInput, match=message):
        train(network, X, Y, replace(SETTINGS, **change), checkpoint=tmp_path / "run")
    assert tensors_equal(network, dense_network(seed=2))


def test_a_checkpoint_of_other_labels_is_refused(tmp_path):
    X, Y = problem()
    train(dense_network(), X, Y, SETTINGS, checkpoint=tmp_path / "run")
    with pytest.raises(InvalidInput, match="data was"):
        train(dense_network(), X, 1 - Y, SETTINGS, checkpoint=tmp_path / "run")


def test_a_checkpoint_of_another_network_is_refused_and_leaves_this_one_alone(tmp_path):
    X, Y = problem()
    train(dense_network(), X, Y, SETTINGS, checkpoint=tmp_path / "run")
    network = dense_network(width=8)
    with pytest.raises(ModelFormatError, match=r"has shape .*does not belong to this network"):
        train(network, X, Y, SETTINGS, checkpoint=tmp_path / "run")
    assert tensors_equal(network, dense_network(width=8))


def test_a_model_is_not_taken_for_a_checkpoint(tmp_path):
    X, Y = problem()
    write_model(State("Mean", arrays={"mean": np.zeros(2)}), tmp_path / "model")
    with pytest.raises(InvalidInput, match="holds a Mean, not a checkpoint"):
        train(dense_network(), X, Y, SETTINGS, checkpoint=tmp_path / "model")


def test_a_damaged_checkpoint_is_refused(tmp_path):
    X, Y = problem()
    train(dense_network(), X, Y, SETTINGS, checkpoint=tmp_path / "run")
    path = max((tmp_path / "run").glob("*.npy"), key=lambda file: file.stat().st_size)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFormatError, match="checksum"):
        train(dense_network(), X, Y, SETTINGS, checkpoint=tmp_path / "run")


def test_weights_of_any_dtype_and_dimension_come_back_from_the_store(tmp_path):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.image = ImageCNN(8, 8, maps=(3, 4), n_features=5)
            self.register_buffer("order", torch.arange(4))
            self.register_buffer("known", torch.tensor([True, False]))
            self.register_buffer("scale", torch.tensor(0.5))
            self.register_buffer("absent", None)
            self.add_module("a" * 70, nn.Linear(2, 2))

    torch.manual_seed(0)
    one, other = Odd(), Odd()
    write_model(State("Network", parts={"weights": weights_state(one)}), tmp_path / "model")
    load_weights(other, read_model(tmp_path / "model").part("weights"))
    assert tensors_equal(one, other)
    one.image.layers[0].weight.data.zero_()
    assert other.image.layers[0].weight.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("bias"), "'bias' is missing"),
        (lambda arrays: arrays.update(more=np.zeros(1)), "'more' does not belong"),
        (lambda arrays: arrays.update(bias=np.zeros(2)), "dtype float64; expected float32"),
        (lambda arrays: arrays.update(weight=np.zeros((3, 2), np.float32)), r"shape \(3, 2\); expected \(2, 3\)"),
    ],
)
def test_weights_that_are_not_those_of_the_module_are_refused(change, message):
    module = nn.Linear(3, 2)
    before = module.weight.detach().clone()
    arrays = dict(weights_state(nn.Linear(3, 2)).arrays)
    change(arrays)
    with pytest.raises(ModelFormatError, match=message):
        load_weights(module, State("Weights", arrays=arrays))
    assert torch.equal(module.weight, before)


def test_weights_that_cannot_be_stored_are_refused():
    with pytest.raises(InvalidInput, match=r"weight is of type torch\.bfloat16"):
        weights_state(nn.Linear(2, 2).to(torch.bfloat16))
