"""Heads on other devices and in other precisions, moved, copied, compiled and distributed as torch does it."""

from __future__ import annotations

import copy
import io
import shutil
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from longtail.neural import LabelRows
from longtail.neural.heads import DFT, Cascade, Head, OneHot
from tests.neural.heads.elsewhere import Elsewhere, back, elsewhere, moved
from tests.neural.heads.every_head import EVERY_HEAD, N_LABELS, lists, make

EVERY = pytest.mark.parametrize("name", EVERY_HEAD)
# Relative to float32, for logits of about one.
ERRORS = {torch.float16: 0.02, torch.bfloat16: 0.1, torch.float64: 1e-4}


def batch(head: Head) -> tuple[Tensor, list[list[int]]]:
    rows = lists(head)
    return torch.randn(len(rows), head.n_features, generator=torch.Generator().manual_seed(1)), rows


def loss_of(head: Any, features: Tensor, rows: Any, seed: int = 3) -> Tensor:
    torch.manual_seed(seed)
    loss: Tensor = head(features, rows).loss
    return loss


def test_mixing_devices_is_noticed() -> None:
    there = Elsewhere(torch.ones(3))
    assert there.device.type == "meta"
    with elsewhere():
        assert torch.equal(back(there + 1), torch.full((3,), 2.0))
        assert back(there.nonzero()[:, 0]).tolist() == [0, 1, 2]
        assert back(torch.arange(2, device=there.device)).tolist() == [0, 1]
        with pytest.raises(AssertionError, match="mixes tensors"):
            there + torch.ones(3)
        with pytest.raises(AssertionError, match="mixes tensors"):
            there[torch.tensor([0])]


@EVERY
def test_on_another_device_no_tensor_of_the_cpu_mixes_in_and_nothing_changes(name: str) -> None:
    plain, head = make(name), moved(make(name))
    features, rows = batch(plain)
    allowed = torch.arange(N_LABELS) % 3 > 0
    expected = loss_of(plain, features.requires_grad_(), rows)
    expected.backward()
    with elsewhere():
        there = Elsewhere(features.detach().clone(), requires_grad=True)
        loss = loss_of(head, there, rows)
        loss.backward()
        assert torch.equal(back(loss.detach()), expected.detach())
        for method in (plain.log_prob, plain.probabilities, plain.predict):
            found = back(getattr(head, method.__name__)(there.detach()))
            assert torch.equal(found, method(features).detach())
        for mask in (None, allowed):
            best, scores = head.predict_topk(there.detach(), 3, mask)
            expected_best, expected_scores = plain.predict_topk(features, 3, mask)
            assert torch.equal(back(best), expected_best)
            assert torch.equal(back(scores), expected_scores)
        head.start_from(torch.ones(N_LABELS), 30)
    assert torch.equal(back(there.grad), features.grad)
    for (path, parameter), (_, other) in zip(plain.named_parameters(), head.named_parameters(), strict=True):
        assert torch.equal(parameter.grad.to_dense(), back(other.grad).to_dense()), path


@pytest.mark.parametrize("name", [name for name in EVERY_HEAD if make(name).lengths])
def test_decisions_on_another_device_are_the_same(name: str) -> None:
    plain, head = make(name), moved(make(name))
    features, rows = batch(plain)
    expected = plain.decisions(features, rows)
    with elsewhere():
        there = Elsewhere(features)
        found = head.decisions(there, rows)
        for one, other in zip((found.preferred, found.together), (expected.preferred, expected.together), strict=True):
            assert torch.equal(back(one), other)
        for (owners, values), pair in zip(found.true, expected.true, strict=True):
            assert torch.equal(back(owners), pair[0])
            assert torch.equal(back(values), pair[1])
        assert torch.equal(back(found.predicted), expected.predicted)
        remaining = head.count_survivors(there, rows, (1, 3))
        assert torch.equal(remaining, plain.count_survivors(features, rows, (1, 3)))
        assert torch.equal(back(head.labels_of(0, 1)), plain.labels_of(0, 1))


@pytest.mark.parametrize("dtype", ERRORS)
@pytest.mark.parametrize("name", [name for name in EVERY_HEAD if make(name).lengths])
def test_decisions_in_other_precisions_are_those_of_the_same_weights(name: str, dtype: torch.dtype) -> None:
    head = make(name).to(dtype)
    features, rows = batch(head)
    found = head.decisions(features.to(dtype), rows)
    wide = head.to(torch.float64).decisions(features.to(dtype).double(), rows)
    assert (found.preferred == wide.preferred).float().mean() > 0.9
    assert found.preferred.dtype == torch.int64


