from __future__ import annotations

import numpy as np
import pytest

from longtail_papers.eagle.simulated_groups import (
    classification_errors,
    classification_groups,
    estimate,
    regression_errors,
    regression_groups,
)


def test_where_members_do_not_differ_nothing_is_lost_by_not_assigning() -> None:
    found = estimate(*regression_groups(0.0, range(5))[:2])
    for way in found[1:]:
        np.testing.assert_allclose(way, found.oracle, rtol=0, atol=1e-9)


def test_in_groups_of_one_every_way_is_the_oracle() -> None:
    found = estimate(*regression_groups(2.0, range(3), n_groups=60, group_size=1)[:2])
    for way in found[1:]:
        np.testing.assert_allclose(way, found.oracle, rtol=0, atol=1e-9)


def test_only_the_oracle_sees_in_which_order_outputs_come(seed: int) -> None:
    members, outputs, _ = regression_groups(1.0, [seed], n_groups=40)
    order = np.random.default_rng(seed).permuted(np.tile(np.arange(10), (1, 40, 1)), axis=2)
    before = estimate(members, outputs)
    after = estimate(members, np.take_along_axis(outputs, order[..., None], axis=2))
    for name in ("no_assignment", "nearest", "matched"):
        np.testing.assert_allclose(getattr(after, name), getattr(before, name), rtol=0, atol=1e-9)
    assert np.abs(after.oracle - before.oracle).max() > 0.01


def test_without_noise_matching_finds_every_owner() -> None:
    members, outputs, coefficients = regression_groups(1.0, range(3), noise=0.0)
    found = estimate(members, outputs)
    np.testing.assert_allclose(found.matched, coefficients, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("deviation", "expected"),
    [(0.1, (1.01, 1.27, 1.20)), (1.0, (1.43, 1.93, 1.62)), (5.0, (2.96, 1.04, 1.00)), (10.0, (3.27, 1.00, 1.00))],
)
def test_regression_has_the_known_ratios_to_the_oracle(deviation: float, expected: tuple[float, ...]) -> None:
    errors = regression_errors(deviation, range(40))
    ratios = [(errors[name] / errors["oracle"]).mean() for name in ("no_assignment", "nearest", "matched")]
    np.testing.assert_allclose(ratios, expected, rtol=0, atol=0.01)


def test_true_coefficients_have_length_1_in_the_norm_asked_for() -> None:
    for scale, order in (("spectral", 2), ("frobenius", "fro")):
        coefficients = regression_groups(1.0, range(2), scale=scale).coefficients  # type: ignore[arg-type]
        np.testing.assert_allclose(np.linalg.norm(coefficients, order, axis=(1, 2)), 1)  # type: ignore[call-overload]


def test_skew_makes_one_label_of_a_group_as_much_likelier_as_it_says() -> None:
    (_, outputs, _), (_, test_outputs, _) = classification_groups(1.0, [0], n_groups=4000, noise=0.0)
    largest = np.sort(outputs.mean(axis=2), axis=-1)[..., -1].mean()
    even = np.sort(test_outputs.mean(axis=2), axis=-1)[..., -1].mean()
    assert largest > even + 0.05
    share = np.e / (4 + np.e)
    # Two members of a group agree by chance, and more often the more likely one label is.
    agree = (np.square(outputs.sum(axis=2)).sum(axis=-1) - 10).mean() / 90
    assert agree == pytest.approx(share**2 + 4 * (1 / (4 + np.e)) ** 2, abs=0.005)


def test_outputs_of_classification_are_one_hot_and_of_the_nearest_label() -> None:
    train, _ = classification_groups(2.0, [1], noise=0.5)
    assert set(np.unique(train.outputs)) == {0.0, 1.0}
    np.testing.assert_array_equal(train.outputs.sum(axis=-1), 1)
    np.testing.assert_array_equal((train.members @ train.coefficients[:, None]).argmax(-1), train.outputs.argmax(-1))


def test_assigning_labels_helps_most_in_mixed_groups() -> None:
    gains = []
    for skew in (0.0, 10.0):
        wrong = classification_errors(skew, range(10), noise=0.3).wrong
        gains.append(1 - wrong["nearest"].mean() / wrong["no_assignment"].mean())
        assert wrong["oracle"].mean() <= wrong["matched"].mean() < wrong["no_assignment"].mean()
    assert gains[0] > 0.1 > gains[1]
