"""Verdicts on label sets: cheap witnesses first, then the nearest point, then linear programs; each one re-checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.audit.finding import ARGMAXABLE, UNARGMAXABLE, Audit, block_of_sets, dense_members
from longtail.audit.program import require_highspy
from longtail.audit.screens import has_few_regions, match_inputs, perceptron, reflect, sample_inputs
from longtail.audit.search import Finding, Settings, as_witness, decide
from longtail.audit.system import Layer, make_layer
from longtail.errors import InvalidInput
from longtail.parallel import blas_threads, map_blocks, resolve_jobs, split
from longtail.validation import as_labels

_SAMPLES = 256
# Fewer label sets than this share too little work.
_FEW = 16


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

    A set is argmaxable if some input x gives every label of the set a score ``W[i] @ x + bias[i]`` above its threshold
    and every other label one below it (Grivas et al., AAAI 2024). Every verdict carries a proof that was checked apart
    from how it was found: an input, or weights under which the rows cancel. What has neither is undetermined.

    Parameters
    ----------
    W : array-like of shape (n_labels, d)
        A row of weights per label. A row of zeros never scores above 0: its label is in no set that can be had, and no
        obstacle to sets without it.
    label_sets : sparse matrix or array-like of shape (n_sets, n_labels)
        0 and 1; a row without labels asks for an input that is given none.
    bias : array-like of shape (n_labels,), float or None
        Turns the question about x into one about (x, 1), so one dimension more, of which only the half with a positive
        last coordinate counts. A layer without bias answers for a set exactly as for its complement; with one it does
        not.
    threshold : float or array-like of shape (n_labels,)
        What a score must exceed.
    semantics : {"sign", "topk"}
        "topk" asks instead whether the labels of the set can all score above all others: a threshold common to all
        labels, that may be anything. Above means above: labels that always score alike are never told apart, whatever
        a model does with them; `audit_layer` asks what it does.
    candidates : array-like of shape (n_inputs, d) or None
        Inputs to try first, such as the ones a model has met.
    alternating : bool
        Say that all maximal minors of W have one sign, as with `dft_matrix`. Then a set can be had exactly if it
        changes at most d - 1 times along the labels, and proofs that it cannot come at once.
    tolerance : float
        What a certificate may leave of the unit rows it cancels, in the sum of absolute values.
    exact : bool
        Accept only what is proved in exact arithmetic, and let it decide where float64 cannot. Proving that a set
        cannot be had takes part of a second in 50 dimensions and several in 100.
    exact_radii : bool
        Solve a linear program for each argmaxable set, for its radius; else radii are lower bounds. Needs highspy
        (``longtail[audit]``).
    n_jobs : int or None
        Threads; None means every core.
    random_state : int
        Seed of the inputs that are drawn.

    Returns
    -------
    Audit
        Verdicts, radii and proofs in the order of `label_sets`.

    Raises
    ------
    InvalidInput
        Where weights or label sets are not as described, or W contradicts ``alternating=True``.
    Unavailable
        Where exact radii are asked for and highspy is not installed.

    Examples
    --------
    The third label's scores are the sum of the others', so it cannot be missing where both of them are:

    >>> import numpy as np
    >>> W = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> audit = verify(W, [[1, 1, 1], [1, 1, 0], [0, 0, 0]])
    >>> audit.names.tolist()
    ['argmaxable', 'unargmaxable', 'argmaxable']
    >>> audit.certificates[1].labels.tolist()
    [0, 1, 2]
    >>> bool(audit.recheck(exact=True).all())
    True
    """
    layer = make_layer(W, bias, threshold, semantics)
    sets = as_labels(label_sets, name="label_sets")
    if sets.shape[1] != layer.n_labels:
        raise InvalidInput(f"label_sets has {sets.shape[1]} columns, but W has {layer.n_labels} rows, one per label")
    if not 0 <= tolerance < 1:
        raise InvalidInput(f"tolerance is {tolerance!r}; expected a number from 0 to below 1")
    if alternating and (layer.has_offsets or semantics != "sign"):
        raise InvalidInput("alternating=True is for layers without bias and threshold, with semantics='sign'")
    if exact_radii:
        require_highspy()
    settings = Settings(tolerance, exact, exact_radii, alternating)
    given = None if candidates is None else _candidates(candidates, layer)
    drawn = sample_inputs(layer, _SAMPLES, np.random.default_rng(random_state)) if has_few_regions(layer) else None
    jobs = resolve_jobs(n_jobs)
    findings: list[Finding] = []
    for block in split(sets.shape[0], block_of_sets(layer)):
        members = dense_members(sets, block)
        # The matrices of one label set are small: threads of BLAS would wait for each other more than they work.
        shared = len(members) >= _FEW
        known: list[Finding | None] = [None] * len(members)
        with blas_threads(jobs if shared else 1):
            guesses = _screen(layer, members, given, drawn, known, shared) if len(layer.rows) else None

            def settle(case: tuple[Array, Finding | None, Array | None]) -> Finding:
                # The point of the system is as large as the witness, and nobody needs it any more.
                return replace(decide(layer, *case, settings), point=None)

            cases = zip(members, known, [None] * len(known) if guesses is None else guesses, strict=True)
            with blas_threads(1):
                findings.extend(map_blocks(settle, cases, jobs, blas=False))
        if alternating:
            _check_claim(layer, members, findings[block])
    return _audit(layer, sets, findings)


def _candidates(candidates: Any, layer: Layer) -> Array:
    inputs = np.asarray(candidates.toarray() if sparse.issparse(candidates) else candidates)
    if inputs.ndim != 2 or inputs.shape[1] != layer.n_features:
        raise InvalidInput(f"candidates has shape {inputs.shape}; expected rows of {layer.n_features} features")
    inputs = inputs.astype(np.float64)
    if not np.isfinite(inputs).all():
        raise InvalidInput("candidates contains NaN or infinity; every value must be finite")
    return inputs


