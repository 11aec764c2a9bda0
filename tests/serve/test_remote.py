"""A model at a URL is served like one in a directory."""

from __future__ import annotations

import pytest

from longtail import Tagger
from longtail.serve.served import ServedModel

pytest.importorskip("s3fs")


def test_a_model_in_a_bucket_is_served(bucket: str) -> None:
    tagger = Tagger().fit(["red apples", "blue sky", "red sky"], [["fruit"], ["sky"], ["sky"]])
    tagger.save(f"{bucket}/model", card={"data": {"rows": 3}})
    served = ServedModel("model", f"{bucket}/model")
    served.warm()
    about = served.describe()
    assert about["card"] == {"data": {"rows": 3}}
    assert str(about["saved_at"]).endswith("+00:00")
    assert served.tagger.predict(["blue sky"], k=1) == tagger.predict(["blue sky"], k=1)
