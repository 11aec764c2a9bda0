"""The layer of a label subset gives what the model gives: decoded scores are linear if the subset's are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from longtail import LabelSubsetClassifier, LabelTree, Ridge
from longtail.errors import InvalidInput

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 6))
Y = (X @ RNG.normal(size=(6, 12)) > 1.0).astype(np.int8)


@pytest.mark.parametrize("decoder", ["ridge", "l1"])
@pytest.mark.parametrize("outliers", [0, 3, "all"])
def test_the_layer_gives_what_the_model_gives(decoder: str, outliers: Any) -> None:
    model = LabelSubsetClassifier(n_labels=4, outliers=outliers, decoder=decoder, random_state=0).fit(X, Y)
    layer = model.output_layer()
    inputs = RNG.normal(size=(300, 6))
    scores = inputs @ layer.weights.T + layer.offsets
    sure = np.abs(scores) > 1e-4  # the model computes in single precision
    assert ((scores >= 0) == model.predict(inputs).toarray())[sure].all()
    ranking = model.output_layer("topk")
    scores = inputs @ ranking.weights.T + ranking.offsets
    assert scores == pytest.approx(model.decision_function(inputs), abs=1e-4)
    if outliers == 0:
        assert layer.rank() == 4


def test_labels_decoded_from_scores_of_trees_have_no_layer() -> None:
    model = LabelSubsetClassifier(LabelTree(leaf_size=2), n_labels=4, outliers=0, random_state=0).fit(X, Y)
    with pytest.raises(InvalidInput, match="scores of a LabelTree are not linear"):
        model.output_layer()
    mixed = LabelSubsetClassifier(Ridge(1.0), n_labels=4, outliers=2, outlier_estimator=LabelTree(), random_state=0)
    with pytest.raises(InvalidInput, match="scores of a LabelTree are not linear"):
        mixed.fit(X, Y).output_layer()