def test_targets_of_every_form_follow_the_features_to_their_device() -> None:
    head, features = moved(make("one-hot, single")), Elsewhere(torch.ones(2, 8))
    dense = torch.eye(2, N_LABELS)
    with elsewhere():
        losses = [
            float(back(head(features, targets).loss.detach()))
            for targets in (
                torch.tensor([0, 1]),
                Elsewhere(torch.tensor([0, 1])),
                Elsewhere(dense),
                dense.to_sparse(),
                LabelRows(Elsewhere(torch.tensor([0, 1])), Elsewhere(torch.tensor([0, 1, 2])), N_LABELS),
                Elsewhere(torch.tensor([0, 1])).cpu(),
            )
        ]
    assert len(set(losses)) == 1


@EVERY
@pytest.mark.parametrize("dtype", ERRORS, ids=str)
def test_heads_of_every_precision_learn_and_predict(name: str, dtype: torch.dtype) -> None:
    head = make(name)
    features, rows = batch(head)
    exact = loss_of(head, features, rows).detach()
    exact_scores = head.predict_topk(features, 3)[1]
    head = make(name).to(dtype)
    inputs = features.to(dtype).requires_grad_()
    loss = loss_of(head, inputs, rows)
    assert loss.dtype == (dtype if dtype == torch.float64 else torch.float32)
    torch.testing.assert_close(loss.float(), exact, rtol=ERRORS[dtype], atol=ERRORS[dtype])
    loss.backward()
    for path, parameter in head.named_parameters():
        assert parameter.grad.dtype == dtype, path
        assert parameter.grad.to_dense().isfinite().all(), path
    scores = head.predict_topk(inputs, 3)[1]
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores, exact_scores, rtol=ERRORS[dtype], atol=ERRORS[dtype])
    assert head.log_prob(inputs).isfinite().all()
    head.start_from(torch.ones(N_LABELS), 30)


@EVERY
def test_gradients_in_double_precision_are_those_of_finite_differences(name: str) -> None:
    head = make(name).double()
    features, rows = batch(head)
    assert torch.autograd.gradcheck(lambda inputs: loss_of(head, inputs, rows), features.double().requires_grad_())


@EVERY
@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_no_rows_give_empty_results_and_no_loss(name: str, shape: tuple[int, ...]) -> None:
    head = make(name)
    features = torch.zeros(*shape, head.n_features)
    assert head.predict_topk(features, 2)[0].shape == (*shape, 2)
    assert head.log_prob(features).shape == (*shape, N_LABELS)
    assert head.predict(features).shape[: len(shape)] == shape
    assert head(features, torch.zeros(shape, dtype=torch.int64)).loss == 0


@EVERY
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_autocast_changes_little(name: str, dtype: torch.dtype) -> None:
    head = make(name)
    features, rows = batch(head)
    exact = loss_of(head, features, rows).detach()
    inputs = features.clone().requires_grad_()
    with torch.autocast("cpu", dtype=dtype):
        loss = loss_of(head, inputs, rows)
        scores = head.predict_topk(inputs, 3)[1]
    loss.backward()
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss.detach(), exact, rtol=ERRORS[dtype], atol=ERRORS[dtype])
    torch.testing.assert_close(scores, head.predict_topk(features, 3)[1], rtol=ERRORS[dtype], atol=ERRORS[dtype])


@EVERY
def test_a_head_made_on_the_meta_device_can_be_loaded_or_started_later(name: str) -> None:
    plain = make(name)
    features, rows = batch(plain)
    expected = loss_of(plain, features, rows)

    def made() -> Head:
        with torch.device("meta"):
            head = make(name)
        assert all(tensor.is_meta for tensor in (*head.parameters(), *head.buffers()))
        return head

    loaded = made().to_empty(device="cpu")
    loaded.load_state_dict(plain.state_dict())
    assigned = made()
    assigned.load_state_dict(plain.state_dict(), assign=True)
    started = made().to_empty(device="cpu")
    torch.manual_seed(0)
    started.reset_parameters()
    for head in (loaded, assigned, started):
        assert torch.equal(loss_of(head, features, rows), expected)
        for found, best in zip(head.predict_topk(features, 3), plain.predict_topk(features, 3), strict=True):
            assert torch.equal(found, best)


