"""`card.json`: the data, the training and the measured quality of a model, for people to read.

The card never decides how a model loads. It names the manifest it was written for, so the card of an earlier model in
the same directory is not shown for a later one. A damaged card is ignored.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from longtail.errors import InvalidInput, ModelFormatError, Unavailable
from longtail.files import PathName
from longtail.store import files, manifest
from longtail.store.layout import MAX_BYTES, plain_value
from longtail.store.remote import Place, RemoteDirectory, place_of, read_beginning

CARD_BYTES = 256 * 2**10
_DEEPEST = 8
_KEY = "manifest"

_NUMBER = (int, float)
_METRICS = {"*": _NUMBER}
# The types of the fields of each section; fields that are not listed may hold any value.
_SECTIONS: dict[str, Any] = {
    "data": {"source": str, "covers": str, "rows": int, "labels": int},
    "trained": {"at": str, "seconds": _NUMBER, "learner": str, "reason": str},
    "updates": {
        "data": str,
        "at": str,
        "updates": int,
        "corrections": int,
        "corrections_until": str,
        "rows_added": int,
        "rows_changed": int,
        "rows_removed": int,
        "due": [str],
    },
    "decision": {
        "aim": str,
        "threshold": _NUMBER,
        "n_rows": int,
        "precision": _NUMBER,
        "recall": _NUMBER,
        "f1": _NUMBER,
        "labels_per_row": _NUMBER,
        "error": _NUMBER,
    },
    "metrics": {
        "data": str,
        "at": str,
        "rows": int,
        "labels": int,
        "metrics": _METRICS,
        "groups": [{"name": str, "train_counts": [int], "n_labels": int, "truth_share": _NUMBER, "metrics": _METRICS}],
    },
    "audit": {
        "data": str,
        "at": str,
        "rule": str,
        "labels": int,
        "label_sets": int,
        "rows": int,
        "argmaxable": int,
        "unargmaxable": int,
        "undetermined": int,
        "rows_unargmaxable": int,
        "reasons": [str],
        "examples": [{"row": int, "rows": int, "labels": [str], "says": str}],
    },
}


def read_card(directory: PathName, of: str | None = None) -> dict[str, Any] | None:
    """Return the sections of a model's card, or None if this model has no card.

    A card that is damaged, too large, or not as `update_card` writes it gives None and a warning. You can rely on the
    types of the fields, but treat their texts as untrusted.

    Parameters
    ----------
    directory : str or path-like
        A model directory.
    of : str or None
        The ``fingerprint_`` of the loaded model; None means the model that is in the directory now.

    Returns
    -------
    dict or None
        Any of the sections ``data``, ``trained``, ``decision``, ``updates``, ``metrics`` and ``audit``.

    Examples
    --------
    >>> from longtail.store import read_card
    >>> read_card("nowhere") is None
    True
    """
    path = place_of(directory)
    try:
        return _read(path, of or _fingerprint(path))
    except (OSError, ValueError):
        return None


def update_card(directory: PathName, *, of: str | None = None, **sections: Mapping[str, Any]) -> None:
    """Write sections into the card of a model; sections of the same name are replaced, the others stay.

    The card is replaced in one step. Updates wait for each other and for processes that save the model.

    Parameters
    ----------
    directory : str or path-like
        A model directory.
    of : str or None
        The ``fingerprint_`` of the loaded model that the sections describe; the card is written only if that model is
        still in the directory.
    **sections : mappings
        ``data``, ``trained``, ``decision``, ``updates``, ``metrics`` or ``audit``; JSON values.

    Raises
    ------
    InvalidInput
        If a section is unknown, or holds a value that a card cannot.
    ModelFormatError
        If there is no model.
    Unavailable
        If another model is in the directory now, or writing fails; the card and the model there stay as they are.

    Examples
    --------
    >>> import tempfile
    >>> from longtail import Ridge
    >>> from longtail.store import read_card, update_card
    >>> directory = tempfile.mkdtemp() + "/model"
    >>> Ridge().fit([[1.0, 0.0], [0.0, 1.0]], [[1, 0], [0, 1]]).save(directory)
    >>> update_card(directory, data={"source": "two rows", "rows": 2, "labels": 2})
    >>> read_card(directory)["data"]["source"]
    'two rows'
    """
    given = checked_sections(sections)
    path = place_of(directory)
    try:
        with files.locked(path) if isinstance(path, Path) else nullcontext():
            fingerprint = _fingerprint(path)
            if of not in (None, fingerprint):
                raise Unavailable(
                    f"the card of {path} was not written: another model has been saved there since; try again"
                )
            put_card(path, fingerprint, given)
    except (FileNotFoundError, NotADirectoryError, _NoManifestError):
        raise ModelFormatError(f"{path}: there is no model here to write a card for") from None
    except OSError as error:
        raise Unavailable(f"the card of {path} could not be written: {error}") from error


def corrections_until(card: Mapping[str, Any] | None) -> datetime | None:
    """The time of the newest correction of tags that a model has learnt, by its card; None if the card does not say.

    >>> corrections_until({"updates": {"corrections_until": "2026-01-31T12:00:00+00:00"}})
    datetime.datetime(2026, 1, 31, 12, 0, tzinfo=datetime.timezone.utc)
    """
    try:
        time = datetime.fromisoformat((card or {}).get("updates", {}).get("corrections_until", ""))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def checked_sections(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sections as plain values, or raise `InvalidInput`."""
    try:
        return _checked(sections)
    except ValueError as error:
        raise InvalidInput(f"the card of a model cannot hold this: {error}") from None


