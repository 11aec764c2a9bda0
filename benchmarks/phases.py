"""The phases of a service under load, and their measurements."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.load import CONNECTION_ERROR, TIMED_OUT, Record, Target, closed_loop, open_loop, run, schedule
from benchmarks.measure import load_average
from benchmarks.services import Running, Service, ask, get, post, seconds_to_import, started
from longtail.arrays import Array
from longtail.errors import Unavailable

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9}
RAMP = (1, 8)


@dataclass(frozen=True)
class Plan:
    """Durations in seconds, and requests per second.

    The first `settle` seconds of the overload do not count for memory, because buffers and pools fill then.
    """

    capacity: float = 10.0
    steady: float = 20.0
    overload: float = 120.0
    alone: float = 10.0
    rate: float = 200.0
    connections: int = 64
    most_connections: int = 700
    timeout: float = 10.0
    settle: float = 10.0
    seed: int = 0


QUICK = Plan(capacity=1.0, steady=1.0, overload=2.0, alone=1.0, settle=0.5)


@dataclass(frozen=True)
class Phase:
    """The measurements of one phase; times in seconds, memory in bytes."""

    name: str
    seconds: float
    offered: float | None
    answered: float
    statuses: dict[str, int]
    differing: int
    connections: int
    latency: dict[str, float]
    refusal: dict[str, float]
    lag: dict[str, float]
    server_cores: float
    client_cores: float
    cpu_per_request: float
    load: float
    memory: list[tuple[float, int]]
    timeline: list[dict[str, float]]
    quantiles: list[float]


@dataclass(frozen=True)
class Measured:
    """The measurements of one service; `imports` is the part of `ready` that does not depend on the model."""

    key: str
    title: str
    imports: float
    ready: float
    first_request: float
    second_request: float
    alone: dict[str, float]
    phases: dict[str, Phase]


def measure(
    service: Service,
    texts: Sequence[str],
    plan: Plan,
    log: Path,
    tell: Callable[[str], None] = lambda line: print(line, flush=True),
) -> Measured:
    """Start the service and run all phases."""
    tell(service.title)
    requests = [post(service.path, text) for text in texts]
    phases: dict[str, Phase] = {}
    imports = seconds_to_import(service)
    with started(service, log) as running:
        first, second = (check(ask(running.port, requests[0])) for _ in range(2))
        tell(f"  ready after {running.seconds_to_ready:.2f} s (imports {imports:.2f}), first answer {first[1]:.4f} s")
        expected, alone = ask_alone(running, requests, plan.alone)
        texts_target = running.target(requests, expected)
        floor_target = running.target([get(service.live)])

        def closed(name: str, connections: int, seconds: float, target: Target = texts_target) -> Phase:
            load = closed_loop(target, seconds, connections=connections, timeout=plan.timeout)
            return keep(watch(name, running, lambda: run(load), seconds, warm_up=seconds / 5))

        def opened(name: str, rate: float, seconds: float) -> Phase:
            due = schedule(rate, seconds, plan.seed)
            load = open_loop(
                texts_target,
                due,
                connections=plan.connections,
                most_connections=plan.most_connections,
                timeout=plan.timeout,
            )
            return keep(watch(name, running, lambda: run(load), seconds, offered=rate))

        def keep(phase: Phase) -> Phase:
            phases[phase.name] = phase
            tell(f"  {in_a_line(phase)}")
            return phase

        closed("floor", plan.connections, plan.capacity / 2, floor_target)
        for connections in RAMP:
            reached = closed(f"{connections} at a time", connections, plan.capacity / 4).answered
        # Few enough to be answered well before the timeout; otherwise a slow service would have no capacity at all.
        connections = min(plan.connections, max(RAMP[-1], int(reached * plan.timeout / 4)))
        capacity = closed("capacity", connections, plan.capacity).answered
        rate = min(plan.rate, max(1.0, capacity / 2))
        opened("before", rate, plan.steady)
        opened("overload", max(2.0, 2 * capacity), plan.overload)
        opened("after", rate, plan.steady)
    return Measured(service.key, service.title, imports, running.seconds_to_ready, first[1], second[1], alone, phases)


def check(answer: tuple[int, bytes, float]) -> tuple[bytes, float]:
    """Return the body and the time of an answer, which must be 200."""
    status, body, seconds = answer
    if status != 200:
        raise Unavailable(f"a single request was answered with {status}: {body[:300].decode(errors='replace')}")
    return body, seconds


def ask_alone(
    running: Running, requests: Sequence[bytes], seconds: float
) -> tuple[list[bytes | None], dict[str, float]]:
    """Ask for one text after the other for some seconds; return the answers and the percentiles of the times."""
    expected: list[bytes | None] = [None] * len(requests)
    took = []
    end = time.perf_counter() + seconds
    for place, request in enumerate(requests):
        body, needed = check(ask(running.port, request))
        expected[place] = body
        took.append(needed)
        if time.perf_counter() > end:
            break
    return expected, percentiles(np.array(took))


def watch(
    name: str,
    running: Running,
    load: Callable[[], Record],
    seconds: float,
    *,
    offered: float | None = None,
    warm_up: float = 0.0,
) -> Phase:
    """Run a load and record the service's memory each second, and the processor time of both sides."""
    memory: list[tuple[float, int]] = []
    stop = threading.Event()
    begun = time.perf_counter()

    def look() -> None:
        while True:
            memory.append((time.perf_counter() - begun, running.memory()))
            if stop.wait(1.0):
                return

    cpu, own_cpu, busy = running.cpu_seconds(), time.process_time(), load_average()
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        record = load()
    finally:
        stop.set()
        watcher.join()
    took, used, own_used = time.perf_counter() - begun, running.cpu_seconds() - cpu, time.process_time() - own_cpu
    counted = record.after(warm_up)
    in_time = (record.status == 200) & (record.done >= warm_up) & (record.done < seconds)
    refused = counted.status == 429
    return Phase(
        name=name,
        seconds=seconds,
        offered=offered,
        answered=float(np.count_nonzero(in_time) / (seconds - warm_up)),
        statuses={name_of(status): count for status, count in record.counts().items()},
        differing=record.differing,
        connections=record.connections,
        latency=percentiles(counted.latency),
        refusal=percentiles(counted.done[refused] - counted.due[refused]),
        lag=percentiles(counted.lag),
        server_cores=used / took,
        client_cores=own_used / took,
        cpu_per_request=used / max(1, len(record.due)),
        load=busy,
        memory=memory,
        timeline=timeline(record),
        quantiles=np.quantile(counted.latency, np.linspace(0, 1, 1001)).tolist() if len(counted.latency) else [],
    )


