"""Processes that are killed, memory and disks that are full: training ends with the same bytes, or says why not."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cluster import Cluster, digest_of
from longtail.cli.program import run
from longtail.data import Corpus, write_corpus
from longtail.estimator.checks import planted
from longtail.labels import bisection, vectors
from longtail.prepared import prepare
from longtail.trees import training

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

MANY_TASKS = {"trees.training._WORK_OF_A_PIECE": 500, "trees.training._ROWS_SEARCHED": 8, "labels.bisection._SMALL": 20}
# In pieces, nothing is trained a second time to learn how many tags a row gets.
ALONE = ["--aim", "none"]
LEARNERS = {
    "tree": (["--learner", "tree", "--negatives", "beam", "--leaf-size", "2", "--branching", "2", *ALONE], 12, 50),
    "one-vs-rest": (["--learner", "one-vs-rest", *ALONE], 600, 2000),
}
ODD_WORKER = "tests.work.odd_worker"
HURRIED = {"work.cluster._LONGEST_WITHOUT_WORKERS": 1, "work.cluster._BETWEEN_LOOKS": 0.5, "work.cluster._PATIENCE": 5}
LONGEST = 240  # seconds of any training here
NO_ROOM = r"No space left on device|File too large"


@dataclass
class Job:
    """A training that is started again and again, always with the same command."""

    data: Path
    out: Path
    options: list[str]
    settings: dict[str, float]
    expected: str
    seen: set[str] = field(default_factory=set)

    @property
    def folder(self) -> Path:
        return self.out.with_name(f"{self.out.name}.unfinished")

    def start(self, address: str, **settings: float) -> subprocess.Popen[str]:
        constants = [f"{name}={number}" for name, number in {**self.settings, **settings}.items()]
        command = ["train", str(self.data), "--out", str(self.out), *self.options, "--cluster", address]
        program = [sys.executable, "-m", "tests.work.patched", *constants, "--", "--quiet", *command]
        return subprocess.Popen(program, stderr=subprocess.PIPE, text=True)

    def new_stages(self, client: subprocess.Popen[str]) -> Iterator[str]:
        """Each stage that has not been seen, as soon as its first file is there, until the client ends."""
        while client.poll() is None:
            for path in self.folder.glob("training1-*/*"):
                found = re.fullmatch(r"(.+)\.\d+-\d+", path.name)
                if found and found[1] not in self.seen:
                    self.seen.add(found[1])
                    yield found[1]
            time.sleep(0.002)

    def finish(self, client: subprocess.Popen[str]) -> None:
        """The client ends without an error, and the model has the same bytes as one that was trained in memory."""
        _, told = client.communicate(timeout=LONGEST)
        assert client.returncode == 0, told
        assert digest_of(self.out) == self.expected
        assert not self.folder.exists()

    def refused(self, client: subprocess.Popen[str], code: str, told: str) -> None:
        """The client ends with an error, and there is no model."""
        _, printed = client.communicate(timeout=LONGEST)
        assert client.returncode == 1, printed
        assert re.search(f"^{code}: .*({told})", printed, re.MULTILINE), printed
        assert not self.out.exists()


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    """A prepared corpus for each learner, and the digest of its model."""
    found = {}
    for name, (options, n_labels, _) in LEARNERS.items():
        folder = tmp_path_factory.mktemp(name)
        write_rows(folder / "train.txt", n_labels)
        prepare([folder / "train.txt"], folder / "prepared")
        assert run(["--quiet", "train", str(folder / "prepared"), "--out", str(folder / "expected"), *options]) == 0
        found[name] = folder / "prepared", digest_of(folder / "expected")
    return found


def write_rows(path: Path, n_labels: int, **shape: int) -> None:
    X, Y = planted(np.random.default_rng(0), n_labels=n_labels, **shape)
    write_corpus(Corpus(Y, [str(label) for label in range(n_labels)], features=X), path)


@pytest.fixture
def job(corpora: dict[str, tuple[Path, str]], tmp_path: Path) -> Callable[[str], Job]:
    def made(name: str) -> Job:
        options, _, entries = LEARNERS[name]
        settings = {**MANY_TASKS, "labels.vectors._BLOCK_ENTRIES": entries}
        return Job(corpora[name][0], tmp_path / "model", options, settings, corpora[name][1])

    return made


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler and two slow workers with nannies, which start them again."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as found:
        start_workers(found)
        yield found


def start_workers(cluster: Cluster, *options: str) -> None:
    for _ in range(2):
        cluster.start_worker("--preload", ODD_WORKER, *options, ODD_SECONDS="0.02")
    cluster.workers(2)


@pytest.mark.parametrize("name", LEARNERS)
def test_workers_that_are_killed_in_every_stage_lose_only_their_tasks(
    cluster: Cluster, job: Callable[[str], Job], name: str
) -> None:
    one = job(name)
    cluster.start_worker("--preload", ODD_WORKER, "--no-nanny", ODD_SECONDS="0.02")
    cluster.workers(3)
    client = one.start(cluster.address)
    for _ in one.new_stages(client):
        cluster.kill_worker()
    one.finish(client)
    assert len(one.seen) >= {"tree": 9, "one-vs-rest": 3}[name]


@pytest.mark.parametrize("name", LEARNERS)
def test_a_client_that_is_killed_in_several_stages_goes_on_with_the_same_command(
    cluster: Cluster, job: Callable[[str], Job], name: str
) -> None:
    one = job(name)
    cluster.workers(2)
    client = one.start(cluster.address)
    while any(len(one.seen) % 3 == 1 for _ in one.new_stages(client)):
        client.kill()
        client.communicate()
        client = one.start(cluster.address)
    one.finish(client)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_lost_scheduler_ends_the_client_and_the_same_command_goes_on(
    job: Callable[[str], Job], tmp_path: Path, name: str
) -> None:
    one = job(name)
    with Cluster(tmp_path) as own:
        start_workers(own, "--no-nanny")
        client = one.start(own.address)
        for stage in one.new_stages(client):
            if "training" not in stage:
                continue
            own.kill_scheduler()
            begun = time.monotonic()
            one.refused(client, "no_scheduler", "the connection to the scheduler was lost; .* run the same command")
            assert time.monotonic() - begun < 30
            break
        own.start_scheduler()
        start_workers(own, "--no-nanny")
        one.finish(one.start(own.address))


def test_a_worker_that_runs_out_of_memory_gets_smaller_tasks(job: Callable[[str], Job], tmp_path: Path) -> None:
    one = job("tree")
    one.settings["trees.training._WORK_OF_A_PIECE"] = 1e9
    with Cluster(tmp_path) as own:
        own.kill_scheduler()
        own.start_scheduler(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
        # Its nanny kills it at 95 percent of its memory.
        own.start_worker("--preload", ODD_WORKER, "--memory-limit", "500MiB", ODD_MOST_ITEMS="8")
        own.workers(1)
        client = one.start(own.address)
        pieces = set()
        while client.poll() is None:
            pieces |= {path.name for path in one.folder.glob("training1-*/tree0_training-classifiers.*-*")}
            time.sleep(0.01)
        one.finish(client)
    assert len(pieces) > 1


def test_too_little_memory_is_told_and_the_next_worker_goes_on(job: Callable[[str], Job], tmp_path: Path) -> None:
    one = job("tree")
    with Cluster(tmp_path) as own:
        own.start_worker("--no-nanny", LONGTAIL_MEMORY="1K")
        own.workers(1)
        one.refused(one.start(own.address), "not_enough_memory", "the workers that got it have less")
        own.end_workers()
        own.start_worker("--no-nanny")
        own.workers(1)
        one.finish(one.start(own.address))


@pytest.mark.parametrize("later", [0, 0.1], ids=["after a task", "in the middle of a task"])
def test_a_client_does_not_wait_for_ever_when_its_last_worker_is_killed(
    job: Callable[[str], Job], tmp_path: Path, later: float
) -> None:
    one = job("tree")
    with Cluster(tmp_path) as own:
        own.start_worker("--no-nanny", "--preload", ODD_WORKER, ODD_SECONDS="0.2")
        own.workers(1)
        client = one.start(own.address, **HURRIED)
        assert any("training" in stage for stage in one.new_stages(client))
        time.sleep(later)
        own.end_workers()
        one.refused(client, "no_workers", "no worker is left, .* run the same command")
        own.start_worker("--no-nanny")
        own.workers(1)
        one.finish(one.start(own.address))


def test_a_scheduler_that_does_not_answer_ends_the_client(job: Callable[[str], Job], tmp_path: Path) -> None:
    one = job("tree")
    with Cluster(tmp_path) as own:
        start_workers(own, "--no-nanny")
        client = one.start(own.address, **HURRIED)
        next(one.new_stages(client))
        own.suspend_scheduler()
        one.refused(client, "no_workers", "the scheduler does not answer; .* run the same command")


def test_two_trainings_into_the_same_folder_at_once_are_refused(cluster: Cluster, job: Callable[[str], Job]) -> None:
    one = job("tree")
    first = one.start(cluster.address)
    next(one.new_stages(first))
    first.send_signal(signal.SIGSTOP)
    one.refused(one.start(cluster.address), "folder_in_use", "another process is working in")
    first.send_signal(signal.SIGCONT)
    one.finish(first)


def test_mistakes_are_told_before_work_starts(job: Callable[[str], Job], tmp_path: Path) -> None:
    one = job("tree")
    patience = {"work.cluster._PATIENCE": 1}
    one.refused(one.start("tcp://127.0.0.1:1", **patience), "no_scheduler", "there is no scheduler at")
    with Cluster(tmp_path) as own:
        own.start_worker("--preload", ODD_WORKER, "--no-nanny", ODD_VERSION="0.0.1")
        own.workers(1)
        one.refused(one.start(own.address), "other_version", r"has longtail 0\.0\.1 instead of")
        own.end_workers()
        one.refused(one.start(own.address, **patience), "no_workers", "the cluster has no workers")
    assert not one.folder.exists() or not list(one.folder.glob("training*"))


@pytest.mark.parametrize("hidden", ["data", "out"])
def test_a_worker_that_does_not_see_the_files_is_told(job: Callable[[str], Job], tmp_path: Path, hidden: str) -> None:
    own_mounts = ["unshare", "--mount", "--propagation", "private"]
    if shutil.which("unshare") is None or subprocess.run([*own_mounts, "true"], capture_output=True).returncode:
        pytest.skip("processes cannot have their own mounts here")
    one = job("tree")
    folders = {"data": tmp_path / "data", "out": tmp_path / "models"}
    for folder in folders.values():
        folder.mkdir()
    # Arrays of less than a megabyte are copied to the folder of the training.
    write_rows(tmp_path / "train.txt", 12, n_rows=15_000, n_features=60)
    prepare([tmp_path / "train.txt"], folders["data"] / "prepared")
    one.data, one.out = folders["data"] / "prepared", folders["out"] / "model"
    (tmp_path / "cluster").mkdir()
    with Cluster(tmp_path / "cluster") as own:
        own.start_worker(
            "--no-nanny", inside=[*own_mounts, "sh", "-c", f'mount -t tmpfs none {folders[hidden]}; exec "$@"', "sh"]
        )
        own.workers(1)
        one.refused(one.start(own.address), "path_not_shared", f"does not see {folders[hidden]}")


@pytest.fixture
def many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_WORK_OF_A_PIECE", 500)
    monkeypatch.setattr(vectors, "_BLOCK_ENTRIES", 50)
    monkeypatch.setattr(bisection, "_SMALL", 20)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[tuple[Path, Callable[[int], None]]]:
    """A folder on a disk of its own, and a function that gives it a size in bytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "none", str(disk)]
    if os.name == "nt" or shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")

    def resize(size: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)

    try:
        yield disk, resize
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_full_disk_is_told_and_leaves_nothing_half_written(
    many_tasks: None,
    full_disk: tuple[Path, Callable[[int], None]],
    job: Callable[[str], Job],
    capfd: pytest.CaptureFixture[str],
) -> None:
    disk, resize = full_disk
    one = job("tree")
    write_rows(one.out.with_name("train.txt"), 12)
    data, out = disk / "prepared", disk / "model"
    preparing = ["--quiet", "prepare", str(one.out.with_name("train.txt")), "--out", str(data)]
    learning = ["--quiet", "train", str(data), "--out", str(out), "--jobs", "2", *one.options, "--resume"]
    full, sizes = set(), iter(range(2**13, 2**22, 2**13))
    for command, made in ((preparing, data), (learning, out)):
        while run(command) != 0:
            resize(next(sizes))
            told = capfd.readouterr().err
            assert re.search(NO_ROOM, told), told
            full |= set(re.findall(r"prepared|joining|rows-of-labels|tree0_training", told))
            assert not made.exists()
            assert not list(disk.rglob(".longtail-*.tmp"))
    assert digest_of(out) == one.expected
    assert full == {"prepared", "joining", "rows-of-labels", "tree0_training"}
    assert sorted(path.name for path in disk.iterdir()) == ["model", "prepared"]


