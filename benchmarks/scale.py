"""Training beyond memory and beyond one process: ``python -m benchmarks.scale``.

Each data set is prepared, then a label tree is trained on it in memory, in pieces with a memory limit, in pieces after
a kill in the middle, and by two workers of a Dask cluster. The models must have the same bytes. Every step is a command
of its own; the peak memory is that of the process with the most.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import psutil

from benchmarks.large import AMAZON_3M, write_rows
from benchmarks.measure import ROOT
from longtail.data import find_data_set
from longtail.pictures import Line, Panel, Picture
from longtail_papers.common import Column, Results, Section, Table

LONGTAIL = [sys.executable, "-m", "longtail.cli"]
TRAIN = ["--learner", "tree", "--negatives", "siblings"]
STEPS = ("prepare", "in memory", "in pieces", "in pieces, killed and continued", "two workers")
TEST_ROWS = 10_000


@dataclass(frozen=True)
class Measured:
    """One step: wall time, processor time, peak memory of a process, and the model that it made."""

    step: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    model: str = ""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["yso-fi"], help="yso-fi, or amazon-3m[:share]")
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--memory", default="1G", help="memory limit in pieces and of each worker")
    parser.add_argument("--kill-after", type=float, default=5, help="seconds of training before the kill")
    parser.add_argument("--cache", default=str(ROOT / ".bench"))
    parser.add_argument("--out", help="folder for the results; default: results in the cache")
    options = parser.parse_args(arguments)
    cache = Path(options.cache).resolve()
    results = Results(
        Path(options.out) if options.out else cache / "results", "scale", "Beyond memory and one process", __doc__ or ""
    )
    found: dict[str, list[Measured]] = {}
    for name in options.data:
        folder = cache / "scale" / name.replace(":", "-")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        train, test = files_of(name, folder)
        found[name] = []
        for measured in measure(train, test, folder, options.steps, options.memory, options.kill_after):
            print(json.dumps({"data": name} | vars(measured)), flush=True)
            found[name].append(measured)
            results.put(section_of(found))
    for path in results.finish():
        print(path)


def files_of(name: str, folder: Path) -> tuple[Path, Path]:
    """The training and test file of a data set; a synthetic one is written."""
    if not name.startswith("amazon-3m"):
        home = find_data_set(name)
        return home / "train.jsonl.gz", home / "test.jsonl.gz"
    shape = AMAZON_3M.scaled(float(name.partition(":")[2] or 1))
    train, test = folder / "train.txt", folder / "test.txt"
    write_rows(train, shape, shape.rows)
    write_rows(test, shape, TEST_ROWS, seed=1, covering=False)
    return train, test


def measure(
    train: Path, test: Path, folder: Path, steps: Sequence[str], memory: str, kill_after: float
) -> Iterator[Measured]:
    """Run the steps; the corpus is prepared in any case."""
    prepared, model = folder / "prepared", folder / "model"
    yield run("prepare", ["prepare", str(train), "--out", str(prepared), "--memory", memory])
    run("", ["prepare", str(test), "--out", str(folder / "test"), "--like", str(prepared)])
    command = ["train", str(prepared), "--out", str(model), "--force", *TRAIN]
    limited = [*command, "--resume", "--memory", memory]
    if "in memory" in steps:
        yield run("in memory", command, model)
    if "in pieces" in steps:
        yield run("in pieces", limited, model)
    if "in pieces, killed and continued" in steps:
        shutil.rmtree(model)
        first = run("", limited, kill_after=kill_after)
        again = run("in pieces, killed and continued", limited, model)
        peak = max(first.peak_bytes, again.peak_bytes)
        seconds = first.seconds + again.seconds, first.cpu_seconds + again.cpu_seconds
        yield Measured(again.step, *seconds, peak, again.model)
    if "two workers" in steps:
        with cluster(2, memory, folder) as address:
            yield run("two workers", [*command, "--cluster", address], model, also=workers_of(address))


def run(
    step: str,
    arguments: list[str],
    model: Path | None = None,
    *,
    kill_after: float | None = None,
    also: Sequence[psutil.Process] = (),
) -> Measured:
    """Run a command to its end, or kill it; the processor time includes that of the processes in `also`."""
    before = sum(cpu_of(each) for each in also)
    started = time.perf_counter()
    child = subprocess.Popen([*LONGTAIL, "--quiet", *arguments])
    if kill_after is not None:
        time.sleep(kill_after)
        child.send_signal(signal.SIGKILL)
    _, status, usage = os.wait4(child.pid, 0)
    if status and kill_after is None:
        raise SystemExit(f"{' '.join(arguments)} failed")
    seconds = time.perf_counter() - started
    peak = max([usage.ru_maxrss * 1024, *(each.memory_info().rss for each in also)])
    cpu = usage.ru_utime + usage.ru_stime + sum(cpu_of(each) for each in also) - before
    return Measured(step, seconds, cpu, peak, "" if model is None else digest_of(model))


def cpu_of(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def digest_of(model: Path) -> str:
    """The first digits of a SHA-256 over all array files of a model."""
    digest = sha256()
    for path in sorted(model.glob("*.npy")):
        digest.update(path.name.encode())
        with open(path, "rb") as file:
            while block := file.read(2**24):
                digest.update(block)
    return digest.hexdigest()[:12]


@contextmanager
def cluster(n_workers: int, memory: str, folder: Path) -> Iterator[str]:
    """A scheduler and single-threaded workers as processes on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    dask = [sys.executable, "-m", "dask"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = [*dask, "scheduler", "--host", "127.0.0.1", "--port", str(port), "--dashboard-address", "127.0.0.1:0"]
    limited = ["--nthreads", "1", "--memory-limit", memory.replace("G", "GiB")]
    worker = [*dask, "worker", address, *limited, "--no-dashboard"]
    started = [subprocess.Popen(scheduler, **quiet)]
    try:
        for number in range(n_workers):
            started.append(subprocess.Popen([*worker, "--local-directory", str(folder / f"worker{number}")], **quiet))
        from distributed import Client

        with Client(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(n_workers, timeout=60)
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()


def workers_of(address: str) -> list[psutil.Process]:
    """The processes of the workers of a scheduler."""
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        return [psutil.Process(pid) for pid in client.run(os.getpid).values()]


def section_of(found: dict[str, list[Measured]]) -> Section:
    """A table and a picture of all measurements so far."""
    columns = (
        Column("data"),
        Column("step"),
        *(Column(name, ".1f") for name in ("s", "CPU s")),
        Column("times in memory", ".2f"),
        Column("peak MiB", ",.0f"),
        Column("model"),
    )
    lines = []
    for name, steps in found.items():
        known = {each.step: each.seconds for each in steps}
        for each in steps:
            ratio = each.seconds / known["in memory"] if "in memory" in known and each.model else None
            lines.append((name, each.step, each.seconds, each.cpu_seconds, ratio, each.peak_bytes / 2**20, each.model))
    trained = [each for steps in found.values() for each in steps if each.model]
    numbers = list(range(1, len(trained) + 1))
    panels = [
        Panel("Time", "step", "seconds", [Line("", numbers, [each.seconds for each in trained], 0)]),
        Panel("Memory", "step", "peak (MiB)", [Line("", numbers, [each.peak_bytes / 2**20 for each in trained], 0)]),
    ]
    text = "The same *model* means the same bytes. The memory of workers is that at the end of the step."
    picture = Picture("scale.png", "Training in memory, in pieces and by workers", [panels])
    return Section("Scale", text, [Table("Steps", columns, lines)], [picture])


if __name__ == "__main__":
    main()
