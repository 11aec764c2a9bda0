"""From options and a corpus to a learner: copies, choices by size, taxonomies and networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from longtail import Corpus, LabelTree, Ridge, Tagger
from longtail.choice import LearnerOptions
from longtail.errors import DataFormatError, InvalidInput
from longtail.tagger.learners import check_estimator_parameter, learner_for
from longtail.text import FeatureOptions

TEXTS = ["red apples", "green apples", "blue sky", "grey sky", "a red train", "a green train"]
LABELS = [["red", "apple"], ["green", "apple"], ["blue", "sky"], ["grey", "sky"], ["red", "train"], ["green", "train"]]


@pytest.fixture
def corpus() -> Corpus:
    return Corpus.from_lists(TEXTS, LABELS)


@pytest.fixture
def taxonomy(tmp_path: Path) -> str:
    path = tmp_path / "taxonomy.tsv"
    colours, things = ("red", "green", "blue", "grey"), ("apple", "sky", "train")
    lines = [f"{label}\tcolour\n" for label in colours] + [f"{label}\tthing\n" for label in things]
    path.write_text("".join(lines) + "never\tthing\n", encoding="utf-8")
    return str(path)


def test_a_learner_is_copied_and_left_as_it_was(corpus: Corpus) -> None:
    learner = Ridge(alpha=2.0)
    found = learner_for(learner, np.eye(6), corpus)
    assert found.reasons == []
    assert found.estimator is not learner
    assert found.estimator.get_params() == learner.get_params()


def test_a_taxonomy_becomes_the_hierarchy_of_the_labels_that_occur(corpus: Corpus, taxonomy: str, caplog) -> None:
    with caplog.at_level("INFO", "longtail"):
        found = learner_for(LearnerOptions(taxonomy=taxonomy), np.eye(6), corpus)
    assert isinstance(found.estimator, LabelTree)
    hierarchy = found.estimator.hierarchy
    assert sorted(hierarchy.labels.tolist()) == list(range(7))
    assert set(hierarchy.node_names) >= {"colour", "thing"}
    assert f"{taxonomy}: 3 classes, 7 labels" in caplog.messages


def test_classes_that_are_too_wide_are_split(corpus: Corpus, taxonomy: str, caplog) -> None:
    with caplog.at_level("INFO", "longtail"):
        found = learner_for(LearnerOptions(taxonomy=taxonomy, leaf_size=2, branching=2), np.eye(6), corpus)
    assert "2 classes with more than 2 members: split into learned groups" in caplog.messages
    assert found.estimator.hierarchy.n_nodes > 3
    assert np.diff(found.estimator.hierarchy.pointers).max() <= 2


def test_a_taxonomy_without_any_of_the_labels_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    path = tmp_path / "other.tsv"
    path.write_text("oak\ttree\n", encoding="utf-8")
    with pytest.raises(DataFormatError) as missing:
        learner_for(LearnerOptions(taxonomy=str(path)), np.eye(6), corpus)
    assert missing.value.code == "labels_without_parent"
    with pytest.raises(InvalidInput) as none_left:
        learner_for(LearnerOptions(taxonomy=str(path), missing="drop"), np.eye(6), corpus)
    assert (none_left.value.code, none_left.value.path) == ("no_labels_in_taxonomy", str(path))


def test_a_tagger_follows_a_taxonomy(corpus: Corpus, taxonomy: str) -> None:
    tagger = Tagger(FeatureOptions(min_df=1), LearnerOptions(taxonomy=taxonomy)).fit_corpus(corpus)
    steps = tagger.explain("red apples", "apple").steps
    assert [step.name for step in steps] == ["thing", "apple"]


def test_options_for_a_network_make_one(corpus: Corpus) -> None:
    pytest.importorskip("torch")
    found = learner_for(LearnerOptions("network", width=8, epochs=1), np.eye(6), corpus)
    assert (found.estimator.width, found.estimator.epochs) == (8, 1)
    assert found.reasons == ["learner: network with cascade head, width 8, 1 epoch"]


@pytest.mark.parametrize("wrong", [LearnerOptions(C=1.0, density=0.5), object(), "tree"])
def test_what_no_learner_can_be_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput):
        check_estimator_parameter(wrong)
