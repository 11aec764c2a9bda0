"""Inputs and labels of a network in mini-batches.

Training needs only two things of its inputs, the interface `Rows`: their number, and the encoder inputs of some of
them. The order in which an epoch visits the rows depends only on the seed and the epoch, so a resumed training run sees
the same batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn import functional

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.parallel import split
from longtail.validation import as_features


@runtime_checkable
class Rows(Protocol):
    """Rows of any kind: texts, features, images, bags."""

    def __len__(self) -> int: ...

    def batch(self, rows: Array) -> Any:
        """The inputs of the rows with these ids, in the form the encoder takes."""


def epoch_order(n_rows: int, seed: int, epoch: int) -> Array:
    """The order in which an epoch visits the rows.

    Examples
    --------
    >>> bool((epoch_order(100, seed=0, epoch=3) == epoch_order(100, seed=0, epoch=3)).all())
    True
    """
    return np.random.default_rng((seed, epoch)).permutation(n_rows)


@dataclass(frozen=True)
class SparseBatch:
    """Sparse rows, concatenated: the column and value of each entry, and the start of each row (n_rows + 1 offsets)."""

    ids: Tensor
    offsets: Tensor
    values: Tensor

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def times(self, table: Tensor) -> Tensor:
        """The product of the rows with a dense matrix (n_inputs x width)."""
        return functional.embedding_bag(
            self.ids, table, self.offsets, mode="sum", per_sample_weights=self.values, include_last_offset=True
        )


class SparseRows:
    """The rows of a sparse matrix.

    Parameters
    ----------
    X : sparse or dense matrix of shape (n_rows, n_inputs)

    Examples
    --------
    >>> batch = SparseRows([[0.0, 2.0, 3.0], [4.0, 0.0, 0.0]]).batch(np.array([1, 0]))
    >>> batch.ids.tolist(), batch.offsets.tolist(), batch.values.tolist()
    ([0, 1, 2], [0, 1, 3], [4.0, 2.0, 3.0])
    """

    def __init__(self, X: Any) -> None:
        self.matrix = as_features(X)

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def batch(self, rows: Array) -> SparseBatch:
        places, offsets = entries_of(self.matrix.indptr, rows)
        return SparseBatch(
            torch.from_numpy(self.matrix.indices[places].astype(np.int64)),
            torch.from_numpy(offsets),
            torch.from_numpy(self.matrix.data[places]),
        )


class DenseRows:
    """The rows of a dense array of any shape, as float32.

    Parameters
    ----------
    X : array of shape (n_rows, ...)
        Bytes, as in images, are divided by 255 when a batch is made.

    Examples
    --------
    >>> DenseRows(np.array([[0, 255], [51, 0]], dtype=np.uint8)).batch(np.array([1])).tolist()
    [[0.20000000298023224, 0.0]]
    """

    def __init__(self, X: Any) -> None:
        self.array = np.asarray(X)
        if self.array.ndim < 2 or self.array.dtype.kind not in "biuf":
            raise InvalidInput(
                f"X has shape {self.array.shape} and dtype {self.array.dtype}; "
                f"expected numbers with a first dimension for the rows and at least one more"
            )
        if self.array.dtype.kind == "f" and not np.isfinite(self.array).all():
            raise InvalidInput("X contains NaN or infinity; every value must be finite")

    def __len__(self) -> int:
        return len(self.array)

    def batch(self, rows: Array) -> Tensor:
        chosen = torch.from_numpy(self.array[rows].astype(np.float32))
        return chosen.div_(255) if self.array.dtype == np.uint8 else chosen


@dataclass(frozen=True)
class TokenBatch:
    """Texts as token ids (n_rows x longest), padded with 0; the mask is True where there is a token."""

    ids: Tensor
    mask: Tensor

    def __len__(self) -> int:
        return len(self.ids)


class TokenRows:
    """Texts as token ids, as `TokenIds.rows` returns them.

    Parameters
    ----------
    ids : int array
        The tokens of all texts, text by text.
    offsets : int array of n_rows + 1
        Start of each text.

    Examples
    --------
    >>> batch = TokenRows(np.array([5, 6, 7]), np.array([0, 1, 3])).batch(np.array([0, 1]))
    >>> batch.ids.tolist(), batch.mask.tolist()
    ([[5, 0], [6, 7]], [[True, False], [True, True]])
    """

    def __init__(self, ids: Array, offsets: Array) -> None:
        if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(ids) or (offsets[1:] < offsets[:-1]).any():
            raise InvalidInput(f"offsets must rise from 0 to the number of tokens, {len(ids)}")
        self.ids = ids
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def select(self, rows: Array) -> TokenRows:
        """The rows with these ids."""
        places, offsets = entries_of(self.offsets, rows)
        return TokenRows(self.ids[places], offsets)

    def batch(self, rows: Array) -> TokenBatch:
        places, offsets = entries_of(self.offsets, rows)
        lengths = np.diff(offsets)
        # At least one column, even if all texts of the batch are empty.
        mask = np.arange(max(1, int(lengths.max(initial=0)))) < lengths[:, None]
        padded = np.zeros(mask.shape, dtype=np.int64)
        padded[mask] = self.ids[places]
        return TokenBatch(torch.from_numpy(padded), torch.from_numpy(mask))


@dataclass(frozen=True)
class Bags:
    """Bags of instances, concatenated: the encoder inputs of all instances, and the start of each bag."""

    instances: Any
    offsets: Tensor

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def padded(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Pad features (n_instances x width) to (n_bags x largest bag x width); also a mask of the instances.

        Examples
        --------
        >>> bags = Bags(None, torch.tensor([0, 1, 3]))
        >>> features, mask = bags.padded(torch.tensor([[1.0], [2.0], [3.0]]))
        >>> features.squeeze(2).tolist(), mask.tolist()
        ([[1.0, 0.0], [2.0, 3.0]], [[True, False], [True, True]])
        """
        lengths = self.offsets.diff()
        largest = max(1, int(lengths.max()) if len(lengths) else 1)
        mask = torch.arange(largest, device=lengths.device) < lengths[:, None]
        padded = features.new_zeros(*mask.shape, features.shape[1])
        padded[mask] = features
        return padded, mask


