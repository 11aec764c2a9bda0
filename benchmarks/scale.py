"""Training beyond memory and beyond one process: ``python -m benchmarks.scale``.

Each data set is prepared, then a label tree is trained on it in memory, in pieces with a memory limit, and by two
workers of a Dask cluster; then again, with a process killed in the middle. The models must have the same bytes. The
last model is evaluated and served. Every step is a command of its own; the peak memory is that of the process with the
most.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median

import psutil

from benchmarks.cluster import Cluster, digest_of
from benchmarks.large import AMAZON_3M, write_rows
from benchmarks.measure import ROOT
from benchmarks.services import ask, longtail_service, post, started
from longtail.data import find_data_set, iter_batches
from longtail.pictures import Line, Panel, Picture
from longtail_papers.common import Column, Results, Section, Table

LONGTAIL = [sys.executable, "-m", "longtail"]
TRAIN = ["--learner", "tree", "--negatives", "siblings", "--aim", "none"]
KILLED = "in pieces, killed and continued"
WITH_WORKERS: dict[str, Callable[[Cluster, psutil.Process], None] | None] = {
    "two workers": None,
    "two workers, one killed": lambda cluster, client: cluster.kill_worker(),
    "two workers, scheduler killed": lambda cluster, client: cluster.kill_scheduler(),
    "two workers, client killed": lambda cluster, client: client.kill(),
}
EVALUATED, SERVED = "evaluated", "served"
STEPS = ("prepare", "in memory", "in pieces", KILLED, *WITH_WORKERS, EVALUATED, SERVED)
BETWEEN_LOOKS = 0.05  # seconds
TEST_ROWS = 10_000
REQUESTS = 300


@dataclass(frozen=True)
class Measured:
    """One step: wall time, processor time, peak memory of a process, and what else is known of it.

    Parameters
    ----------
    model : str
        The first digits of the checksum of the model that it made.
    bytes_per_task : float or None
        Bytes through the scheduler.
    stages : dict
        The seconds of each stage of a training in pieces.
    result : str
        What it found out about the model.
    """

    step: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    model: str = ""
    bytes_per_task: float | None = None
    stages: dict[str, float] = field(default_factory=dict)
    result: str = ""

    def after(self, first: Measured) -> Measured:
        """Both together."""
        seconds, cpu = first.seconds + self.seconds, first.cpu_seconds + self.cpu_seconds
        return Measured(self.step, seconds, cpu, max(first.peak_bytes, self.peak_bytes), self.model)


@dataclass
class Pieces:
    """The pieces and stages that a training has finished, looked for now and then: they are removed at the end."""

    folder: Path
    names: set[str] = field(default_factory=set)
    ends: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.time)

    def look(self) -> None:
        with suppress(FileNotFoundError):
            for path in self.folder.glob("training*/*"):
                if path.suffix == ".index":
                    self.ends.setdefault(path.stem, path.stat().st_mtime)
                elif "-" in path.suffix:
                    self.names.add(str(path))

    def stages(self) -> dict[str, float]:
        """The seconds of each stage; what comes before a stage counts as part of it."""
        found: dict[str, float] = {}
        before = self.started
        for name, end in sorted(self.ends.items(), key=lambda each: each[1]):
            stage = name.rpartition("_")[2]
            found[stage] = found.get(stage, 0) + end - before
            before = end
        return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", nargs="+", default=["yso-fi"], help="yso-fi, or amazon-3m[:share], e.g. amazon-3m:0.1"
    )
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--memory", default="1G", help="memory limit in pieces and of workers")
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
    train, test = folder / "train.jsonl", folder / "test.jsonl"
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
    for step, is_killed in (("in pieces", False), (KILLED, True)):
        if step not in steps:
            continue
        shutil.rmtree(model, ignore_errors=True)
        pieces = Pieces(folder / "model.unfinished")
        if is_killed:
            first = run("", limited, meanwhile=pieces.look, harm_after=kill_after, harm=psutil.Process.kill)
        done = run(step, limited, model, meanwhile=pieces.look)
        yield replace(done.after(first) if is_killed else done, stages=pieces.stages())
    for step, harm in WITH_WORKERS.items():
        if step in steps:
            shutil.rmtree(model, ignore_errors=True)
            yield with_workers(step, command, model, memory, kill_after, harm)
    if EVALUATED in steps:
        found = folder / "found.json"
        done = run(EVALUATED, ["evaluate", str(model), str(folder / "test"), "--json"], out=found)
        metrics = json.loads(found.read_text(encoding="utf-8"))["metrics"]
        yield replace(done, result="P@1/3/5 " + "/".join(f"{100 * metrics[f'P@{k}']:.2f}" for k in (1, 3, 5)))
    if SERVED in steps:
        yield served(model, test)


def served(model: Path, test: Path) -> Measured:
    """Start the service and ask it for the tags of one text after another."""
    texts = next(iter_batches(test, n_rows=REQUESTS)).rows
    begun, took = time.perf_counter(), []
    with started(longtail_service(model), model.parent / "service.log") as service:
        for text in texts:
            status, _, seconds = ask(service.port, post("/v1/tag", text))
            if status != 200:
                raise SystemExit(f"the service answered with status {status}")
            took.append(1000 * seconds)
        told = f"ready after {service.seconds_to_ready:.1f} s; {len(took)} requests, median {median(took):.1f} ms"
        cpu, memory = service.cpu_seconds(), service.memory()
    return Measured(SERVED, time.perf_counter() - begun, cpu, memory, result=told)


def with_workers(
    step: str,
    command: list[str],
    model: Path,
    memory: str,
    harm_after: float,
    harm: Callable[[Cluster, psutil.Process], None] | None,
) -> Measured:
    """Train with two workers; after harm has been done, the same command is run again if there is no model."""
    pieces = Pieces(model.with_name(f"{model.name}.unfinished"))
    limit = "--memory-limit", memory.replace("G", "GiB")
    with Cluster(model.parent) as cluster:
        command = [*command, "--cluster", cluster.address]

        def started() -> list[psutil.Process]:
            for _ in range(2):
                cluster.start_worker(*limit)
            return cluster.workers(2)

        workers, before = started(), cluster.bytes.total
        if harm is None:
            done = run(step, command, model, workers=workers, meanwhile=pieces.look)
            return replace(done, bytes_per_task=(cluster.bytes.total - before) / len(pieces.names))
        first = run(step, command, model, workers=workers, harm_after=harm_after, harm=partial(harm, cluster))
        if first.model:
            return first
        if not cluster.is_running():
            cluster.start_scheduler()
            workers = started()
        return run(step, command, model, workers=workers).after(first)


def run(
    step: str,
    arguments: list[str],
    model: Path | None = None,
    *,
    workers: Sequence[psutil.Process] = (),
    meanwhile: Callable[[], None] = lambda: None,
    out: Path | None = None,
    harm_after: float | None = None,
    harm: Callable[[psutil.Process], None] = lambda client: None,
) -> Measured:
    """Run a command to its end, with the time and memory of its workers; only after harm it may fail."""
    started, peak, is_harmed = time.perf_counter(), 0, False
    before = sum(cpu_of(each) for each in workers)
    with open(os.devnull if out is None else out, "wb") as output:
        child = subprocess.Popen([*LONGTAIL, "--quiet", *arguments], stdout=output)
    while True:
        ended, status, usage = os.wait4(child.pid, os.WNOHANG)
        seconds = time.perf_counter() - started
        if ended:
            break
        if harm_after is not None and not is_harmed and seconds > harm_after:
            harm(psutil.Process(child.pid))
            is_harmed = True
        meanwhile()
        peak = max(peak, *map(peak_of, [child.pid, *(each.pid for each in workers)]))
        time.sleep(BETWEEN_LOOKS)
    if status and not is_harmed:
        raise SystemExit(f"{' '.join(arguments)} failed")
    cpu = usage.ru_utime + usage.ru_stime + max(0, sum(cpu_of(each) for each in workers) - before)
    made = "" if model is None or not model.exists() else digest_of(model)
    return Measured(step, seconds, cpu, peak, made)


def cpu_of(process: psutil.Process) -> float:
    """The processor time of a process; 0 if it was killed."""
    with suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0


def peak_of(pid: int) -> int:
    """The peak resident memory of a process, or its present one where the system does not tell; 0 if it has ended.

    The usage that `wait4` returns would count the memory of this process, from which it was forked.
    """
    with suppress(psutil.NoSuchProcess, OSError):
        try:
            lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
            return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
        except (FileNotFoundError, StopIteration):
            return int(psutil.Process(pid).memory_info().rss)
    return 0


def section_of(found: dict[str, list[Measured]]) -> Section:
    """A table and a picture of all measurements so far."""
    columns = (
        Column("data"),
        Column("step"),
        *(Column(name, ".1f") for name in ("s", "CPU s")),
        Column("times in memory", ".2f"),
        Column("peak MiB", ",.0f"),
        Column("bytes per task through the scheduler", ",.0f"),
        Column("model"),
        Column("result"),
    )
    lines = []
    for name, steps in found.items():
        known = {each.step: each.seconds for each in steps}
        for each in steps:
            ratio = each.seconds / known["in memory"] if "in memory" in known and each.model else None
            peak = each.peak_bytes / 2**20
            told = each.bytes_per_task, each.model, each.result
            lines.append((name, each.step, each.seconds, each.cpu_seconds, ratio, peak, *told))
    trained = [each for steps in found.values() for each in steps if each.model]
    numbers = list(range(1, len(trained) + 1))
    panels = [
        Panel("Time", "step", "seconds", [Line("", numbers, [each.seconds for each in trained], 0)]),
        Panel("Memory", "step", "peak (MiB)", [Line("", numbers, [each.peak_bytes / 2**20 for each in trained], 0)]),
    ]
    text = "The same *model* means the same bytes. The bytes through the scheduler include its connections when idle."
    picture = Picture("scale.png", "Training in memory, in pieces and by workers", [panels])
    stages = [
        (name, each.step, stage.replace("-", " "), seconds)
        for name, steps in found.items()
        for each in steps
        for stage, seconds in each.stages.items()
    ]
    of_stages = Table("Stages", (Column("data"), Column("step"), Column("stage"), Column("s", ".1f")), stages)
    return Section("Scale", text, [Table("Steps", columns, lines), of_stages], [picture])


if __name__ == "__main__":
    main()
