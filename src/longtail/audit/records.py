"""Findings in files, so that an interrupted audit goes on where it stopped.

Each block of label sets is one file, which appears when it is complete and carries a checksum. Its name tells the
layer, the label sets and the options, so a file of another audit is never taken. A damaged one is computed again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.audit.finding import Certificate, Finding
from longtail.audit.label_sets import LabelSets
from longtail.errors import InvalidInput, reason
from longtail.estimator import OutputLayer
from longtail.files import PathName
from longtail.store import is_sound, read_piece, write_piece
from longtail.version import __version__

_OPEN = 2  # in place of the verdict of a set that a step has not decided


class Records:
    """The findings of one search in a folder.

    Parameters
    ----------
    folder : str or path-like
        Created if it is missing. Several audits may share it.
    layer : OutputLayer
    sets : LabelSets
    options : mapping
        Everything else that findings depend on.
    """

    def __init__(self, folder: PathName, layer: OutputLayer, sets: LabelSets, options: dict[str, Any]) -> None:
        self._folder = Path(folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"cannot keep findings in {self._folder}: {reason(error)}", path=self._folder) from None
        plain = {name: value for name, value in options.items() if not isinstance(value, np.ndarray)}
        digest = sha256(json.dumps([__version__, layer.rule, layer.n_labels, plain], sort_keys=True).encode())
        arrays = [value for value in options.values() if isinstance(value, np.ndarray)]
        for values in (*_parts(layer.weights), layer.offsets, *_parts(sets.members), *arrays):
            array = np.ascontiguousarray(values)
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(array.data)
        self._name = digest.hexdigest()[:32]

    def load(self, step: str, number: int) -> list[Finding | None] | None:
        """The findings of a block; None if they are not there, or damaged."""
        path = self._path(step, number)
        return _findings(read_piece(path)) if is_sound(path) else None

    def save(self, step: str, number: int, findings: Sequence[Finding | None]) -> None:
        """Keep the findings of a block."""
        write_piece(self._path(step, number), _arrays(findings))

    def _path(self, step: str, number: int) -> Path:
        return self._folder / f"{self._name}.{step}.{number}"


def _parts(matrix: Any) -> tuple[Array, ...]:
    if not sparse.issparse(matrix):
        return (matrix,)
    return np.array(matrix.shape), matrix.indptr, matrix.indices, matrix.data


def _arrays(findings: Sequence[Finding | None]) -> dict[str, Array]:
    witnesses = [each.witness for each in findings if each is not None and each.witness is not None]
    proofs = [each.certificate for each in findings if each is not None and each.certificate is not None]
    told = [["", 0, 0] if f is None else [f.method, f.witness is not None, f.certificate is not None] for f in findings]
    return {
        "verdicts": np.array([_OPEN if each is None else each.verdict for each in findings], dtype=np.int64),
        "told": np.frombuffer(json.dumps(told).encode(), dtype=np.uint8),
        "witnesses": np.array(witnesses, dtype=np.float64) if witnesses else np.zeros((0, 0)),
        "starts": np.cumsum([0, *(len(proof.labels) for proof in proofs)], dtype=np.int64),
        "labels": np.concatenate([np.zeros(0, np.int64), *(proof.labels for proof in proofs)]),
        "weights": np.concatenate([np.zeros(0), *(proof.weights for proof in proofs)]),
        "residuals": np.array([proof.residual for proof in proofs], dtype=np.float64),
    }


def _findings(arrays: dict[str, Array]) -> list[Finding | None]:
    witnesses = iter(np.array(arrays["witnesses"]))
    starts = arrays["starts"]
    proofs = iter(
        Certificate(np.array(arrays["labels"][a:b]), np.array(arrays["weights"][a:b]), float(residual))
        for a, b, residual in zip(starts[:-1], starts[1:], arrays["residuals"], strict=True)
    )
    found: list[Finding | None] = []
    told = json.loads(arrays["told"].tobytes())
    for verdict, (method, has_witness, has_proof) in zip(arrays["verdicts"].tolist(), told, strict=True):
        if verdict == _OPEN:
            found.append(None)
            continue
        found.append(
            Finding(verdict, method, next(witnesses) if has_witness else None, next(proofs) if has_proof else None)
        )
    return found
