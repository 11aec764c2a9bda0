"""`Sentences`: a source that compares rows by dense vectors, such as the sentence vectors of a pretrained encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.errors import ModelFormatError
from longtail.estimator import Revision, column_counts
from longtail.native import kernels
from longtail.parallel import blas_threads, check_stop, map_blocks, split
from longtail.ranking.pairs import Pairs
from longtail.ranking.sources import Found, Source
from longtail.ranking.votes import NEAREST, NEIGHBOURS, RowLabels
from longtail.store import State

# The blocks are the same for any number of threads, because BLAS may round differently in blocks of another shape.
_QUERIES = 128
_TILE = 16  # smaller blocks are filled up with zeros to a multiple of it, which BLAS computes like a full block
_VECTORS = 2048
_PAIR_ROWS = 64
PENALTIES = 10.0 ** np.arange(-3, 2.1, 0.5)  # relative to the mean eigenvalue of X'X
_MOST_SINGLE = 2**26  # more components of training rows are stored in half precision


@dataclass(frozen=True)
class Sentences(Source):
    """Labels by dense vectors: of the nearest training rows, by ridge regression, and with the nearest label texts.

    Parameters
    ----------
    rows : float32 or float16 array of shape (n_rows, width)
        The vectors of the training rows, of length 1, or 0 for rows without a vector.
    row_labels : RowLabels
        Of the training rows.
    centroids : float32 array of shape (n_labels, width)
        The mean of the vectors of each label's rows, scaled to length 1; zeros without rows.
    spreads : float32 array of n_labels
        The length of the mean before it was scaled: 1 if the rows are all alike.
    weights : float32 array of shape (n_labels, width)
        Ridge regression: the product with a row's vector estimates whether the row has the label.
    texts : float32 array of shape (n_labels, width) or None
        The vectors of label texts; zeros for labels without a text.
    """

    kind = "Sentences"
    sees = "dense"

    rows: Array
    row_labels: RowLabels
    centroids: Array
    spreads: Array
    weights: Array
    texts: Array | None
    n_candidates: int = 20
    n_texts: int = 10

    @property
    def columns(self) -> tuple[str, ...]:
        names = (
            "votes of the 30 rows with the nearest vectors",
            "votes of the 10 rows with the nearest vectors",
            "similarity of the nearest vector",
            "similarity with the vectors of the label's rows",
            "similarity of the vectors of the label's rows with each other",
            "score by ridge regression on vectors",
            "best score by ridge regression on vectors",
        )
        return names if self.texts is None else (*names, "similarity with the vector of the label's text")

    @classmethod
    def fit(cls, X: Array, Y: Any, texts: Array | None) -> Sentences:
        """Keep the vectors of the training rows and of the label texts, and average those of each label.

        Parameters
        ----------
        X : float array of shape (n_rows, width)
            Rows of any length; they are scaled.
        Y : csr_array of shape (n_rows, n_labels)
        texts : float array of shape (n_labels, width) or None
        """
        rows = unit_rows(X)
        sums = np.asarray(Y.T.tocsr() @ rows, dtype=np.float32)
        means = sums / np.maximum(column_counts(Y), 1).astype(np.float32)[:, None]
        spreads = np.sqrt(np.einsum("ij,ij->i", means, means, dtype=np.float64)).astype(np.float32)
        return cls(
            rows if rows.size <= _MOST_SINGLE else rows.astype(np.float16),
            RowLabels.of(Y),
            unit_rows(means),
            spreads,
            ridge_weights(rows, sums, Y.nnz),
            None if texts is None else unit_rows(texts),
        )

    def find(self, X: Any, mask: Array | None, n_jobs: int | None) -> Found:
        Q = unit_rows(X)
        neighbours, similarities = nearest(Q, self.rows, NEIGHBOURS, None, n_jobs)
        similarities = _cosines(similarities)
        found = [
            nearest(Q, self.weights, self.n_candidates, mask, n_jobs),
            self.row_labels.most_voted(neighbours, similarities, self.n_candidates, mask, n_jobs),
        ]
        found += [] if self.texts is None else [nearest(Q, self.texts, self.n_texts, mask, n_jobs)]
        labels, scores = (np.hstack(each) for each in zip(*found, strict=True))
        return Found(labels, scores, neighbours, similarities)

    def describe(self, X: Any, found: Found, first: Found, pairs: Pairs, n_jobs: int | None) -> list[Array]:
        assert found.neighbours is not None
        assert found.similarities is not None
        Q = unit_rows(X)
        columns = [
            self.row_labels.votes(pairs, found.neighbours, found.similarities, count, n_jobs)
            for count in (NEIGHBOURS, NEAREST)
        ]
        columns += [
            pairs.of_rows(found.similarities[:, 0]),
            _pair_products(pairs, Q, self.centroids, n_jobs),
            self.spreads[pairs.labels],
            _pair_products(pairs, Q, self.weights, n_jobs),
            pairs.of_rows(_cosines(found.scores[:, 0].copy())),
        ]
        return columns if self.texts is None else [*columns, _pair_products(pairs, Q, self.texts, n_jobs)]

    @property
    def reads_label_texts(self) -> bool:
        return self.texts is not None

    def updated(self, revision: Revision, texts: list[Any], n_jobs: int | None) -> Source:
        known = None
        if self.texts is not None:
            known = np.zeros((len(revision.labels), self.texts.shape[1]), dtype=np.float32)
            stays = revision.labels >= 0
            known[stays] = self.texts[revision.labels[stays]]
            if texts:
                known[~stays] = texts[0]
        return self.fit(revision.X, revision.Y, known)

    def to_state(self) -> State:
        arrays = {"rows": self.rows, **self.row_labels.to_arrays()}
        arrays |= {"centroids": self.centroids, "spreads": self.spreads, "weights": self.weights}
        if self.texts is not None:
            arrays["texts"] = self.texts
        return State(self.kind, arrays=arrays)

    @classmethod
    def from_state(cls, state: State, n_features: int, n_labels: int) -> Sentences:
        """Build it again, or raise `ModelFormatError`.

        Vectors are not read: cosines that are not numbers, or out of range, are put into the range.
        """
        half = getattr(state.arrays.get("rows"), "dtype", None) == np.float16
        rows = state.array("rows", np.float16 if half else np.float32, (None, n_features))
        shape = (n_labels, n_features)
        spreads = state.array("spreads", np.float32, (n_labels,))
        if not np.isfinite(spreads).all():
            raise ModelFormatError(f"{state.kind}: spreads must be finite")
        return cls(
            rows,
            RowLabels.from_state(state, len(rows), n_labels),
            state.array("centroids", np.float32, shape),
            spreads,
            state.array("weights", np.float32, shape),
            state.array("texts", np.float32, shape) if "texts" in state.arrays else None,
        )


def unit_rows(X: Array) -> Array:
    """The rows scaled to length 1, as float32; rows of zeros stay.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    X = np.ascontiguousarray(X, dtype=np.float32)
    # Dividing by the largest component first keeps the squares in range.
    largest = np.abs(X).max(axis=1, initial=0, keepdims=True)
    scaled = X / np.where(largest > 0, largest, 1)
    lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    return np.asarray(scaled / np.where(lengths > 0, lengths, 1), dtype=np.float32)


