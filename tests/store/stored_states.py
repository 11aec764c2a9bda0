"""Example states, exact comparison, and the tools of an attacker who can recompute every checksum."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from longtail.store import State, StringTable
from longtail.store.layout import DTYPES


def example_state(shift: int = 0, *, large: bool = False) -> State:
    """A state with every type of array; another `shift` changes some of the arrays."""
    matrix = sparse.csr_array(
        (np.arange(5, dtype=np.float32) + shift, np.array([0, 2, 1, 0, 3], np.int32), np.array([0, 2, 2, 5], np.int32)),
        shape=(3, 4),
    )
    matrix.indices[2:] = [0, 1, 3]
    inner = State(
        "Ridge",
        params={"alpha": 0.5, "positive": False, "solver": "auto", "seed": None},
        facts={"n_features": 3, "grid": [0.1, 1.0]},
        arrays={
            "coef": matrix,
            "bias": np.linspace(-1, 1, 300_000 if large else 4, dtype=np.float32) + np.float32(shift),
            "mask": np.array([True, False, True]),
        },
    )
    return State(
        "Tagger",
        params={"k": 5},
        facts={"n_labels": 4, "shift": shift},
        arrays={
            "label_names": ("Äpfel", "", "naïve 🍎", f"label {shift}"),
            "counts": np.arange(6, dtype=np.int64).reshape(2, 3),
            "empty": np.zeros((0, 7), dtype=np.float64),
            "scalar": np.array(3, dtype=np.uint8),
        },
        parts={"estimator": inner},
    )


def same(one: Any, other: Any) -> bool:
    """Whether two states are equal in every type, name, dtype, shape and byte."""
    if isinstance(one, State):
        return (
            isinstance(other, State)
            and one.kind == other.kind
            and _same_json(one.params, other.params)
            and _same_json(one.facts, other.facts)
            and list(one.arrays) == list(other.arrays)
            and list(one.parts) == list(other.parts)
            and all(same(one.arrays[name], other.arrays[name]) for name in one.arrays)
            and all(same(one.parts[name], other.parts[name]) for name in one.parts)
        )
    if isinstance(one, tuple | StringTable):
        return isinstance(other, tuple | StringTable) and tuple(one) == tuple(other)
    if sparse.issparse(one):
        return (
            sparse.issparse(other)
            and one.shape == other.shape
            and all(same(getattr(one, role), getattr(other, role)) for role in ("data", "indices", "indptr"))
        )
    return (
        isinstance(other, np.ndarray)
        and one.dtype == other.dtype
        and one.shape == other.shape
        and one.tobytes() == other.tobytes()
    )


def _same_json(one: Any, other: Any) -> bool:
    return json.dumps(dict(one)) == json.dumps(dict(other))


def check_sound(state: State) -> None:
    """Assert that a loaded state keeps the invariants that the rest of the program relies on."""
    for array in state.arrays.values():
        if isinstance(array, StringTable):
            assert all(isinstance(text, str) and text.encode("utf-8") is not None for text in array)
        elif sparse.issparse(array):
            checked = sparse.csr_array((array.data, array.indices, array.indptr), shape=array.shape)
            checked.check_format(full_check=True)
            assert checked.has_canonical_format
        else:
            assert isinstance(array, np.ndarray)
            assert array.dtype.str in DTYPES
            assert not array.flags.writeable
    for part in state.parts.values():
        check_sound(part)


def fields_of(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    return found


def sealed(fields: Any, version: str = "1") -> bytes:
    """A manifest with any content and a matching checksum."""
    if isinstance(fields, dict):
        fields = json.dumps({k: v for k, v in fields.items() if k not in ("format", "version", "sha256")})
    return sealed_text(fields.encode("utf-8", "surrogatepass"), version)


def sealed_text(text: bytes, version: str = "1") -> bytes:
    rest = text.removeprefix(b"{")
    first = f'{{"format": "longtail-model", "version": {version}, "sha256": "{sha256(rest).hexdigest()}",\n'
    return first.encode() + rest


def replace_file(directory: Path, fields: dict[str, Any], entry: dict[str, Any], content: bytes) -> None:
    """Write `content` to the file of `entry` in the manifest, with matching name, checksum and length."""
    digest = sha256(content).hexdigest()
    name = f"hostile-{digest[:16]}.npy"
    (directory / name).write_bytes(content)
    entry.update(name=name, sha256=digest, length=len(content))
    (directory / "manifest.json").write_bytes(sealed(fields))
