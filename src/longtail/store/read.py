"""`read_model`: turn a directory into a state, or raise `ModelFormatError`.

Nothing in the directory is trusted: sizes are compared before memory is allocated. Small files are read and compared
with their checksums; large ones are mapped, so loading takes the same time for a model of any size.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import file_digest
from hashlib import sha256 as digest_of
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import ModelFormatError
from longtail.files import PathName
from longtail.store.files import MANIFEST, open_plain
from longtail.store.invariants import check_csr
from longtail.store.layout import DTYPES, MAX_BYTES, StoredArray, StoredFile, StoredModel, header
from longtail.store.manifest import decode, fingerprint
from longtail.store.mapped import map_whole
from longtail.store.remote import Place, RemoteDirectory, place_of, read_beginning
from longtail.store.state import State
from longtail.store.strings import StringTable

# Reading and hashing a smaller file takes a millisecond or less.
SMALLEST_MAPPED = 1 << 20
_ATTEMPTS = 10
_LOOKS = 3  # at an unchanged manifest before missing files count as lost


class _VanishedError(ModelFormatError):
    """A file that the manifest names is missing: damage, or a save while we read."""


def read_model(directory: PathName, *, verify: bool = False, mmap: bool = True) -> State:
    """Read a model directory.

    Parameters
    ----------
    directory : str or path-like
        A directory written by `write_model`, or the URL of one, whose files are fetched into the cache.
    verify : bool
        Compare the SHA-256 of every file. Otherwise this is done only for files below 1 MiB; for larger files the
        length, the header, the invariants of sparse matrices and truth values are checked.
    mmap : bool
        Map large arrays into memory instead of reading them. The arrays are read-only in both cases.

    Raises
    ------
    ModelFormatError
        If there is no model, or it is damaged, unsafe, or of an unknown format.

    Examples
    --------
    >>> from longtail.store import read_model
    >>> read_model("nowhere")
    Traceback (most recent call last):
    ...
    longtail.errors.ModelFormatError: nowhere: there is no model here (no such directory); ...
    """
    path = place_of(directory)
    try:
        content, unchanged = _manifest_content(path), 0
        for _ in range(_ATTEMPTS):
            try:
                return replace(_state(path, decode(content).model, verify, mmap), fingerprint=fingerprint(content))
            except _VanishedError:
                newer = _manifest_content(path)
                # The model may have been replaced and restored in between, so an unchanged manifest is tried again.
                unchanged = unchanged + 1 if newer == content else 0
                if unchanged == _LOOKS:
                    raise
                content = newer
    except ModelFormatError as error:
        raise ModelFormatError(f"{path}: {error}") from None
    raise ModelFormatError(f"{path}: the model keeps being saved while it is read; try again")


def inspect_model(directory: PathName) -> dict[str, Any]:
    """Describe a model directory from its manifest alone.

    Returns
    -------
    dict
        ``kind``, ``fingerprint`` (the SHA-256 of the manifest), ``format_version``, ``written_by`` (versions by name),
        ``n_labels`` (or None), ``params``, ``bytes`` (of all arrays), ``parts`` (kinds by dotted name),
        ``part_params`` (parameters by dotted name) and ``arrays`` (a list of dicts: name, type, dtype, shape, number of
        stored entries, bytes).
    """
    path = place_of(directory)
    try:
        content = _manifest_content(path)
        manifest = decode(content)
    except ModelFormatError as error:
        raise ModelFormatError(f"{path}: {error}") from None
    model = manifest.model
    n_labels = model.facts.get("n_labels")
    return {
        "kind": model.kind,
        "fingerprint": fingerprint(content),
        "format_version": manifest.version,
        "written_by": dict(manifest.written_by),
        "n_labels": n_labels if type(n_labels) is int else None,
        "params": dict(model.params),
        "bytes": sum(file.length for file in model.files()),
        "parts": {".".join(names): part.kind for names, part in model.walk() if names},
        "part_params": {".".join(names): dict(part.params) for names, part in model.walk() if names and part.params},
        "arrays": [
            {
                "name": ".".join((*names, name)),
                "type": array.type,
                "dtype": "str" if array.type == "strings" else DTYPES[next(iter(array.files.values())).dtype].name,
                "shape": array.shape,
                "entries": array.files["data"].shape[0] if array.type == "csr" else math.prod(array.shape),
                "bytes": sum(file.length for file in array.files.values()),
            }
            for names, part in model.walk()
            for name, array in part.arrays.items()
        ],
    }


def _no_model(found: str) -> ModelFormatError:
    return ModelFormatError(f"there is no model here ({found}); give the directory of a saved model")


def _manifest_content(path: Place) -> bytes:
    try:
        if isinstance(path, Path) and not path.is_dir():
            if path.name == MANIFEST and path.is_file():
                raise _no_model("this is a file of a model")
            is_file = path.is_file() or path.parent.is_file()
            raise _no_model("this is a file; a model is a directory" if is_file else "no such directory")
        return read_beginning(path, MANIFEST, MAX_BYTES + 1)
    except FileNotFoundError:
        raise _no_model(f"{MANIFEST} is missing") from None
    except (OSError, ValueError) as error:
        if isinstance(error, ModelFormatError):
            raise
        raise ModelFormatError(f"{MANIFEST} cannot be read: {error}") from None


@dataclass(frozen=True)
class RemoteFile:
    """An array in an object store. It is small to send: each machine that opens it fetches the file into its cache."""

    url: str
    stored: StoredFile

    @property
    def values(self) -> Array:
        """The array, mapped from the cache."""
        return _load(place_of(self.url), self.stored, verify=False, mapped=True)

    def check(self) -> None:
        """Raise an error unless the file is in the object store with its size."""
        if RemoteDirectory(self.url).size(self.stored.name) != self.stored.length:
            raise ModelFormatError(f"{self.url}: {self.stored.name} is missing or has another size")


def saved_at(directory: PathName) -> datetime:
    """When a model was saved."""
    place = place_of(directory)
    if isinstance(place, RemoteDirectory):
        return place.saved_at(MANIFEST)
    return datetime.fromtimestamp(os.stat(place / MANIFEST).st_mtime, UTC)


def _state(path: Place, model: StoredModel, verify: bool, mapped: bool) -> State:
    arrays = {}
    for name, array in model.arrays.items():
        files = {role: _load(path, file, verify, mapped) for role, file in array.files.items()}
        in_full = verify or all(file.length < SMALLEST_MAPPED for file in array.files.values())
        try:
            arrays[name] = _assemble(array, files, in_full)
        except ValueError as error:
            raise ModelFormatError(f"the array {name!r} of {model.kind} is malformed: {error}") from None
    parts = {name: _state(path, part, verify, mapped) for name, part in model.parts.items()}
    return State(model.kind, model.params, model.facts, arrays, parts)


def _assemble(array: StoredArray, files: Mapping[str, Array], in_full: bool) -> Any:
    if array.type == "csr":
        rows, columns = array.shape
        # Always in full: the kernels that multiply sparse matrices trust them.
        check_csr(files["indices"], files["indptr"], columns)
        matrix: Any = sparse.csr_array((files["data"], files["indices"], files["indptr"]), shape=(rows, columns))
        matrix.has_canonical_format = True
        return matrix
    if array.type == "strings":
        table = StringTable(files["bytes"], files["offsets"])
        if in_full:
            table.check()
        return table
    return files["values"]


def _load(place: Place, stored: StoredFile, verify: bool, mapped: bool) -> Array:
    verify = verify or stored.length < SMALLEST_MAPPED
    try:
        remote = RemoteFile(place.url, stored) if isinstance(place, RemoteDirectory) else None
        path = place / stored.name if isinstance(place, Path) else place.fetched(stored, verify=verify)
        with open_plain(path) as file:
            length = os.fstat(file.fileno()).st_size
            if length != stored.length:
                raise ModelFormatError(f"{stored.name} is {length} bytes long; the manifest says {stored.length}")
            buffer: Any
            if mapped and length >= SMALLEST_MAPPED:
                digest = file_digest(file, "sha256") if verify else None
                buffer = map_whole(file, path, length, remote=remote)
            else:
                buffer = file.read(length)
                digest = digest_of(buffer) if verify else None
    except FileNotFoundError:
        raise _VanishedError(f"{stored.name} is missing") from None
    except OSError as error:
        raise ModelFormatError(f"{stored.name} cannot be read: {error}") from None
    if digest is not None and digest.hexdigest() != stored.sha256:
        raise ModelFormatError(f"{stored.name} does not match its checksum: it was damaged or replaced")
    return _as_array(stored, buffer)


def _as_array(stored: StoredFile, buffer: Any) -> Array:
    head = header(stored.dtype, stored.shape)
    if len(buffer) != stored.length or buffer[: len(head)] != head:
        raise ModelFormatError(f"{stored.name} is not the array of dtype {stored.dtype} that the manifest describes")
    array = np.frombuffer(buffer, dtype=DTYPES[stored.dtype], offset=len(head)).reshape(stored.shape)
    # Any other byte in a bool is undefined behaviour in compiled code.
    if stored.dtype == "|b1" and array.size and array.view(np.uint8).max() > 1:
        raise ModelFormatError(f"{stored.name} holds truth values that are neither 0 nor 1")
    return array
