"""`verify_thoroughly`: what 64-bit floats leave open is tried once more in exact arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from longtail.audit.result import UNDETERMINED, Audit
from longtail.audit.verification import verify

MOST_EXACT_DIMENSIONS = 60  # exact certificates take a second or two of these, and the fifth power of it beyond


def verify_thoroughly(W: Any, label_sets: Any, bias: Any = None, **options: Any) -> Audit:
    """`verify`, and again with ``exact=True`` for the sets it leaves undetermined, in up to 60 dimensions.

    Parameters
    ----------
    W, label_sets, bias, **options
        As for `verify`.

    Examples
    --------
    >>> audit = verify_thoroughly([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[1, 1, 0], [0, 0, 0]])
    >>> audit.verdicts.tolist()
    [-1, 1]
    """
    audit = verify(W, label_sets, bias, **options)
    left = np.flatnonzero(audit.verdicts == UNDETERMINED)
    if not len(left) or audit.layer.n_features > MOST_EXACT_DIMENSIONS:
        return audit
    again = verify(W, audit.label_sets[left], bias, **{**options, "exact": True})
    found = {
        name: getattr(audit, name).copy() for name in ("verdicts", "radii", "radius_is_exact", "witnesses", "methods")
    }
    for name, values in found.items():
        values[left] = getattr(again, name)
    certificates = list(audit.certificates)
    for place, certificate in zip(left.tolist(), again.certificates, strict=True):
        certificates[place] = certificate
    return replace(audit, **found, certificates=tuple(certificates))
