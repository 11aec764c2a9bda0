from __future__ import annotations

from itertools import combinations
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from longtail.audit import ARGMAXABLE, audit, dft_matrix, dft_product
from longtail.errors import InvalidInput
from longtail.neural.heads import DFT, Head
from longtail.neural.heads.dft import Form
from longtail.neural.heads.head import Task
from tests.neural.heads.head_contract import N_LABELS, HeadContract

ORDER = torch.tensor([5, 3, 11, 0, 8, 1, 10, 2, 6, 4, 9, 7])


class TestTransformed(HeadContract):
    form: Form = "fft"
    fixed = int(1.25 * N_LABELS * np.log2(N_LABELS))

    def make(self, n_features: int, n_labels: int, task: Task, label_weights: Tensor | None = None) -> Head:
        if n_labels == 1:
            return DFT(n_features, 1, 0, task, label_weights, 1, start="mean", mean_active=0.5, form=self.form)
        return DFT(n_features, n_labels, 4, task, label_weights, slack=2, order=ORDER, form=self.form)

    def rate(self, task: Task) -> float:
        return 8.0 if task == "multi-label" else 1.0

    def label_scores(self, head: Head, features: Tensor) -> Tensor:
        assert isinstance(head, DFT)
        weights, _ = head.output_layer()
        logits = (head.projection(features).double() @ torch.from_numpy(weights).T).float()
        return logits.sigmoid() if head.task == "multi-label" else logits.softmax(1)

    def count_parameters(self, n_features: int, n_labels: int) -> int:
        return (n_features + 1) * (2 * 4 + 1 + 2) + n_labels * 2

    def count_multiply_adds(self, n_features: int, n_labels: int, n_rows: int, training: bool) -> int:
        trained = n_features * 11 + n_labels * 2
        return n_rows * (3 * trained + 2 * self.fixed if training else trained + self.fixed)


class TestInMatrixForm(TestTransformed):
    form = "matrix"
    fixed = N_LABELS * 9


@given(k=st.integers(0, 6), more=st.integers(1, 40), ordered=st.booleans(), seed=st.integers(0, 99))
def test_transform_and_matrix_are_the_same_layer(k: int, more: int, ordered: bool, seed: int) -> None:
    n = 2 * k + more + 1
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(n, generator=generator) if ordered else None
    x = torch.randn(3, 2 * k + 1, generator=generator)
    forms: tuple[Form, Form] = ("fft", "matrix")
    heads = [DFT(2 * k + 1, n, k, slack=0, start="mean", mean_active=0.5, order=order, form=form) for form in forms]
    found = []
    for head in heads:
        with torch.no_grad():
            head.projection.weight.copy_(torch.eye(2 * k + 1))
            head.projection.bias.zero_()
        inputs = x.clone().requires_grad_()
        logits = head.logits(inputs)
        (logits * torch.arange(float(n))).sum().backward()
        assert inputs.grad is not None
        found.append((logits.detach(), inputs.grad))
    torch.testing.assert_close(found[0][0], found[1][0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found[0][1], found[1][1], rtol=1e-4, atol=1e-3)
    expected = dft_product(x.numpy(), n)
    np.testing.assert_allclose(found[0][0], expected if order is None else expected[:, order.numpy()], atol=1e-4)


@pytest.mark.parametrize("form", ["fft", "matrix"])
@pytest.mark.parametrize(("n", "k", "slack"), [(9, 4, 0), (1000, 7, 5), (997, 30, 0)])
def test_every_label_starts_with_the_probability_of_k_in_n(form: Form, n: int, k: int, slack: int) -> None:
    torch.manual_seed(0)
    head = DFT(6, n, k, slack=slack, form=form)
    torch.testing.assert_close(head.probabilities(torch.randn(4, 6)), torch.full((4, n), k / n), rtol=1e-4, atol=1e-7)


def test_the_start_may_be_the_mean_number_of_labels_instead() -> None:
    head = DFT(6, 100, 10, start="mean", mean_active=2.5)
    torch.testing.assert_close(head.probabilities(torch.randn(4, 6)), torch.full((4, 100), 0.025))


def test_every_set_of_at_most_k_labels_can_be_had_in_any_order_and_with_slack() -> None:
    torch.manual_seed(0)
    sets = np.zeros((1 + 9 + 36, 9), dtype=np.int8)
    members = [chosen for size in range(3) for chosen in combinations(range(9), size)]
    for row, chosen in enumerate(members):
        sets[row, list(chosen)] = 1
    head = DFT(5, 9, 2, slack=1, order=torch.randperm(9))
    weights, offsets = head.output_layer()
    assert weights.shape == (9, 6)
    assert (audit(weights, sets, offsets).verdicts == ARGMAXABLE).all()


def test_the_output_layer_is_the_fourier_matrix_in_the_order_of_labels() -> None:
    weights, offsets = DFT(5, 12, 3, order=ORDER).output_layer()
    np.testing.assert_allclose(weights, dft_matrix(12, 3)[ORDER.numpy()])
    assert not offsets.any()


def test_the_matrix_is_not_part_of_the_state() -> None:
    matrix, transform = (DFT(5, 50, 3, form=form) for form in ("matrix", "fft"))
    assert matrix.matrix is not None
    assert transform.matrix is None
    transform.load_state_dict(matrix.state_dict())


@pytest.mark.parametrize(("start", "mean_active"), [("max", 2.0), ("mean", None), ("mean", 0.0)])
def test_starts_that_contradict_themselves_are_refused(
    start: Literal["max", "mean"], mean_active: float | None
) -> None:
    with pytest.raises(InvalidInput, match="active"):
        DFT(5, 50, 3, start=start, mean_active=mean_active)


def test_sizes_and_orders_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInput, match="more than 2k labels"):
        DFT(5, 6, 3)
    with pytest.raises(InvalidInput, match="slack is -1"):
        DFT(5, 9, 3, slack=-1)
    with pytest.raises(InvalidInput, match="permutation"):
        DFT(5, 9, 3, order=torch.zeros(9, dtype=torch.int64))


