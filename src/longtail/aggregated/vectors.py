"""Group-robust label vectors (Shen et al., ICML 2020, Algorithm 1).

A label's vector should be close to at least one member of each of its groups. It starts as the mean of all members.
Each step moves it towards the best member of each group, and never lowers the sum over groups of the best similarity.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from longtail import progress
from longtail.aggregated.aggregation import Aggregation
from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.labels import even_blocks, sum_of_rows
from longtail.memory import MemoryPlan
from longtail.native import kernels
from longtail.parallel import map_blocks, resolve_jobs
from longtail.parameters import Constraint, Number, Threads, check_parameters
from longtail.validation import as_features

LARGEST_INDEX = int(np.iinfo(np.int32).max)
_BLOCK_ENTRIES = 2**22
_LONGEST = 1e18  # norm of a sum of members; its square must fit into a 32-bit float
_SHORT = 1e-6  # norm of a row below which squares come close to the smallest float
_NEGLIGIBLE = 1e-15  # relative to the longest row, norm of a row that counts as empty
_NEXT_TO_NOTHING = 1e-36  # norm of a row that counts as empty
_ENTRY_BYTES = 16  # a value and its feature, twice while rows are copied
MEMBER_BYTES = 64  # peak memory of the search and of placing labels, per member


class Search(NamedTuple):
    """The result of the search for the rows of labels; arrays are flat as in `Aggregation`.

    Parameters
    ----------
    weights : float64 array
        Weight of each member in its label's vector.
    similarities : float64 array
        Inner product of each member with its label's vector.
    objectives : float64 array
        Per label, the sum over its groups of the largest similarity.
    """

    weights: Array
    similarities: Array
    objectives: Array


class GroupRobustLabelVectors(BaseEstimator):
    """Label vectors where labels are known only for groups of rows.

    Parameters
    ----------
    n_iter : int
        Number of steps; 0 gives the normalised sum of all members.
    step : float
        Length of a step relative to a vector of norm 1.
    top : int or None
        Number of entries of a vector to keep, as in `longtail.labels.label_vectors`.
    n_jobs : int or None
        Threads; None uses every core.

    Attributes
    ----------
    label_vectors_ : csr_array of shape (n_labels, n_features)
    objective_ : array of shape (n_labels,)
        The sum over a label's groups of the largest inner product of a member with the vector; for rows of norm 1 at
        most the number of groups.

    Notes
    -----
    Of equally good members the one with the lowest row number counts. If the members of a label sum to zero, its vector
    starts from one of them; labels take different ones in turn.

    Examples
    --------
    One member of each group is about the label, the others are not:

    >>> import numpy as np
    >>> X = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=np.float32)
    >>> groups = [[1, 0], [1, 0], [0, 1], [0, 1]]
    >>> vectors = GroupRobustLabelVectors(n_iter=20).fit(X, groups, [[1], [1]]).label_vectors_
    >>> print(vectors.toarray().round(1))
    [[1.  0.1 0.1]]
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_iter": Number(low=0, high=2**31, whole=True),
        "step": Number(low=0, high=1e6),
        "top": Number(low=1, high=2**31, whole=True, optional=True),
        "n_jobs": Threads(),
    }

    label_vectors_: Any
    objective_: Array

    def __init__(self, n_iter: int = 20, step: float = 0.1, top: int | None = None, n_jobs: int | None = None) -> None:
        self.n_iter = n_iter
        self.step = step
        self.top = top
        self.n_jobs = n_jobs

    def fit(self, X: Any, groups: Any, group_labels: Any) -> Self:
        """Compute the label vectors.

        Parameters
        ----------
        X : sparse matrix or array-like of shape (n_rows, n_features)
            Usually with rows of length 1.
        groups : sparse or dense 0/1 matrix of shape (n_rows, n_groups)
        group_labels : sparse or dense matrix of whole numbers, of shape (n_groups, n_labels)
            How often each label occurs in a group; only whether it occurs matters here.
        """
        check_parameters(self, self._parameters)
        X = as_features(X)
        aggregation = Aggregation.of(groups, group_labels, X.shape[0])
        search = search_rows(X, aggregation, self.n_iter, self.step, self.n_jobs)
        self.label_vectors_ = vectors_of(X, aggregation, search, self.top, self.n_jobs)
        self.objective_ = search.objectives
        return self


