"""Forged models: an intact model directory with something changed and every checksum recomputed.

`Forger` walks the manifest and the arrays of any model and needs to know nothing about kinds of models. The same seed
gives the same forgery.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.store.layout import DTYPES, header
from tests.store.stored_states import fields_of, sealed

Node = dict[str, Any]

WHOLE = [0, 1, 2, -1, -2, 3, 7, 100, 2**15, 10**6, 2**31 - 1, 2**31, 2**40]
WHOLE += [2**63 - 1, 2**63, 2**64 - 1, -(2**63)]
OTHERS = [None, True, False, 0.5, -0.5, 1e-300, 1e308, -1e308, "", "x", "auto", "dense", "primal", [], [0], [1, 2], {}]
OTHERS += [[2**31] * 3, [1] * 200, {"a": 1}, "\x1b[31m\u202e", [[1]], ["x"], [0.5, -1], [1, 10**9]]
FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 3e38, -3e38, 1e30, 1e-45, 0.5, 2.0**31]


class Forger:
    """Forgeries of the model in `source`, each written to `target` over the one before."""

    def __init__(self, source: Path, target: Path) -> None:
        self.target = target
        target.mkdir(parents=True, exist_ok=True)
        self.fields = fields_of(source)
        for node in nodes_of(self.fields["model"]):
            for stored in node["arrays"].values():
                stored["files"] = {
                    role: np.load(source / entry["name"], allow_pickle=False) for role, entry in stored["files"].items()
                }

    def forge(self, seed: int) -> str:
        """Write the forgery with this number and return its changes."""
        rng = np.random.default_rng(seed)
        wanted = int(rng.choice([1, 1, 1, 2, 3]))
        fields, done = copy.deepcopy(self.fields), []
        while len(done) < wanted:
            done += one_change(fields["model"], rng)
        self.write(fields)
        return "; ".join(done)

    def forge_by(self, seeds: Iterable[int]) -> None:
        """Write the forgery with one change for each of the seeds; equal seeds give equal changes."""
        fields = copy.deepcopy(self.fields)
        for seed in seeds:
            one_change(fields["model"], np.random.default_rng(seed))
        self.write(fields)

    def write(self, fields: Node) -> None:
        """Write a manifest whose files are still arrays, with all checksums."""
        for path in self.target.iterdir():
            path.unlink()
        fields, number = copy.copy(fields), 0
        fields["model"] = copy.deepcopy(fields["model"])
        for node in nodes_of(fields["model"]):
            for stored in node["arrays"].values():
                for role, values in stored["files"].items():
                    content = header(values.dtype.str, values.shape) + np.ascontiguousarray(values).tobytes()
                    digest = sha256(content).hexdigest()
                    name = f"a{number}-{digest[:16]}.npy"
                    number += 1
                    (self.target / name).write_bytes(content)
                    stored["files"][role] = {
                        "name": name,
                        "sha256": digest,
                        "length": len(content),
                        "dtype": values.dtype.str,
                        "shape": list(values.shape),
                    }
        (self.target / "manifest.json").write_bytes(sealed(fields))


def nodes_of(node: Node) -> Iterator[Node]:
    """A model of a manifest and all parts below it."""
    yield node
    for part in node["parts"].values():
        yield from nodes_of(part)


def pick(rng: np.random.Generator, choices: list[Any]) -> Any:
    if not choices:
        raise LookupError
    return choices[rng.integers(len(choices))]


def hostile_value(rng: np.random.Generator, old: Any, others: list[Any]) -> Any:
    """A replacement of a value: nearby, of another type, from another place, or far out of range."""
    if type(old) is int and rng.random() < 0.3:
        return old + int(pick(rng, [-1, 1, -old, old, 2]))
    if type(old) is list and old and rng.random() < 0.6:
        new = list(old)
        new[rng.integers(len(new))] = pick(rng, WHOLE + OTHERS)
        return pick(rng, [new, old[:-1], old * 2, old[::-1]])
    return copy.deepcopy(pick(rng, pick(rng, [WHOLE, OTHERS, others or WHOLE])))


def named_values(root: Node, which: str) -> list[tuple[Node, str]]:
    return [(node[which], name) for node in nodes_of(root) for name in node[which]]


def change_value(root: Node, rng: np.random.Generator, which: str) -> str:
    places = named_values(root, which)
    owner, name = pick(rng, places)
    chance = rng.random()
    if chance < 0.06:
        del owner[name]
        return f"{name} is gone"
    if chance < 0.1:
        owner["surprise"] = pick(rng, OTHERS)
        return "a surprise"
    others = [place[key] for place, key in places]
    owner[name] = hostile_value(rng, owner[name], others)
    return f"{name} = {owner[name]!r}"[:200]


def fact(root: Node, rng: np.random.Generator) -> str:
    return change_value(root, rng, "facts")


def param(root: Node, rng: np.random.Generator) -> str:
    return change_value(root, rng, "params")


def same_fact_everywhere(root: Node, rng: np.random.Generator) -> str:
    """Facts that agree only with each other."""
    places = named_values(root, "facts")
    owner, name = pick(rng, places)
    value = pick(rng, WHOLE) if type(owner[name]) is int else hostile_value(rng, owner[name], [])
    for each, key in places:
        if key == name:
            each[key] = value
    return f"{name} = {value!r} everywhere"


def stored_arrays(root: Node) -> list[tuple[Node, str]]:
    return named_values(root, "arrays")


def some_file(root: Node, rng: np.random.Generator) -> tuple[Node, str, str]:
    """An array of the model, its name and one of its roles."""
    owner, name = pick(rng, stored_arrays(root))
    return owner[name], name, pick(rng, sorted(owner[name]["files"]))


def contents(root: Node, rng: np.random.Generator) -> str:
    """Change some or all values of an array, or their order."""
    stored, name, role = some_file(root, rng)
    values = stored["files"][role].copy()
    how = pick(rng, ["few", "few", "few", "all", "bytes", "reversed", "shuffled", "neighbour"])
    flat = values.reshape(-1)
    if flat.size == 0:
        return f"{name}.{role} is empty"
    if values.dtype.kind == "f":
        new = np.array(pick(rng, FLOATS), dtype=np.float64)
        with np.errstate(all="ignore"):
            new = new.astype(values.dtype)
    elif values.dtype.kind == "b":
        new = np.array(bool(rng.integers(2)))
    else:
        info, largest = np.iinfo(values.dtype), int(flat.max())
        new = np.array(
            pick(rng, [info.min, info.max, *(v for v in (-1, 0, 1, largest + 1, 2**31) if info.min <= v <= info.max)]),
            dtype=values.dtype,
        )
    if how == "few":
        flat[rng.integers(flat.size, size=int(rng.integers(1, 4)))] = new
    elif how == "all":
        flat[:] = new
    elif how == "bytes" and values.dtype.kind != "b":
        values = np.frombuffer(rng.bytes(values.nbytes), dtype=values.dtype).reshape(values.shape).copy()
    elif how == "reversed":
        flat[:] = flat[::-1].copy()
    elif how == "shuffled":
        rng.shuffle(flat)
    else:
        flat[rng.integers(flat.size)] = flat[rng.integers(flat.size)]
    stored["files"][role] = values
    return f"{name}.{role} {how} {new}"


def dtype(root: Node, rng: np.random.Generator) -> str:
    stored, name, role = some_file(root, rng)
    values, other = stored["files"][role], DTYPES[pick(rng, list(DTYPES))]
    if rng.random() < 0.5 and values.dtype.itemsize == other.itemsize:
        changed = values.view(other)
    else:
        with np.errstate(all="ignore"):
            changed = values.astype(other)
    stored["files"][role] = changed
    return f"{name}.{role} as {other}"


def shape(root: Node, rng: np.random.Generator) -> str:
    """Change the shape of an array and its file, or of the matrix or table made of its files."""
    stored, name, role = some_file(root, rng)
    values = np.atleast_1d(stored["files"][role])
    if rng.random() < 0.3 and stored["shape"]:
        stored["shape"][rng.integers(len(stored["shape"]))] = pick(rng, [v for v in WHOLE if v >= 0])
        return f"{name} of shape {stored['shape']}"
    how = pick(rng, ["shorter", "longer", "empty", "flat", "turned", "deeper", "doubled"])
    if how == "shorter":
        values = values[:-1]
    elif how == "longer":
        values = np.concatenate([values, values[-1:]])
    elif how == "empty":
        values = values[:0]
    elif how == "flat":
        values = values.reshape(-1)
    elif how == "turned":
        values = np.ascontiguousarray(values.T)
    elif how == "deeper":
        values = values.reshape(*values.shape[:2], -1) if values.ndim < 3 and values.size else values
    else:
        values = np.concatenate([values, values])
    stored["files"][role] = values
    if stored["type"] == "array":
        stored["shape"] = list(values.shape)
    elif role in ("indptr", "offsets"):
        stored["shape"][0] = max(0, len(values) - 1)
    return f"{name}.{role} {how}: {values.shape}"


def size(root: Node, rng: np.random.Generator) -> str:
    """Let one size grow or shrink by a row everywhere, in facts and arrays."""
    numbers = [owner[name] for owner, name in named_values(root, "facts") if type(owner[name]) is int]
    lengths = [n for owner, name in stored_arrays(root) for n in owner[name]["shape"]]
    old = pick(rng, [n for n in numbers + lengths if 0 < n < 10**6] or [1])
    new = old + int(pick(rng, [-1, 1]))
    for owner, name in named_values(root, "facts"):
        if owner[name] == old and type(owner[name]) is int:
            owner[name] = new
    for owner, name in stored_arrays(root):
        stored = owner[name]
        for role, values in stored["files"].items():
            beyond = 1 if role in ("indptr", "offsets") else 0
            for axis in range(values.ndim):
                if values.shape[axis] == old + beyond and (role in ("values", "indptr", "offsets")):
                    values = np.take(values, np.minimum(np.arange(new + beyond), values.shape[axis] - 1), axis)
            stored["files"][role] = values
        stored["shape"] = [new if n == old else n for n in stored["shape"]]
    return f"{old} is {new} everywhere"


def arrays(root: Node, rng: np.random.Generator) -> str:
    """Remove, add or swap arrays, or change their type."""
    places = stored_arrays(root)
    (one, name), (other, other_name) = pick(rng, places), pick(rng, places)
    how = pick(rng, ["dropped", "added", "swapped", "copied", "retyped"])
    if how == "dropped":
        del one[name]
    elif how == "added":
        name = pick(rng, ["thresholds", "calibration0", "node_names", "gram", "surprise"])
        one[name] = copy.deepcopy(other[other_name])
    elif how == "swapped":
        one[name], other[other_name] = other[other_name], one[name]
    elif how == "copied":
        one[name] = copy.deepcopy(other[other_name])
    else:
        values = np.asarray(next(iter(one[name]["files"].values()))).reshape(-1)
        one[name] = pick(rng, [_as_csr, _as_strings, _as_array])(values)
    return f"{name} {how} {other_name}"


def _as_array(values: Array) -> Node:
    return {"type": "array", "shape": list(values.shape), "files": {"values": values}}


def _as_strings(values: Array) -> Node:
    text = np.full(len(values), ord("a"), dtype=np.uint8)
    return {"type": "strings", "shape": [len(text)], "files": {"bytes": text, "offsets": np.arange(len(text) + 1)}}


def _as_csr(values: Array) -> Node:
    data = values.astype(np.float32)
    indices, indptr = np.zeros(len(data), dtype=np.int32), np.arange(len(data) + 1, dtype=np.int32)
    files = {"data": data, "indices": indices, "indptr": indptr}
    return {"type": "csr", "shape": [len(data), 2**31 - 1], "files": files}


def parts(root: Node, rng: np.random.Generator) -> str:
    """Remove, add or swap parts, or change their kind."""
    owners = [node for node in nodes_of(root) if node["parts"]]
    kinds = sorted({node["kind"] for node in nodes_of(root)} | {"Ridge", "LabelTree", "Tagger", "Weights", "Nothing"})
    if not owners or rng.random() < 0.2:
        node = pick(rng, list(nodes_of(root)))
        node["kind"] = pick(rng, kinds)
        return f"kind {node['kind']}"
    one, other = pick(rng, owners), pick(rng, owners)
    name, other_name = pick(rng, sorted(one["parts"])), pick(rng, sorted(other["parts"]))
    how = pick(rng, ["dropped", "copied", "added"])
    if how == "dropped":
        del one["parts"][name]
    else:
        place = name if how == "copied" else pick(rng, ["tree1", "network1", "outliers", "surprise"])
        one["parts"][place] = copy.deepcopy(other["parts"][other_name])
    return f"{name} {how} {other_name}"


# Contents and numbers reach furthest into a model, so they are tried most.
CHANGES: list[Callable[[Node, np.random.Generator], str]] = [
    *([fact] * 3),
    *([param] * 3),
    *([contents] * 6),
    *([shape] * 2),
    *([size] * 2),
    *([same_fact_everywhere] * 2),
    dtype,
    arrays,
    parts,
]


def one_change(root: Node, rng: np.random.Generator) -> list[str]:
    """Change something; return the changes, or nothing if the model has no such thing."""
    change = pick(rng, CHANGES)
    try:
        return [f"{change.__name__}: {change(root, rng)}"]
    except LookupError:
        return []
