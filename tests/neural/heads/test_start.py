"""Heads start at each label's share of the rows."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from longtail.neural.heads import Cascade, OneHot, Sampling
from longtail.neural.heads.head import Task

COUNTS = torch.tensor([1, 2, 3, 40, 30, 24])


@pytest.mark.parametrize("task", ["multi-label", "single-label"])
def test_untrained_probabilities_are_the_shares_of_rows(task: Task) -> None:
    for head in (OneHot(4, 6, task), Sampling(4, 6, 2, task)):
        head.start_from(COUNTS, n_rows=100)
        probabilities = head.probabilities(torch.zeros(1, 4))[0]
        torch.testing.assert_close(probabilities, (COUNTS + 0.5) / 101, rtol=0.05, atol=0.005)


@pytest.mark.parametrize("radices", [(3, 2), (2, 2, 2)])
@pytest.mark.parametrize("task", ["multi-label", "single-label"])
def test_a_cascade_starts_at_the_shares_at_every_stage(task: Task, radices: tuple[int, ...]) -> None:
    head = Cascade(4, 6, radices, task=task, order=torch.tensor([0, 1, 4, 2, 3, 5]))
    head.start_from(COUNTS, n_rows=100)
    for query in head.queries:
        nn.init.zeros_(query.bias)  # type: ignore[arg-type]
    shares = (COUNTS + 0.5) / 101
    torch.testing.assert_close(head.probabilities(torch.zeros(1, 4))[0], shares, rtol=0.05, atol=0.005)
    groups = head.first(torch.zeros(1, 4))[0]
    found = torch.sigmoid(groups) if task == "multi-label" else torch.softmax(groups, dim=0)
    members = [[0, 1], [3, 4], [2, 5]] if len(radices) == 2 else [[0, 1, 3, 4], [2, 5]]
    for group, labels in enumerate(members):
        share = shares[labels].sum() if task == "single-label" else 1 - (1 - shares[labels]).prod()
        torch.testing.assert_close(found[group], share, rtol=0.05, atol=0.005)


def test_heads_without_offsets_are_left_alone() -> None:
    head = OneHot(4, 6, bias=False)
    before = head.output.weight.clone()
    head.start_from(COUNTS, n_rows=100)
    assert torch.equal(head.output.weight, before)
