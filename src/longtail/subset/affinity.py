"""How much each label explains each other label, and how a few labels explain all.

Self-representation writes every label as a sparse combination of the others plus a residual (Barezi et al., NAACL 2019,
equation 8). Co-occurrence and conditional probability only count shared rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.memory import MemoryPlan
from longtail.parameters import Choice, Constraint, Number
from longtail.subset.self_representation import ENTRY_BYTES, Products, Representation, represent
from longtail.validation import as_labels

METHODS = ("self-representation", "co-occurrence", "conditional")
_PARAMETERS: dict[str, Constraint] = {
    "alpha": Number(above=0, high=1e9),
    "tolerance": Number(low=1e-6, high=1),
    "max_iterations": Number(low=1, whole=True),
    "solver": Choice(("descent", "admm")),
}


@dataclass(frozen=True)
class Decoder:
    """Every label as a sparse combination of a few: Y ~ Ys Z + E.

    Attributes
    ----------
    coefficients : csr_array of shape (n_chosen, n_labels)
        Z; its rows are in the order of the subset.
    outlier_norms : array of shape (n_labels,)
        Norm of each label's residual, a column of E = Y - Ys Z.
    objective, bound : float
        The objective reached and a lower bound on the minimum.
    n_iterations : int
        The maximum over all labels.
    """

    coefficients: Any
    outlier_norms: Array
    objective: float
    bound: float
    n_iterations: int

    @property
    def gap(self) -> float:
        """The relative duality gap: an upper bound on how far the objective is above the minimum."""
        return (self.objective - self.bound) / self.objective if self.objective else 0.0


@dataclass(frozen=True)
class Affinity(Decoder):
    """How much labels explain each other: a `Decoder` whose subset is all labels, and whose Z has a zero diagonal.

    For methods that only count, the norms are 0 and the objective and its bound are NaN.
    """

    @cached_property
    def weights(self) -> Any:
        """``weights[i, k]``, the magnitude of ``coefficients[k, i]``, is how much label k explains label i."""
        return sparse.csr_array(abs(self.coefficients).T)


def label_affinity(
    Y: Any,
    method: str = "self-representation",
    *,
    alpha: float = 10.0,
    tolerance: float = 1e-4,
    max_iterations: int = 10_000,
    solver: str = "descent",
    n_jobs: int | None = None,
) -> Affinity:
    """How much each label explains each other label.

    Parameters
    ----------
    Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
    method : {"self-representation", "co-occurrence", "conditional"}
        The weight of label k for label i.

        - self-representation: the magnitude of k's coefficient in the best sparse combination of labels for i. Labels
          with the same rows share the weight.
        - co-occurrence: the cosine of the two columns, the number of shared rows over the geometric mean of their
          rows.
        - conditional: the share of the rows of i that also have k.
    alpha : float
        Weight of residuals in the self-representation: minimise ``abs(Z).sum() + alpha * norm(Y - Y @ Z,
        axis=0).sum()`` with a zero diagonal. With a small alpha, labels explain nothing.
    tolerance : float
        Relative duality gap at which a label has converged.
    max_iterations : int
        A label that has not converged by then keeps the best point found; see `Affinity.gap`.
    solver : {"descent", "admm"}
        Coordinate descent on a working set of labels, or linearised ADMM over all of them. Both solve the same program
        with the same certificate; descent is much faster.
    n_jobs : int or None
        Threads; None uses every core. The result does not depend on it.

    Returns
    -------
    Affinity

    Notes
    -----
    Only labels that share rows with a label, or with labels that explain it, can explain it. So the coefficients are
    sparse, and yet the lower bound holds for the program over all pairs of labels.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1], [0, 0, 1]])
    >>> label_affinity(Y, "conditional").weights.toarray().round(2).tolist()
    [[0.0, 0.67, 0.33], [1.0, 0.0, 0.0], [0.5, 0.0, 0.0]]
    >>> twins = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    >>> affinity = label_affinity(twins)
    >>> affinity.weights.toarray().tolist(), affinity.outlier_norms.tolist()
    ([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [0.0, 0.0, 1.0])
    >>> affinity.gap < 1e-4
    True
    """
    options = {"alpha": alpha, "tolerance": tolerance, "max_iterations": max_iterations, "solver": solver}
    _check("label_affinity", {"method": method} | options, {"method": Choice(METHODS)} | _PARAMETERS)
    Y = as_labels(Y)
    gram = _shared_rows(Y, Y)
    if method != "self-representation":
        return _counted(gram, method)
    products = Products(gram, gram, gram.diagonal(), np.arange(Y.shape[1]), own_allowed=False)
    found = represent(products, alpha, tolerance, max_iterations, solver, n_jobs)
    return Affinity(found.coefficients, found.norms, *_certificate(found))


def sparse_decoder(
    Y: Any,
    subset: Any,
    *,
    alpha: float = 10.0,
    tolerance: float = 1e-4,
    max_iterations: int = 10_000,
    solver: str = "descent",
    n_jobs: int | None = None,
) -> Decoder:
    """Write all labels as sparse combinations of the labels of a subset.

    Parameters
    ----------
    Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
    subset : array-like of shape (n_chosen,)
        Distinct label ids.
    alpha, tolerance, max_iterations, solver, n_jobs
        As in `label_affinity`. With an alpha of at least 1, labels of the subset are represented exactly by themselves.

    Returns
    -------
    Decoder

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]])
    >>> decoder = sparse_decoder(Y, [0, 2])
    >>> decoder.coefficients.toarray().round(3).tolist()
    [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.465]]
    """
    options = {"alpha": alpha, "tolerance": tolerance, "max_iterations": max_iterations, "solver": solver}
    _check("sparse_decoder", options, _PARAMETERS)
    Y = as_labels(Y)
    labels = check_subset(subset, Y.shape[1])
    chosen = sparse.csr_array(Y[:, labels])
    targets = _shared_rows(Y, chosen)
    squares = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.float64)
    own = np.full(Y.shape[1], -1)
    own[labels] = np.arange(len(labels))
    products = Products(sparse.csr_array(targets[labels]), targets, squares, own, own_allowed=True)
    found = represent(products, alpha, tolerance, max_iterations, solver, n_jobs)
    return Decoder(found.coefficients, found.norms, *_certificate(found))


def _shared_rows(Y: Any, chosen: Any) -> Any:
    """The number of rows that each label shares with each chosen label: Y' chosen, as CSR with sorted indices."""
    most = float(np.diff(Y.indptr).astype(np.float64) @ np.diff(chosen.indptr))
    entries = int(min(most, Y.shape[1] * chosen.shape[1]))
    MemoryPlan(
        "counting the rows that labels share",
        {"pairs of labels": 3 * ENTRY_BYTES * entries},
        "Leave out rare labels, or rows with very many labels.",
    ).check()
    gram = sparse.csr_array(Y.T.astype(np.float64)) @ chosen.astype(np.float64)
    gram.sort_indices()
    return gram


