"""Label texts meet a corpus: by id or by name, with labels added, merged and told."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail import Corpus
from longtail.data import LabelTexts
from longtail.errors import InvalidInput


@pytest.fixture
def corpus():
    return Corpus.from_lists(["one", "two"], [["apple", "pear"], ["sky"]])


def texts_of(corpus):
    return dict(zip(corpus.label_names, corpus.label_texts, strict=True))


def test_labels_take_the_texts_of_their_ids(corpus):
    found = corpus.with_label_texts({"sky": "the sky", "apple": ["apple", "apples"], "rain": ["rain", "wet"]})
    assert found.label_names == ("apple", "pear", "sky", "rain")
    assert texts_of(found) == {
        "apple": ("apple", "apples"), "pear": (), "sky": ("the sky",), "rain": ("rain", "wet"),
    }  # fmt: skip
    assert found.label_counts.tolist() == [1, 1, 1, 0]
    assert (found.labels[:, :3] != corpus.labels).nnz == 0


def test_labels_take_the_texts_of_entries_with_their_names(corpus):
    found = corpus.with_label_texts({"1": ["apple", "apples"], "2": "sky", "3": ["rain", "wet"]})
    assert texts_of(found) == {"apple": ("apple", "apples"), "pear": (), "sky": ("sky",), "rain": ("rain", "wet")}


def test_entries_without_a_label_are_added_only_if_asked_for(corpus):
    found = corpus.with_label_texts({"sky": "the sky", "rain": "rain"}, add=False)
    assert texts_of(found) == {"apple": (), "pear": (), "sky": ("the sky",)}


def test_entries_with_the_same_name_are_merged(corpus):
    entries = {"1": ["sky", "air"], "2": ["sky", "heaven", "air"], "3": ["rain", "wet"], "4": ["rain", "drops"]}
    found = corpus.with_label_texts(entries)
    assert texts_of(found)["sky"] == ("sky", "air", "heaven")
    assert texts_of(found)["rain"] == ("rain", "wet", "drops")


def test_the_way_that_matches_more_labels_goes_first():
    corpus = Corpus.from_lists(["one"], [["1984", "apple", "sky"]])
    entries = {"1984": ["rain"], "1": ["apple"], "2": ["sky"], "3": ["1984", "novel"]}
    found = corpus.with_label_texts(entries)
    assert texts_of(found) == {"1984": ("1984", "novel"), "apple": ("apple",), "sky": ("sky",), "rain": ("rain",)}


def test_labels_without_an_entry_keep_their_texts(corpus):
    first = corpus.with_label_texts({"sky": "the sky", "pear": "pears"})
    second = first.with_label_texts({"sky": "heaven"})
    assert texts_of(second) == {"apple": (), "pear": ("pears",), "sky": ("heaven",)}


def test_the_numbers_of_labels_are_told(corpus, caplog):
    with caplog.at_level(logging.INFO, "longtail"):
        corpus.with_label_texts({"1": "apple", "2": "sky", "3": "rain", "4": "snow"})
    assert caplog.messages == [
        "label texts: 2 of 3 labels have texts, matched by name; 2 labels without rows added; 1 label without texts"
    ]


def test_texts_of_other_labels_are_refused_with_examples(corpus):
    with pytest.raises(InvalidInput, match="for example 'apple', and this has 'Q5' with the name 'human'") as caught:
        corpus.with_label_texts(LabelTexts(("Q5",), (("human",),), "people.tsv"))
    assert (caught.value.code, caught.value.path) == ("label_texts_do_not_match", "people.tsv")
    assert (caught.value.name, caught.value.found) == ("apple", ("Q5",))
    with pytest.raises(InvalidInput, match="there are no labels in it") as caught:
        corpus.with_label_texts({})
    assert caught.value.code == "label_texts_do_not_match"


def test_a_corpus_without_labels_matches_nothing():
    with pytest.raises(InvalidInput) as caught:
        Corpus.from_lists(["one"], [[]]).with_label_texts({"sky": "the sky"})
    assert caught.value.code == "no_labels"


@pytest.mark.parametrize(
    ("found", "match"),
    [
        ({3: "three"}, "the key 3; labels are names"),
        ({"sky": 3}, "the texts of 'sky' are 3; expected a list"),
        ({"sky": ["x", None]}, "the texts of 'sky' hold None"),
        ({"sky": b"x"}, "the texts of 'sky' hold 120"),
        ([["sky"]], "expected a text or a list of texts for each label"),
        ("labels.tsv", "expected a text or a list of texts for each label"),
    ],
)
def test_texts_of_the_wrong_type_are_refused(corpus, found, match):
    with pytest.raises(InvalidInput, match=match):
        corpus.with_label_texts(found)


def test_label_texts_check_themselves():
    with pytest.raises(InvalidInput, match="labels repeat"):
        LabelTexts(("a", "a"), ((), ()))
    with pytest.raises(InvalidInput, match="1 lists of label texts for 2 labels"):
        LabelTexts(("a", "b"), ((),))


WORDS = st.sampled_from("abcdef")


@given(labels=st.sets(WORDS, min_size=1), entries=st.dictionaries(WORDS, st.lists(WORDS, max_size=3)))
def test_no_text_is_lost_and_no_label_is_there_twice(labels, entries):
    corpus = Corpus.from_lists(["row"], [labels])
    names = {texts[0] if texts else label for label, texts in entries.items()}
    if not labels & (names | set(entries)):
        with pytest.raises(InvalidInput):
            corpus.with_label_texts(entries)
        return
    found = corpus.with_label_texts(entries)
    assert found.label_names[: len(labels)] == corpus.label_names
    assert {text for texts in found.label_texts for text in texts} == {x for texts in entries.values() for x in texts}
    assert (found.labels[:, : len(labels)] != corpus.labels).nnz == 0


def test_real_labels_match_by_name(benchmark_data):
    from longtail.data import read_label_texts

    vocabulary = read_label_texts(benchmark_data("eurlex57k") / "label_info.json.gz")
    found = Corpus.from_lists(["one"], [["adhesive", "retail trade"]]).with_label_texts(vocabulary)
    assert found.n_labels == 4_271
    assert found.label_texts[:2] == (("adhesive", "glue"), ("retail trade", "retail dealer", "retailer"))
