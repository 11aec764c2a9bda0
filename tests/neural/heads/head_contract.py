"""`HeadContract`: the tests of every head. The test class of a head inherits it and defines how to make one."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from longtail.errors import InvalidInput
from longtail.neural.heads import Head
from longtail.neural.heads.head import TASKS, Task
from longtail.neural.targets import LabelRows

N_FEATURES, N_LABELS, N_ROWS = 16, 12, 48
TASK = pytest.mark.parametrize("task", TASKS)


def label_rows(rows: list[list[int]], n_labels: int) -> LabelRows:
    """Targets from lists of labels."""
    lengths = torch.tensor([0, *map(len, rows)])
    return LabelRows(
        torch.tensor([label for row in rows for label in row], dtype=torch.int64), lengths.cumsum(0), n_labels
    )


def toy(task: Task, n_labels: int = N_LABELS, n_rows: int = N_ROWS) -> tuple[Tensor, LabelRows]:
    """Rows near the mean of their labels' directions, which every head can learn. Some multi-label rows are empty."""
    generator = torch.Generator().manual_seed(7)
    directions = torch.nn.functional.normalize(torch.randn(n_labels, N_FEATURES, generator=generator), dim=1)
    if task == "single-label":
        rows = [[row % n_labels] for row in range(n_rows)]
    else:
        rows = [sorted({row % n_labels, 5 * row % n_labels}) if row % 8 else [] for row in range(n_rows)]
    noise = 0.02 * torch.randn(n_rows, N_FEATURES, generator=generator)
    features = torch.stack([directions[row].sum(0) for row in rows]) + noise
    return 3 * features, label_rows(rows, n_labels)


def steps(head: Head, features: Tensor, targets: LabelRows, n_steps: int, learning_rate: float) -> list[float]:
    """The losses before each of `n_steps` steps of gradient descent."""
    optimiser = torch.optim.SGD(head.parameters(), lr=learning_rate)
    losses = []
    for _ in range(n_steps):
        optimiser.zero_grad()
        loss = head.loss(features, targets)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    return losses


