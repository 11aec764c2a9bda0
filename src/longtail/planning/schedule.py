"""`plan`: how long a training takes, how much it needs and what limits it, on one machine and on many workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from longtail.errors import InvalidInput
from longtail.memory import format_bytes
from longtail.planning.costs import Costs
from longtail.planning.stages import Stage, model_bytes, predicting_seconds, prepared_bytes, stages_of
from longtail.planning.workload import Workload

_PROCESS = 150 * 2**20  # a process that has done nothing yet
_CLIENT_BYTES_OF_A_LABEL = 150  # as measured: counts, costs, the order of the labels and the tree
_SCHEDULER_BYTES_OF_A_TASK = 10_000


class Timed(NamedTuple):
    """The time of a stage, and what limits it: the processors, the longest task, the network or the client."""

    stage: str
    seconds: float
    limit: str


@dataclass(frozen=True)
class Schedule:
    """A training by a number of workers.

    Parameters
    ----------
    place : {"machine", "cluster"}
        Threads of one process, or workers that share a network file system.
    workers : int
    stages : tuple of Timed
    seconds : float
        From the first stage to the last.
    limit : str
        What limits the largest part of the time.
    worker_bytes, client_bytes : int
        Memory of the worker with the largest task, and of the client; they are the same process on one machine.
    network_bytes, scheduler_bytes : int
        What workers and client read and write over the network, and what goes through the scheduler.
    problems : tuple of str
        What does not fit; empty if the training can be done.
    """

    place: str
    workers: int
    stages: tuple[Timed, ...]
    seconds: float
    limit: str
    worker_bytes: int
    client_bytes: int
    network_bytes: int
    scheduler_bytes: int
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """What a training needs.

    Parameters
    ----------
    stages : tuple of Stage
        The work, whoever does it.
    prepared_bytes, pieces_bytes, model_bytes : int
        On disk: the prepared corpus, the unfinished work at its end, which includes the model, and the model.
    cpu_seconds : float
        Processor time of all stages.
    rows_per_second : float
        Rows that one core predicts.
    machine, cluster : Schedule
    """

    stages: tuple[Stage, ...]
    prepared_bytes: int
    pieces_bytes: int
    model_bytes: int
    cpu_seconds: float
    rows_per_second: float
    machine: Schedule
    cluster: Schedule


def plan(
    load: Workload, costs: Costs, *, cores: int = 1, workers: int = 1, memory: int | None = None, network: float = 1e9
) -> Plan:
    """Plan a training.

    Parameters
    ----------
    load : Workload
    costs : Costs
        As `calibrate` measures them.
    cores : int
        Threads on one machine.
    workers : int
        Workers of a cluster, each with one thread.
    memory : int or None
        Memory limit of the machine and of each worker; None knows no limit.
    network : float
        Bytes that the shared file system reads and writes in a second, for all workers together.

    Examples
    --------
    >>> costs = Costs(1e-7, 5e-8, 1.5e-8, 1.5e-8, 1e-9, 1e-8, 0.5, 7e-9, 4e-9, 2e-9, 3.0)
    >>> found = plan(Workload(1_000_000, 500_000, 200_000, 50, 10), costs, workers=4, memory=2**32)
    >>> found.cluster.seconds < found.machine.seconds, found.cluster.problems
    (True, ())
    """
    for name, value in (("cores", cores), ("workers", workers), ("memory", memory), ("network", network)):
        if value is not None and not value > 0:
            raise InvalidInput(f"{name}: {value}; expected a number above 0")
    stages, model = stages_of(load, costs), model_bytes(load, costs)
    # Joined files stay until the end, and are then given the names of the model.
    kept = [stage.written_bytes for stage in stages if stage.name != "preparing"]
    return Plan(
        stages,
        prepared_bytes(load),
        sum(kept),
        model,
        sum(stage.cpu_seconds for stage in stages),
        1 / predicting_seconds(load, costs),
        _schedule("machine", load, stages, cores, memory, None),
        _schedule("cluster", load, stages, workers, memory, network),
    )


def client_bytes(load: Workload) -> int:
    """The memory of the client: it counts the rows of labels, then holds a few numbers for each label."""
    entries = [load.rows * load.per_row, load.rows * load.labels_per_row]
    # Columns are counted as 64-bit numbers. Where a file has 64-bit numbers already, 32-bit ones are made of them.
    counted = 8 * entries[1] if entries[1] < 2**31 else 0
    converted = 4 * sum(each for each in entries if each >= 2**31)
    return int(_PROCESS + max(counted, converted, _CLIENT_BYTES_OF_A_LABEL * load.frequencies.total()))


def _schedule(
    place: str, load: Workload, stages: tuple[Stage, ...], workers: int, memory: int | None, network: float | None
) -> Schedule:
    timed = tuple(_timed(stage, workers, network) for stage in stages)
    limits: dict[str, float] = {}
    for each in timed:
        limits[each.limit] = limits.get(each.limit, 0) + each.seconds
    largest = max(stages, key=lambda stage: stage.task_bytes)
    client, worker = client_bytes(load), _PROCESS + largest.task_bytes
    task = f"the largest task ({largest.name})"
    if place == "machine":
        client = worker = client + largest.task_bytes
        needs = {f"the process with {task}": client}
    else:
        needs = {"the client": client, f"the worker with {task}": worker}
    moved, tasks = 0, 0
    if network is not None:
        moved = sum(stage.read_bytes + stage.written_bytes for stage in stages)
        tasks = sum(stage.tasks for stage in stages if not stage.by_client)
    problems = tuple(
        f"{name} needs {format_bytes(size)} of memory, and has {format_bytes(memory)}"
        for name, size in needs.items()
        if memory is not None and size > memory
    )
    seconds, limit = sum(each.seconds for each in timed), max(limits, key=lambda name: limits[name])
    scheduled = tasks * _SCHEDULER_BYTES_OF_A_TASK
    return Schedule(place, workers, timed, seconds, limit, worker, client, moved, scheduled, problems)


def _timed(stage: Stage, workers: int, network: float | None) -> Timed:
    """A stage takes as long as the slowest of what it needs; its tasks are spread evenly over the workers."""
    if stage.by_client:
        options = {"client": stage.cpu_seconds}
    else:
        options = {"processors": stage.cpu_seconds / workers, "longest task": stage.longest_seconds}
    if network is not None:
        options["network"] = (stage.read_bytes + stage.written_bytes) / network
    limit = max(options, key=lambda name: options[name])
    return Timed(stage.name, options[limit], limit)
