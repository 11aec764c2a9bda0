from __future__ import annotations

import asyncio
import gc
import random
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import longtail
from longtail.serve.batching import Batcher, Gone
from longtail.serve.refusal import Refusal
from longtail.serve.routes import TagOptions, tag_group
from longtail.serve.served import ServedModel


class Bench:
    """A batcher whose work can be held up, and a record of the batches."""

    def __init__(self, **settings: Any) -> None:
        self.go = threading.Event()
        self.go.set()
        self.begun = threading.Event()
        self.calls: list[tuple[Any, list[Any]]] = []
        self.batcher = Batcher(self.work, **{"queued": 10, "batch": 6, "seconds": 30.0, **settings})

    def work(self, group: Any, items: list[Any]) -> list[Any]:
        self.begun.set()
        assert self.go.wait(30)
        self.calls.append((group, items))
        if "bad" in items:
            raise KeyError("bad")
        return [(group, item) for item in items]

    def hold(self) -> None:
        self.go.clear()
        self.begun.clear()

    async def occupy(self) -> asyncio.Task[Any]:
        """A first request that the thread is busy with."""
        self.hold()
        first = asyncio.ensure_future(self.batcher.run("first", ["first"]))
        assert await asyncio.to_thread(self.begun.wait, 30)
        return first


