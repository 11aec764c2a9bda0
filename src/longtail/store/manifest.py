"""`manifest.json`: written and read strictly.

The first line names the format, its version, and the SHA-256 of every byte after it, so that damage is found before any
of the content is parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np

from longtail.errors import ModelFormatError
from longtail.store.files import ARRAY_FILE
from longtail.store.layout import (
    DTYPES,
    MAX_BYTES,
    MAX_DIMENSIONS,
    MAX_FILES,
    MAX_PARTS_DEPTH,
    NAME,
    VERSION,
    Manifest,
    StoredArray,
    StoredFile,
    StoredModel,
    file_length,
    plain_value,
)

_FIRST_LINE = re.compile(rb'\{"format": "longtail-model", "version": ([1-9][0-9]{0,3}), "sha256": "([0-9a-f]{64})",\n')
_LONGEST_NUMBER = 40
_FILES = {"array": ("values",), "csr": ("data", "indices", "indptr"), "strings": ("bytes", "offsets")}


def is_manifest(beginning: bytes) -> bool:
    """Whether a file with this beginning is a manifest of this format, of any version, damaged or not."""
    return _FIRST_LINE.match(beginning) is not None


def fingerprint(content: bytes) -> str:
    """The SHA-256 of `manifest.json`, which covers every other file: equal fingerprints mean equal models."""
    return sha256(content).hexdigest()


def encode(manifest: Manifest) -> bytes:
    """The bytes of `manifest.json`."""
    content = {"written_by": dict(manifest.written_by), "model": asdict(manifest.model)}
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1).encode("utf-8")
    rest = text.removeprefix(b"{\n") + b"\n"
    first = f'{{"format": "longtail-model", "version": {VERSION}, "sha256": "{sha256(rest).hexdigest()}",\n'
    return first.encode("ascii") + rest


def decode(content: bytes) -> Manifest:
    """Read the bytes of `manifest.json`, or raise `ModelFormatError`."""
    if len(content) > MAX_BYTES:
        raise ModelFormatError(f"the manifest is larger than {MAX_BYTES} bytes")
    first = _FIRST_LINE.match(content)
    if first is None:
        raise ModelFormatError("the manifest does not begin like that of a longtail model")
    version = int(first[1])
    if version not in _READERS:
        known = ", ".join(map(str, _READERS))
        raise ModelFormatError(
            f"the model has format version {version}; this longtail reads {known}. Load it with a newer longtail"
        )
    if sha256(memoryview(content)[first.end() :]).hexdigest() != first[2].decode("ascii"):
        raise ModelFormatError("the manifest does not match its checksum: it was damaged or edited")
    try:
        fields = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_distinct,
            parse_int=partial(_number, int),
            parse_float=partial(_number, float),
        )
        return _READERS[version](fields)
    except RecursionError:
        raise ModelFormatError("the manifest is nested too deeply") from None
    except ValueError as error:
        raise ModelFormatError(f"the manifest is malformed: {error}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("an object has the same key twice")
    return fields


def _number(kind: type[int] | type[float], literal: str) -> int | float:
    if len(literal) > _LONGEST_NUMBER:
        raise ValueError("a number has too many digits")
    return kind(literal)


class _Format1:
    """Reads format 1: checks every field of the parsed JSON; `ValueError` says which one is wrong."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def manifest(self, fields: Any) -> Manifest:
        _check_keys(fields, ("format", "version", "sha256", "written_by", "model"), "the manifest")
        versions = _object(fields["written_by"], "written_by")
        if not all(type(version) is str for version in versions.values()):
            raise ValueError("written_by holds a version that is not a string")
        return Manifest(plain_value(versions, "written_by"), self.model(fields["model"], "model", 0), version=1)

    def model(self, fields: Any, where: str, depth: int) -> StoredModel:
        if depth > MAX_PARTS_DEPTH:
            raise ValueError(f"{where} lies more than {MAX_PARTS_DEPTH} parts deep")
        _check_keys(fields, ("kind", "params", "facts", "arrays", "parts"), where)
        arrays = {
            _name(name, f"{where}.arrays"): self.array(array, f"{where}.arrays.{name}")
            for name, array in _object(fields["arrays"], f"{where}.arrays").items()
        }
        parts = {
            _name(name, f"{where}.parts"): self.model(part, f"{where}.parts.{name}", depth + 1)
            for name, part in _object(fields["parts"], f"{where}.parts").items()
        }
        return StoredModel(
            kind=_name(fields["kind"], f"{where}.kind"),
            params=plain_value(_object(fields["params"], f"{where}.params"), f"{where}.params"),
            facts=plain_value(_object(fields["facts"], f"{where}.facts"), f"{where}.facts"),
            arrays=arrays,
            parts=parts,
        )

    def array(self, fields: Any, where: str) -> StoredArray:
        _check_keys(fields, ("type", "shape", "files"), where)
        type_, shape = fields["type"], _shape(fields["shape"], where)
        if type(type_) is not str or type_ not in _FILES:
            raise ValueError(f"{where}.type is {_short(type_)}; expected one of {', '.join(_FILES)}")
        _check_keys(fields["files"], _FILES[type_], f"{where}.files")
        files = {role: self.file(fields["files"][role], f"{where}.files.{role}") for role in _FILES[type_]}
        _CHECKS[type_](shape, files, where)
        return StoredArray(type_, shape, files)

    def file(self, fields: Any, where: str) -> StoredFile:
        _check_keys(fields, ("name", "sha256", "length", "dtype", "shape"), where)
        name, digest, dtype = fields["name"], fields["sha256"], fields["dtype"]
        if type(digest) is not str or not re.fullmatch("[0-9a-f]{64}", digest):
            raise ValueError(f"{where}.sha256 is {_short(digest)}; expected 64 hexadecimal digits")
        if type(name) is not str or not ARRAY_FILE.fullmatch(name) or not name.endswith(f"-{digest[:16]}.npy"):
            raise ValueError(f"{where}.name is {_short(name)}; expected a plain name that ends in -{digest[:16]}.npy")
        # A file used twice could make a small directory fill the memory.
        if name in self.names:
            raise ValueError(f"{where}.name is {name}, which another array uses already")
        self.names.add(name)
        if len(self.names) > MAX_FILES:
            raise ValueError(f"the model has more than {MAX_FILES} files")
        if type(dtype) is not str or dtype not in DTYPES:
            raise ValueError(f"{where}.dtype is {_short(dtype)}; expected one of {', '.join(DTYPES)}")
        shape = _shape(fields["shape"], where)
        if type(fields["length"]) is not int or fields["length"] != file_length(dtype, shape):
            raise ValueError(
                f"{where}.length is {_short(fields['length'])}; "
                f"an array of dtype {dtype} and shape {shape} takes {file_length(dtype, shape)} bytes"
            )
        return StoredFile(name, digest, fields["length"], dtype, shape)


