"""`Work`: who does the tasks of a training, and where their results are kept.

A stage is a function that is called for ranges of items: rows, labels, or nodes of a tree. It gets matrices and the
results of earlier stages, and returns arrays. The result of an item must not depend on the range it is in, so that the
model is the same however the items are divided.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail import progress
from longtail.arrays import Array
from longtail.parallel import map_blocks, resolve_jobs
from longtail.work.results import Piece, Range, Results
from longtail.work.rows import Rows, even_ranges

if TYPE_CHECKING:
    from longtail.work.folder import Folder

Function = Callable[..., Piece]
_LEAST_TASKS = 256

working_in: ContextVar[Folder | None] = ContextVar("longtail_work", default=None)


@dataclass(frozen=True)
class Needs:
    """What the items of a stage need: time and memory, as `Work.run` describes."""

    costs: Array | None = None
    memory: Array | None = None
    results: Array | None = None

    def amount(self, start: int, stop: int) -> int:
        """The relative duration of a task."""
        return stop - start if self.costs is None else max(1, int(self._sums[stop] - self._sums[start]))

    def total(self, ranges: Sequence[Range]) -> int:
        """The relative duration of all tasks."""
        return sum(self.amount(*each) for each in ranges)

    def longest_first(self, ranges: Sequence[Range]) -> list[int]:
        """The places of ranges, the most expensive first, so that no worker starts a long task last."""
        return sorted(range(len(ranges)), key=lambda place: (-self.amount(*ranges[place]), place))

    def bytes_of(self, start: int, stop: int) -> int:
        """The bytes of a task: for the largest of its items, and for the results of all."""
        largest = 0 if self.memory is None else int(self.memory[start:stop].max(initial=0))
        return largest + (0 if self.results is None else int(self.results[start:stop].sum()))

    @cached_property
    def _sums(self) -> Array:
        return np.concatenate([[0], np.cumsum(np.asarray(self.costs))])


class Work(ABC):
    """A training whose stages run one after another."""

    is_stored: bool
    jobs: int | None  # the threads that a task may start if it is the only one of its stage

    @abstractmethod
    def add(self, name: str, matrix: Rows) -> None:
        """Add a matrix to those that `begin` got."""

    @abstractmethod
    def matrix(self, name: str) -> Any:
        """A matrix of this training, as an argument of stages; they receive it as `Rows`."""

    @abstractmethod
    def opened(self, name: str) -> Rows:
        """A matrix of this training, in memory or mapped."""

    @abstractmethod
    def keep(self, name: str, arrays: Piece) -> Any:
        """Arrays as an argument of stages; they receive the mapping."""

    @abstractmethod
    def divide(self, costs: Array, most: float) -> Sequence[Range]:
        """Ranges of items that cost at most `most`, or of single items that cost more."""

    def run(
        self,
        stage: str,
        function: Function,
        ranges: Sequence[Range],
        *arguments: Any,
        costs: Array | None = None,
        memory: Array | None = None,
        results: Array | None = None,
    ) -> Results:
        """Call ``function(*arguments, start, stop)`` for every range.

        Parameters
        ----------
        stage : str
            A name that no other stage of this training has; progress bars show it.
        function : callable
            A function of a module.
        ranges : list of pairs of int
            Each pair belongs to one task, and to one result.
        arguments
            Small values, what `matrix` and `keep` have returned, and results of earlier stages.
        costs : array or None
            The relative duration of each item: long tasks start first.
        memory : array or None
            The bytes that each item needs while it is worked on.
        results : array or None
            The bytes that each item needs from then on until the task is finished.
        """
        return self._run(stage, function, ranges, arguments, Needs(costs, memory, results))

    @abstractmethod
    def _run(
        self, stage: str, function: Function, ranges: Sequence[Range], arguments: tuple[Any, ...], needs: Needs
    ) -> Results:
        """`run`, with what the items need."""

    def settled(self, name: str, found: tuple[str, ...]) -> tuple[str, ...]:
        """A decision that depends on the machine; an interrupted training goes on with its earlier decision."""
        return found

    def each(self, *arguments: Any, **options: Any) -> Iterable[Piece]:
        """The results of `run`, to be used one after another; in memory, none is kept."""
        return self.run(*arguments, **options)

    @abstractmethod
    def side_by_side(self, results: Iterable[Piece], name: str, shape: tuple[int, int]) -> tuple[Array, list[Piece]]:
        """The float32 matrix whose columns are the arrays `name` of `each` result, and the other arrays."""

    @abstractmethod
    def join(self, stage: str, results: Any, names: Sequence[str]) -> dict[str, Array]:
        """The arrays of all results of an earlier stage, one after another; results in memory give them up.

        Name first the arrays that take longest to join.
        """


class InMemory(Work):
    """Threads of this process do the work, and results stay in memory."""

    is_stored = False

    def __init__(self, n_jobs: int | None, matrices: Mapping[str, Any]) -> None:
        resolve_jobs(n_jobs)
        self.jobs = n_jobs
        self._matrices = {name: Rows.of(matrix, name) for name, matrix in matrices.items()}

    def add(self, name: str, matrix: Rows) -> None:
        self._matrices[name] = matrix

    def matrix(self, name: str) -> Any:
        return self._matrices[name]

    def opened(self, name: str) -> Rows:
        return self._matrices[name]

    def keep(self, name: str, arrays: Piece) -> Any:
        return arrays

    def divide(self, costs: Array, most: float) -> Sequence[Range]:
        return even_ranges(costs, min(most, float(np.sum(costs)) / _LEAST_TASKS))

    def _run(
        self, stage: str, function: Function, ranges: Sequence[Range], arguments: tuple[Any, ...], needs: Needs
    ) -> Results:
        order = needs.longest_first(ranges)
        found = self._found(stage, function, [ranges[place] for place in order], arguments, needs)
        done: list[Piece] = [{}] * len(ranges)
        for place, piece in zip(order, found, strict=True):
            done[place] = piece
        return Results(ranges, done)

    def each(
        self, stage: str, function: Function, ranges: Sequence[Range], *arguments: Any, **needs: Array | None
    ) -> Iterator[Piece]:
        return self._found(stage, function, ranges, arguments, Needs(**needs))

    def _found(
        self, stage: str, function: Function, ranges: Sequence[Range], arguments: tuple[Any, ...], needs: Needs
    ) -> Iterator[Piece]:
        """Results in the order of the ranges."""
        with progress.task(shown(stage), total=needs.total(ranges)) as advance:
            found = map_blocks(lambda each: function(*arguments, *each), ranges, self.jobs)
            for each, piece in zip(ranges, found, strict=True):
                yield piece
                advance(needs.amount(*each))

    def side_by_side(self, results: Iterable[Piece], name: str, shape: tuple[int, int]) -> tuple[Array, list[Piece]]:
        matrix, place = np.zeros(shape, dtype=np.float32), 0
        rest: list[Piece] = []
        for piece in results:
            columns = piece[name]
            matrix[:, place : place + columns.shape[1]] = columns
            place += columns.shape[1]
            rest.append({key: piece[key] for key in piece if key != name})
        return matrix, rest

    def join(self, stage: str, results: Any, names: Sequence[str]) -> dict[str, Array]:
        return {name: np.concatenate([piece.pop(name) for piece in results]) for name in names}


def shown(stage: str) -> str:
    """The name of a stage for people: without the number of the tree or training."""
    return stage.split("_")[-1].replace("-", " ")


def begin(about: Mapping[str, Any], n_jobs: int | None, **matrices: Any) -> Work:
    """Start a training on checked matrices: in memory or, inside `in_pieces`, in files.

    `about` tells this training from others: all that its result depends on besides the matrices.
    """
    folder = working_in.get()
    return InMemory(n_jobs, matrices) if folder is None else folder.begin(about, n_jobs, matrices)


def is_in_pieces() -> bool:
    """Whether trainings here keep their results in pieces on disk."""
    return working_in.get() is not None
