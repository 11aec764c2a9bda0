"""Memory plans: sizes in and out of words, and refusal before allocation."""

from __future__ import annotations

import pytest

from longtail.errors import InvalidInput, NotEnoughMemory
from longtail.memory import MemoryPlan, available_memory, current_limit, format_bytes, limit, parse_bytes
from longtail.parallel import map_blocks


@pytest.mark.parametrize(
    ("text", "size"), [("512", 512), ("4K", 4096), ("1.5k", 1536), ("2 GiB", 2**31), ("3MB", 3 * 2**20), ("1T", 2**40)]
)
def test_sizes_are_read(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1G", "0", "4X", "nan", "inf", "G"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(InvalidInput, match="is not a size"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (2**20, "1.0 MiB"), (5 * 2**29, "2.5 GiB"), (2**42, "4.0 TiB")]
)
def test_sizes_are_written(size, text):
    assert format_bytes(size) == text


def test_the_limit_comes_from_the_environment_or_the_machine(monkeypatch):
    monkeypatch.setenv("LONGTAIL_MEMORY", "3G")
    assert available_memory() == 3 * 2**30
    monkeypatch.delenv("LONGTAIL_MEMORY")
    assert available_memory() > 2**20


def test_a_limit_holds_inside_its_block_and_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("LONGTAIL_MEMORY", "3G")
    with limit("2K"):
        assert available_memory() == 2048
        with limit(None):
            assert available_memory() == 2048
        with limit(10):
            assert available_memory() == 10
        assert current_limit() == 2048
    assert current_limit() is None
    assert available_memory() == 3 * 2**30
    with pytest.raises(NotEnoughMemory), limit("1K"):
        MemoryPlan("the work", {"large": 2**21}).check()
    assert available_memory() == 3 * 2**30


def test_a_limit_holds_in_threads(monkeypatch):
    monkeypatch.setenv("LONGTAIL_MEMORY", "3G")
    with limit("5M"):
        assert set(map_blocks(lambda block: available_memory(), range(8), n_jobs=4)) == {5 * 2**20}
    assert set(map_blocks(lambda block: available_memory(), range(8), n_jobs=4)) == {3 * 2**30}


@pytest.mark.parametrize("size", [0, -1, "much"])
def test_a_limit_is_a_size(size):
    with pytest.raises(InvalidInput), limit(size):
        pass


def test_a_plan_that_does_not_fit_says_what_needs_how_much_and_what_to_do(monkeypatch):
    monkeypatch.setenv("LONGTAIL_MEMORY", "1M")
    plan = MemoryPlan("the work", {"small": 10, "large": 2**21}, "Do less.")
    with pytest.raises(NotEnoughMemory) as caught:
        plan.check()
    assert str(caught.value) == (
        "the work needs 2.0 MiB, but only 1.0 MiB are available (large 2.0 MiB, small 10 B). Do less."
    )
    assert MemoryPlan("less work", {"small": 10}).check().total == 10
