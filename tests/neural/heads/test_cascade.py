"""The cascade compared with scoring every label (fact H7), and which weights training may change."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional

from longtail.errors import InvalidInput
from longtail.neural.heads import OneHot
from longtail.neural.heads.cascade import Cascade
from longtail.neural.heads.head import Head, Task, best_labels
from longtail.neural.targets import LabelRows
from tests.neural.heads.head_contract import N_LABELS, HeadContract, label_rows


class TestCascade(HeadContract):
    learning_rate = 2.0
    sparse_gradients = False
    loss: Any = "product"

    def make(self, n_features: int, n_labels: int, task: Task, label_weights: Tensor | None = None) -> Head:
        return Cascade(
            n_features,
            n_labels,
            self.radices(n_labels),
            width=8,
            survivors=9,
            task=task,
            label_weights=label_weights,
            loss=self.loss,
            sparse_gradients=self.sparse_gradients,
        )

    def radices(self, n_labels: int) -> tuple[int, ...]:
        return (5, 3) if n_labels == N_LABELS else (n_labels,)

    def label_scores(self, head: Head, features: Tensor) -> Tensor:
        assert isinstance(head, Cascade)
        return head.probabilities(features)


class TestCascadeOfThreeStages(TestCascade):
    def radices(self, n_labels: int) -> tuple[int, ...]:
        return (3, 3, 2) if n_labels == N_LABELS else (1, n_labels, 1)


class TestCascadeWithSparseGradients(TestCascade):
    sparse_gradients = True


class TestCascadeTrainedInStages(TestCascade):
    loss = "stages"


@given(
    plan=st.sampled_from([(7, (7,)), (20, (5, 4)), (18, (5, 4)), (60, (5, 4, 3)), (50, (5, 4, 3)), (15, (2, 2, 2, 2))]),
    task=st.sampled_from(["multi-label", "single-label"]),
    moved=st.booleans(),
    share=st.sampled_from([None, 0.0, 0.2, 0.7]),
    k=st.integers(1, 70),
    seed=st.integers(0, 1000),
)
def test_search_that_drops_nothing_gives_what_scoring_every_label_gives(
    plan: tuple[int, tuple[int, ...]], task: Any, moved: bool, share: float | None, k: int, seed: int
) -> None:
    n_labels, radices = plan
    torch.manual_seed(seed)
    order = torch.randperm(n_labels) if moved else None
    head = Cascade(4, n_labels, radices, width=3, survivors=n_labels, task=task, order=order)
    features = torch.randn(5, 4)
    allowed = None if share is None else torch.rand(n_labels) < share
    labels, scores = head.predict_topk(features, k, allowed)
    everything = head.probabilities(features)
    expected_labels, expected_scores = best_labels(everything, k, allowed)
    torch.testing.assert_close(scores, expected_scores)
    # The two sum dot products in different orders, so labels with nearly equal scores may change places.
    there = expected_labels >= 0
    assert torch.equal(labels >= 0, there)
    torch.testing.assert_close(everything.gather(1, labels.clamp(min=0))[there], expected_scores[there])
    assert all(len(set(row)) == len(row) for row in (labels * there - ~there * torch.arange(1, k + 1)).tolist())
    if allowed is not None:
        assert bool(allowed[labels[there]].all())


@pytest.mark.parametrize(("n_labels", "radices"), [(18, (5, 4)), (50, (5, 4, 3))])
def test_single_label_scores_are_a_distribution_and_the_loss_its_likelihood(n_labels: int, radices: Any) -> None:
    torch.manual_seed(0)
    head = Cascade(4, n_labels, radices, width=3, survivors=1, task="single-label")
    features, labels = torch.randn(6, 4), torch.randint(n_labels, (6,))
    scores = head.probabilities(features)
    torch.testing.assert_close(scores.sum(1), torch.ones(6))
    expected = -scores.gather(1, labels[:, None]).log().mean()
    torch.testing.assert_close(head.loss(features, LabelRows(labels, torch.arange(7), n_labels)), expected)


def test_one_survivor_is_the_greedy_search() -> None:
    torch.manual_seed(0)
    head = Cascade(4, 20, (5, 4), width=3, survivors=1, task="single-label")
    features = torch.randn(50, 4)
    labels, _ = head.predict_topk(features, 1)
    assert torch.equal(labels[:, 0] // 4, head.first(features).argmax(1))


def stage_logits(head: Cascade, stage: int, features: Tensor) -> Tensor:
    embeddings, offsets = head.tables[stage - 1].weight.split([head.width, 1], dim=1)  # type: ignore[operator]
    logits: Tensor = head.queries[stage - 1](features) @ embeddings.T + offsets.T
    return logits


@pytest.mark.parametrize("prefix_weight", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("radices", [(5, 4), (3, 2, 4)])
def test_loss_with_all_prefixes_is_the_weighted_cross_entropy_of_the_chances_of_all_stages(
    radices: tuple[int, ...], prefix_weight: float
) -> None:
    torch.manual_seed(0)
    n_labels = torch.tensor(radices).prod().item() - 2
    order = torch.randperm(int(n_labels))
    head = Cascade(4, int(n_labels), radices, width=3, survivors=100, order=order, prefix_weight=prefix_weight)
    for parameter in head.tables.parameters():
        nn.init.normal_(parameter)
    features = torch.randn(3, 4)
    sets = [[1, 7, 13], [], [0, 4]]
    expected, chances, n_scored = torch.zeros(()), torch.ones(3, 1), 0
    for stage, (stride, n_prefixes) in enumerate(zip(head.codes.strides, head.n_prefixes, strict=True)):
        on = torch.zeros(3, n_prefixes)
        for row, labels in enumerate(sets):
            on[row, order[labels] // stride] = 1
        logits = head.first(features) if stage == 0 else stage_logits(head, stage, features)
        chances = logits.sigmoid() * chances.repeat_interleave(radices[stage], 1)[:, :n_prefixes]
        weight = 1.0 if stage + 1 == len(radices) else prefix_weight
        expected = expected + weight * functional.binary_cross_entropy(chances, on, reduction="sum")
        n_scored += on.numel()
    torch.testing.assert_close(head.loss(features, label_rows(sets, int(n_labels))), expected / n_scored)


def test_the_loss_in_stages_is_the_sum_of_the_mean_cross_entropies_of_their_candidates() -> None:
    """Groups, then the members of the best groups, where the groups of the row's labels come first (Algorithm 3)."""
    torch.manual_seed(0)
    head = Cascade(4, 18, (5, 4), width=3, survivors=2, loss="stages")
    features, sets = torch.randn(3, 4), [[1, 7], [], [17, 16]]
    groups = head.first(features)
    on_groups, on = torch.zeros(3, 5), torch.zeros(3, 20)
    for row, labels in enumerate(sets):
        on_groups[row, [label // 4 for label in labels]] = 1
        on[row, labels] = 1
    expected = functional.binary_cross_entropy_with_logits(groups, on_groups)
    best = (groups.sigmoid() + on_groups).topk(2, dim=1).indices
    candidates = (4 * best[:, :, None] + torch.arange(4)).flatten(1)
    logits = functional.pad(stage_logits(head, 1, features), (0, 2)).gather(1, candidates)
    terms = functional.binary_cross_entropy_with_logits(logits, on.gather(1, candidates), reduction="none")
    expected = expected + terms[candidates < 18].mean()
    torch.testing.assert_close(head.loss(features, label_rows(sets, 18)), expected)


def test_three_stages_are_trained_apart() -> None:
    """Each stage's sigmoids are its own: raising the logits of a stage leaves the gradients of the others alone."""
    gradients = []
    for raised in (0.0, 2.0):
        torch.manual_seed(0)
        head = Cascade(4, 24, (3, 2, 4), width=3, survivors=24, loss="stages")
        with torch.no_grad():
            head.first.bias += raised
        head.loss(torch.ones(2, 4), label_rows([[3, 20], [7]], 24)).backward()
        gradients.append([table.weight.grad for table in head.tables])
    for before, after in zip(*gradients, strict=True):
        torch.testing.assert_close(before, after)


def test_with_one_label_per_row_both_losses_are_the_same() -> None:
    losses = []
    for loss in ("product", "stages"):
        torch.manual_seed(0)
        head = Cascade(4, 18, (5, 4), width=3, task="single-label", loss=loss)  # type: ignore[arg-type]
        losses.append(head.loss(torch.ones(2, 4), torch.tensor([3, 17])))
    assert torch.equal(*losses)


def test_a_cascade_of_one_head_has_the_loss_of_an_output_for_every_label() -> None:
    torch.manual_seed(0)
    head, plain = Cascade(4, 9, (9,)), OneHot(4, 9)
    plain.output.load_state_dict(head.first.state_dict())
    features, targets = torch.randn(3, 4), label_rows([[1, 7], [], [0]], 9)
    torch.testing.assert_close(head.loss(features, targets), plain.loss(features, targets))


def test_chances_beyond_what_rounds_to_one_still_have_a_gradient() -> None:
    head = Cascade(2, 6, (3, 2), width=None, survivors=3)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.first.bias.fill_(40)
        head.tables[0].weight[:, -1] = 40  # type: ignore[index,operator]
    head.loss(torch.ones(1, 2), label_rows([[]], 6)).backward()
    for gradient in (head.first.bias.grad, head.tables[0].weight.grad[:, -1]):  # type: ignore[index,union-attr]
        assert bool((gradient > 0.01).all())  # type: ignore[operator]


def test_without_a_width_the_features_are_the_queries() -> None:
    head = Cascade(5, 6, (3, 2), width=None)
    assert head.width == 5
    assert head.n_parameters() == 3 * 6 + 6 * 6


def gradient_rows(head: Cascade, stage: int) -> set[int]:
    gradient = head.tables[stage - 1].weight.grad
    assert isinstance(gradient, Tensor)
    return set(gradient.to_dense().abs().sum(1).nonzero()[:, 0].tolist())


def test_only_candidates_are_scored_and_the_rows_labels_are_among_them() -> None:
    torch.manual_seed(0)
    head = Cascade(4, 100, (20, 5), width=3, survivors=2)
    head.loss(torch.randn(1, 4), label_rows([[7, 93]], 100)).backward()
    assert gradient_rows(head, 1) == {*range(5, 10), *range(90, 95)}


def test_labels_of_more_groups_than_survive_take_the_places_of_others() -> None:
    torch.manual_seed(0)
    head = Cascade(4, 100, (20, 5), width=3, survivors=2)
    labels = [3, 18, 42, 66, 71, 99]
    head.loss(torch.randn(2, 4), label_rows([labels, [0]], 100)).backward()
    touched = gradient_rows(head, 1)
    assert touched >= {0, *labels}
    assert len(touched) <= 2 * 10


def test_labels_of_more_groups_than_survive_reach_the_last_of_three_stages() -> None:
    torch.manual_seed(0)
    head = Cascade(4, 120, (10, 4, 3), width=3, survivors=2)
    labels = [3, 40, 62, 119]
    head.loss(torch.randn(1, 4), label_rows([labels], 120)).backward()
    assert gradient_rows(head, 1) >= {label // 3 for label in labels}
    assert gradient_rows(head, 2) >= set(labels)


def test_rows_with_more_labels_than_candidates_are_trained_on_as_many_as_fit() -> None:
    torch.manual_seed(0)
    head = Cascade(4, 12, (6, 2), width=3, survivors=1)
    loss = head.loss(torch.randn(1, 4), label_rows([list(range(0, 12, 2))], 12))
    loss.backward()
    assert bool(loss.isfinite())
    assert len(gradient_rows(head, 1)) == 2
    assert all(label % 2 == 0 for label in gradient_rows(head, 1))


def test_sparse_gradients_are_the_dense_ones() -> None:
    heads = []
    for sparse in (False, True):
        torch.manual_seed(0)
        heads.append(Cascade(4, 120, (10, 4, 3), width=3, survivors=2, sparse_gradients=sparse))
        heads[-1].loss(torch.ones(2, 4), label_rows([[3, 40], [119]], 120)).backward()
    dense, sparse_head = heads
    assert dense.sparse_parameters() == []
    assert len(sparse_head.sparse_parameters()) == 2
    for stage in range(2):
        gradient = sparse_head.tables[stage].weight.grad
        assert gradient.is_sparse
        torch.testing.assert_close(gradient.to_dense(), dense.tables[stage].weight.grad)


@pytest.mark.parametrize("task", ["multi-label", "single-label"])
def test_allowed_labels_are_found_in_groups_that_would_not_survive(task: Any) -> None:
    torch.manual_seed(0)
    head = Cascade(4, 120, (10, 4, 3), width=3, survivors=1, task=task)
    features = torch.randn(3, 4)
    worst = head.first(features).sum(0).argmin()
    allowed = torch.zeros(120, dtype=torch.bool)
    allowed[worst * 12 + 7] = True
    labels, scores = head.predict_topk(features, 2, allowed)
    assert labels.tolist() == [[int(worst) * 12 + 7, -1]] * 3
    torch.testing.assert_close(scores[:, 0], head.probabilities(features)[:, int(worst) * 12 + 7])


def test_there_are_k_labels_where_the_survivors_alone_have_fewer() -> None:
    torch.manual_seed(0)
    head = Cascade(4, 120, (10, 4, 3), width=3, survivors=1)
    labels, scores = head.predict_topk(torch.randn(3, 4), 50)
    assert bool((labels >= 0).all())
    assert all(len(set(row)) == 50 for row in labels.tolist())
    assert bool((scores.diff(dim=1) <= 0).all())


def test_equal_scores_go_to_the_lowest_labels() -> None:
    head = Cascade(4, 119, (10, 4, 3), width=3, survivors=2)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
    labels, scores = head.predict_topk(torch.randn(2, 4), 5)
    assert labels.tolist() == [[0, 1, 2, 3, 4]] * 2
    assert scores.tolist() == [[0.125] * 5] * 2


def test_shared_prefixes_take_the_largest_weight_of_their_labels() -> None:
    torch.manual_seed(0)
    weights = torch.ones(6)
    weights[0], weights[1] = 0.5, 3
    head = Cascade(4, 6, (2, 3), width=3, survivors=2, label_weights=weights, prefix_weight=1.0)
    features = torch.randn(1, 4)
    first, last = head.first(features), stage_logits(head, 1, features)
    expected = functional.binary_cross_entropy(
        first.sigmoid(), torch.tensor([[1.0, 0]]), torch.tensor([[3.0, 1]]), reduction="sum"
    ) + functional.binary_cross_entropy(
        last.sigmoid() * first.sigmoid().repeat_interleave(3, 1),
        torch.tensor([[1.0, 1, 0, 0, 0, 0]]),
        torch.tensor([[0.5, 3, 1, 1, 1, 1]]),
        reduction="sum",
    )
    torch.testing.assert_close(head.loss(features, label_rows([[0, 1]], 6)), expected / 8)


def test_cascade_learns_the_labels_of_each_row() -> None:
    torch.manual_seed(0)
    Y = csr_array((torch.rand(20, 60) < 0.05).float().numpy())
    targets = LabelRows.of(Y)
    head = Cascade(20, 60, (12, 5), width=16, survivors=8)
    optimiser = torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(150):
        optimiser.zero_grad()
        head.loss(torch.eye(20), targets).backward()
        optimiser.step()
    for row, labels in enumerate(head.predict_topk(torch.eye(20), 8)[0].tolist()):
        own = Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist()
        assert set(own) == set(labels[: len(own)])


def test_costs_count_the_candidates_only() -> None:
    head = Cascade(10, 3956, (172, 23), width=7, survivors=4)
    assert head.n_parameters() == 172 * 11 + 7 * 11 + 3956 * 8
    assert head.multiply_adds(2, training=False) == 2 * (10 * 172 + 10 * 7 + 4 * 23 * 8)
    assert head.multiply_adds(2) == 3 * head.multiply_adds(2, training=False)


@pytest.mark.parametrize("wrong", [{"width": 0}, {"survivors": 0}, {"radices": (2, 2)}])
def test_arguments_that_do_not_fit_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="expected at least"):
        Cascade(**{"n_features": 2, "n_labels": 10, "radices": (5, 2), **wrong})


@pytest.mark.parametrize("wrong", [-0.1, float("nan"), float("inf")])
def test_a_weight_of_prefixes_that_is_none_is_refused(wrong: float) -> None:
    with pytest.raises(InvalidInput, match="expected a number from 0"):
        Cascade(2, 10, (5, 2), prefix_weight=wrong)


def test_labels_of_more_groups_than_survive_are_scored_with_the_chances_of_their_own_groups() -> None:
    head = Cascade(4, 6, (3, 2), width=3, survivors=2, prefix_weight=1.0)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.first.bias.copy_(torch.tensor([5.0, 4.0, -5.0]))
    features, labels = torch.zeros(1, 4), [0, 2, 4]
    groups, scores = head.first(features).sigmoid()[0], head.probabilities(features)[0]
    # The two likeliest groups survive; label 4, whose group does not, takes the place of label 3.
    found = groups.log().sum() + scores[labels].log().sum() + torch.log1p(-scores[1])
    torch.testing.assert_close(head.loss(features, label_rows([labels], 6)), -found / (3 + 4))


@pytest.mark.parametrize("radices", [(6, 5), (5, 3, 2), (2, 3, 5)])
def test_rows_of_more_labels_than_there_are_places_are_learned_from(radices: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    head = Cascade(4, 30, radices, width=3, survivors=2)
    loss = head.loss(torch.randn(1, 4), label_rows([[0, 7, 11, 18, 25, 29]], 30))
    loss.backward()
    assert bool(torch.isfinite(loss))
    for parameter in head.parameters():
        assert parameter.grad is not None
        assert bool(torch.isfinite(parameter.grad).all())
        assert bool(parameter.grad.any())


def test_survivors_beyond_the_groups_there_are_cost_nothing() -> None:
    torch.manual_seed(0)
    head = Cascade(4, 6, (3, 2), width=3, survivors=2**31)
    few = Cascade(4, 6, (3, 2), width=3, survivors=3)
    few.load_state_dict(head.state_dict())
    features = torch.randn(2, 4)
    assert all(
        torch.equal(*pair) for pair in zip(head.predict_topk(features, 3), few.predict_topk(features, 3), strict=True)
    )


def test_the_plan_of_a_batch_knows_the_embeddings_that_are_gathered() -> None:
    gathering = Cascade(8, 1000, (100, 10), width=7, survivors=4)
    assert gathering.batch_values(2) == 2 * (100 + 2 * 4 * 10 * 8)
    assert Cascade(8, 40, (4, 10), width=7, survivors=4).batch_values(2) == 2 * (4 + 40)
