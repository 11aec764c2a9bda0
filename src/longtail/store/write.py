"""`write_model`: write a state to a directory; a kill at any moment leaves the old model or the new one."""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from scipy import sparse

from longtail import progress
from longtail.arrays import Array
from longtail.errors import InvalidInput, Unavailable
from longtail.files import PathName
from longtail.store import cache, files
from longtail.store.card import checked_sections, put_card
from longtail.store.invariants import check_csr
from longtail.store.layout import (
    DTYPES,
    MAX_BYTES,
    MAX_DIMENSIONS,
    MAX_FILES,
    MAX_PARTS_DEPTH,
    NAME,
    Manifest,
    StoredArray,
    StoredFile,
    StoredModel,
    file_length,
    header,
    plain_value,
)
from longtail.store.manifest import encode, fingerprint, is_manifest
from longtail.store.mapped import scratch_behind
from longtail.store.remote import Place, RemoteDirectory, place_of, read_beginning
from longtail.store.spool import Spooled, SpooledCsr
from longtail.store.state import State
from longtail.store.strings import StringTable
from longtail.version import __version__

_LONGEST_HINT = 100


def write_model(
    state: State,
    directory: PathName,
    card: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    replaces: str | None = None,
) -> None:
    """Write a model, replacing an earlier one.

    Array files that have not changed are kept. Readers of the earlier model are not disturbed, not even those that have
    mapped it. If two processes save at once, the last one wins, with its own card, unless `replaces` is given. If the
    card cannot be written, there is only a warning. At a URL, the manifest is written last; there, only one process at
    a time may save.

    Parameters
    ----------
    state : State
        The model.
    directory : str or path-like
        A new directory, an empty one, or one that holds a longtail model; or the URL of one.
    card : mapping or None
        Sections of the card of the model, as for `update_card`.
    replaces : str or None
        The ``fingerprint_`` of the only model that may be replaced; None replaces any.

    Raises
    ------
    InvalidInput
        If the state holds something that cannot be stored, or the directory holds something other than a model, or
        another model than the one to replace.
    Unavailable
        If writing fails; an earlier model is then untouched.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from longtail.store import State, read_model, write_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model(State("Mean", arrays={"mean": np.array([0.5, 2.0])}), f"{folder}/model")
    ...     read_model(f"{folder}/model").arrays["mean"].tolist()
    [0.5, 2.0]
    """
    plan = _Plan(checked_sections(card or {}), replaces)
    model = plan.model(state, ())
    encoded = encode(Manifest(_versions(), model))
    if len(encoded) > MAX_BYTES:
        raise InvalidInput(
            f"the parameters and facts of {state.kind} take {len(encoded)} bytes; the limit is {MAX_BYTES}, "
            f"store long lists as arrays"
        )
    if len(plan.payloads) > MAX_FILES:
        raise InvalidInput(f"{state.kind} has {len(plan.payloads)} arrays, the limit is {MAX_FILES}")
    place = place_of(directory)
    if isinstance(place, RemoteDirectory):
        try:
            _upload(place, encoded, plan)
        except OSError as error:
            raise Unavailable(f"the model could not be saved to {place}: {error}") from error
        return
    # An absolute path always has a parent and a name.
    target = Path(os.path.abspath(place))
    try:
        # Tested once: another process may create the model between two tests.
        if not os.path.lexists(target):
            _create(target, encoded, plan)
        elif target.is_dir():
            _save_over(target, encoded, plan)
        else:
            raise InvalidInput(f"{target} is not a directory; choose another path")
        files.remove_siblings(target)
    except OSError as error:
        raise Unavailable(f"the model could not be saved to {target}: {error}") from error


@dataclass(frozen=True)
class _Payload:
    """A file to write, or one to take over as it is."""

    stored: StoredFile
    blocks: tuple[Any, ...]
    source: Path | None = None

    def put(self, directory: Path) -> None:
        if self.source is None:
            files.write_file(directory, self.stored.name, self.blocks)
        else:
            files.link_file(directory, self.stored.name, self.source)


