"""`Head`: the interface of every output layer, so that one can replace another on any network.

Its shape is that of `torch.nn.AdaptiveLogSoftmaxWithLoss`: a module with the loss inside, called with features and
targets, and with `log_prob` and `predict` beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

import torch
from torch import Tensor, nn

from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.neural.heads.decisions import Decisions, no_heads
from longtail.neural.targets import IGNORE_INDEX, LabelRows, as_label_rows

Task = Literal["multi-label", "single-label"]
TASKS: tuple[Task, ...] = ("multi-label", "single-label")

# Maximum number of values that prediction holds at a time.
SCORES_AT_ONCE = 2**24


class HeadOutput(NamedTuple):
    """What a head returns for features and targets.

    Parameters
    ----------
    loss : float tensor without dimensions
        The mean loss of the rows.
    n_rows : int
        Number of rows that the mean is over.
    """

    loss: Tensor
    n_rows: int


class Head(nn.Module, ABC):
    """An output layer from features to labels, with the loss inside.

    ``head(features, targets)`` returns a `HeadOutput`, ``head(features)`` the logits. Features have any leading shape:
    (n_features,), (n_rows, n_features), (n_texts, n_tokens, n_features); what a head returns for each row of features
    has the same leading shape. A subclass defines the methods with an underscore, and `logits`, for features of shape
    (n_rows, n_features) that are checked already.

    Parameters
    ----------
    n_features : int
        Width of the input.
    n_labels : int
    task : {"multi-label", "single-label"}
        Whether a row has any number of independent labels, or exactly one that competes with all others.
    label_weights : float tensor of n_labels or None
        Weight of each label's positives in the loss; None means 1.
    """

    takes_amounts = False  # whether the loss supports targets between 0 and 1
    ignore_index = IGNORE_INDEX  # the class index of rows that do not count
    survivors = 0  # groups of labels that prediction keeps after each stage but the last; 0: it drops none
    label_weights: Tensor | None

    def __init__(
        self, n_features: int, n_labels: int, task: Task = "multi-label", label_weights: Tensor | None = None
    ) -> None:
        super().__init__()
        if n_features < 1 or n_labels < 1:
            raise InvalidInput(f"a head of {n_features} features and {n_labels} labels; expected at least one of each")
        if task not in TASKS:
            raise InvalidInput(f"task is {task!r}; expected one of {', '.join(map(repr, TASKS))}")
        if label_weights is not None and label_weights.shape != (n_labels,):
            raise InvalidInput(f"label_weights has shape {tuple(label_weights.shape)}; expected ({n_labels},)")
        self.n_features = n_features
        self.n_labels = n_labels
        self.task: Task = task
        self._on_meta = torch.get_default_device().type == "meta"
        self._given: dict[str, Tensor] = {}
        self.register_load_state_dict_post_hook(_after_loading)  # type: ignore[no-untyped-call]
        # Only training needs them, so they are not saved.
        self._keep("label_weights", label_weights, persistent=False)

    def forward(self, features: Tensor, targets: Any = None) -> Any:
        """The loss of a batch, or without targets its logits.

        Parameters
        ----------
        features : float tensor of shape (..., n_features)
        targets : None or one of
            - an int tensor of shape (...): class indices; rows with `ignore_index`, -100, do not count;
            - a tensor of shape (..., n_labels), dense or sparse, with ones for the labels of a row;
            - lists of label ids, one list for each row;
            - a SciPy matrix of shape (n_rows, n_labels), or `LabelRows`.

        Returns
        -------
        HeadOutput
            With targets.
        tensor of shape (..., n_labels) or tuple of tensors
            Without targets: the logits of all labels, or in heads of several stages the logits of each stage.
        """
        if targets is not None:
            rows, wanted = self._checked(features, targets)
            return HeadOutput(self._loss(rows, wanted), len(rows))
        found, shape = self.logits(self._as_rows(features)), features.shape[:-1]
        if isinstance(found, Tensor):
            return _shaped(found, shape)
        return tuple(_shaped(stage, shape) for stage in found)

    def loss(self, features: Tensor, targets: Any) -> Tensor:
        """The mean loss of a batch; arguments as for `forward`."""
        return self._loss(*self._checked(features, targets))

    def log_prob(self, features: Tensor) -> Tensor:
        """The logarithms of the probabilities of all labels, of shape (..., n_labels)."""
        return _shaped(self._log_prob(self._as_rows(features)), features.shape[:-1])

    @torch.no_grad()
    def probabilities(self, features: Tensor) -> Tensor:
        """The probabilities of all labels, of shape (..., n_labels), without gradients."""
        return _shaped(self._probabilities(self._as_rows(features)), features.shape[:-1])

    @torch.no_grad()
    def predict(self, features: Tensor) -> Tensor:
        """The class of each row (single-label), or which labels it has (multi-label).

        `predict_topk` needs less memory if there are very many labels.

        Returns
        -------
        int64 tensor of shape (...)
            Single-label: the most probable class.
        bool tensor of shape (..., n_labels)
            Multi-label: whether the probability is at least one half.
        """
        rows, shape = self._as_rows(features), features.shape[:-1]
        if self.task == "single-label":
            return _shaped(self._predict_topk(rows, 1)[0][:, 0], shape)
        at_once = max(self.n_labels, self.batch_values(1))
        return _shaped(torch.cat([self._predict_sets(block) for block in row_blocks(rows, at_once)]), shape)

    @torch.no_grad()
    def predict_topk(self, features: Tensor, k: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The k best labels of each row.

        Parameters
        ----------
        features : float tensor of shape (..., n_features)
        k : int
        allowed : bool tensor of n_labels or None
            Labels that may be predicted; the others do not compete.

        Returns
        -------
        labels : int64 tensor of shape (..., k)
            Best first, ties to the lowest label; -1 where there are fewer than k.
        scores : float32 tensor of shape (..., k)
            Probabilities; -inf where there is no label.
        """
        rows = self._as_rows(features)
        if k < 1:
            raise InvalidInput(f"k is {k}; expected at least 1")
        if allowed is not None and not isinstance(allowed, Tensor):
            raise InvalidInput(
                f"allowed is a {type(allowed).__name__}; expected a bool tensor of {self.n_labels} labels"
            )
        if allowed is not None and (allowed.shape != (self.n_labels,) or allowed.dtype != torch.bool):
            raise InvalidInput(
                f"allowed is of type {allowed.dtype} and shape {tuple(allowed.shape)}; "
                f"expected torch.bool and ({self.n_labels},)"
            )
        labels, scores = self._predict_topk(rows, k, None if allowed is None else allowed.to(rows.device))
        return _shaped(labels, features.shape[:-1]), _shaped(scores, features.shape[:-1])

    @abstractmethod
    def logits(self, features: Tensor) -> Tensor | tuple[Tensor, ...]:
        """The logits of all labels, or of each stage."""

    @abstractmethod
    def _loss(self, features: Tensor, targets: LabelRows) -> Tensor:
        """The mean loss of a batch of rows."""

    @abstractmethod
    def _log_prob(self, features: Tensor) -> Tensor:
        """As `log_prob`."""

    @abstractmethod
    def _predict_topk(self, features: Tensor, k: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """As `predict_topk`."""

    def _probabilities(self, features: Tensor) -> Tensor:
        """As `probabilities`."""
        return self._log_prob(features).exp()

    def _predict_sets(self, features: Tensor) -> Tensor:
        """As `predict` of a multi-label head."""
        return self._probabilities(features) >= 0.5

    @abstractmethod
    def multiply_adds(self, n_rows: int, training: bool = True) -> int:
        """Multiply-add operations for a batch: forward and backward, or for prediction."""

    def batch_values(self, n_rows: int) -> int:
        """Approximate number of values that a training batch creates in the head: a score for each label."""
        return n_rows * self.n_labels

    def output_layer(self) -> tuple[Array, Array]:
        """Weights (n_labels x width) and offsets of the last linear layer, for `longtail.audit`.

        Raises
        ------
        InvalidInput
            If a label's score does not come from one linear layer.
        """
        raise InvalidInput(
            f"{type(self).__name__} is not one linear layer over labels, so there is none to audit; OneHot, Sampling, "
            "Bottleneck and DFT have one"
        )

    @property
    def lengths(self) -> tuple[int, ...]:
        """Number of values of each digit or chunk of a label's code; empty for a head of one layer."""
        return ()

    @torch.no_grad()
    def decisions(self, features: Tensor, targets: Any) -> Decisions:
        """What each digit or chunk prefers, and what is right; arguments as for `forward`.

        Raises
        ------
        InvalidInput
            With the code ``no_heads``, if the head is one layer.
        """
        return self._decisions(*self._checked(features, targets))

    @torch.no_grad()
    def count_survivors(self, features: Tensor, targets: Any, sizes: Sequence[int]) -> Tensor:
        """How many pairs of a row and one of its labels survive each stage but the last.

        A label survives a stage if its group is among the ``size`` groups that are kept there and before.

        Parameters
        ----------
        features, targets
            As for `forward`.
        sizes : sequence of int
            Numbers of groups to keep.

        Returns
        -------
        int64 tensor of shape (n_stages - 1, len(sizes)), on the CPU
            Without rows for heads that drop no labels.
        """
        return self._count_survivors(*self._checked(features, targets), sizes)

    def labels_of(self, head: int, value: int) -> Tensor:
        """The labels that a value of a digit or chunk stands for; the arguments are as in `Decisions`."""
        raise no_heads(type(self).__name__)

    def _decisions(self, features: Tensor, targets: LabelRows) -> Decisions:
        """As `decisions`."""
        raise no_heads(type(self).__name__)

    def _count_survivors(self, features: Tensor, targets: LabelRows, sizes: Sequence[int]) -> Tensor:
        """As `count_survivors`."""
        return torch.zeros(0, len(sizes), dtype=torch.int64)

    def start_from(self, label_counts: Tensor, n_rows: int) -> None:
        """Set the offsets, in heads that have them, so that each label starts at its share of the rows.

        Without it sigmoids start at one half, and the first epochs only learn that most labels are rare.

        Parameters
        ----------
        label_counts : tensor of n_labels
            Number of rows with each label.
        n_rows : int
        """

    def reset_parameters(self) -> None:
        """Draw the initial weights again, as the constructor does, for a head that `to_empty` has moved to a device."""
        for layer in self.modules():
            reset = None if layer is self else getattr(layer, "reset_parameters", None)
            if callable(reset):
                reset()
        self._start()

    def _start(self) -> None:
        """Set the initial weights that differ from those of torch's layers."""

    def _keep(self, name: str, values: Tensor | None, persistent: bool = True) -> None:
        """Register a copy of given values as a buffer; a head on the meta device keeps them until it leaves it."""
        if values is None:
            self.register_buffer(name, None, persistent)
            return
        values = values.clone()
        if self._on_meta and not values.is_meta:
            self._given[name] = values
        self.register_buffer(name, values.to(torch.get_default_device()), persistent)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        found: Self = super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if self._on_meta and self._is_filled():
            self._leave_meta()
        return found

    def _is_filled(self) -> bool:
        return not any(tensor.is_meta for tensor in (*self.parameters(), *self.buffers()))

    def _leave_meta(self) -> None:
        """Fill the buffers that `to_empty` has left without values, or `load_state_dict` on the meta device."""
        device = next((parameter.device for parameter in self.parameters()), torch.device("cpu"))
        for name, values in self._given.items():
            buffer = getattr(self, name)
            setattr(self, name, values.to(device if buffer.is_meta else buffer.device, buffer.dtype))
        self._given, self._on_meta = {}, False

    def n_parameters(self) -> int:
        """Number of trained values."""
        return sum(parameter.numel() for parameter in self.parameters())

    def sparse_parameters(self) -> list[nn.Parameter]:
        """Parameters with sparse gradients, which the optimiser must support; none for most heads."""
        return []

    def weights_of(self, labels: Tensor) -> Tensor | None:
        """The `label_weights` of these labels; None if all labels count the same."""
        return None if self.label_weights is None else self.label_weights[labels]

    def _as_rows(self, features: Tensor) -> Tensor:
        """Features of any leading shape as rows, or `InvalidInput`."""
        if self._on_meta and self._is_filled():
            # A loader has set the tensors one by one, as transformers does. It cannot know those that are not saved.
            self._given = {name: self._given[name] for name in self._given if name in self._non_persistent_buffers_set}
            self._leave_meta()
        if features.ndim < 1 or features.shape[-1] != self.n_features:
            raise InvalidInput(f"features have shape {tuple(features.shape)}; expected (..., {self.n_features})")
        return features if features.ndim == 2 else features.reshape(-1, self.n_features)

    def _checked(self, features: Tensor, targets: Any) -> tuple[Tensor, LabelRows]:
        """The rows that count and their targets, or `InvalidInput`."""
        rows = self._as_rows(features)
        single, shape = self.task == "single-label", tuple(features.shape[:-1])
        wanted, kept = as_label_rows(targets, shape, self.n_labels, self.ignore_index, single)
        if wanted.amounts is not None and not self.takes_amounts:
            wanted.refuse_amounts()
        return rows if kept is None else rows[kept.to(rows.device)], wanted.to(rows.device)


def _after_loading(head: Head, keys: Any) -> None:
    """With ``load_state_dict(assign=True)``, a head leaves the meta device without `to_empty`."""
    if head._on_meta and not any(parameter.is_meta for parameter in head.parameters()):
        head._given = {name: values for name, values in head._given.items() if getattr(head, name).is_meta}
        head._leave_meta()


def _shaped(found: Tensor, shape: torch.Size) -> Tensor:
    """Results of rows in the leading shape of their features."""
    return found if len(shape) == 1 else found.reshape(shape + found.shape[1:])


def row_blocks(features: Tensor, values_per_row: int) -> tuple[Tensor, ...]:
    """Cut rows into blocks for which prediction holds at most `SCORES_AT_ONCE` values."""
    return torch.split(features, max(1, SCORES_AT_ONCE // values_per_row))


def search_blocks(
    search: Callable[[Tensor], tuple[Tensor, Tensor]], features: Tensor, values_per_row: int
) -> tuple[Tensor, Tensor]:
    """Call `search`, which returns labels and scores, on each of the `row_blocks`, and join the results."""
    labels, scores = zip(*map(search, row_blocks(features, values_per_row)), strict=True)
    return torch.cat(labels), torch.cat(scores)


def is_order(order: Tensor, n_labels: int) -> bool:
    """Whether `order` is a permutation of all labels.

    Examples
    --------
    >>> is_order(torch.tensor([2, 0, 1]), 3), is_order(torch.tensor([2, 0, 3]), 3)
    (True, False)
    """
    places = torch.arange(n_labels, device=order.device)
    return order.shape == (n_labels,) and torch.equal(order.sort().values, places)


def check_loaded_order(state_dict: Mapping[str, Tensor], name: str, n_labels: int) -> None:
    """Raise `ModelFormatError` if `state_dict` has a tensor `name` that is not a permutation of all labels."""
    if name in state_dict and not is_order(state_dict[name], n_labels):
        raise ModelFormatError(f"the tensor {name!r} is not a permutation of 0 to {n_labels - 1}")


def starting_offsets(shares: Tensor, task: Task) -> Tensor:
    """The logits whose sigmoid, or softmax over all labels, is `shares`.

    Examples
    --------
    >>> starting_offsets(torch.tensor([0.5]), "multi-label")
    tensor([0.])
    """
    return torch.logit(shares) if task == "multi-label" else torch.log(shares)


def label_shares(label_counts: Tensor, n_rows: int) -> Tensor:
    """Each label's share of the rows, smoothed so that it is never 0 or 1."""
    return (label_counts.to(torch.float32) + 0.5) / (n_rows + 1)


def best_labels(scores: Tensor, k: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The k best columns of a dense score matrix, ties to the lowest; -1 and -inf if fewer are allowed.

    Examples
    --------
    >>> labels, scores = best_labels(torch.tensor([[0.5, 0.9, 0.9]]), k=2)
    >>> labels.tolist()
    [[1, 2]]
    >>> best_labels(torch.tensor([[0.5, 0.9, 0.9]]), k=2, allowed=torch.tensor([True, False, False]))[0].tolist()
    [[0, -1]]
    """
    found = torch.full((scores.shape[0], k), -1, device=scores.device)
    best = torch.full((scores.shape[0], k), -torch.inf, device=scores.device, dtype=torch.float32)
    names = None if allowed is None else torch.nonzero(allowed)[:, 0]
    if names is not None:
        scores = scores[:, names]
    places = min(k, scores.shape[1])
    if places == 0 or scores.shape[0] == 0:
        return found, best
    values, columns = torch.topk(scores, places, dim=1)
    # topk breaks ties in any order. Ties within the k are sorted here; ties across its end need a full sort.
    last = values[:, -1:]
    torn = ((scores == last).sum(1) > (values == last).sum(1)) & (last[:, 0] > -torch.inf)
    order = torch.argsort(columns, dim=1)
    columns, values = columns.gather(1, order), values.gather(1, order)
    order = torch.argsort(values, dim=1, descending=True, stable=True)
    columns, values = columns.gather(1, order), values.gather(1, order)
    if bool(torn.any()):
        exact = torch.sort(scores[torn], dim=1, descending=True, stable=True)
        values[torn], columns[torn] = exact.values[:, :places], exact.indices[:, :places]
    if names is not None:
        columns = names[columns]
    found[:, :places] = torch.where(values > -torch.inf, columns, -1)
    best[:, :places] = values.float()
    return found, best
