"""`LabelRows`: the targets of a batch, and how other forms of targets become `LabelRows`.

Every target passes through this module once. What cannot be a target raises `InvalidInput` with the code `bad_targets`,
which names the row, so that no head trains on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from itertools import chain
from numbers import Integral
from typing import Any, NoReturn, Self

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.utils.data import default_collate

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.neural.batches import entries_of

# The class index of rows that do not count, as in the losses of torch.
IGNORE_INDEX = -100
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_TARGETS = (
    "expected class indices, a multi-hot tensor, lists of label ids, a SciPy matrix or LabelRows, with one row for "
    "each row of the features"
)


@dataclass(frozen=True)
class LabelRows:
    """The labels of a batch as flat ids, whose cost does not grow with the vocabulary.

    Parameters
    ----------
    labels : int64 tensor
        Ids of the labels of all rows, row by row; each at most once in a row.
    offsets : int64 tensor of n_rows + 1
        Start of each row's labels; the last is the total number.
    n_labels : int
        Size of the vocabulary.
    amounts : float tensor or None
        Target of each of `labels`, above 0 and at most 1, for heads with `takes_amounts`; None means 1.
    checked : bool
        Whether the caller knows that all this holds, so that it is not checked.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> batch = LabelRows.of(csr_array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]))
    >>> batch.labels.tolist(), batch.rows.tolist()
    ([1, 2, 0], [0, 0, 1])
    """

    labels: Tensor
    offsets: Tensor
    n_labels: int
    amounts: Tensor | None = None
    checked: InitVar[bool] = False

    def __post_init__(self, checked: bool) -> None:
        if not checked:
            _check(self)

    @classmethod
    def of(cls, Y: Any, rows: Array | None = None, checked: bool = False) -> Self:
        """The labels of some rows of a SciPy matrix, or of all; with amounts if a value is not 1.

        Parameters
        ----------
        Y : sparse matrix of shape (n_rows, n_labels)
            Best in CSR; other formats are converted.
        rows : int array or None
            None means all.
        checked : bool
            Whether the caller knows that Y is a CSR matrix of ones, or of values between 0 and 1, without duplicates.
        """
        Y = Y if Y.format == "csr" else Y.tocsr()
        places, offsets = entries_of(Y.indptr, np.arange(Y.shape[0]) if rows is None else rows)
        labels, starts = torch.from_numpy(Y.indices[places].astype(np.int64)), torch.from_numpy(offsets)
        amounts = Y.data[places]
        if not checked and amounts.dtype.kind not in "biuf":
            _refuse(f"a matrix of dtype {amounts.dtype}; expected ones")
        given = None if (amounts == 1).all() else torch.from_numpy(amounts.astype(np.float32))
        return cls(labels, starts, int(Y.shape[1]), given, checked)

    @property
    def n_rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def rows(self) -> Tensor:
        """The row of each of `labels`."""
        numbers = torch.arange(self.n_rows, device=self.labels.device)
        return torch.repeat_interleave(numbers, self.offsets.diff(), output_size=len(self.labels))

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Self:
        """The same labels on a device."""
        device = torch.device(device)
        return self if self.labels.device == device else self._each("to", device=device, non_blocking=non_blocking)

    def pin_memory(self) -> Self:
        """The same labels in pinned memory, from which they are copied to a GPU faster."""
        return self._each("pin_memory")

    def _each(self, method: str, **options: Any) -> Self:
        labels, offsets = (getattr(part, method)(**options) for part in (self.labels, self.offsets))
        amounts = None if self.amounts is None else getattr(self.amounts, method)(**options)
        return type(self)(labels, offsets, self.n_labels, amounts, True)

    def single(self) -> Tensor:
        """The label of each row, or `InvalidInput` unless each has exactly one."""
        counts = self.offsets.diff()
        if not bool((counts == 1).all()):
            row = int((counts != 1).nonzero()[0, 0])
            _refuse_number(row, int(counts[row]))
        return self.labels

    def refuse_amounts(self) -> None:
        """Raise `InvalidInput` if a target is not 1."""
        if self.amounts is not None and bool((self.amounts != 1).any()):
            place = int((self.amounts != 1).nonzero()[0, 0])
            row = int(self.rows[place])
            _refuse(f"row {row} has the value {float(self.amounts[place]):g}; this head takes 0 and 1 only", row)

    def dense(self) -> Tensor:
        """The targets as a dense float matrix (n_rows x n_labels), for heads that compute every logit anyway."""
        dtype = torch.float32 if self.amounts is None else self.amounts.dtype
        matrix = torch.zeros(self.n_rows, self.n_labels, device=self.labels.device, dtype=dtype)
        matrix[self.rows, self.labels] = 1.0 if self.amounts is None else self.amounts
        return matrix


class Collate:
    """Puts samples of a data set, pairs of inputs and labels, into a batch: the `collate_fn` of a DataLoader.

    Parameters
    ----------
    n_labels : int

    Examples
    --------
    >>> samples = [(torch.zeros(3), [5, 2]), (torch.ones(3), [])]
    >>> [(inputs, labels)] = torch.utils.data.DataLoader(samples, batch_size=2, collate_fn=Collate(n_labels=9))
    >>> inputs.shape, labels.labels.tolist(), labels.offsets.tolist()
    (torch.Size([2, 3]), [5, 2], [0, 2, 2])
    """

    def __init__(self, n_labels: int) -> None:
        self.n_labels = n_labels

    def __call__(self, samples: Sequence[tuple[Any, Any]]) -> tuple[Any, LabelRows]:
        inputs, labels = zip(*samples, strict=True)
        return default_collate(list(inputs)), _of_lists(labels, (len(labels),), self.n_labels)[0]


def as_label_rows(
    targets: Any, shape: tuple[int, ...], n_labels: int, ignore_index: int = IGNORE_INDEX, single: bool = False
) -> tuple[LabelRows, Tensor | None]:
    """Targets in any form as `LabelRows`.

    Parameters
    ----------
    targets : LabelRows, SciPy matrix, tensor, array or lists
        A tensor or array of the shape of the rows holds class indices; with one more dimension it is multi-hot. In
        lists, a row is a list of label ids or one label id.
    shape : tuple of int
        The leading shape of the features.
    n_labels : int
    ignore_index : int
        The class index of rows that do not count.
    single : bool
        Whether each row in lists must have one label; all other forms are checked by `LabelRows.single`.

    Returns
    -------
    targets : LabelRows
        Of the rows that count.
    kept : bool tensor of n_rows or None
        Which rows count; None: all.

    Examples
    --------
    >>> found, kept = as_label_rows(torch.tensor([4, -100, 0]), (3,), n_labels=5)
    >>> found.labels.tolist(), kept.tolist()
    ([4, 0], [True, False, True])
    """
    if isinstance(targets, LabelRows):
        return _fitting(targets, shape, n_labels), None
    if sparse.issparse(targets):
        if targets.ndim != 2:
            _refuse(f"a sparse array of shape {targets.shape}; expected rows and labels")
        return _fitting(LabelRows.of(targets), shape, n_labels), None
    if isinstance(targets, np.ndarray) and targets.dtype.kind in "biuf":
        targets = torch.from_numpy(np.ascontiguousarray(targets))
    if not isinstance(targets, Tensor):
        return _of_lists(targets, shape, n_labels, ignore_index, single)
    if targets.shape == shape and targets.layout == torch.strided:
        return _of_classes(targets, n_labels, ignore_index)
    if targets.shape != (*shape, n_labels):
        _refuse(
            f"a tensor of shape {tuple(targets.shape)}; expected class indices of shape {shape} or multi-hot rows of "
            f"shape {(*shape, n_labels)}"
        )
    return _of_multi_hot(targets, n_labels), None


def _fitting(targets: LabelRows, shape: tuple[int, ...], n_labels: int) -> LabelRows:
    if (targets.n_rows, targets.n_labels) != (math.prod(shape), n_labels):
        _refuse(
            f"{targets.n_rows} rows of {targets.n_labels} labels; "
            f"expected {math.prod(shape)} rows of {n_labels}, as features and head have"
        )
    return targets


def _of_classes(classes: Tensor, n_labels: int, ignore_index: int) -> tuple[LabelRows, Tensor | None]:
    if classes.dtype not in _WHOLE:
        _refuse(f"class indices of dtype {classes.dtype}; expected whole numbers, such as torch.int64")
    classes, kept = classes.reshape(-1).long(), None
    if not classes.is_meta:
        ignored = classes == ignore_index
        _check_range(classes, n_labels, ~ignored)
        if bool(ignored.any()):
            kept = ~ignored
            classes = classes[kept]
    return LabelRows(classes, torch.arange(len(classes) + 1, device=classes.device), n_labels, None, True), kept


def _of_multi_hot(targets: Tensor, n_labels: int) -> LabelRows:
    if targets.is_complex():
        _refuse(f"a tensor of dtype {targets.dtype}; expected zeros and ones")
    if targets.layout == torch.strided:
        targets = targets.reshape(-1, n_labels)
        rows, labels = targets.nonzero(as_tuple=True)
        values = targets[rows, labels]
        n_rows = len(targets)
    else:
        targets = targets if targets.layout == torch.sparse_coo else targets.to_sparse()
        if targets.dense_dim():
            _refuse("a sparse tensor with dense dimensions; expected one that is sparse in all of them")
        n_rows = math.prod(targets.shape[:-1])
        rows = torch.zeros_like(targets._indices()[0])
        for index, size in zip(targets._indices()[:-1], targets.shape[:-1], strict=True):
            rows = rows * size + index
        rows, order = rows.sort(stable=True)
        labels, values = targets._indices()[-1][order], targets._values()[order]
    counts = torch.bincount(rows, minlength=n_rows)
    offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    amounts = None if bool((values == 1).all()) else values.to(torch.promote_types(values.dtype, torch.float32))
    return LabelRows(labels, offsets, n_labels, amounts)


def _of_lists(
    nested: Any, shape: tuple[int, ...], n_labels: int, ignore_index: int | None = None, single: bool = False
) -> tuple[LabelRows, Tensor | None]:
    rows = [nested]
    for size in shape:
        for part in rows:
            if not _is_list(part):
                _refuse(f"a {type(part).__name__} where {size} rows should be; {_TARGETS}")
            if len(part) != size:
                _refuse(f"{len(part)} rows where the features have {size}; {_TARGETS}")
        rows = list(chain.from_iterable(rows))
    labels: list[int] = []
    kept, offsets = [], [0]
    for row, given in enumerate(rows):
        kept.append(not _is_whole(given) or int(given) != ignore_index)
        if kept[-1]:
            labels += _row_of_list(row, list(given) if _is_list(given) else [given], n_labels)
            offsets.append(len(labels))
            if single and offsets[-1] - offsets[-2] != 1:
                _refuse_number(row, offsets[-1] - offsets[-2])
    found = LabelRows(torch.tensor(labels, dtype=torch.int64), torch.tensor(offsets), n_labels, None, True)
    return found, None if all(kept) else torch.tensor(kept)


def _row_of_list(row: int, given: list[Any], n_labels: int) -> list[int]:
    found = []
    for label in given:
        if not _is_whole(label):
            _refuse(f"row {row} has {label!r}; expected whole numbers, the ids of labels", row)
        if not 0 <= label < n_labels:
            _refuse(f"row {row} has the label {label}; expected 0 to {n_labels - 1}", row)
        found.append(int(label))
    if len(set(found)) < len(found):
        _refuse(f"row {row} has the label {max(found, key=found.count)} twice", row)
    return found


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray | Tensor) and value.ndim > 0)


def _is_whole(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.ndim == 0 and value.dtype in _WHOLE
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check(targets: LabelRows) -> None:
    """Raise `InvalidInput` unless the parts of `LabelRows` are what its docstring says."""
    labels, offsets, amounts = targets.labels, targets.offsets, targets.amounts
    for name, part in (("labels", labels), ("offsets", offsets)):
        if part.ndim != 1 or part.dtype != torch.int64:
            _refuse(f"{name} of dtype {part.dtype} and shape {tuple(part.shape)}; expected a flat torch.int64 tensor")
    if amounts is not None and (amounts.shape != labels.shape or not amounts.is_floating_point()):
        _refuse(f"amounts of dtype {amounts.dtype} and shape {tuple(amounts.shape)}; expected a float for each label")
    if labels.is_meta:
        return
    if not len(offsets) or int(offsets[0]) != 0 or int(offsets[-1]) != len(labels):
        _refuse(f"offsets do not lead from 0 to {len(labels)}, the number of labels; is the matrix in CSR format?")
    falling = offsets.diff() < 0
    if bool(falling.any()):
        row = int(falling.nonzero()[0, 0])
        _refuse(f"row {row} ends before it starts: offsets must not fall", row)
    rows = targets.rows
    _check_range(labels, targets.n_labels, rows=rows)
    if amounts is not None:
        wrong = ~((amounts > 0) & (amounts <= 1))
        if bool(wrong.any()):
            place = int(wrong.nonzero()[0, 0])
            found = float(amounts[place])
            advice = "; remove stored zeros, such as by eliminate_zeros()" if found == 0 else ""
            _refuse(
                f"row {int(rows[place])} has the value {found:g} for label {int(labels[place])}; expected 1{advice}",
                int(rows[place]),
            )
    _check_once(targets)


def _check_range(labels: Tensor, n_labels: int, counted: Tensor | None = None, rows: Tensor | None = None) -> None:
    wrong = (labels < 0) | (labels >= n_labels)
    if counted is not None:
        wrong &= counted
    if bool(wrong.any()):
        place = int(wrong.nonzero()[0, 0])
        row = place if rows is None else int(rows[place])
        _refuse(f"row {row} has the label {int(labels[place])}; expected 0 to {n_labels - 1}", row)


def _check_once(targets: LabelRows) -> None:
    rows = targets.rows
    keys = (rows * targets.n_labels + targets.labels).sort().values
    twice = keys[1:] == keys[:-1]
    if bool(twice.any()):
        row, label = divmod(int(keys[int(twice.nonzero()[0, 0])]), targets.n_labels)
        _refuse(f"row {row} has the label {label} twice", row)


def _refuse_number(row: int, n_labels: int) -> NoReturn:
    _refuse(
        f'row {row} has {n_labels} labels; task "single-label" needs exactly one label per row, and '
        '"multi-label" takes any number',
        row,
    )


def _refuse(problem: str, row: int | None = None) -> NoReturn:
    raise InvalidInput(f"targets: {problem}", code="bad_targets", name=None if row is None else str(row))
