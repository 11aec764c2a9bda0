"""New versions of models while the service answers: by a request, by SIGHUP, and what happens when one is damaged."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.testclient import TestClient

from longtail import LabelTree, Tagger, TextFeatures
from longtail.serve import create_app, program
from longtail.serve.served import ServedModel
from tests.serve.conftest import PROGRAM, WAIT, Service, examples, running


@pytest.fixture(scope="module")
def newer() -> Tagger:
    """A model that gives every text of apples a label that the model of the session lacks."""
    texts, labels = examples()
    labels = [[*found, "new"] if "apple" in text else found for text, found in zip(texts, labels, strict=True)]
    return Tagger(TextFeatures(ngrams=(1, 2), min_df=1), LabelTree(leaf_size=3, random_state=0)).fit(texts, labels)


@pytest.fixture
def directory(model_directory: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model_directory, tmp_path / "topics"))


@pytest.fixture
def client(directory: Path) -> Iterator[TestClient]:
    with TestClient(create_app({"topics": directory}, reload=True)) as client:
        yield client


def tags(client: TestClient) -> list[str]:
    answer = client.post("/v1/tag", json={"text": "an apple today", "k": 20}).json()
    return [tag["label"] for tag in answer["results"][0]["tags"]]


def test_a_new_version_is_served_after_the_request(client: TestClient, directory: Path, newer: Tagger) -> None:
    before = client.get("/v1/models").json()["models"][0]
    assert "new" not in tags(client)
    newer.save(directory)
    assert "new" not in tags(client)
    [loaded] = client.post("/v1/models/reload", json={}).json()["models"]
    after = client.get("/v1/models").json()["models"][0]
    assert "new" in tags(client)
    assert (loaded["name"], loaded["changed"]) == ("topics", True)
    assert loaded["version"] == after["version"] != before["version"]
    assert (before["n_labels"], after["n_labels"]) == (20, 21)
    metrics = client.get("/metrics").text
    assert 'longtail_reloads_total{model="topics",outcome="loaded"} 1.0' in metrics
    assert 'longtail_model_labels{kind="LabelTree",model="topics"} 21.0' in metrics


def test_a_model_that_has_not_changed_stays(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServedModel, "__init__", lambda *_: pytest.fail("it was loaded"))
    [found] = client.post("/v1/models/reload", json={"model": "topics"}).json()["models"]
    assert found["changed"] is False
    assert client.post("/v1/models/reload", json={"model": "other"}).status_code == 404


def test_only_the_model_asked_for_is_loaded(directory: Path, newer: Tagger, tmp_path: Path) -> None:
    other = Path(shutil.copytree(directory, tmp_path / "other"))
    with TestClient(create_app({"topics": directory, "other": other}, reload=True)) as client:
        newer.save(directory)
        newer.save(other)
        assert [
            entry["name"] for entry in client.post("/v1/models/reload", json={"model": "other"}).json()["models"]
        ] == ["other"]
        assert [entry["n_labels"] for entry in client.get("/v1/models").json()["models"]] == [20, 21]
        changed = client.post("/v1/models/reload", json={}).json()["models"]
        assert [entry["changed"] for entry in changed] == [True, False]


def _without_manifest(directory: Path) -> None:
    (directory / "manifest.json").unlink()


def _cut_short(directory: Path) -> None:
    manifest = directory / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-100])


@pytest.mark.parametrize("damage", [_without_manifest, _cut_short, shutil.rmtree])
def test_a_damaged_version_leaves_the_earlier_one(
    client: TestClient, directory: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    before = tags(client)
    damage(directory)
    answer = client.post("/v1/models/reload", json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "reload_failed")
    assert str(directory) not in answer.text
    assert str(directory) in caplog.text
    assert tags(client) == before
    assert client.get("/health/ready").status_code == 200
    assert 'longtail_reloads_total{model="topics",outcome="failed"} 1.0' in client.get("/metrics").text


def test_the_card_stays_until_the_new_version_is_loaded(directory: Path, newer: Tagger) -> None:
    from longtail.store import update_card

    update_card(directory, data={"source": "old.jsonl"}, updates={"corrections": 3})
    with TestClient(create_app({"topics": directory}, reload=True)) as client:
        newer.save(directory)
        card = client.get("/v1/models").json()["models"][0]["card"]
        assert (card["data"]["source"], card["updates"]["corrections"]) == ("old.jsonl", 3)
        client.post("/v1/models/reload", json={})
        assert client.get("/v1/models").json()["models"][0]["card"] is None


def test_the_earlier_version_is_released(directory: Path, newer: Tagger, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[weakref.ref[ServedModel]] = []
    make = ServedModel.__init__

    def note(self: ServedModel, *given: Any) -> None:
        loaded.append(weakref.ref(self))
        make(self, *given)

    monkeypatch.setattr(ServedModel, "__init__", note)
    with TestClient(create_app({"topics": directory}, reload=True)) as client:
        tags(client)
        client.post("/v1/explain", json={"text": "an apple", "labels": ["fruit"]})
        newer.save(directory)
        client.post("/v1/models/reload", json={})
        gc.collect()
        assert [model() is None for model in loaded] == [True, False]


def test_a_request_under_way_finishes_on_the_earlier_version(
    client: TestClient, directory: Path, newer: Tagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, released, tag = threading.Event(), threading.Event(), Tagger.tag

    def slow(self: Tagger, *given: Any, **options: Any) -> Any:
        begun.set()
        released.wait(WAIT)
        return tag(self, *given, **options)

    old = client.get("/v1/models").json()["models"][0]["version"]
    monkeypatch.setattr(Tagger, "tag", slow)
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(client.post("/v1/tag", json={"text": "an apple"})))
    asking.start()
    begun.wait(WAIT)
    newer.save(directory)
    assert client.post("/v1/models/reload", json={}).json()["models"][0]["changed"] is True
    released.set()
    asking.join(WAIT)
    assert answers[0].json()["version"] == old


def test_the_route_is_there_with_a_token_or_when_asked_for(model_directory: Path) -> None:
    def status(**options: Any) -> int:
        with TestClient(create_app({"topics": model_directory}, **options)) as client:
            return client.post("/v1/models/reload", json={}, headers={"authorization": "Bearer secret"}).status_code

    assert [status(), status(token="secret"), status(token="secret", reload=False), status(reload=True)] == [
        404,
        200,
        404,
        200,
    ]


@contextmanager
def asking(service: Service) -> Iterator[list[int]]:
    """The statuses of the answers to requests that a thread sends all the time."""
    statuses: list[int] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            try:
                statuses.append(service.tag().status)
            except OSError:
                statuses.append(0)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        ended.set()
        for thread in threads:
            thread.join(WAIT)


def version(service: Service) -> str:
    return str(service.tag().json["version"])


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGHUP")
def test_no_request_fails_while_versions_change(
    directory: Path, model_directory: Path, newer: Tagger, tmp_path: Path
) -> None:
    with open(tmp_path / "log", "wb") as log, running(str(directory), log=log) as service, asking(service) as statuses:
        seen = [version(service)]
        for turn in range(6):
            if turn % 2:
                shutil.rmtree(directory)
                shutil.copytree(model_directory, directory)
            else:
                newer.save(directory)
            if turn < 3:
                assert service.post("/v1/models/reload", {}).status == 200
            else:
                service.process.send_signal(signal.SIGHUP)
                until = time.monotonic() + WAIT
                while version(service) == seen[-1]:
                    assert time.monotonic() < until
            seen.append(version(service))
    assert len(set(seen)) == 2
    assert all(one != next_one for one, next_one in itertools.pairwise(seen))
    assert len(statuses) > 30
    assert set(statuses) == {200}
    assert (tmp_path / "log").read_text().count("serving a new version of topics") == 6


@contextmanager
def in_a_terminal(*command: str) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], None]]]:
    """A process in a terminal of its own, once it serves, and a call that closes the terminal."""
    import fcntl
    import termios

    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*command, "--port", "0"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    try:
        assert process.stdout is not None
        assert b"Serving" in process.stdout.readline()
        yield process, lambda: os.close(ours)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="needs terminals")
def test_a_service_ends_with_its_terminal(model_directory: Path) -> None:
    with in_a_terminal(*PROGRAM, "serve", str(model_directory)) as (process, close):
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        close()
        assert process.wait(WAIT) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGHUP")
def test_a_terminal_that_is_taken_away_after_the_signal_ends_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([True, True, False])  # at the start, at the signal and a moment later
    monkeypatch.setattr(program, "_has_terminal", lambda: next(answers))
    monkeypatch.setattr(program, "_ignores_hang_up", lambda: False)
    monkeypatch.setattr(program, "_TAKEN_AWAY", 0.01)
    reloads: list[bool] = []

    async def hang_up() -> int:
        server = program._Server(uvicorn.Config("none"), 1, lambda: reloads.append(True), None)
        server._hang_up()
        assert server.ended_by == 0
        await asyncio.sleep(0.1)
        return server.ended_by

    assert asyncio.run(hang_up()) == signal.SIGHUP
    assert reloads == [True]


@pytest.mark.skipif(sys.platform == "win32", reason="needs terminals")
def test_a_service_under_nohup_outlives_its_terminal(model_directory: Path) -> None:
    with in_a_terminal("nohup", *PROGRAM, "serve", str(model_directory)) as (process, close):
        close()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
