"""`TrainingRows`: what an updatable model keeps of its training rows: features, labels, and digests of their ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.data import row_id
from longtail.errors import ModelFormatError
from longtail.store import State
from longtail.validation import fault_of_indices, own

ID_BYTES = 16


@dataclass(frozen=True)
class History:
    """What happened since the last training on all rows.

    Parameters
    ----------
    rows : int
        The rows of that training.
    unknown_share : float
        The share of unknown words that new texts like those would have.
    updates, added, changed, removed : int
        The number of updates, and of rows that they added, changed and removed.
    corrections : int
        The number of rows that people gave feedback on.
    words, unknown : int
        Words of new texts, and those that are no features.
    new_words : int
        Different words that would be features: the most in one update, since words themselves are not kept.
    """

    rows: int
    unknown_share: float = 0.0
    updates: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    corrections: int = 0
    words: int = 0
    unknown: int = 0
    new_words: int = 0


@dataclass(frozen=True)
class TrainingRows:
    """The rows that a model was trained on.

    Parameters
    ----------
    starts, columns, values : int64, int32 and float32 arrays
        The features of row r are ``columns[starts[r]:starts[r + 1]]``, with these values.
    label_starts, labels : int64 and int32 arrays
        The labels of row r are ``labels[label_starts[r]:label_starts[r + 1]]``.
    ids : uint8 array of shape (n_rows, 16)
        A digest of the id of each row, see `digest_of`.
    texts : uint8 array of the same shape or None
        Digests of the texts, if rows have ids of their own.
    n_features, n_labels : int
    history : History
    """

    starts: Array
    columns: Array
    values: Array
    label_starts: Array
    labels: Array
    ids: Array
    texts: Array | None
    n_features: int
    n_labels: int
    history: History

    @classmethod
    def of(cls, X: Any, Y: Any, ids: Array, texts: Array | None, history: History) -> Self:
        """The rows of checked matrices."""
        return cls(
            X.indptr.astype(np.int64, copy=False),
            X.indices.astype(np.int32, copy=False),
            X.data.astype(np.float32, copy=False),
            Y.indptr.astype(np.int64, copy=False),
            Y.indices.astype(np.int32, copy=False),
            ids,
            texts,
            X.shape[1],
            Y.shape[1],
            history,
        )

    @property
    def n_rows(self) -> int:
        return len(self.ids)

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self._arrays().values())

    def matrices(self) -> tuple[Any, Any]:
        """Features and labels as checked CSR matrices; `ModelFormatError` if a damaged file contradicts itself."""
        ones = np.ones(len(self.labels), dtype=np.float32)
        found = []
        for name, starts, columns, values, width in (
            ("features", self.starts, self.columns, self.values, self.n_features),
            ("labels", self.label_starts, self.labels, ones, self.n_labels),
        ):
            fault = fault_of_indices(starts, columns, len(values), self.n_rows, width)
            if fault is None and not np.isfinite(values).all():
                fault = "values are not finite"
            if fault is not None:
                raise ModelFormatError(f"TrainingRows: the {name} of rows are damaged: {fault}")
            # SciPy wants both index arrays to be of one type.
            small = len(values) < 2**31
            indptr, indices = (starts.astype(np.int32), columns) if small else (starts, columns.astype(np.int64))
            matrix: Any = sparse.csr_array((values, indices, indptr), shape=(self.n_rows, width))
            if not matrix.has_canonical_format:
                raise ModelFormatError(f"TrainingRows: the {name} of rows are damaged: columns are not ascending")
            found.append(own(matrix))
        return found[0], found[1]

    @property
    def text_digests(self) -> Array:
        """Digests of the texts; a row without an id of its own has that of its text."""
        return self.ids if self.texts is None else self.texts

    def _arrays(self) -> dict[str, Array]:
        arrays = {
            name: getattr(self, name) for name in ("starts", "columns", "values", "label_starts", "labels", "ids")
        }
        return arrays if self.texts is None else {**arrays, "texts": self.texts}

    def to_state(self) -> State:
        facts = {"n_features": self.n_features, "n_labels": self.n_labels, **asdict(self.history)}
        return State("TrainingRows", facts=facts, arrays=self._arrays())

    @classmethod
    def from_state(cls, state: State, n_features: int, n_labels: int) -> Self:
        """Read the sizes, not the arrays, which only an update needs; `ModelFormatError` if they differ."""
        ids = state.array("ids", np.uint8, (None, ID_BYTES))
        columns, labels = (state.array(name, np.int32, (None,)) for name in ("columns", "labels"))
        if (state.size("n_features"), state.size("n_labels")) != (n_features, n_labels):
            raise ModelFormatError("TrainingRows: the rows have other features or labels than the model")
        share = float(state.fact("unknown_share", (int, float)))
        if not 0 <= share <= 1:
            raise ModelFormatError(f"TrainingRows: the share of unknown words is {share}; expected 0 to 1")
        counts = {
            each.name: state.size(each.name, most=2**53) for each in fields(History) if each.name != "unknown_share"
        }
        return cls(
            state.array("starts", np.int64, (len(ids) + 1,)),
            columns,
            state.array("values", np.float32, columns.shape),
            state.array("label_starts", np.int64, (len(ids) + 1,)),
            labels,
            ids,
            state.array("texts", np.uint8, ids.shape) if "texts" in state.arrays else None,
            n_features,
            n_labels,
            History(unknown_share=share, **counts),
        )


def digest_of(name: str) -> bytes:
    """The digest of an id, which is the name of a row or `row_id` of its text.

    >>> len(digest_of("7"))
    16
    """
    return bytes.fromhex(row_id(name))


def digests(texts: Sequence[str], row_names: Sequence[str] | None) -> tuple[Array, Array | None]:
    """The digests of the ids of rows and, if they have names, of their texts."""
    of_texts = table_of(digest_of(row_id(text)) for text in texts)
    return (of_texts, None) if row_names is None else (table_of(map(digest_of, row_names)), of_texts)


def table_of(found: Iterable[bytes]) -> Array:
    """A digest in each row."""
    return np.frombuffer(b"".join(found), dtype=np.uint8).reshape(-1, ID_BYTES)


def places(table: Array, digests: Iterable[bytes]) -> list[int]:
    """The rows of a table with one of some digests, ascending."""
    wanted = set(digests)
    if not wanted:
        return []
    heads = np.sort(np.frombuffer(b"".join(digest[:8] for digest in wanted), dtype="<u8"))
    own_heads = np.ascontiguousarray(table[:, :8]).view("<u8")[:, 0]
    near = heads[np.minimum(np.searchsorted(heads, own_heads), len(heads) - 1)] == own_heads
    return [row for row in np.flatnonzero(near).tolist() if table[row].tobytes() in wanted]