def search_rows(X: Any, aggregation: Aggregation, n_iter: int, step: float, n_jobs: int | None = None) -> Search:
    """Run Algorithm 1 for every label; X is checked."""
    MemoryPlan(
        "the search for label vectors",
        {
            "members of groups": MEMBER_BYTES * aggregation.n_members,
            "their rows": _ENTRY_BYTES * count_entries(X, aggregation.group_rows),
        },
        "Split the groups into parts and assign the labels of each part.",
    ).check()
    blocks = label_blocks(X, aggregation, n_jobs)
    # Store the members of a group next to each other, as they are read together.
    X = take_rows(X, aggregation.group_rows)
    members = np.arange(X.shape[0])
    norms = _lengths(X)
    if norms.max(initial=0) * np.diff(aggregation.pair_indptr[aggregation.label_indptr]).max(initial=0) > _LONGEST:
        raise InvalidInput(f"X has rows of norm {norms.max():.3g}, whose sums overflow 32-bit floats; scale the rows")

    unit = _rescale(X, norms)

    def search_block(labels: slice) -> tuple[int, Search]:
        length = int(aggregation.pair_indptr[aggregation.label_indptr[labels.stop]]) - int(
            aggregation.pair_indptr[aggregation.label_indptr[labels.start]]
        )
        found = Search(np.empty(length), np.empty(length), np.empty(labels.stop - labels.start))
        kernels.find_members(
            aggregation.label_indptr[labels.start : labels.stop + 1],
            *(aggregation.label_groups, aggregation.group_indptr, members),
            *(X.indptr, X.indices, X.data, norms, X.shape[1]),
            *(labels.start, n_iter, float(step), *found),
        )
        return labels.stop - labels.start, found

    parts = []
    with progress.task("searching for label vectors", total=aggregation.n_labels) as advance:
        for done, found in map_blocks(search_block, blocks, n_jobs, blas=False):
            parts.append(found)
            advance(done)
    if not parts:
        return _EMPTY
    weights, similarities, objectives = (np.concatenate([np.zeros(0), *each]) for each in zip(*parts, strict=True))
    return Search(weights * unit, similarities / unit, objectives / unit)


def _lengths(X: Any) -> Array:
    """The Euclidean norm of each row, in 64 bits."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    lengths: Array = np.sqrt(np.bincount(rows, X.data.astype(np.float64) ** 2, X.shape[0]))
    return lengths


def _rescale(X: Any, norms: Array) -> float:
    """Scale short rows in place, so that the longest has a norm of about 1, and return the factor.

    In the 32-bit floats of the kernels, products of very short rows would be 0. Rows that are negligible, absolutely or
    relative to the longest, become empty.
    """
    longest = float(norms.max(initial=0))
    shortest = float(norms.min(initial=np.inf, where=norms > 0))
    if longest == 0 or shortest >= _SHORT:
        return 1.0
    # A power of two does not round.
    unit = 2.0 ** -np.floor(np.log2(longest)) if longest < _SHORT else 1.0
    empty = norms <= max(_NEXT_TO_NOTHING, _NEGLIGIBLE * longest)
    factors = np.where(empty, 0.0, unit)
    X.data[:] = X.data * np.repeat(factors, np.diff(X.indptr))
    norms *= factors
    return float(unit)


def count_entries(X: Any, rows: Array) -> int:
    """The number of entries of some rows, which may repeat."""
    return int(np.diff(X.indptr)[rows].sum(dtype=np.int64))


def take_rows(X: Any, rows: Array) -> Any:
    """Rows of a CSR matrix, which may repeat so often that 32-bit indices overflow."""
    if count_entries(X, rows) > LARGEST_INDEX and X.indices.dtype != np.int64:
        wide = X.copy()
        # The constructor would convert them back to 32 bits.
        wide.indptr, wide.indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
        X = wide
    return X[rows]


_EMPTY = Search(np.zeros(0), np.zeros(0), np.zeros(0))


def label_blocks(X: Any, aggregation: Aggregation, n_jobs: int | None) -> list[slice]:
    """Slices of labels of about equal cost, enough for every thread."""
    lengths = np.diff(X.indptr)
    group_entries = np.concatenate([[0], np.cumsum(lengths[aggregation.group_rows])])[aggregation.group_indptr]
    pair_entries = np.concatenate([[0], np.cumsum(np.diff(group_entries)[aggregation.label_groups] + 1)])
    costs = np.diff(pair_entries[aggregation.label_indptr]) + 1
    return even_blocks(costs, max(1, min(_BLOCK_ENTRIES, -(-int(costs.sum()) // (8 * resolve_jobs(n_jobs))))))


def vectors_of(X: Any, aggregation: Aggregation, search: Search, top: int | None, n_jobs: int | None) -> Any:
    """The label vectors that a search found."""
    indptr = aggregation.pair_indptr[aggregation.label_indptr]
    rows = aggregation.members(slice(None))
    members = sparse.csr_array((search.weights, rows, indptr), shape=(aggregation.n_labels, aggregation.n_rows))
    return sum_of_rows(X, members, top, n_jobs)