@pytest.mark.parametrize("form", ["fft", "matrix"])
def test_a_loaded_order_of_labels_counts_in_either_form(form: str) -> None:
    order = torch.tensor([3, 0, 4, 1, 2])
    saved = DFT(2, 5, k=1, order=order, form=form)
    with torch.no_grad():
        saved.projection.weight.normal_(generator=torch.Generator().manual_seed(0))
    loaded = DFT(2, 5, k=1, order=torch.arange(5), form=form)
    loaded.load_state_dict(saved.state_dict())
    features = torch.tensor([[0.5, -1.0], [2.0, 0.25]])
    torch.testing.assert_close(loaded.logits(features), saved.logits(features))


def small_sets(n: int, k: int) -> np.ndarray:
    members = [chosen for size in range(k + 1) for chosen in combinations(range(n), size)]
    sets = np.zeros((len(members), n), dtype=np.int8)
    for row, chosen in enumerate(members):
        sets[row, list(chosen)] = 1
    return sets


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_head_like_a_linear_layer_reaches_all_sets_of_up_to_k_labels(bias: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    linear = nn.Linear(6, 11, bias=bias, dtype=dtype)
    sets = small_sets(11, 2)
    before = linear.weight.double().detach().numpy(), linear.bias.double().detach().numpy() if bias else None
    assert (audit(before[0], sets, before[1]).verdicts != ARGMAXABLE).any()
    head = DFT.like(linear, k=2)
    assert (head.n_features, head.n_labels) == (6, 11)
    assert {parameter.dtype for parameter in head.parameters()} == {dtype}
    assert (audit(*_both(head)).verdicts == ARGMAXABLE).all()
    found = head.probabilities(torch.randn(3, 6, dtype=dtype)).float()
    torch.testing.assert_close(found, torch.full((3, 11), 2 / 11), rtol=0.02, atol=0)


def _both(head: DFT) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    weights, offsets = head.output_layer()
    return weights, small_sets(head.n_labels, head.k), offsets


def test_a_trained_projection_passes_the_guarantee_on_to_the_features_if_there_are_enough_of_them() -> None:
    """A random projection stands for a trained one. The features of the last layer are then the inputs."""
    torch.manual_seed(0)
    sets = small_sets(9, 2)
    reached = []
    for n_features in (3, 5):
        head = DFT.like(nn.Linear(n_features, 9), k=2)
        fixed, _ = head.output_layer()
        projection = torch.randn(5, n_features, dtype=torch.float64).numpy()
        reached.append(audit(fixed @ projection, sets).count(ARGMAXABLE))
    assert reached[0] < len(sets) == reached[1]


def test_too_few_features_are_told(caplog: pytest.LogCaptureFixture) -> None:
    DFT.like(nn.Linear(4, 9), k=2)
    assert "needs 5 to reach all sets of 2 labels" in caplog.text


@pytest.mark.parametrize("bias", [False, True])
def test_a_head_that_keeps_weights_gives_the_nearest_logits_and_the_same_ones_with_enough_slack(bias: bool) -> None:
    torch.manual_seed(0)
    linear = nn.Linear(6, 40, bias=bias, dtype=torch.float64)
    features = torch.randn(5, 6, dtype=torch.float64)
    wanted = linear(features).detach()
    off = []
    for slack in (0, 2, 4, 7, 9):
        head = DFT.like(linear, k=3, slack=slack, keep_weights=True, order=torch.randperm(40))
        off.append(float((head.logits(features) - wanted).norm().detach()))
        if slack == 0:
            fixed = torch.from_numpy(head.output_layer()[0])
            torch.testing.assert_close(head.logits(features), wanted @ fixed @ fixed.T)
    assert off[0] > off[1] > off[2] > 1e-3
    assert max(off[3:]) < 1e-10


def test_a_head_like_a_linear_layer_has_its_device_and_options() -> None:
    head = DFT.like(nn.Linear(8, 20, device="meta"), k=3, slack=2, task="single-label", form="fft")
    assert {parameter.device.type for parameter in head.parameters()} == {"meta"}
    assert (head.task, head.slack, head.matrix) == ("single-label", 2, None)


def test_slack_columns_are_added_where_floats_do_not_resolve_the_sets() -> None:
    assert DFT(8, 20, k=3).slack == 0
    assert DFT(8, 5000, k=3).slack == 16
    assert DFT(8, 5000, k=3, slack=0).free is None
