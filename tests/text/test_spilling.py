"""Frequencies that are counted with runs on disk are those counted in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from longtail import memory
from longtail.errors import InvalidInput
from longtail.native import kernels
from longtail.text import TextFeatures
from longtail.text.spilling import Run, Spill


@pytest.fixture
def texts():
    rng = np.random.default_rng(0)
    return [" ".join(f"w{word}é" for word in rng.zipf(1.3, size=8) % 5000) for _ in range(4000)]


def vocabulary_of(frequencies):
    names = [name.encode() for name in frequencies]
    offsets = np.cumsum([0, *map(len, names)], dtype=np.int64)
    made = kernels.GrowingVocabulary()
    made.add(np.frombuffer(b"".join(names), np.uint8), offsets, np.array(list(frequencies.values()), np.int64))
    return made


@pytest.mark.parametrize("options", [{}, {"min_df": 0.001}, {"subwords": 4, "max_features": 500}, {"n_jobs": 1}])
def test_little_memory_gives_the_same_features(texts, options):
    expected = TextFeatures(**options).fit(texts)
    with memory.limit("1M"):
        found = TextFeatures(**options).fit(iter(texts))
    assert found.feature_names_ == expected.feature_names_
    assert found.idf_.tobytes() == expected.idf_.tobytes()


@pytest.mark.parametrize("most_bytes", [1, 300, 10**9])
def test_runs_are_merged_range_by_range(tmp_path: Path, most_bytes):
    spill = Spill(tmp_path, most_bytes)
    assert not spill
    for frequencies in ({"b": 1, "a": 2, "ü": 1}, {}, {"c": 1, "b": 4}, {"b": 1}):
        spill.add(vocabulary_of(frequencies))
    assert spill
    found = Run.of(spill.merged(2))
    assert kernels.strings(found.text, found.offsets) == ("a", "b")
    assert found.frequencies.tolist() == [2, 6]


def test_the_error_names_the_frequencies_where_no_feature_is_left(texts):
    with memory.limit("1M"), pytest.raises(InvalidInput, match=r"none of the .* features of 4000 texts is left"):
        TextFeatures(min_df=4000).fit(texts)
