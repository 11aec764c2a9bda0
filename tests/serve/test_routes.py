from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import longtail
from longtail import Ridge, Tagger, TextFeatures
from longtail.errors import InvalidInput
from longtail.serve import Limits, create_app
from longtail.serve.guard import POLICY
from longtail.serve.messages import LabelExplanation
from longtail.store import read_model, write_model

SMALL = Limits(
    body_bytes=20_000, texts=3, characters=200, k=10, filter_labels=4, explained_labels=2, found_labels=8, words=3
)


@pytest.fixture(scope="module")
def features_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = longtail.Corpus(
        label_names=("a", "b"),
        labels=longtail.Corpus.from_lists(["x", "y"], [["a"], ["b"]]).labels,
        features=[[1.0, 0.0], [0.0, 1.0]],
    )
    directory = tmp_path_factory.mktemp("served") / "rows"
    Tagger(None, Ridge()).fit_corpus(corpus).save(directory)
    return directory


@pytest.fixture(scope="module")
def client(model_directory: Path, features_directory: Path) -> Iterator[TestClient]:
    app = create_app({"topics": model_directory, "rows": features_directory}, limits=SMALL)
    with TestClient(app) as client:
        yield client


@pytest.fixture(scope="module")
def tagger(model_directory: Path) -> Tagger:
    return longtail.load(model_directory)


def post(client: TestClient, path: str, content: Any, **headers: str) -> Any:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return client.post(path, content=body, headers={"content-type": "application/json", **headers})


def tags(answer: Any) -> list[list[tuple[str, float]]]:
    assert answer.status_code == 200, answer.text
    return [[(tag["label"], tag["score"]) for tag in result["tags"]] for result in answer.json()["results"]]


def test_tags_are_those_of_the_tagger(client: TestClient, tagger: Tagger) -> None:
    texts = ["an apple in the rain", "a flute", "unknown words only"]
    expected = [[tuple(tag) for tag in row] for row in tagger.tag(texts, k=4)]
    assert tags(post(client, "/v1/tag", {"texts": texts, "k": 4})) == expected
    assert tags(post(client, "/v1/tag", {"text": texts[0], "k": 4})) == expected[:1]


def test_filters_and_threshold_choose_labels(client: TestClient) -> None:
    [found] = tags(post(client, "/v1/tag", {"text": "an apple", "k": 10}))
    best = found[0][0]
    [others] = tags(post(client, "/v1/tag", {"text": "an apple", "k": 10, "deny": [best]}))
    assert best not in dict(others)
    assert tags(post(client, "/v1/tag", {"text": "an apple", "k": 5, "allow": ["music"]}))[0][0][0] == "music"
    assert tags(post(client, "/v1/tag", {"text": "an apple", "k": 10, "threshold": found[2][1]}))[0] == found[:3]


