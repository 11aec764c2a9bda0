"""Corrections over HTTP, and the file that keeps them: complete lines only, whoever writes and whatever fails."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from longtail import Ridge, Tagger, TextFeatures
from longtail.data import read_changes
from longtail.errors import InvalidInput, Unavailable
from longtail.serve import Limits, create_app
from longtail.serve.feedback import FeedbackFile, correction
from longtail.serve.refusal import Refusal
from tests.serve.conftest import WAIT, running

SMALL = Limits(characters=200, corrected_labels=3, label_characters=20)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def lines(path: Path) -> list[dict[str, Any]]:
    content = path.read_bytes()
    assert content == b"" or content.endswith(b"\n")
    return [json.loads(line) for line in content.splitlines()]


def record(text: str = "a red apple", **labels: Any) -> dict[str, Any]:
    return correction("topics", "5f3c", text, **(labels or {"added": ["fruit"]}))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "feedback.jsonl"


@pytest.fixture
def client(model_directory: Path, file: Path) -> Iterator[TestClient]:
    with TestClient(create_app({"topics": model_directory}, limits=SMALL, feedback=file)) as client:
        yield client


def test_a_correction_becomes_a_line_with_time_model_and_version(client: TestClient, file: Path) -> None:
    sent = {
        "text": 'an apple,\n"red"',
        "accepted": ["fruit"],
        "rejected": ["weather"],
        "added": [" fruit/red  "],
        "id": "7",
    }
    answer = client.post("/v1/feedback", json=sent)
    [entry] = client.get("/v1/models").json()["models"]
    [line] = lines(file)
    assert answer.json() == {"model": "topics", "version": entry["version"], "time": line["time"]}
    assert line == {
        "time": line["time"],
        "model": "topics",
        "version": entry["version"],
        **sent,
        "added": ["fruit/red"],
    }
    assert datetime.now(UTC) - datetime.fromisoformat(line["time"]) < timedelta(minutes=1)
    assert entry["corrections"] == {"waiting": 1}
    assert client.post("/v1/tag", json={"text": "a"}).json()["version"] == entry["version"]
    assert 'longtail_corrections_total{model="topics"} 1.0' in client.get("/metrics").text


def test_labels_of_any_script_and_control_characters_in_texts_are_kept(client: TestClient, file: Path) -> None:
    sent = {"text": "a\x00\x1b[2J\u2028b\u202e", "rejected": ["\x07"], "added": ["موسيقى"]}
    assert client.post("/v1/feedback", json=sent).status_code == 200
    assert b"\x1b" not in file.read_bytes()
    [line] = lines(file)
    assert {field: line[field] for field in sent} == sent
    broken = b'{"text": "a", "added": ["\\ud800"]}'
    assert client.post("/v1/feedback", content=broken, headers={"content-type": "application/json"}).status_code == 400


def test_accepting_makes_no_label_that_nobody_can_read(tmp_path: Path, file: Path) -> None:
    known = "bell\x07"
    tagger = Tagger(TextFeatures(min_df=1), Ridge()).fit(["red apples", "blue sky"], [["fruit"], [known]])
    tagger.save(tmp_path / "model")
    with TestClient(create_app({"topics": tmp_path / "model"}, feedback=file)) as client:
        assert client.post("/v1/feedback", json={"text": "a", "accepted": [known]}).status_code == 200
        answer = client.post("/v1/feedback", json={"text": "a", "accepted": [known, "\u202e"]})
    assert (answer.status_code, answer.json()["error"]["message"].partition(":")[0]) == (422, "accepted.1")
    assert len(lines(file)) == 1


def test_a_refusal_says_which_name_is_wrong_and_why(client: TestClient) -> None:
    answer = client.post("/v1/feedback", json={"text": "a", "added": ["b", "c\x1b"]})
    assert answer.json()["error"]["message"] == (
        "added.1: expected a visible name without control characters and direction marks"
    )


def test_a_label_counts_once_and_rejected_wins() -> None:
    found = record(accepted=["a", "b", "a"], rejected=["b"], added=["a", "b", "c"])
    assert [found[field] for field in ("accepted", "rejected", "added")] == [["a"], ["b"], ["c"]]


def test_without_a_file_there_is_no_route(model_directory: Path) -> None:
    with TestClient(create_app({"topics": model_directory})) as client:
        assert client.post("/v1/feedback", json={"text": "a", "added": ["b"]}).status_code == 404
        assert client.get("/v1/models").json()["models"][0]["corrections"] is None
        assert "/v1/feedback" not in client.get("/openapi.json").json()["paths"]


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ({"text": "a"}, "invalid_request"),
        ({"text": "a", "accepted": []}, "invalid_request"),
        ({"text": "", "added": ["b"]}, "invalid_request"),
        ({"text": "a", "added": "b"}, "invalid_request"),
        ({"text": "a", "added": ["  "]}, "invalid_request"),
        ({"text": "a", "accepted": [""]}, "invalid_request"),
        ({"text": "a", "accepted": [" "]}, "invalid_request"),
        ({"text": "a", "rejected": ["b", ""]}, "invalid_request"),
        ({"text": "a", "added": ["b\n"], "other": 1}, "invalid_request"),
        ({"text": "a", "added": ["b\x1b[2J"]}, "invalid_request"),
        ({"text": "a", "added": ["\u200b"]}, "invalid_request"),
        ({"text": "a", "added": ["b\u202e"]}, "invalid_request"),
        ({"text": "a", "added": ["b"], "id": 3}, "invalid_request"),
        ({"text": "a", "added": ["b"], "id": "b" * 21}, "invalid_request"),
        ({"text": "a" * 201, "added": ["b"]}, "text_too_long"),
        ({"text": "a", "accepted": ["b"] * 4}, "too_many_labels"),
        ({"text": "a", "rejected": ["b" * 21]}, "label_too_long"),
        ({"text": "a", "added": ["b"], "model": "other"}, "unknown_model"),
    ],
)
def test_what_is_no_correction_is_refused_and_not_kept(
    client: TestClient, file: Path, sent: dict[str, Any], code: str
) -> None:
    assert client.post("/v1/feedback", json=sent).json()["error"]["code"] == code
    assert lines(file) == []


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": "http://testserver"},
        {"origin": "http://elsewhere"},
        {"origin": "http://testserver:81"},
        {"origin": "null"},
    ],
)
@pytest.mark.parametrize("path", ["/v1/feedback", "/v1/models/reload"])
def test_a_page_of_another_site_cannot_change_anything(
    model_directory: Path, file: Path, path: str, headers: dict[str, str]
) -> None:
    with TestClient(create_app({"topics": model_directory}, feedback=file, reload=True)) as client:
        answer = client.post(path, json={"text": "a", "added": ["b"]}, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "cross_site")
        assert lines(file) == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://testserver"},
        {"sec-fetch-site": "same-origin", "origin": "https://name-before-the-proxy"},
        {"sec-fetch-site": "none"},
    ],
)
def test_the_page_itself_and_programs_can(client: TestClient, file: Path, headers: dict[str, str]) -> None:
    assert client.post("/v1/feedback", json={"text": "a", "added": ["b"]}, headers=headers).status_code == 200
    assert len(lines(file)) == 1


def test_corrections_need_the_token(model_directory: Path, file: Path) -> None:
    with TestClient(create_app({"topics": model_directory}, feedback=file, token="secret")) as client:
        sent = {"text": "a", "added": ["b"]}
        assert client.post("/v1/feedback", json=sent).status_code == 401
        bearer = {"authorization": "Bearer secret"}
        assert client.post("/v1/feedback", json=sent, headers=bearer).status_code == 200
        assert client.get("/openapi.json").json()["paths"]["/v1/feedback"]["post"]["security"] == [{"token": []}]


def test_corrections_that_arrive_together_are_all_kept(client: TestClient, file: Path) -> None:
    def send(number: int) -> int:
        return client.post("/v1/feedback", json={"text": f"text {number}", "added": ["b"]}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(send, range(40))) == {200}
    assert {line["text"] for line in lines(file)} == {f"text {number}" for number in range(40)}


@pytest.mark.skipif(os.name != "posix", reason="needs modes of files")
def test_only_its_owner_can_read_a_new_file(file: Path) -> None:
    before = os.umask(0)
    try:
        FeedbackFile(file)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path, model_directory: Path) -> None:
    with pytest.raises(Unavailable, match="No such file"):
        create_app({"topics": model_directory}, feedback=tmp_path / "nowhere" / "feedback.jsonl")
    with pytest.raises(Unavailable, match="directory"):
        FeedbackFile(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="regular file"):
        FeedbackFile(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(Unavailable, match="symbolic link; give the name of a file"):
        FeedbackFile(tmp_path / "link")
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("content", [b"texts\nof mine\n", b"\x89PNG", b"[1]\n", b'{"text": "a"}\nno', b'{"te'])
def test_a_file_of_something_else_is_refused_and_left_as_it_is(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(InvalidInput, match="give a"):
        FeedbackFile(file)
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    "left", [b'{"time": "2026-', b'{"ti', b'{"time": "2026\0\0', b"\0\0", json.dumps(record()).encode()]
)
def test_half_a_line_is_removed_and_a_whole_one_is_ended(
    file: Path, left: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    FeedbackFile(file).append([record("first")])
    with open(file, "ab") as stream:
        stream.write(left)
    feedback = FeedbackFile(file)
    with open(file, "ab") as stream:
        stream.write(left)
    feedback.append([record("last")])
    texts = [line["text"] for line in lines(file)]
    assert texts == (["first", "last"] if len(left) < 50 else ["first", "a red apple", "a red apple", "last"])
    assert len(caplog.records) == (2 if len(left) < 50 else 0)


def test_a_file_that_was_moved_away_is_begun_anew(file: Path, tmp_path: Path) -> None:
    feedback = FeedbackFile(file)
    feedback.append([record("first")])
    assert feedback.waiting("topics", LONG_AGO) == 1
    file.rename(tmp_path / "learnt.jsonl")
    assert feedback.waiting("topics", LONG_AGO) == 0
    assert not file.exists()
    feedback.append([record("second")])
    assert [line["text"] for line in lines(file)] == ["second"]
    assert feedback.waiting("topics", LONG_AGO) == 1


def test_texts_with_corrections_of_the_model_that_are_newer_than_it_wait(file: Path) -> None:
    feedback = FeedbackFile(file)
    named = correction("topics", "5f3c", "a red apple", added=["fruit"], row="7")
    feedback.append([record(), {**record(), "model": "other"}, record(accepted=["red"]), named])
    with open(file, "a") as stream:
        stream.write('{"id": "1", "text": "a", "labels": []}\n{"model": "topics", "time": "no"}\nnot JSON\n')
    assert (feedback.waiting("topics", LONG_AGO), feedback.waiting("other", LONG_AGO)) == (2, 1)
    assert feedback.waiting("topics", datetime.now(UTC) + timedelta(seconds=1)) == 0
    assert feedback.waiting("nothing", LONG_AGO) == 0


def test_corrections_that_an_update_has_not_read_wait(model_directory: Path, file: Path, tmp_path: Path) -> None:
    from longtail.store import update_card

    directory = shutil.copytree(model_directory, tmp_path / "topics")
    read = {**record("read"), "time": "2026-01-31T12:00:00.001+00:00"}
    during = {**record("made during the update"), "time": "2026-01-31T12:00:00.002+00:00"}
    FeedbackFile(file).append([read, during])
    with TestClient(create_app({"topics": directory}, feedback=file)) as client:

        def waiting() -> int:
            return int(client.get("/v1/models").json()["models"][0]["corrections"]["waiting"])

        assert waiting() == 0  # older than the model
        update_card(directory, updates={"corrections_until": read["time"]})
        assert waiting() == 1
        update_card(directory, updates={"corrections_until": "when nobody looked"})
        assert waiting() == 0


def test_a_file_at_its_limit_refuses_whole_lines(file: Path) -> None:
    feedback = FeedbackFile(file, most=400)
    feedback.append([record()])
    before = file.read_bytes()
    with pytest.raises(Refusal, match="limit of 400 bytes") as refused:
        feedback.append([record("a" * 300)])
    assert (refused.value.code, refused.value.status) == ("feedback_full", 507)
    assert file.read_bytes() == before
    feedback.append([record()])


def test_a_line_that_an_update_could_not_read_is_refused(file: Path) -> None:
    feedback = FeedbackFile(file)
    with pytest.raises(Refusal, match="shorter text") as refused:
        feedback.append([record("\0" * 3_000_000)])  # each becomes six characters
    assert refused.value.code == "text_too_long"
    feedback.append([record()])
    assert len(list(read_changes(file))) == 1


_FULL_DISK = """
import resource, signal, sys
from longtail.serve.feedback import FeedbackFile, correction
from longtail.serve.refusal import Refusal
feedback = FeedbackFile(sys.argv[1])
feedback.append([correction("m", "v", "first", added=["a"])])
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
try:
    feedback.append([correction("m", "v", "b", added=["a"]), correction("m", "v", "c" * 1000, added=["a"])])
