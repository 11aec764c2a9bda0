"""The entry of the audit: a layer and label sets in, verdicts with proofs out."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.audit.box import Box
from longtail.audit.finding import ARGMAXABLE, UNARGMAXABLE, Audit, Finding
from longtail.audit.label_sets import LabelSets, as_label_sets
from longtail.audit.models.objects import bare_weights, output_layer
from longtail.audit.program import require_highspy
from longtail.audit.question import Question
from longtail.audit.ruler import Ruler
from longtail.audit.search import Search
from longtail.errors import InvalidInput
from longtail.estimator import OutputLayer, Rule
from longtail.files import PathName


def audit(
    model: Any,
    label_sets: Any,
    bias: Any = None,
    *,
    layer: str | None = None,
    threshold: Any = 0.0,
    rule: Rule = "predict",
    candidates: Any = None,
    alternating: bool = False,
    tolerance: float = 1e-12,
    exact: bool = False,
    exact_radii: bool = False,
    box: float | Box = 1.0,
    seen: Any = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    resume: PathName | None = None,
) -> Audit:
    """Decide which label sets a linear output layer can ever give.

    A set is argmaxable if some input x gives every label of the set a score ``weights[i] @ x + bias[i]`` above its
    threshold and every other label one below it (Grivas et al., AAAI 2024). Every verdict carries a proof that is
    checked from the weights alone: an input, or labels whose weights cancel. A set without either is undetermined.

    Parameters
    ----------
    model : OutputLayer, fitted model, or array-like of shape (n_labels, n_inputs)
        The layer of a model, a model that `output_layer` takes, or a row of weights for each label. Bare weights have
        no rule for ties: an input with a score exactly at the threshold gets no set, unless the label's score never
        changes. The layer of a model decides ties as the model does.
    label_sets : LabelSets, Corpus, sparse matrix, array-like of shape (n_sets, n_labels), or list of lists
        A matrix of 0 and 1, or of -1 and +1; a row of zeros asks for an input that gets no label. Or a list of label
        ids, or of label names, for each set. Or a corpus, for its distinct label sets.
    layer : str or None
        With a torch module: the name of its last layer, as in `output_layer`.
    bias : array-like of shape (n_labels,), float or None
        With bare weights: added to the score of each label. It adds a dimension, of which only the half with a positive
        coordinate counts. A layer without bias gives a set exactly if it gives its complement; with a bias it may not.
    threshold : float or array-like of shape (n_labels,)
        With bare weights: the score that a label must exceed.
    rule : {"predict", "topk"}
        With bare weights: "topk" asks whether all labels of the set can score above all others.
    candidates : array-like of shape (n, n_inputs) or None
        Inputs to try first, such as those a model has seen. Needs a layer without a rule for ties.
    alternating : bool
        Claim that all maximal minors of the weights have one sign, as with `dft_matrix`. Then a set is argmaxable
        exactly if it changes at most n_inputs - 1 times along the labels, and proofs that it is not come at once. Needs
        a layer without a rule for ties.
    tolerance : float
        What a certificate may leave of the unit rows it cancels, in the sum of absolute values.
    exact : bool
        Accept only what is proved in exact arithmetic, and use it where float64 cannot decide. Proving that no input
        gets a set takes part of a second in 50 dimensions and several in 100. Needs a layer without a rule for ties.
    exact_radii : bool
        Solve a linear program for each argmaxable set to find its radius; else radii are lower bounds. Needs highspy
        (``longtail[audit]``).
    box : float or Box
        The centre of a ball has features between minus and plus this number, or in this box.
    seen : array-like or sparse matrix of shape (n, n_inputs), Box or None
        Inputs such as those of the training set. A second radius, `Audit.seen_room`, is for balls whose centre has each
        feature in the range of these inputs.
    n_jobs : int or None
        Number of threads; None means every core.
    random_state : int
        Random seed of the inputs that are drawn.
    resume : str, path-like or None
        A folder in which verdicts and their proofs are kept as they are found. An audit of the same layer, label sets
        and options takes them from there, for example after an interruption.

    Returns
    -------
    Audit
        Verdicts, radii and proofs in the order of `label_sets`.

    Raises
    ------
    InvalidInput
        If weights or label sets are not as described, or the weights contradict ``alternating=True``.
    NotEnoughMemory
        If the weights, made dense, do not fit.
    Unavailable
        If exact radii are asked for and highspy is not installed.

    Examples
    --------
    The third label's score is the sum of the others, so no input gets both of them without it:

    >>> found = audit([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[1, 1, 1], [1, 1, 0], [0, 0, 0]])
    >>> found.names.tolist()
    ['argmaxable', 'unargmaxable', 'argmaxable']
    >>> found.example(1, "ABC")["says"]
    'no input can have A and B without C'
    >>> bool(found.recheck(exact=True).all())
    True

    >>> from longtail import Ridge
    >>> model = Ridge(0.1).fit([[1.0, 0.0], [0.0, 1.0]], [[1, 0], [0, 1]])
    >>> audit(model.output_layer(), [[1, 1]]).verdicts.tolist()
    [1]
    """
    weights = bare_weights(model)
    if weights is not None and layer is None:
        decider = OutputLayer.of(weights, bias, threshold=threshold, rule=rule)
    elif bias is not None or np.any(threshold) or rule != "predict":
        raise InvalidInput("bias, threshold and rule go with bare weights; the layer of a model has its own")
    else:
        decider = output_layer(model, layer=layer, n_labels=_width(label_sets))
    sets = as_label_sets(label_sets, decider)
    if sets.members.shape[1] != decider.n_labels:
        raise InvalidInput(f"the label sets have {sets.members.shape[1]} labels, the layer has {decider.n_labels}")
    if not 0 <= tolerance < 1:
        raise InvalidInput(f"tolerance is {tolerance!r}; expected a number from 0 to below 1")
    if decider.at_least is not None and (candidates is not None or alternating or exact):
        raise InvalidInput("candidates, alternating and exact go with layers without a rule for ties (at_least=None)")
    if alternating and (decider.has_offsets or decider.rule != "predict"):
        raise InvalidInput("alternating=True is for layers without bias and threshold, with rule='predict'")
    if exact_radii:
        require_highspy()
    tried = None if candidates is None else _inputs(candidates, decider)
    boxes = [each for each in _boxes(decider, box, seen) if each is not None]
    search = Search(tried, alternating, tolerance, exact, n_jobs, random_state, resume)
    rulers = [Ruler(decider, sets, each, n_jobs) for each in boxes]
    facts: dict[str, Any] = {}
    if decider.at_least is not None:
        question = Question(decider, sets, search, rulers)
        facts, findings, n_features = question.decide(), question.findings, decider.n_features
    else:
        findings, n_features = search.decide(decider, sets), decider.n_inputs
        if alternating:
            _check_claim(decider, sets, findings)
        reached = [(place, found.witness) for place, found in enumerate(findings) if found.witness is not None]
        for ruler in rulers:
            ruler.note([place for place, _ in reached], [witness for _, witness in reached])
    if exact_radii:
        for ruler in rulers:
            ruler.improve()
    rooms = dict(zip(("room", "seen_room"), (ruler.radii(findings) for ruler in rulers), strict=False))
    return Audit.of(sets, findings, decider.n_labels, n_features, layer=decider, **rooms, **facts)


def _width(label_sets: Any) -> int | None:
    """The number of labels of a matrix of label sets; None of other forms."""
    shape: tuple[int, ...] = getattr(label_sets, "shape", ())
    return int(shape[1]) if len(shape) == 2 else None


def _boxes(layer: OutputLayer, box: float | Box, seen: Any) -> tuple[Box, Box | None]:
    """The box of half-width `box`, and the box of the values seen."""
    fixed = box if isinstance(box, Box) else Box.cube(box, layer.n_inputs)
    values = seen if seen is None or isinstance(seen, Box) else Box.seen(seen)
    for each in (fixed, values):
        if each is not None and each.directions is None and each.n_features != layer.n_inputs:
            raise InvalidInput(f"the box has {each.n_features} features, the layer has {layer.n_inputs} inputs")
    return fixed, values


def _inputs(candidates: Any, layer: OutputLayer) -> Array:
    inputs = np.asarray(candidates.toarray() if sparse.issparse(candidates) else candidates)
    if inputs.ndim != 2 or inputs.shape[1] != layer.n_inputs:
        raise InvalidInput(f"candidates has shape {inputs.shape}; expected rows of {layer.n_inputs} features")
    inputs = inputs.astype(np.float64)
    if not np.isfinite(inputs).all():
        raise InvalidInput("candidates contains NaN or infinity; every value must be finite")
    return inputs


def _check_claim(layer: OutputLayer, sets: LabelSets, findings: list[Finding]) -> None:
    """Raise `InvalidInput` if a proof contradicts the claim that all maximal minors have one sign."""
    for block in sets.blocks():
        turns = np.count_nonzero(np.diff(sets.dense(block).astype(np.int8), axis=1), axis=1)
        for count, finding in zip(turns.tolist(), findings[block], strict=True):
            if finding.verdict == (ARGMAXABLE if count >= layer.n_inputs else UNARGMAXABLE):
                found = "an input that gets it" if finding.verdict == ARGMAXABLE else "a proof that no input gets it"
                raise InvalidInput(
                    f"alternating=True, but a label set with {count} alternations has {found}, in {layer.n_inputs} "
                    f"dimensions: the maximal minors of the weights do not all have one sign; leave alternating out"
                )


def audit_classes(weights: Any, bias: Any = None, classes: Any = None, **options: Any) -> Audit:
    """Decide which classes of a softmax layer can ever win: class c has the highest score for some input.

    The same as `audit` with ``rule="topk"`` and one label in each set. A class that cannot win lies in the convex hull
    of others, and its certificate names them. To win, a class must score above every other one: of classes with the
    same weights and bias, none wins.

    Parameters
    ----------
    weights : array-like of shape (n_classes, n_inputs)
    bias : array-like of shape (n_classes,), float or None
    classes : array-like of int or None
        The classes to ask about; all of them by default.
    **options
        `candidates`, `tolerance`, `exact`, `exact_radii`, `box`, `seen`, `n_jobs`, `random_state` and `resume`, as in
        `audit`.

    Returns
    -------
    Audit
        In the order of `classes`.

    Examples
    --------
    The vector in the middle of the triangle of the others never wins:

    >>> audit_classes([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]).verdicts.tolist()
    [-1, 1, 1, 1]
    """
    n = np.shape(weights)[0] if np.ndim(weights) else 0
    chosen = np.arange(n) if classes is None else np.atleast_1d(np.asarray(classes))
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or np.any((chosen < 0) | (chosen >= n)):
        raise InvalidInput(f"classes must be class ids from 0 to {n - 1}, in one list")
    sets = sparse.csr_array((np.ones(len(chosen)), (np.arange(len(chosen)), chosen)), shape=(len(chosen), n))
    return audit(weights, sets, bias, rule="topk", **options)