def test_a_model_that_cannot_explain_says_so(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise InvalidInput("a network is not linear", code="cannot_explain")

    monkeypatch.setattr(Tagger, "explain_each", refuse)
    answer = post(client, "/v1/explain", {"text": "an apple", "labels": ["fruit"]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "cannot_explain")
    assert "not linear" in answer.json()["error"]["message"]


def test_weights_that_are_no_numbers_are_told_and_are_no_failure_of_the_service(tmp_path: Path) -> None:
    texts, labels = ["the apple", "the rain"], [["fruit"], ["weather"]]
    Tagger(TextFeatures(min_df=1), Ridge()).fit(texts, labels).save(tmp_path / "model")
    state = read_model(tmp_path / "model")
    estimator = state.parts["estimator"]
    forged = replace(estimator, arrays={**estimator.arrays, "coef": np.full_like(estimator.arrays["coef"], np.inf)})
    write_model(replace(state, parts={**state.parts, "estimator": forged}), tmp_path / "forged")
    with TestClient(create_app({"forged": tmp_path / "forged"})) as client:
        tagged = post(client, "/v1/tag", {"text": "the apple"})
        explained = post(client, "/v1/explain", {"text": "the apple", "labels": ["fruit"]})
    assert (tagged.status_code, tagged.json()["error"]["code"]) == (422, "not_finite")
    assert (explained.status_code, explained.json()["error"]["code"]) == (422, "not_finite")
    assert "not a finite number" in explained.json()["error"]["message"]


def test_a_label_to_deny_that_is_unknown_is_named(client: TestClient) -> None:
    answer = post(client, "/v1/tag", {"text": "an apple", "deny": ["fruit", "<script>"]})
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "unknown_label"
    assert "'<script>'" in answer.json()["error"]["message"]


REFUSED = [
    (b"", 400, "not_json"),
    (b"{", 400, "not_json"),
    (b'{"text": "\xff"}', 400, "not_json"),
    (b'{"text": "\\ud800"}', 400, "not_json"),
    (b'{"text": ' + b"[" * 5000, 400, "not_json"),
    (b'{"text": "a", "threshold": NaN}', 422, "invalid_request"),
    (b'{"text": NaN}', 422, "invalid_request"),
    (b'{"text": "a", "other": NaN}', 422, "invalid_request"),
    (b"[]", 422, "invalid_request"),
    (b"{}", 422, "text_or_texts"),
    (b'{"text": "a", "texts": ["a"]}', 422, "text_or_texts"),
    (b'{"text": 1}', 422, "invalid_request"),
    (b'{"texts": []}', 422, "invalid_request"),
    (b'{"texts": ["a", 1]}', 422, "invalid_request"),
    (b'{"texts": ["a", "a", "a", "a"]}', 422, "too_many_texts"),
    (b'{"text": "' + b"a" * 201 + b'"}', 422, "text_too_long"),
    (b'{"text": "a", "k": 0}', 422, "invalid_request"),
    (b'{"text": "a", "k": 1.5}', 422, "invalid_request"),
    (b'{"text": "a", "k": true}', 422, "invalid_request"),
    (b'{"text": "a", "k": 11}', 422, "k_too_large"),
    (b'{"text": "a", "k": 1000000000}', 422, "k_too_large"),
    (b'{"text": "a", "k": ' + b"9" * 500 + b"}", 422, "k_too_large"),
    (b'{"text": "a", "deny": ["a", "b", "c", "d", "e"]}', 422, "filter_too_long"),
    (b'{"text": "a", "deny": "fruit"}', 422, "invalid_request"),
    (b'{"text": "a", "model": "other"}', 404, "unknown_model"),
    (b'{"text": "a", "model": "rows"}', 422, "model_takes_features"),
    (b'{"text": "a", "kk": 3}', 422, "invalid_request"),
]


@pytest.mark.parametrize(("body", "status", "code"), REFUSED, ids=[str(body[:40]) for body, *_ in REFUSED])
def test_a_wrong_request_is_refused_with_its_status_and_code(
    client: TestClient, body: bytes, status: int, code: str
) -> None:
    answer = post(client, "/v1/tag", body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert set(answer.json()) == {"error"}
    assert len(answer.content) < 1000


def test_a_whole_number_may_be_written_with_a_point(client: TestClient) -> None:
    assert tags(post(client, "/v1/tag", b'{"text": "an apple", "k": 3.0}')) == tags(
        post(client, "/v1/tag", {"text": "an apple", "k": 3})
    )


def test_a_field_that_is_null_is_one_that_is_not_given(client: TestClient) -> None:
    nulls = {"model": None, "allow": None, "deny": None, "threshold": None}
    assert tags(post(client, "/v1/tag", {"text": "an apple", **nulls})) == tags(
        post(client, "/v1/tag", {"text": "an apple"})
    )


def test_an_explanation_adds_up_and_its_segments_are_the_text(client: TestClient, tagger: Tagger) -> None:
    text = "An APPLE, and the pear — the apple!"
    answer = post(client, "/v1/explain", {"text": text, "labels": ["fruit", "fruit/pear"]})
    assert answer.status_code == 200
    first, second = answer.json()["explanations"]
    expected = tagger.explain(text, "fruit")
    assert (first["label"], second["label"]) == ("fruit", "fruit/pear")
    assert first["score"] == expected.score
    assert set(first) == set(LabelExplanation.model_fields)
    assert "".join(piece["text"] for piece in first["segments"]) == text
    added = sum(piece["contribution"] for piece in first["segments"])
    assert added + first["intercept"] == pytest.approx(first["margin"])
    del first["segments"]
    assert first == expected.to_dict(SMALL.words)
    assert len(first["reasons"]) == SMALL.words < len(expected.reasons)
    assert {step["tree"] for step in first["steps"]} == {1}


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        ({"text": "a", "labels": []}, 422, "invalid_request"),
        ({"text": "a", "labels": ["fruit"] * 3}, 422, "too_many_labels"),
        ({"text": "a", "labels": ["none"]}, 422, "unknown_label"),
        ({"text": "a" * 201, "labels": ["fruit"]}, 422, "text_too_long"),
        ({"text": "a", "labels": ["a"], "model": "rows"}, 422, "model_takes_features"),
        ({"labels": ["fruit"]}, 422, "invalid_request"),
    ],
)
def test_a_wrong_question_why_is_refused(client: TestClient, content: Any, status: int, code: str) -> None:
    answer = post(client, "/v1/explain", content)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_models_are_listed_with_the_default_first(client: TestClient) -> None:
    first, second = client.get("/v1/models").json()["models"]
    assert (first["name"], first["kind"], first["n_labels"], first["takes_texts"]) == ("topics", "LabelTree", 20, True)
    assert (second["name"], second["takes_texts"]) == ("rows", False)
    assert first["size_bytes"] > 0
    assert first["saved_at"].endswith("+00:00")
    assert "card" in first


def test_labels_are_found_by_prefix_most_frequent_first(client: TestClient) -> None:
    found = client.get("/v1/labels", params={"prefix": "FRUIT", "limit": 3}).json()
    assert found["model"] == "topics"
    assert found["labels"][0] == {"label": "fruit", "count": 16}
    assert [entry["label"] for entry in found["labels"][1:]] == ["fruit/apple", "fruit/cherry"]
    assert client.get("/v1/labels", params={"prefix": "zzz"}).json()["labels"] == []
    assert len(client.get("/v1/labels", params={"limit": 8}).json()["labels"]) == 8
    assert client.get("/v1/labels", params={"model": "other"}).status_code == 404
    for query in ("limit=0", "limit=9", "limit=x", "limit=1.0", "limit=1&limit=2", "other=1", f"contains={'a' * 201}"):
        answer = client.get(f"/v1/labels?{query}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_request")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"contains": "E"}, ["travel", "weather", "fruit/apple", "fruit/cherry"]),
        ({"contains": "/CH"}, ["fruit/cherry", "music/choir"]),
        ({"contains": "E", "prefix": "fruit/"}, ["fruit/apple", "fruit/cherry", "fruit/pear"]),
        ({"contains": "", "prefix": ""}, ["fruit", "music", "travel", "weather"]),
        ({"contains": "zzz"}, []),
        ({"contains": "apple", "prefix": "music"}, []),
    ],
)
def test_labels_are_found_by_what_their_names_contain(
    client: TestClient, asked: dict[str, str], expected: list[str]
) -> None:
    found = client.get("/v1/labels", params={**asked, "limit": 4}).json()["labels"]
    assert [entry["label"] for entry in found] == expected


