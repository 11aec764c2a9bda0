"""`State`: what a fitted model is made of, in a form that can be written without code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from longtail.errors import ModelFormatError


@dataclass(frozen=True)
class State:
    """A model taken apart.

    Parameters
    ----------
    kind : str
        The class, by the name under which the loader knows it.
    params : mapping
        Constructor parameters; JSON values.
    facts : mapping
        Fitted scalars and short lists; JSON values.
    arrays : mapping of str to ndarray, csr_array or tuple of str
        Fitted arrays, sparse matrices and tables of strings (a tuple of str).
    parts : mapping of str to State
        Models inside this one.
    """

    kind: str
    params: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, State] = field(default_factory=dict)

    def array(self, name: str, dtype: Any, shape: tuple[int | None, ...]) -> Any:
        """The array `name`, or `ModelFormatError` unless it has the dtype and shape (None: any length)."""
        found = self.arrays.get(name)
        if found is None:
            raise ModelFormatError(f"{self.kind}: array {name!r} is missing")
        if getattr(found, "dtype", None) != dtype:
            raise ModelFormatError(f"{self.kind}: array {name!r} has dtype {getattr(found, 'dtype', type(found))}")
        if len(found.shape) != len(shape) or any(
            want is not None and have != want for have, want in zip(found.shape, shape, strict=True)
        ):
            raise ModelFormatError(f"{self.kind}: array {name!r} has shape {found.shape}; expected {shape}")
        return found

    def fact(self, name: str, kind: type | tuple[type, ...]) -> Any:
        """The fact `name`, or `ModelFormatError` unless it is of type `kind`."""
        found = self.facts.get(name)
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise ModelFormatError(f"{self.kind}: {name!r} is {found!r}")
        return found
