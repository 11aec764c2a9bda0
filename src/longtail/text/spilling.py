"""Frequencies of more features than memory holds: sorted runs of them on disk, merged range by range."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.native import kernels

_BYTES_OF_A_FEATURE = 120  # in a vocabulary, roughly


@dataclass(frozen=True)
class Run:
    """Distinct features in code-point order, as a string table, and the number of texts with each."""

    text: Array
    offsets: Array
    frequencies: Array

    @classmethod
    def of(cls, vocabulary: Any, fewest: float = 0) -> Run:
        """The features of a vocabulary that occur in at least `fewest` texts."""
        frequencies = vocabulary.frequencies()
        ids = vocabulary.sorted(np.flatnonzero(frequencies >= fewest))
        text, offsets = vocabulary.tokens(ids)
        return cls(text, offsets, frequencies[ids])

    @classmethod
    def load(cls, stem: Path) -> Run:
        """The run that `save` wrote, mapped from its files."""
        return cls(*(np.load(f"{stem}-{part}.npy", mmap_mode="r") for part in range(3)))

    def save(self, stem: Path) -> None:
        for part, array in enumerate((self.text, self.offsets, self.frequencies)):
            np.save(f"{stem}-{part}.npy", array)

    def feature(self, place: int) -> bytes:
        begin, end = self.offsets[place : place + 2].tolist()
        return self.text[begin:end].tobytes()

    def place_of(self, feature: bytes) -> int:
        """The place of the first feature that is not less than `feature`."""
        return bisect_left(range(len(self.frequencies)), feature, key=self.feature)

    def part(self, start: int, stop: int) -> Run:
        edges = np.asarray(self.offsets[start : stop + 1])
        text = np.asarray(self.text[edges[0] : edges[-1]])
        return Run(text, edges - edges[0], np.asarray(self.frequencies[start:stop]))


class Spill:
    """Runs of features in a folder.

    Parameters
    ----------
    folder : Path
        An empty folder; the caller removes it.
    most_bytes : float
        Memory that the features of a range may take while runs are merged.
    """

    def __init__(self, folder: Path, most_bytes: float) -> None:
        self._folder, self._most_bytes = folder, most_bytes
        self._numbers = count()  # which several threads may draw from
        self._stems: list[Path] = []

    def __bool__(self) -> bool:
        return bool(self._stems)

    def add(self, vocabulary: Any) -> None:
        """Write the features of a vocabulary to a run of its own."""
        stem = self._folder / f"run{next(self._numbers)}"
        Run.of(vocabulary).save(stem)
        self._stems.append(stem)

    def merged(self, fewest: float) -> Any:
        """A vocabulary of the features that occur in at least `fewest` texts, or of all if none does."""
        whole = kernels.GrowingVocabulary()
        for ranges in self._ranges():
            vocabulary = kernels.GrowingVocabulary()
            for part in ranges:
                vocabulary.add(part.text, part.offsets, part.frequencies)
            found = Run.of(vocabulary, fewest)
            whole.add(found.text, found.offsets, found.frequencies)
        return whole if len(whole.frequencies()) or fewest <= 0 else self.merged(0)

    def _ranges(self) -> Iterator[list[Run]]:
        """The features of all runs, range by range: each range has the same bounds in all runs."""
        runs = [Run.load(stem) for stem in self._stems]
        largest = max(runs, key=lambda run: len(run.frequencies))
        n_features = sum(len(run.frequencies) for run in runs)
        pieces = max(1, math.ceil(n_features * _BYTES_OF_A_FEATURE / self._most_bytes))
        places = np.linspace(0, len(largest.frequencies), pieces + 1).astype(np.int64)[1:-1].tolist()
        bounds = [largest.feature(place) for place in dict.fromkeys(places)]
        edges = [[0, *map(run.place_of, bounds), len(run.frequencies)] for run in runs]
        for number in range(len(bounds) + 1):
            yield [run.part(*own[number : number + 2]) for run, own in zip(runs, edges, strict=True)]