class _Plan:
    """Checks a state and plans its files before the disk is touched."""

    def __init__(self, card: Mapping[str, Any], replaces: str | None) -> None:
        self.payloads: dict[str, _Payload] = {}
        self.card, self.replaces = card, replaces

    def model(self, state: State, path: tuple[str, ...]) -> StoredModel:
        where = ".".join((state.kind, *path)) if isinstance(state.kind, str) else "the state"
        if len(path) > MAX_PARTS_DEPTH:
            raise InvalidInput(f"{where} lies more than {MAX_PARTS_DEPTH} parts deep")
        for name in (state.kind, *state.arrays, *state.parts):
            if not isinstance(name, str) or not NAME.fullmatch(name):
                raise InvalidInput(f"{where}: {name!r} is not a name of letters, digits, dots, dashes and underscores")
        try:
            params, facts = plain_value(state.params, "params"), plain_value(state.facts, "facts")
            arrays = {name: self.array(value, (*path, name)) for name, value in state.arrays.items()}
        except ValueError as error:
            raise InvalidInput(f"{where} cannot be saved: {error}") from None
        parts = {name: self.model(part, (*path, name)) for name, part in state.parts.items()}
        return StoredModel(state.kind, params, facts, arrays, parts)

    def array(self, value: Any, path: tuple[str, ...]) -> StoredArray:
        where = ".".join(path)
        if isinstance(value, tuple | StringTable):
            return self.strings(value, path, where)
        if isinstance(value, SpooledCsr) or (sparse.issparse(value) and value.format == "csr" and value.ndim == 2):
            return self.csr(value, path, where)
        if not isinstance(value, np.ndarray | Spooled):
            raise ValueError(
                f"the array {where} is a {type(value).__name__}; expected an ndarray, a csr_array or a tuple of str"
            )
        stored = self.file(value, path, where)
        return StoredArray("array", stored.shape, {"values": stored})

    def csr(self, value: Any, path: tuple[str, ...], where: str) -> StoredArray:
        indices, indptr = (each.values if isinstance(each, Spooled) else each for each in (value.indices, value.indptr))
        if indices.dtype != indptr.dtype:
            raise ValueError(f"the sparse matrix {where} has indices and indptr of different dtypes")
        try:
            check_csr(indices, indptr, value.shape[1])
        except ValueError as error:
            raise ValueError(
                f"the sparse matrix {where} is not canonical: {error}; call sum_duplicates first"
            ) from None
        roles = {role: self.file(getattr(value, role), (*path, role), where) for role in ("data", "indices", "indptr")}
        return StoredArray("csr", tuple(int(length) for length in value.shape), roles)

    def strings(self, value: tuple[Any, ...] | StringTable, path: tuple[str, ...], where: str) -> StoredArray:
        if isinstance(value, tuple) and not all(isinstance(text, str) for text in value):
            raise ValueError(f"the table {where} holds values that are not strings")
        try:
            table = value if isinstance(value, StringTable) else StringTable.from_strings(value)
            table.check()
        except UnicodeError as error:
            raise ValueError(f"the table {where} holds a string that is not valid Unicode: {error}") from None
        roles = {
            "bytes": self.file(table.text, (*path, "bytes"), where),
            "offsets": self.file(table.offsets, (*path, "offsets"), where),
        }
        return StoredArray("strings", (len(value),), roles)

    def file(self, array: Array | Spooled, path: tuple[str, ...], where: str) -> StoredFile:
        if isinstance(array, np.ndarray):
            array = scratch_behind(array) or array
        if isinstance(array, Spooled):
            return self.stored(path, array.sha256(), array.dtype, array.shape, (), array.path)
        dtype = array.dtype.newbyteorder("<").str
        if dtype not in DTYPES:
            raise ValueError(f"the array {where} has dtype {array.dtype}; expected bool, integers or floats to 64 bits")
        if array.ndim > MAX_DIMENSIONS:
            raise ValueError(f"the array {where} has {array.ndim} dimensions; expected at most {MAX_DIMENSIONS}")
        values = np.asarray(array, dtype=DTYPES[dtype], order="C")
        head = header(dtype, values.shape)
        digest = sha256(head)
        digest.update(_bytes_of(values))
        return self.stored(path, digest.hexdigest(), dtype, values.shape, (head, _bytes_of(values)))

    def stored(
        self,
        path: tuple[str, ...],
        checksum: str,
        dtype: str,
        shape: tuple[int, ...],
        blocks: tuple[Any, ...],
        source: Path | None = None,
    ) -> StoredFile:
        # Lower case, because some file systems ignore case.
        hint = "-".join(path).lower().replace(".", "_")[:_LONGEST_HINT]
        while (name := f"{hint}-{checksum[:16]}.npy") in self.payloads:
            hint += "_"
        stored = StoredFile(name, checksum, file_length(dtype, shape), dtype, shape)
        self.payloads[name] = _Payload(stored, blocks, source)
        return stored


