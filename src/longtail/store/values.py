"""JSON values: what parameters and facts may hold, checked alike when a model is written and when it is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_DEEPEST = 32
_LARGEST = 2**64


def plain_value(value: Any, where: str, depth: int = 0) -> Any:
    """Return `value` as plain JSON (NumPy scalars become Python's, tuples lists), or raise `ValueError`.

    Examples
    --------
    >>> import numpy as np
    >>> plain_value({"alpha": np.float64(0.5), "counts": (1, 2)}, "facts")
    {'alpha': 0.5, 'counts': [1, 2]}
    """
    if depth > _DEEPEST:
        raise ValueError(f"{where} is nested more than {_DEEPEST} levels deep")
    if isinstance(value, list | tuple):
        return [plain_value(item, f"{where}[{position}]", depth + 1) for position, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key, where): plain_value(item, f"{where}.{key}", depth + 1) for key, item in value.items()}
    return plain_scalar(value, where)


def plain_scalar(value: Any, where: str) -> Any:
    """Return `value` as None, bool, int, float or str, or raise `ValueError`."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if type(value) is int:
        if abs(value) >= _LARGEST:
            raise ValueError(f"{where} is a whole number beyond 64 bits")
        return value
    if type(value) is float:
        if not math.isfinite(value):
            raise ValueError(f"{where} is {value}; only finite numbers can be stored")
        return value
    if type(value) is str:
        return _text(value, where)
    raise ValueError(f"{where} is of type {type(value).__name__}, which cannot be stored")


def _key(key: Any, where: str) -> str:
    if type(key) is not str:
        raise ValueError(f"{where} has the key {key!r}; keys are strings")
    return _text(key, f"a key of {where}")


def _text(text: str, where: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{where} holds half of a surrogate pair and is not valid Unicode") from None
    return text
