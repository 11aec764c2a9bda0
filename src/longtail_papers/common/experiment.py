"""An experiment as its paper's folder states it, and the one runner of all experiments."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from longtail.data import data_set
from longtail.errors import Unavailable
from longtail.progress import task
from longtail_papers.common.benchmarks import Benchmark, load_benchmarks, why_missing
from longtail_papers.common.claims import Claim, statements
from longtail_papers.common.isolated import call_side_by_side
from longtail_papers.common.records import Records, about
from longtail_papers.common.sources import source_digest
from longtail_papers.common.tables import Results, Section

Item = TypeVar("Item")

_log = logging.getLogger(__name__)


@dataclass
class Context:
    """One run of an experiment, as its sections see it.

    Parameters
    ----------
    experiment : Experiment
    directory : path
        Where the results go.
    quick : bool
        Whether to run the small version.
    claims : list of Claim
        Sections append their claims; the runner writes them as the last section.
    """

    experiment: Experiment
    directory: Path
    quick: bool
    claims: list[Claim] = field(default_factory=list)

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The names of the data sets of this version, installed or not."""
        return self.experiment.data_sets_of(quick=self.quick)

    @cached_property
    def benchmarks(self) -> list[Benchmark]:
        """The installed data sets of this version."""
        return load_benchmarks(self.data_sets)

    def records(self, part: str = "") -> Records[Any]:
        """The records of a part of the experiment.

        The small version has its own file: its figures must never replace those of the full version.
        """
        stem = "-".join(filter(None, (self.experiment.name, part, "quick" if self.quick else "runs")))
        code = source_digest(self.experiment.module)
        return Records(self.directory / f"{stem}.json", self.experiment.record, code)


Sections = Callable[[Context], Iterator[Section]]
Measurements = Callable[[Context], Iterator[object]]


@dataclass(frozen=True)
class Experiment:
    """The data sets and sections of an experiment.

    Parameters
    ----------
    name : str
        The results are ``name.md``, ``name.json`` and pictures.
    module : str
        The module that defines the experiment as ``EXPERIMENT``. Records are kept until its code changes, or code
        that it imports.
    title, introduction : str
    data_sets : tuple of str
        Data sets that are not installed are left out.
    sections : tuple of callables
        Each takes the context and yields sections. A section replaces an earlier one with the same title, so a part
        can yield a growing section.
    quick_data_sets : tuple of str or None
        The data sets of the small version, if they differ.
    parts : mapping from str to callable or None
        The parts whose trainings are recorded, each in its own file; a part named "" uses the experiment's name.
        The full version first exhausts the callables' iterators side by side, each in its own process; list the
        longest first.
    record : callable
        Makes a record from its fields as named arguments: a dataclass of plain values, or `dict`.
    """

    name: str
    module: str
    title: str
    introduction: str
    data_sets: tuple[str, ...]
    sections: tuple[Sections, ...]
    quick_data_sets: tuple[str, ...] | None = None
    parts: Mapping[str, Measurements | None] = field(default_factory=dict)
    record: Callable[..., Any] = dict

    def data_sets_of(self, *, quick: bool) -> tuple[str, ...]:
        return self.quick_data_sets if quick and self.quick_data_sets is not None else self.data_sets

    def run(self, directory: Path, *, quick: bool = False) -> list[Path]:
        """Write the results and return the paths of all files; see `longtail_papers.run`."""
        context = Context(self, directory, quick)
        names = context.data_sets
        reasons = {name: why for name in names if (why := why_missing(name)) is not None}
        nothing = len(reasons) == len(names)
        for why in () if nothing else reasons.values():
            _log.warning("left out: %s", why)
        known = [context.records(part) for part in self.parts]
        introduction = " ".join(filter(None, (self.introduction, about(known), _left_out(reasons))))
        results = Results(directory, self.name, self.title, introduction, quick=quick)
        apart = [part for part, measure in self.parts.items() if measure is not None]
        if apart and not quick and not nothing:
            each = [{"module": self.module, "part": part, "directory": str(directory)} for part in apart]
            call_side_by_side(f"{__name__}:run_part", each, f"measuring {', '.join(apart)} side by side")
        for section in chain.from_iterable(sections(context) for sections in self.sections):
            results.put(section)
        if context.claims:
            results.put(statements(context.claims))
        paths = [*results.finish(), *(records.path for records in known if records.path.is_file())]
        if nothing:
            written = f"only the parts that need no data are in {paths[0]}" if paths else "nothing was written"
            why = ". ".join(reasons.values())
            raise Unavailable(
                f"no data set of the experiment {self.name} is installed; {written}. {why}", code="missing_data"
            )
        return paths


def run_part(module: str, part: str, directory: str) -> None:
    """Run a part of the full version for its records; called in its own process."""
    experiment: Experiment = import_module(module).EXPERIMENT
    measure = experiment.parts[part]
    assert measure is not None
    for _ in measure(Context(experiment, Path(directory), quick=False)):
        pass


def tracked(description: str, items: Sequence[Item]) -> Iterator[Item]:
    """Iterate over `items` and report the progress.

    Examples
    --------
    >>> list(tracked("counting", [1, 2, 3]))
    [1, 2, 3]
    """
    with task(description, total=len(items)) as advance:
        for item in items:
            yield item
            advance(1)


def _left_out(names: Iterable[str]) -> str:
    titles = ", ".join(data_set(name).title for name in names)
    return f"Left out, because not found in `$LONGTAIL_DATA`, the cache or the system: {titles}." if titles else ""
