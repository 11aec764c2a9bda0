"""`SparseOutput`: features of texts stay sparse matrices, whatever output scikit-learn is set to."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import TransformerMixin


class SparseOutput(TransformerMixin):
    """A transformer whose `set_output` is accepted and has no effect.

    scikit-learn puts results into data frames on request, and fails if they are sparse. Rows of text features are too
    wide to be anything else.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(auto_wrap_output_keys=None, **options)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Return the transformer as it is: its rows stay sparse."""
        return self
