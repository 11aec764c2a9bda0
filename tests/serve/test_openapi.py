"""The service does what its OpenAPI document says, for requests that fit the document and for those that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from longtail.serve import Limits, create_app

from .conftest import TOPICS

schemathesis = pytest.importorskip("schemathesis")

LABELS = sorted(label for topic, words in TOPICS.items() for label in (topic, *(f"{topic}/{w}" for w in words.split())))
schemathesis.openapi.format("label", st.sampled_from(LABELS))
STATUSES = {"200", "400", "401", "404", "408", "413", "415", "422", "429", "500", "503"}


@pytest.fixture(scope="module")
def described(model_directory: Path) -> Any:
    limits = Limits(texts=5, characters=300, k=30, filter_labels=6, explained_labels=3)
    return schemathesis.openapi.from_asgi("/openapi.json", create_app({"topics": model_directory}, limits=limits))


document = schemathesis.pytest.from_fixture("described")


@pytest.mark.slow
@document.parametrize()
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_described(case: Any) -> None:
    case.call_and_validate()


@pytest.fixture(scope="module")
def api(model_directory: Path) -> Any:
    return create_app({"topics": model_directory}, limits=Limits(k=7, texts=3), token="secret").openapi()


def test_the_document_tells_the_limits_of_this_service(api: Any) -> None:
    asked = api["components"]["schemas"]["TagRequest"]
    assert asked["properties"]["k"]["maximum"] == 7
    assert asked["properties"]["texts"]["maxItems"] == 3
    assert asked["properties"]["model"]["anyOf"][0]["enum"] == ["topics"]
    assert asked["additionalProperties"] is False


def test_every_status_and_the_token_are_in_the_document(api: Any) -> None:
    assert set(api["paths"]["/v1/tag"]["post"]["responses"]) == STATUSES
    assert api["paths"]["/v1/tag"]["post"]["security"] == [{"token": []}]
    assert "security" not in api["paths"]["/health/live"]["get"]


def test_the_examples_of_the_document_can_be_sent(model_directory: Path, api: Any) -> None:
    with TestClient(create_app({"topics": model_directory})) as client:
        for example in api["components"]["schemas"]["TagRequest"]["examples"]:
            assert client.post("/v1/tag", json=example).status_code == 200
