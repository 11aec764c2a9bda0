"""Measures one learner on one data set in its own process.

`main` gets the path of a request. It trains, saves, loads and predicts, then writes ``result.json`` and the predicted
labels beside the request. It runs in the learner's environment and needs only NumPy and SciPy.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

K = 5
WARM_UP_ROWS = 50
FEWEST_SINGLE_ROWS, MOST_SINGLE_ROWS = 500, 2_000
SINGLE_SECONDS, MOST_SINGLE_SECONDS, BATCH_SECONDS = 10.0, 60.0, 5.0
MOST_BATCH_PASSES = 5


class Skipped(Exception):
    """The learner cannot run in this environment; the message says why."""


def peak_memory() -> int:
    """The peak resident memory of this process so far, in bytes; 0 if the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows, where the peers do not run either
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else 1024 * int(peak)


def processor_seconds() -> float:
    """The processor time of this process and of the children that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def count_rows(rows: Any) -> int:
    """The number of rows of a matrix or a list."""
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def size_on_disk(path: Path) -> int:
    """The bytes of a file, or of all files below a folder."""
    return path.stat().st_size if path.is_file() else sum(p.stat().st_size for p in path.rglob("*") if p.is_file())


def build(request: dict[str, Any]) -> Any:
    """Make the adapter that the request names; raise `Skipped` if its packages are not installed."""
    module, _, name = request["adapter"].partition(":")
    try:
        return getattr(importlib.import_module(module), name)(threads=request["threads"], **request["settings"])
    except (ImportError, AttributeError, TypeError) as error:
        raise Skipped(f"cannot be built: {error}") from error


def measure(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Train, save, load and predict as the request says; return all figures."""
    data, model = Path(request["data"]), folder / "model"
    learner = build(request)
    X, Y = learner.prepare(*learner.read_training(data), data, folder)
    gc.collect()
    result: dict[str, Any] = {"status": "ok", "version": learner.version(), "memory_before": peak_memory()}

    started, worked = time.perf_counter(), processor_seconds()
    learner.train(X, Y)
    result["train_seconds"] = time.perf_counter() - started
    result["train_cpu_seconds"] = processor_seconds() - worked
    result["memory_peak"] = peak_memory()
    result["memory_growth"] = result["memory_peak"] - result["memory_before"]
    del X, Y

    learner.save(model)
    result["model_bytes"] = size_on_disk(model)
    learner.forget()
    gc.collect()
    started = time.perf_counter()
    learner.load(model)
    result["load_seconds"] = time.perf_counter() - started

    X_test = learner.read_test(data)
    result |= measure_batch(learner, X_test, folder)
    result |= measure_single_rows(learner, X_test)
    return result


def measure_batch(learner: Any, X_test: Any, folder: Path) -> dict[str, Any]:
    """The median of several passes over all test rows, after a small warm-up."""
    learner.predict(X_test[:WARM_UP_ROWS], K)
    passes: list[float] = []
    while not passes or (len(passes) < MOST_BATCH_PASSES and sum(passes) < BATCH_SECONDS):
        started = time.perf_counter()
        top = learner.predict(X_test, K)
        passes.append(time.perf_counter() - started)
    top, n_rows = np.asarray(top, dtype=np.int32), count_rows(X_test)
    if top.shape != (n_rows, K):
        raise ValueError(f"predicted labels of shape {top.shape}; expected {(n_rows, K)}")
    np.save(folder / "top.npy", top)
    return {"batch_seconds": float(np.median(passes)), "rows_per_second": n_rows / float(np.median(passes))}


def measure_single_rows(learner: Any, X_test: Any) -> dict[str, Any]:
    """Latency of one row at a time, in the form that the learner's own interface takes."""
    rows = min(MOST_SINGLE_ROWS, count_rows(X_test))
    inputs = [learner.single_input(X_test[row]) for row in range(rows)]
    answer: Callable[..., Any] = learner.predict_one
    for single in inputs[:WARM_UP_ROWS]:
        answer(single, K)
    latencies: list[float] = []
    begun = time.perf_counter()
    for single in inputs:
        started = time.perf_counter()
        answer(single, K)
        latencies.append(time.perf_counter() - started)
        enough = len(latencies) >= FEWEST_SINGLE_ROWS
        if time.perf_counter() - begun > (SINGLE_SECONDS if enough else MOST_SINGLE_SECONDS):
            break
    median, p99 = np.percentile(latencies, [50, 99])
    return {
        "single_rows": len(latencies),
        "latency_median": float(median),
        "latency_p99": float(p99),
    }


def main() -> None:
    path = Path(sys.argv[1])
    request = json.loads(path.read_text(encoding="utf-8"))
    try:
        result = measure(request, path.parent)
    except Skipped as reason:
        result = {"status": "skipped", "reason": str(reason)}
    (path.parent / "result.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
