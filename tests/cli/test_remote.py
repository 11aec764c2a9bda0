"""Commands with URLs give the bytes and the answers of commands with directories."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data import Corpus, write_corpus

s3fs = pytest.importorskip("s3fs")
TREE = ("--learner", "tree", "--leaf-size", "2")


@pytest.fixture
def store(bucket: str) -> Any:
    return s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False)


@pytest.fixture
def prepared(longtail: Callable, bucket: str) -> str:
    """A prepared corpus in a bucket, and the same in the current folder."""
    for out in ("prepared", f"{bucket}/prepared"):
        result = longtail("prepare", "notes.jsonl", "--out", out, "--min-df", "1")
        assert result.code == 0, result.err
        assert f"{out}: 6 rows" in result.out + result.err
    return f"{bucket}/prepared"


@pytest.fixture
def model(longtail: Callable, prepared: str, bucket: str) -> str:
    """A model in a bucket, trained on the corpus there, and the same in the current folder."""
    for data, out in (("prepared", "model"), (prepared, f"{bucket}/model")):
        result = longtail("train", data, "--out", out, *TREE)
        assert result.code == 0, result.err
    return f"{bucket}/model"


def arrays_and_manifest(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.name != "card.json"}


def test_a_bucket_holds_the_same_bytes_as_a_folder(model: str, prepared: str, store: Any) -> None:
    for url, folder in ((prepared, "prepared"), (model, "model")):
        found = {Path(path).name: store.cat_file(path) for path in store.ls(url)}
        assert ("card.json" in found) == (folder == "model")
        found.pop("card.json", None)
        assert found == arrays_and_manifest(folder)
    assert not list(Path().glob("*.unfinished"))


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "MODEL", "PREPARED"],
        ["evaluate", "MODEL", "notes.jsonl"],
        ["predict", "MODEL", "PREPARED"],
        ["predict", "MODEL", "--text", "red apples"],
        ["explain", "MODEL", "--text", "red apples"],
        ["tree", "MODEL"],
        ["info", "MODEL", "--arrays", "--verify"],
        ["audit", "MODEL", "PREPARED"],
        ["report", "MODEL", "notes.jsonl"],
    ],
    ids=" ".join,
)
def test_a_url_gives_the_answer_of_a_folder(longtail: Callable, model: str, prepared: str, command: list[str]) -> None:
    local = longtail(*(word.lower() if word.isupper() else word for word in command))
    remote = longtail(*({"MODEL": model, "PREPARED": prepared}.get(word, word) for word in command))
    assert (remote.code, local.code) == (0, 0), remote.err
    without_time = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:+]+|took [\d.]+ s")
    assert without_time.sub("", remote.out) == without_time.sub("", local.out)


def test_a_model_in_a_bucket_is_replaced_only_on_demand(longtail: Callable, model: str, prepared: str) -> None:
    refused = longtail("train", prepared, "--out", model, *TREE)
    assert refused.code != 0
    assert f"{model} already holds a model or prepared data; use --force to replace it" in refused.err
    assert longtail("train", prepared, "--out", model, "--force", *TREE).code == 0


def test_metrics_go_into_the_card_in_the_bucket(longtail: Callable, model: str, prepared: str) -> None:
    assert longtail("evaluate", model, prepared, "--card").code == 0
    shown = longtail("info", model).out
    assert "measured: P@1" in shown
    assert "prepared, training part" in shown
    assert "s3://" not in shown.partition("data:")[2]


def test_training_in_pieces_for_a_bucket_can_be_interrupted(
    longtail: Callable, model: str, prepared: str, bucket: str, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from longtail.work.task import Task

    run, started = Task.run, []

    def interrupted(task: Task) -> bool:
        started.append(task.name)
        if len(started) == 3:
            raise KeyboardInterrupt
        return run(task)

    command = ("train", prepared, "--out", f"{bucket}/pieces", "--resume", "--jobs", "1", *TREE)
    for options, folder in (((), "pieces.unfinished"), (("--work", "work"), "work/pieces.unfinished")):
        with monkeypatch.context() as patch:
            patch.setattr(Task, "run", interrupted)
            started.clear()
            assert longtail(*command, *options).code != 0
        assert Path(folder).is_dir()
    assert not store.exists(f"{bucket}/pieces/manifest.json")
    assert longtail(*command, "--work", "work").code == 0
    assert Path("pieces.unfinished").is_dir()
    assert not Path("work/pieces.unfinished").exists()
    found = {Path(path).name: store.cat_file(path) for path in store.glob(f"{bucket}/pieces/*.npy")}
    assert found == {path.name: path.read_bytes() for path in Path("model").glob("*.npy")}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["train", "BUCKET/nothing", "--out", "new"], "holds no prepared corpus"),
        (["train", "notes.jsonl", "--out", "s3://nobody-has-this/new"], "there is no such bucket"),
        (["train", "notes.jsonl", "--out", "s3://me:secret@BUCKET/new"], "has a password or a query"),
        (["evaluate", "s3://nobody-has-this/model", "notes.jsonl"], "there is no such bucket"),
        (["predict", "BUCKET/nothing", "--text", "red"], "there is no model here"),
        (["serve", "BUCKET/nothing", "--port", "0"], "there is no model here"),
    ],
)
def test_mistakes_are_told_in_a_line(longtail: Callable, bucket: str, command: list[str], message: str) -> None:
    result = longtail(*(word.replace("BUCKET", bucket) for word in command))
    assert result.code != 0
    assert message in result.err
    assert "Traceback" not in result.err
    assert "secret" not in result.err
    assert not Path("new").exists()


@pytest.mark.slow
def test_workers_fetch_the_corpus_into_their_own_cache(
    longtail: Callable, bucket: str, store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    rng = np.random.default_rng(0)
    features = (rng.random((6_000, 60)) * (rng.random((6_000, 60)) < 0.9)).astype(np.float32)
    labels = np.eye(9)[features[:, :9].argmax(axis=1)]
    write_corpus(Corpus(labels, [f"label {number}" for number in range(9)], features=features), "features.txt")
    assert longtail("prepare", "features.txt", "--out", f"{bucket}/prepared").code == 0
    assert longtail("train", "features.txt", "--out", "model", *TREE, "--aim", "none").code == 0
    own = tmp_path / "cache"
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path / "cache of workers"))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit="2GiB"
    ) as cluster:
        monkeypatch.setenv("LONGTAIL_CACHE", str(own))
        options = ("--cluster", cluster.scheduler_address)
        result = longtail(
            "train",
            f"{bucket}/prepared",
            "--out",
            f"{bucket}/model",
            "--work",
            "work",
            *options,
            *TREE,
            "--aim",
            "none",
        )
        assert result.code == 0, result.err
        fetched = {path.name.partition("-0")[0] for path in (tmp_path / "cache of workers").rglob("*.npy")}
        assert any("features-data" in name for name in fetched)
        found = longtail("evaluate", f"{bucket}/model", f"{bucket}/prepared", *options)
        assert found.code == 0, found.err
    manifest = store.cat_file(f"{bucket}/model/manifest.json")
    assert manifest == Path("model/manifest.json").read_bytes()
    assert found.out == longtail("evaluate", "model", "features.txt").out
