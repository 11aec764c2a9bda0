"""Networks that learn from labels of groups, through `Tagger`: what they learn, what they refuse, what they count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail import GroupedCorpus, Tagger, load
from longtail.choice import LearnerOptions
from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.text import FeatureOptions

pytest.importorskip("torch")

WORDS = {"fruit": "apples pears plums", "weather": "rain sky wind", "travel": "train coast ticket", "money": "tax bank"}
SMALL: dict[str, Any] = {"width": 16, "epochs": 30, "learning_rate": 0.02, "n_jobs": 1}


def text_about(label: str, rng: np.random.Generator) -> str:
    return " ".join(rng.choice(WORDS[label].split(), size=2))


@pytest.fixture(scope="module")
def pages() -> GroupedCorpus:
    """Groups of two texts, each about another topic; only the two topics of a group are known."""
    rng = np.random.default_rng(0)
    topics = [rng.choice(list(WORDS), size=2, replace=False).tolist() for _ in range(60)]
    return GroupedCorpus.from_lists([[text_about(label, rng) for label in pair] for pair in topics], topics)


@pytest.fixture(scope="module")
def rows() -> Corpus:
    rng = np.random.default_rng(1)
    topics = rng.choice(list(WORDS), size=40).tolist()
    return Corpus.from_lists([text_about(label, rng) for label in topics], [[label] for label in topics])


@pytest.fixture(scope="module")
def tagger(pages: GroupedCorpus) -> Tagger:
    return Tagger(FeatureOptions(min_df=1), LearnerOptions("network", **SMALL)).fit_groups(pages)


def test_single_texts_are_tagged_that_only_groups_had_labels_for(tagger: Tagger, rows: Corpus) -> None:
    assert tagger.evaluate(rows)["P@1"] == 1
    assert [tag.label for tag in tagger.predict(["rain and wind"])[0]] == ["weather"]
    assert tagger.reasons_ == ["learner: network that learns from groups, with width 16, 30 epochs"]
    assert tagger.scores_are_probabilities


def test_a_loaded_tagger_gives_the_same_tags(tagger: Tagger, rows: Corpus, tmp_path: Path) -> None:
    tagger.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.estimator_.get_params() == tagger.estimator_.get_params()
    for mine, loaded in zip(tagger.predict_topk(rows.texts), again.predict_topk(rows.texts), strict=True):
        assert mine.tobytes() == loaded.tobytes()
    assert again.predict(rows.texts) == tagger.predict(rows.texts)


def test_a_label_counts_as_often_as_it_is_in_groups() -> None:
    pages = GroupedCorpus.from_lists(
        [["red apples", "green apples"], ["blue sky"], [], ["grey sky"]],
        [["fruit", "fruit", "weather"], ["weather", "weather"], ["lost"], []],
    )
    tagger = Tagger(FeatureOptions(min_df=1), LearnerOptions("network", width=4, epochs=1)).fit_groups(pages)
    assert dict(zip(tagger.label_names_, tagger.label_counts_.tolist(), strict=True)) == {"fruit": 2, "weather": 2}
    assert tagger.n_rows_ == 3
    assert not tagger.is_single_label_


def test_the_network_itself_can_be_given(pages: GroupedCorpus, tagger: Tagger, rows: Corpus) -> None:
    from longtail.neural import DeepMIML

    network = DeepMIML(hidden=16, epochs=30, learning_rate=0.02, tau=5.0, rectified=False, random_state=0, n_jobs=1)
    given = Tagger(FeatureOptions(min_df=1), network).fit_groups(pages)
    assert given.predict(rows.texts) == tagger.predict(rows.texts)
    with pytest.raises(InvalidInput, match="DeepMIML, which learns from groups"):
        Tagger(estimator=network).fit_corpus(rows)


def test_parameters_of_the_network_reach_it(pages: GroupedCorpus) -> None:
    options = LearnerOptions("network", width=8, epochs=2, batch_size=7, dropout=0.25, random_state=4)
    found = Tagger(FeatureOptions(min_df=1), options).fit_groups(pages, tau=0.0, concepts=2).estimator_
    names = ("hidden", "epochs", "batch_size", "dropout", "random_state", "tau", "concepts")
    assert [found.get_params()[name] for name in names] == [8, 2, 7, 0.25, 4, 0.0, 2]


@pytest.mark.parametrize(
    ("options", "name"),
    [({"head": "dft"}, "head"), ({"n_networks": 2}, "n_networks"), ({"weighting": "loss"}, "weighting")],
)
def test_parameters_of_networks_for_rows_are_refused(pages: GroupedCorpus, options: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} is for labels of rows") as caught:
        Tagger(estimator=LearnerOptions("network", **options)).fit_groups(pages)
    assert (caught.value.code, caught.value.name) == ("conflicting_parameters", name)


@pytest.mark.parametrize(
    ("fit", "name"),
    [
        (lambda tagger, pages: tagger.fit_groups(pages, "eagle"), "strategy"),
        (lambda tagger, pages: tagger.fit_groups(pages, rule="joint"), "rule"),
    ],
)
def test_a_network_does_not_assign_labels_to_rows(pages: GroupedCorpus, fit: Callable[..., Any], name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} is for learners of rows") as caught:
        fit(Tagger(estimator=LearnerOptions("network")), pages)
    assert (caught.value.code, caught.value.name) == ("idle_parameter", name)
    assert "longtail assign" in caught.value.advice
