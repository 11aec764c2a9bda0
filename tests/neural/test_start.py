"""Heads that begin at the shares of rows that labels have."""

from __future__ import annotations

import pytest
import torch

from longtail.neural.heads import Cascade, OneHot, Sampling
from longtail.neural.heads.head import Task

COUNTS = torch.tensor([1, 2, 3, 40, 30, 24])


@pytest.mark.parametrize("task", ["multi-label", "single-label"])
def test_untrained_probabilities_are_the_shares_of_rows(task: Task) -> None:
    for head in (OneHot(4, 6, task), Sampling(4, 6, 2, task)):
        head.start_from(COUNTS, n_rows=100)
        probabilities = head.probabilities(torch.zeros(1, 4))[0]
        torch.testing.assert_close(probabilities, (COUNTS + 0.5) / 101, rtol=0.05, atol=0.005)


@pytest.mark.parametrize("task", ["multi-label", "single-label"])
def test_groups_of_a_cascade_start_at_the_share_of_rows_with_any_of_their_labels(task: Task) -> None:
    head = Cascade(4, 6, radices=(3, 2), task=task, order=torch.tensor([0, 1, 4, 2, 3, 5]))
    head.start_from(COUNTS, n_rows=100)
    logits = head.first(torch.zeros(1, 4))[0]
    found = torch.sigmoid(logits) if task == "multi-label" else torch.softmax(logits, dim=0)
    shares = (COUNTS + 0.5) / 101
    pairs = shares[[0, 3, 2]], shares[[1, 4, 5]]
    expected = 1 - (1 - pairs[0]) * (1 - pairs[1]) if task == "multi-label" else pairs[0] + pairs[1]
    torch.testing.assert_close(found, expected, rtol=0.05, atol=0.005)


def test_heads_without_offsets_are_left_alone() -> None:
    head = OneHot(4, 6, bias=False)
    before = head.output.weight.clone()
    head.start_from(COUNTS, n_rows=100)
    assert torch.equal(head.output.weight, before)