def _check_array(shape: tuple[int, ...], files: Mapping[str, StoredFile], where: str) -> None:
    if shape != files["values"].shape:
        raise ValueError(f"{where} has shape {shape} and its file has shape {files['values'].shape}")


def _check_csr(shape: tuple[int, ...], files: Mapping[str, StoredFile], where: str) -> None:
    data, indices, indptr = files["data"], files["indices"], files["indptr"]
    if len(shape) != 2 or any(len(file.shape) != 1 for file in files.values()):
        raise ValueError(f"{where} is not a matrix made of three vectors")
    if indices.dtype not in ("<i4", "<i8") or indptr.dtype != indices.dtype or data.dtype == "<f2":
        raise ValueError(f"{where} has dtypes no sparse matrix has: {data.dtype}, {indices.dtype}, {indptr.dtype}")
    if data.shape != indices.shape or indptr.shape != (shape[0] + 1,):
        raise ValueError(f"{where} has {data.shape[0]} values, {indices.shape[0]} indices, {indptr.shape[0]} pointers")
    if max(shape) > np.iinfo(DTYPES[indices.dtype]).max:
        raise ValueError(f"{where} has shape {shape}, too large for its indices of dtype {indices.dtype}")


def _check_strings(shape: tuple[int, ...], files: Mapping[str, StoredFile], where: str) -> None:
    text, offsets = files["bytes"], files["offsets"]
    if len(shape) != 1 or text.dtype != "|u1" or len(text.shape) != 1:
        raise ValueError(f"{where} is not a list of strings")
    if offsets.dtype != "<i8" or offsets.shape != (shape[0] + 1,):
        raise ValueError(f"{where} has {shape[0]} strings and offsets of shape {offsets.shape}")


_CHECKS: dict[str, Callable[[tuple[int, ...], Mapping[str, StoredFile], str], None]] = {
    "array": _check_array,
    "csr": _check_csr,
    "strings": _check_strings,
}


def _object(value: Any, where: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise ValueError(f"{where} is {_short(value)}; expected an object")
    return value


def _check_keys(value: Any, keys: tuple[str, ...], where: str) -> None:
    if set(_object(value, where)) != set(keys):
        raise ValueError(f"{where} has the keys {_short(sorted(value))}; expected {', '.join(keys)}")


def _name(value: Any, where: str) -> str:
    if type(value) is not str or not NAME.fullmatch(value):
        raise ValueError(f"{where} has the name {_short(value)}; expected letters, digits, dots, dashes, underscores")
    return value


def _shape(value: Any, where: str) -> tuple[int, ...]:
    if (
        type(value) is not list
        or len(value) > MAX_DIMENSIONS
        or any(type(length) is not int or length < 0 for length in value)
    ):
        raise ValueError(f"{where}.shape is {_short(value)}; expected at most {MAX_DIMENSIONS} whole numbers")
    return tuple(value)


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


# Every version ever written stays readable: a new one is added here, none is removed.
_READERS: dict[int, Callable[[Any], Manifest]] = {1: lambda fields: _Format1().manifest(fields)}
