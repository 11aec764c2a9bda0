"""Ctrl-C during long work ends it soon, and later work is not affected."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from longtail import OneVsRest, Ridge, native
from longtail.parallel import Stopped, check_stop, map_blocks

pytestmark = pytest.mark.usefixtures("interruptible")

posix = pytest.mark.skipif(os.name != "posix", reason="signals are sent otherwise elsewhere")
START = 60.0  # for a process to begin
SOON = 10.0  # for one that was interrupted to end; left alone, each would take minutes

DATA = """
import numpy as np
from scipy import sparse

def data(n_rows, n_labels=256, n_features=500, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n_rows, n_features), density=0.05, format="csr", dtype=np.float32, rng=rng)
    labels = rng.integers(n_labels, size=n_rows)
    Y = sparse.csr_array((np.ones(n_rows), labels, np.arange(n_rows + 1)), shape=(n_rows, n_labels))
    return X, Y
"""

INTERRUPTED_FIT = (
    DATA
    + """
import hashlib, sys
from longtail import OneVsRest

def digest(model):
    X, _ = data(50)
    return hashlib.sha256(b"".join(part.tobytes() for part in model.predict_topk(X, 5))).hexdigest()

n_jobs = int(sys.argv[1])
print(digest(OneVsRest(n_jobs=n_jobs).fit(*data(60))), flush=True)
model = OneVsRest(tol=1e-12, max_sweeps=10**9, C=1e4, n_jobs=n_jobs)
print("fitting", flush=True)
try:
    model.fit(*data(3000))
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(digest(OneVsRest(n_jobs=n_jobs).fit(*data(60))), flush=True)
"""
)


def line(process: subprocess.Popen[str]) -> str:
    """The next line of a process, which is killed if none comes."""
    end = threading.Timer(START, process.kill)
    end.start()
    try:
        assert process.stdout is not None
        return process.stdout.readline().strip()
    finally:
        end.cancel()


@posix
@pytest.mark.slow
@pytest.mark.parametrize("native", ["1", "0"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_fit_ends_soon_and_the_next_is_as_ever(jobs: int, native: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED_FIT, str(jobs)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "LONGTAIL_NATIVE": native},
    ) as process:
        try:
            before = line(process)
            assert line(process) == "fitting"
            time.sleep(1.0)
            process.send_signal(signal.SIGINT)
            begun = time.monotonic()
            assert line(process) == "interrupted"
            assert time.monotonic() - begun < SOON
            assert line(process) == before != ""
            assert process.wait(SOON) == 0
        finally:
            process.kill()


@posix
@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_train_leaves_nothing_behind(jobs: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features = [" ".join(f"{each}:1.5" for each in np.sort(rng.choice(200, 20, replace=False))) for _ in range(5000)]
    rows = [f"{label} {features[place]}" for label, place in rng.integers([1000, 5000], size=(100_000, 2))]
    (tmp_path / "rows.txt").write_text("\n".join(["100000 200 1000", *rows, ""]), encoding="ascii")
    # With the largest C, each sweep changes everything: more than a minute of work in all.
    arguments = ["train", "rows.txt", "--out", "model", "--learner", "one-vs-rest", "--C", "1e6", "--jobs", str(jobs)]
    with subprocess.Popen(
        [sys.executable, "-m", "longtail", *arguments], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        try:
            assert process.stderr is not None
            told = ""
            while not told.startswith("OneVsRest needs at most"):
                told = process.stderr.readline()
                assert told, "the program ended by itself"
            time.sleep(1.0)
            process.send_signal(signal.SIGINT)
            assert process.wait(SOON) == 130
            assert process.stderr.read().splitlines()[-1] == "interrupted"
        finally:
            process.kill()
    assert [path.name for path in tmp_path.iterdir()] == ["rows.txt"]


@posix
@pytest.mark.slow
@pytest.mark.parametrize(
    ("begins", "ends"),
    [("training should take at most", "  label tree "), ("TwoStage needs at most", "nDCG@5 on held-out rows is")],
    ids=["race", "rehearsal"],
)
def test_an_interrupted_default_training_leaves_nothing_behind(begins: str, ends: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = []
    for labels in rng.integers(1500, size=(8000, 2)).tolist():
        words = [f"topic{label}x{word}" for label in labels for word in rng.integers(8, size=3)]
        words += [f"word{word}" for word in rng.integers(3000, size=8)]
        lines.append(json.dumps({"text": " ".join(words), "labels": [f"label{label}" for label in labels]}))
    (tmp_path / "texts.jsonl").write_text("\n".join(lines), encoding="ascii")
    arguments = ["train", "texts.jsonl", "--out", "model"]
    with subprocess.Popen(
        [sys.executable, "-m", "longtail", *arguments], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        try:
            assert process.stderr is not None
            told = ""
            while not told.startswith(begins):
                told = process.stderr.readline()
                assert told, "the program ended by itself"
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            assert process.wait(SOON) == 130
            after = process.stderr.read()
            assert after.splitlines()[-1] == "interrupted"
            assert ends not in after
        finally:
            process.kill()
    assert [path.name for path in tmp_path.iterdir()] == ["texts.jsonl"]


def stops(work: Callable[[], Any]) -> bool:
    """Whether the long `work` ends early if it is one of two blocks and the other fails."""
    begun = threading.Event()
    ended: list[bool] = []

    def run(works: bool) -> None:
        if not works:
            begun.wait(START)
            raise LookupError("the other block")
        begun.set()
        try:
            work()
        except Stopped:
            ended.append(True)
            raise

    with pytest.raises(LookupError, match="the other block"):
        list(map_blocks(run, [False, True], 2))
    return ended == [True]


def rows_of(n_rows: int, n_features: int, each: int, kind: type = np.int64) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    indices = np.tile(np.sort(rng.choice(n_features, each, replace=False)), n_rows)
    return (np.arange(n_rows + 1) * each).astype(kind), indices.astype(kind), np.ones(n_rows * each, dtype=np.float32)


def test_training_of_siblings_stops(kernels: Any) -> None:
    indptr, indices, data = rows_of(200, 50, 10)
    data += np.arange(len(data), dtype=np.float32) % 7
    arguments = (np.arange(200), np.arange(201), (np.arange(200) % 8).astype(np.int32), np.full(200, 1e4, np.float32))
    settings = (1e4, 8, 1.0, False, 1e-15, 2**62, 0, 0.0, 0, None)
    assert stops(lambda: kernels.train_siblings(indptr, indices.astype(np.int32), data, 50, *arguments, *settings))


def test_search_for_members_stops(kernels: Any) -> None:
    indptr, indices, data = rows_of(40, 50, 10)
    data += np.arange(len(data), dtype=np.float32) % 7
    ends = np.arange(0, 41, 4)
    found = np.empty(40), np.empty(40), np.empty(1)
    given = np.array([0, 10]), np.arange(10), ends, np.arange(40), indptr, indices, data, np.ones(40), 50, 0
    assert stops(lambda: kernels.find_members(*given, 2**62, 1e-9, *found))


def test_division_of_nodes_stops(kernels: Any) -> None:
    indptr, indices, data = rows_of(2000, 50, 10)
    given = indptr, indices.astype(np.int32), data, 50, np.arange(2000)
    nodes = np.array([[0, 1000, 2000]]), np.array([[0, 1]])
    assert stops(lambda: kernels.bisect_nodes(*given, *nodes, 2**31 - 1, -1.0, np.empty(1)))


def test_representation_of_labels_stops(kernels: Any) -> None:
    products = np.full((30, 30), 0.5) + np.eye(30)
    indptr, indices = np.arange(0, 901, 30), np.tile(np.arange(30, dtype=np.int32), 30)
    given = (indptr, indices, products.ravel()) * 2
    found = np.empty(30, np.int64), np.empty(30, np.int64), np.empty(30), np.empty(30), np.empty(30)
    never = -1e-9  # no gap is below it
    assert stops(lambda: kernels.represent_labels(*given, np.full(30, 1.5), np.arange(30), 9.0, never, 2**62, *found))


@pytest.fixture
def native_kernels() -> Any:
    """Kernels whose twins are a single call of SciPy, which cannot be stopped."""
    if not native.is_native():
        pytest.skip("the native kernels are not built here")
    return native.kernels


def test_a_product_stops(native_kernels: Any) -> None:
    indptr, indices, data = rows_of(16_000, 1000, 500, np.int32)
    dense, out = np.ones((1000, 1000), dtype=np.float32), np.empty((16_000, 1000), dtype=np.float32)
    assert stops(lambda: native_kernels.multiply(indptr, indices, data, dense, out))


def test_a_gram_matrix_stops(native_kernels: Any) -> None:
    indptr, indices, data = rows_of(4000, 1000, 1000, np.int32)
    column_indptr, column_rows = np.arange(0, 4_000_001, 4000, np.int32), np.tile(np.arange(4000, dtype=np.int32), 1000)
    out = np.empty((1000, 1000), dtype=np.float32)
    assert stops(lambda: native_kernels.gram_rows(indptr, indices, data, column_indptr, column_rows, 0, 1000, out))


def test_sums_and_projections_of_rows_stop(native_kernels: Any) -> None:
    indptr, indices, data = rows_of(1, 1000, 1000)
    indices, rows = indices.astype(np.int32), np.zeros(1_000_000, dtype=np.int64)
    weights, direction = np.ones(len(rows), dtype=np.float32), np.ones(1000, dtype=np.float32)
    assert stops(lambda: native_kernels.project_rows(indptr, indices, data, rows, direction, np.empty_like(weights)))
    assert stops(lambda: native_kernels.add_rows(indptr, indices, data, rows, weights, np.zeros(1000)))
    written = np.empty(1, np.int64), np.empty(1000, np.int32), np.empty(1000, np.float32)
    assert stops(
        lambda: native_kernels.sum_label_rows(
            np.array([0, len(rows)]), rows, None, indptr, indices.astype(np.int64), data, 1000, 1000, *written
        )
    )


def test_counting_words_stops(kernels: Any) -> None:
    texts = [" ".join(f"word{place}" for place in range(10_000))] * 5000
    code_points = kernels.CodePoints(lambda number: np.zeros(256, dtype=np.uint32))
    assert stops(lambda: kernels.GrowingVocabulary().count(texts, code_points, 1, 1, 2, 0, True))


def test_counting_the_subwords_of_one_long_token_stops(kernels: Any) -> None:
    code_points = kernels.CodePoints(lambda number: np.zeros(256, dtype=np.uint32))
    texts = ["abcdefg" * 1_000_000] * 20
    assert stops(lambda: kernels.GrowingVocabulary().count(texts, code_points, 1, 1, 1, 5, True))


def test_a_search_through_trees_stops() -> None:
    rng = np.random.default_rng(0)
    model = OneVsRest(prune=0.0, max_sweeps=1, n_jobs=1).fit(rng.normal(size=(1000, 500)), np.eye(1000))
    many = sparse.csr_array(np.ones((8000, 500), dtype=np.float32))
    rows = many.indptr.astype(np.int64), many.indices.astype(np.int32), many.data, 0, 8000
    found = np.empty((8000, 5), dtype=np.int64), np.empty((8000, 5), dtype=np.float32)
    search = model._searcher()
    assert stops(lambda: search.topk(*rows, 1, None, None, *found))


def test_conjugate_gradients_stop() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(400, 300)), rng.integers(2, size=(400, 20))
    model = Ridge(1e-6, solver="cg", tol=1e-300, max_iter=2**31, n_jobs=1)
    assert stops(lambda: model.fit(X, Y))


def test_calls_within_a_call_stop_with_it_and_others_go_on() -> None:
    def wait_until_stopped() -> None:
        while True:
            check_stop()
            time.sleep(0.001)

    def within(jobs: int) -> Callable[[], Any]:
        return lambda: list(map_blocks(lambda _: wait_until_stopped(), range(4), jobs))

    halt = threading.Event()
    other = map_blocks(lambda block: (halt.wait(START), check_stop(), block)[-1], range(3), 2)
    found: list[int] = []
    reader = threading.Thread(target=lambda: found.extend(other))
    reader.start()
    assert stops(within(1))
    assert stops(within(3))
    halt.set()
    reader.join(START)
    assert found == [0, 1, 2]
    check_stop()