@blas_threads(1)  # more threads may round differently
def ridge_weights(X: Array, sums: Array, n_ones: int) -> Array:
    """The weights W that minimise |X W' - Y|^2 + a |W|^2, with the a that generalised cross-validation prefers.

    One eigendecomposition serves every a: with X'X = Q diag(v) Q' and S = Y'X Q, the squared error on the rows is
    |Y|^2 - sum_i |S_i|^2 (v_i + 2a) / (v_i + a)^2, and tr(H) is sum_i v_i / (v_i + a).

    Parameters
    ----------
    X : float32 array of shape (n_rows, width)
    sums : float32 array of shape (n_labels, width)
        Y'X: the sum of the rows of each label.
    n_ones : int
        |Y|^2.
    """
    values, Q = np.linalg.eigh((X.T @ X).astype(np.float64))
    values = np.maximum(values, 0)
    turned = sums @ Q.astype(np.float32)
    squares = np.einsum("ij,ij->j", turned, turned, dtype=np.float64)
    alphas = max(float(values.mean()), 1e-12) * PENALTIES
    shifted = values + alphas[:, None]
    errors = n_ones - ((values + 2 * alphas[:, None]) / shifted**2) @ squares
    free = np.maximum(len(X) - (values / shifted).sum(axis=1), 1e-9)
    best = shifted[np.argmin(errors / free**2)].astype(np.float32)
    return np.asarray((turned / best) @ Q.T.astype(np.float32), dtype=np.float32)


def nearest(Q: Array, vectors: Array, k: int, mask: Array | None, n_jobs: int | None) -> tuple[Array, Array]:
    """The k vectors with the largest products above 0 with each row of `Q`, best first, and the products.

    Ties go to the lowest number; -1 and -inf where there are fewer.

    Parameters
    ----------
    Q : float32 array of shape (n_rows, width)
    vectors : float32 or float16 array of shape (n_vectors, width)
    k : int
    mask : bool array of n_vectors or None
        The vectors to search; None searches all.
    n_jobs : int or None
    """
    numbers = np.full((len(Q), k), -1, dtype=np.int64)
    products = np.full((len(Q), k), -np.inf, dtype=np.float32)

    def part(queries: slice) -> None:
        count = queries.stop - queries.start
        padded = np.zeros((-(-count // _TILE) * _TILE, Q.shape[1]), dtype=np.float32)
        padded[:count] = Q[queries]
        for some in split(len(vectors), _VECTORS):
            check_stop()
            with np.errstate(invalid="ignore", over="ignore"):  # for vectors in a damaged file
                scores = (padded @ vectors[some].astype(np.float32, copy=False).T)[:count]
            scores[~(scores > 0)] = -np.inf
            allowed = None if mask is None else np.ascontiguousarray(mask[some])
            kernels.update_topk(scores, some.start, allowed, numbers[queries], products[queries])

    with blas_threads(1):
        for _ in map_blocks(part, split(len(Q), _QUERIES), n_jobs, blas=False):
            pass
    return numbers, products


def _pair_products(pairs: Pairs, Q: Array, vectors: Array, n_jobs: int | None) -> Array:
    """The product of each row of `Q` with the vectors of its candidate labels."""
    out = np.empty(len(pairs), dtype=np.float32)
    row_of_pair = pairs.rows

    def part(rows: slice) -> None:
        check_stop()
        some = slice(int(pairs.starts[rows.start]), int(pairs.starts[rows.stop]))
        np.einsum("ij,ij->i", Q[row_of_pair[some]], vectors[pairs.labels[some]], out=out[some])

    for _ in map_blocks(part, split(len(Q), _PAIR_ROWS), n_jobs, blas=False):
        pass
    return np.clip(np.nan_to_num(out, copy=False), -1, 1)


def _cosines(products: Array) -> Array:
    """Products of unit vectors, at least 0; what vectors in a damaged file give is put into the range."""
    return np.asarray(np.clip(np.nan_to_num(products, copy=False), 0, 1), dtype=np.float32)
