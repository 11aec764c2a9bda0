"""What a learner learns from: the forms of y and of the weights of rows that `fit` takes, checked once.

One class for each row becomes a matrix with one 1 in each row, so learners see label matrices only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.store import State
from longtail.validation import as_features, as_labels, as_relevance, is_whole, own

_LARGEST_WEIGHT = 1e9  # of a row; costs and sums of squares must stay within 32-bit floats


class TrainingSet(NamedTuple):
    """Checked arguments of a fit.

    Parameters
    ----------
    X : csr_array of shape (n_rows, n_features)
    Y : csr_array of shape (n_rows, n_labels)
        Ones, or relevance in (0, 1].
    classes : array of shape (n_labels,) or None
        The class of each column, if every row was given one class; None for a label matrix.
    weights : float32 array of shape (n_rows,) or None
        None if all rows weigh 1.
    """

    X: Any
    Y: Any
    classes: Array | None
    weights: Array | None


def check_training(X: Any, Y: Any, owner: str) -> tuple[Any, Any]:
    """Check features and a 0/1 label matrix for a fit of `owner`; return them as CSR matrices."""
    X = _checked_rows(X)
    return X, as_labels(_given(Y, owner), n_rows=X.shape[0])


def read_training(X: Any, Y: Any, sample_weight: Any, owner: str) -> TrainingSet:
    """Check the arguments of a fit of `owner`; rows of weight 0 are left out."""
    X, Y = _checked_rows(X), _given(Y, owner)
    weights = read_weights(sample_weight, X.shape[0])
    if weights is None or weights.all():
        return TrainingSet(X, *_labels_and_classes(Y, X.shape[0], None), weights)
    kept = np.flatnonzero(weights)
    if not len(kept):
        raise InvalidInput("every weight in sample_weight is zero, so there is nothing to learn from", code="no_rows")
    labels, classes = _labels_and_classes(Y, X.shape[0], kept)
    left = weights[kept]
    return TrainingSet(own(X[kept]), labels, classes, None if (left == 1).all() else left)


def _checked_rows(X: Any) -> Any:
    X = as_features(X)
    if X.shape[0] < 1:
        raise InvalidInput(
            f"Found array with {X.shape[0]} sample(s) (shape={X.shape}) while a minimum of 1 is required."
        )
    if X.shape[1] < 1:
        raise InvalidInput(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    return X


def _given(Y: Any, owner: str) -> Any:
    if Y is None:
        raise InvalidInput(f"{owner} requires y to be passed, but the target y is None")
    return Y


def read_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """The weights of rows in float32, or None if all are 1.

    >>> read_weights([1, 1, 1], 3) is None, read_weights([1, 0.5], 2).tolist()
    (True, [1.0, 0.5])
    """
    if sample_weight is None:
        return None
    given = np.asarray(sample_weight)
    if given.shape != (n_rows,) or given.dtype.kind not in "biuf":
        raise InvalidInput(
            f"sample_weight has shape {given.shape} and dtype {given.dtype}; expected one number for each of the "
            f"{n_rows} rows",
            code="bad_sample_weight",
        )
    bad = ~((given >= 0) & (given <= _LARGEST_WEIGHT))
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInput(
            f"sample_weight of row {row} is {given[row].item()!r}; expected a number from 0 to {_LARGEST_WEIGHT:g}",
            code="bad_sample_weight",
        )
    weights = given.astype(np.float32)
    return None if (weights == 1).all() else weights


def weighted_mean(values: Any, sample_weight: Any) -> float:
    """The mean of a value of each row, with weights of rows or None.

    >>> weighted_mean([True, False], None), weighted_mean([True, False], [3, 1])
    (0.5, 0.75)
    """
    weights = read_weights(sample_weight, len(values))
    if weights is not None and not weights.any():
        raise InvalidInput("every weight in sample_weight is zero, so there is nothing to judge", code="no_rows")
    return float(np.average(values, weights=weights))


def _labels_and_classes(y: Any, n_rows: int, kept: Array | None) -> tuple[Any, Array | None]:
    """The label matrix of all rows, or of those `kept`; and, if y has one class for each row, the classes."""
    found = classes_of_rows(y)
    if found is None:
        labels = as_relevance(y, n_rows=n_rows)
        return (labels if kept is None else as_relevance(own(labels[kept]))), None
    if len(found) != n_rows:
        raise InvalidInput(f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(found)}]")
    return one_hot(found if kept is None else found[kept])


def one_hot(classes: Array) -> tuple[Any, Array]:
    """The label matrix with one 1 in each row, and the class of each column, ascending.

    >>> matrix, classes = one_hot(np.array([7, 3, 7]))
    >>> classes.tolist(), matrix.toarray().tolist()
    ([3, 7], [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    """
    distinct, columns = np.unique(classes, return_inverse=True)
    ones = np.ones(len(columns), dtype=np.float32)
    matrix: Any = sparse.csr_array((ones, columns, np.arange(len(columns) + 1)), shape=(len(columns), len(distinct)))
    return as_labels(own(matrix)), distinct


def columns_of(y: Any, classes: Array | None) -> Any:
    """The label matrix of rows to judge; if a fit had `classes`, y may have one of them for each row.

    A row of another class has no label.

    >>> columns_of(["b", "a", "z"], np.array(["a", "b"], dtype=object)).toarray().tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]
    """
    given = None if classes is None else classes_of_rows(y)
    if classes is None or given is None:
        return as_labels(y)
    places = {name: place for place, name in enumerate(classes.tolist())}
    columns = np.array([places.get(name, -1) for name in given.tolist()], dtype=np.int64)
    known = columns >= 0
    starts = np.concatenate([[0], np.cumsum(known)])
    ones = np.ones(int(starts[-1]), dtype=np.float32)
    return as_labels(sparse.csr_array((ones, columns[known], starts), shape=(len(columns), len(classes))))


def classes_of_rows(y: Any) -> Array | None:
    """The class of each row if `y` has one dimension: names in an array of objects, or numbers; else None.

    >>> classes_of_rows(["b", "a"]).tolist(), classes_of_rows([[0, 1], [1, 0]])
    (['b', 'a'], None)
    >>> classes_of_rows(np.array([3, 1], dtype=object)).tolist()
    [3, 1]
    """
    if sparse.issparse(y):
        return None
    try:
        given = np.asarray(y)
    except ValueError:  # rows of different lengths
        return None
    if given.ndim != 1:
        return None
    if given.dtype.kind in "biu":
        return given
    if given.dtype.kind == "f":
        if not np.isfinite(given).all():
            raise InvalidInput("Input y contains NaN or infinity; every row needs a class", code="bad_classes")
        if (given != np.floor(given)).any():
            raise InvalidInput(
                "Unknown label type: continuous. y holds numbers that are not whole; expected one class for each row, "
                "or a label matrix",
                code="bad_classes",
            )
        return given
    # NumPy would turn the other values of a list with a text into texts.
    names = np.array(y, dtype=object) if isinstance(y, list | tuple) else given.astype(object)
    if given.dtype.kind == "O" and all(map(is_whole, names)):
        numbers = np.array(names.tolist(), ndmin=1)
        if numbers.dtype.kind in "iu":
            return numbers
    for row, name in enumerate(names):
        if not isinstance(name, str):
            raise InvalidInput(
                f"Unknown label type: row {row} of y is {name!r:.40} of type {type(name).__name__}; expected one class "
                f"for each row (all names, or all whole numbers), or a label matrix",
                code="bad_classes",
            )
    return names


def stored_classes(classes: Array) -> Any:
    """Classes in the form in which a model stores them."""
    if classes.dtype.kind == "O":
        return tuple(classes.tolist())
    return classes.astype({"b": np.bool_, "f": np.float64}.get(classes.dtype.kind, np.int64))


def read_feature_names(state: State, n_features: int) -> Array:
    """The names of the columns of the training rows of a saved model."""
    return np.array(state.strings("feature_names", n_features), dtype=object)


def read_classes(state: State, n_labels: int) -> Array:
    """The classes of a saved model, or `ModelFormatError` if they are damaged."""
    if not isinstance(state.arrays["classes"], np.ndarray):
        classes = np.array(state.strings("classes", n_labels), dtype=object)
    else:
        dtype = state.arrays["classes"].dtype
        if dtype not in (np.bool_, np.int64, np.float64):
            raise ModelFormatError(f"{state.kind}: 'classes' has dtype {dtype}; expected names or whole numbers")
        classes = np.array(state.array("classes", dtype, (n_labels,)))
    # Written such that NaN fails.
    if len(classes) > 1 and not all(classes[1:] > classes[:-1]):
        raise ModelFormatError(f"{state.kind}: 'classes' must rise and differ")
    return classes
