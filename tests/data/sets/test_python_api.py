"""The embedded corpus: complete, the same on every build, honest about what is held out, safe in its cache."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data import Corpus, load_python_api, python_api_versions
from longtail.data.sets import python_api
from longtail.data.sets.docstrings import parse_docstring
from longtail.data.sets.public_api import public_objects
from longtail.data.sets.python_api import (
    PROSE,
    Document,
    build_documents,
    is_ordinary,
    ordinary_words,
    python_api_cache_file,
    without_name,
)
from longtail.errors import InvalidInput
from longtail.text import tokenize


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _use_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_CACHE", str(cache))


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return build_documents()


@pytest.fixture
def kept(documents: list[Document], monkeypatch: pytest.MonkeyPatch) -> list[Document]:
    """The documents, built once and not again."""
    monkeypatch.setattr(python_api, "build_documents", lambda: documents)
    return documents


def labels_of(corpus: Corpus, name: str) -> set[str]:
    assert corpus.row_names is not None
    row = list(corpus.row_names).index(name)
    return {corpus.label_names[label] for label in corpus.labels[[row]].indices}


def test_has_thousands_of_documents_and_labels_from_every_package(documents: list[Document]) -> None:
    assert 3000 < len(documents) < 8000
    packages = Counter(document.name.partition(".")[0] for document in documents)
    assert set(packages) == {"numpy", "scipy", "sklearn"}
    assert min(packages.values()) > 800
    assert 3000 < len({label for document in documents for label in document.labels}) < 8000


def test_known_objects_are_there_under_their_public_names(documents: list[Document]) -> None:
    names = {document.name for document in documents}
    assert {
        "numpy.polyfit",
        "numpy.sin",
        "numpy.ndarray.sort",
        "numpy.absolute",
        "scipy.stats.linregress",
        "scipy.stats.norm",
        "scipy.special.airy",
        "sklearn.linear_model.LinearRegression",
        "sklearn.linear_model.LinearRegression.fit",
        "sklearn.base.ClassifierMixin.score",
    } <= names
    assert not names & {
        "numpy.abs",
        "numpy.ma.core.MaskedArray",
        "sklearn.svm.SVC.score",
        "scipy.stats.kde.gaussian_kde",
    }
    assert not [name for name in names if any(part.startswith("_") for part in name.split("."))]
    assert not [name for name in names if ".tests." in name]


def test_is_in_name_order_without_repeats(documents: list[Document]) -> None:
    names = [document.name for document in documents]
    assert names == sorted(set(names))


def test_two_builds_are_equal(documents: list[Document]) -> None:
    assert build_documents() == documents


def test_labels_are_own_name_module_and_see_also(kept: list[Document]) -> None:
    corpus = load_python_api()
    assert labels_of(corpus, "numpy.polyfit") == {
        "numpy.polyfit",
        "numpy",
        "numpy.polyval",
        "numpy.linalg.lstsq",
        "scipy.interpolate.UnivariateSpline",
    }
    assert {"sklearn.svm.SVC", "sklearn.svm", "sklearn.svm.SVR", "sklearn.svm.LinearSVC"} <= labels_of(
        corpus, "sklearn.svm.SVC"
    )
    known = {document.name for document in kept}
    modules = {known_object.module for known_object in public_objects(["numpy", "scipy", "sklearn"])}
    for document in kept:
        assert document.labels[0] == document.name
        assert document.labels[1] in modules
        assert set(document.labels[2:]) <= known
        assert len(set(document.labels)) == len(document.labels)


def test_labels_have_a_long_tail(kept: list[Document]) -> None:
    counts = load_python_api().label_counts
    assert counts.min() >= 1
    assert counts.max() > 300
    assert np.mean(counts <= 2) > 0.5
    head = np.sort(counts)[::-1][: len(counts) // 10]
    assert head.sum() > 0.4 * counts.sum()


def test_no_document_holds_its_own_name_as_an_identifier(documents: list[Document]) -> None:
    objects = {known.name: known for known in public_objects(["numpy", "scipy", "sklearn"])}
    for document in documents:
        text = "\n".join(document.paragraphs)
        for alias in (document.name, *objects[document.name].aliases):
            last = alias.rpartition(".")[2]
            assert not re.search(rf"(?<!\w){last}\(", text, re.IGNORECASE), document.name
            assert not re.search(rf"\w\.{last}(?!\w)", text, re.IGNORECASE), document.name
            for code in re.findall(r"`[^`]*`", " ".join(document.paragraphs)):
                assert not re.search(rf"(?<!\w){last}(?!\w)", code, re.IGNORECASE) or "\n" in code, document.name
            if re.search(r"[\d_]|.[A-Z]", last):
                assert not re.search(rf"(?<!\w){last}(?!\w)", text, re.IGNORECASE), document.name


def test_a_name_that_is_no_ordinary_word_is_no_token_of_its_document(documents: list[Document]) -> None:
    objects = {known.name: known for known in public_objects(["numpy", "scipy", "sklearn"])}
    parsed = {name: parse_docstring(known.docstring, name.rpartition(".")[2]) for name, known in objects.items()}
    ordinary = ordinary_words(
        (
            name.rpartition(".")[2],
            [text for section, text in it.paragraphs if section in PROSE],
        )
        for name, it in parsed.items()
    )
    assert {"sort", "mean", "fit"} <= ordinary
    assert not {"polyfit", "linregress", "lstsq", "argsort"} & ordinary
    identifiers = 0
    for document in documents:
        tokens = set(tokenize("\n".join(document.paragraphs), min_length=1))
        for alias in (document.name, *objects[document.name].aliases):
            last = alias.rpartition(".")[2]
            if not is_ordinary(last, ordinary):
                identifiers += 1
                assert last.lower() not in tokens, document.name
    assert identifiers > 3000


def test_ordinary_words_need_several_documents_about_something_else() -> None:
    documents = [(f"name{number}", ["we sort things", "`argsort` and numpy.rank or call( it"]) for number in range(5)]
    assert ordinary_words(documents) == {"we", "sort", "things", "and", "or", "it"}
    assert ordinary_words(documents[:4]) == set()
    assert "sort" not in ordinary_words([("sort", ["sort"])] * 9)


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (
            "Sort with `sort`, np.sort, sort(a) or a.sort() in sorted order",
            "sort",
            "Sort with ``, , (a) or () in sorted order",
        ),
        ("`norm.pdf(x)` and norm.cdf of the norm", "norm", "`.pdf(x)` and .cdf of the norm"),
        ("LinearSVC and linearsvc but not LinearSVCs", "LinearSVC", "and but not LinearSVCs"),
        ("`scipy.stats.t_test` or t_test_1", "t_test", "`` or _1"),
    ],
)
def test_removing_a_name(text: str, name: str, expected: str) -> None:
    assert without_name(text, [name], {"sort", "norm"}) == expected


def test_only_plain_words_can_be_ordinary() -> None:
    words = {"ridge", "svc", "log2", "c_"}
    assert is_ordinary("Ridge", words)
    assert not any(is_ordinary(name, words) for name in ("SVC", "log2", "c_", "rIdge", "lasso"))


def test_no_paragraph_repeats_across_many_documents(documents: list[Document]) -> None:
    counts = Counter(text for document in documents for text in set(document.paragraphs[1:]))
    assert max(counts.values()) < 8
    assert "Read more in the User Guide." not in counts


def test_every_label_of_the_split_occurs_in_training(kept: list[Document]) -> None:
    train, test = load_python_api(split="train"), load_python_api(split="test")
    assert train.label_names == test.label_names
    assert train.label_counts.min() >= 1
    assert train.row_names is not None
    assert test.row_names is not None
    assert not set(train.row_names) & set(test.row_names)
    assert len(train.row_names) + len(test.row_names) == len(kept)
    assert 0.15 < test.n_rows / len(kept) < 0.25
    assert (test.label_counts > 0).sum() > 500
    assert np.mean(np.diff(test.labels.indptr) > 0) > 0.99


def test_truth_of_the_test_part_is_all_of_a_document_s_labels_that_training_knows(kept: list[Document]) -> None:
    test = load_python_api(split="test")
    known = set(test.label_names)
    for document in [document for document in kept if document.is_test][:50]:
        assert labels_of(test, document.name) == set(document.labels) & known


def test_documents_of_the_same_summary_are_on_one_side(documents: list[Document]) -> None:
    sides: dict[str, set[bool]] = {}
    for document in documents:
        sides.setdefault(document.paragraphs[0].lower(), set()).add(document.is_test)
    assert all(len(side) == 1 for side in sides.values())


def test_groups_join_the_paragraphs_of_a_document(kept: list[Document]) -> None:
    for split in (None, "train", "test"):
        whole: Any = load_python_api(split=split)  # type: ignore[arg-type]
        parts: Any = load_python_api(rows="paragraphs", split=split)  # type: ignore[arg-type]
        assert parts.groups.shape == (parts.n_rows, whole.n_rows)
        assert np.array_equal(np.diff(parts.groups.indptr), np.ones(parts.n_rows))
        assert [whole.row_names[group] for group in parts.groups.indices] == list(parts.row_names)
        merged = parts.merge_groups()
        assert list(merged.texts) == list(whole.texts)
        assert (merged.labels != whole.labels).nnz == 0
        assert merged.label_names == whole.label_names
        assert all(text.strip() for text in parts.texts)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(InvalidInput, match="rows is 'words'"):
        load_python_api(rows="words")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="split is 'dev'"):
        load_python_api(split="dev")  # type: ignore[arg-type]


def test_the_cache_file_is_named_after_every_version(monkeypatch: pytest.MonkeyPatch) -> None:
    name = python_api_cache_file().name
    for distribution, number in python_api_versions().items():
        assert f"{distribution}-{number}" in name
    monkeypatch.setattr(python_api, "FORMAT", python_api.FORMAT + 1)
    assert python_api_cache_file().name != name


def test_is_built_once_and_then_read(
    documents: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path))
    builds = []
    monkeypatch.setattr(python_api, "build_documents", lambda: builds.append(1) or documents)
    first, second = load_python_api(), load_python_api()
    assert len(builds) == 1
    assert list(first.texts or ()) == list(second.texts or ())
    assert (first.labels != second.labels).nnz == 0
    assert [path.name for path in python_api_cache_file().parent.iterdir()] == [python_api_cache_file().name]


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole.replace(b"polynomial", b"polynomiaX", 1),
        lambda whole: b"\x80\x04N." + whole,
        lambda whole: b"0" * 64 + whole[64:],
    ],
)
def test_a_damaged_cache_file_is_built_again(
    damage: Any, documents: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path))
    monkeypatch.setattr(python_api, "build_documents", lambda: documents)
    load_python_api()
    path = python_api_cache_file()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert load_python_api().n_rows == len(documents)
    assert path.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_told_and_does_not_stop_the_work(
    kept: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="LONGTAIL_CACHE"):
        assert load_python_api().n_rows == len(kept)


@pytest.mark.slow
def test_what_a_program_has_enabled_does_not_change_the_corpus(tmp_path):
    build = "from longtail.data import load_python_api; print(load_python_api().row_names)"
    enable = "from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer; "
    names = []
    for number, program in enumerate((build, enable + build)):
        environment = {**os.environ, "LONGTAIL_CACHE": str(tmp_path / str(number))}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", env=environment)
        assert done.returncode == 0, done.stderr
        names.append(done.stdout)
    assert names[0] == names[1]
