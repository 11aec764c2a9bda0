"""`MultiHeadClassifier`: an estimator that trains a network with any of the heads."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import torch
from scipy import sparse

from longtail.arrays import Array
from longtail.audit import slack_needed
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator import OutputLayer, Rule
from longtail.labels import kept_labels, label_order, plan_heads
from longtail.metrics import inverse_propensity
from longtail.neural.batches import Rows, TokenRows
from longtail.neural.fine_tuning import TrainedEncoder, by_length
from longtail.neural.heads import DFT, Bottleneck, Cascade, Head, Kronecker, OneHot, Product, Sampling
from longtail.neural.model import ENCODERS, NeuralModel, encoder_for, rows_of_a_step, seeded, threads, training_plan
from longtail.neural.network import Network
from longtail.neural.training import History, train
from longtail.parameters import Choice, Constraint, Number, Sequence, Threads
from longtail.progress import stage
from longtail.store import State, saved_params
from longtail.text import EncoderPlace

_log = logging.getLogger(__name__)

HEADS = ("cascade", "one-hot", "product", "kronecker", "sampling", "bottleneck", "dft")
_CODED = ("cascade", "product", "kronecker")
# The losses of heads that have several, the default first.
_LOSSES = {"cascade": ("product", "stages"), "product": ("binary", "softmax")}
# Parameters that only some heads have, with their defaults.
_OF_HEADS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "margin": (None, ("sampling",)),
    "own_blocks": (False, ("sampling",)),
    "sparse_gradients": (False, ("cascade", "sampling")),
}
PRETRAINED = "pretrained"
_ROWS_OF_A_STEP = 128
_TEXTS_AT_ONCE = 64


class MultiHeadClassifier(NeuralModel):
    """A network over sparse or dense features, whose labels are spread over several heads.

    Parameters
    ----------
    head : {"cascade", "one-hot", "product", "kronecker", "sampling", "bottleneck", "dft"}
        The output layer, see `longtail.neural.heads`. cascade scores only a few labels of each row; product has the
        fewest weights and is the least accurate for rows with several labels.
    n_heads : int or None
        Number of heads of cascade, product and kronecker (None: 2), or of blocks of sampling (None: many short ones).
    radices : sequence of int or None
        Lengths of the heads; None chooses them by `longtail.labels.plan_heads`.
    order : {"clustered", "frequency", "random", "given"}
        Which labels share digits of their codes; for dft the order of the labels on its circle.
    encoder : {"auto", "bag-of-words", "dense", "pretrained"}
        Encoder of the rows; auto chooses by the share of non-zeros. pretrained is a text encoder whose weights are
        trained, too; its rows are those of `TokenFeatures`.
    encoder_folder : str or None
        The folder of the pretrained encoder. None uses the one that `longtail.text.find_installed_encoder` finds.
    encoder_learning_rate : float
        Learning rate of the pretrained encoder; `learning_rate` is that of the head.
    width : int
        Width of the layers of the other encoders.
    layers : int
    dropout, input_dropout : float
        Of the other encoders.
    head_width : int or None
        Width of cascade's queries (None: the features are the queries) or of the bottleneck (None: 100).
    survivors : int
        Number of groups whose members cascade scores.
    products : int
        Number of products that product and kronecker add up, the `groups` of the heads.
    loss : str or None
        "product" or "stages" for cascade, "binary" or "softmax" for product; None is the first of these.
    sampled : int
        Number of blocks of sampling: each row has its own and ``sampled - 1`` others.
    own_blocks : bool
        Of sampling with one label per row: whether each row draws its own other blocks (MHS-S). Otherwise, the rows of
        a batch share all their blocks, which is faster (FastSampling).
    margin : float or None
        Of sampling with one label per row: scores are cosines, and the label of a row must win by this angle.
    sparse_gradients : bool
        Whether cascade and sampling compute gradients only for the labels in use, which is faster for very many labels.
    active : int or None
        Size of the label sets that dft can always predict, less than half of the labels; None is the largest of a
        training row, if that is possible.
    slack : int or None
        Number of free columns of dft. None is 0 if 32-bit floats resolve sets of `active` labels, and else 16; see
        `longtail.audit.slack_needed`.
    task : {"multi-label", "single-label"}
    trim : float
        Share of the labels to leave out, the rarest first; they are never predicted.
    weighting : {None, "loss"}
        "loss" weights labels in the loss by their inverse propensity, which favours rare ones.
    n_networks : int
        Number of networks with different random starts whose probabilities are averaged.
    batch_size : int or None
        Rows per step; None is 128, or fewer so that an epoch has at least twenty steps.
    epochs, learning_rate, weight_decay, schedule, warmup, clip, patience, holdout, average, autocast
        See `longtail.neural.Settings`.
    checkpoint : str or None
        Directory from which an interrupted training run resumes, to the same result.
    random_state : int
    n_jobs : int or None
        Number of threads; None means every core. Results are identical only for the same number of threads.

    Attributes
    ----------
    networks_ : list of Network
    histories_ : list of History
        The course of each training run; not saved.
    labels_ : int64 array
        Labels that can be predicted: those with a training row that were not trimmed.
    radices_ : tuple of int
        Lengths of the heads; empty for heads without codes.
    active_, slack_ : int
        Of dft: the size of the label sets that it can always predict, and its number of free columns.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.neural import MultiHeadClassifier
    >>> X = np.eye(6, dtype=np.float32)
    >>> model = MultiHeadClassifier(radices=(3, 2), width=16, epochs=60, batch_size=2, learning_rate=0.02)
    >>> model.fit(X, X).predict_topk(X, k=1)[0].ravel().tolist()
    [0, 1, 2, 3, 4, 5]
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "head": Choice(HEADS),
        "n_heads": Number(low=1, high=2**31, whole=True, optional=True),
        "radices": Sequence(Number(low=1, high=2**31, whole=True), optional=True),
        "order": Choice(("clustered", "frequency", "random", "given")),
        "encoder": Choice(("auto", *ENCODERS, PRETRAINED)),
        "encoder_learning_rate": Number(above=0),
        "width": Number(low=1, high=2**20, whole=True),
        "layers": Number(low=1, high=100, whole=True),
        "dropout": Number(low=0, high=0.95),
        "input_dropout": Number(low=0, high=0.95),
        "head_width": Number(low=1, high=2**20, whole=True, optional=True),
        "survivors": Number(low=1, high=2**31, whole=True),
        "products": Number(low=1, high=1000, whole=True),
        "loss": Choice((None, *(loss for losses in _LOSSES.values() for loss in losses))),
        "sampled": Number(low=1, high=2**31, whole=True),
        "own_blocks": Choice((True, False)),
        "margin": Number(low=0, high=3.14, optional=True),
        "sparse_gradients": Choice((True, False)),
        "active": Number(low=1, high=2**31, whole=True, optional=True),
        "slack": Number(low=0, high=2**20, whole=True, optional=True),
        "task": Choice(("multi-label", "single-label")),
        "trim": Number(low=0, high=0.99),
        "weighting": Choice((None, "loss")),
        "n_networks": Number(low=1, high=100, whole=True),
        "batch_size": Number(low=1, high=2**31, whole=True, optional=True),
        "random_state": Number(low=0, high=2**31, whole=True),
        "n_jobs": Threads(),
    }

    _encoders = (*ENCODERS, PRETRAINED)

    histories_: list[History]
    pretrained_: TrainedEncoder | None = None
    radices_: tuple[int, ...]
    active_: int
    slack_: int

    def __init__(
        self,
        head: str = "cascade",
        n_heads: int | None = None,
        radices: Any = None,
        order: str = "clustered",
        encoder: str = "auto",
        encoder_folder: str | None = None,
        encoder_learning_rate: float = 3e-5,
        width: int = 512,
        layers: int = 1,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        head_width: int | None = None,
        survivors: int = 10,
        products: int = 1,
        loss: str | None = None,
        sampled: int = 1,
        own_blocks: bool = False,
        margin: float | None = None,
        sparse_gradients: bool = False,
        active: int | None = None,
        slack: int | None = None,
        task: str = "multi-label",
        trim: float = 0.0,
        weighting: str | None = None,
        n_networks: int = 1,
        epochs: int = 20,
        batch_size: int | None = None,
        learning_rate: float = 5e-3,
        weight_decay: float = 0.01,
        schedule: str = "cosine",
        warmup: float = 0.05,
        clip: float | None = None,
        patience: int | None = None,
        holdout: float = 0.0,
        average: float = 0.0,
        autocast: str | None = None,
        checkpoint: str | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.head = head
        self.n_heads = n_heads
        self.radices = radices
        self.order = order
        self.encoder = encoder
        self.encoder_folder = encoder_folder
        self.encoder_learning_rate = encoder_learning_rate
        self.width = width
        self.layers = layers
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.head_width = head_width
        self.survivors = survivors
        self.products = products
        self.loss = loss
        self.sampled = sampled
        self.own_blocks = own_blocks
        self.margin = margin
        self.sparse_gradients = sparse_gradients
        self.active = active
        self.slack = slack
        self.task = task
        self.trim = trim
        self.weighting = weighting
        self.n_networks = n_networks
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.warmup = warmup
        self.clip = clip
        self.patience = patience
        self.holdout = holdout
        self.average = average
        self.autocast = autocast
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: Any, Y: Any, weights: Array | None) -> None:
        """Train the networks."""
        self._check_head()
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        if X.shape[1] < 1 or not counts.any():
            raise InvalidInput(f"nothing to learn from: {X.shape[1]} features, {int(counts.sum())} labels in all rows")
        self.n_features_in_, self.n_labels_ = int(X.shape[1]), int(Y.shape[1])
        self.labels_ = kept_labels(counts, self.trim)
        Y = Y[:, self.labels_]
        per_row = np.diff(Y.indptr)
        if self.task == "single-label":
            X, Y = X[per_row > 0], Y[per_row > 0]  # rows whose label was trimmed
        self.encoder_ = encoder_for(X) if self.encoder == "auto" else self.encoder
        self.pretrained_ = None
        if self.encoder_ == PRETRAINED:
            self.pretrained_ = TrainedEncoder.at(EncoderPlace.of(self.encoder_folder))
        self.radices_ = self._planned(len(self.labels_))
        self.active_ = self._largest_sets(int(per_row.max()))
        self.slack_ = self._free_columns()
        self.networks_, self.histories_ = [], []
        rows = self._rows(X)
        batch_size = self.batch_size or rows_of_a_step(X.shape[0], _ROWS_OF_A_STEP)
        label_weights = self._label_weights(counts[self.labels_], X.shape[0])
        with threads(self.n_jobs):
            for i in range(self.n_networks):
                seed = self.random_state + i
                position = label_order(self.order, Y.shape[1], X, Y, seed) if self._is_ordered() else None
                network = seeded(lambda position=position: self._network(position, label_weights), seed)
                network.head.start_from(torch.from_numpy(counts[self.labels_]), X.shape[0])
                rate = None if self.pretrained_ is None else self.encoder_learning_rate
                settings = replace(self._settings(seed), batch_size=batch_size, encoder_learning_rate=rate)
                batch = network.head.batch_values(batch_size) + 4 * batch_size * self._feature_width
                if self.pretrained_ is not None:
                    longest = int(np.diff(X.indptr).max())
                    batch += self.pretrained_.values_of_a_batch(batch_size, longest)
                training_plan(network, 4 * batch).check()
                name = f"network {i + 1} of {self.n_networks}"
                with stage(name) if self.n_networks > 1 else nullcontext():
                    where = None if self.checkpoint is None else f"{self.checkpoint}-{i}"
                    self.histories_.append(train(network, rows, Y, settings, checkpoint=where))
                self.networks_.append(network.eval())

    def _check_head(self) -> None:
        """Raise `InvalidInput` if a parameter does not go with the head or the task."""

        def refuse(name: str, needed: str) -> NoReturn:
            raise InvalidInput(
                f"{name} is {getattr(self, name)!r}, which needs {needed}", code="bad_parameter", name=name
            )

        if self.loss is not None and self.loss not in _LOSSES.get(self.head, ()):
            refuse("loss", next(f"head={head!r}" for head, losses in _LOSSES.items() if self.loss in losses))
        for name, (default, heads) in _OF_HEADS.items():
            if getattr(self, name) != default and self.head not in heads:
                refuse(name, " or ".join(f"head={head!r}" for head in heads))
        for name in ("margin", "own_blocks"):
            if getattr(self, name) != _OF_HEADS[name][0] and self.task != "single-label":
                refuse(name, "task='single-label'")

    def copy_for(self, rows: str, penalty: float = 1.0) -> Self:
        copy = super().copy_for(rows, penalty)
        if self.checkpoint is not None:
            copy.checkpoint = f"{self.checkpoint}-{rows}"
        return copy

    def _predict(self, X: Any) -> Any:
        """Labels with a probability of at least one half; of a single-label network, the best label of each row."""
        if self.task != "single-label":
            return super()._predict(X)
        labels, _ = self._topk(X, 1, None)
        ones = np.ones(len(labels), dtype=np.int8)
        return sparse.csr_array((ones, labels[:, 0], np.arange(len(labels) + 1)), shape=(len(labels), self.n_labels_))

    def _output_layer(self, rule: Rule) -> OutputLayer:
        if self.head in _CODED:
            how = (
                "multiplies the outputs of several short layers"
                if self.head != "cascade"
                else "scores only the members of a row's best groups, after the groups themselves"
            )
            raise InvalidInput(
                f"the head {self.head!r} {how}, so there is no single linear layer to audit; "
                f"the heads 'one-hot', 'sampling', 'bottleneck' and 'dft' have one (--head)"
            )
        layer = super()._output_layer(rule)
        return replace(layer, fed_by=self.width) if self.head in ("bottleneck", "dft") else layer

    @property
    def scores_are_probabilities(self) -> bool:
        return self.weighting is None

    def summary(self) -> str:
        losses = ", ".join(f"{history.losses[0]:.3g} to {history.losses[-1]:.3g}" for history in self.histories_)
        return super().summary() + (f", loss from {losses}" if losses else "")

    def _planned(self, n_labels: int) -> tuple[int, ...]:
        if self.head not in _CODED:
            return ()
        if self.radices is not None:
            return tuple(int(radix) for radix in self.radices)
        order = "descending" if self.head == "cascade" else "equal"
        return plan_heads(n_labels, min(self.n_heads or 2, max(1, n_labels.bit_length() - 1)), order=order).radices

    def _largest_sets(self, occurring: int) -> int:
        """The size of the label sets that the head can always predict."""
        most = max(1, (len(self.labels_) - 1) // 2)
        if self.head == "dft" and (self.active or 0) > most:
            raise InvalidInput(
                f"active is {self.active}; a dft head over {len(self.labels_)} labels can predict all sets of at most "
                f"{most}, so choose that or less",
                code="bad_parameter",
                name="active",
            )
        if self.head == "dft" and self.active is None and occurring > most:
            _log.warning(
                "a row has %d of %d labels; the dft head can predict all sets of at most %d",
                *(occurring, len(self.labels_), most),
            )
            return most
        return self.active or occurring

    def _free_columns(self) -> int:
        """The number of free columns of dft: as given, or enough for 32-bit floats."""
        k = min(self.active_, (len(self.labels_) - 1) // 2)
        if self.head != "dft" or self.slack is not None or k < 1:
            return self.slack or 0
        found = slack_needed(len(self.labels_), k)
        if found:
            _log.info(
                "the dft head gets %d slack columns: 32-bit floats do not resolve all sets of %d of %s labels by sines "
                "and cosines alone",
                *(found, k, f"{len(self.labels_):,}"),
            )
        return found

    def _is_ordered(self) -> bool:
        return self.order != "given" and self.head in (*_CODED, "dft")

    def _label_weights(self, counts: Array, n_rows: int) -> torch.Tensor | None:
        if self.weighting is None:
            return None
        weights = inverse_propensity(counts, n_rows)
        return torch.from_numpy((weights / np.average(weights, weights=counts)).astype(np.float32))

    def _network(self, position: Array | None = None, weights: torch.Tensor | None = None) -> Network:
        """A network; for loading, label ids take the place of the positions, which are loaded into it afterwards."""
        if position is None and self._is_ordered():
            position = np.arange(len(self.labels_))
        if self.pretrained_ is not None:
            return Network(self.pretrained_.module(self.n_features_in_), self._head(position, weights))
        encoder = self._new_encoder(self.width, self.layers, self.dropout, self.input_dropout)
        return Network(encoder, self._head(position, weights))

    @property
    def _feature_width(self) -> int:
        return self.width if self.pretrained_ is None else self.pretrained_.width

    def _rows(self, X: Any) -> Rows:
        return super()._rows(X) if self.pretrained_ is None else self.pretrained_.rows(X)

    def _search(self, rows: Rows, k: int, mask: Array | None) -> tuple[Array, Array]:
        if not isinstance(rows, TokenRows):
            return super()._search(rows, k, mask)
        order = by_length(rows)
        labels, scores = super()._search(rows.select(order), k, mask)
        places = np.argsort(order)
        return labels[places], scores[places]

    @property
    def _predicted_at_once(self) -> int:
        return _TEXTS_AT_ONCE if self.pretrained_ is not None else super()._predicted_at_once

    def _head(self, position: Array | None, weights: torch.Tensor | None) -> Head:
        sizes = (self._feature_width, len(self.labels_))
        common: dict[str, Any] = {"task": self.task, "label_weights": weights}
        if self.loss is not None:
            common["loss"] = self.loss
        if self.sparse_gradients:
            common["sparse_gradients"] = True
        if self.head == "cascade":
            return Cascade(*sizes, self.radices_, self.head_width, self.survivors, order=position, **common)
        if self.head == "product":
            return Product(*sizes, self.radices_, self.products, order=position, **common)
        if self.head == "kronecker":
            return Kronecker(*sizes, self.radices_, self.products, order=position, **common)
        if self.head == "sampling":
            n_heads = None if self.n_heads is None else _filled(len(self.labels_), self.n_heads)
            common |= {"sampled": self.sampled, "fast": not self.own_blocks, "margin": self.margin}
            return Sampling(*sizes, n_heads, **common)
        if self.head == "bottleneck":
            return Bottleneck(*sizes, self.head_width or 100, **common)
        if self.head == "dft":
            order = None if position is None else torch.from_numpy(position)
            return DFT(
                *sizes, min(self.active_, (len(self.labels_) - 1) // 2), slack=self.slack_, order=order, **common
            )
        return OneHot(*sizes, **common)

    def _table_sizes(self) -> list[int]:
        n_labels, features = len(self.labels_), self._feature_width
        sizes = [self.n_features_in_ * self.width, (self.layers - 1) * self.width**2] if not self.pretrained_ else []
        if self.head == "cascade":
            width, below = self.head_width or features, 1
            for radix in reversed(self.radices_[1:]):
                sizes.append((self.head_width or 0) * features + -(-n_labels // below) * width)
                below *= radix
            sizes.append(-(-n_labels // below) * features)
        elif self.head in ("product", "kronecker"):
            sizes.append(self.products * sum(self.radices_) * features)
        elif self.head == "bottleneck":
            sizes += [(self.head_width or 100) * features, (self.head_width or 100) * n_labels]
        elif self.head == "dft":
            columns = 2 * min(self.active_, (n_labels - 1) // 2) + 1 + self.slack_
            sizes += [self.slack_ * n_labels, columns * features]
        else:
            sizes.append(n_labels * features)
        return sizes

    def to_state(self) -> State:
        """The fitted model as a `State`."""
        return State(
            "MultiHeadClassifier",
            params=saved_params(self),
            facts={
                "n_features": self.n_features_in_,
                "n_labels": self.n_labels_,
                "radices": list(self.radices_),
                "encoder": self.encoder_,
                "active": self.active_,
                "slack": self.slack_,
                "n_networks": len(self.networks_),
                **({} if self.pretrained_ is None else self.pretrained_.place.facts()),
            },
            arrays={"labels": self.labels_},
            parts=self._network_parts(),
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild the fitted model, or raise `ModelFormatError`."""
        model = cls._restored(state)
        radices = state.fact("radices", list)
        if not all(type(radix) is int and 1 <= radix <= 2**31 for radix in radices):
            raise ModelFormatError(f"{state.kind}: the lengths of heads are {radices[:8]!r}")
        model.radices_ = tuple(radices)
        model.active_ = state.size("active", least=1)
        # Models of earlier versions have no such fact; their parameter is a number.
        model.slack_ = state.size("slack") if "slack" in state.facts else model.slack or 0
        model.histories_ = []
        model.pretrained_ = None
        if model.encoder_ == PRETRAINED:
            model.pretrained_ = TrainedEncoder.at(EncoderPlace.from_state(state))
        try:
            model._check_head()
        except InvalidInput as error:
            raise ModelFormatError(f"{state.kind}: {error}") from None
        model._load_networks(state, state.size("n_networks"))
        return model


def _filled(n_labels: int, n_heads: int) -> int:
    """The number of blocks of equal length, at most `n_heads`, none of which is empty."""
    length = -(-n_labels // min(n_heads, n_labels))
    return -(-n_labels // length)
