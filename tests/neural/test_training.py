"""Training: what it minimises, what it does not change, when it stops."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

from longtail.errors import Diverged, InvalidInput
from longtail.neural.averaging import Ensemble, WeightAverage, mean_of_lists
from longtail.neural.batches import DenseRows, SparseRows
from longtail.neural.heads import Cascade, Sampling
from longtail.neural.network import predict_rows
from longtail.neural.optimiser import SCHEDULES, Optimiser, RowAdamW, clip_gradients, learning_rate_factor
from longtail.neural.targets import LabelRows
from longtail.neural.training import _PARAMETERS, Settings, train
from longtail.progress import listening

from .learnable import dense_network, problem, sparse_network, tensors_equal

QUICK = Settings(epochs=4, batch_size=16, learning_rate=0.01)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_loss_falls_and_labels_are_found(schedule):
    X, Y = problem()
    network = dense_network()
    history = train(network, X, Y, Settings(epochs=30, batch_size=16, learning_rate=0.01, schedule=schedule))
    assert history.losses[-1] < history.losses[0] / 2
    top, scores = predict_rows(network, X, k=1)
    assert Y[np.arange(len(Y)), top[:, 0]].mean() > 0.8
    assert ((scores >= 0) & (scores <= 1)).all()


def test_the_same_seed_gives_the_same_network_and_another_seed_another():
    X, Y = problem()
    networks = []
    for seed in (0, 0, 1):
        networks.append(dense_network())
        train(networks[-1], X, Y, Settings(epochs=2, batch_size=16, seed=seed))
    assert tensors_equal(networks[0], networks[1])
    assert not tensors_equal(networks[0], networks[2])


def test_the_random_numbers_of_the_caller_are_not_disturbed():
    X, Y = problem()
    network = dense_network()
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    expected = torch.rand(1), np.random.rand()  # noqa: NPY002
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    train(network, X, Y, Settings(epochs=1, holdout=0.2))
    assert (torch.rand(1), np.random.rand()) == expected  # noqa: NPY002
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory


def test_the_result_does_not_depend_on_random_numbers_drawn_before():
    X, Y = problem()
    first, second = dense_network(), dense_network()
    train(first, X, Y, QUICK)
    torch.rand(100)
    train(second, X, Y, QUICK)
    assert tensors_equal(first, second)


def test_patience_stops_and_the_best_epoch_is_restored():
    X, Y = problem()
    other_X, other_Y = problem(60, seed=9)  # other sums, so that learning one makes the other worse
    network = dense_network()
    settings = Settings(epochs=50, batch_size=16, learning_rate=0.05, patience=3, schedule="constant")
    history = train(network, X, Y, settings, held_out=(other_X, other_Y), metric="loss")
    assert history.stopped_early
    assert len(history.values) == len(history.losses) == history.best_epoch + 3 < 50
    assert history.best_epoch == 1 + int(np.argmin(history.values))
    # With a constant rate, epochs do not depend on the number of later epochs.
    until_best = dense_network()
    train(until_best, X, Y, replace(settings, epochs=history.best_epoch, patience=None))
    assert tensors_equal(network, until_best)


def test_the_rows_held_out_are_not_learnt_from():
    class Counted(DenseRows):
        def __init__(self, X):
            super().__init__(X)
            self.seen = {True: set(), False: set()}

        def batch(self, rows):
            self.seen[network.training].update(rows.tolist())
            return super().batch(rows)

    X, Y = problem()
    network = dense_network()
    rows = Counted(X)
    history = train(network, rows, Y, Settings(epochs=2, holdout=0.25))
    assert len(history.values) == 2
    assert len(rows.seen[False]) == 30
    assert rows.seen[True] == set(range(120)) - rows.seen[False]


@pytest.mark.parametrize("metric", ["P@1", "R@3", "F1@2", "nDCG@3", "PSP@1", "P@5"])
def test_the_metric_after_the_best_epoch_is_that_of_the_network(metric):
    from longtail.metrics import evaluate, inverse_propensity

    X, Y = problem()
    more_X, more_Y = problem(40)
    network = dense_network()
    history = train(network, X, Y, QUICK, held_out=(more_X, more_Y), metric=metric)
    top, _ = predict_rows(network, more_X, k=5)
    weights = inverse_propensity(Y.sum(0).astype(int), len(Y))
    report = evaluate(more_Y, top, ks=(1, 2, 3, 5), inverse_propensity=weights)
    assert history.values[history.best_epoch - 1] == max(history.values) == pytest.approx(report[metric])


@pytest.mark.parametrize("metric", ["accuracy", "P@0", "P@", "P", "@1", "P@x"])
def test_an_unknown_metric_is_refused(metric):
    X, Y = problem()
    with pytest.raises(InvalidInput, match="metric is"):
        train(dense_network(), X, Y, Settings(holdout=0.1), metric=metric)


def test_a_loss_that_is_not_a_number_stops_the_training():
    X, Y = problem()
    network = dense_network()
    nn.init.constant_(next(network.head.parameters()), 1e38)
    with pytest.raises(Diverged, match="epoch 1; lower learning_rate"):
        train(network, X * 1e4, Y, QUICK)


def test_weights_that_overflow_in_the_last_step_are_found():
    X, Y = problem(16)
    with pytest.raises(Diverged, match="epoch 1"):
        train(dense_network(), X, Y, Settings(epochs=1, batch_size=16, learning_rate=1e39))


def test_averaging_every_step_gives_the_mean_of_the_weights():
    X, Y = problem(32)
    seen = []

    class Watched(WeightAverage):
        def add(self, network):
            seen.append({name: parameter.detach().clone() for name, parameter in network.named_parameters()})
            super().add(network)

    network = dense_network()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longtail.neural.training.WeightAverage", Watched)
        train(network, X, Y, Settings(epochs=4, batch_size=16, average=0.5))
    assert len(seen) == 4
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(parameter.detach(), torch.stack([weights[name] for weights in seen]).mean(0))


def test_snapshots_for_the_average_are_few_and_end_with_the_last_step():
    X, Y = problem(120)
    count = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WeightAverage, "add", lambda self, network: count.append(1))
        train(dense_network(), X, Y, Settings(epochs=4, batch_size=1, average=1.0))
    assert len(count) == 480 // (480 // 100)


def test_what_is_judged_is_the_average():
    X, Y = problem()
    more_X, more_Y = problem(40)
    network = dense_network()
    settings = Settings(epochs=3, batch_size=16, learning_rate=0.05, average=1.0)
    history = train(network, X, Y, settings, held_out=(more_X, more_Y), metric="loss")
    with torch.inference_mode():
        network.eval()
        loss = network.loss(torch.from_numpy(more_X), LabelRows.of(sparse.csr_array(more_Y), np.arange(40)))
    assert loss.item() == pytest.approx(min(history.values))
    raw = train(dense_network(), X, Y, replace(settings, average=0.0), held_out=(more_X, more_Y), metric="loss")
    assert raw.losses == history.losses
    assert raw.values != history.values


def test_progress_tells_epoch_loss_and_metric():
    told, tasks = [], []

    @contextmanager
    def listener(description, total):
        tasks.append((description, total))
        yield lambda amount, note="": told.append((description, amount, note))

    X, Y = problem()
    with listening(listener):
        history = train(dense_network(), X, Y, Settings(epochs=2, holdout=0.5))
    assert tasks[0] == ("training", 120)
    notes = [note for description, _, note in told if description == "training"]
    assert notes[0].startswith("epoch 1 of 2, loss ")
    assert notes[-1] == f"epoch 2 of 2, loss {history.losses[1]:.4g}, held-out P@1 {history.values[0]:.4g}"
    assert sum(amount for description, amount, _ in told if description == "training") == 120


def test_bf16_trains_about_as_well():
    X, Y = problem()
    plain, quick = (
        train(dense_network(), X, Y, Settings(epochs=10, batch_size=16, autocast=autocast)).losses[-1]
        for autocast in (None, "bf16")
    )
    assert plain != quick
    assert quick == pytest.approx(plain, rel=0.05)


def test_sparse_and_dense_gradients_learn_alike():
    X, Y = problem()
    rows = SparseRows(sparse.csr_array(np.where(np.abs(X) > 1, X, 0)))
    network = sparse_network()
    history = train(network, rows, Y, Settings(epochs=30, batch_size=16, learning_rate=0.01, clip=1.0))
    assert history.losses[-1] < history.losses[0] / 1.5


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_row_adamw_is_adamw_where_every_row_has_a_gradient(decay):
    torch.manual_seed(0)
    start = torch.randn(5, 3)
    tables = [nn.Parameter(start.clone()), nn.Parameter(start.clone())]
    dense = torch.optim.AdamW([tables[0]], lr=0.1, weight_decay=decay)
    by_row = RowAdamW([tables[1]], lr=0.1, weight_decay=decay)
    for _ in range(5):
        gradient = torch.randn(5, 3)
        tables[0].grad, tables[1].grad = gradient, gradient.to_sparse(1)
        dense.step()
        by_row.step()
    torch.testing.assert_close(tables[1], tables[0])


def test_row_adamw_is_adamw_for_dense_gradients_too():
    torch.manual_seed(0)
    networks = [dense_network().eval(), dense_network().eval()]
    optimisers = [torch.optim.AdamW(networks[0].parameters(), lr=0.1), RowAdamW(networks[1].parameters(), lr=0.1)]
    features = torch.randn(9, 12)
    for _ in range(5):
        for network, optimiser in zip(networks, optimisers, strict=True):
            optimiser.zero_grad()
            loss = network(features, [[row % 6] for row in range(9)]).loss
            loss.backward()
            optimiser.step()
    for ours, theirs in zip(networks[1].parameters(), networks[0].parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("kind", [Cascade, Sampling])
def test_heads_with_sparse_gradients_learn_with_row_adamw(kind):
    torch.manual_seed(0)
    body, head = nn.Linear(12, 12), kind(12, 50, sparse_gradients=True)
    optimiser = RowAdamW([*body.parameters(), *head.parameters()], lr=0.05, weight_decay=0.0)
    features, rows = torch.randn(8, 12), [[row, 40 + row] for row in range(8)]
    for _ in range(60):
        optimiser.zero_grad()
        loss = head(body(features), rows).loss
        loss.backward()
        optimiser.step()
    found = head.predict_topk(body(features), 2)[0].sort(1).values
    assert (found == torch.tensor(rows)).float().mean() > 0.8
    again = RowAdamW([*body.parameters(), *head.parameters()])
    again.load_state_dict(optimiser.state_dict())
    assert again.param_groups[0]["lr"] == 0.05


def test_row_adamw_adds_up_repeated_rows_and_leaves_the_others():
    table = nn.Parameter(torch.ones(4, 2))
    optimiser = RowAdamW([table], lr=0.1, weight_decay=0.5)
    table.grad = torch.sparse_coo_tensor(torch.tensor([[2, 2]]), torch.tensor([[1.0, -1.0], [1.0, 1.0]]), (4, 2))
    optimiser.step()
    assert table[[0, 1, 3]].eq(1).all()
    # The gradients of the second column cancel, so only decay changes it.
    assert table[2].tolist() == pytest.approx([0.95 - 0.1, 0.95])


def test_biases_and_norms_do_not_decay():
    network = sparse_network()
    optimiser = Optimiser(network, learning_rate=0.1, weight_decay=1.0)
    before = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    for parameter in network.parameters():
        nn.init.ones_(parameter)
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step()
    for name, parameter in network.named_parameters():
        decays = before[name].ndim > 1
        if name != "encoder.table":
            assert parameter.flatten()[0].item() == pytest.approx(0.9 if decays else 1.0)


def test_the_encoder_can_have_a_rate_of_its_own():
    X, Y = problem()
    network = dense_network()
    before = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    train(network, X, Y, Settings(epochs=1, encoder_learning_rate=1e-30, weight_decay=0.0))
    for name, parameter in network.named_parameters():
        assert torch.equal(parameter, before[name]) == name.startswith("encoder.")


def test_clipping_measures_dense_and_sparse_gradients_together():
    dense, table, idle = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(4, 1)), nn.Parameter(torch.zeros(1))
    dense.grad = torch.tensor([3.0])
    table.grad = torch.sparse_coo_tensor(torch.tensor([[2, 2]]), torch.tensor([[1.0], [3.0]]), (4, 1))
    assert clip_gradients([dense, table, idle], longest=10.0) == 5.0
    assert dense.grad.item() == 3.0
    assert clip_gradients([dense, table, idle], longest=1.0) == 5.0
    assert dense.grad.item() == pytest.approx(0.6)
    assert table.grad.to_dense().flatten().tolist() == pytest.approx([0, 0, 0.8, 0])


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("warmup", [0.0, 0.2, 1.0])
def test_the_rate_rises_then_never_rises_again(schedule, warmup):
    factors = [learning_rate_factor(schedule, step, 50, warmup) for step in range(50)]
    rising = int(warmup * 50)
    assert factors[max(rising - 1, 0)] == 1.0
    assert all(0 < factor <= 1 for factor in factors)
    assert all(after > before for before, after in pairwise(factors[:rising]))
    assert all(after <= before for before, after in pairwise(factors[rising:]))
    if schedule != "constant" and warmup < 1:
        assert factors[-1] < 0.05


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, constraint in _PARAMETERS.items() for value in constraint.bad_values()]
)
def test_settings_refuse_what_they_cannot_mean(name, value):
    with pytest.raises(InvalidInput, match=f"Settings: {name} is"):
        Settings(**{name: value})


def test_a_network_is_called_as_its_head_is():
    X, Y = problem()
    network, targets = dense_network().eval(), LabelRows.of(sparse.csr_array(Y))
    inputs = torch.from_numpy(X)
    assert torch.equal(network(inputs, targets).loss, network.loss(inputs, targets))
    assert torch.equal(network(inputs), network.head(network.encoder(inputs)))


def test_labels_of_another_number_are_refused():
    X, Y = problem()
    with pytest.raises(InvalidInput, match="Y has 5 labels; the head of the network has 6"):
        train(dense_network(), X, Y[:, :5], QUICK)


def test_patience_without_rows_to_judge_by_is_refused():
    X, Y = problem()
    with pytest.raises(InvalidInput, match="patience needs rows"):
        train(dense_network(), X, Y, Settings(patience=2))


def test_predictions_do_not_depend_on_the_batches_and_obey_allowed():
    X, Y = problem()
    network = dense_network()
    train(network, X, Y, QUICK)
    allowed = np.array([True, False, True, True, False, False])
    one = predict_rows(network, X, k=4, allowed=allowed, batch_size=7)
    other = predict_rows(network, X, k=4, allowed=allowed)
    assert (one[0] == other[0]).all()
    assert set(one[0].ravel()) == {0, 2, 3, -1}
    assert (one[0][:, 3] == -1).all()
    some = predict_rows(network, X, k=4, rows=np.array([5, 2]), allowed=allowed)
    assert (some[0] == one[0][[5, 2]]).all()


def test_an_ensemble_is_the_mean_of_its_networks_where_they_name_every_label():
    X, Y = problem()
    networks = [dense_network(seed) for seed in range(3)]
    probabilities = np.zeros((120, 6))
    for network in networks:
        train(network, X, Y, QUICK)
        labels, scores = predict_rows(network, X, k=6)
        np.add.at(probabilities, (np.arange(120)[:, None], labels), scores / 3)
    labels, scores = predict_rows(Ensemble(networks, candidates=6), X, k=3)
    np.testing.assert_allclose(scores, -np.sort(-probabilities, axis=1)[:, :3], rtol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(probabilities, labels, axis=1), scores, rtol=1e-5)


def test_ties_between_lists_go_to_the_lowest_label_and_short_lists_are_filled():
    labels, scores = mean_of_lists(
        [torch.tensor([[9, 4, -1]]), torch.tensor([[4, 9, 2]])],
        [torch.tensor([[0.5, 0.25, -torch.inf]]), torch.tensor([[0.5, 0.25, 0.25]])],
        k=5,
    )
    assert labels.tolist() == [[4, 9, 2, -1, -1]]
    assert scores.tolist() == [[0.375, 0.375, 0.125, -math.inf, -math.inf]]
