"""What would help with label sets out of reach, and what it costs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from longtail.audit import (
    ARGMAXABLE,
    OutputLayer,
    Remedy,
    add_slack,
    audit,
    bottleneck_parameters,
    dft_matrix,
    dft_parameters,
    plain_parameters,
    remedies,
    slack_of_equal_size,
)
from longtail.errors import InvalidInput

PAIRS = np.array([np.isin(range(9), chosen) for size in (0, 1, 2) for chosen in combinations(range(9), size)])


def narrow(rng: np.random.Generator, d: int = 2) -> OutputLayer:
    return OutputLayer.of(rng.normal(size=(9, d)))


def by_kind(found: tuple[Remedy, ...]) -> dict[str, Remedy]:
    return {each.kind: each for each in found}


def test_parameters_are_those_of_the_paper() -> None:
    assert bottleneck_parameters(20_000, 200, 768) == 4_153_800
    assert dft_parameters(20_000, 50, 768, 100) == 2_154_569
    assert -(-500 * 161 // 8921) == 10


@pytest.mark.parametrize(("n", "k", "e"), [(8921, 80, 500), (20_000, 50, 768), (8933, 50, 2432), (30, 3, 7)])
def test_as_many_slack_columns_fewer_make_a_dft_as_small_as_a_bottleneck(n: int, k: int, e: int) -> None:
    fewer = slack_of_equal_size(n, k, e)
    sizes = [dft_parameters(n, k, e, 100 - columns) for columns in (fewer, fewer - 1)]
    assert sizes[0] <= bottleneck_parameters(n, 100, e) < sizes[1]


def test_parameters_are_those_of_the_heads() -> None:
    torch = pytest.importorskip("torch")
    from longtail.neural.heads import DFT, Bottleneck, OneHot

    with torch.device("meta"):
        heads = Bottleneck(7, 30, width=4), DFT(7, 30, k=3, slack=2), OneHot(7, 30)
    counts = bottleneck_parameters(30, 4, 7), dft_parameters(30, 3, 7, 2), plain_parameters(30, 7)
    assert tuple(head.n_parameters() for head in heads) == counts


def test_an_audit_says_what_would_help_and_what_it_costs(rng: np.random.Generator) -> None:
    found = audit(narrow(rng), PAIRS)
    assert (found.verdicts != ARGMAXABLE).any()
    told = by_kind(found.remedies(fed_by=16))
    today = bottleneck_parameters(9, 2, 16)
    assert {kind: (each.columns, each.parameters) for kind, each in told.items()} == {
        "bias": (2, today + 9),
        "width": (4, bottleneck_parameters(9, 4, 16)),
        "dft": (5, dft_parameters(9, 2, 16)),
        "slack": (21, dft_parameters(9, 2, 16, 16)),
    }
    assert all(each.more == each.parameters - today for each in told.values())
    assert [each.parameters for each in found.remedies()] == sorted(each.parameters for each in found.remedies())
    text = found.to_text()
    assert "would help: bias (9 more parameters): Give each label a bias" in text
    assert [each["kind"] for each in found.to_dict()["remedies"]] == [each.kind for each in found.remedies()]


def test_what_is_called_guaranteed_reaches_all_sets_and_the_rest_may_not(rng: np.random.Generator) -> None:
    layer = narrow(rng, d=3)
    told = by_kind(remedies(layer, 2, fed_by=16))
    assert {kind for kind, each in told.items() if each.guaranteed} == {"dft", "slack"}
    for weights in (dft_matrix(9, 2), dft_matrix(9, 2, 16)):
        assert (audit(weights, PAIRS).verdicts == ARGMAXABLE).all()
    # A bias and a column each bring sets into reach, but not all.
    reached = audit(layer, PAIRS).count(ARGMAXABLE)
    for better in (OutputLayer.of(layer.weights, -np.ones(9)), OutputLayer.of(add_slack(layer.weights, 1))):
        assert reached < audit(better, PAIRS).count(ARGMAXABLE) < len(PAIRS)


def test_too_few_features_for_the_projection_are_told(rng: np.random.Generator) -> None:
    told = by_kind(remedies(narrow(rng, d=3), 2))
    assert not told["dft"].guaranteed
    assert "has 3 outputs and needs at least 5" in told["dft"].says
    assert told["dft"].parameters == dft_parameters(9, 2, 3)
    assert told["width"].parameters == 9 * 6
    # Whatever is projected from three features has rank 3, and not all sets.
    projected = dft_matrix(9, 2) @ rng.normal(size=(5, 3))
    assert (audit(projected, PAIRS).verdicts != ARGMAXABLE).any()


def test_a_layer_is_not_widened_beyond_what_feeds_it(rng: np.random.Generator) -> None:
    assert "What feeds it has only 3 outputs, so widen" in by_kind(remedies(narrow(rng), 2, fed_by=3))["width"].says
    assert "What feeds it" not in by_kind(remedies(narrow(rng), 2, fed_by=4))["width"].says


def test_slack_is_said_to_be_needed_where_floats_hide_label_sets(rng: np.random.Generator) -> None:
    few = by_kind(remedies(OutputLayer.of(rng.normal(size=(20, 4))), 3, fed_by=64))
    many = by_kind(remedies(OutputLayer.of(rng.normal(size=(2000, 4))), 10, fed_by=64))
    assert "larger" in few["slack"].says
    assert "so it needs them" in many["slack"].says


def test_a_bias_is_not_proposed_twice_nor_sines_for_sets_of_most_labels(rng: np.random.Generator) -> None:
    layer = OutputLayer.of(rng.normal(size=(9, 2)), rng.normal(size=9))
    assert set(by_kind(remedies(layer, 2))) == {"width", "dft", "slack"}
    assert set(by_kind(remedies(layer, 4))) == {"width"}
    assert remedies(layer, 4)[0].parameters == 9 * 4 + 9


def test_a_wide_layer_needs_other_labels_or_rows(rng: np.random.Generator) -> None:
    weights = rng.normal(size=(3, 5))
    found = audit(np.vstack([weights, weights[0]]), [[1, 0, 0, 0], [1, 0, 0, 1]])
    assert [each.kind for each in found.remedies()] == ["labels"]


def test_nothing_is_proposed_if_every_set_is_in_reach() -> None:
    found = audit(np.eye(3), [[1, 1, 0]])
    assert found.remedies() == ()
    assert "would help" not in found.to_text()


def test_no_features_feed_no_layer() -> None:
    with pytest.raises(InvalidInput, match="fed_by"):
        remedies(OutputLayer.of([[0.0, 1.0]] * 9), 2, fed_by=0)