def _screen(
    layer: Layer,
    members: Array,
    given: Array | None,
    drawn: Array | None,
    known: list[Finding | None],
    shared: bool,
) -> Array | None:
    """Note witnesses that cost little, checked; what stays None needs more, and may begin at the points returned."""
    signs = layer.signs(members)
    for method, inputs in (("candidates", given), ("samples", drawn)):
        left = np.flatnonzero([finding is None for finding in known])
        if inputs is None or len(left) == 0:
            continue
        match = match_inputs(layer, members[left], inputs)
        left, match = left[match >= 0], match[match >= 0]
        points = layer.to_points(inputs[match], members[left])
        for place, point in zip(left.tolist(), points, strict=True):
            known[place] = as_witness(layer, members[place], signs[place], point, method, exact=False)
    for place, x in _winners(layer, members, known):
        point = layer.to_points(x[None, :], members[place : place + 1])[0]
        known[place] = as_witness(layer, members[place], signs[place], point, "reflection", exact=False)
    left = np.flatnonzero([finding is None for finding in known])
    # For a few sets alone the nearest point is found in the time that the start of the perceptron takes.
    if not shared or len(left) == 0:
        return None
    guesses = np.zeros((len(members), layer.rows.shape[1]))
    guesses[left], right = perceptron(layer.rows, signs[left])
    for place in left[right].tolist():
        known[place] = as_witness(layer, members[place], signs[place], guesses[place], "perceptron", exact=False)
    return guesses


def _winners(layer: Layer, members: Array, known: list[Finding | None]) -> list[tuple[int, Array]]:
    """Inputs that reflections found, for sets of one label that is to come first."""
    single = (members.sum(axis=1) == 1) & [finding is None for finding in known]
    if layer.semantics != "topk" or not single.any():
        return []
    places = np.flatnonzero(single)
    inputs, wins = reflect(layer, members[places].argmax(axis=1))
    return list(zip(places[wins].tolist(), inputs[wins], strict=True))


def _check_claim(layer: Layer, members: Array, findings: list[Finding]) -> None:
    """Stop where a proof contradicts the claim that all maximal minors have one sign."""
    turns = np.count_nonzero(np.diff(members.astype(np.int8), axis=1), axis=1)
    for count, finding in zip(turns.tolist(), findings, strict=True):
        if finding.verdict == (ARGMAXABLE if count >= layer.n_features else UNARGMAXABLE):
            found = "an input that gives it" if finding.verdict == ARGMAXABLE else "a proof that none does"
            raise InvalidInput(
                f"alternating=True, but a label set with {count} alternations has {found}, in {layer.n_features} "
                f"dimensions: the maximal minors of W do not all have one sign; call verify without alternating"
            )


def _audit(layer: Layer, sets: Any, findings: list[Finding]) -> Audit:
    witnesses = np.full((len(findings), layer.n_features), np.nan)
    for index, finding in enumerate(findings):
        if finding.witness is not None:
            witnesses[index] = finding.witness
    return Audit(
        verdicts=np.array([finding.verdict for finding in findings], dtype=np.int8),
        radii=np.array([finding.radius for finding in findings], dtype=np.float64),
        radius_is_exact=np.array([finding.radius_is_exact for finding in findings], dtype=bool),
        witnesses=witnesses,
        certificates=tuple(finding.certificate for finding in findings),
        methods=np.array([finding.method for finding in findings], dtype=object),
        layer=layer,
        label_sets=sets,
    )


class Options(TypedDict, total=False):
    """What may be said to `verify` of any question; it says what is meant where nothing is."""

    candidates: Any
    tolerance: float
    exact: bool
    exact_radii: bool
    n_jobs: int | None
    random_state: int


def verify_classes(W: Any, bias: Any = None, classes: Any = None, **options: Unpack[Options]) -> Audit:
    """Decide which classes of a softmax layer can ever win: class c has the highest score for some input.

    The same as `verify` with ``semantics="topk"`` and one label in each set. A class that cannot win lies in the convex
    hull of others, and its certificate names them. To win is to score above every other class: of classes with the same
    weights and bias none does.

    Parameters
    ----------
    W : array-like of shape (n_classes, d)
        A row of weights per class.
    bias : array-like of shape (n_classes,), float or None
        What is added to the score of each class.
    classes : array-like of int or None
        The classes to ask about; all of them unless told.
    **options
        `candidates`, `tolerance`, `exact`, `exact_radii`, `n_jobs` and `random_state`, as in `verify`.

    Returns
    -------
    Audit
        In the order of `classes`.

    Raises
    ------
    InvalidInput
        Where weights are not as described, or there is no such class.
    Unavailable
        Where exact radii are asked for and highspy is not installed.

    Examples
    --------
    The vector in the middle of the triangle of the others never wins:

    >>> import numpy as np
    >>> audit = verify_classes(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]))
    >>> audit.verdicts.tolist()
    [-1, 1, 1, 1]
    """
    n = np.shape(W)[0] if np.ndim(W) else 0
    chosen = np.arange(n) if classes is None else np.atleast_1d(np.asarray(classes))
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or np.any((chosen < 0) | (chosen >= n)):
        raise InvalidInput(f"classes must be class ids from 0 to {n - 1}, in one list")
    sets = sparse.csr_array((np.ones(len(chosen)), (np.arange(len(chosen)), chosen)), shape=(len(chosen), n))
    return verify(W, sets, bias, semantics="topk", **options)
