"""A real Dask cluster of two processes: the same models, and clear errors before work starts."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from longtail import in_pieces
from longtail.errors import InvalidInput, Unavailable
from longtail.store import RemoteFile
from longtail.store.layout import StoredFile
from longtail.work import begin, connected
from longtail.work import cluster as cluster_module
from longtail.work.task import Task
from tests.work.models import LEARNERS, data, model_bytes

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scheduler() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit="2GiB"
    ) as found:
        yield found


@pytest.fixture(scope="module")
def client(scheduler: Any) -> Iterator[Any]:
    with connected(scheduler.scheduler_address) as found:
        yield found


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_workers_give_the_same_bytes(
    client: Any, tmp_path: Path, learner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y = data()
    expected = model_bytes(learner.fit(X, Y), tmp_path / "whole")
    sizes = []
    finished = cluster_module.Cluster.finished

    def noting(self: Any, tasks: list[Task]) -> Any:
        sizes.extend(len(cloudpickle.dumps(task)) for task in tasks)
        return finished(self, tasks)

    monkeypatch.setattr(cluster_module.Cluster, "finished", noting)
    with in_pieces(tmp_path / "unfinished", client):
        assert model_bytes(learner.fit(X, Y), tmp_path / "pieces") == expected
    assert 0 < max(sizes) < 10_000


def test_a_killed_worker_loses_only_its_task(client: Any, tmp_path: Path) -> None:
    X, Y = data()
    learner = LEARNERS[2]
    expected = model_bytes(learner.fit(X, Y), tmp_path / "whole")
    folder = tmp_path / "unfinished"
    victim = next(iter(client.run(os.getpid).values()))

    def kill() -> None:
        while not list(folder.glob("*/rows-of-labels.0-*")):
            time.sleep(0.005)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with in_pieces(folder, client):
        assert model_bytes(learner.fit(X, Y), tmp_path / "pieces") == expected
    killer.join()
    client.wait_for_workers(2, timeout=30)


def test_workers_forget_an_earlier_training_in_the_same_folder(client: Any, tmp_path: Path) -> None:
    X, Y = data()
    for number, labels in enumerate((Y, Y[::-1])):
        expected = model_bytes(LEARNERS[0].fit(X, labels), tmp_path / f"whole{number}")
        with in_pieces(tmp_path / "unfinished", client):
            assert model_bytes(LEARNERS[0].fit(X, labels), tmp_path / f"pieces{number}") == expected


def test_an_unreachable_scheduler_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "_PATIENCE", 0.5)
    with (
        pytest.raises(Unavailable, match="there is no scheduler at") as caught,
        connected("tcp://127.0.0.1:1"),
    ):
        pass
    assert caught.value.code == "no_scheduler"


def test_workers_of_another_version_are_refused(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = cluster_module.versions()
    monkeypatch.setattr(client, "run", lambda *_: {"tcp://worker": {**own, "longtail": "0.0.1"}})
    with (
        pytest.raises(Unavailable, match=r"has longtail 0\.0\.1 instead of") as caught,
        in_pieces(tmp_path / "w", client),
    ):
        pass
    assert caught.value.code == "other_version"


def test_paths_that_workers_do_not_see_are_refused(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = client.run

    def elsewhere(function: Any, *arguments: Any) -> Any:
        if function is cluster_module.identities:
            return {"tcp://worker": dict.fromkeys(*arguments)}
        return real(function, *arguments)

    monkeypatch.setattr(client, "run", elsewhere)
    with pytest.raises(InvalidInput, match="does not see") as caught, in_pieces(tmp_path / "w", client):
        pass
    assert caught.value.code == "path_not_shared"


def test_object_stores_that_workers_do_not_reach_are_told(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = cluster_module.Cluster(client, tmp_path)
    denied = Unavailable("access was denied", code="access_denied")
    monkeypatch.setattr(client, "run", lambda function, files: {"tcp://worker": denied if files else None})
    stored = StoredFile("x-0000000000000000.npy", "0" * 64, 136, "<f8", (1,))
    monkeypatch.setattr(found, "check_paths", lambda paths: None)
    with pytest.raises(Unavailable, match="the worker tcp://worker: access was denied") as caught:
        found.check_files([RemoteFile("s3://bucket/prepared", stored)])
    assert caught.value.code == "access_denied"


def full_disk(start: int, stop: int) -> dict[str, Any]:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_an_error_of_a_file_on_a_worker_says_that_finished_work_is_kept(client: Any, tmp_path: Path) -> None:
    with (
        pytest.raises(Unavailable, match=r"could not finish its task: .*what is finished is kept"),
        in_pieces(tmp_path / "w", client),
    ):
        begin({}, None).run("writing", full_disk, [(0, 1)])


def test_a_scheduler_without_workers_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "_PATIENCE", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0") as empty,
        distributed.Client(empty, set_as_default=False) as client,
        pytest.raises(Unavailable, match="no workers") as caught,
        in_pieces(tmp_path / "w", client),
    ):
        pass
    assert caught.value.code == "no_workers"


def test_workers_rank_and_evaluate_as_one_process_does(client: Any, tmp_path: Path) -> None:
    from longtail import Tagger, load
    from longtail.data import Corpus

    X, Y = data()
    corpus = Corpus(Y, [f"label {number}" for number in range(Y.shape[1])], features=X)
    Tagger(estimator=LEARNERS[0]).fit_corpus(corpus).save(tmp_path / "model")
    model = load(tmp_path / "model")
    tags, report = list(model.tag_corpus(corpus, 3)), model.evaluate(corpus).to_json()
    with in_pieces(tmp_path / "unfinished", client):
        assert list(model.tag_corpus(corpus, 3)) == tags
        assert model.evaluate(corpus).to_json() == report
        with pytest.raises(InvalidInput, match="save it"):
            Tagger(estimator=LEARNERS[0]).fit_corpus(corpus).evaluate(corpus)
