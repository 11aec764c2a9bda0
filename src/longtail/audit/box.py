"""The inputs that count: a box of values for each feature, in which the centre of a ball must lie.

A layer that was cut down to a few directions sees a product of the features. The box stays that of the features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Box:
    """A lower and an upper bound for each feature.

    Attributes
    ----------
    low, high : arrays of shape (n_features,)
    directions : array of shape (n_inputs, n_features) or None
        Orthonormal rows. The inputs of the layer are these products of the features; None if they are the features.

    Examples
    --------
    >>> box = Box.seen([[0.0, 3.0], [2.0, 1.0]])
    >>> box.centre.tolist(), box.half_widths.tolist()
    ([1.0, 2.0], [1.0, 1.0])
    """

    low: Array
    high: Array
    directions: Array | None = None

    @classmethod
    def cube(cls, half_width: float, n_features: int) -> Box:
        """Every feature from minus to plus `half_width`."""
        if not isinstance(half_width, int | float | np.number) or not 0 < half_width < 1e100:
            raise InvalidInput(f"box is {half_width!r}; expected a positive number")
        high = np.full(n_features, float(half_width))
        return cls(-high, high)

    @classmethod
    def seen(cls, inputs: Any) -> Box:
        """Every feature from the smallest to the largest value that it has in some rows."""
        rows = sparse.csc_array(inputs) if sparse.issparse(inputs) else np.asarray(inputs)
        if rows.ndim != 2 or rows.shape[0] == 0 or rows.dtype.kind not in "biuf":
            raise InvalidInput(f"seen has shape {rows.shape} and dtype {rows.dtype}; expected rows of numbers")
        low, high = (
            np.asarray(found.toarray() if sparse.issparse(found) else found, dtype=np.float64).ravel()
            for found in (rows.min(axis=0), rows.max(axis=0))
        )
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise InvalidInput("seen contains NaN or infinity; every value must be finite")
        return cls(low, high)

    def seen_through(self, directions: Array) -> Box:
        """The same box for a layer whose inputs are products of the features."""
        return replace(self, directions=directions)

    @property
    def n_features(self) -> int:
        return len(self.low)

    @property
    def centre(self) -> Array:
        return np.asarray((self.low + self.high) / 2)

    @property
    def half_widths(self) -> Array:
        return np.asarray((self.high - self.low) / 2)

    def to_inputs(self, features: Array) -> Array:
        """What the layer sees of features, one or several rows."""
        return features if self.directions is None else np.asarray(features @ self.directions.T)

    def to_features(self, inputs: Array) -> Array:
        """The shortest features that the layer sees as these inputs."""
        return inputs if self.directions is None else np.asarray(inputs @ self.directions)
