"""`check`: what is found in texts, in features and among test rows, and what is not."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from longtail.checking import Check, Finding, Rows, check, check_briefly, rows_of_corpus, rows_of_file
from longtail.data import Corpus, Record, iter_jsonl, write_corpus
from longtail.errors import InvalidInput
from longtail.prepared import open_prepared, prepare


def rows(*pairs: tuple[str, Sequence[str]], ids: Sequence[str | None] = ()) -> Rows:
    named = ids or [None] * len(pairs)
    return Rows(
        texts=[
            Record(line, text, tuple(labels), name)
            for line, ((text, labels), name) in enumerate(zip(pairs, named, strict=True), start=1)
        ],
        unit="line",
    )


def plain(count: int = 30) -> list[tuple[str, list[str]]]:
    """Rows without anything to find but that they have one label each."""
    letters = "abcdefghij"
    return [
        (f"text of {letters[row % 10] * 3} and {letters[row // 10] * 4}", [("north", "south", "western")[row % 3]])
        for row in range(count)
    ]


def found(result: Check, code: str) -> Finding:
    [finding] = [finding for finding in result.findings if finding.code == code]
    return finding


def codes(result: Check) -> list[str]:
    return [finding.code for finding in result.findings]


def places(finding: Finding) -> list[list[int]]:
    return [list(example.places) for example in finding.examples]


def test_nothing_is_found_in_good_rows() -> None:
    result = check(rows(*plain()))
    assert codes(result) == ["single_label"]
    assert result.summary() == "1 note"
    several = [(text, [*labels, "all"] if row % 2 else labels) for row, (text, labels) in enumerate(plain())]
    assert check(rows(*several)).summary() == "nothing found"


def test_the_description_counts_rows_labels_and_words() -> None:
    result = check(rows(("one two three", ["a", "b"]), ("four", ["a"]), ("five six", []), ("", ["a"])))
    assert (result.n_rows, result.n_labels, result.n_pairs, result.n_features) == (4, 2, 4, None)
    spread = result.labels_per_row.spread
    assert (spread.smallest, spread.median, spread.mean, spread.largest) == (0, 1.0, 1.0, 2)
    assert [(each.name, each.count) for each in result.rows_per_label.bins] == [("1", 1), ("2", 0), ("3-4", 1)]
    assert result.words_per_text.spread.median == 2  # of the texts that are not empty


def test_rows_without_labels_and_empty_texts_are_counted_with_their_lines() -> None:
    result = check(rows(*plain(), ("no label here", []), ("  \n", ["north"]), ("none here", [])), examples=1)
    assert found(result, "rows_without_labels").count == 2
    assert places(found(result, "rows_without_labels")) == [[31]]
    assert found(result, "rows_without_labels").examples[0].what == "no label here"
    assert places(found(result, "empty_texts")) == [[32]]


def test_no_labels_at_all_is_an_error_and_so_are_empty_texts_only() -> None:
    result = check(rows(("", []), (" ", [])))
    assert [(each.code, each.severity) for each in result.findings] == [
        ("no_labels", "error"),
        ("empty_texts", "error"),
    ]


def test_duplicates_are_found_without_case_and_spaces_and_conflicts_apart() -> None:
    result = check(
        rows(
            *plain(),
            ("Same text", ["north"]),
            ("same  TEXT", ["north"]),
            ("an other", ["north", "south"]),
            ("an other", ["south"]),
            ("an other", ["south", "north"]),
            ("", ["north"]),
            ("", ["south"]),
        )
    )
    assert (found(result, "duplicates").count, places(found(result, "duplicates"))) == (1, [[31, 32]])
    conflicting = found(result, "conflicting_duplicates")
    assert (conflicting.count, places(conflicting)) == (2, [[33, 34, 35]])


def test_duplicate_ids_and_missing_ids_are_found() -> None:
    result = check(rows(*plain(4), ids=["a", "b", "a", None]))
    assert (found(result, "duplicate_ids").count, places(found(result, "duplicate_ids"))) == (1, [[1, 3]])
    assert (found(result, "missing_ids").severity, places(found(result, "missing_ids"))) == ("error", [[4]])
    assert "missing_ids" not in codes(check(rows(*plain(4))))


def test_one_label_on_all_rows_is_an_error_and_on_nearly_all_a_warning() -> None:
    assert found(check(rows(*((text, ["same"]) for text, _ in plain()))), "one_class").severity == "error"
    nearly = [(text, ["same", *labels] if row else labels) for row, (text, labels) in enumerate(plain())]
    assert found(check(rows(*nearly)), "label_on_most_rows").examples[0].what == "'same' (29 rows)"


def test_labels_with_few_rows_are_counted() -> None:
    extra = [("once upon a time", ["single"]), ("twice upon it", ["double"]), ("twice again so", ["double"])]
    result = check(rows(*plain(), *extra))
    assert found(result, "labels_with_one_row").count == 1
    assert [(each.places, each.what) for each in found(result, "labels_with_one_row").examples] == [((31,), "single")]
    assert found(result, "rare_labels").says == "2 of 5 labels have fewer than 5 rows, 2 fewer than 3"


def test_long_short_and_wordless_texts_are_found() -> None:
    result = check(rows(*plain(), ("word " * 600, ["north"]), ("ab", ["north"]), ("?!", ["north"])))
    assert found(result, "long_texts").examples[0].what.startswith("600 words: word word")
    assert places(found(result, "short_texts")) == [[32]]
    assert places(found(result, "texts_without_words")) == [[33]]
    characters = check(rows(("\u732b\u306f\u53ef\u611b\u3044", ["north"]), *plain()))
    assert "short_texts" not in codes(characters)  # each character is a word


def test_damaged_texts_and_labels_are_found() -> None:
    result = check(rows(*plain(), ("caf\u00c3\u00a9 &amp; tea", ["north"]), ("tea", ["no\ufffdth"])))
    assert places(found(result, "wrong_encoding")) == places(found(result, "html_entities")) == [[31]]
    assert found(result, "damaged_labels").examples[0].what == "no\ufffdth"


def test_leakage_is_told_against_chance() -> None:
    leaking = [(f"{text}, tagged {labels[0]}", labels) for text, labels in plain()]
    finding = found(check(rows(*leaking)), "labels_in_texts")
    assert (finding.severity, finding.count) == ("warning", 30)
    assert finding.examples[0].what == "north"
    everywhere = [(f"{text} north south western", labels) for text, labels in plain()]
    result = check(rows(*everywhere))
    assert "labels_in_texts" not in codes(result)
    assert (result.labels_in_texts.share, result.labels_in_texts.by_chance) == (1.0, 1.0)


def test_the_name_of_a_label_counts_as_whole_words_only() -> None:
    result = check(rows(*((f"{text} northern", ["north"]) for text, _ in plain())))
    assert result.labels_in_texts.share == 0


def test_training_rows_among_test_rows_are_found() -> None:
    test = rows(("TEXT of aaa and aaaa", ["north"]), ("new one", ["east"]), ("newer", ["north"]), ids=["x", "b", "y"])
    result = check(rows(*plain(3), ids=["a", "b", "c"]), test)
    finding = found(result, "test_rows_in_training")
    assert (finding.count, finding.says) == (1, "1 of 3 test rows has the text of a training row")
    assert finding.examples[0].what == "the same as line 1 of the training set"
    assert places(found(result, "test_ids_in_training")) == [[2]]
    assert found(result, "test_labels_not_in_training").examples[0].what == "'east' (1 test row)"


def test_test_rows_must_be_of_the_same_kind() -> None:
    features = rows_of_corpus(feature_corpus())
    with pytest.raises(InvalidInput, match="the test rows have features"):
        check(rows(*plain()), features)
    with pytest.raises(InvalidInput, match="the test rows have texts"):
        check(rows_of_corpus(feature_corpus()), rows(*plain()))


def test_no_rows_are_an_error() -> None:
    for none in (Rows(texts=[]), Rows(features=[])):
        with pytest.raises(InvalidInput) as caught:
            check(none)
        assert caught.value.code == "no_rows"


def feature_corpus() -> Corpus:
    X = np.zeros((30, 5), dtype=np.float32)
    X[:, 0] = 2  # constant
    X[:, 1] = np.arange(30) + 1
    X[:, 2] = np.arange(30) % 7
    X[4, 1] = X[3, 1]
    X[4, 2] = X[3, 2]  # row 5 is row 4
    X[9] = 0
    Y = np.zeros((30, 3))
    Y[np.arange(30), np.arange(30) % 2] = 1
    Y[20] = 0
    return Corpus(labels=Y, label_names=["0", "1", "2"], features=X)


@pytest.mark.parametrize("streamed", [False, True])
def test_features_are_checked_in_batches(tmp_path: Path, streamed: bool) -> None:
    corpus = feature_corpus()
    write_corpus(corpus, tmp_path / "rows.txt")
    result = check(rows_of_file(tmp_path / "rows.txt") if streamed else rows_of_corpus(corpus))
    assert (result.n_rows, result.n_labels, result.n_features) == (30, 2, 5)
    assert places(found(result, "rows_without_labels")) == [[21]]
    assert places(found(result, "rows_without_features")) == [[10]]
    assert places(found(result, "conflicting_duplicates")) == [[4, 5]]
    assert found(result, "unused_features").count == 2
    assert found(result, "labels_without_rows").count == 1
    assert "constant_features" not in codes(result)  # row 10 has no feature 0
    assert result.words_per_text.spread is None


def test_constant_features_are_found() -> None:
    corpus = feature_corpus()
    kept = corpus.select(np.arange(30) != 9)
    assert found(check(rows_of_corpus(kept)), "constant_features").examples[0].what == "feature 0 is 2"


def test_training_rows_among_test_rows_are_found_by_their_features() -> None:
    corpus = feature_corpus()
    test = replace(corpus.select(np.array([3, 9])), label_names=["0", "1", "9"])
    result = check(rows_of_corpus(corpus), rows_of_corpus(test))
    assert found(result, "test_rows_in_training").examples[0].what == "the same as row 4 of the training set"
    assert found(result, "test_rows_in_training").count == 1  # rows without features say nothing


def test_a_prepared_corpus_is_checked_by_its_features(tmp_path: Path) -> None:
    corpus = Corpus.from_lists(*zip(*plain(), strict=True), row_names=["a", *map(str, range(29))])
    write_corpus(corpus, tmp_path / "notes.jsonl")
    prepare([tmp_path / "notes.jsonl"], tmp_path / "prepared")
    result = check(rows_of_corpus(open_prepared(tmp_path / "prepared")))
    assert (result.n_rows, result.n_labels) == (30, 3)
    assert result.n_features > 0


def test_the_same_is_found_in_a_file_a_stream_and_a_corpus(tmp_path: Path) -> None:
    corpus = Corpus.from_lists(*zip(*plain(), ("Text", ["A b"]), ("text", ["a-b"]), strict=True))
    write_corpus(corpus, tmp_path / "notes.jsonl")
    write_corpus(corpus, tmp_path / "notes.csv")
    stream = Rows(texts=iter_jsonl(io.BytesIO((tmp_path / "notes.jsonl").read_bytes())), unit="line")
    told = [
        [(each.code, each.count, each.says) for each in check(each).findings]
        for each in (
            rows_of_file(tmp_path / "notes.jsonl"),
            rows_of_file(tmp_path / "notes.csv"),
            stream,
            rows_of_corpus(corpus),
        )
    ]
    assert told == [told[0]] * 4


def test_json_has_the_documented_keys() -> None:
    result = json.loads(json.dumps(check(rows(*plain(), ("", []))).to_dict()))
    assert list(result) == [
        *("rows", "labels", "pairs", "features", "unit", "labels_per_row", "rows_per_label", "words_per_text"),
        *("labels_in_texts", "findings"),
    ]
    assert list(result["findings"][0]) == ["code", "severity", "count", "says", "advice", "examples"]
    assert result["findings"][0]["examples"] == [{"lines": [31], "what": ""}]


def test_the_text_disarms_what_comes_from_the_data() -> None:
    text = check(rows(*plain(), ("\x1b[2J\u202eevil", []))).to_text()
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_brief_check_tells_errors_and_warnings_that_matter() -> None:
    assert check_briefly(Corpus.from_lists(*zip(*plain(), strict=True))) == ()
    assert check_briefly(feature_corpus())[0].code == "rows_without_labels"
    spelled = Corpus.from_lists(*zip(*plain(), ("", ["North"]), ("", ["North"]), strict=True))
    assert [finding.code for finding in check_briefly(spelled)] == ["empty_texts", "alike_labels"]


def test_the_brief_check_leaves_out_what_few_rows_have() -> None:
    many = [(f"{text} {row}", labels) for row in range(10) for text, labels in plain()]
    corpus = Corpus.from_lists(*zip(*many, ("", ["north"]), strict=True))
    assert check_briefly(corpus) == ()
    assert found(check(rows_of_corpus(corpus)), "empty_texts").count == 1