def test_a_disk_that_is_full_for_a_worker_ends_the_client(
    cluster: Cluster, full_disk: tuple[Path, Callable[[int], None]], job: Callable[[str], Job]
) -> None:
    disk, resize = full_disk
    one = job("tree")
    one.out = disk / "model"
    resize(2**16)
    one.refused(one.start(cluster.address), "unavailable", NO_ROOM)
    resize(2**22)
    one.finish(one.start(cluster.address))


def test_files_that_may_not_grow_are_told_as_a_full_disk_is(job: Callable[[str], Job]) -> None:
    one = job("one-vs-rest")
    command = ["train", str(one.data), "--out", str(one.out), *one.options, "--resume"]
    program = [sys.executable, "-m", "longtail", "--quiet", *command]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**12, 2**12))

    found = subprocess.run(program, preexec_fn=limited, capture_output=True, text=True, timeout=LONGEST)
    assert found.returncode == 1
    assert re.search(NO_ROOM, found.stderr), found.stderr
    assert not list(one.folder.rglob("*.tmp"))
    subprocess.run(program, check=True, timeout=LONGEST)
    assert digest_of(one.out) == one.expected


def test_few_bytes_travel_through_the_scheduler(cluster: Cluster, job: Callable[[str], Job]) -> None:
    one = job("tree")
    cluster.workers(2)
    before, tasks = cluster.bytes.total, set[str]()
    client = one.start(cluster.address)
    while client.poll() is None:
        tasks |= {path.name for path in one.folder.glob("training1-*/*.*-*")}
        time.sleep(0.01)
    one.finish(client)
    assert len(tasks) > 50
    assert 0 < (cluster.bytes.total - before) / len(tasks) < 10_000
