"""A tagger of two stages without a race, which would need more rows."""

from __future__ import annotations

from collections.abc import Mapping

from longtail import Corpus, Tagger, TextFeatures
from longtail.ranking import TwoStage
from longtail.trees import LabelTree, OneVsRest


def two_stages(known: Corpus, untrained: Mapping[str, str]) -> Tagger:
    """Train on a corpus whose label names are their texts; the labels `untrained` have texts and no rows."""
    corpus = known.with_label_texts({**{name: name for name in known.label_names}, **untrained})
    texts = [" ".join(each) for each in corpus.label_texts or ()]
    features = TextFeatures(min_df=1)
    X = features.fit_transform(corpus.texts or (), also=texts)
    learners = [("tree", LabelTree(leaf_size=3, random_state=0)), ("flat", OneVsRest())]
    return Tagger.from_fitted(features, TwoStage(learners).fit(X, corpus.labels, features.transform(texts)), corpus)
