"""Learners that start from texts: the default of ``longtail train``, and the files of Annif."""

from __future__ import annotations

import configparser
import json
from pathlib import Path

import pytest

from benchmarks.adapters.annif_files import projects_config, skos
from benchmarks.data import Prepared, write_split
from benchmarks.learners import LEARNERS, Learner
from benchmarks.measure import Conditions, measure_once
from benchmarks.samples import align
from longtail.data import Corpus, LabelTexts

BY_KEY = {learner.key: learner for learner in LEARNERS}


@pytest.fixture
def texts(tmp_path: Path) -> Prepared:
    """Texts that name their label; the label "sea" has no training row."""
    things = ["apple", "sky", "stone"] * 20
    train = Corpus.from_lists([f"a text about {thing} and {thing}s" for thing in things], [[each] for each in things])
    test = Corpus.from_lists(["the apple", "the stone", "the sea"], [["apple"], ["stone"], ["sea"]])
    vocabulary = LabelTexts.from_mapping({name: name for name in ("apple", "sky", "stone", "sea")})
    folder = tmp_path / "data"
    facts = write_split(align(train, test, vocabulary), folder)
    return Prepared("yso-sv", folder, facts)


def test_the_default_is_measured_from_texts_to_labels(texts: Prepared, tmp_path: Path) -> None:
    found = measure_once(BY_KEY["default"], texts, 1, Conditions(tmp_path))
    assert (found.status, found.reason) == ("ok", "")
    assert found.figures["P@1"] == pytest.approx(200 / 3)
    assert found.figures["train_cpu_seconds"] > 0
    assert found.figures["single_rows"] == 3


def test_the_default_takes_features_where_there_are_no_texts(prepared: Prepared, tmp_path: Path) -> None:
    found = measure_once(BY_KEY["default"], prepared, 1, Conditions(tmp_path))
    assert (found.status, found.reason) == ("ok", "")
    assert found.figures["P@1"] == 100


def test_the_default_is_one_of_ours() -> None:
    assert not BY_KEY["default"].is_peer
    assert BY_KEY["annif"].is_peer


def test_a_learner_that_needs_a_vocabulary_is_skipped_without(prepared: Prepared, tmp_path: Path) -> None:
    needy = Learner("needy", "needy", "none:None", "no environment", needs="label_texts")
    found = measure_once(needy, prepared, 1, Conditions(tmp_path))
    assert (found.status, found.reason) == ("skipped", "the data set has no label texts")


def test_a_vocabulary_is_written_as_turtle() -> None:
    prefix, first, second = skos([["apple", 'so-called "apples"'], []], "sv").splitlines()
    assert prefix.startswith("@prefix skos:")
    assert first.endswith(r'skos:prefLabel "apple"@sv ; skos:altLabel "so-called \"apples\""@sv .')
    assert 'skos:prefLabel "1"@sv' in second


def test_projects_are_averaged_in_an_ensemble() -> None:
    config = configparser.ConfigParser()
    config.read_string(projects_config(["mllm", "bonsai"], "sv"))
    assert config.sections() == ["mllm", "bonsai", "all"]
    assert config["mllm"]["analyzer"] == "snowball(swedish)"
    assert config["bonsai"]["backend"] == "omikuji"
    assert (config["all"]["backend"], config["all"]["sources"]) == ("ensemble", "mllm,bonsai")


def test_names_of_labels_are_written_in_the_order_of_the_columns(texts: Prepared) -> None:
    names = json.loads((texts.folder / "label_names.json").read_text(encoding="utf-8"))
    assert names == ["apple", "sky", "stone", "sea"]
