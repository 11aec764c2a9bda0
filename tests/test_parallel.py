"""Threads over blocks: order, errors, bounds."""

from __future__ import annotations

import threading
import time

import pytest
from threadpoolctl import threadpool_info

from longtail.errors import InvalidInput
from longtail.parallel import Stopped, check_stop, count_cores, map_blocks, resolve_jobs, split


@pytest.mark.parametrize("jobs", [1, 2, 5, None])
def test_results_come_in_the_order_of_the_blocks(jobs):
    def slow_first(block):
        time.sleep(0.01 if block == 0 else 0)
        return block * block

    assert list(map_blocks(slow_first, range(20), jobs)) == [i * i for i in range(20)]


@pytest.mark.parametrize("jobs", [1, 3])
def test_an_error_in_a_block_reaches_the_caller_and_ends_the_work(jobs):
    started = []

    def fail(block):
        started.append(block)
        if block == 2:
            raise RuntimeError("block 2")
        return block

    with pytest.raises(RuntimeError, match="block 2"):
        list(map_blocks(fail, range(1000), jobs))
    assert len(started) < 50


def test_a_failing_block_is_told_while_an_earlier_one_still_runs():
    begun, stopped = threading.Event(), []

    def run(block):
        if block == 1:
            assert begun.wait(60)
            raise RuntimeError("block 1")
        begun.set()
        try:
            for _ in range(6000):  # a minute, if nothing stops it
                check_stop()
                time.sleep(0.01)
        except Stopped:
            stopped.append(block)
            raise

    start = time.monotonic()
    with pytest.raises(RuntimeError, match="block 1"):
        list(map_blocks(run, [0, 1], 2))
    assert stopped == [0]
    assert time.monotonic() - start < 30


def test_results_before_a_failing_block_still_come():
    taken = threading.Event()

    def fail(block):
        if block == 3:
            assert taken.wait(60)
            raise RuntimeError("block 3")
        return block

    results = map_blocks(fail, range(4), 4)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    taken.set()
    with pytest.raises(RuntimeError, match="block 3"):
        next(results)


def test_only_a_few_results_wait_at_a_time():
    lock, waiting, most = threading.Lock(), 0, 0

    def produce(block):
        nonlocal waiting, most
        with lock:
            waiting += 1
            most = max(most, waiting)
        return block

    for _ in map_blocks(produce, range(100), 2):
        with lock:
            waiting -= 1
    assert most <= 4


def test_blas_keeps_to_one_thread_while_ours_run():
    def threads(_):
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    for found in map_blocks(threads, range(3), 2):
        assert set(found) <= {1}


def test_overlapping_work_leaves_blas_as_it_was():
    def limits():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = limits()
    one, other = (map_blocks(lambda block: block, range(6), 2) for _ in range(2))
    next(one), next(other)
    list(one)
    assert set(limits()) <= {1}
    list(other)
    assert limits() == before


def test_numbers_of_threads_count_from_either_end():
    assert resolve_jobs(None) == resolve_jobs(-1) == count_cores()
    assert resolve_jobs(-1000) == 1
    assert resolve_jobs(32) == 32
    assert resolve_jobs(10_000) == resolve_jobs(2**63) == max(32, 4 * count_cores())
    with pytest.raises(InvalidInput, match="n_jobs is 0"):
        resolve_jobs(0)


def test_slices_cover_everything_once():
    assert [part for block in split(10, 3) for part in range(10)[block]] == list(range(10))
    assert split(0, 3) == []


def test_a_single_block_is_worked_on_in_the_calling_thread():
    assert list(map_blocks(lambda block: (block, threading.get_ident()), ["only"], 8)) == [
        ("only", threading.get_ident())
    ]
    with pytest.raises(InvalidInput, match="n_jobs is 0"):
        list(map_blocks(abs, [1], 0))


def test_blocks_are_taken_only_a_little_ahead():
    taken = 0

    def blocks():
        nonlocal taken
        for block in range(50):
            taken += 1
            yield block

    for done, result in enumerate(map_blocks(lambda block: block, blocks(), n_jobs=2)):
        assert result == done
        assert taken <= done + 3