def name_of(status: int) -> str:
    """The name of a status in tables.

    >>> name_of(200), name_of(TIMED_OUT)
    ('200', 'timed out')
    """
    return {CONNECTION_ERROR: "connection error", TIMED_OUT: "timed out"}.get(status, str(status))


def percentiles(seconds: Array) -> dict[str, float]:
    """The percentiles for the tables, and the maximum; empty if there are no values.

    >>> percentiles(np.arange(101.0))["p90"]
    90.0
    """
    if not len(seconds):
        return {}
    values = np.percentile(seconds, list(PERCENTILES.values())).tolist()
    return dict(zip(PERCENTILES, values, strict=True)) | {"longest": float(seconds.max())}


def timeline(record: Record) -> list[dict[str, float]]:
    """For each second, the number of answers by status, and the p99 of those with status 200."""
    second = np.floor(np.nan_to_num(record.done, nan=-1)).astype(int)
    lines = []
    for number in range(int(second.max(initial=-1)) + 1):
        came = second == number
        good, refused = came & (record.status == 200), came & (record.status == 429)
        counts = [int(which.sum()) for which in (good, refused, came & ~good & ~refused)]
        line: dict[str, float] = dict(zip(("second", "200", "429", "other"), (number, *counts), strict=True))
        if good.any():
            line["p99"] = float(np.percentile(record.done[good] - record.due[good], 99))
        lines.append(line)
    return lines


def in_a_line(phase: Phase) -> str:
    latency = "  ".join(f"{name} {1e3 * value:.1f}" for name, value in phase.latency.items())
    statuses = ", ".join(f"{count:,} x {status}" for status, count in phase.statuses.items())
    offered = f"{phase.offered:,.0f}/s offered, " if phase.offered else ""
    return (
        f"{phase.name:<12} {offered}{phase.answered:,.0f}/s answered; {statuses}; ms: {latency}; cores: service "
        f"{phase.server_cores:.2f}, client {phase.client_cores:.2f}; load {phase.load:.1f}"
    )
