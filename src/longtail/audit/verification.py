"""Verdicts on label sets: cheap witnesses first, then the nearest point, then linear programs; each one re-checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from longtail.audit.checks import certificate_residual, check_witnesses
from longtail.audit.layer import Array, Layer, make_layer
from longtail.audit.nearest import nearest_point
from longtail.audit.program import solve_whole
from longtail.audit.result import (
    ARGMAXABLE,
    UNARGMAXABLE,
    UNDETERMINED,
    Audit,
    Certificate,
    block_of_sets,
    dense_members,
)
from longtail.errors import InvalidInput
from longtail.parallel import map_blocks, split
from longtail.validation import as_labels


def verify(
    W: Any,
    label_sets: Any,
    bias: Any = None,
    *,
    threshold: Any = 0.0,
    semantics: str = "sign",
    candidates: Any = None,
    alternating: bool = False,
    tolerance: float = 1e-12,
    exact: bool = False,
    exact_radii: bool = False,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Audit:
    """Decide which label sets a linear output layer can ever give.

    Examples
    --------
    Three labels in a plane: all but two of the eight sets can be had.

    >>> import numpy as np
    >>> W = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> audit = verify(W, [[1, 1, 1], [1, 1, 0], [0, 0, 0]])
    >>> audit.names.tolist()
    ['argmaxable', 'unargmaxable', 'argmaxable']
    >>> bool(audit.recheck(exact=True).all())
    True
    """
    layer = make_layer(W, bias, threshold, semantics)
    sets = as_labels(label_sets, name="label_sets")
    if sets.shape[1] != layer.n_labels:
        raise InvalidInput(
            f"label_sets has {sets.shape[1]} columns, but W has {layer.n_labels} rows, one for each label"
        )
    n_sets = sets.shape[0]
    verdicts = np.zeros(n_sets, dtype=np.int8)
    radii = np.full(n_sets, np.nan)
    is_exact = np.zeros(n_sets, dtype=bool)
    witnesses = np.full((n_sets, layer.n_features), np.nan)
    methods = np.full(n_sets, "none", dtype=object)
    certificates: list[Certificate | None] = [None] * n_sets
    for block in split(n_sets, block_of_sets(layer)):
        members = dense_members(sets, block)

        def decide(place: int, members: Array = members) -> tuple[Any, ...]:
            return _decide(layer, members[place], tolerance)

        for place, found in enumerate(map_blocks(decide, range(len(members)), n_jobs)):
            index = block.start + place
            verdicts[index], radii[index], is_exact[index], witness, certificates[index], methods[index] = found
            if witness is not None:
                witnesses[index] = witness
    return Audit(verdicts, radii, is_exact, witnesses, tuple(certificates), methods, layer, sets)


def _decide(layer: Layer, members: Array, tolerance: float) -> tuple[Any, ...]:
    impossible = np.flatnonzero(layer.empty & members)
    if layer.semantics == "sign" and len(impossible):
        return UNARGMAXABLE, 0.0, True, None, Certificate(impossible[:1], np.ones(1), 0.0), "zero"
    signs = layer.signs(members[None, :])[0]
    for method in ("nearest", "program"):
        found = nearest_point(layer.rows, signs) if method == "nearest" else solve_whole(layer.rows, signs)
        if found is None:
            continue
        x = layer.to_inputs(found.point[None, :])
        if check_witnesses(layer, members[None, :], x)[0]:
            largest = float(np.abs(found.point).max())
            radius = float((signs * (layer.rows @ found.point)).min()) / (largest or 1.0)
            return ARGMAXABLE, radius, False, x[0], None, method
        labels = layer.labels[found.support]
        kept = labels >= 0
        labels, weights = labels[kept], found.weights[kept]
        residual = certificate_residual(layer, members, labels, weights)
        if residual <= tolerance:
            order = np.argsort(labels)
            return (
                UNARGMAXABLE,
                0.0,
                True,
                None,
                Certificate(labels[order], (weights / weights.sum())[order], residual),
                method,
            )
    return UNDETERMINED, np.nan, False, None, None, "none"


def verify_classes(
    W: Any,
    bias: Any = None,
    classes: Any = None,
    *,
    candidates: Any = None,
    tolerance: float = 1e-12,
    exact: bool = False,
    exact_radii: bool = False,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Audit:
    """Decide which classes of a softmax layer can ever win: class c has the highest score for some input.

    Examples
    --------
    The vector in the middle of the triangle of the others never wins:

    >>> import numpy as np
    >>> audit = verify_classes(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]))
    >>> audit.verdicts.tolist()
    [-1, 1, 1, 1]
    """
    n = len(np.asarray(W))
    chosen = np.arange(n) if classes is None else np.asarray(classes)
    sets = sparse.csr_array((np.ones(len(chosen)), (np.arange(len(chosen)), chosen)), shape=(len(chosen), n))
    return verify(
        W,
        sets,
        bias,
        semantics="topk",
        candidates=candidates,
        tolerance=tolerance,
        exact=exact,
        exact_radii=exact_radii,
        n_jobs=n_jobs,
        random_state=random_state,
    )