class BagRows:
    """Rows that are bags of other rows.

    Parameters
    ----------
    instances : Rows
    bags : sparse 0/1 matrix of shape (n_bags, n_instances)
        The instances of each bag; an instance may be in several bags.

    Examples
    --------
    >>> bags = BagRows(DenseRows([[1.0], [2.0], [3.0]]), [[1, 0, 1], [0, 1, 0]])
    >>> batch = bags.batch(np.array([1, 0]))
    >>> batch.instances.squeeze(1).tolist(), batch.offsets.tolist()
    ([2.0, 1.0, 3.0], [0, 1, 3])
    """

    def __init__(self, instances: Rows, bags: Any) -> None:
        self.bags = as_features(bags, "bags", n_features=len(instances), owner="the instances")
        self.instances = instances

    def __len__(self) -> int:
        return int(self.bags.shape[0])

    def batch(self, rows: Array) -> Bags:
        places, offsets = entries_of(self.bags.indptr, rows)
        return Bags(self.instances.batch(self.bags.indices[places]), torch.from_numpy(offsets))


def as_rows(inputs: Any) -> Rows:
    """`inputs` as `Rows`: unchanged if they are, else the rows of a sparse matrix or dense array."""
    if isinstance(inputs, Rows):
        return inputs
    return SparseRows(inputs) if sparse.issparse(inputs) else DenseRows(inputs)


def blocks(ids: Array, size: int) -> list[Array]:
    """Split row ids into batches of at most `size`."""
    return [ids[part] for part in split(len(ids), size)]


def entries_of(indptr: Array, rows: Array) -> tuple[Array, Array]:
    """The places of the entries of some rows of a CSR matrix, and where each row starts among them.

    Examples
    --------
    >>> places, offsets = entries_of(np.array([0, 1, 3]), np.array([1, 0]))
    >>> places.tolist(), offsets.tolist()
    ([1, 2, 0], [0, 2, 3])
    """
    rows = np.asarray(rows)
    starts = indptr[rows].astype(np.int64)
    lengths = indptr[rows + 1] - starts
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1]), offsets
