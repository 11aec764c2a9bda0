"""Runs the learners: one process per learner, data set and round, interleaved so that all share the same conditions.

Every round is recorded, with its figures or the reason why there are none.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import Prepared
from benchmarks.environments import interpreter
from benchmarks.learners import Learner
from longtail.arrays import Array
from longtail.errors import Unavailable

ROOT = Path(__file__).resolve().parents[1]
TIMED_OUT = 98
BUSY = 0.5
# On Linux a process starts with the peak memory of its parent, so a bare interpreter stands in between. It also
# enforces the timeout.
LAUNCHER = f"""
import subprocess, sys
try:
    sys.exit(abs(subprocess.run(sys.argv[2:], timeout=float(sys.argv[1])).returncode))
except subprocess.TimeoutExpired:
    sys.exit({TIMED_OUT})
"""
# Other environments do not have the benchmarks installed, so the path is passed.
CHILD = "import sys; sys.path.append(sys.argv.pop(1)); from benchmarks.child import main; main()"


def load_average() -> float:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def with_warning(introduction: str, effect: str) -> str:
    """The introduction of a report, with a warning if the machine is busy already."""
    load = load_average()
    if load < BUSY:
        return introduction
    warning = f"Other work ran at the same time (load {load:.1f} at the start): {effect}."
    print(warning, flush=True)
    return f"{introduction} {warning}"


@dataclass(frozen=True)
class Measurement:
    """One round of one learner on one data set; `figures` is empty unless `status` is "ok"."""

    data_set: str
    learner: str
    round: int
    status: str
    reason: str = ""
    version: str = ""
    figures: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Measurement:
        return cls(**values)


@dataclass(frozen=True)
class Conditions:
    """The settings that all children share."""

    cache: Path
    threads: int = 2
    timeout: float = 1800.0
    everything: bool = False


def child_environment(threads: int) -> dict[str, str]:
    """The environment variables of a child, with the number of threads for every library."""
    count = str(threads)
    names = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "RAYON")
    return {**os.environ, **{f"{name}_NUM_THREADS": count for name in names}}


def run_child(python: Path, request: dict[str, Any], folder: Path, timeout: float) -> dict[str, Any]:
    """Run `benchmarks.child` in an empty `folder`; return its result, or "crashed" or "timed out" with a reason."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    child = [str(python), "-I", "-c", CHILD, str(ROOT), str(folder / "request.json")]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LAUNCHER, str(timeout), *child],
        cwd=ROOT,
        env=child_environment(request["threads"]),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    (folder / "output.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    if done.returncode == TIMED_OUT:
        return {"status": "timed out", "reason": f"after {timeout:g} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["nothing was printed"])[-1]
        return {"status": "crashed", "reason": f"status {done.returncode}: {last}"}
    result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return result


def run_learner(
    learner: Learner,
    python: Path,
    data: Path,
    name: str,
    conditions: Conditions,
    judge: Callable[[Array], dict[str, float]],
) -> dict[str, Any]:
    """Run a learner on prepared files; return its result, with the metrics of its predictions if it succeeded."""
    request = {"adapter": learner.adapter, "settings": dict(learner.settings), "threads": conditions.threads}
    folder = (conditions.cache / "runs" / name / learner.key).resolve()
    result = run_child(python, {**request, "data": str(data.resolve())}, folder, conditions.timeout)
    if result["status"] == "ok":
        result |= judge(np.load(folder / "top.npy", allow_pickle=False))
    shutil.rmtree(folder / "model", ignore_errors=True)
    return result


def measure_once(learner: Learner, data: Prepared, round_number: int, conditions: Conditions) -> Measurement:
    """One round of one learner on one data set."""
    work = data.facts["labels"] * data.facts["nonzeros"]
    if work > learner.most_work and not conditions.everything:
        reason = f"labels x non-zeros are {work:.0e}, more than {learner.most_work:.0e}; --everything runs it"
        return Measurement(data.name, learner.key, round_number, "skipped", reason)
    if learner.needs and not data.facts.get(learner.needs):
        reason = f"the data set has no {learner.needs.replace('_', ' ')}"
        return Measurement(data.name, learner.key, round_number, "skipped", reason)
    try:
        python = interpreter(learner.environment, conditions.cache / "venvs")
    except Unavailable as missing:
        return Measurement(data.name, learner.key, round_number, "skipped", str(missing))
    result = run_learner(learner, python, data.folder, data.name, conditions, data.judge)
    told = {"status", "reason", "version"}
    figures = {name: float(value) for name, value in result.items() if name not in told}
    known = {name: result[name] for name in told & result.keys()}
    return Measurement(data.name, learner.key, round_number, **known, figures=figures)


def measure_rounds(
    learners: Iterable[Learner],
    data: Prepared,
    rounds: int,
    conditions: Conditions,
    measure: Callable[[Learner, Prepared, int, Conditions], Measurement] = measure_once,
) -> Iterator[Measurement]:
    """Run every learner once per round; one that gave no figures is not run again."""
    remaining = list(learners)
    for round_number in range(1, rounds + 1):
        for learner in list(remaining):
            measurement = measure(learner, data, round_number, conditions)
            if measurement.status != "ok":
                remaining.remove(learner)
            yield measurement
