"""A small problem that a network can learn, and a network for it."""

from __future__ import annotations

import numpy as np
import torch

from longtail.neural.encoders import BagOfWords, Dense
from longtail.neural.heads import OneHot
from longtail.neural.network import Network


def problem(n_rows=120, n_inputs=12, n_labels=6, seed=0):
    """Rows whose labels are the signs of a few sums of their entries."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_inputs)).astype(np.float32)
    Y = (X @ rng.normal(size=(n_inputs, n_labels)) > 1.0).astype(np.float32)
    return X, Y


def dense_network(seed=0, dropout=0.1, width=16):
    torch.manual_seed(seed)
    return Network(Dense(12, [width], dropout), OneHot(width, 6))


def sparse_network(seed=0):
    """The same with sparse gradients of the table."""
    torch.manual_seed(seed)
    return Network(BagOfWords(12, 16, dropout=0.1, normalise=True, sparse_gradients=True), OneHot(16, 6))


def tensors_equal(one, other):
    pairs = zip(one.state_dict().items(), other.state_dict().items(), strict=True)
    return all(name == other_name and torch.equal(a, b) for (name, a), (other_name, b) in pairs)