def brute_force(scores: Tensor, k: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The k best labels by sorting all scores, row by row."""
    labels = torch.full((len(scores), k), -1)
    values = torch.full((len(scores), k), -torch.inf)
    for row, line in enumerate(scores.tolist()):
        competing = [label for label in range(len(line)) if allowed is None or bool(allowed[label])]
        competing.sort(key=lambda label: (-line[label], label))
        for place, label in enumerate(competing[:k]):
            labels[row, place], values[row, place] = label, line[label]
    return labels, values


class HeadContract:
    """Facts that hold for every head.

    A subclass defines `make` and, if possible, `label_scores`, `count_parameters` and `count_multiply_adds`; the latter
    two are counted by hand for the given sizes.
    """

    learning_rate: float = 1.0
    falls_to: float = 0.8
    tasks: tuple[Task, ...] = TASKS

    def make(self, n_features: int, n_labels: int, task: Task, label_weights: Tensor | None = None) -> Head:
        raise AssertionError("each test class defines how to make its head")

    def rate(self, task: Task) -> float:
        """The learning rate for the toy data; losses that are means over labels need a larger one."""
        return self.learning_rate

    def label_scores(self, head: Head, features: Tensor) -> Tensor | None:
        """The score of every label (n_rows x n_labels), computed in another way than by `predict_topk`, or None."""
        return None

    def count_parameters(self, n_features: int, n_labels: int) -> int | None:
        return None

    def count_multiply_adds(self, n_features: int, n_labels: int, n_rows: int, training: bool) -> int | None:
        return None

    def seeded(self, task: Task, n_labels: int = N_LABELS, label_weights: Tensor | None = None, seed: int = 0) -> Head:
        if task not in self.tasks:
            pytest.skip(f"not a head for {task}")
        torch.manual_seed(seed)
        return self.make(N_FEATURES, n_labels, task, label_weights)

    def trained(self, task: Task) -> tuple[Head, Tensor]:
        head = self.seeded(task)
        features, targets = toy(task)
        steps(head, features, targets, 20, self.rate(task))
        return head, features

    @TASK
    def test_the_loss_is_finite_and_falls(self, task: Task) -> None:
        head = self.seeded(task)
        features, targets = toy(task)
        losses = steps(head, features, targets, 50, self.rate(task))
        assert torch.tensor(losses).isfinite().all()
        assert sum(losses[-5:]) / 5 < self.falls_to * losses[0]

    @TASK
    def test_training_puts_a_true_label_first(self, task: Task) -> None:
        head = self.seeded(task)
        features, targets = toy(task)
        steps(head, features, targets, 300, self.rate(task))
        first = head.predict_topk(features, k=1)[0][:, 0].tolist()
        truth = [set(part.tolist()) for part in targets.labels.tensor_split(targets.offsets[1:-1])]
        hits = [label in labels for label, labels in zip(first, truth, strict=True) if labels]
        assert sum(hits) > 0.8 * len(hits)

    @TASK
    def test_the_gradient_reaches_features_and_every_parameter(self, task: Task) -> None:
        head, features = self.trained(task)
        inputs = features.clone().requires_grad_()
        head.zero_grad()
        head.loss(inputs, toy(task)[1]).backward()
        assert inputs.grad is not None
        assert inputs.grad.isfinite().all()
        assert inputs.grad.abs().sum() > 0
        for name, parameter in head.named_parameters():
            assert parameter.grad is not None, name
            gradient = parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad
            assert gradient.isfinite().all(), name
            assert gradient.abs().sum() > 0, name

    @TASK
    def test_the_gradient_is_that_of_the_loss(self, task: Task) -> None:
        head, features = self.trained(task)
        targets = toy(task)[1]
        direction = torch.randn(features.shape, generator=torch.Generator().manual_seed(1))
        inputs = features.clone().requires_grad_()
        with torch.random.fork_rng():
            torch.manual_seed(3)
            head.loss(inputs, targets).backward()

        def along(step: float) -> float:
            with torch.no_grad(), torch.random.fork_rng():
                torch.manual_seed(3)
                return float(head.loss(features + step * direction, targets))

        assert inputs.grad is not None
        slope = float((inputs.grad * direction).sum())
        assert (along(1e-2) - along(-1e-2)) / 2e-2 == pytest.approx(slope, rel=0.03, abs=2e-4)

    @TASK
    def test_a_call_with_targets_gives_the_loss_and_without_them_the_logits(self, task: Task) -> None:
        head, features = self.trained(task)
        targets = toy(task)[1]
        with torch.random.fork_rng():
            torch.manual_seed(3)
            expected = head.loss(features, targets)
        torch.manual_seed(3)
        found = head(features, targets)
        assert torch.equal(found.loss, expected)
        assert found.n_rows == N_ROWS
        logits = nn.Sequential(nn.Identity(), head)(features)
        stages = (logits,) if isinstance(logits, Tensor) else logits
        assert all(len(stage) == N_ROWS and stage.isfinite().all() for stage in stages)
        assert isinstance(logits, tuple) or logits.shape == (N_ROWS, N_LABELS)

    @TASK
    def test_log_probabilities_are_those_of_the_scores_and_have_a_gradient(self, task: Task) -> None:
        head, features = self.trained(task)
        inputs = features.clone().requires_grad_()
        found = head.log_prob(inputs)
        torch.testing.assert_close(found.exp(), head.probabilities(features), rtol=1e-4, atol=1e-6)
        found.sum().backward()
        assert inputs.grad is not None
        assert inputs.grad.isfinite().all()
        scores = self.label_scores(head, features)
        if scores is not None:
            torch.testing.assert_close(found.detach().exp(), scores.detach(), rtol=1e-4, atol=1e-6)

    @TASK
    def test_the_class_is_the_best_label_and_labels_are_those_of_at_least_one_half(self, task: Task) -> None:
        head, features = self.trained(task)
        found = head.predict(features)
        if task == "single-label":
            assert torch.equal(found, head.predict_topk(features, 1)[0][:, 0])
        else:
            assert found.dtype == torch.bool
            assert torch.equal(found, head.probabilities(features) >= 0.5)

    @TASK
    @pytest.mark.parametrize("shape", [(4, 12), (2, 3, 8), ()])
    def test_features_may_have_any_leading_shape(self, task: Task, shape: tuple[int, ...]) -> None:
        head, features = self.trained(task)
        n_rows = math.prod(shape)
        rows, shaped = features[:n_rows], features[:n_rows].view(*shape, N_FEATURES)
        targets = label_rows([[row % N_LABELS] for row in range(n_rows)], N_LABELS)
        losses = []
        for each in (rows, shaped):
            torch.manual_seed(3)
            losses.append(float(head.loss(each, targets).detach()))
        assert losses[0] == losses[1]
        for method in (head.log_prob, head.probabilities, head.predict):
            expected = method(rows)
            assert torch.equal(method(shaped), expected.view(torch.Size(shape) + expected.shape[1:]))
        for found, expected in zip(head.predict_topk(shaped, 3), head.predict_topk(rows, 3), strict=True):
            assert torch.equal(found, expected.view(*shape, 3))
        logits = head(shaped)
        for stage in (logits,) if isinstance(logits, Tensor) else logits:
            assert stage.shape[: len(shape)] == shape

    @TASK
    @pytest.mark.parametrize("k", [1, 3, N_LABELS])
    def test_the_best_labels_are_those_of_brute_force(self, task: Task, k: int) -> None:
        head, features = self.trained(task)
        scores = self.label_scores(head, features)
        if scores is None:
            pytest.skip("this head does not give the scores of all labels")
        labels, found = head.predict_topk(features, k)
        expected_labels, expected = brute_force(scores.detach(), k)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
        distinct = (expected[:, :-1] - expected[:, 1:] > 1e-5).all(1) if k > 1 else torch.ones(len(labels)).bool()
        assert distinct.any()
        assert (labels[distinct] == expected_labels[distinct]).all()

    @TASK
    def test_scores_are_probabilities_that_fall_and_labels_do_not_repeat(self, task: Task) -> None:
        head, features = self.trained(task)
        labels, scores = head.predict_topk(features, 5)
        assert labels.shape == scores.shape == (N_ROWS, 5)
        assert labels.dtype == torch.int64
        assert scores.dtype == torch.float32
        assert not scores.requires_grad
        assert ((scores >= 0) & (scores <= 1)).all()
        assert (scores.diff(dim=1) <= 0).all()
        assert ((labels >= 0) & (labels < N_LABELS)).all()
        assert all(len(set(row)) == 5 for row in labels.tolist())

    @TASK
    def test_only_allowed_labels_are_given_and_keep_their_scores(self, task: Task) -> None:
        head, features = self.trained(task)
        allowed = torch.arange(N_LABELS) % 3 == 1
        labels, scores = head.predict_topk(features, 6, allowed)
        n_allowed = int(allowed.sum())
        assert allowed[labels[:, :n_allowed]].all()
        assert (labels[:, n_allowed:] == -1).all()
        assert (scores[:, n_allowed:] == -torch.inf).all()
        all_scores = self.label_scores(head, features)
        if all_scores is not None:
            torch.testing.assert_close(scores, brute_force(all_scores.detach(), 6, allowed)[1], rtol=1e-4, atol=1e-6)

    @TASK
    def test_nothing_is_given_where_nothing_is_allowed(self, task: Task) -> None:
        head, features = self.trained(task)
        labels, scores = head.predict_topk(features, 2, torch.zeros(N_LABELS, dtype=torch.bool))
        assert (labels == -1).all()
        assert (scores == -torch.inf).all()

    @TASK
    def test_places_beyond_the_labels_stay_empty(self, task: Task) -> None:
        head, features = self.trained(task)
        labels, scores = head.predict_topk(features, N_LABELS + 4)
        assert all(sorted(row[:N_LABELS]) == list(range(N_LABELS)) for row in labels.tolist())
        assert (labels[:, N_LABELS:] == -1).all()
        assert (scores[:, N_LABELS:] == -torch.inf).all()

    @TASK
    def test_a_row_is_predicted_alone_as_among_others(self, task: Task) -> None:
        head, features = self.trained(task)
        _, scores = head.predict_topk(features, 3)
        for row in (0, N_ROWS - 1):
            alone = head.predict_topk(features[row : row + 1], 3)
            torch.testing.assert_close(alone[1], scores[row : row + 1], rtol=1e-4, atol=1e-6)
        assert head.predict_topk(features[:0], 3)[0].shape == (0, 3)

    @TASK
    def test_one_label_and_one_row_are_enough(self, task: Task) -> None:
        head = self.seeded(task, n_labels=1)
        features = torch.ones(1, N_FEATURES)
        loss = head.loss(features, label_rows([[0]], 1))
        assert loss.isfinite()
        labels, scores = head.predict_topk(features, 2)
        assert labels.tolist() == [[0, -1]]
        assert 0 <= float(scores[0, 0]) <= 1

    def test_rows_without_labels_count_as_negatives(self) -> None:
        head = self.seeded("multi-label")
        features, _ = toy("multi-label")
        targets = label_rows([[]] * N_ROWS, N_LABELS)
        before = head.predict_topk(features, N_LABELS)[1].sum()
        losses = steps(head, features, targets, 30, self.rate("multi-label"))
        assert losses[-1] < losses[0]
        assert head.predict_topk(features, N_LABELS)[1].sum() < before

    @TASK
    def test_weights_of_one_change_nothing(self, task: Task) -> None:
        features, targets = toy(task)
        losses = []
        for weights in (None, torch.ones(N_LABELS)):
            head = self.seeded(task, label_weights=weights)
            losses.append(steps(head, features, targets, 3, self.rate(task)))
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)

    @TASK
    def test_a_label_of_weight_zero_is_not_learned_from(self, task: Task) -> None:
        weights = torch.ones(N_LABELS)
        weights[3] = 0
        features, targets = toy(task)
        has_label = torch.zeros(N_ROWS, dtype=torch.bool)
        has_label[targets.rows[targets.labels == 3]] = True
        without, with_weight = (self.seeded(task, label_weights=w) for w in (weights, None))
        for head in (without, with_weight):
            steps(head, features, targets, 100, self.rate(task))

        def mean_score(head: Head) -> float:
            only = torch.arange(N_LABELS) == 3
            return float(head.predict_topk(features[has_label], 1, only)[1].mean())

        assert mean_score(without) < mean_score(with_weight)

    @TASK
    def test_all_weights_zero_leave_a_single_label_nothing_to_learn(self, task: Task) -> None:
        head = self.seeded(task, label_weights=torch.zeros(N_LABELS))
        loss = head.loss(*toy(task))
        assert loss.isfinite()
        if task == "single-label":
            assert float(loss.detach()) == 0

    @TASK
    def test_the_state_of_one_head_makes_another_predict_the_same(self, task: Task) -> None:
        head, features = self.trained(task)
        other = self.seeded(task, seed=99)
        other.load_state_dict(head.state_dict())
        for ours, theirs in zip(head.predict_topk(features, 4), other.predict_topk(features, 4), strict=True):
            assert torch.equal(ours, theirs)

    @TASK
    def test_the_same_seed_makes_the_same_head(self, task: Task) -> None:
        features, targets = toy(task)
        runs = [steps(self.seeded(task), features, targets, 3, self.rate(task)) for _ in range(2)]
        assert runs[0] == runs[1]

    @TASK
    def test_low_precision_around_the_loss_changes_it_little(self, task: Task) -> None:
        head, features = self.trained(task)
        targets = toy(task)[1]
        torch.manual_seed(0)
        exact = float(head.loss(features, targets).detach())
        torch.manual_seed(0)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = head.loss(features, targets)
        assert loss.dtype == torch.float32
        loss.backward()
        assert float(loss.detach()) == pytest.approx(exact, rel=0.05, abs=0.01)

    @TASK
    def test_parameters_are_counted(self, task: Task) -> None:
        head = self.seeded(task)
        assert head.n_parameters() == sum(p.numel() for p in head.parameters()) > 0
        expected = self.count_parameters(N_FEATURES, N_LABELS)
        assert expected is None or head.n_parameters() == expected
        trained = {id(parameter) for parameter in head.parameters()}
        assert all(id(parameter) in trained for parameter in head.sparse_parameters())

    @TASK
    def test_sparse_gradients_are_where_the_head_says(self, task: Task) -> None:
        head = self.seeded(task)
        head.loss(*toy(task)).backward()
        sparse = {id(p) for p in head.parameters() if p.grad is not None and p.grad.is_sparse}
        assert sparse == {id(parameter) for parameter in head.sparse_parameters()}

    @TASK
    @pytest.mark.parametrize("training", [True, False])
    def test_multiply_adds_are_counted(self, task: Task, training: bool) -> None:
        head = self.seeded(task)
        assert 0 < head.multiply_adds(1, training) <= head.multiply_adds(10, training)
        expected = self.count_multiply_adds(N_FEATURES, N_LABELS, 10, training)
        assert expected is None or head.multiply_adds(10, training) == expected

    @TASK
    def test_what_does_not_fit_is_refused(self, task: Task) -> None:
        head = self.seeded(task)
        features, targets = toy(task)
        with pytest.raises(InvalidInput, match="features"):
            head.loss(features[:, 1:], targets)
        with pytest.raises(InvalidInput, match="features"):
            head.predict_topk(features[:, 1:], 1)
        with pytest.raises(InvalidInput, match="targets"):
            head.loss(features[1:], targets)
        with pytest.raises(InvalidInput, match="k is 0"):
            head.predict_topk(features, 0)
        with pytest.raises(InvalidInput, match="allowed"):
            head.predict_topk(features, 1, torch.ones(N_LABELS + 1, dtype=torch.bool))
        with pytest.raises(InvalidInput, match="label_weights"):
            self.make(N_FEATURES, N_LABELS, task, torch.ones(N_LABELS + 1))

    def test_a_row_of_two_labels_is_no_single_label(self) -> None:
        head = self.seeded("single-label")
        with pytest.raises(InvalidInput, match="exactly one label per row"):
            head.loss(torch.zeros(1, N_FEATURES), label_rows([[0, 1]], N_LABELS))
