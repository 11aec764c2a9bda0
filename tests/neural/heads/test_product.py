"""The product head compared with the plain Kronecker product: facts H3, H4 and H10."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional

from longtail.errors import InvalidInput
from longtail.labels import plan_heads
from longtail.neural.heads.cascade import Cascade
from longtail.neural.heads.head import Head, Task, best_labels
from longtail.neural.heads.product import Product, best_codes
from longtail.neural.targets import LabelRows
from tests.neural.heads.head_contract import N_LABELS, TASK, HeadContract


class TestProduct(HeadContract):
    learning_rate = 5.0

    def make(self, n_features: int, n_labels: int, task: Task, label_weights: Tensor | None = None) -> Head:
        return Product(n_features, n_labels, self.radices(n_labels), task=task, label_weights=label_weights)

    def radices(self, n_labels: int) -> tuple[int, ...]:
        return (5, 3) if n_labels == N_LABELS else (n_labels,)

    def label_scores(self, head: Head, features: Tensor) -> Tensor:
        assert isinstance(head, Product)
        return head.probabilities(features)

    @TASK
    def test_training_puts_a_true_label_first(self, task: Task) -> None:
        if task == "multi-label":
            pytest.skip("one product mixes up the digits of a row's labels; see the test of groups below")
        super().test_training_puts_a_true_label_first(task)

    def count_parameters(self, n_features: int, n_labels: int) -> int:
        return (n_features + 1) * sum(self.radices(n_labels))


class TestProductOfGroups(TestProduct):
    learning_rate = 0.5
    test_training_puts_a_true_label_first = HeadContract.test_training_puts_a_true_label_first

    def make(self, n_features: int, n_labels: int, task: Task, label_weights: Tensor | None = None) -> Head:
        return Product(n_features, n_labels, self.radices(n_labels), 3, task=task, label_weights=label_weights)

    def count_parameters(self, n_features: int, n_labels: int) -> int:
        return 3 * super().count_parameters(n_features, n_labels)


class TestProductOfSoftmaxes(TestProduct):
    # A softmax over labels sums to 1 even for rows without labels, so such rows teach nothing.
    tasks = ("single-label",)
    learning_rate = 0.5

    def make(self, n_features: int, n_labels: int, task: Task, label_weights: Tensor | None = None) -> Head:
        radices = self.radices(n_labels)
        return Product(n_features, n_labels, radices, loss="softmax", task=task, label_weights=label_weights)


def rounded(head: Product, generator: torch.Generator, step: float = 1.0) -> Product:
    """The head with weights on a grid, so that many scores are tied."""
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(torch.randint(-2, 3, parameter.shape, generator=generator) * step)
    return head


def kronecker(heads: list[Tensor]) -> Tensor:
    scores = heads[0]
    for head in heads[1:]:
        scores = (scores[:, :, None] * head[:, None, :]).flatten(1)
    return scores


@given(
    radices=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    k=st.integers(1, 40),
    n_values=st.sampled_from([2, 5, 1000]),
    seed=st.integers(0, 1000),
)
def test_best_codes_are_those_of_the_whole_product(radices: list[int], k: int, n_values: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    heads = [torch.from_numpy(rng.integers(0, n_values, (3, radix)) / n_values) for radix in radices]
    everything = kronecker(heads)
    codes, products = best_codes(heads, k)
    assert torch.equal(products, everything.sort(dim=1, descending=True).values[:, :k])
    assert torch.equal(everything.gather(1, codes), products)
    assert all(len(set(row)) == len(row) for row in codes.tolist())


@given(data=st.data())
def test_search_gives_what_scoring_every_label_gives(data: st.DataObject) -> None:
    radices = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    size = math.prod(radices)
    n_labels = data.draw(st.integers(max(1, size - 10), size))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 1000)))
    head = Product(
        3,
        n_labels,
        radices,
        groups=data.draw(st.integers(1, 3)),
        loss=data.draw(st.sampled_from(["binary", "softmax"])),
        order=data.draw(st.sampled_from([None, torch.randperm(n_labels, generator=generator)])),
    )
    if data.draw(st.booleans()):
        rounded(head, generator)
    features = torch.randint(-2, 3, (5, 3), generator=generator).float()
    k = data.draw(st.integers(1, 6))
    share = data.draw(st.sampled_from([None, 0.0, 0.05, 0.5, 0.9]))
    allowed = None if share is None else torch.rand(n_labels, generator=generator) < share
    labels, scores = head.predict_topk(features, k, allowed)
    expected_labels, expected_scores = best_labels(head.probabilities(features), k, allowed)
    assert torch.equal(labels, expected_labels)
    assert torch.equal(scores, expected_scores)


def test_a_million_labels_are_searched_and_not_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    head = Product(8, 999_983, (1000, 1000), groups=3, loss="softmax")
    features = torch.randn(4, 8)
    expected = best_labels(head.probabilities(features), 10)
    widest = []
    scores = Product._scores

    def watched(self: Product, outputs: Tensor, labels: Tensor) -> Tensor:
        widest.append(labels.shape[1])
        return scores(self, outputs, labels)

    monkeypatch.setattr(Product, "_scores", watched)
    labels, found = head.predict_topk(features, 10)
    assert torch.equal(labels, expected[0])
    assert torch.equal(found, expected[1])
    assert max(widest) < 20_000


def test_small_sets_of_allowed_labels_are_scored_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    head = Product(8, 1_000_000, (1000, 1000))
    allowed = torch.zeros(1_000_000, dtype=torch.bool)
    allowed[[5, 999_999, 123_456]] = True
    monkeypatch.setattr(Product, "_search", None)
    labels, scores = head.predict_topk(torch.randn(2, 8), 5, allowed)
    assert labels[:, :3].sort(1).values.tolist() == [[5, 123_456, 999_999]] * 2
    assert labels[:, 3:].tolist() == [[-1, -1]] * 2
    assert bool((scores[:, 3:] == -torch.inf).all())


def test_padded_codes_are_never_predicted() -> None:
    head = Product(1, 985 - 2, (197, 5))
    with torch.no_grad():
        head.linear.weight.zero_()
        head.linear.bias.fill_(-3)
        # The best code is 196 * 5 + 4 = 984, beyond the last label; the next ones share its first digit.
        head.linear.bias[197:] = torch.tensor([0.0, 0.0, 0.0, 2.0, 3.0])
        head.linear.bias[196] = 3
    labels, _ = head.predict_topk(torch.ones(1, 1), 3)
    assert labels.tolist() == [[980, 981, 982]]


def test_equal_scores_go_to_the_lowest_labels_whatever_the_order_of_codes() -> None:
    head = Product(2, 1000, (40, 25), order=torch.arange(1000).flip(0))
    with torch.no_grad():
        head.linear.weight.zero_()
        head.linear.bias.zero_()
    labels, scores = head.predict_topk(torch.ones(2, 2), 4)
    assert labels.tolist() == [[0, 1, 2, 3]] * 2
    assert scores.tolist() == [[0.25] * 4] * 2


@given(seed=st.integers(0, 1000))
def test_best_digits_make_the_best_label_where_outputs_are_not_negative(seed: int) -> None:
    rng = np.random.default_rng(seed)
    heads = [torch.from_numpy(rng.random((4, radix))) for radix in (3, 4, 2)]
    digits = [head.argmax(1) for head in heads]
    assert torch.equal(kronecker(heads).argmax(1), (digits[0] * 4 + digits[1]) * 2 + digits[2])


def test_best_digits_do_not_make_the_best_label_of_negative_outputs() -> None:
    heads = [torch.tensor([[-3.0, -1.0]]), torch.tensor([[-5.0, -2.0]])]
    assert kronecker(heads).argmax(1).tolist() == [0]
    assert (heads[0].argmax(1) * 2 + heads[1].argmax(1)).tolist() == [3]


@pytest.mark.parametrize("loss", ["binary", "softmax"])
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_scores_have_at_most_the_rank_of_the_groups(loss: Any, groups: int) -> None:
    torch.manual_seed(groups)
    head = Product(6, 6 * 5 * 7, (6, 5, 7), groups=groups, loss=loss)
    with torch.no_grad():
        head.linear.weight.mul_(3)
    # In single precision rank depends on rounding: 1e-5 lies between the error and the effect of a further group.
    tensor = head.probabilities(torch.randn(1, 6)).double().view(6, 5, 7)
    for axis in range(3):
        values = torch.linalg.svdvals(tensor.movedim(axis, 0).flatten(1))
        assert int((values > 1e-5 * values[0]).sum()) == groups


def test_binary_loss_is_that_of_the_concatenated_one_hot_digits() -> None:
    torch.manual_seed(0)
    head = Product(4, 12, (4, 3), task="single-label")
    features, labels = torch.randn(5, 4), torch.tensor([0, 11, 5, 7, 5])
    on = torch.cat([functional.one_hot(labels // 3, 4), functional.one_hot(labels % 3, 3)], 1).float()
    expected = functional.multilabel_soft_margin_loss(head.linear(features), on)
    torch.testing.assert_close(head.loss(features, LabelRows(labels, torch.arange(6), 12)), expected)


def test_softmax_loss_is_the_sum_of_the_digits_cross_entropies() -> None:
    torch.manual_seed(0)
    head = Product(4, 12, (4, 3), task="single-label", loss="softmax")
    features, labels = torch.randn(5, 4), torch.tensor([0, 11, 5, 7, 5])
    first, second = head.linear(features).split((4, 3), 1)
    expected = functional.cross_entropy(first, labels // 3) + functional.cross_entropy(second, labels % 3)
    torch.testing.assert_close(head.loss(features, LabelRows(labels, torch.arange(6), 12)), expected)


@pytest.mark.parametrize("loss", ["binary", "softmax"])
def test_loss_of_groups_is_the_poisson_likelihood_of_all_codes(loss: Any) -> None:
    torch.manual_seed(0)
    head = Product(4, 24, (4, 3, 2), groups=2, loss=loss)
    features = torch.randn(3, 4)
    Y = torch.zeros(3, 24)
    Y[0, [3, 17]], Y[2, 5] = 1, 1
    scores = head.probabilities(features)
    expected = (scores.sum(1) - (Y * scores.log()).sum(1)).mean() - (0 if loss == "binary" else 1)
    torch.testing.assert_close(head.loss(features, LabelRows.of(csr_array(Y.numpy()))), expected)


@pytest.mark.parametrize("loss", ["binary", "softmax"])
def test_groups_keep_apart_what_one_product_mixes_up(loss: Any) -> None:
    """Labels 00 and 11 of two digits: one product scores 01 and 10 the same."""
    targets = LabelRows(torch.tensor([0, 3]), torch.tensor([0, 2]), 4)
    mixed = {}
    for groups in (1, 2):
        torch.manual_seed(1)
        head = Product(1, 4, (2, 2), groups=groups, loss=loss)
        optimiser = torch.optim.Adam(head.parameters(), lr=0.1)
        for _ in range(200):
            optimiser.zero_grad()
            head.loss(torch.ones(1, 1), targets).backward()
            optimiser.step()
        scores = head.probabilities(torch.ones(1, 1))[0]
        mixed[groups] = float(scores[[1, 2]].max() / scores[[0, 3]].min())
    assert mixed[1] > 0.9
    assert mixed[2] < 0.1


def test_shared_digits_take_the_largest_weight_of_their_labels() -> None:
    weights = torch.ones(12)
    weights[4], weights[5] = 0.5, 3.0
    torch.manual_seed(0)
    head = Product(4, 12, (4, 3), label_weights=weights)
    features = torch.randn(1, 4)
    logits = head.linear(features)[0]
    # Labels 4 and 5 are the digits 1, 1 and 1, 2.
    on = torch.tensor([0.0, 1, 0, 0, 0, 1, 1])
    weight = torch.tensor([1.0, 3, 1, 1, 1, 0.5, 3])
    expected = functional.binary_cross_entropy_with_logits(logits, on, weight)
    torch.testing.assert_close(head.loss(features, LabelRows(torch.tensor([4, 5]), torch.tensor([0, 2]), 12)), expected)


@pytest.mark.parametrize("arguments", list(itertools.product(["binary", "softmax"], [1, 2])))
def test_a_row_of_weight_zero_has_no_positive_term(arguments: tuple[Any, int]) -> None:
    loss, groups = arguments
    torch.manual_seed(0)
    head = Product(4, 12, (4, 3), groups, loss, label_weights=torch.zeros(12))
    head.loss(torch.randn(2, 4), LabelRows(torch.tensor([4, 5]), torch.tensor([0, 1, 2]), 12)).backward()
    gradient = head.linear.bias.grad
    assert gradient is not None
    assert float(gradient.min()) >= 0


def test_order_says_which_code_a_label_has() -> None:
    torch.manual_seed(0)
    order = torch.randperm(12)
    plain = Product(4, 12, (4, 3))
    moved = Product(4, 12, (4, 3), order=order.numpy())
    moved.load_state_dict({**plain.state_dict(), "position": order})
    features = torch.randn(3, 4)
    assert torch.equal(moved.probabilities(features), plain.probabilities(features)[:, order])


def test_loading_another_order_moves_the_predictions_too() -> None:
    torch.manual_seed(0)
    first = Product(4, 12, (4, 3), order=torch.randperm(12))
    second = Product(4, 12, (4, 3), order=torch.randperm(12))
    second.load_state_dict(first.state_dict())
    features = torch.randn(3, 4)
    assert torch.equal(first.predict_topk(features, 5)[0], second.predict_topk(features, 5)[0])


def test_cost_is_that_of_one_layer_as_wide_as_the_digits() -> None:
    head = Product(10, 985, (197, 5), groups=2)
    assert head.n_parameters() == 2 * 202 * 11
    assert head.multiply_adds(3, training=False) == 3 * 10 * 404
    assert head.multiply_adds(3) == 3 * 3 * 10 * 404


def test_loss_is_finite_under_bfloat16() -> None:
    torch.manual_seed(0)
    head = Product(4, 12, (4, 3), groups=2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = head.loss(1e4 * torch.randn(2, 4), LabelRows(torch.tensor([4, 5]), torch.tensor([0, 1, 2]), 12))
    assert loss.dtype == torch.float32
    assert bool(loss.isfinite())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"radices": (3, 3)}, "make 9 codes; expected at least 10"),
        ({"groups": 0}, "groups is 0"),
        ({"loss": "squared"}, "expected one of 'binary', 'softmax'"),
        ({"order": [0] * 10}, "not a permutation"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Product(**{"n_features": 2, "n_labels": 10, "radices": (5, 2), **wrong})


def test_head_is_a_module_of_one_linear_layer() -> None:
    assert [type(module) for module in Product(2, 10, (5, 2)).children()] == [nn.Linear]


def test_lengths_that_are_not_given_are_planned() -> None:
    assert Product(2, 983).codes.radices == plan_heads(983, order="equal").radices
    assert Cascade(2, 983).codes.radices == plan_heads(983).radices
    assert Cascade(2, 1).predict_topk(torch.ones(1, 2), 1)[0].tolist() == [[0]]