def run(bench: Bench, story: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    async def told() -> Any:
        try:
            return await asyncio.wait_for(story(), 60)
        finally:
            bench.go.set()
            await bench.batcher.close()

    return asyncio.run(told())


def test_what_waits_is_scored_together_in_groups() -> None:
    bench = Bench()

    async def story() -> None:
        first = await bench.occupy()
        others = [asyncio.ensure_future(bench.batcher.run(number % 2, [number])) for number in range(4)]
        await asyncio.sleep(0)
        bench.go.set()
        assert await first == [("first", "first")]
        assert await asyncio.gather(*others) == [[(number % 2, number)] for number in range(4)]

    run(bench, story)
    assert bench.calls == [("first", ["first"]), (0, [0, 2]), (1, [1, 3])]


def test_a_batch_holds_no_more_items_than_its_limit() -> None:
    bench = Bench(batch=3)

    async def story() -> None:
        first = await bench.occupy()
        others = [asyncio.ensure_future(bench.batcher.run("same", [number, number])) for number in range(3)]
        await asyncio.sleep(0)
        bench.go.set()
        await asyncio.gather(first, *others)

    run(bench, story)
    assert [items for _, items in bench.calls] == [["first"], [0, 0], [1, 1], [2, 2]]


def test_an_error_reaches_only_the_request_it_belongs_to() -> None:
    bench = Bench()

    async def story() -> None:
        first = await bench.occupy()
        asked = [("same", ["good"]), ("same", ["bad"]), ("other", ["fine"])]
        others = [asyncio.ensure_future(bench.batcher.run(group, items)) for group, items in asked]
        await asyncio.sleep(0)
        bench.go.set()
        await first
        good, bad, fine = await asyncio.gather(*others, return_exceptions=True)
        assert good == [("same", "good")]
        assert isinstance(bad, KeyError)
        assert fine == [("other", "fine")]

    run(bench, story)


def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    bench = Bench(queued=2, what="corrections")

    async def story() -> None:
        first = await bench.occupy()
        waiting = asyncio.ensure_future(bench.batcher.run("same", ["a", "b"]))
        await asyncio.sleep(0)
        assert bench.batcher.waiting == 2
        with pytest.raises(Refusal, match="2 corrections are waiting; the maximum is 2") as refused:
            await bench.batcher.run("same", ["c"])
        assert refused.value.status == 429
        assert int(refused.value.headers["retry-after"]) >= 1
        bench.go.set()
        await asyncio.gather(first, waiting)
        assert await bench.batcher.run("same", ["c"]) == [("same", "c")]

    run(bench, story)


def test_a_request_larger_than_the_queue_is_taken_when_nothing_waits() -> None:
    bench = Bench(queued=2, batch=2)
    assert len(run(bench, lambda: bench.batcher.run("same", ["a"] * 5))) == 5


def test_a_request_whose_time_is_up_is_refused_and_never_scored() -> None:
    bench = Bench(seconds=0.2)

    async def story() -> None:
        first = await bench.occupy()
        with pytest.raises(Refusal) as refused:
            await bench.batcher.run("late", ["late"])
        assert (refused.value.status, refused.value.code) == (503, "deadline_passed")
        assert bench.batcher.waiting == 0
        bench.go.set()
        await asyncio.gather(first, return_exceptions=True)

    run(bench, story)
    assert [group for group, _ in bench.calls] == ["first"]


class Names:
    """Something that a weak reference can watch."""


def test_a_client_that_hangs_up_leaves_the_queue() -> None:
    bench = Bench()

    async def story() -> None:
        first = await bench.occupy()
        hung_up = asyncio.Event()
        names = Names()
        kept = weakref.ref(names)
        asked = asyncio.ensure_future(bench.batcher.run(names, ["gone"], hung_up.wait))
        del names
        await asyncio.sleep(0)
        assert bench.batcher.waiting == 1
        hung_up.set()
        assert isinstance((await asyncio.wait([asked]))[0].pop().exception(), Gone)
        assert bench.batcher.waiting == 0
        del asked
        gc.collect()
        assert kept() is None, "what it asked for stays in memory"
        bench.go.set()
        await first

    run(bench, story)
    assert [group for group, _ in bench.calls] == ["first"]


def test_closing_finishes_what_waits_and_refuses_the_rest() -> None:
    bench = Bench()

    async def story() -> None:
        first = await bench.occupy()
        waiting = asyncio.ensure_future(bench.batcher.run("same", ["a"]))
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(bench.batcher.close())
        await asyncio.sleep(0.01)
        with pytest.raises(Refusal) as refused:
            await bench.batcher.run("same", ["b"])
        assert (refused.value.status, refused.value.code) == (503, "shutting_down")
        bench.go.set()
        assert await waiting == [("same", "a")]
        await asyncio.gather(first, closing)

    run(bench, story)


def test_results_of_concurrent_requests_are_bit_for_bit_those_of_one_alone(model_directory: Path) -> None:
    model = ServedModel("topics", model_directory)
    alone = longtail.load(model_directory)
    chance = random.Random(0)
    words = ["apple", "rain", "violin", "train", "and", "the", "cloud", "today", "nothing"]
    names = list(alone.label_names_)
    filters = [None, (), tuple(names[:5]), tuple(names[3:9])]
    questions = []
    for _ in range(200):
        texts = [" ".join(chance.choices(words, k=chance.randint(0, 12))) for _ in range(chance.randint(1, 5))]
        questions.append((texts, chance.choice([1, 3, 20, "auto"]), chance.choice(filters), chance.choice(filters)))
    sizes: list[int] = []
    batcher = Batcher(tag_group, queued=10_000, batch=64, seconds=60.0, observe=sizes.append)

    async def ask() -> list[Any]:
        asked = [
            batcher.run(TagOptions(model, k, 100, allow, deny, None), texts) for texts, k, allow, deny in questions
        ]
        try:
            return await asyncio.gather(*asked)
        finally:
            await batcher.close()

    found = asyncio.run(ask())
    for (texts, k, allow, deny), result in zip(questions, found, strict=True):
        assert result == [alone.tag([text], k, allow=allow, deny=deny)[0] for text in texts]
    assert max(sizes) > 5  # they were scored together


def test_the_thread_waits_without_work() -> None:
    bench = Bench()

    async def story() -> float:
        await bench.batcher.run("same", ["a"])
        begun = time.process_time()
        await asyncio.sleep(0.1)
        return time.process_time() - begun

    assert run(bench, story) < 0.05
