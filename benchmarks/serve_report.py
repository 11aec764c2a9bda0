"""The tables and pictures of services under load."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.phases import Measured, Phase
from longtail.pictures import Line, Panel, Picture
from longtail_papers.common import Cell, Column, Table

CAPACITY, P99_MS, GROWTH, READY = 1_000, 50.0, 0.05, 1.0
LATENCIES = ("p50", "p90", "p99", "p99.9")
SHOWN = {"before": "200 per second", "overload": "overload", "after": "after the overload"}


def phases_table(measured: Measured) -> Table:
    """One line for each phase of a service."""
    columns = (
        Column("phase"),
        *(Column(name, ",.0f") for name in ("offered/s", "answered/s")),
        *(Column(name, ",d") for name in ("200", "429", "other")),
        *(Column(f"{name} ms", ",.2f") for name in LATENCIES),
        Column("429: p99 ms", ",.2f"),
        Column("client late p99 ms", ",.2f"),
        *(Column(name, ".2f") for name in ("CPU ms per request", "service cores", "client cores")),
        *(Column(name, ",.0f") for name in ("RSS MiB", "most MiB")),
        Column("load", ".1f"),
    )
    return Table("Phases", columns, [_phase_line(phase) for phase in measured.phases.values()])


def _phase_line(phase: Phase) -> tuple[Cell, ...]:
    counts = phase.statuses
    memory = [size / 2**20 for _, size in phase.memory]
    return (
        *(phase.name, phase.offered, phase.answered),
        *(counts.get("200", 0), counts.get("429", 0), others(phase)),
        *(_milliseconds(phase.latency, name) for name in LATENCIES),
        *(_milliseconds(phase.refusal, "p99"), _milliseconds(phase.lag, "p99")),
        *(1e3 * phase.cpu_per_request, phase.server_cores, phase.client_cores),
        *(memory[0], max(memory), phase.load),
    )


def start_table(services: Sequence[Measured]) -> Table:
    """The main figures of all services, side by side."""
    columns = (
        Column("service"),
        *(Column(name, ".2f") for name in ("imports s", "ready s")),
        *(Column(name, ",.1f") for name in ("first request ms", "second ms", "alone p50 ms", "floor/s", "capacity/s")),
        Column("steady/s", ",.0f"),
        *(Column(name, ",.1f") for name in ("p50 ms", "p99 ms", "overload 200/s")),
        *(Column(name, ".1%") for name in ("200", "429", "other")),
        *(Column(name, ",.1f") for name in ("overload p99 ms", "p99 ms after")),
        Column("RSS MiB", ",.0f"),
    )
    return Table("Services", columns, [_service_line(measured) for measured in services])


def _service_line(measured: Measured) -> tuple[Cell, ...]:
    phases = measured.phases
    before, overload, after = (phases[name] for name in SHOWN)
    total = max(1, sum(overload.statuses.values()))
    return (
        *(measured.title, measured.imports, measured.ready),
        *(1e3 * measured.first_request, 1e3 * measured.second_request),
        *(_milliseconds(measured.alone, "p50"), phases["floor"].answered, phases["capacity"].answered, before.offered),
        *(_milliseconds(before.latency, "p50"), _milliseconds(before.latency, "p99"), overload.answered),
        *(overload.statuses.get(name, 0) / total for name in ("200", "429")),
        others(overload) / total,
        *(_milliseconds(overload.latency, "p99"), _milliseconds(after.latency, "p99")),
        max(size for _, size in overload.memory) / 2**20,
    )


def bars_of(measured: Measured, settle: float) -> list[tuple[Cell, ...]]:
    """The bars of the service: name, measured value, required value, and whether it is met."""
    phases = measured.phases
    before, overload, after = (phases[name] for name in SHOWN)
    capacity = phases["capacity"].answered
    growth, slope = memory_growth(overload.memory, settle)
    wrong = {name: count for name, count in overload.statuses.items() if name not in ("200", "429")}
    differing = sum(phase.differing for phase in phases.values())
    elsewhere = sum(others(phase) for name, phase in phases.items() if name != "overload")
    p99, later = before.latency.get("p99", np.inf) * 1e3, after.latency.get("p99", np.inf) * 1e3
    loading = max(0.0, measured.ready - measured.imports)
    refused = overload.statuses.get("429", 0)
    lines: list[tuple[str, str, str, bool]] = [
        ("single texts per second", f"{capacity:,.0f}", f"at least {CAPACITY:,}", capacity >= CAPACITY),
        (f"p99 at {before.offered:,.0f} per second", f"{p99:.1f} ms", f"under {P99_MS:g} ms", p99 < P99_MS),
        (
            f"memory in {overload.seconds:.0f} s at twice the capacity",
            f"{growth:+.1%} after the first {settle:g} s, {slope / 2**20:+.2f} MiB a minute",
            f"at most {GROWTH:+.0%}",
            growth <= GROWTH,
        ),
        ("refusals there are 429s", f"{refused:,} refused, other: {wrong or 'none'}", "no other", not wrong),
        ("errors in the other phases", f"{elsewhere:,}", "none", elsewhere == 0),
        ("answers that differ from those alone", f"{differing:,}", "none", differing == 0),
        ("p99 after the overload", f"{later:.1f} ms", f"under {P99_MS:g} ms", later < P99_MS),
        (
            "from start to ready, without the imports",
            f"{loading:.2f} s of {measured.ready:.2f} s",
            f"under {READY:g} s",
            loading < READY,
        ),
    ]
    return [(*line[:3], "met" if line[3] else "NOT met") for line in lines]


def memory_growth(memory: Sequence[tuple[float, int]], settle: float) -> tuple[float, float]:
    """Relative growth from the size after `settle` seconds to the largest one, and bytes per minute by least squares.

    >>> memory_growth([(0, 50), (10, 100), (40, 101), (70, 102)], settle=10)
    (0.02, 2.0)
    """
    kept = np.array([entry for entry in memory if entry[0] >= settle] or memory[-1:])
    growth = float(kept[:, 1].max() / kept[0, 1] - 1)
    slope = float(np.polyfit(kept[:, 0] / 60, kept[:, 1], 1)[0]) if len(kept) > 1 else 0.0
    return round(growth, 6), round(slope, 6)


def others(phase: Phase) -> int:
    """Answers and failures that are neither 200 nor 429."""
    return sum(count for name, count in phase.statuses.items() if name not in ("200", "429"))


def pictures_of(measured: Measured) -> list[Picture]:
    """Latencies of the three phases with a schedule, and the timeline of the overload."""
    phases = measured.phases
    lines, tails = [], []
    for style, (name, title) in enumerate(SHOWN.items()):
        quantiles = phases[name].quantiles
        if quantiles:
            shares = np.linspace(0, 1, len(quantiles))
            milliseconds = [1e3 * value for value in quantiles]
            lines.append(Line(title, milliseconds, (100 * shares).tolist(), style, marked=False))
            tails.append(Line(title, milliseconds[:-1], (100 * (1 - shares[:-1])).tolist(), style, marked=False))
    latency = [
        Panel("Answered within", "ms", "% of requests", lines, log_x=True),
        Panel("Slower than", "ms", "% of requests", tails, log_x=True, log_y=True),
    ]
    return [
        Picture(f"serve-{measured.key}-latency.png", f"Latency of {measured.title}", [latency]),
        Picture(f"serve-{measured.key}-overload.png", f"Overload of {measured.title}", [_overload(phases["overload"])]),
    ]


def _overload(phase: Phase) -> list[Panel]:
    seconds = [line["second"] for line in phase.timeline]
    answers = [
        Line(name, seconds, [line[name] for line in phase.timeline], style, marked=False)
        for style, name in enumerate(("200", "429", "other"))
    ]
    timed = [line for line in phase.timeline if "p99" in line]
    p99 = Line("", [line["second"] for line in timed], [1e3 * line["p99"] for line in timed], marked=False)
    memory = Line("", [when for when, _ in phase.memory], [size / 2**20 for _, size in phase.memory], marked=False)
    return [
        Panel("Answers by status", "seconds", "per second", answers),
        Panel("p99 of answers with status 200", "seconds", "ms", [p99], log_y=bool(timed)),
        Panel("Resident memory of the service", "seconds", "MiB", [memory]),
    ]


def _milliseconds(times: dict[str, float], name: str) -> float | None:
    return 1e3 * times[name] if name in times else None
