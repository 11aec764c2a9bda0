"""The sum of Kronecker products compared with `torch.kron` (Eq. 16)."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from longtail.errors import InvalidInput
from longtail.neural.heads import Kronecker, OneHot
from longtail.neural.heads.head import Head, Task
from tests.neural.heads.head_contract import N_LABELS, HeadContract


def by_hand(head: Kronecker, features: Tensor) -> Tensor:
    """The logits of all labels: for each row, the sum over groups of the Kronecker products of the digits."""
    outputs = head.linear(features).view(-1, head.groups, head.width)
    rows = []
    for row in outputs:
        total = torch.zeros(head.codes.size)
        for group in row:
            product = torch.ones(1)
            for digit in group.split(list(head.codes.radices)):
                product = torch.kron(product, digit)
            total = total + product
        rows.append(total)
    position = torch.arange(head.n_labels) if head.position is None else head.position
    return torch.stack(rows)[:, position]


class TestKronecker(HeadContract):
    learning_rate = 2.0
    groups = 4

    def make(self, n_features: int, n_labels: int, task: Task, label_weights: Tensor | None = None) -> Head:
        return Kronecker(
            n_features, n_labels, self.radices(n_labels), self.groups, task=task, label_weights=label_weights
        )

    def rate(self, task: Task) -> float:
        return 0.2 if task == "single-label" else self.learning_rate

    def radices(self, n_labels: int) -> tuple[int, ...]:
        return (5, 3) if n_labels == N_LABELS else (n_labels,)

    def label_scores(self, head: Head, features: Tensor) -> Tensor:
        assert isinstance(head, Kronecker)
        logits = by_hand(head, features)
        return logits.softmax(1) if head.task == "single-label" else logits.sigmoid()

    def count_parameters(self, n_features: int, n_labels: int) -> int:
        return self.groups * (n_features + 1) * sum(self.radices(n_labels))

    def count_multiply_adds(self, n_features: int, n_labels: int, n_rows: int, training: bool) -> int:
        radices = self.radices(n_labels)
        codes = 15 if len(radices) == 2 else n_labels
        return self.groups * n_rows * (n_features * sum(radices) + codes) * (3 if training else 1)


@pytest.mark.parametrize("radices", [(23,), (6, 4), (4, 3, 2), (2, 3, 2, 2)])
@pytest.mark.parametrize("moved", [False, True])
def test_the_logits_are_sums_of_kronecker_products(radices: tuple[int, ...], moved: bool) -> None:
    torch.manual_seed(0)
    order = torch.randperm(23) if moved else None
    head = Kronecker(5, 23, radices, groups=3, order=order)
    features = torch.randn(4, 5)
    torch.testing.assert_close(head(features), by_hand(head, features))


def test_the_rank_of_a_row_of_logits_is_at_most_the_number_of_groups() -> None:
    torch.manual_seed(0)
    head = Kronecker(7, 80, (10, 8), groups=3)
    tables = head(torch.randn(5, 7)).view(5, 10, 8)
    assert torch.linalg.matrix_rank(tables).tolist() == [3] * 5


def test_the_best_digits_need_not_make_the_best_label() -> None:
    """Raw outputs may be negative: with [-3, -1] and [-5, -2] the product is largest for the digits 0 and 0."""
    head = Kronecker(1, 4, (2, 2), task="single-label")
    with torch.no_grad():
        head.linear.weight.zero_()
        head.linear.bias.copy_(torch.tensor([-3.0, -1.0, -5.0, -2.0]))
    assert head.predict(torch.zeros(1, 1)).tolist() == [0]
    digits = [digit.argmax() for digit in head.linear.bias.split([2, 2])]
    assert int(2 * digits[0] + digits[1]) == 3


def test_with_one_digit_it_is_the_plain_layer() -> None:
    torch.manual_seed(0)
    head, plain = Kronecker(6, 9, (9,), task="single-label"), OneHot(6, 9, task="single-label")
    plain.output.load_state_dict(head.linear.state_dict())
    features, classes = torch.randn(5, 6), torch.tensor([0, 8, 3, 3, 1])
    torch.testing.assert_close(head.loss(features, classes), plain.loss(features, classes))
    assert head.n_parameters() == plain.n_parameters()


def test_all_labels_start_at_their_mean_share() -> None:
    torch.manual_seed(0)
    head = Kronecker(6, 20, (5, 4), groups=2)
    head.start_from(torch.full((20,), 100), 1000)
    start = head.probabilities(torch.zeros(1, 6))
    torch.testing.assert_close(start, torch.full((1, 20), 0.1004), atol=1e-4, rtol=0)


def test_a_few_weights_cannot_ask_for_billions_of_scores() -> None:
    with pytest.raises(InvalidInput, match="computes a score for each code"):
        Kronecker(1, 60_000, radices=(60_000, 60_000))


def test_no_groups_are_refused() -> None:
    with pytest.raises(InvalidInput, match="groups is 0; expected at least 1"):
        Kronecker(6, 9, groups=0)
