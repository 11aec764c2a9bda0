"""`read_rows`: rows and labels in the forms that scikit-learn and pandas use, as a corpus.

Labels are lists of names, one class for each row, or an indicator matrix with one column for each label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.data import Corpus, encode_labels, filled, is_missing
from longtail.errors import InvalidInput
from longtail.estimator import classes_of_rows, one_hot, read_weights
from longtail.validation import checked_texts

NAMES, NUMBERS, BOOLEANS = "names", "numbers", "booleans"
KINDS = (NAMES, NUMBERS, BOOLEANS)  # of classes
_TRUTHS = {"False": False, "True": True}
_NUMBER = re.compile(r"-?[0-9]{1,18}")


class GivenRows(NamedTuple):
    """A corpus, and the kind of its classes if there was one class for each row, else None."""

    corpus: Corpus
    classes: str | None


class _Labels(NamedTuple):
    matrix: Any
    names: tuple[str, ...]
    classes: str | None = None


def read_rows(rows: Any, y: Any, sample_weight: Any = None, *, only_texts: bool = False) -> GivenRows:
    """Build a corpus from texts, or a matrix of features, and labels in any form.

    Parameters
    ----------
    rows : iterable of str, or sparse or dense matrix of numbers
    y : iterable of iterables of str, one class for each row, or indicator matrix
        The columns of a data frame name its labels; those of another matrix are named by their numbers, from 0.
    sample_weight : array-like or None
        How much each row counts.
    only_texts : bool
        Whether rows must be texts.

    Examples
    --------
    >>> read_rows(["a red apple", "a blue sky"], ["fruit", "sky"]).classes
    'names'
    >>> found = read_rows(["a red apple", "a blue sky"], [["fruit", "red"], []])
    >>> found.corpus.label_names, found.classes
    (('fruit', 'red'), None)
    """
    labels = _read_labels(y)
    n_rows = labels.matrix.shape[0]
    weights = read_weights(sample_weight, n_rows)
    named: dict[str, Any] = {"labels": labels.matrix, "label_names": labels.names, "weights": weights}
    if not only_texts and is_features(rows):
        corpus = Corpus(**named, features=rows)
    else:
        texts = list(checked_texts(filled(rows, "", "texts")))
        if len(texts) != n_rows:
            raise InvalidInput(f"{len(texts)} texts for {n_rows} {'classes' if labels.classes else 'lists of labels'}")
        corpus = Corpus(**named, texts=texts)
    return GivenRows(corpus, labels.classes)


def names_a_class(label: str, kind: str) -> bool:
    """Whether a label is the name of a class of a kind.

    >>> names_a_class("-7", "numbers"), names_a_class("07", "numbers"), names_a_class("True", "booleans")
    (True, False, True)
    """
    if kind == NUMBERS:
        return _NUMBER.fullmatch(label) is not None and str(int(label)) == label
    return kind == NAMES or label in _TRUTHS


def classes_of(names: Sequence[str], kind: str) -> Array:
    """The classes of a kind that labels name.

    >>> classes_of(["2", "10"], "numbers").tolist(), classes_of(["False", "True"], "booleans").tolist()
    ([2, 10], [False, True])
    """
    if kind == NUMBERS:
        return np.array(list(map(int, names)))
    return np.array(list(names), dtype=object) if kind == NAMES else np.array([_TRUTHS[name] for name in names])


def is_features(rows: Any) -> bool:
    """Whether rows are a matrix of numbers rather than texts."""
    if sparse.issparse(rows):
        return True
    return getattr(rows, "ndim", 1) == 2 and np.asarray(rows).dtype.kind in "biuf"


def _read_labels(y: Any) -> _Labels:
    if sparse.issparse(y) or getattr(y, "ndim", 1) == 2:
        columns = getattr(y, "columns", None)
        matrix = y if sparse.issparse(y) else np.asarray(y)
        if matrix.dtype.kind in "biuf":
            names = range(matrix.shape[1]) if columns is None else columns
            return _Labels(matrix, tuple(str(name) for name in names))
        if columns is not None:
            raise InvalidInput(
                "labels is a data frame whose columns are not numbers; pass a single column, or zeros and ones",
                code="bad_classes",
            )
    if not isinstance(y, Iterable):
        raise InvalidInput(f"labels is {y!r:.40}; expected a list of names for each row, or one class for each row")
    y = y if hasattr(y, "__len__") else list(y)
    items = y.to_pylist() if hasattr(y, "to_pylist") else y if isinstance(y, np.ndarray) else list(y)
    first = next((item for item in items if not is_missing(item)), None)
    if not isinstance(first, str | int | float | np.number | np.bool_):
        return _Labels(*encode_labels(filled(y, (), "labels")))
    found = classes_of_rows(items)
    if found is None:
        raise InvalidInput(
            "the labels have more than one dimension; expected one class for each row", code="bad_classes"
        )
    kind = {"O": NAMES, "b": BOOLEANS}.get(found.dtype.kind, NUMBERS)
    matrix, classes = one_hot(found.astype(np.int64) if kind == NUMBERS else found)
    return _Labels(matrix, tuple(map(str, classes.tolist())), kind)
