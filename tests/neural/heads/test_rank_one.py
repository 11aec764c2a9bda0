"""Fact H9: an argmax over many classes needs little rank, a pattern of signs needs much (Theorem 3)."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize("n_classes", [2, 100, 1000])
def test_rank_one_and_a_bias_give_each_of_many_classes(n_classes: int) -> None:
    """Logits 2 t_j z - t_j^2 are largest where t_j is nearest to z: tangents of a parabola."""
    generator = torch.Generator().manual_seed(n_classes)
    direction = torch.randn(8, generator=generator, dtype=torch.float64)
    features = torch.randn(n_classes, 8, generator=generator, dtype=torch.float64)
    targets = features @ direction
    weights = 2 * torch.outer(targets, direction)
    assert int(torch.linalg.matrix_rank(weights)) == 1
    logits = features @ weights.T - targets.square()
    assert torch.equal(logits.argmax(1), torch.arange(n_classes))


@pytest.mark.parametrize("n_classes", [3, 100, 1000])
def test_rank_two_gives_each_of_many_classes_without_a_bias(n_classes: int) -> None:
    angles = torch.arange(n_classes, dtype=torch.float64) * (2 * torch.pi / n_classes)
    circle = torch.stack([angles.cos(), angles.sin()], 1)
    assert int(torch.linalg.matrix_rank(circle)) == 2
    assert torch.equal((circle @ circle.T).argmax(1), torch.arange(n_classes))


def test_rank_one_without_a_bias_gives_two_classes_only() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(100, 1, generator=generator, dtype=torch.float64)
    features = torch.randn(1000, 1, generator=generator, dtype=torch.float64)
    assert len((features @ weights.T).argmax(1).unique()) == 2


def test_rank_one_and_a_bias_give_few_of_the_patterns_of_signs() -> None:
    """The same layer as a multi-label layer reaches only n + 1 of the 2^n label sets."""
    z = torch.linspace(-3, 3, 100_001, dtype=torch.float64)[:, None]
    targets = torch.linspace(0.1, 1, 10, dtype=torch.float64)
    patterns = (2 * targets * z - targets.square() > 0).unique(dim=0)
    assert len(patterns) == 11
