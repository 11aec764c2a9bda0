"""`DeepMIML`: predicts labels of bags and of single instances, learned from labelled bags of unlabelled instances."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from scipy import sparse

from longtail.aggregated import Aggregation, GroupRobustLabelVectors
from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.memory import MemoryPlan
from longtail.neural.batches import BagRows, Rows
from longtail.neural.miml import BagLabels, BagScores, ConceptScores
from longtail.neural.model import NeuralModel, encoder_for, rows_of_a_step, seeded, threads, training_plan
from longtail.neural.network import Network
from longtail.neural.training import History, train
from longtail.parameters import Choice, Constraint, Number, Threads
from longtail.store import State, saved_params
from longtail.validation import as_counts, as_features, as_label_mask, check_k

_BAGS_OF_A_STEP = 64


class DeepMIML(NeuralModel):
    """A network over bags of instances, with or without co-attention to label vectors.

    Parameters
    ----------
    hidden : int
        Width of the layer over instances.
    concepts : int
        Number of scores per label of an instance; the best one counts.
    tau : float
        How strongly instances are assigned to labels by their similarity to label vectors; 0 turns this off.
    n_iter, step
        As for `longtail.aggregated.GroupRobustLabelVectors`; ``n_iter=0`` uses plain means.
    targets : {"set", "proportion"}
        Whether the target of a label is 1, or the share of the bag's instances that have it.
    loss : {"binary", "softmax"}
    rectified : bool or None
        Whether negative scores become 0, as in the paper; None: only for targets "set". Rectified scores give
        probabilities of at least one half, but most shares of a bag are smaller.
    dropout : float
    batch_size : int or None
        Bags per step; None is 64, or fewer so that an epoch has at least twenty steps.
    epochs, learning_rate, weight_decay, schedule, warmup, patience, holdout
        See `longtail.neural.Settings`.
    random_state : int
    n_jobs : int or None
        Number of threads; None means every core.

    Attributes
    ----------
    networks_ : list of one Network
    label_vectors_ : csr_array of shape (n_labels, n_features)
    history_ : History
        The course of the training run; not saved.

    Notes
    -----
    An instance that is alone in its bag is assigned equally to all labels. So the mask has no effect in `predict_topk`,
    where every row is a bag of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.neural import DeepMIML
    >>> X = np.eye(3, dtype=np.float32)[[0, 1, 0, 2, 1, 2]]
    >>> groups = np.kron(np.eye(3), np.ones((2, 1)))
    >>> model = DeepMIML(hidden=16, epochs=100, batch_size=3, learning_rate=0.02)
    >>> model = model.fit(X, groups, [[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    >>> model.predict_topk(np.eye(3), k=1)[0].ravel().tolist()
    [0, 1, 2]
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "hidden": Number(low=1, high=2**20, whole=True),
        "concepts": Number(low=1, high=1000, whole=True),
        "tau": Number(low=0, high=1e6),
        "n_iter": Number(low=0, high=2**31, whole=True),
        "step": Number(low=0, high=1e6),
        "targets": Choice(("set", "proportion")),
        "loss": Choice(("binary", "softmax")),
        "rectified": Choice((None, True, False)),
        "dropout": Number(low=0, high=0.95),
        "batch_size": Number(low=1, high=2**31, whole=True, optional=True),
        "random_state": Number(low=0, high=2**31, whole=True),
        "n_jobs": Threads(),
    }

    learns_from_groups = True

    history_: History | None
    label_vectors_: Any

    def __init__(
        self,
        hidden: int = 256,
        concepts: int = 5,
        tau: float = 1.0,
        n_iter: int = 20,
        step: float = 0.1,
        targets: str = "set",
        loss: str = "binary",
        rectified: bool | None = None,
        dropout: float = 0.0,
        epochs: int = 20,
        batch_size: int | None = None,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        schedule: str = "cosine",
        warmup: float = 0.05,
        patience: int | None = None,
        holdout: float = 0.0,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.hidden = hidden
        self.concepts = concepts
        self.tau = tau
        self.n_iter = n_iter
        self.step = step
        self.targets = targets
        self.loss = loss
        self.rectified = rectified
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.warmup = warmup
        self.patience = patience
        self.holdout = holdout
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, groups: Any, group_labels: Any) -> Self:  # type: ignore[override]
        """Train the network.

        Parameters
        ----------
        X : sparse matrix or array-like of shape (n_rows, n_features)
            The instances.
        groups : sparse or dense 0/1 matrix of shape (n_rows, n_groups)
            The bags. Bags without instances or labels are left out.
        group_labels : sparse or dense matrix of whole numbers, of shape (n_groups, n_labels)
            How often each label occurs in a bag, or 1 if it occurs.
        """
        self._check_parameters()
        X = as_features(X)
        aggregation = Aggregation.of(groups, group_labels, X.shape[0])
        labels = as_counts(group_labels, name="group_labels")
        sizes = np.diff(aggregation.group_indptr)
        used = np.flatnonzero((sizes > 0) & (np.diff(labels.indptr) > 0))
        if not len(used):
            raise InvalidInput(f"nothing to learn from: none of {len(sizes)} groups has members and labels")
        self.n_features_in_, self.n_labels_ = int(X.shape[1]), int(labels.shape[1])
        self.labels_ = np.flatnonzero(np.bincount(labels[used].indices, minlength=self.n_labels_)).astype(np.int64)
        vectors = GroupRobustLabelVectors(self.n_iter, self.step, n_jobs=self.n_jobs)
        self.label_vectors_ = vectors.fit(X, groups, group_labels).label_vectors_
        self.encoder_ = encoder_for(X)
        bags = self._bags(X, groups, used)
        network = seeded(self._network, self.random_state)
        batch_size = self.batch_size or rows_of_a_step(len(used), _BAGS_OF_A_STEP)
        members = int(sizes[used].max()) * batch_size * (self.hidden + self.concepts * len(self.labels_))
        training_plan(network, 16 * members).check()
        with threads(self.n_jobs):
            self.history_ = train(
                network,
                bags,
                self._amounts(labels[used][:, self.labels_], sizes[used]),
                replace(self._settings(self.random_state), batch_size=batch_size),
            )
        self.networks_ = [network.eval()]
        return self

    def _amounts(self, counts: Any, sizes: Array) -> Any:
        """The target of each bag and label: 1, or the share of the bag's instances."""
        amounts = sparse.csr_array(counts, dtype=np.float32)
        if self.targets == "set":
            amounts.data[:] = 1
        else:
            amounts.data = np.minimum(1, amounts.data / np.repeat(sizes, np.diff(amounts.indptr))).astype(np.float32)
        return amounts

    def _bags(self, X: Any, groups: Any, chosen: Array | None = None) -> BagRows:
        members = sparse.csr_array(as_counts(groups, name="groups").T)
        return BagRows(super()._rows(X), members if chosen is None else members[chosen])

    def _rows(self, X: Any) -> Rows:
        return BagRows(super()._rows(X), sparse.eye_array(X.shape[0], format="csr", dtype=np.float32))

    def _network(self) -> Network:
        encoder = self._new_encoder(self.hidden, 1, self.dropout)
        n_labels = len(self.labels_)
        rectified = self.targets == "set" if self.rectified is None else self.rectified
        scores = ConceptScores(self.hidden, n_labels, self.concepts, rectified)
        vectors = None
        if self.tau:
            dense = {"vectors of labels": 4 * n_labels * self.n_features_in_}
            MemoryPlan("the mask of DeepMIML", dense, "Use tau=0, or fewer features.").check()
            vectors = torch.from_numpy(self.label_vectors_[self.labels_].toarray())
        return Network(BagScores(encoder, scores, vectors, self.tau), BagLabels(n_labels, self.loss))

    def _table_sizes(self) -> list[int]:
        return [self.n_features_in_ * self.hidden, self.hidden * self.concepts * len(self.labels_)]

    def predict_bags(self, X: Any, groups: Any, k: int = 5, allow: Any = None, deny: Any = None) -> tuple[Array, Array]:
        """The k best labels of each bag and their probabilities; parameters as for `fit` and `predict_topk`."""
        X = self._check_rows(X)
        Aggregation.of(groups, sparse.csr_array((np.shape(groups)[1], 1)), X.shape[0])
        bags = self._bags(X, groups)
        return self._search(bags, check_k(k, len(bags)), as_label_mask(allow, deny, self.n_labels_))

    def soft_assignments(self, X: Any, groups: Any) -> Any:
        """How strongly each instance of a bag is assigned to each label; the mean over a bag is 1.

        Returns
        -------
        shares : list of float32 arrays (members x n_labels)
            One array per bag, members in the order of their rows; labels without training bags have 1 everywhere.
        """
        X = self._check_rows(X)
        bags = self._bags(X, groups)
        encoder: Any = self.networks_[0].encoder
        shares = []
        for i in range(len(bags)):
            with torch.inference_mode():
                found = encoder.soft_assignments(bags.batch(np.array([i]))).numpy()
            full = np.ones((len(found), self.n_labels_), dtype=np.float32)
            full[:, self.labels_] = found
            shares.append(full)
        return shares

    def to_state(self) -> State:
        """The fitted model as a `State`."""
        return State(
            "DeepMIML",
            params=saved_params(self),
            facts={"n_features": self.n_features_in_, "n_labels": self.n_labels_, "encoder": self.encoder_},
            arrays={"labels": self.labels_, "label_vectors": self.label_vectors_},
            parts=self._network_parts(),
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild the fitted model, or raise `ModelFormatError`."""
        model = cls._restored(state)
        model.label_vectors_ = state.csr("label_vectors", np.float32, (model.n_labels_, model.n_features_in_))
        if not np.isfinite(model.label_vectors_.data).all():
            raise ModelFormatError(f"{state.kind}: the label vectors must be finite")
        model.history_ = None
        model._load_networks(state, 1)
        return model
