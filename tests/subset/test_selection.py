"""Choosing labels: facts of the objectives on all sets of few labels, the search, what is proved of it, odd input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail.errors import InvalidInput, NotEnoughMemory
from longtail.subset import LabelSubset, select_labels, selection
from longtail.subset.affinity import Affinity
from longtail.subset.greedy import gains_of, lazy_greedy, stochastic_greedy
from longtail.subset.pairwise import PairwiseObjective, curvature, greedy_fraction, upper_bound

CLOSE = 1e-9


def all_sets(n_labels: int) -> Any:
    """Every set of labels as a row of zeros and ones; the number of the row has the same bits."""
    return (np.arange(2**n_labels)[:, None] >> np.arange(n_labels)) & 1


def defined(weights: Any, penalty: float, scores: Any, sets: Any) -> Any:
    """f of each set as the paper writes it."""
    inside, outside = sets.astype(float), 1.0 - sets
    cut = (outside @ weights * inside).sum(axis=1)
    return cut - penalty * (inside @ weights * inside).sum(axis=1) + inside @ scores


def random_weights(rng: np.random.Generator, n_labels: int, density: float = 0.5) -> Any:
    weights = rng.random((n_labels, n_labels)) * (rng.random((n_labels, n_labels)) < density)
    np.fill_diagonal(weights, 0)
    return weights


def as_affinity(weights: Any) -> Affinity:
    weights = sparse.csr_array(weights)
    return Affinity(sparse.csr_array(weights.T), np.zeros(weights.shape[0]), np.nan, np.nan, 0)


def plain_greedy(objective: PairwiseObjective, n_labels: int, last: Any) -> list[int]:
    chosen: list[int] = []
    for _ in range(n_labels):
        gains = objective.gains(chosen)
        left = [label for label in range(objective.n_labels) if label not in chosen]
        chosen.append(min(left, key=lambda label: (last[label], -gains[label], label)))
    return chosen


@st.composite
def instances(draw: st.DrawFn, most: int = 7) -> tuple[Any, float, Any]:
    """Weights with many zeros and ties, a penalty, scores."""
    n_labels = draw(st.integers(1, most))
    entries = st.one_of(st.just(0.0), st.sampled_from([0.1, 0.5, 1.0]), st.floats(0, 3, allow_subnormal=False))
    values = draw(st.lists(entries, min_size=n_labels**2, max_size=n_labels**2))
    weights = np.array(values).reshape(n_labels, n_labels)
    np.fill_diagonal(weights, 0)
    penalty = draw(st.sampled_from([0.0, 0.1, 1.0]))
    scores = draw(st.lists(st.sampled_from([0.0, 0.2, 1.0, -0.3]), min_size=n_labels, max_size=n_labels))
    return weights, penalty, np.array(scores)


@pytest.mark.parametrize("penalty", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("n_labels", [3, 10])
def test_cut_and_penalised_cut_are_submodular_on_all_sets(n_labels: int, penalty: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, scores = random_weights(rng, n_labels), rng.normal(size=n_labels)
    values = defined(weights, penalty, scores, all_sets(n_labels))
    numbers = np.arange(2**n_labels)
    for i in range(n_labels):
        for j in range(i):
            without = numbers[(numbers & (1 << i | 1 << j)) == 0]
            apart = values[without | 1 << i] + values[without | 1 << j]
            together = values[without | 1 << i | 1 << j] + values[without]
            assert (apart - together >= -CLOSE).all()
            np.testing.assert_allclose(apart - together, (1 + penalty) * (weights[i, j] + weights[j, i]), atol=CLOSE)


@given(instances())
def test_the_objective_is_what_the_paper_defines_and_gains_are_differences_of_it(
    instance: tuple[Any, float, Any],
) -> None:
    weights, penalty, scores = instance
    n_labels = len(scores)
    objective = PairwiseObjective.of(sparse.csr_array(weights), penalty, scores)
    sets = all_sets(n_labels)
    values = defined(weights, penalty, scores, sets)
    for number, row in enumerate(sets):
        labels = np.flatnonzero(row)
        assert objective.value(labels) == pytest.approx(values[number], abs=CLOSE)
        gains = objective.gains(labels)
        for label in range(n_labels):
            difference = values[number | 1 << label] - values[number & ~(1 << label)]
            assert gains[label] == pytest.approx(difference, abs=CLOSE)


def test_the_gain_of_a_label_is_what_it_explains_outside_less_what_inside_explains_it() -> None:
    weights = random_weights(np.random.default_rng(0), 6)
    inside, outside = [1, 4], [0, 2, 3, 5]
    gains = PairwiseObjective.of(sparse.csr_array(weights)).gains(inside)
    for label in outside:
        assert gains[label] == pytest.approx(weights[outside, label].sum() - weights[label, inside].sum())


def test_weights_too_small_to_matter_are_left_out_of_a_copy() -> None:
    weights = sparse.csr_array([[0.0, 1e-40, 1.0], [0.5, 0.0, 0.0], [0.0, 2.0, 0.0]])
    before = weights.copy()
    assert PairwiseObjective.of(weights).shared.nnz == 6
    np.testing.assert_array_equal(weights.indices, before.indices)
    np.testing.assert_array_equal(weights.data, before.data)


def test_the_score_is_modular() -> None:
    scores = np.array([0.5, -0.25, 0.125, 1.0])
    objective = PairwiseObjective.of(sparse.csr_array((4, 4)), scores=scores, score_weight=2.0)
    for row in all_sets(4):
        assert objective.value(np.flatnonzero(row)) == 2 * scores @ row
        np.testing.assert_array_equal(objective.gains(np.flatnonzero(row)), 2 * scores)


@given(instances())
def test_all_labels_together_cut_nothing(instance: tuple[Any, float, Any]) -> None:
    objective = PairwiseObjective.of(sparse.csr_array(instance[0]))
    assert objective.value(np.arange(objective.n_labels)) == 0
    assert (objective.alone >= 0).all()


@given(instances(), st.data())
def test_lazy_greedy_chooses_what_plain_greedy_does(instance: tuple[Any, float, Any], data: st.DataObject) -> None:
    weights, penalty, scores = instance
    objective = PairwiseObjective.of(sparse.csr_array(weights), penalty, scores)
    last = np.array(data.draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores))))
    for count in range(1, len(scores) + 1):
        labels, gains = lazy_greedy(objective, count, last)
        assert labels.tolist() == plain_greedy(objective, count, last)
        np.testing.assert_array_equal(gains, gains_of(objective, labels))
        assert gains.sum() == pytest.approx(objective.value(labels), abs=CLOSE)


def test_lazy_greedy_is_plain_greedy_on_hundreds_of_labels(rng: np.random.Generator) -> None:
    objective = PairwiseObjective.of(sparse.csr_array(random_weights(rng, 200, 0.1)), 0.3)
    last = np.zeros(200, dtype=bool)
    assert lazy_greedy(objective, 60, last)[0].tolist() == plain_greedy(objective, 60, last)


def best_of_each_size(values: Any, n_labels: int) -> Any:
    sizes = all_sets(n_labels).sum(axis=1)
    return [values[sizes == size].max() for size in range(n_labels + 1)]


@given(instances())
def test_what_is_proved_holds_against_every_set(instance: tuple[Any, float, Any]) -> None:
    weights, penalty, scores = instance
    n_labels = len(scores)
    best = best_of_each_size(defined(weights, penalty, scores, all_sets(n_labels)), n_labels)
    for count in range(1, n_labels + 1):
        for method in ("lazy", "stochastic")[: 2 if count == 2 else 1]:
            found = select_labels(
                np.ones((1, n_labels)),
                count,
                affinity=as_affinity(weights),
                penalty=penalty,
                scores=scores,
                score_weight=1.0,
                method=method,
            )
            assert found.value <= best[count] + CLOSE
            assert found.bound >= best[count] - CLOSE
            assert 0 <= found.guarantee <= 1
            if found.guarantee > 0 and best[count] > 0:
                assert found.value >= found.guarantee * best[count] - CLOSE
            elif found.guarantee > 0:
                assert found.value == pytest.approx(best[count], abs=CLOSE)


@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_proofs_hold_for_all_sets_of_ten_labels(penalty: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    proved = 0
    for density in (0.05, 0.15, 0.3, 0.6):
        weights = random_weights(rng, 10, density)
        weights[:, :3] *= 5
        scores = 3 + rng.random(10)
        values = defined(weights, penalty, scores, all_sets(10))
        best = best_of_each_size(values, 10)
        objective = PairwiseObjective.of(sparse.csr_array(weights), penalty, scores)
        for count in range(1, 11):
            labels, _ = lazy_greedy(objective, count, np.zeros(10, dtype=bool))
            value = objective.value(labels)
            assert upper_bound(objective, labels) >= best[count] - CLOSE
            fraction = greedy_fraction(curvature(objective, labels), count)
            if fraction > 0:
                proved += 1
                assert value >= fraction * best[count] - CLOSE
            any_labels = rng.permutation(10)[:count]
            assert upper_bound(objective, any_labels) >= best[count] - CLOSE
    assert proved >= 5


def test_curvature_at_most_one_means_that_adding_chosen_labels_makes_no_set_worse(rng: np.random.Generator) -> None:
    tried = 0
    for _ in range(40):
        n_labels, count = 7, int(rng.integers(1, 5))
        weights = random_weights(rng, n_labels, 0.3)
        scores = 2 * rng.random(n_labels)
        values = defined(weights, 0.1, scores, all_sets(n_labels))
        objective = PairwiseObjective.of(sparse.csr_array(weights), 0.1, scores)
        labels, _ = lazy_greedy(objective, count, np.zeros(n_labels, dtype=bool))
        if curvature(objective, labels) > 1:
            continue
        tried += 1
        sizes = all_sets(n_labels).sum(axis=1)
        numbers = np.flatnonzero(sizes == count)
        chosen = sum(1 << int(label) for label in labels)
        assert (values[numbers | chosen] >= values[numbers] - CLOSE).all()
    assert tried >= 5


@given(instances())
def test_greedy_reaches_63_percent_where_the_objective_grows_on_the_sets_used(
    instance: tuple[Any, float, Any],
) -> None:
    weights, penalty, _ = instance
    n_labels = len(weights)
    sets = all_sets(n_labels)
    values = defined(weights, penalty, np.zeros(n_labels), sets)
    objective = PairwiseObjective.of(sparse.csr_array(weights), penalty)
    for count in range(1, n_labels + 1):
        labels, _ = lazy_greedy(objective, count, np.zeros(n_labels, dtype=bool))
        numbers = np.flatnonzero(sets.sum(axis=1) == count)
        best = numbers[np.argmax(values[numbers])]
        prefixes = np.cumsum([0, *(1 << int(label) for label in labels)])
        if (values[best | prefixes] >= values[best] - CLOSE).all() and (np.diff(values[prefixes]) >= -CLOSE).all():
            assert values[prefixes[-1]] >= (1 - np.exp(-1)) * values[best] - CLOSE


def test_the_curvature_of_labels_worth_nothing_proves_nothing() -> None:
    objective = PairwiseObjective.of(sparse.csr_array((3, 3)))
    assert curvature(objective, np.array([0])) == np.inf
    assert greedy_fraction(np.inf, 1) == 0


def planted(n_hubs: int, n_leaves: int) -> Any:
    """Each hub explains leaves of its own, the first ones more of them; hubs are every so many labels."""
    size = n_leaves + 1
    hubs = np.arange(n_hubs) * size
    leaves = np.setdiff1d(np.arange(n_hubs * size), hubs)
    weights = sparse.csr_array(
        (np.ones(len(leaves)), (leaves, leaves // size * size)), shape=(n_hubs * size, n_hubs * size)
    )
    return hubs, weights


def test_planted_labels_are_found_and_proved_to_be_the_best() -> None:
    hubs, weights = planted(20, 30)
    found = select_labels(np.ones((1, weights.shape[0])), 20, affinity=as_affinity(weights))
    np.testing.assert_array_equal(found.labels, hubs)
    assert found.guarantee == 1
    assert found.coverage[-1] == 1


def test_stochastic_greedy_is_seeded_and_comes_close_on_planted_labels(seed: int) -> None:
    hubs, weights = planted(50, 40)
    objective = PairwiseObjective.of(weights)
    last = np.zeros(weights.shape[0], dtype=bool)
    runs = [stochastic_greedy(objective, 50, last, np.random.default_rng(seed))[0] for _ in range(2)]
    np.testing.assert_array_equal(*runs)
    assert len(set(runs[0].tolist())) == 50
    other = stochastic_greedy(objective, 50, last, np.random.default_rng(seed + 10))[0]
    assert runs[0].tolist() != other.tolist()
    # The fewer hubs are left, the more samples hold none; on average 1 - 1/e - 0.1 of the optimum is sure.
    assert objective.value(runs[0]) >= 0.53 * objective.value(hubs)
    found = select_labels(
        np.ones((1, len(last))), 50, affinity=as_affinity(weights), method="stochastic", random_state=seed
    )
    assert found.value >= found.guarantee * 50 * 40
    assert found.guarantee > 0.5


def test_stochastic_greedy_can_choose_all_labels_and_keeps_the_last_for_the_end() -> None:
    objective = PairwiseObjective.of(sparse.csr_array(random_weights(np.random.default_rng(0), 9)))
    last = np.array([True, False, False] * 3)
    labels, gains = stochastic_greedy(objective, 9, last, np.random.default_rng(1))
    assert sorted(labels.tolist()) == list(range(9))
    assert labels[-3:].tolist() == [0, 3, 6]
    np.testing.assert_allclose(gains, gains_of(objective, labels))


@given(instances(), st.data())
def test_coverage_is_the_mean_covered_share(instance: tuple[Any, float, Any], data: st.DataObject) -> None:
    weights, _, scores = instance
    n_labels = len(scores)
    has_rows = np.array(data.draw(st.lists(st.booleans(), min_size=n_labels, max_size=n_labels)))
    found = select_labels(has_rows[None, :].astype(int), n_labels, affinity=as_affinity(weights))
    for count in range(1, n_labels + 1):
        chosen = found.labels[:count]
        shares = [
            1.0
            if label in chosen
            else weights[label, chosen].sum() / weights[label].sum()
            if weights[label].any()
            else 0.0
            for label in np.flatnonzero(has_rows)
        ]
        assert found.coverage[count - 1] == pytest.approx(np.mean(shares) if shares else 1.0, abs=CLOSE)


def test_the_choice_of_fewer_is_the_beginning_of_the_choice_of_more(rng: np.random.Generator) -> None:
    Y = (rng.random((60, 25)) < 0.2).astype(int)
    whole = select_labels(Y, 25)
    part = select_labels(Y, 7)
    np.testing.assert_array_equal(part.labels, whole.labels[:7])
    np.testing.assert_array_equal(part.gains, whole.gains[:7])
    np.testing.assert_array_equal(part.coverage, whole.coverage[:7])
    assert sorted(whole.labels.tolist()) == list(range(25))
    assert whole.coverage[-1] == pytest.approx(1)
    assert whole.guarantee == 1
    assert len(part) == 7


def test_labels_without_rows_come_last() -> None:
    Y = np.array([[0, 1, 0, 1, 1], [0, 1, 0, 0, 1], [0, 0, 0, 1, 1]])
    for criterion in ("cut", "penalised cut", "score", "predictable cut", "frequency", "random", "leverage"):
        for method in ("lazy", "stochastic"):
            scores = [9.0, 0.5, 9.0, 0.1, 0.1]
            found = select_labels(Y, 5, criterion=criterion, scores=scores, method=method)
            assert set(found.labels[:3].tolist()) == {1, 3, 4}
            assert set(found.labels[3:].tolist()) == {0, 2}
            assert np.isfinite(found.gains).all()
            assert found.coverage[2:].tolist() == pytest.approx([1.0, 1.0, 1.0])


def test_one_of_two_labels_with_the_same_rows_stands_for_both(rng: np.random.Generator) -> None:
    Y = (rng.random((80, 6)) < 0.3).astype(int)
    doubled = np.hstack([Y, Y])
    found = select_labels(doubled, 6)
    originals = found.labels % 6
    for place, label in enumerate(found.labels):
        assert label < 6 or label - 6 in found.labels[:place]
    assert len(set(originals[:3].tolist())) == 3


def test_labels_that_are_never_together_are_taken_in_order() -> None:
    found = select_labels(np.eye(4, dtype=int), 3)
    assert found.labels.tolist() == [0, 1, 2]
    assert found.gains.tolist() == [0, 0, 0]
    assert found.coverage.tolist() == [0.25, 0.5, 0.75]
    assert found.guarantee == 1


@pytest.mark.parametrize("shape", [(0, 3), (4, 3)])
def test_no_labels_of_any_row(shape: tuple[int, int]) -> None:
    for criterion in ("penalised cut", "frequency", "random", "leverage"):
        found = select_labels(np.zeros(shape), 3, criterion=criterion)
        assert sorted(found.labels.tolist()) == [0, 1, 2]
        assert (found.value, found.bound, found.guarantee) == (0, 0, 1)


def test_one_label_is_the_one_that_explains_most() -> None:
    found = select_labels([[1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1]], 1)
    assert found.labels.tolist() == [1]
    assert found.guarantee == 1


def test_a_criterion_may_have_a_hyphen() -> None:
    Y = np.array([[1, 1]])
    assert select_labels(Y, 1, criterion="penalised-cut").criterion == "penalised cut"
    assert select_labels(Y, 1, criterion="predictable-cut", scores=[0.1, 0.2]).criterion == "predictable cut"


def test_scores_decide_between_labels_that_explain_the_same() -> None:
    Y = np.array([[1, 1]])
    assert select_labels(Y, 1).labels.tolist() == [0]
    assert select_labels(Y, 1).criterion == "penalised cut"
    found = select_labels(Y, 1, scores=[0.1, 0.2])
    assert (found.labels.tolist(), found.criterion) == ([1], "predictable cut")
    assert select_labels(Y, 1, scores=[0.1, 0.2], criterion="cut").labels.tolist() == [0]
    assert select_labels(Y, 2, scores=[0.1, 0.25], criterion="score").gains.tolist() == pytest.approx([0.25, 0.1])


def test_without_a_weight_scores_have_as_much_say_as_the_affinity() -> None:
    rng = np.random.default_rng(0)
    weights, scores = random_weights(rng, 12), rng.random(12)
    into = np.sort(weights.sum(axis=0))[-4:].sum()
    settings: dict[str, Any] = {"affinity": as_affinity(weights), "scores": scores}
    balanced = select_labels(np.ones((1, 12)), 4, **settings)
    told = select_labels(np.ones((1, 12)), 4, **settings, score_weight=into / np.sort(scores)[-4:].sum())
    np.testing.assert_array_equal(balanced.labels, told.labels)
    assert balanced.value == pytest.approx(told.value)
    scaled = select_labels(np.ones((1, 12)), 4, affinity=as_affinity(weights), scores=1000 * scores)
    np.testing.assert_array_equal(balanced.labels, scaled.labels)


def test_frequency_takes_the_labels_with_the_most_rows() -> None:
    Y = [[0, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 0]]
    found = select_labels(Y, 3, criterion="frequency")
    assert found.labels.tolist() == [2, 1, 3]
    objective_of_the_set = select_labels(Y, 3, criterion="penalised cut")
    assert found.value <= objective_of_the_set.bound


def test_random_labels_are_seeded() -> None:
    Y = np.ones((2, 50))
    first, again, other = (select_labels(Y, 10, criterion="random", random_state=seed).labels for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert first.tolist() != other.tolist()


def test_leverage_draws_labels_of_the_leading_singular_vectors() -> None:
    Y = np.zeros((20, 6), dtype=int)
    Y[:15, [1, 4]] = 1
    Y[15:18, 2] = 1
    Y[18:, 0] = 1
    drawn = {int(select_labels(Y, 1, criterion="leverage", random_state=seed).labels[0]) for seed in range(30)}
    assert drawn == {1, 4}


def test_leverage_scores_of_many_labels_are_those_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    Y = sparse.csr_array((rng.random((60, 30)) < rng.random(30) ** 2).astype(np.float32))
    exact = selection._leverage(Y, 3)
    monkeypatch.setattr(selection, "_SMALL", 0)
    np.testing.assert_allclose(selection._leverage(Y, 3), exact, atol=0.05)
    assert exact.sum() == pytest.approx(3)
    monkeypatch.setenv("LONGTAIL_MEMORY", "1K")
    with pytest.raises(NotEnoughMemory, match=r"leverage scores needs .* Select fewer labels"):
        selection._leverage(Y, 3)


@pytest.mark.parametrize(
    ("n_labels", "given", "message"),
    [
        (4, {}, "n_labels is 4, but there are only 3 labels"),
        (0, {}, "n_labels is 0; expected a whole number of at least 1"),
        (1.5, {}, "n_labels is 1.5; expected a whole number"),
        (2, {"criterion": "best"}, "criterion is 'best'; expected one of 'cut', 'penalised cut'"),
        (2, {"criterion": "predictable cut"}, "the criterion 'predictable cut' needs scores: compute longtail.ridge"),
        (2, {"criterion": "score"}, "the criterion 'score' needs scores"),
        (2, {"scores": [1, 2]}, r"scores has shape \(2,\); expected one number for each of the 3 labels"),
        (2, {"scores": [1, 2, np.nan]}, "scores contains NaN or infinity"),
        (2, {"scores": ["a", "b", "c"]}, "scores cannot be converted to numbers; expected 3 numbers"),
        (2, {"penalty": -1}, "penalty is -1; expected a number at least 0"),
        (2, {"penalty": 1e20}, r"penalty is 1e\+20; expected a number at least 0 and at most 1e\+09"),
        (2, {"score_weight": 1e20}, r"score_weight is 1e\+20; expected a number at least 0 and at most 1e\+09 or None"),
        (2, {"score_weight": np.inf}, "score_weight is inf; expected a number at least 0 and at most"),
        (2, {"method": "quick"}, "method is 'quick'; expected one of 'auto', 'lazy', 'stochastic'"),
        (2, {"random_state": -1}, "random_state is -1; expected"),
        (2, {"affinity": as_affinity(np.zeros((2, 2)))}, "the affinity has 2 labels and Y has 3; compute the affinity"),
        (2, {"affinity": as_affinity(-np.ones((3, 3)))}, "the weights of an affinity must be finite, at least 0"),
        (2, {"affinity": as_affinity(np.eye(3))}, "and 0 on the diagonal"),
    ],
)
def test_bad_input_is_named(n_labels: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        select_labels(np.eye(3, dtype=int), n_labels, **given)


def test_every_kind_of_label_matrix_gives_the_same(rng: np.random.Generator) -> None:
    Y = (rng.random((30, 8)) < 0.3).astype(int)
    found_in = [select_labels(kind(Y), 4) for kind in (np.asarray, sparse.csr_array, sparse.csc_matrix)]
    for found in found_in[1:]:
        assert isinstance(found, LabelSubset)
        np.testing.assert_array_equal(found.labels, found_in[0].labels)
        assert replace(found, labels=0, gains=0, coverage=0) == replace(found_in[0], labels=0, gains=0, coverage=0)
