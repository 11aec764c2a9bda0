"""`NeuralModel`: what every estimator made of networks can do once they are trained."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, Self

import numpy as np
import torch
from scipy import sparse
from sklearn.utils.validation import check_is_fitted
from torch import nn

from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator import Estimator, OutputLayer, Rule
from longtail.estimator.output_layer import check_memory
from longtail.memory import MemoryPlan
from longtail.neural.averaging import Ensemble
from longtail.neural.batches import DenseRows, Rows, SparseRows
from longtail.neural.network import Network, predict_rows
from longtail.neural.training import Settings
from longtail.neural.weights import load_weights, weights_state
from longtail.parallel import resolve_jobs
from longtail.store import State, rises
from longtail.validation import finite

ENCODERS = ("bag-of-words", "dense")
_DENSE = 0.25
_FIRST_CANDIDATES = 16


class NeuralModel(Estimator):
    """Prediction, saving and loading for estimators with ``networks_`` over the labels ``labels_``.

    A class says how rows become inputs (`_rows`) and how one of its networks is made (`_network`).
    """

    _fitted_by = "networks_"
    _bytes_per_score = 24

    n_jobs: int | None
    networks_: list[Network]
    labels_: Array
    encoder_: str

    @abstractmethod
    def _rows(self, X: Any) -> Rows:
        """The rows of checked features as the networks take them."""

    @abstractmethod
    def _network(self) -> Network:
        """An untrained network of the fitted sizes."""

    @abstractmethod
    def _table_sizes(self) -> list[int]:
        """Numbers in each of the large tables of such a network."""

    def _encoded(self, X: Any) -> Rows:
        """Rows as the encoder takes them."""
        return SparseRows(X) if self.encoder_ == "bag-of-words" else DenseRows(X.toarray())

    def _settings(self, seed: int) -> Settings:
        """How to train, from the parameters that are named as those of `Settings`."""
        given = self.get_params(deep=False)
        known = {field.name: given[field.name] for field in fields(Settings) if field.name in given}
        return Settings(**{name: value for name, value in known.items() if value is not None}, seed=seed)

    def _topk(self, X: Any, k: int, mask: Array | None) -> tuple[Array, Array]:
        return self._search(self._rows(X), k, mask)

    def _search(self, rows: Rows, k: int, mask: Array | None) -> tuple[Array, Array]:
        """The k best labels of rows as the networks take them, and their probabilities."""
        places = min(k, max(1, len(self.labels_)))
        allowed = None if mask is None else mask[self.labels_]
        network: nn.Module = self.networks_[0] if len(self.networks_) == 1 else Ensemble(self.networks_)
        with threads(self.n_jobs):
            found, scores = predict_rows(network, rows, places, allowed=allowed)
        finite(scores[scores != -np.inf])
        labels = np.where(found >= 0, self.labels_[np.maximum(found, 0)] if len(self.labels_) else -1, -1)
        beyond = ((0, 0), (0, k - places))
        return np.pad(labels, beyond, constant_values=-1), np.pad(scores, beyond, constant_values=-np.inf)

    def _scores(self, X: Any) -> Array:
        """The probabilities of all labels; 0 for those that a head did not come to score."""
        labels, values = self._search(self._rows(X), max(1, self.n_labels_), None)
        scores = np.zeros((X.shape[0], self.n_labels_), dtype=np.float32)
        rows, places = np.nonzero(labels >= 0)
        scores[rows, labels[rows, places]] = values[rows, places]
        return scores

    def _predict(self, X: Any) -> Any:
        """Labels with a probability of at least one half."""
        left = np.arange(X.shape[0])
        rows, columns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        k = _FIRST_CANDIDATES
        while len(left):
            labels, scores = self._search(self._rows(X[left]), k, None)
            full = (scores[:, -1] >= 0.5) & (k < self.n_labels_)
            given = (scores >= 0.5) & ~full[:, None]
            rows.append(np.repeat(left, given.sum(axis=1)))
            columns.append(labels[given])
            left, k = left[full], 4 * k
        ones = np.ones(sum(map(len, rows)), dtype=np.int8)
        found = sparse.csr_array(
            (ones, (np.concatenate(rows), np.concatenate(columns))), shape=(X.shape[0], self.n_labels_)
        )
        found.sort_indices()
        return found

    def _output_layer(self, rule: Rule) -> OutputLayer:
        """Its inputs are what the network makes of rows.

        A set that no input gets is given to no row; one that some input gets need not be, for the network may make no
        such input of any row.
        """
        if len(self.networks_) > 1:
            raise InvalidInput(
                f"{len(self.networks_)} networks give labels by the mean of their probabilities, which is no linear "
                "layer; audit a model of one network (n_networks=1, --networks 1)"
            )
        head = self.networks_[0].head
        weights, offsets = head.output_layer()
        check_memory({"weights in 64 bits, twice": 16 * self.n_labels_ * weights.shape[1]})
        n_unknown = self.n_labels_ - len(self.labels_)
        if rule == "topk":
            if n_unknown:
                raise InvalidInput(
                    f"of {self.n_labels_} labels {n_unknown} were never trained and have no score to rank by; "
                    + ("train without them" if head.task == "single-label" else "audit what `predict` gives")
                )
            return OutputLayer(_doubles(weights), _doubles(offsets), rule, "its score is among the highest")
        if head.task == "single-label":
            raise InvalidInput(
                "a network for one label per row gives it by comparing all scores, and no label by its own; audit the "
                "ranking (rule='topk', --rule topk)"
            )
        # A label that was never trained is one without weights, which no input gets.
        every = np.zeros((self.n_labels_, weights.shape[1]))
        every[self.labels_] = weights
        needed = np.full(self.n_labels_, -1.0)
        needed[self.labels_] = offsets
        return OutputLayer(every, needed, rule, "its probability is at least one half", at_least=True)

    @property
    def scores_are_probabilities(self) -> bool:
        return True

    def summary(self) -> str:
        check_is_fitted(self)
        weights = sum(parameter.numel() for network in self.networks_ for parameter in network.parameters())
        return f"{weights:,} weights"

    def _network_parts(self) -> dict[str, State]:
        return {f"network{i}": weights_state(network) for i, network in enumerate(self.networks_)}

    @classmethod
    def _restored(cls, state: State) -> Self:
        """A model with the parameters and sizes of `state`, not yet with networks."""
        model = cls._from_params(state)
        model.n_features_in_, model.n_labels_ = state.size("n_features"), state.size("n_labels")
        model.labels_ = _checked_labels(state, model.n_labels_)
        model.encoder_ = state.fact("encoder", str)
        if model.encoder_ not in ENCODERS:
            raise ModelFormatError(f"{state.kind}: no encoder is called {model.encoder_!r}")
        return model

    def _load_networks(self, state: State, n_networks: int) -> None:
        """Make the networks of `state`, after a look at whether its arrays are as large: what it says are claims."""
        if not 1 <= n_networks <= len(state.parts):
            raise ModelFormatError(f"{state.kind}: {n_networks} networks in {len(state.parts)} parts")
        parts = [state.part(f"network{i}", "Weights") for i in range(n_networks)]
        stored = min(
            sum(array.size for array in part.arrays.values() if isinstance(array, np.ndarray)) for part in parts
        )
        claimed = sum(self._table_sizes())
        if claimed > stored:
            raise ModelFormatError(f"{state.kind}: tables of {claimed} numbers in arrays that hold {stored}")
        try:
            self.networks_ = [seeded(self._network, 0) for _ in parts]  # torch's random numbers are not disturbed
        except InvalidInput as error:
            raise ModelFormatError(f"{state.kind}: the parameters make no network: {error}") from None
        for network, part in zip(self.networks_, parts, strict=True):
            load_weights(network, part)
            network.eval()


def _doubles(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)


def encoder_for(X: Any) -> str:
    """The encoder that suits rows: by the share of non-zeros from which on dense rows are better.

    Examples
    --------
    >>> from scipy.sparse import csr_array, eye_array
    >>> encoder_for(csr_array(np.ones((2, 3)))), encoder_for(csr_array(eye_array(9)))
    ('dense', 'bag-of-words')
    """
    dense = np.count_nonzero(X.data) >= _DENSE * X.shape[0] * X.shape[1]
    return "dense" if dense else "bag-of-words"


def _checked_labels(state: State, n_labels: int) -> Array:
    """The ascending ids of the labels that networks give, or `ModelFormatError`."""
    labels: Array = np.array(state.array("labels", np.int64, (None,)))
    if n_labels < 1 or not len(labels) or labels[0] < 0 or labels[-1] >= n_labels or not rises(labels):
        raise ModelFormatError(f"{state.kind}: the ids of labels do not rise within 0 to {n_labels - 1}")
    return labels


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """Let torch use that many threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(resolve_jobs(n_jobs))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def seeded(build: Any, seed: int) -> Any:
    """What `build` makes when torch's random numbers start from `seed`; the caller's are not disturbed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


def training_plan(network: nn.Module, batch_bytes: int) -> MemoryPlan:
    """What training holds: weights, gradients and two moments, and what a batch makes on the way."""
    size = sum(4 * parameter.numel() for parameter in network.parameters())
    return MemoryPlan(
        "training a network",
        {"weights": size, "gradients": size, "moments of gradients": 2 * size, "a batch": batch_bytes},
        "Use fewer features (--max-features), a smaller width, a smaller batch_size, or head='product'.",
    )