def test_health_and_measures(client: TestClient) -> None:
    assert client.get("/health/live").json() == {"status": "live"}
    assert client.get("/health/ready").json() == {"status": "ready"}
    client.get("/nowhere/at/all")
    measures = client.get("/metrics").text
    assert 'longtail_requests_total{route="/health/live",status="200"}' in measures
    assert 'longtail_requests_total{route="other",status="404"}' in measures
    assert 'longtail_model_labels{kind="LabelTree",model="topics"} 20.0' in measures
    assert "longtail_queued_texts 0.0" in measures


@pytest.mark.parametrize("path", ["/", "/v1/models", "/nowhere", "/openapi.json", "/metrics"])
def test_every_answer_carries_the_headers_that_keep_a_browser_safe(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_the_page_is_served_with_a_tag_and_not_sent_again(client: TestClient) -> None:
    first = client.get("/")
    assert first.headers["content-type"] == "text/html; charset=utf-8"
    again = client.get("/", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/page/index.html").content == first.content
    for path in ("/page/nothing.js", "/page/../app.py", "/page/..%2fapp.py", "/page/"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/", "/health/live", "/v1/labels", "/nowhere"])
def test_a_head_is_answered_like_a_get_without_its_body(client: TestClient, path: str) -> None:
    answer, whole = client.head(path), client.get(path)
    assert (answer.status_code, answer.content) == (whole.status_code, b"")
    assert answer.headers["content-length"] == str(len(whole.content))


def test_another_method_is_told_the_right_one(client: TestClient) -> None:
    answer = client.get("/v1/tag")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["error"]["message"] == "GET is not allowed here; use POST"
    assert client.post("/v1/models", content=b"x").status_code == 405


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/v1", "/v1/tag/", "//v1/tag"])
def test_nothing_else_is_there(client: TestClient, path: str) -> None:
    assert client.get(path, follow_redirects=False).status_code == 404


def test_no_models_or_a_bare_estimator_are_not_served(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no model"):
        create_app({})
    Ridge().fit([[1.0, 0.0], [0.0, 1.0]], [[1, 0], [0, 1]]).save(tmp_path / "ridge")
    with pytest.raises(InvalidInput, match="Ridge"):
        create_app({"ridge": tmp_path / "ridge"})


@pytest.mark.parametrize("wrong", [{"texts": 0}, {"k": 1.5}, {"seconds": float("nan")}, {"body_bytes": True}])
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        Limits(**wrong)
