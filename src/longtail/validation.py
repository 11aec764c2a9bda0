"""The boundary: every matrix that a user brings becomes the one form that the kernels trust.

Features become CSR float32 with sorted, unique, in-range indices and finite values; labels the same with every
stored value 1. Kernels never check again, and neither do the functions here: a checked matrix whose arrays belong to
the package carries a seal. The arrays are read-only, and a matrix with other arrays than those of its seal is checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import InvalidInput, WrongType
from longtail.memory import MemoryPlan

# Each cell of a ranking has an int64 label and a float32 score. Small rankings need no plan, which takes a while.
_BYTES_OF_A_CELL = 12
_CELLS_WITHOUT_PLAN = 2**20


class _Seal(NamedTuple):
    """The arrays that a matrix had when it was sealed, and what is known about them."""

    shape: tuple[int, ...]
    arrays: tuple[Array, Array, Array]
    known: frozenset[str]


def own(csr: Any, *known: str) -> Any:
    """Seal a new matrix whose arrays nobody else refers to: it will be checked at most once and never copied.

    Its arrays become read-only; use ``copy()`` to change the matrix.

    >>> X = own(sparse.csr_array(np.eye(2, dtype=np.float32)))
    >>> as_features(X) is X
    True
    """
    arrays = csr.indptr, csr.indices, csr.data
    for array in arrays:
        array.flags.writeable = False
    csr.__dict__["_seal"] = _Seal(csr.shape, arrays, frozenset(("own", *known)))
    return csr


def _known(matrix: Any) -> frozenset[str]:
    """What is known about a matrix: nothing without a seal, or if an array was replaced or made writable."""
    seal: _Seal | None = matrix.__dict__.get("_seal") if type(matrix) is sparse.csr_array else None
    if seal is None or seal.shape != matrix.shape:
        return frozenset()
    arrays = matrix.indptr, matrix.indices, matrix.data
    if any(now is not then or now.flags.writeable for now, then in zip(arrays, seal.arrays, strict=True)):
        return frozenset()
    return seal.known


def _as_csr(matrix: Any, name: str) -> Any:
    if not sparse.issparse(matrix):
        matrix = _as_array(matrix, name)
    if matrix.ndim != 2:
        raise InvalidInput(f"{name} has {matrix.ndim} dimensions; expected 2")
    if matrix.dtype.kind == "c":
        raise InvalidInput(f"Complex data not supported: {name} has dtype {matrix.dtype}")
    if not sparse.issparse(matrix):
        matrix = _as_numbers(matrix, name)
    try:
        csr = sparse.csr_array(matrix)
    except ValueError as error:
        raise InvalidInput(f"{name}: the sparse matrix contradicts itself: {error}") from None
    if fault := fault_of_indices(csr.indptr, csr.indices, len(csr.data), *csr.shape):
        raise InvalidInput(f"{name}: {fault}")
    return csr


def _as_array(matrix: Any, name: str) -> Array:
    try:
        array = np.asarray(matrix)
    except ValueError:
        raise InvalidInput(
            f"{name}: the rows differ in length; expected a matrix. Turn lists of labels into a 0/1 matrix with "
            f"sklearn's MultiLabelBinarizer, or pass lists of label names to Tagger"
        ) from None
    if array.ndim == 1:
        raise InvalidInput(
            f"{name}: Expected 2D array, got 1D array instead. Reshape your data: array.reshape(1, -1) "
            f"for one row, array.reshape(-1, 1) for one column."
        )
    return array


def _as_numbers(array: Array, name: str) -> Array:
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise WrongType(f"{name} has dtype {array.dtype} and cannot be read as numbers: {error}") from None
    # Sparse matrices have no half precision.
    return array.astype(np.float32) if array.dtype == np.float16 else array


def fault_of_indices(indptr: Array, indices: Array, n_values: int, rows: int, columns: int) -> str | None:
    """What is wrong with the index arrays of a CSR matrix (or, with rows and columns swapped, of a CSC matrix)."""
    if (
        len(indptr) != rows + 1
        or indptr[0] != 0
        or indptr[-1] != len(indices)
        or len(indices) != n_values
        or (indptr[1:] < indptr[:-1]).any()
    ):
        return "the row pointers of the sparse matrix do not fit its shape and data"
    if len(indices) and (indices.min() < 0 or indices.max() >= columns):
        return f"the sparse matrix has an index outside 0..{columns - 1}"
    return None


def _rises_in_rows(indices: Any, indptr: Any) -> bool:
    rising = indices[1:] > indices[:-1]
    if len(indptr) > 2:
        starts = indptr[1:-1]
        rising[starts[(starts > 0) & (starts < len(indices))] - 1] = True
    return bool(rising.all())


def _canonical(csr: Any, original: Any) -> Any:
    """Sort the indices of each row and sum duplicates; arrays of the caller are copied first.

    The flags of the matrix are not trusted, since kernels rely on the order.
    """
    if _rises_in_rows(csr.indices, csr.indptr):
        return csr
    if sparse.issparse(original):
        csr = csr.copy()
    csr.has_sorted_indices = csr.has_canonical_format = False
    csr.sum_duplicates()
    return csr


_INDEX = np.dtype(np.int32)
_LONG_INDEX = np.dtype(np.int64)
_LARGEST_INDEX = int(np.iinfo(_INDEX).max)
_SINGLE = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)
_LARGEST_COUNT = 2**53
_MANY_LABELS = 2**24  # fewer need no memory plan, which takes longer than the mask


def _as_is(X: Any) -> Any:
    """The result of `as_features` for a CSR matrix that is valid as it is, or None for any other.

    The constructors of sparse matrices take longer than the prediction of a row, so this function calls none.
    """
    if type(X) is not sparse.csr_array and type(X) is not sparse.csr_matrix:
        return None
    shape, indptr, indices, data = X.shape, X.indptr, X.indices, X.data
    if not (type(indptr) is type(indices) is type(data) is np.ndarray and len(shape) == 2):
        return None
    if not (indptr.dtype == indices.dtype and indptr.ndim == indices.ndim == data.ndim == 1):
        return None
    rows, columns = shape
    entries = len(indices)
    if indices.dtype != _LONG_INDEX and (indices.dtype != _INDEX or rows > _LARGEST_INDEX or columns > _LARGEST_INDEX):
        return None
    if len(indptr) != rows + 1 or indptr[0] != 0 or indptr[-1] != entries or len(data) != entries:
        return None
    if rows > 1 and (indptr[1:] < indptr[:-1]).any():
        return None
    if entries:
        if not _rises_in_rows(indices, indptr):
            return None
        # The indices of a single row are sorted.
        lowest, highest = (indices[0], indices[-1]) if rows == 1 else (indices.min(), indices.max())
        if lowest < 0 or highest >= columns:
            return None
    if data.dtype != _SINGLE:
        if data.dtype != _DOUBLE:
            return None
        with np.errstate(over="ignore"):
            data = data.astype(_SINGLE)
    # A sum of squares is finite only if every value is. Large values can overflow, so the slow path decides then.
    with np.errstate(over="ignore"):
        if not math.isfinite(data.dot(data)):
            return None
    csr = sparse.csr_array.__new__(sparse.csr_array)
    csr.__dict__.update(X.__dict__)
    csr.data = data
    csr.has_canonical_format = True
    return csr


def as_features(X: Any, name: str = "X", n_features: int | None = None, owner: str = "the model") -> Any:
    """Check features and convert them to CSR float32.

    Parameters
    ----------
    X : sparse matrix, sparse array or array-like of shape (n_rows, n_features)
    name : str
        Its name in messages.
    n_features : int or None
        The required number of features.
    owner : str
        What requires that number, for messages.
    """
    csr = X if "features" in _known(X) else _checked_features(X, name)
    if n_features is not None and csr.shape[1] != n_features:
        raise InvalidInput(
            f"{name} has {csr.shape[1]} features, but {owner} is expecting {n_features} features as input"
        )
    return csr


def _checked_features(X: Any, name: str) -> Any:
    as_is = _as_is(X)
    if as_is is not None:
        return own(X, "features") if "own" in _known(X) and as_is.data is X.data else as_is
    csr = _canonical(_as_csr(X, name), X)
    if csr.data.size and not np.isfinite(csr.data).all():
        raise InvalidInput(f"{name} contains NaN or infinity; every feature value must be finite")
    with np.errstate(over="ignore"):
        data = csr.data.astype(np.float32, copy=False)
    if data.size and not np.isfinite(data).all():
        raise InvalidInput(f"{name} contains a value too large for 32-bit floats; scale the features")
    csr = sparse.csr_array((data, csr.indices, csr.indptr), shape=csr.shape)
    return csr if sparse.issparse(X) else own(csr, "features")


def as_labels(Y: Any, n_rows: int | None = None, name: str = "Y") -> Any:
    """Check a 0/1 label matrix and convert it to a read-only CSR float32 matrix that stores only ones."""
    csr = Y if "labels" in _known(Y) else _checked_labels(Y, name)
    if n_rows is not None and csr.shape[0] != n_rows:
        raise InvalidInput(f"Found input variables with inconsistent numbers of samples: [{n_rows}, {csr.shape[0]}]")
    return csr


def as_relevance(Y: Any, n_rows: int | None = None, name: str = "Y") -> Any:
    """As `as_labels`, and values between 0 and 1 stay as they are: how relevant a label is for a row.

    >>> as_relevance([[1, 0.5], [0, 1]]).toarray().tolist()
    [[1.0, 0.5], [0.0, 1.0]]
    """
    if "labels" in _known(Y):
        return as_labels(Y, n_rows, name)
    csr = _as_csr(Y, name)
    if not csr.data.size or np.isin(csr.data, (0, 1)).all():
        return as_labels(Y, n_rows, name)
    if not ((csr.data >= 0) & (csr.data <= 1)).all():  # written such that NaN fails
        wrong = csr.data[~((csr.data >= 0) & (csr.data <= 1))][0].item()
        raise InvalidInput(
            f"Unknown label type: {name} must hold only 0 and 1, or relevance between them; found {wrong!r}"
        )
    if n_rows is not None and csr.shape[0] != n_rows:
        raise InvalidInput(f"Found input variables with inconsistent numbers of samples: [{n_rows}, {csr.shape[0]}]")
    csr = _canonical(csr, Y)
    csr = sparse.csr_array((csr.data.astype(np.float32), csr.indices.copy(), csr.indptr.copy()), shape=csr.shape)
    if csr.data.max() > 1:
        raise InvalidInput(f"{name} holds a cell twice, and its values add up to more than 1")
    return own(_without_zeros(csr), "features")


def is_binary(Y: Any) -> bool:
    """Whether a checked label matrix holds no relevance other than 1."""
    return "labels" in _known(Y) or bool((Y.data == 1).all())


def _checked_labels(Y: Any, name: str) -> Any:
    csr = _as_csr(Y, name)
    if csr.data.size and not np.isin(csr.data, (0, 1)).all():
        raise InvalidInput(
            f"Unknown label type: {name} must hold only 0 and 1 (a row's labels); found {_first_other(csr.data)!r}"
        )
    csr = _without_zeros(_canonical(csr, Y))
    data = np.ones(len(csr.indices), dtype=np.float32)
    may_be_the_callers = sparse.issparse(Y) and Y.format == "csr" and "own" not in _known(Y)
    csr = sparse.csr_array((data, csr.indices, csr.indptr), shape=csr.shape, copy=may_be_the_callers)
    return own(csr, "labels", "features")


def _without_zeros(csr: Any) -> Any:
    if csr.data.all():
        return csr
    csr = csr.copy()
    csr.eliminate_zeros()
    return csr


def as_counts(counts: Any, name: str) -> Any:
    """Check a matrix of counts and convert it to CSR int64 without stored zeros."""
    csr = _as_csr(counts, name)
    bad = ~((csr.data >= 0) & (csr.data <= _LARGEST_COUNT) & (csr.data == np.floor(csr.data)))
    if bad.any():
        first = int(np.argmax(bad))
        row = int(np.searchsorted(csr.indptr, first, side="right")) - 1
        raise InvalidInput(f"{name} must hold whole numbers from 0 to 2^53; row {row} holds {csr.data[first].item()!r}")
    csr = sparse.csr_array((csr.data.astype(np.int64), csr.indices, csr.indptr), shape=csr.shape)
    return _without_zeros(_canonical(csr, counts))


def _first_other(values: Any) -> Any:
    return values[~np.isin(values, (0, 1))][0].item()


def as_label_mask(allow: Any, deny: Any, n_labels: int) -> Array | None:
    """Combine `allow` and `deny` (label ids, or masks over all labels) into one mask, or None to allow all."""
    if allow is None and deny is None:
        return None
    if n_labels > _MANY_LABELS:
        MemoryPlan("choosing among the labels", {"a mask over all labels, twice": 2 * n_labels}).check()
    mask = np.ones(n_labels, dtype=bool) if allow is None else _selected(allow, n_labels, "allow")
    if deny is not None:
        mask &= ~_selected(deny, n_labels, "deny")
    return mask


def _selected(chosen: Any, n_labels: int, name: str) -> Array:
    array = np.asarray(chosen)
    if array.dtype == bool:
        if array.shape != (n_labels,):
            raise InvalidInput(f"{name} is a mask of shape {array.shape}; expected ({n_labels},)")
        return array.copy()
    mask = np.zeros(n_labels, dtype=bool)
    if array.size == 0:
        return mask
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidInput(f"{name} must be a list of label ids or a mask over all {n_labels} labels")
    if array.min() < 0 or array.max() >= n_labels:
        raise InvalidInput(f"{name} has a label id outside 0..{n_labels - 1}")
    mask[array] = True
    return mask


def finite(scores: Any) -> Any:
    """Return the scores, or raise `InvalidInput` if one is not finite.

    Loading a model does not check all its weights, so damaged weights show here first.
    """
    # A sum is finite only if every score is. Finite scores can overflow, so all are checked then.
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(np.sum(scores)):
            return scores
    if not np.isfinite(scores).all():
        raise InvalidInput(
            "a score is not a finite number: the weights of the model are damaged, or feature values are too large; "
            "`longtail info MODEL --verify` finds damage",
            code="not_finite",
        )
    return scores


def column_names(X: Any) -> Array | None:
    """The names of the columns of a data frame, as an array of objects; None unless all are texts."""
    names = list(getattr(X, "columns", ()))
    if not names or not all(isinstance(name, str) for name in names):
        return None
    return np.array(names, dtype=object)


def check_columns(X: Any, known: Array | None, owner: str) -> None:
    """Refuse a data frame whose columns are not the `known` ones in their order; rows without names pass."""
    found = column_names(X)
    if known is None or found is None or np.array_equal(found, known):
        return
    same = next((i for i, pair in enumerate(zip(found, known, strict=False)) if pair[0] != pair[1]), None)
    place = min(len(found), len(known)) if same is None else same
    has, wants = (repr(names[place]) if place < len(names) else "missing" for names in (found, known))
    raise InvalidInput(
        f"The feature names should match those that were passed during fit: column {place} of X is {has}, and {owner} "
        f"expects {wants}",
        code="feature_names",
        advice="give the same columns in the same order",
    )


def checked_texts(texts: Any, name: str = "texts") -> Iterator[str]:
    """Yield the texts, or raise `InvalidInput` with the row of the first that is not a str; `name` is the argument."""
    if isinstance(texts, str | bytes):
        raise InvalidInput(f"{name} is one single text; expected a list of texts: [text]")
    if getattr(texts, "ndim", 1) != 1:
        raise InvalidInput(
            f"{name} has {texts.ndim} dimensions; expected one text per row: pass a single column, or pass features to "
            f"a model that takes features"
        )
    try:
        items = iter(texts)
    except TypeError:
        raise InvalidInput(f"{name} is {texts!r:.40}; expected a list or another iterable of str") from None
    return _checked_rows(items, name)


def _checked_rows(items: Iterator[Any], name: str) -> Iterator[str]:
    for row, text in enumerate(items):
        if not isinstance(text, str):
            hint = "decode it first" if isinstance(text, bytes) else "leave the row out or give ''"
            raise InvalidInput(
                f"row {row} of {name} is {text!r:.40} of type {type(text).__name__}; expected str: {hint}"
            )
        yield text


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy; booleans are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_whole(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return the value as a Python integer, or raise `InvalidInput`.

    >>> check_whole("k", np.int64(5))
    5
    """
    if not is_whole(value) or value < least or (most is not None and value > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InvalidInput(f"{name} is {value!r}; expected a whole number {bounds}")
    return int(value)


def check_k(k: Any, n_rows: int = 0) -> int:
    """Check the number of labels to rank, and that the ranking of all rows fits into memory."""
    k = check_whole("k", k)
    if k * n_rows > _CELLS_WITHOUT_PLAN:
        MemoryPlan(
            f"a ranking of {k:,} labels for each of {n_rows:,} rows",
            {"labels and scores, twice": 2 * _BYTES_OF_A_CELL * k * n_rows},
            "Rank fewer labels, or fewer rows at a time.",
        ).check()
    return k