def _counted(gram: Any, method: str) -> Affinity:
    counts = gram.diagonal()
    rows = np.repeat(np.arange(len(counts)), np.diff(gram.indptr))
    scale = np.sqrt(counts[rows] * counts[gram.indices]) if method == "co-occurrence" else counts[rows]
    data = gram.data / scale
    data[rows == gram.indices] = 0
    weights = sparse.csr_array((data, gram.indices, gram.indptr), shape=gram.shape)
    weights.eliminate_zeros()
    return Affinity(sparse.csr_array(weights.T), np.zeros(len(counts)), np.nan, np.nan, 0)


def _certificate(found: Representation) -> tuple[float, float, int]:
    return float(found.objectives.sum()), float(found.bounds.sum()), int(found.iterations.max(initial=0))


def check_subset(subset: Any, n_labels: int) -> Array:
    """Distinct label ids as an int64 array, or `InvalidInput`."""
    labels = np.asarray(subset)
    if labels.ndim != 1 or len(labels) == 0 or labels.dtype.kind not in "iu":
        raise InvalidInput(
            f"subset has shape {labels.shape} and dtype {labels.dtype}; expected a list of at least one label id"
        )
    outside = labels[(labels < 0) | (labels >= n_labels)]
    if len(outside):
        raise InvalidInput(f"subset contains the label id {outside[0]}; Y has the labels 0 to {n_labels - 1}")
    if len(np.unique(labels)) < len(labels):
        raise InvalidInput("subset contains a label id more than once")
    return labels.astype(np.int64)


def _check(owner: str, values: Mapping[str, Any], table: Mapping[str, Constraint]) -> None:
    for name, constraint in table.items():
        if not constraint.accepts(values[name]):
            raise InvalidInput(f"{owner}: {name} is {values[name]!r}; expected {constraint.describe()}")
