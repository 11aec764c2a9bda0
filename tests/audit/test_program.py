"""The linear program, solved whole and by rows, and what strong duality says about it."""

from __future__ import annotations

import builtins
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.arrays import Array
from longtail.audit import audit
from longtail.audit.nearest import nearest_point
from longtail.audit.program import radius_of, solve_by_rows, solve_whole
from longtail.errors import Unavailable


def unit_rows(n_rows: int, d: int, rng: np.random.Generator) -> Array:
    rows = rng.normal(size=(n_rows, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None])


@given(st.integers(2, 40), st.integers(1, 6), st.booleans(), st.integers(0, 2**20))
def test_the_radius_is_what_the_best_weights_leave(n_rows: int, d: int, planted: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = unit_rows(n_rows, d, rng)
    signs = np.sign(rows @ rng.normal(size=d)) if planted else rng.choice([-1.0, 1.0], size=n_rows)
    whole = solve_whole(rows, signs)
    by_rows = solve_by_rows(rows, signs, np.arange(1), signs @ rows)
    assert whole is not None
    assert by_rows is not None
    for solution in (whole, by_rows):
        assert np.abs(solution.point).max() > 0 or solution.lower == 0
        assert solution.lower == pytest.approx(solution.upper, rel=1e-6, abs=1e-9)
        left = np.abs((solution.weights * signs[solution.support]) @ rows[solution.support]).sum()
        assert solution.upper == pytest.approx(left)
        assert solution.weights.sum() == pytest.approx(1)
    assert whole.upper == pytest.approx(by_rows.upper, rel=1e-6, abs=1e-9)


def test_rows_are_added_until_none_is_violated(rng: np.random.Generator) -> None:
    rows = unit_rows(3_000, 10, rng)
    hidden = rng.normal(size=10)
    signs = np.sign(rows @ hidden)
    solution = solve_by_rows(rows, signs, np.zeros(0, dtype=int), hidden)
    whole = solve_whole(rows, signs)
    assert solution is not None
    assert whole is not None
    assert 0 < radius_of(rows, signs, hidden) < solution.lower
    assert solution.lower == pytest.approx(whole.lower, rel=1e-6)


def test_small_radii_keep_their_digits(rng: np.random.Generator) -> None:
    # Two rows that nearly oppose each other leave a wedge of known width.
    for angle in (1e-3, 1e-6, 1e-9):
        rows = np.array([[0.0, 1.0], [np.sin(angle), -np.cos(angle)]])
        nearest = nearest_point(rows, np.ones(2))
        solution = solve_by_rows(rows, np.ones(2), nearest.support, nearest.point)
        assert solution is not None
        # Both rows are equally far from (1, tan(angle / 2)).
        assert solution.lower == pytest.approx(np.tan(angle / 2), rel=1e-5)


@pytest.mark.parametrize("widest", [1.0, 10.0, 1e4])
def test_radii_scale_with_the_box(widest: float, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = unit_rows(100, 5, rng)
    hidden = rng.normal(size=5)
    signs = np.sign(rows @ hidden)
    expected = solve_whole(rows, signs)
    monkeypatch.setattr("longtail.audit.program._WIDEST", widest)
    solution = solve_by_rows(rows, signs, np.arange(5), hidden)
    assert expected is not None
    assert solution is not None
    assert 1 / radius_of(rows, signs, hidden) > 10
    assert np.abs(solution.point).max() == pytest.approx(min(widest, 1 / radius_of(rows, signs, hidden)))
    assert solution.lower == pytest.approx(expected.lower, rel=1e-8)


@given(st.integers(2, 30), st.integers(1, 6), st.integers(0, 2**20))
def test_the_nearest_point_is_a_witness_or_nothing(n_rows: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = unit_rows(n_rows, d, rng)
    signs = rng.choice([-1.0, 1.0], size=n_rows)
    found = nearest_point(rows, signs)
    whole = solve_whole(rows, signs)
    assert whole is not None
    mixture = (found.weights / found.weights.sum() * signs[found.support]) @ rows[found.support]
    assert len(found.support) <= d + 1
    assert (found.weights > 0).all()
    if found.length < 1e-12:
        assert np.abs(mixture).sum() < 1e-13
        assert whole.upper < 1e-9
    else:
        assert radius_of(rows, signs, found.point) > 0
        assert whole.lower > 0
        # The point is along the mixture it came from.
        cosine = mixture @ found.point / np.linalg.norm(mixture) / np.linalg.norm(found.point)
        assert cosine == pytest.approx(1)


def test_without_highspy_verdicts_come_and_exact_radii_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "highspy":
            raise ImportError(name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr("longtail.audit.search.find_spec", lambda name: None)
    W = np.random.default_rng(0).normal(size=(7, 3))
    sets = np.array(list(itertools.product([0, 1], repeat=7)))
    assert audit(W, sets).count(1) == 44
    with pytest.raises(Unavailable, match=r"longtail\[audit\]"):
        audit(W, sets, exact_radii=True)


@pytest.mark.parametrize("solver", ["rows", "program"])
def test_linear_programs_settle_what_the_nearest_point_gives_up(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def gives_up(rows: Array, signs: Array, start: Array | None = None) -> Any:
        # On the few rows that cancel, where it tidies the weights of the solver, it may work.
        return nearest_point(rows, signs, start, max_steps=2 if len(rows) > 6 else None)

    monkeypatch.setattr("longtail.audit.search.nearest_point", gives_up)
    monkeypatch.setattr("longtail.audit.search.Search._screen", lambda *arguments: None)
    if solver == "program":
        monkeypatch.setattr("longtail.audit.search.find_spec", lambda name: None)
    W = np.random.default_rng(0).normal(size=(12, 4))
    sets = np.random.default_rng(1).integers(0, 2, size=(60, 12))
    found = audit(W, sets)
    assert solver in set(found.methods)
    assert (found.verdicts != 0).all()
    assert found.recheck(exact=True).all()
    assert {1, -1} <= set(found.verdicts[found.methods == solver].tolist())
