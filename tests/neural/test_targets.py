"""What may be the targets of a head, and what is refused."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor
from torch.utils.data import DataLoader

from longtail.errors import InvalidInput
from longtail.neural import Collate, LabelRows
from longtail.neural.heads import Head, OneHot
from longtail.neural.targets import as_label_rows
from tests.neural.heads.every_head import EVERY_HEAD, N_LABELS, lists, make

ROWS = [[3, 0], [], [4]]
LIKE_ROWS = np.array([[1, 0, 0, 1, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]])


def features_of(head: Head, n_rows: int) -> Tensor:
    return torch.randn(n_rows, head.n_features, generator=torch.Generator().manual_seed(1))


def multi_hot(rows: list[list[int]], n_labels: int = N_LABELS) -> Tensor:
    dense = torch.zeros(len(rows), n_labels)
    for row, labels in enumerate(rows):
        dense[row, labels] = 1
    return dense


@pytest.mark.parametrize(
    "targets",
    [
        ROWS,
        [np.array([0, 3]), torch.tensor([], dtype=torch.int64), (4,)],
        LIKE_ROWS,
        torch.from_numpy(LIKE_ROWS),
        torch.from_numpy(LIKE_ROWS).bool(),
        torch.from_numpy(LIKE_ROWS).double(),
        torch.from_numpy(LIKE_ROWS).to_sparse(),
        torch.from_numpy(LIKE_ROWS).float().to_sparse_csr(),
        torch.from_numpy(LIKE_ROWS).float().to_sparse_csc(),
        sparse.csr_array(LIKE_ROWS),
        sparse.csc_array(LIKE_ROWS),
        sparse.coo_matrix(LIKE_ROWS),
        LabelRows.of(sparse.csr_array(LIKE_ROWS)),
    ],
    ids=str,
)
def test_every_form_of_the_same_labels_is_the_same_target(targets: Any) -> None:
    found, kept = as_label_rows(targets, (3,), 5)
    assert kept is None
    assert found.offsets.tolist() == [0, 2, 2, 3]
    assert sorted(found.labels[:2].tolist()) == [0, 3]
    assert found.labels[2] == 4
    assert found.amounts is None
    assert found.labels.dtype == found.offsets.dtype == torch.int64


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_class_indices_are_one_label_for_each_row(dtype: torch.dtype) -> None:
    for classes in (torch.tensor([2, 0, 4], dtype=dtype), [2, 0, 4], np.array([2, 0, 4])):
        found, kept = as_label_rows(classes, (3,), 5)
        assert (found.labels.tolist(), found.offsets.tolist(), kept) == ([2, 0, 4], [0, 1, 2, 3], None)


@pytest.mark.parametrize("name", EVERY_HEAD)
def test_every_form_of_targets_has_the_same_loss(name: str) -> None:
    head = make(name)
    rows = lists(head)
    features, dense = features_of(head, len(rows)), multi_hot(rows)
    forms: list[Any] = [rows, dense, dense.to_sparse(), sparse.csr_array(dense.numpy())]
    if head.task == "single-label":
        forms.append(torch.tensor(rows)[:, 0])
    losses = []
    for targets in forms:
        torch.manual_seed(0)
        losses.append(head(features, targets).loss)
    for loss in losses[1:]:
        torch.testing.assert_close(loss, losses[0])


@pytest.mark.parametrize("name", EVERY_HEAD)
def test_rows_with_the_index_to_ignore_do_not_count(name: str) -> None:
    head = make(name)
    features = features_of(head, 6)
    classes = torch.tensor([[1, -100, 4], [-100, 22, 0]])
    counted = torch.tensor([0, 2, 4, 5])
    outputs = []
    for rows, targets in (
        (features.view(2, 3, -1), classes),
        (features.view(2, 3, -1), classes.tolist()),
        (features[counted], classes.flatten()[counted]),
    ):
        torch.manual_seed(0)
        outputs.append(head(rows, targets))
    assert [output.n_rows for output in outputs] == [4, 4, 4]
    assert outputs[0].loss == outputs[1].loss == outputs[2].loss


@pytest.mark.parametrize("name", EVERY_HEAD)
def test_a_batch_in_which_no_row_counts_has_a_loss_of_zero_and_no_gradient(name: str) -> None:
    head = make(name)
    features = features_of(head, 2).requires_grad_()
    output = head(features, torch.tensor([-100, -100]))
    assert (float(output.loss.detach()), output.n_rows) == (0, 0)
    output.loss.backward()
    assert features.grad is not None
    assert (features.grad == 0).all()


def test_the_index_to_ignore_can_be_another() -> None:
    head = make("one-hot, single")
    head.ignore_index = -1
    features = features_of(head, 2)
    assert head(features, torch.tensor([3, -1])).loss == head(features[:1], torch.tensor([3])).loss
    with pytest.raises(InvalidInput, match="row 1 has the label -100"):
        head(features, torch.tensor([3, -100]))


def test_positions_of_sequences_may_have_several_labels_each() -> None:
    head = make("one-hot")
    features = features_of(head, 4)
    rows = [[1, 2], [], [0], [5, 6, 7]]
    expected = head(features, rows).loss
    shaped = features.view(2, 2, -1)
    assert head(shaped, [rows[:2], rows[2:]]).loss == expected
    assert head(shaped, multi_hot(rows).view(2, 2, -1)).loss == expected
    assert head(shaped, multi_hot(rows).view(2, 2, -1).to_sparse()).loss == expected
    assert head(features[0], [1, 2]).loss == head(features[:1], [[1, 2]]).loss


@pytest.mark.parametrize(
    ("targets", "row", "message"),
    [
        ([[0], [5], []], "1", r"row 1 has the label 5; expected 0 to 4"),
        ([[0], [1], [-1]], "2", r"row 2 has the label -1; expected 0 to 4"),
        ([[0], [1], [3, 1, 3]], "2", "row 2 has the label 3 twice"),
        ([[0], [True], []], "1", "row 1 has True; expected whole numbers"),
        ([[0], [1.0], []], "1", r"row 1 has 1.0; expected whole numbers"),
        ([[0], "12", []], "1", "row 1 has '12'"),
        ([[0], None, []], "1", "row 1 has None"),
        ([[2**70], [], []], "0", "row 0 has the label 1180591620717411303424"),
        ([[0], [1]], None, "2 rows where the features have 3"),
        ("abc", None, "a str where 3 rows should be; expected class indices"),
        (torch.tensor([0, 5, 1]), "1", "row 1 has the label 5"),
        (torch.tensor([0, 1, -1]), "2", "row 2 has the label -1"),
        (torch.tensor([0.0, 1.0, 2.0]), None, "class indices of dtype torch.float32; expected whole numbers"),
        (torch.tensor([True, False, True]), None, "class indices of dtype torch.bool"),
        (torch.tensor([[0], [1], [2]]), None, r"a tensor of shape \(3, 1\); expected class indices of shape \(3,\)"),
        (torch.zeros(3, 6), None, r"a tensor of shape \(3, 6\)"),
        (torch.zeros(3, 5, dtype=torch.complex64), None, "dtype torch.complex64"),
        (torch.zeros(3, 5).index_put((torch.tensor(1), torch.tensor(2)), torch.tensor(torch.nan)), "1", "value nan"),
        (torch.zeros(3, 5).index_put((torch.tensor(2), torch.tensor(2)), torch.tensor(-1.0)), "2", "value -1"),
        (torch.zeros(3, 5).index_put((torch.tensor(0), torch.tensor(2)), torch.tensor(2.0)), "0", "the value 2"),
        (torch.zeros(3, 5).index_put((torch.tensor(0), torch.tensor(2)), torch.tensor(0.5)), "0", "takes 0 and 1 only"),
        (torch.sparse_coo_tensor([[1, 1], [2, 2]], [1.0, 1.0], (3, 5)), "1", "row 1 has the label 2 twice"),
        (torch.sparse_coo_tensor([[2], [2]], [0.0], (3, 5)), "2", r"value 0 for label 2; .* remove stored zeros"),
        (torch.zeros(3, 2).to_sparse(), None, r"a tensor of shape \(3, 2\)"),
        (sparse.csr_array(([1.0, 0.0], [1, 2], [0, 1, 1, 2]), shape=(3, 5)), "2", "stored zeros.*eliminate_zeros"),
        (sparse.csr_array(([1.0, 1.0], [1, 1], [0, 2, 2, 2]), shape=(3, 5)), "0", "row 0 has the label 1 twice"),
        (sparse.csr_array(([-1.0], [1], [0, 0, 1, 1]), shape=(3, 5)), "1", "row 1 has the value -1"),
        (sparse.csr_array(([np.nan], [1], [0, 0, 1, 1]), shape=(3, 5)), "1", "row 1 has the value nan"),
        (sparse.csr_array(([1j], [1], [0, 0, 1, 1]), shape=(3, 5)), None, "a matrix of dtype complex128"),
        (sparse.csr_array((4, 5)), None, "4 rows of 5 labels; expected 3 rows of 5"),
        (sparse.csr_array((3, 6)), None, "3 rows of 6 labels; expected 3 rows of 5"),
        (LabelRows(torch.tensor([0]), torch.tensor([0, 1]), 5), None, "1 rows of 5 labels"),
        (np.array(["a", "b", "c"]), "0", "row 0 has"),
    ],
    ids=range(33),
)
def test_what_cannot_be_a_target_is_refused_and_the_row_named(targets: Any, row: str | None, message: str) -> None:
    head = OneHot(4, 5)
    with pytest.raises(InvalidInput, match=message) as refused:
        head(torch.zeros(3, 4), targets)
    assert (refused.value.code, refused.value.name) == ("bad_targets", row)


@pytest.mark.parametrize(
    ("labels", "offsets", "amounts", "message"),
    [
        ([0, 9], [0, 1, 2], None, "row 1 has the label 9"),
        ([0, -1], [0, 1, 2], None, "row 1 has the label -1"),
        ([2, 2], [0, 0, 2], None, "row 1 has the label 2 twice"),
        ([0, 1], [0, 1, 3], None, "offsets do not lead from 0 to 2"),
        ([0, 1], [1, 1, 2], None, "offsets do not lead from 0"),
        ([0, 1], [0, 3, 2], None, "row 1 ends before it starts"),
        ([0.0, 1.0], [0, 1, 2], None, "labels of dtype torch.float32"),
        ([0, 1], [0.0, 1.0, 2.0], None, "offsets of dtype torch.float32"),
        ([0, 1], [0, 1, 2], [0.5, 0.0], "row 1 has the value 0 for label 1"),
        ([0, 1], [0, 1, 2], [1.5, 1.0], "row 0 has the value 1.5 for label 0"),
        ([0, 1], [0, 1, 2], [0.5], "amounts of dtype torch.float32 and shape"),
    ],
)
def test_label_rows_of_contradicting_parts_are_refused(
    labels: list[Any], offsets: list[Any], amounts: list[float] | None, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        LabelRows(torch.tensor(labels), torch.tensor(offsets), 5, None if amounts is None else torch.tensor(amounts))
    assert refused.value.code == "bad_targets"


def test_the_parts_of_a_matrix_in_csc_format_are_not_those_of_rows() -> None:
    columns = sparse.csc_array(LIKE_ROWS)
    parts = torch.from_numpy(columns.indices).long(), torch.from_numpy(columns.indptr).long()
    with pytest.raises(InvalidInput, match="5 rows of 5 labels; expected 3"):
        OneHot(4, 5)(torch.zeros(3, 4), LabelRows(*parts, 5))


def test_a_row_that_is_no_single_label_is_named() -> None:
    head = make("one-hot, single")
    wrong: list[tuple[Any, str]] = [
        ([[0], [1, 2]], "1"),
        ([[], [1]], "0"),
        ([-100, [1, 2]], "1"),
        (multi_hot([[0], [1, 5]]), "1"),
    ]
    for targets, row in wrong:
        with pytest.raises(InvalidInput, match=f"row {row} has . labels; .*exactly one label per row") as refused:
            head(features_of(head, 2), targets)
        assert refused.value.name == row


def spoiled(rows: list[list[int]], rng: np.random.Generator) -> tuple[Any, int | None]:
    """Targets that are wrong in one row, which is returned too, or in their shape."""
    rows = [list(labels) for labels in rows]
    wrong = int(rng.integers(len(rows)))
    bad_label = int(rng.choice([-1, -3, -101, N_LABELS, N_LABELS + 1, 2**40]))
    form = rng.choice(["list", "dense", "coo", "csr", "label rows", "classes", "rows", "columns", "dtype"])
    if form == "list":
        rows[wrong] = [*rows[wrong][:-1], bad_label] if rng.random() < 0.5 else [7, 2, 7]
        return rows, wrong
    if form == "label rows":
        lengths = [0, *np.cumsum([len(labels) for labels in rows])]
        flat = torch.tensor([label for labels in rows for label in labels])
        place = int(rng.integers(len(flat)))
        flat[place] = bad_label
        owner = int(np.searchsorted(lengths, place, side="right")) - 1
        return lambda: LabelRows(flat, torch.tensor(lengths), N_LABELS), owner
    if form == "classes":
        classes = torch.randint(N_LABELS, (len(rows),))
        classes[wrong] = bad_label
        return classes, wrong
    if form == "rows":
        return multi_hot(rows[1:]), None
    if form == "columns":
        return multi_hot(rows, N_LABELS + 1), None
    if form == "dtype":
        return torch.rand(len(rows)), None
    dense = multi_hot(rows)
    dense[wrong, int(rng.integers(N_LABELS))] = float(rng.choice([np.nan, -1.0, 2.0, np.inf, -np.inf]))
    if form == "dense":
        return dense, wrong
    if form == "coo":
        return dense.to_sparse(), wrong
    matrix = sparse.csr_array(multi_hot(rows).numpy())
    place = int(rng.integers(matrix.nnz))
    matrix.data[place] = rng.choice([0.0, np.nan, -1.0, 3.0])
    return matrix, int(np.searchsorted(matrix.indptr, place, side="right")) - 1


@pytest.mark.parametrize("name", EVERY_HEAD)
def test_two_hundred_random_wrong_targets_are_all_refused(name: str) -> None:
    head, rng = make(name), np.random.default_rng(3)
    rows = lists(head)
    features = features_of(head, len(rows)).requires_grad_()
    for _ in range(200):
        targets, row = spoiled(rows, rng)
        with pytest.raises(InvalidInput) as refused:
            head(features, targets() if callable(targets) else targets)
        assert refused.value.code == "bad_targets"
        assert refused.value.name == (None if row is None else str(row))
        assert row is None or re.search(rf"row {row}\b", str(refused.value))


def test_amounts_are_targets_of_the_heads_that_take_them() -> None:
    dense = torch.tensor([[0.5, 0, 1.0]])
    found, _ = as_label_rows(dense, (1,), 3)
    assert found.amounts is not None
    assert found.amounts.tolist() == [0.5, 1.0]
    assert torch.equal(found.dense(), dense)
    with pytest.raises(InvalidInput, match=r"row 0 has the value 0.5; this head takes 0 and 1 only"):
        OneHot(4, 3)(torch.zeros(1, 4), found)


def test_label_rows_move_and_stay_the_same() -> None:
    found = LabelRows(torch.tensor([1]), torch.tensor([0, 1]), 3, torch.tensor([0.5]))
    assert found.to("cpu") is found
    moved = found.to("meta")
    assert {part.device.type for part in (moved.labels, moved.offsets, moved.amounts)} == {"meta"}
    again = pickle.loads(pickle.dumps(found))
    assert (again.labels.tolist(), again.n_labels) == ([1], 3)


@pytest.mark.parametrize("n_workers", [0, 1])
def test_batches_of_a_loader_have_their_labels(n_workers: int) -> None:
    samples = [(np.full(2, row, np.float32), [row, row + 1]) for row in range(5)]
    loader = DataLoader(samples, batch_size=3, collate_fn=Collate(n_labels=6), num_workers=n_workers)  # type: ignore[arg-type]
    batches = list(loader)
    assert [inputs[:, 0].tolist() for inputs, _ in batches] == [[0, 1, 2], [3, 4]]
    assert [labels.labels.tolist() for _, labels in batches] == [[0, 1, 1, 2, 2, 3], [3, 4, 4, 5]]
    with pytest.raises(InvalidInput, match="row 1 has the label 6"):
        Collate(n_labels=6)([(0.0, [1]), (0.0, [6])])