def put_card(directory: Place, fingerprint: str, sections: Mapping[str, Any]) -> None:
    """Write checked sections into the card of the model with this fingerprint; the caller holds the lock."""
    content = _encode(fingerprint, {**(_read(directory, fingerprint) or {}), **sections})
    if isinstance(directory, RemoteDirectory):
        directory.write(files.CARD, content)
        return
    before = os.listdir(directory)
    try:
        files.write_file(directory, files.CARD, (content,))
    except BaseException:
        files.remove_ours(directory, keep=before)
        raise
    files.sync_directory(directory)


class _NoManifestError(ValueError):
    """The file is not a longtail manifest."""


def _fingerprint(directory: Place) -> str:
    content = read_beginning(directory, files.MANIFEST, MAX_BYTES + 1)
    if not manifest.is_manifest(content):
        raise _NoManifestError
    return manifest.fingerprint(content)


def _encode(fingerprint: str, sections: Mapping[str, Any]) -> bytes:
    text = json.dumps({_KEY: fingerprint, **sections}, ensure_ascii=False, allow_nan=False, indent=1)
    content = text.encode("utf-8") + b"\n"
    if len(content) > CARD_BYTES:
        raise InvalidInput(f"the card would take {len(content):,} bytes; the limit is {CARD_BYTES:,}")
    return content


def _read(directory: Place, fingerprint: str) -> dict[str, Any] | None:
    """The sections of the card, or None if the model with this fingerprint has no card."""
    try:
        content = read_beginning(directory, files.CARD, CARD_BYTES + 1)
        if len(content) > CARD_BYTES:
            raise ValueError(f"it is larger than {CARD_BYTES:,} bytes")
        fields = json.loads(content.decode("utf-8"))
        if not isinstance(fields, dict) or not isinstance(fields.get(_KEY), str):
            raise ValueError("it does not name its model")
        if fields.pop(_KEY) != fingerprint:
            return None
        # A later version may have written other sections.
        return _checked({name: section for name, section in fields.items() if name in _SECTIONS})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        warnings.warn(f"{files.CARD} of {directory} is ignored: {reason}", stacklevel=3)
        return None


def _checked(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections as plain values, or raise `ValueError` if one does not match `_SECTIONS`."""
    checked = {}
    for name, section in sections.items():
        if name not in _SECTIONS:
            raise ValueError(f"there is no section {name!r}; sections are {', '.join(_SECTIONS)}")
        checked[name] = plain_value(section, name)
        _check_depth(checked[name], name)
        _check(checked[name], _SECTIONS[name], name)
    return checked


def _check_depth(value: Any, where: str, depth: int = 1) -> None:
    if depth > _DEEPEST:
        raise ValueError(f"{where} is nested more than {_DEEPEST} levels deep")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        _check_depth(item, where, depth + 1)


def _check(value: Any, form: Any, where: str) -> None:
    """Raise `ValueError` unless `value` has the form: a type, a list of one form, or fields by name ("*": any name)."""
    if isinstance(form, list):
        if not isinstance(value, list):
            raise ValueError(f"{where} is not a list")
        for position, item in enumerate(value):
            _check(item, form[0], f"{where}[{position}]")
    elif isinstance(form, dict):
        if not isinstance(value, dict):
            raise ValueError(f"{where} is not an object")
        for name, item in value.items():
            inner = form.get(name, form.get("*"))
            if inner is not None:
                _check(item, inner, f"{where}.{name[:40]}")
    elif not isinstance(value, form) or isinstance(value, bool):
        raise ValueError(f"{where} has the wrong type {type(value).__name__}")