except Refusal as refusal:
    print(refusal.code)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of processes")
def test_a_disk_that_becomes_full_leaves_no_half_line(file: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _FULL_DISK, str(file)], capture_output=True, text=True, timeout=WAIT)
    assert done.stdout == "feedback_full\n", done.stderr
    assert [line["text"] for line in lines(file)] == ["first"]


def test_other_failures_of_the_disk_are_logged_and_not_told(
    client: TestClient, file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    answer = client.post("/v1/feedback", json={"text": "a", "added": ["b"]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "feedback_failed")
    assert str(file) not in answer.text
    assert str(file) in caplog.text
    assert lines(file) == []


def test_a_kill_loses_no_correction_that_was_answered(model_directory: Path, file: Path) -> None:
    answered: list[str] = []
    with running(str(model_directory), "--feedback", str(file)) as service:

        def send(thread: int) -> None:
            with suppress(OSError, ValueError):  # the kill
                for number in range(10_000):
                    text = f"{thread} {number} " * 1000
                    if service.post("/v1/feedback", {"text": text, "added": ["b"]}).status == 200:
                        answered.append(text)

        with ThreadPoolExecutor(4) as pool:
            sending = [pool.submit(send, thread) for thread in range(4)]
            while len(answered) < 20 and not all(each.done() for each in sending):
                time.sleep(0.01)
            service.process.kill()
    assert len(answered) >= 20
    FeedbackFile(file)
    assert set(answered) <= {line["text"] for line in lines(file)}


def test_two_services_share_a_file(model_directory: Path, file: Path) -> None:
    arguments = (str(model_directory), "--feedback", str(file))
    with running(*arguments) as first, running(*arguments) as second, ThreadPoolExecutor(8) as pool:

        def send(number: int) -> int:
            service = (first, second)[number % 2]
            return service.post("/v1/feedback", {"text": f"{number} " * 2000, "added": ["b"]}).status

        assert set(pool.map(send, range(60))) == {200}
        assert sorted(int(line["text"].split()[0]) for line in lines(file)) == list(range(60))
        for service in (first, second):
            answer = service.send(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert answer.json["models"][0]["corrections"] == {"waiting": 60}
