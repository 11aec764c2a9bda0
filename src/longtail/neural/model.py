"""`NeuralModel`: the base of estimators made of networks: prediction, saving and loading."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from scipy import sparse
from sklearn.utils.validation import check_is_fitted
from torch import nn

from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator import Estimator, HeadDiagnostics, OutputLayer, Rule, check_memory
from longtail.memory import MemoryPlan
from longtail.neural.averaging import Ensemble
from longtail.neural.batches import DenseRows, Rows, SparseRows
from longtail.neural.diagnostics import HeadTally, tally_rows
from longtail.neural.encoders import BagOfWords, Dense
from longtail.neural.network import Network, predict_rows
from longtail.neural.targets import LabelRows
from longtail.neural.training import Settings
from longtail.neural.weights import load_weights, weights_state
from longtail.parallel import resolve_jobs
from longtail.store import State, rises
from longtail.validation import finite

ENCODERS = ("bag-of-words", "dense")
_DENSE = 0.25
_ROWS_AT_ONCE = 512
_FIRST_CANDIDATES = 16
_STEPS_OF_AN_EPOCH = 20
_RENAMED = {"validation": "holdout", "groups": "products"}  # as earlier versions saved it


class NeuralModel(Estimator):
    """An estimator with ``networks_`` over the labels ``labels_``.

    A subclass defines how to build a network (`_network`).
    """

    _fitted_by = "networks_"
    _bytes_per_score = 24

    _encoders: ClassVar[tuple[str, ...]] = ENCODERS

    n_jobs: int | None
    networks_: list[Network]
    labels_: Array
    encoder_: str

    @abstractmethod
    def _network(self) -> Network:
        """An untrained network with the fitted sizes."""

    @abstractmethod
    def _table_sizes(self) -> list[int]:
        """Number of values in each of the large tables of such a network."""

    @property
    def _predicted_at_once(self) -> int:
        return _ROWS_AT_ONCE

    def _rows(self, X: Any) -> Rows:
        """Checked features in the form the networks take."""
        return SparseRows(X) if self.encoder_ == "bag-of-words" else DenseRows(X.toarray())

    def _new_encoder(self, width: int, layers: int, dropout: float, input_dropout: float = 0.0) -> nn.Module:
        if self.encoder_ == "dense":
            return Dense(self.n_features_in_, [width] * layers, dropout)
        return BagOfWords(self.n_features_in_, width, layers, dropout, input_dropout)

    def _settings(self, seed: int) -> Settings:
        """`Settings` from the parameters of the same names."""
        given = self.get_params(deep=False)
        known = {field.name: given[field.name] for field in fields(Settings) if field.name in given}
        return Settings(**{name: value for name, value in known.items() if value is not None}, seed=seed)

    def _topk(self, X: Any, k: int, mask: Array | None) -> tuple[Array, Array]:
        return self._search(self._rows(X), k, mask)

    def _search(self, rows: Rows, k: int, mask: Array | None) -> tuple[Array, Array]:
        """The k best labels of rows in the form the networks take, and their probabilities."""
        places = min(k, max(1, len(self.labels_)))
        allowed = None if mask is None else mask[self.labels_]
        network: nn.Module = self.networks_[0] if len(self.networks_) == 1 else Ensemble(self.networks_)
        with threads(self.n_jobs):
            found, scores = predict_rows(network, rows, places, allowed=allowed, batch_size=self._predicted_at_once)
        finite(scores[scores != -np.inf])
        labels = np.where(found >= 0, self.labels_[np.maximum(found, 0)] if len(self.labels_) else -1, -1)
        beyond = ((0, 0), (0, k - places))
        return np.pad(labels, beyond, constant_values=-1), np.pad(scores, beyond, constant_values=-np.inf)

    def _scores(self, X: Any) -> Array:
        """The probabilities of all labels; 0 for labels that the head did not score."""
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
        """The last layer, whose inputs are the features that the network computes.

        A label set that no input reaches is predicted for no row. A set that some input reaches may still be predicted
        for no row, because the network may never produce that input.
        """
        if len(self.networks_) > 1:
            raise InvalidInput(
                f"{len(self.networks_)} networks predict by the mean of their probabilities, which is not a linear "
                "layer; audit a model of one network (n_networks=1, --networks 1)"
            )
        head = self.networks_[0].head
        weights, offsets = head.output_layer()
        check_memory({"weights in 64 bits, twice": 16 * self.n_labels_ * weights.shape[1]})
        n_unknown = self.n_labels_ - len(self.labels_)
        if rule == "topk":
            if n_unknown:
                raise InvalidInput(
                    f"{n_unknown} of {self.n_labels_} labels were never trained and have no score to rank by; "
                    + ("train without them" if head.task == "single-label" else "audit the label sets of `predict`")
                )
            return OutputLayer(_doubles(weights), _doubles(offsets), rule, "its score is among the highest")
        if head.task == "single-label":
            raise InvalidInput(
                "a single-label network compares all scores instead of deciding on each label; audit the ranking "
                "(rule='topk', --rule topk)"
            )
        # Untrained labels get zero weights and an offset that no input overcomes.
        every = np.zeros((self.n_labels_, weights.shape[1]))
        every[self.labels_] = weights
        needed = np.full(self.n_labels_, -1.0)
        needed[self.labels_] = offsets
        return OutputLayer(every, needed, rule, "its probability is at least one half", at_least=True)

    @property
    def diagnoses(self) -> bool:
        return bool(self.networks_[0].head.lengths)

    def _diagnose(self, X: Any, Y: Any, label_names: Any, most: int) -> HeadDiagnostics:
        """The first network, over the labels that it knows."""
        network = self.networks_[0]
        known = Y[:, self.labels_]
        tally = HeadTally(network.head, label_names=label_names, labels=self.labels_)
        with threads(self.n_jobs):
            tally_rows(tally, network, self._rows(X), LabelRows.of(known))
        left_out = int(Y.nnz - known.nnz)
        return replace(tally.result(most), n_labels_left_out=left_out, n_networks=len(self.networks_))

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
        """A model with the parameters and sizes of `state`, without networks yet."""
        params = {_RENAMED.get(name, name): value for name, value in state.params.items()}
        if params.get("weighting") == "none":
            params["weighting"] = None
        model = cls._from_params(replace(state, params=params))
        model.n_features_in_, model.n_labels_ = state.size("n_features"), state.size("n_labels")
        model.labels_ = _checked_labels(state, model.n_labels_)
        model.encoder_ = state.fact("encoder", str)
        if model.encoder_ not in cls._encoders:
            raise ModelFormatError(f"{state.kind}: unknown encoder {model.encoder_!r}")
        return model

    def _load_networks(self, state: State, n_networks: int) -> None:
        """Build the networks of `state`, after checking that its arrays are as large as its facts claim."""
        if not 1 <= n_networks <= len(state.parts):
            raise ModelFormatError(f"{state.kind}: {n_networks} networks in {len(state.parts)} parts")
        parts = [state.part(f"network{i}", "Weights") for i in range(n_networks)]
        stored = min(
            sum(array.size for array in part.arrays.values() if isinstance(array, np.ndarray)) for part in parts
        )
        claimed = sum(self._table_sizes())
        if claimed > stored:
            raise ModelFormatError(f"{state.kind}: tables of {claimed} values, but the arrays hold {stored}")
        try:
            self.networks_ = [seeded(self._network, 0) for _ in parts]  # leaves torch's random state alone
        except InvalidInput as error:
            raise ModelFormatError(f"{state.kind}: the parameters do not make a network: {error}") from None
        for network, part in zip(self.networks_, parts, strict=True):
            load_weights(network, part)
            network.eval()


def _doubles(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)


def rows_of_a_step(n_rows: int, most: int) -> int:
    """The size of a batch: `most`, or fewer rows, so that an epoch has at least twenty steps.

    >>> rows_of_a_step(10_000, 128), rows_of_a_step(100, 128)
    (128, 5)
    """
    return max(1, min(most, n_rows // _STEPS_OF_AN_EPOCH))


def encoder_for(X: Any) -> str:
    """The encoder for these rows, by their share of non-zeros.

    Examples
    --------
    >>> from scipy.sparse import csr_array, eye_array
    >>> encoder_for(csr_array(np.ones((2, 3)))), encoder_for(csr_array(eye_array(9)))
    ('dense', 'bag-of-words')
    """
    dense = np.count_nonzero(X.data) >= _DENSE * X.shape[0] * X.shape[1]
    return "dense" if dense else "bag-of-words"


def _checked_labels(state: State, n_labels: int) -> Array:
    """The ascending ids of the labels that the networks predict, or `ModelFormatError`."""
    labels: Array = np.array(state.array("labels", np.int64, (None,)))
    if n_labels < 1 or not len(labels) or labels[0] < 0 or labels[-1] >= n_labels or not rises(labels):
        raise ModelFormatError(f"{state.kind}: the label ids do not rise within 0 to {n_labels - 1}")
    return labels


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """Let torch use this many threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(resolve_jobs(n_jobs))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def seeded(build: Any, seed: int) -> Any:
    """The result of `build` with torch seeded by `seed`; the random state of the caller is not changed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


def training_plan(network: nn.Module, batch_bytes: int) -> MemoryPlan:
    """The memory that training needs: weights, gradients, two moments, and the values of a batch."""
    size = sum(4 * parameter.numel() for parameter in network.parameters())
    return MemoryPlan(
        "training a network",
        {"weights": size, "gradients": size, "moments of gradients": 2 * size, "a batch": batch_bytes},
        "Use fewer features (--max-features), a smaller width, a smaller batch_size, head='product' or, with an "
        "encoder that is trained, shorter texts (--max-tokens).",
    )