@EVERY
def test_a_loader_that_sets_the_tensors_one_by_one_need_not_know_those_that_are_not_saved(name: str) -> None:
    plain = make(name)
    features, rows = batch(plain)
    with torch.device("meta"):
        head = make(name)
    saved = plain.state_dict()
    for path, tensor in [*head.named_parameters(), *head.named_buffers()]:
        place, _, last = path.rpartition(".")
        values = saved[path].clone() if path in saved else torch.empty_like(tensor, device="cpu").zero_()
        setattr(head.get_submodule(place), last, nn.Parameter(values) if isinstance(tensor, nn.Parameter) else values)
    assert torch.equal(loss_of(head, features, rows), loss_of(plain, features, rows))
    for found, best in zip(head.predict_topk(features, 3), plain.predict_topk(features, 3), strict=True):
        assert torch.equal(found, best)


@EVERY
def test_copies_are_heads_of_their_own(name: str) -> None:
    plain = make(name)
    features, rows = batch(plain)
    expected = loss_of(plain, features, rows)
    stored = io.BytesIO()
    torch.save(plain, stored)
    stored.seek(0)
    copies = [copy.deepcopy(plain), torch.load(stored, weights_only=False), make(name)]
    with torch.no_grad():
        for parameter in copies[-1].parameters():
            parameter.zero_()
    copies[-1].load_state_dict(plain.state_dict())
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.fill_(torch.nan)
    for head in copies:
        assert torch.equal(loss_of(head, features, rows), expected)


@EVERY
def test_the_positions_of_a_sequence_are_rows(name: str) -> None:
    head = make(name)
    features, rows = batch(head)
    shaped, nested = features.view(2, 3, -1), [rows[:3], rows[3:]]
    assert torch.equal(loss_of(head, shaped, nested), loss_of(head, features, rows))
    assert torch.equal(head.log_prob(shaped), head.log_prob(features).view(2, 3, -1))
    for found, expected in zip(head.predict_topk(shaped, 3), head.predict_topk(features, 3), strict=True):
        assert torch.equal(found, expected.view(2, 3, 3))


def compare_compiled(name: str, backend: str) -> None:
    head = make(name)
    features, rows = batch(head)
    torch._dynamo.reset()  # heads share code, of which torch compiles a few variants only
    outcomes = []
    for module in (head, torch.compile(head, backend=backend)):
        inputs = features.clone().requires_grad_()
        loss = loss_of(module, inputs, rows)
        loss.backward()
        outcomes.append((loss.detach(), inputs.grad))
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=1e-4, atol=1e-6)


@EVERY
def test_a_compiled_head_has_the_same_loss_and_gradient(name: str) -> None:
    compare_compiled(name, "aot_eager")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch compiles machine code with g++")
@pytest.mark.parametrize("name", ["cascade", "sampling"])
def test_a_head_in_machine_code_has_the_same_loss_and_gradient(name: str) -> None:
    compare_compiled(name, "inductor")


@EVERY
def test_a_head_without_targets_is_one_graph_for_any_number_of_rows(name: str) -> None:
    head = make(name)
    features = batch(head)[0]
    # torch exports a fast Fourier transform for a fixed number of rows only.
    n_rows = None if name == "dft, fft" else ({0: torch.export.Dim("n_rows", min=1)},)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(head, backend="eager", fullgraph=True)(features), head(features))
    exported = torch.export.export(head, (features,), dynamic_shapes=n_rows)
    features = features if n_rows is None else features[:2]
    torch.testing.assert_close(exported.module()(features), head(features))


def test_a_head_has_a_copy_of_the_order_and_the_weights_that_it_is_given() -> None:
    order, weights = torch.arange(6), torch.ones(6)
    made = [DFT(4, 6, 1, order=order, label_weights=weights), Cascade(4, 6, (3, 2), order=order.numpy())]
    order[:], weights[:] = 0, 0
    assert all(torch.equal(kept, torch.arange(6)) for kept in (made[0].order, made[1].position))
    assert torch.equal(made[0].label_weights, torch.ones(6))


def test_given_weights_survive_the_meta_device() -> None:
    weights = torch.linspace(1, 2, 5)
    with torch.device("meta"):
        head = nn.Sequential(OneHot(4, 5, label_weights=weights))
    head.to_empty(device="cpu")
    assert torch.equal(head[0].label_weights, weights)
