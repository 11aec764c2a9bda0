"""`longtail plan`: how long a training takes, how much it needs and what limits it, before it is started."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.options import FiniteRange, SectionedCommand, option, takes
from longtail.cli.outputs import check_out, print_json
from longtail.errors import InvalidInput
from longtail.files import check_ending
from longtail.printable import counted, printable

if TYPE_CHECKING:
    from longtail.planning import Costs, Plan, Schedule, Workload

_UNITS = {"K": 10**3, "M": 10**6, "G": 10**9}


def count(text: str) -> int:
    """Read a number such as 337k, 2.8M or 1G.

    >>> count("2.8M"), count("36")
    (2800000, 36)
    """
    written = text.strip().upper()
    unit = written[-1:] if written[-1:] in _UNITS else ""
    try:
        number = float(written.removesuffix(unit)) * _UNITS.get(unit, 1)
        if not 1 <= number <= 10**15 or abs(number - round(number)) > 1e-6 * number:
            raise ValueError
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a count; give a number from 1 to 1e15, which may end in k, M or G, as in 2.8M"
        ) from None
    return round(number)


@dataclass(frozen=True)
class SizeOptions:
    """The size of the data; the fields are those of `longtail.planning.Workload`."""

    section = "Data"

    rows: int | None = option(parse=count, metavar="N", help="Rows, e.g. 1.7M.")
    labels: int | None = option(parse=count, metavar="N", help="Labels, e.g. 2.8M.")
    features: int | None = option(parse=count, metavar="N", help="Features, e.g. 337k.")
    per_row: float | None = option(type=FiniteRange(0, min_open=True), metavar="X", help="Mean features of a row.")
    labels_per_row: float | None = option(type=FiniteRange(0, min_open=True), metavar="X", help="Mean labels of a row.")
    skew: float = option(
        type=FiniteRange(0, 3),
        default=0.8,
        show_default=True,
        help="Skew of the label frequencies: the r-th most frequent label has rows in proportion to r^-SKEW.",
    )

    def workload(self, data: str | None, **learner: Any) -> Workload:
        """The size of DATA, or that of the options."""
        from longtail.planning import Workload
        from longtail.prepared import open_prepared

        given = {name: getattr(self, name) for name in ("rows", "labels", "features", "per_row", "labels_per_row")}
        flags = {name: f"--{name.replace('_', '-')}" for name in given}
        if data is not None:
            if any(value is not None for value in given.values()):
                raise InvalidInput(f"give either DATA or {', '.join(flags.values())}")
            corpus = open_prepared(data)
            return Workload.of(corpus.features, corpus.labels, **learner)
        if missing := [flags[name] for name, value in given.items() if value is None]:
            raise InvalidInput(f"give the directory of a prepared corpus, or also {', '.join(missing)}")
        return Workload(**given, skew=self.skew, **learner)


@dataclass(frozen=True)
class PlannedLearnerOptions:
    """What to train, as in `longtail train`."""

    section = "Learner"

    learner: str = option(
        type=click.Choice(["tree", "one-vs-rest"]), default="tree", show_default=True, help="What to train."
    )
    negatives: str = option(
        type=click.Choice(["siblings", "beam"]), default="siblings", show_default=True, help="As in `longtail train`."
    )
    leaf_size: int = option(type=click.IntRange(1), default=100, show_default=True, help="As in `longtail train`.")
    branching: int = option(type=click.IntRange(2), default=64, show_default=True, help="As in `longtail train`.")
    beam: int = option(type=click.IntRange(1), default=10, show_default=True, help="As in `longtail train`.")


@dataclass(frozen=True)
class PlaceOptions:
    """Who does the work."""

    section = "Machines"

    cores: int | None = option(type=click.IntRange(1), help="Cores of the one machine.  [default: those of this one]")
    workers: int = option(
        type=click.IntRange(1), default=4, show_default=True, help="Workers of a cluster, with one thread each."
    )
    memory: str | None = option(metavar="SIZE", help="Memory of the one machine, and of each worker, e.g. 8G.")
    network: str = option(
        metavar="SIZE", default="1G", show_default=True, help="What the shared file system moves in a second."
    )
    costs: str | None = option(
        metavar="FILE",
        help="Read the costs of the machine from FILE; if there is no such file, measure this machine and write it.",
    )

    def read_costs(self) -> Costs:
        """The costs in the file, or those of this machine."""
        from longtail.planning import Costs, calibrate

        if self.costs is not None and Path(self.costs).is_file():
            return Costs.load(self.costs)
        if self.costs is not None:
            check_ending(self.costs, [".json"], "costs are written")
        check_out(self.costs)
        costs = calibrate()
        if self.costs is not None:
            costs.save(self.costs)
        return costs


@click.command(cls=SectionedCommand)
@click.argument("data", required=False)
@takes(sizes=SizeOptions, learner=PlannedLearnerOptions, place=PlaceOptions)
@click.option(
    "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="How to print the plan."
)
def command(
    data: str | None, sizes: SizeOptions, learner: PlannedLearnerOptions, place: PlaceOptions, output: str
) -> None:
    """Plan a training: time, memory, disk and network, on one machine and on a cluster.

    DATA is a directory that `longtail prepare` wrote. Without it, give the size of the data. Counts may end in k, M or
    G.

    The time comes from costs that are measured on this machine in about 15 seconds; keep them with --costs.
    """
    from longtail.memory import parse_bytes
    from longtail.parallel import count_cores
    from longtail.planning import plan

    load = sizes.workload(data, **asdict(learner))
    memory = None if place.memory is None else parse_bytes(place.memory)
    network = parse_bytes(place.network)
    cores = place.cores or count_cores()
    found = plan(load, place.read_costs(), cores=cores, workers=place.workers, memory=memory, network=network)
    if output == "json":
        print_json(asdict(found), indent=2)
    else:
        _show(load, found)


def _show(load: Workload, found: Plan) -> None:
    from longtail.cli.tables import show, simple_table
    from longtail.memory import format_bytes

    click.echo(
        f"{load.rows:,} rows, {load.labels:,} labels, {load.features:,} features; "
        f"{load.per_row:,.4g} features and {load.labels_per_row:,.4g} labels per row"
    )
    machine, cluster = found.machine, found.cluster
    places = [counted(machine.workers, "core"), counted(cluster.workers, "worker")]
    numbers = ["tasks", "CPU", "longest", "memory", "reads", "writes"]
    stages = [
        [
            stage.name,
            f"{stage.tasks:,}",
            *(duration(seconds) for seconds in (stage.cpu_seconds, stage.longest_seconds)),
            *(format_bytes(size) for size in (stage.task_bytes, stage.read_bytes, stage.written_bytes)),
        ]
        for stage in found.stages
    ]
    show(simple_table(["stage", *numbers], stages, right=numbers), "")
    both = machine, cluster
    times = [
        [stage.name, *(f"{duration(each.stages[place].seconds)}, {each.stages[place].limit}" for each in both)]
        for place, stage in enumerate(found.stages)
    ]
    times.append(["in all", *(f"{duration(each.seconds)}, mostly {each.limit}" for each in both)])
    show(simple_table(["time, and what limits it", *places], times), "")
    needs = [
        ["memory of the largest task", *(format_bytes(each.worker_bytes) for each in both)],
        ["memory of the client", "in the same process", format_bytes(cluster.client_bytes)],
        ["disk: prepared corpus", *[format_bytes(found.prepared_bytes)] * 2],
        ["disk: unfinished work", *[format_bytes(found.pieces_bytes)] * 2],
        ["disk: model", *[format_bytes(found.model_bytes)] * 2],
        ["over the network", "-", format_bytes(cluster.network_bytes)],
        ["through the scheduler", "-", format_bytes(cluster.scheduler_bytes)],
        ["rows predicted in a second", *(f"{found.rows_per_second * each.workers:,.0f}" for each in both)],
    ]
    show(simple_table(["needs", *places], needs))
    for each, place in zip((machine, cluster), places, strict=True):
        _show_problems(each, place)


def _show_problems(schedule: Schedule, place: str) -> None:
    for problem in schedule.problems:
        click.echo(printable(f"does not fit on {place}: {problem}"))


def duration(seconds: float) -> str:
    """A time for people to read.

    >>> duration(0.04), duration(100), duration(5400), duration(200_000)
    ('0.0 s', '100 s', '90 min', '56 h')
    """
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    for unit, size, most in (("min", 60, 7200), ("h", 3600, 172_800 * 2)):
        if seconds < most:
            return f"{seconds / size:.0f} {unit}" if seconds / size >= 10 else f"{seconds / size:.1f} {unit}"
    return f"{seconds / 86_400:.0f} days"
