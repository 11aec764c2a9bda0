"""What can be proved about layers that are not linear, or not fixed: the statements of docs/audit.md as tests."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from longtail.arrays import Array
from longtail.audit import ARGMAXABLE, UNARGMAXABLE, audit, audit_classes, has_one_sign_minors


def all_sets(n: int, k: int) -> Array:
    return np.array([np.isin(range(n), chosen) for size in range(k + 1) for chosen in combinations(range(n), size)])


def waves(points: Array, frequencies: Array) -> Array:
    """A constant column, then the cosine and the sine of each frequency at the point of each label."""
    angles = np.outer(points, frequencies)
    columns = [
        np.ones(len(points)),
        *np.stack([np.cos(angles), np.sin(angles)]).transpose(2, 0, 1).reshape(-1, len(points)),
    ]
    return np.stack(columns, axis=1)


# Learned points and learned frequencies.


@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_points_sines_and_cosines_reach_all_small_sets_if_no_two_are_the_same(seed: int) -> None:
    points = np.random.default_rng(seed).uniform(0, 2 * np.pi, size=9)
    weights = waves(points, np.arange(1, 3))
    assert has_one_sign_minors(weights[np.argsort(points)])
    assert (audit(weights, all_sets(9, 2)).verdicts == ARGMAXABLE).all()


def test_two_labels_at_the_same_point_are_given_together() -> None:
    points = np.array([0.5, 1.0, 2.0, 3.5, 5.0, 0.5])
    found = audit(waves(points, np.arange(1, 3)), [[1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 1]])
    assert found.verdicts.tolist() == [UNARGMAXABLE, ARGMAXABLE]


@pytest.mark.parametrize("frequencies", [(1.0, 3.0), (1.0, 2.5), (2.0, 4.0)])
def test_other_frequencies_lose_the_guarantee(frequencies: tuple[float, float]) -> None:
    points = 2 * np.pi * np.arange(9) / 9
    found = audit(waves(points, np.array(frequencies)), all_sets(9, 2))
    if frequencies == (2.0, 4.0):
        # Nine is odd: doubling the angles only reorders the labels.
        assert (found.verdicts == ARGMAXABLE).all()
        points = 2 * np.pi * np.arange(8) / 8
        found = audit(waves(points, np.array(frequencies)), all_sets(8, 1))
    assert found.count(UNARGMAXABLE)
    assert found.recheck(exact=frequencies == (1.0, 2.5))[found.verdicts == UNARGMAXABLE].all()


# Label attention: every label has its own weighted mean of the token vectors, and its own weights.


def attend(tokens: Array, keys: Array, queries: Array, values: Array) -> Array:
    """Scores of labels: weights `values` times the mean of tokens by a softmax of `queries` times keys."""
    logits = queries @ keys.T
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return np.asarray(((shares @ tokens) * values).sum(axis=1))


WEIGHTS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]])


def test_label_attention_over_one_token_is_the_linear_layer(rng: np.random.Generator) -> None:
    queries = rng.normal(size=(4, 2))
    token = rng.normal(size=(1, 2))
    np.testing.assert_allclose(attend(token, token, queries, WEIGHTS), WEIGHTS @ token[0])


def test_labels_that_attend_alike_reach_no_more_sets_than_the_linear_layer(rng: np.random.Generator) -> None:
    """Their means are one vector, so a certificate against the weights is one against the attention too."""
    found = audit(WEIGHTS, [[1, 1, 0, 0]])
    [certificate] = found.certificates
    assert certificate is not None
    signs = np.where(np.isin(certificate.labels, [0, 1]), 1.0, -1.0)
    unit = WEIGHTS / np.linalg.norm(WEIGHTS, axis=1, keepdims=True)
    queries = np.tile(rng.normal(size=(1, 2)), (4, 1))
    for _ in range(200):
        tokens = rng.normal(size=(5, 2))
        scores = attend(tokens, tokens, queries, unit)[certificate.labels]
        assert certificate.weights @ (signs * scores) == pytest.approx(0, abs=1e-12)


def test_label_attention_can_reach_sets_that_the_linear_layer_cannot() -> None:
    wanted = np.array([True, True, False, False])
    assert audit(WEIGHTS, [wanted]).verdicts.tolist() == [UNARGMAXABLE]
    queries = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [-1.0, 1.0]])
    tokens = np.array([[9.0, 1.0], [1.0, 9.0], [-9.0, -9.0]])
    np.testing.assert_array_equal(attend(tokens, tokens, queries, WEIGHTS) > 0, wanted)


def test_with_keys_apart_from_values_a_token_for_each_label_reaches_every_set(rng: np.random.Generator) -> None:
    """The key of a label's token is the label's query, so the label sees this token nearly alone."""
    n = 6
    queries = rng.normal(size=(n, 2))
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    values = rng.normal(size=(n, 2))
    for wanted in product([False, True], repeat=n):
        signs = np.where(wanted, 1.0, -1.0)
        scores = attend(signs[:, None] * values, 1e6 * queries, queries, values)
        np.testing.assert_array_equal(scores > 0, wanted)


# Autoregressive decoders: one label after the other by a softmax, then a stop.


def test_a_decoder_with_free_states_gives_every_set_over_two_dimensions() -> None:
    """On a circle every class wins for the state that is its own vector, so any sequence can be decoded."""
    n = 12
    angles = 2 * np.pi * np.arange(n + 1) / (n + 1)
    classes = np.stack([np.cos(angles), np.sin(angles)], axis=1)  # the last class means stop
    assert (audit_classes(classes).verdicts == ARGMAXABLE).all()
    linear = audit(classes[:n], all_sets(n, 3))
    assert linear.count(UNARGMAXABLE) > 200
    for wanted in all_sets(n, 3):
        order = [*np.flatnonzero(wanted).tolist(), n]
        states = classes[order]
        assert (states @ classes.T).argmax(axis=1).tolist() == order


def test_a_class_inside_the_hull_of_the_others_is_in_no_set_of_a_decoder() -> None:
    classes = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [0.1, 0.0], [0.5, 0.9]])
    found = audit_classes(classes)
    assert found.verdicts.tolist() == [1, 1, 1, -1, 1]
    assert found.recheck(exact=True).all()
