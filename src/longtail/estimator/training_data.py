"""What a learner checks of its training data, once, before it begins."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.validation import as_features, as_labels


def check_training(X: Any, Y: Any, owner: str) -> tuple[Any, Any]:
    """Check features and labels for a fit of `owner`."""
    X = as_features(X)
    if X.shape[0] < 1:
        raise InvalidInput(
            f"Found array with {X.shape[0]} sample(s) (shape={X.shape}) while a minimum of 1 is required."
        )
    if X.shape[1] < 1:
        raise InvalidInput(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if Y is None:
        raise InvalidInput(f"{owner} requires y to be passed, but the target y is None")
    return X, as_labels(Y, n_rows=X.shape[0])


def column_counts(Y: Any) -> Array:
    """Rows of each label."""
    return np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.float64)
