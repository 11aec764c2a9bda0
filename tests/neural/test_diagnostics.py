"""Diagnostics of heads, compared with counts by hand, row by row and label by label."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn

from longtail.errors import InvalidInput
from longtail.estimator import HeadDiagnostics, Survival
from longtail.neural import DeepMIML, HeadTally, MultiHeadClassifier, Network, assignment_picture, diagnose
from longtail.neural import diagnostics as module
from longtail.neural.classifier import HEADS
from longtail.neural.heads import Cascade, Head, PowersetCascade, PowersetProduct, PowersetSampling, Product
from longtail.neural.targets import LabelRows
from longtail.pictures import HeatMap, can_draw, draw
from tests.neural.heads.every_head import EVERY_HEAD, N_LABELS, ORDER, WIDTH, make

Pairs = Counter[tuple[int, int]]
CODED = [name for name in EVERY_HEAD if "product" in name or "cascade" in name]
CODED = [name for name in CODED if "powerset" not in name]
POWERSETS = {"product": PowersetProduct, "sampling": PowersetSampling, "cascade": PowersetCascade}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def features_of(n_rows: int) -> Tensor:
    return 3 * torch.randn(n_rows, WIDTH, generator=torch.Generator().manual_seed(9))


def lists(head: Head, n_rows: int) -> list[list[int]]:
    """Labels of rows; some multi-label rows have none."""
    if head.task == "single-label":
        return [[5 * row % N_LABELS] for row in range(n_rows)]
    return [sorted({row % N_LABELS, 5 * row % N_LABELS, 22}) if row % 4 else [] for row in range(n_rows)]


def judged(head: Head, features: Tensor, targets: Any, **options: Any) -> HeadDiagnostics:
    return diagnose(Network(nn.Identity(), head), features.numpy(), targets, **options)


def position(head: Any, label: int) -> int:
    return label if head.position is None else int(head.position[label])


def digits_of(head: Any, label: int) -> list[int]:
    return head.codes.encode([position(head, label)])[0].tolist()


def best(scores: dict[int, float]) -> int:
    return min(scores, key=lambda value: (-scores[value], value))


class ByHand:
    """What the diagnostics count, for one row after the other."""

    def __init__(self, n_heads: int) -> None:
        self.alone, self.together = [0] * n_heads, [0] * n_heads
        self.confused: list[Pairs] = [Counter() for _ in range(n_heads)]
        self.rows_of_value: list[Counter[int]] = [Counter() for _ in range(n_heads)]
        self.n_rows = 0

    def add(self, head: int, preferred: int, true: set[int]) -> None:
        self.alone[head] += preferred in true
        self.rows_of_value[head].update(true)
        if preferred not in true:
            self.confused[head].update((value, preferred) for value in true)

    def check(self, found: HeadDiagnostics) -> None:
        assert found.n_rows == self.n_rows
        for number, head in enumerate(found.heads):
            assert head.accuracy == pytest.approx(self.alone[number] / self.n_rows)
            assert head.together == pytest.approx(self.together[number] / self.n_rows)
            assert sum(pair.count for pair in head.confusions) == sum(self.confused[number].values())
            counts = sorted(self.confused[number].values(), reverse=True)
            assert [pair.count for pair in head.confusions] == counts
            shares = [count / self.rows_of_value[number][pair[0]] for pair, count in self.confused[number].items()]
            assert sorted(pair.share for pair in head.confusions) == pytest.approx(sorted(shares))


def product_by_hand(head: Product, features: Tensor, rows: list[list[int]]) -> ByHand:
    counts, radices = ByHand(len(head.lengths)), head.codes.radices
    outputs = head._outputs(features).detach()
    for row, labels in enumerate(rows):
        if not labels:
            continue
        counts.n_rows += 1
        # The total score of all codes with a digit, one code after the other.
        totals: list[dict[int, float]] = [dict.fromkeys(range(radix), 0.0) for radix in radices]
        for code in product(*map(range, radices)):
            starts = [sum(radices[:place]) for place in range(len(radices))]
            columns = [start + digit for start, digit in zip(starts, code, strict=True)]
            score = float(outputs[row][:, columns].prod(1).sum())
            for place, digit in enumerate(code):
                totals[place][digit] += score
        preferred = [best(total) for total in totals]
        codes = [digits_of(head, label) for label in labels]
        for place, digit in enumerate(preferred):
            counts.add(place, digit, {code[place] for code in codes})
            counts.together[place] += any(code[: place + 1] == preferred[: place + 1] for code in codes)
    return counts


def cascade_by_hand(head: Cascade, features: Tensor, rows: list[list[int]]) -> ByHand:
    counts = ByHand(len(head.lengths))
    logits = [stage.detach() for stage in head.logits(features)]
    for row, labels in enumerate(rows):
        if not labels:
            continue
        counts.n_rows += 1
        parent, right = 0, True
        for stage, (radix, stride) in enumerate(zip(head.codes.radices, head.codes.strides, strict=True)):
            children = range(head.n_prefixes[0]) if stage == 0 else range(parent * radix, (parent + 1) * radix)
            scores = {child: float(logits[stage][row, child]) for child in children if child < head.n_prefixes[stage]}
            true = {position(head, label) // stride for label in labels} & set(scores)
            preferred = best(scores)
            counts.add(stage, preferred, true)
            right &= preferred in true
            counts.together[stage] += right
            parent = best({child: scores[child] for child in true})
    return counts


def powerset_by_hand(head: Any, features: Tensor, rows: list[list[int]], bits: int) -> ByHand:
    counts = ByHand(len(head.lengths))
    head.eval()  # the loss of all chunks
    sets = {frozenset(subset) for subset in powerset(range(head.n_labels))}
    for row, labels in enumerate(rows):
        counts.n_rows += 1
        likelihoods = {}
        for chosen in sets:
            one = LabelRows(torch.tensor(sorted(chosen), dtype=torch.int64), torch.tensor([0, len(chosen)]), 5)
            likelihoods[chosen] = -float(head.loss(features[[row]], one).detach())
        right = True
        for chunk, first in enumerate(range(0, head.n_labels, bits)):
            own = range(first, min(first + bits, head.n_labels))
            before = {label for label in labels if label < first}
            totals: dict[frozenset[int], float] = {}
            for chosen, likelihood in likelihoods.items():
                if {label for label in chosen if label < first} == before:
                    subset = chosen & set(own)
                    totals[subset] = totals.get(subset, 0) + np.exp(likelihood)
            preferred = max(totals, key=lambda subset: totals[subset])
            true = frozenset(labels) & set(own)

            def number(subset: frozenset[int], own: range = own) -> int:
                return int("".join("01"[label in subset] for label in own), 2)

            counts.add(chunk, number(preferred), {number(true)})
            right &= preferred == true
            counts.together[chunk] += right
    return counts


def powerset(labels: range) -> list[list[int]]:
    return [[label for label in labels if number >> label & 1] for number in range(2 ** len(labels))]


@pytest.mark.parametrize("name", CODED)
def test_accuracies_and_confusions_are_those_counted_by_hand(name: str) -> None:
    head, features = make(name), features_of(60)
    rows = lists(head, 60)
    found = judged(head, features, rows, most=10_000)
    by_hand = cascade_by_hand if "cascade" in name else product_by_hand
    by_hand(head, features, rows).check(found)  # type: ignore[operator]
    assert found.n_rows_left_out == sum(not row for row in rows)
    labels = head.predict_topk(features, 1)[0][:, 0].tolist()
    hits = [label in row for label, row in zip(labels, rows, strict=True) if row]
    assert found.predicted == pytest.approx(sum(hits) / len(hits))
    assert found.together == found.heads[-1].together <= min(each.together for each in found.heads)
    assert 0 < found.heads[0].accuracy < 1


@pytest.mark.parametrize("kind", POWERSETS)
@pytest.mark.parametrize("bits", [2, 3])
def test_chunks_are_those_counted_over_all_label_sets(kind: str, bits: int) -> None:
    torch.manual_seed(0)
    head = POWERSETS[kind](WIDTH, 5, bits)
    features, rows = features_of(12), (powerset(range(5)) * 2)[3:15]
    found = judged(head, features, rows, most=10_000)
    powerset_by_hand(head, features, rows, bits).check(found)
    given = head.predict(features).int().tolist()
    exact = [[label for label in range(5) if one[label]] == row for one, row in zip(given, rows, strict=True)]
    assert found.predicted == found.together == pytest.approx(np.mean(exact))
    assert found.n_rows == 12  # a row without labels has a set, too


@pytest.mark.parametrize("name", [name for name in EVERY_HEAD if "kronecker" in name])
def test_a_head_that_scores_whole_labels_is_judged_by_the_digits_of_the_best(name: str) -> None:
    head, features = make(name), features_of(40)
    rows = lists(head, 40)
    counts = ByHand(len(head.lengths))
    for labels, best_label in zip(rows, head.predict_topk(features, 1)[0][:, 0].tolist(), strict=True):
        if not labels:
            continue
        counts.n_rows += 1
        preferred, codes = digits_of(head, best_label), [digits_of(head, label) for label in labels]
        for place, digit in enumerate(preferred):
            counts.add(place, digit, {code[place] for code in codes})
            counts.together[place] += any(code[: place + 1] == preferred[: place + 1] for code in codes)
    found = judged(head, features, rows, most=10_000)
    counts.check(found)
    assert found.predicted == found.together


def test_every_head_right_adds_up_to_the_whole_code() -> None:
    """As in Fig. 6: each of two heads is right in three of four rows, both in two of them."""
    head = Product(6, 6, (3, 2), task="single-label")
    with torch.no_grad():
        head.linear.weight.copy_(torch.eye(6)[:5])
        head.linear.bias.zero_()
    digits = torch.tensor([[0, 0], [1, 1], [2, 0], [0, 1]])
    features = torch.zeros(4, 6)
    features[torch.arange(4), digits[:, 0]] = 1
    features[torch.arange(4), 3 + digits[:, 1]] = 1
    found = judged(head, features, [[0], [3], [5], [3]], label_names=list("abcdef"))
    assert [each.accuracy for each in found.heads] == [0.75, 0.75]
    assert [each.together for each in found.heads] == [0.75, 0.5]
    assert (found.together, found.predicted, found.if_independent) == (0.5, 0.5, 0.5625)
    [first], [second] = (each.confusions for each in found.heads)
    assert (first.missed.names, first.preferred.names) == (("d", "c"), ("a", "b"))  # d is in two rows
    assert (first.count, first.share) == (1, 0.5)
    assert (str(second.missed), str(second.preferred)) == ("d, f, b", "a, c, e")
    assert (second.count, second.share) == (1, 1 / 3)


def test_digits_of_different_labels_are_right_alone_and_wrong_together() -> None:
    head = Product(5, 6, (3, 2))
    with torch.no_grad():
        head.linear.weight.copy_(torch.eye(5))
        head.linear.bias.zero_()
    features = torch.tensor([[2.0, 1, 0, 0, 1]])  # the digits 0 and 1: label 1
    found = judged(head, features, [[0, 3]])  # with the digits 0, 0 and 1, 1
    assert [each.accuracy for each in found.heads] == [1, 1]
    assert [each.together for each in found.heads] == [1, 0]
    assert found.predicted == 0
    assert not any(each.confusions for each in found.heads)


def without_weights(head: Head) -> Head:
    for parameter in head.parameters():
        nn.init.zeros_(parameter)
    return head


@pytest.mark.parametrize(
    ("head", "right", "wrong"),
    [
        (lambda: Product(4, 6, (3, 2)), [0], [5]),
        (lambda: Cascade(4, 6, (3, 2), width=2), [0], [5]),
        (lambda: PowersetProduct(4, 6, 3), [], [0, 3]),
    ],
)
def test_ties_go_to_the_lowest_value(head: Any, right: list[int], wrong: list[int]) -> None:
    found = judged(without_weights(head()), torch.ones(2, 4), [right, right])
    assert [each.accuracy for each in found.heads] == [1, 1]
    found = judged(without_weights(head()), torch.ones(2, 4), [right, wrong])
    assert [each.accuracy for each in found.heads] == [0.5, 0.5]


def test_of_equal_groups_the_lowest_survive() -> None:
    found = judged(without_weights(Cascade(4, 6, (3, 2), width=2)), torch.ones(1, 4), [[2]], survivors=(1, 2))
    assert found.survival == Survival((1, 2, 3), ((0, 1, 1),), 10)
    assert found.heads[1].accuracy == 1  # the first label of its own group


@pytest.mark.parametrize("task", ["multi-label", "single-label"])
@pytest.mark.parametrize("radices", [(6, 4), (4, 3, 2), (2, 2, 3, 2), (23,)])
def test_survivors_are_those_of_a_full_enumeration(task: Any, radices: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    head = Cascade(WIDTH, N_LABELS, radices, width=5, survivors=2, task=task, order=ORDER)
    features, rows = features_of(30), lists(head, 30)
    found = judged(head, features, rows, survivors=(1, 3, 100))
    if len(radices) == 1:
        assert found.survival is None
        return
    assert found.survival is not None
    assert found.survival.sizes == tuple(sorted({1, 2, 3} & set(range(radices[0] + 1))))
    assert found.survival.in_use == 2
    logits = [stage.detach().double() for stage in head.logits(features)]
    for place, size in enumerate(found.survival.sizes):
        remaining, n_pairs = [0] * (len(radices) - 1), sum(map(len, rows))
        for row, labels in enumerate(rows):
            kept, chances = [0], {0: 1.0}
            for stage in range(len(radices) - 1):
                radix = head.n_prefixes[0] if stage == 0 else radices[stage]
                scores = {}
                for parent in kept:
                    children = [c for c in range(parent * radix, (parent + 1) * radix) if c < head.n_prefixes[stage]]
                    own = logits[stage][row, children]
                    each = own.softmax(0) if task == "single-label" else own.sigmoid()
                    scores |= {child: chances[parent] * float(one) for child, one in zip(children, each, strict=True)}
                kept = sorted(scores, key=lambda child: (-scores[child], child))[:size]
                chances = {child: scores[child] for child in kept}
                stride = head.codes.strides[stage]
                remaining[stage] += sum(position(head, label) // stride in kept for label in labels)
        shares = [found.survival.shares[stage][place] for stage in range(len(radices) - 1)]
        assert shares == pytest.approx([count / n_pairs for count in remaining])


def test_a_label_that_does_not_survive_is_never_predicted() -> None:
    torch.manual_seed(1)
    head = Cascade(WIDTH, N_LABELS, (6, 4), width=5, survivors=1)
    features = features_of(40)
    first = head.predict_topk(features, 1)[0]
    found = judged(head, features, first.tolist(), survivors=(1,))
    assert found.survival is not None
    assert found.survival.shares == ((1.0,),)
    assert found.predicted == 1


@pytest.mark.parametrize("name", CODED)
def test_batches_of_any_size_give_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BUFFERED", 3)
    head, features = make(name), features_of(20)
    rows = lists(head, 20)
    whole = judged(head, features, rows)
    assert judged(head, features, rows, batch_size=3) == whole
    tally = HeadTally(head)
    tally.add(features.view(4, 5, WIDTH), [rows[start : start + 5] for start in range(0, 20, 5)])
    assert tally.result() == whole


def test_all_forms_of_targets_give_the_same_and_ignored_rows_do_not_count() -> None:
    head, features = make("product, single"), features_of(6)
    whole = judged(head, features, [[0], [5], [10], [15], [20], [2]])
    classes = np.array([0, 5, 10, 15, 20, 2])
    assert judged(head, features, classes) == whole
    assert judged(head, features, sparse.csr_array(np.eye(N_LABELS)[classes])) == whole
    longer = torch.cat([features[:2], torch.ones(3, WIDTH), features[2:]])
    ignored = np.concatenate([classes[:2], [-100] * 3, classes[2:]])
    assert judged(head, longer, ignored, batch_size=2) == whole


@pytest.mark.parametrize("name", sorted(set(EVERY_HEAD) - set(CODED)))
def test_heads_of_one_layer_say_that_they_have_nothing_to_judge(name: str) -> None:
    head = make(name)
    if head.lengths:
        assert "powerset" in name or "kronecker" in name
        return
    features = torch.zeros(2, head.n_features)
    for call in (lambda: judged(head, features, [[1], [2]]), lambda: head.decisions(features, [[1], [2]])):
        with pytest.raises(InvalidInput, match="one layer over all labels") as refused:
            call()
        assert refused.value.code == "no_heads"


def test_rows_without_any_label_leave_nothing_to_judge() -> None:
    head = make("cascade")
    with pytest.raises(InvalidInput, match="no row has a label"):
        judged(head, features_of(2), [[], []])
    with pytest.raises(InvalidInput, match="survivors"):
        judged(head, features_of(2), [[1], []], survivors=(0,))


def test_a_million_labels_are_judged_without_a_matrix_of_them() -> None:
    torch.manual_seed(0)
    head = Cascade(8, 1_000_000, (5000, 200), width=4, sparse_gradients=True)
    targets = [[row * 31_337, 999_999 - row] for row in range(8)]
    found = judged(head, features_of(8), targets)
    assert found.n_rows == 8
    assert [pair.missed.n_labels for pair in found.heads[0].confusions[:1]] == [200]
    assert all(len(pair.missed.labels) == 3 for pair in found.heads[0].confusions)
    small = judged(Product(8, 1_000_000), features_of(8), targets)
    assert small.heads[0].length == 1000


def planted() -> tuple[Any, Any]:
    """Rows that tell their two labels, of which label 7 is rare."""
    rng = np.random.default_rng(0)
    labels = np.stack([rng.integers(0, 3, 120), rng.integers(3, 7, 120)], 1)
    Y = np.zeros((120, 9))
    np.put_along_axis(Y, labels, 1, axis=1)
    Y[:2, 7] = 1
    return sparse.csr_array(Y[:, :9] + 0.01 * rng.random((120, 9))), Y


QUICK: dict[str, Any] = {"width": 16, "epochs": 20, "batch_size": 16, "learning_rate": 0.02, "n_jobs": 1}


@pytest.mark.parametrize("head", ["cascade", "product"])
def test_an_estimator_is_judged_over_the_labels_that_it_knows(head: str) -> None:
    X, Y = planted()
    model = MultiHeadClassifier(head, radices=(4, 2), trim=0.15, n_networks=2, **QUICK).fit(X, Y)
    assert model.labels_.tolist() == [0, 1, 2, 3, 4, 5, 6]
    Y[5] = 0
    Y[5, 8] = 1  # this label has no training row
    found = model.diagnose(X, Y, label_names=[f"label {label}" for label in range(9)])
    assert (found.n_rows, found.n_rows_left_out, found.n_labels_left_out, found.n_networks) == (119, 1, 3, 2)
    assert "the first of 2 networks" in found.to_text()
    network = model.networks_[0]
    again = diagnose(network, model._rows(X), sparse.csr_array(Y[:, model.labels_]))
    assert [(each.accuracy, each.together) for each in found.heads] == [
        (each.accuracy, each.together) for each in again.heads
    ]
    assert found.predicted > 0.5
    mentioned = {label for each in found.heads for pair in each.confusions for label in pair.missed.labels}
    assert mentioned <= set(model.labels_.tolist())


def test_labels_of_an_estimator_are_named_by_their_own_ids() -> None:
    X, Y = planted()
    Y = np.roll(Y, 1, axis=1)  # label 0 has no row
    model = MultiHeadClassifier("product", radices=(4, 3), **{**QUICK, "epochs": 1}).fit(X, Y)
    assert model.labels_[0] == 1
    groups = [pair.missed for each in model.diagnose(X, Y, most=100).heads for pair in each.confusions]
    assert groups
    assert {label for group in groups for label in group.labels} <= set(model.labels_.tolist())
    assert all(group.names == tuple(map(str, group.labels)) for group in groups)


def test_a_classifier_takes_classes_and_names_them() -> None:
    X = np.eye(6, dtype=np.float32)[np.arange(36) % 6]
    y = np.array(["ant", "bee", "cat", "dog", "elk", "fox"], dtype=object)[np.arange(36) % 6]
    model = MultiHeadClassifier("cascade", radices=(3, 2), task="single-label", **QUICK).fit(X, y)
    found = model.diagnose(X, y)
    assert found.predicted == model.score(X, y)
    strange = np.array(["yak", *y[1:]], dtype=object)
    assert model.diagnose(X, strange).n_rows_left_out == 1
    wrong = model.diagnose(X, np.roll(y, 1))
    assert set("".join(wrong.heads[0].confusions[0].missed.names)) <= set("antbeecatdogelkfox")


@pytest.mark.parametrize("head", HEADS)
def test_an_estimator_says_whether_it_can_be_judged(head: str) -> None:
    X, Y = planted()
    model = MultiHeadClassifier(head, head_width=4, **{**QUICK, "epochs": 1}).fit(X, Y)
    assert model.diagnoses == (head in ("cascade", "product", "kronecker"))
    if not model.diagnoses:
        with pytest.raises(InvalidInput) as refused:
            model.diagnose(X, Y)
        assert refused.value.code == "no_heads"
    with pytest.raises(InvalidInput):
        model.diagnose(X, Y[:, :4])
    with pytest.raises(InvalidInput):
        model.diagnose(X, Y[:4])


def test_the_text_and_the_dictionary_say_the_same() -> None:
    head = make("cascade of three")
    found = judged(head, features_of(40), lists(head, 40), label_names=[f"<{label}>" for label in range(N_LABELS)])
    text = found.to_text()
    assert "30 rows; values in percent\n10 rows without a label" in text
    assert f"all heads right: {100 * found.together:.2f}; if they erred" in text
    assert "labels that remain, by groups kept" in text
    assert "head 3: right value -> preferred value" in text
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["heads"][0]["accuracy"] == found.heads[0].accuracy
    assert plain["survival"]["sizes"] == [1, 2]
    assert plain["heads"][2]["confusions"][0]["missed"]["n_labels"] == 1


def test_sets_of_chunks_are_named_by_their_labels() -> None:
    torch.manual_seed(0)
    head = PowersetProduct(WIDTH, 5, 3)
    found = judged(head, features_of(4), [[], [0, 2], [1], [4]], label_names=list("abcde"))
    told = {str(pair.missed) for pair in found.heads[0].confusions}
    assert told <= {"(no label)", "a, c", "b"}
    assert len(told) > 1


@pytest.mark.skipif(not can_draw(), reason="needs matplotlib")
def test_pictures_of_heads_and_of_bags_can_be_drawn() -> None:
    head = make("cascade of three")
    picture = judged(head, features_of(40), lists(head, 40)).picture()
    assert [len(panel.lines) for panel in picture.panels[0]] == [3, 2]  # type: ignore[union-attr]
    X = np.eye(3, dtype=np.float32)[[0, 1, 0, 2, 1, 2]]
    groups = np.kron(np.eye(3), np.ones((2, 1)))
    model = DeepMIML(hidden=8, epochs=2, n_jobs=1).fit(X, groups, [[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    bag = assignment_picture(model.soft_assignments(X, groups)[1], ["red", "green", "$blue$"], ["left", "right"])
    for each in (picture, bag):
        file = io.BytesIO()
        draw(each, file)
        assert file.getvalue().startswith(b"\x89PNG")


def test_the_heat_map_of_a_bag_shows_what_differs_most() -> None:
    shares = np.array([[1.0, 1.9, 0.7, 0.2], [1.0, 0.1, 1.3, 1.8], [1.0, 1.0, 1.0, 1.0]])
    [[panel]] = assignment_picture(shares, list("abcd"), most_labels=2, most_instances=2).panels
    assert isinstance(panel, HeatMap)
    assert (panel.x_names, panel.y_names) == (("b", "d"), ("0", "1"))
    assert panel.values == [[1.9, 0.2], [0.1, 1.8]]
    assert "2 of 3 instances" in panel.title
    [[chosen]] = assignment_picture(shares, labels=[3, 0]).panels
    assert isinstance(chosen, HeatMap)
    assert chosen.x_names == ("3", "0")
    assert chosen.values[1] == [1.8, 1.0]
    for wrong in ({"labels": [4]}, {"labels": [-1]}):
        with pytest.raises(InvalidInput):
            assignment_picture(shares, **wrong)
    with pytest.raises(InvalidInput, match="shape"):
        assignment_picture(np.ones(3))