def _bytes_of(values: Array) -> memoryview:
    # A memoryview with a length of 0 cannot be cast to bytes; a NumPy view can.
    return values.reshape(-1).view(np.uint8).data


def _create(target: Path, encoded: bytes, plan: _Plan) -> None:
    """Write beside `target` and rename, so that the directory is complete as soon as it exists."""
    with files.sibling_of(target) as sibling:
        _write(sibling, encoded, plan.payloads)
        _write_card(sibling, encoded, plan.card)
        try:
            files.rename_directory(sibling, target)
        except OSError:
            if not target.is_dir() or not sibling.is_dir():
                raise
            # Another process has created the model in the meantime.
            _save_over(target, encoded, plan)


def _save_over(directory: Path, encoded: bytes, plan: _Plan) -> None:
    payloads = plan.payloads
    with files.locked(directory):
        before = os.listdir(directory)
        _check_is_model(directory, before, plan.replaces)
        same = _manifest_begins(directory, len(encoded) + 1) == encoded
        try:
            _write(directory, encoded, payloads)
        except BaseException:
            replaced = _manifest_begins(directory, len(encoded) + 1) == encoded
            files.remove_ours(directory, keep=payloads if replaced else before)
            raise
        files.remove_ours(directory, keep=payloads)
        if not same:
            files.remove_card(directory)
        _write_card(directory, encoded, plan.card)


def _upload(target: RemoteDirectory, encoded: bytes, plan: _Plan) -> None:
    """Write to the cache and upload from there; the manifest comes last, so readers see the old model or the new."""
    names = target.names()
    _check_is_model(target, names, plan.replaces)
    with progress.task("uploading", total=sum(each.stored.length for each in plan.payloads.values())) as advance:
        for payload in plan.payloads.values():
            source = cache.put(payload.stored, payload.put, verify=True)
            target.upload(payload.stored, source, advance)
    target.write(files.MANIFEST, encoded)
    _write_card(target, encoded, plan.card)
    for name in names:
        if files.is_ours(name) and name not in plan.payloads:
            target.remove(name)


def check_replaceable(url: PathName) -> bool:
    """Whether there is a model at a URL; raises an error if a model could not be written there."""
    place = place_of(url)
    if isinstance(place, RemoteDirectory):
        names = place.names()
        place.check_writable()
    else:
        names = os.listdir(place) if place.is_dir() else []
    _check_is_model(place, names)
    return files.MANIFEST in names


def _write_card(directory: Place, encoded: bytes, card: Mapping[str, Any]) -> None:
    if not card:
        return
    try:
        put_card(directory, fingerprint(encoded), card)
    except (OSError, InvalidInput, Unavailable) as error:
        warnings.warn(f"the card could not be written: {error}; the model itself is saved", stacklevel=2)


def _write(directory: Path, encoded: bytes, payloads: dict[str, _Payload]) -> None:
    for name, payload in payloads.items():
        if not cache.is_intact(directory / name, payload.stored):
            payload.put(directory)
    files.sync_directory(directory)
    files.write_file(directory, files.MANIFEST, (encoded,))
    files.sync_directory(directory)


def _check_is_model(directory: Place, names: list[str], replaces: str | None = None) -> None:
    if files.MANIFEST in names:
        content = _manifest_begins(directory, MAX_BYTES + 1)
        if not is_manifest(content[:4096]):
            raise InvalidInput(f"{directory} holds a {files.MANIFEST} of something else; choose another directory")
        if replaces not in (None, fingerprint(content)):
            raise InvalidInput(
                f"{directory} was replaced by another process since the model was loaded, so saving would undo that",
                code="model_replaced",
                path=str(directory),
                advice="load it and do the same again",
            )
        return
    others = sorted(name for name in names if not files.is_ours(name))
    if others:
        raise InvalidInput(
            f"{directory} is not a model and not empty (it holds {others[0]!r}); choose another directory"
        )


def _manifest_begins(directory: Place, length: int) -> bytes:
    try:
        return read_beginning(directory, files.MANIFEST, length)
    except (FileNotFoundError, files.SpecialFileError):
        return b""


def _versions() -> dict[str, str]:
    return {
        "longtail": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }
