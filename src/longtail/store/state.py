"""`State`: the parameters, facts and arrays of a fitted model, as plain data."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from longtail.errors import InvalidInput, ModelFormatError
from longtail.parameters import check_parameters
from longtail.store.layout import plain_scalar
from longtail.store.strings import StringTable

LARGEST_SIZE = 2**31 - 1  # the kernels count features and labels in 32 bits


@dataclass(frozen=True)
class State:
    """A model as plain data.

    Parameters
    ----------
    kind : str
        The name of the class.
    params : mapping
        Constructor parameters; JSON values.
    facts : mapping
        Fitted scalars and short lists; JSON values.
    arrays : mapping of str to ndarray, csr_array, tuple of str or StringTable
        Fitted arrays, sparse matrices and tables of strings (a `StringTable` if it was read).
    parts : mapping of str to State
        Models inside this one.
    fingerprint : str
        The SHA-256 of the manifest that the state was read from; it covers every byte of the model.
    """

    kind: str
    params: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, State] = field(default_factory=dict)
    fingerprint: str = field(default="", compare=False)

    def n_bytes(self) -> int:
        """The bytes of all arrays, which are nearly the size of the saved model."""
        return sum(map(_size, self.arrays.values())) + sum(part.n_bytes() for part in self.parts.values())

    def array(self, name: str, dtype: Any, shape: tuple[int | None, ...]) -> Any:
        """Return the array `name`; `ModelFormatError` unless it has the dtype and shape (None: any length)."""
        return self._checked(name, np.ndarray, "an array", dtype, shape)

    def csr(self, name: str, dtype: Any, shape: tuple[int | None, int | None]) -> Any:
        """Return the sparse matrix `name`; `ModelFormatError` unless it has the dtype and shape (None: any length)."""
        return self._checked(name, sparse.csr_array, "a sparse matrix", dtype, shape)

    def string_table(self, name: str, length: int | None = None) -> StringTable:
        """Return the table of strings `name`; `ModelFormatError` unless it has the length (None: any).

        The strings of a large table that was read without verification are checked on access.
        """
        found = self._found(name, (StringTable, tuple), "a table of strings")
        if length is not None and len(found) != length:
            raise ModelFormatError(f"{self.kind}: {name!r} holds {len(found)} strings; expected {length}")
        if isinstance(found, StringTable):
            return found
        if not all(isinstance(text, str) for text in found):
            raise ModelFormatError(f"{self.kind}: {name!r} holds values that are not strings")
        return StringTable.from_strings(found)

    def strings(self, name: str, length: int | None = None) -> tuple[str, ...]:
        """Return all strings of the table `name`; `ModelFormatError` if it is damaged or has another length."""
        return tuple(self.string_table(name, length))

    def fact(self, name: str, kind: type | tuple[type, ...]) -> Any:
        """Return the fact `name`; `ModelFormatError` unless it is of type `kind`. True and False are not numbers."""
        found = self.facts.get(name)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(found, kinds) or (isinstance(found, bool) and bool not in kinds):
            names = " or ".join(each.__name__ for each in kinds)
            raise ModelFormatError(f"{self.kind}: the fact {name!r} is {found!r}; expected {names}")
        return found

    def size(self, name: str, least: int = 0, most: int = LARGEST_SIZE) -> int:
        """Return the fact `name` as a size; `ModelFormatError` unless it is from `least` to `most`.

        It is only a claim: check an array of that length, or a `MemoryPlan`, before you allocate memory by it.
        """
        found: int = self.fact(name, int)
        if not least <= found <= most:
            raise ModelFormatError(f"{self.kind}: the fact {name!r} is {found}; expected {least} to {most}")
        return found

    def part(self, name: str, *kinds: str) -> State:
        """Return the part `name`; `ModelFormatError` unless it is of one of `kinds` (none given: any)."""
        found = self.parts.get(name)
        if found is None:
            raise ModelFormatError(f"{self.kind}: the part {name!r} is missing")
        if kinds and found.kind not in kinds:
            raise ModelFormatError(f"{self.kind}: the part {name!r} is a {found.kind}; expected {' or '.join(kinds)}")
        return found

    def _found(self, name: str, form: type | tuple[type, ...], form_name: str) -> Any:
        found = self.arrays.get(name)
        if found is None:
            raise ModelFormatError(f"{self.kind}: array {name!r} is missing")
        if not isinstance(found, form):
            raise ModelFormatError(f"{self.kind}: {name!r} is a {type(found).__name__}; expected {form_name}")
        return found

    def _checked(self, name: str, form: type, form_name: str, dtype: Any, shape: tuple[int | None, ...]) -> Any:
        found = self._found(name, form, form_name)
        if found.dtype != dtype:
            raise ModelFormatError(
                f"{self.kind}: array {name!r} has dtype {found.dtype}; expected {np.dtype(dtype).name}"
            )
        if len(found.shape) != len(shape) or any(
            want is not None and have != want for have, want in zip(found.shape, shape, strict=True)
        ):
            raise ModelFormatError(f"{self.kind}: array {name!r} has shape {found.shape}; expected {shape}")
        return found


def _size(array: Any) -> int:
    if isinstance(array, StringTable):
        return int(array.text.nbytes + array.offsets.nbytes)
    if isinstance(array, tuple):
        return sum(len(text.encode("utf-8", "surrogatepass")) + 8 for text in array) + 8
    if isinstance(array, sparse.csr_array):
        return int(array.data.nbytes + array.indices.nbytes + array.indptr.nbytes)
    return int(array.nbytes)


def same_state(one: State, other: State) -> bool:
    """Whether two states of arrays, without tables of strings and parts, are equal."""
    return (
        (one.kind, one.params, one.facts, set(one.arrays)) == (other.kind, other.params, other.facts, set(other.arrays))
        and not one.parts
        and not other.parts
        and all(np.array_equal(array, other.arrays[name]) for name, array in one.arrays.items())
    )


def saved_params(estimator: Any, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the constructor parameters of `estimator` for a `State`, except those in `without`.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> saved_params(Ridge(alpha=2.0))["alpha"]
    2.0
    """
    params = {}
    for name, value in estimator.get_params(deep=False).items():
        if name not in without:
            try:
                params[name] = _plain_param(value, name)
            except ValueError as error:
                raise InvalidInput(
                    f"{type(estimator).__name__} cannot be saved with the parameter {name}={value!r}: {error}; "
                    f"only None, True, False, finite numbers, strings and lists of these can be saved"
                ) from None
    return params


def _plain_param(value: Any, name: str) -> Any:
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return [plain_scalar(item, name) for item in value]
    return plain_scalar(value, name)


def check_params(state: State, cls: type, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the parameters of `state`; `ModelFormatError` unless the constructor of `cls` takes them.

    A missing parameter gets its default, because it was added after the model was saved. Lists become tuples.
    """
    accepted = {
        name: parameter
        for name, parameter in inspect.signature(cls).parameters.items()
        if name not in without and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    for name, value in state.params.items():
        if name not in accepted:
            raise ModelFormatError(f"{state.kind}: {cls.__name__} has no parameter {name!r}")
        if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(v, list | dict) for v in value)):
            raise ModelFormatError(
                f"{state.kind}: the parameter {name!r} is {value!r}; expected a value or a flat list"
            )
    for name, parameter in accepted.items():
        if parameter.default is parameter.empty and name not in state.params:
            raise ModelFormatError(f"{state.kind}: the parameter {name!r} of {cls.__name__} is missing")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in state.params.items()}


def rebuilt(state: State, cls: Any) -> Any:
    """Return an unfitted `cls` with the parameters of `state`; `ModelFormatError` if one breaks its constraint."""
    model = cls(**check_params(state, cls))
    try:
        check_parameters(model, cls._parameters)
    except InvalidInput as error:
        raise ModelFormatError(str(error)) from None
    return model
