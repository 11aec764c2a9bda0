"""Names of labels: spellings, misspellings, lists, numbers and dates."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

import pytest

from longtail.checking.labels import LabelTable
from longtail.checking.names import alike_labels, fold_name, list_labels, missing_labels, odd_names, similar_labels


def table(*names: str) -> LabelTable:
    """Labels, each with one row more than the next."""
    labels = LabelTable()
    for place, name in enumerate(names, start=1):
        for _ in range(len(names) - place + 1):
            labels.add(place, [name])
    return labels


def shown(finding: object) -> list[str]:
    return [] if finding is None else [example.what for example in finding.examples]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Fruit", "fruit"),
        ("new york", "New  York"),
        ("e-mail", "e mail"),
        ("caf\u00e9", "cafe\u0301"),
        ("\ufb01sh", "fish"),
        ("rock'n'roll", "rock\u2019n\u2019roll"),
        ("Stra\u00dfe", "STRASSE"),
        ("12", "12.0"),
    ],
)
def test_spellings_of_one_label_are_alike(one: str, other: str) -> None:
    finding = alike_labels(table(one, "else", other), [one, "else", other], 5)
    assert shown(finding) == [f"{one!r} (3 rows), {other!r} (1 row)"]
    assert finding.examples[0].places == (1, 3)


@pytest.mark.parametrize(
    ("one", "other"), [("C", "C#"), ("C", "C++"), ("1.5", "15"), ("1 5", "15"), ("-1", "1"), ("game", "gam\u00e9")]
)
def test_signs_and_digits_tell_labels_apart(one: str, other: str) -> None:
    assert alike_labels(table(one, other), [one, other], 5) is None


def test_names_of_nothing_are_told_and_other_names_are_not() -> None:
    finding = missing_labels(table("NaN", "red", "#N/A"), ["NaN", "red", "#N/A"], 5)
    assert shown(finding) == ["'NaN' (3 rows)", "'#N/A' (1 row)"]
    assert missing_labels(table("na", "nun"), ["na", "nun"], 5) is None


def test_a_name_of_punctuation_only_is_itself() -> None:
    assert fold_name("?!") == "?!"
    assert alike_labels(table("?!", "..."), ["?!", "..."], 5) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("chemistry", "chemestry"),
        ("chemistry", "chemisty"),
        ("chemistry", "chemisttry"),
        ("chemistry", "chemsitry"),
        ("chemistry", "hemistry"),
        ("penguins", "penguin"),
        ("red apple", "apple, red"),
    ],
)
def test_names_that_differ_in_a_letter_or_in_the_order_of_words_are_similar(one: str, other: str) -> None:
    assert shown(similar_labels(table(one, other), [one, other], 5)) == [f"{one!r} (2 rows), {other!r} (1 row)"]


@pytest.mark.parametrize(
    ("one", "other"), [("season 1", "season 2"), ("cat", "hat"), ("chemistry", "chemists"), ("Chemistry", "chemistry")]
)
def test_other_names_are_not_similar(one: str, other: str) -> None:
    assert similar_labels(table(one, other), [one, other], 5) is None


def test_the_pair_of_a_rare_and_a_frequent_label_comes_first() -> None:
    names = ["morphology", "keystone", "keystones", "morpholgy"]
    assert shown(similar_labels(table(*names), names, 1)) == ["'morphology' (4 rows), 'morpholgy' (1 row)"]


def test_every_change_of_a_letter_is_found_among_many_names() -> None:
    random.seed(3)
    names = ["".join(random.choices("abcdefghijklmnop", k=12)) for _ in range(300)]
    changed = []
    for number, name in enumerate(names):
        place = number % 12
        changed.append(name[:place] + "z" + name[place + 1 :])
    finding = similar_labels(table(*names, *changed), [*names, *changed], 5)
    assert finding.count == 300


def found_lists(names: Sequence[str]) -> list[str]:
    return shown(list_labels(table(*names), names, 5))


def test_labels_of_labels_look_like_lists_that_were_not_split() -> None:
    assert found_lists(["red", "blue", "red, blue"]) == ["red, blue"]
    assert found_lists(["red", "blue", "red|blue"]) == ["red|blue"]
    assert found_lists(["red", "['red', 'blue']"]) == ["['red', 'blue']"]
    assert found_lists([f"{one}, {other}" for one, other in combinations("abcdef", 2)])[:1] == ["a, b"]


def test_names_with_a_comma_are_no_lists() -> None:
    assert found_lists(["Paris, Texas", "Paris", "neoplasms, experimental", "neoplasms"]) == []


def test_numbers_dates_and_damage_are_noticed() -> None:
    names = ["12", "3.5", "-7", "2024-01-31", "31.1.2024", "2024", "b2b", "tea &amp; milk"]
    found = {finding.code: shown(finding) for finding in odd_names(table(*names), names, 9)}
    assert found == {
        "number_labels": ["12", "3.5", "-7", "2024"],
        "date_labels": ["2024-01-31", "31.1.2024"],
        "damaged_labels": ["tea &amp; milk"],
    }
