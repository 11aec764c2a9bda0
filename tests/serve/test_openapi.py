"""The service does what its OpenAPI document says, for requests that fit the document and for those that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from starlette.testclient import TestClient

from longtail.serve import Limits, create_app
from tests.serve.conftest import TOPICS

schemathesis = pytest.importorskip("schemathesis")
pytest.importorskip("schemathesis.engine.events")

LABELS = sorted(label for topic, words in TOPICS.items() for label in (topic, *(f"{topic}/{w}" for w in words.split())))
schemathesis.openapi.format("label", st.sampled_from(LABELS))
STATUSES = {"200", "400", "401", "404", "408", "413", "415", "422", "429", "500", "503"}


# All checks in all phases that need no state: the examples, the edges of the schema, and what is drawn from it.
SETTINGS = {
    "seed": 0,
    "workers": 1,
    "generation": {"max-examples": 40, "deterministic": True, "no-shrink": True},
    "phases": {"stateful": {"enabled": False}},
}


@pytest.mark.slow
def test_schemathesis_finds_nothing(model_directory: Path, tmp_path: Path) -> None:
    limits = Limits(texts=5, characters=300, k=30, filter_labels=6, explained_labels=3, corrected_labels=4)
    feedback = tmp_path / "feedback.jsonl"
    app = create_app({"topics": model_directory}, limits=limits, feedback=feedback, reload=True)
    config = schemathesis.config.SchemathesisConfig.from_dict(SETTINGS)
    document = schemathesis.openapi.from_asgi("/openapi.json", app, config=config)
    found: list[str] = []
    asked = 0
    for event in schemathesis.engine.from_schema(document).execute():
        if isinstance(event, schemathesis.engine.events.ScenarioFinished):
            asked += len(event.recorder.interactions)
            for number, checks in event.recorder.checks.items():
                for check in checks:
                    if check.failure_info is not None:
                        sent = event.recorder.cases[number].value.as_curl_command()
                        found.append(f"{check.name}: {check.failure_info.failure}\n{sent}"[:2000])
        elif isinstance(event, schemathesis.engine.events.NonFatalError | schemathesis.engine.events.FatalError):
            found.append(repr(getattr(event, "value", None) or getattr(event, "exception", None)))
    assert not found, "\n\n".join(found[:5])
    assert asked > 200
    assert len(feedback.read_bytes().splitlines()) > 20


@pytest.fixture(scope="module")
def api(model_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    feedback = tmp_path_factory.mktemp("api") / "feedback.jsonl"
    limits = Limits(k=7, texts=3, corrected_labels=9, label_characters=80)
    return create_app({"topics": model_directory}, limits=limits, token="secret", feedback=feedback).openapi()


def test_the_document_tells_the_limits_of_this_service(api: Any) -> None:
    asked = api["components"]["schemas"]["TagRequest"]
    assert asked["properties"]["k"]["anyOf"][0]["maximum"] == 7
    assert asked["properties"]["texts"]["maxItems"] == 3
    assert asked["properties"]["model"]["anyOf"][0]["enum"] == ["topics"]
    assert asked["additionalProperties"] is False
    corrected = api["components"]["schemas"]["FeedbackRequest"]["properties"]
    assert (corrected["added"]["maxItems"], corrected["added"]["items"]["maxLength"]) == (9, 80)


def test_every_status_and_the_token_are_in_the_document(api: Any) -> None:
    assert set(api["paths"]["/v1/tag"]["post"]["responses"]) == STATUSES
    assert set(api["paths"]["/v1/feedback"]["post"]["responses"]) == {*STATUSES, "403", "507"}
    assert set(api["paths"]["/v1/models/reload"]["post"]["responses"]) == {*STATUSES, "403"}
    assert api["paths"]["/v1/tag"]["post"]["security"] == [{"token": []}]
    assert "security" not in api["paths"]["/health/live"]["get"]


def test_the_examples_of_the_document_can_be_sent(model_directory: Path, api: Any, tmp_path: Path) -> None:
    app = create_app({"topics": model_directory}, feedback=tmp_path / "feedback.jsonl", reload=True)
    with TestClient(app) as client:
        for path in ("/v1/tag", "/v1/feedback", "/v1/models/reload"):
            content = api["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
            for example in api["components"]["schemas"][content["$ref"].rpartition("/")[2]]["examples"]:
                assert client.post(path, json=example).status_code == 200
