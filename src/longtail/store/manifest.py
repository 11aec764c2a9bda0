"""`manifest.json`: what a model directory holds, written and read strictly.

The first line names the format, its version, and the SHA-256 of every byte after it, so that damage is told from
content before any of the content is looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from longtail.errors import ModelFormatError
from longtail.store import format1
from longtail.store.layout import MAX_BYTES, VERSION, Manifest, StoredArray, StoredModel

_FIRST_LINE = re.compile(rb'\{"format": "longtail-model", "version": ([1-9][0-9]{0,3}), "sha256": "([0-9a-f]{64})",\n')
_LONGEST_NUMBER = 40
# Every version ever written stays readable: a new one is added here, none is removed.
_READERS: dict[int, Callable[[Any], Manifest]] = {1: format1.read_manifest}


def is_manifest(beginning: bytes) -> bool:
    """Whether a file that begins so is a manifest of this format, of any version, sound or not."""
    return _FIRST_LINE.match(beginning) is not None


def fingerprint(content: bytes) -> str:
    """The SHA-256 of `manifest.json`, which covers every other file: models that have the same are the same."""
    return sha256(content).hexdigest()


def encode(manifest: Manifest) -> bytes:
    """The bytes of `manifest.json`."""
    content = {"written_by": dict(manifest.written_by), "model": _plain_model(manifest.model)}
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
        raise ModelFormatError("the manifest does not begin as one of a longtail model does")
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
            parse_int=_whole_number,
            parse_float=_real_number,
        )
        return _READERS[version](fields)
    except RecursionError:
        raise ModelFormatError("the manifest is nested too deeply") from None
    except ValueError as error:
        raise ModelFormatError(f"the manifest is malformed: {error}") from None


def _plain_model(model: StoredModel) -> dict[str, Any]:
    return {
        "kind": model.kind,
        "params": dict(model.params),
        "facts": dict(model.facts),
        "arrays": {name: _plain_array(array) for name, array in model.arrays.items()},
        "parts": {name: _plain_model(part) for name, part in model.parts.items()},
    }


def _plain_array(array: StoredArray) -> dict[str, Any]:
    files = {
        role: {
            "name": file.name,
            "sha256": file.sha256,
            "length": file.length,
            "dtype": file.dtype,
            "shape": list(file.shape),
        }
        for role, file in array.files.items()
    }
    return {"type": array.type, "shape": list(array.shape), "files": files}


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return fields


def _whole_number(literal: str) -> int:
    if len(literal) > _LONGEST_NUMBER:
        raise ValueError("a number has too many digits")
    return int(literal)


def _real_number(literal: str) -> float:
    if len(literal) > _LONGEST_NUMBER:
        raise ValueError("a number has too many digits")
    return float(literal)
