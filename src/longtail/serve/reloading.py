"""`Reloading`: new versions of models take the place of old ones while the service answers.

A model is loaded and warmed in a thread of its own. Requests under way finish on the old version, which then goes.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Sequence

from longtail.errors import LongtailError
from longtail.serve.batching import Batcher
from longtail.serve.refusal import Refusal, shortened
from longtail.serve.served import ServedModel
from longtail.store import inspect_model

_log = logging.getLogger(__name__)

_MOST_WAITING = 8


class Reloading:
    """Loads models again, one at a time.

    Parameters
    ----------
    models : dict
        The models by name; a new version replaces the old one here.
    seconds : float
        Maximum time that a request waits for its models.
    changed : callable
        Called in the thread with the name of each model that has a new version, and whether it was loaded.
    """

    def __init__(self, models: dict[str, ServedModel], seconds: float, changed: Callable[[str, bool], None]) -> None:
        self._models = models
        self._changed = changed
        self.queue = Batcher(self._load, queued=_MOST_WAITING, batch=1, seconds=seconds, name="longtail-loading")
        self._begun: set[asyncio.Task[list[bool]]] = set()

    async def run(self, names: Sequence[str]) -> list[bool]:
        """Load these models again, and return which of them have changed; raise a `Refusal` if one fails to load."""
        [found] = await self.queue.run(None, [tuple(names)])
        changed, failed = found
        if failed:
            why = "; ".join(f"{shortened(name)} ({code})" for name, code in failed.items())
            message = f"the earlier version goes on, because the new one failed to load: {why}"
            raise Refusal("reload_failed", f"{message}; the log of the service says why")
        return [name in changed for name in names]

    def begin(self) -> None:
        """Load all models again without waiting; call this in the event loop. The log has the outcome."""
        task = asyncio.ensure_future(self.run(list(self._models)))
        self._begun.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[list[bool]]) -> None:
        self._begun.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, Refusal) and error.code != "reload_failed":
            _log.warning("the models were not loaded again: %s", error)
        elif error is None and not any(task.result()):
            _log.info("no model has changed")

    async def close(self) -> None:
        """Refuse new requests, and end the thread."""
        for task in self._begun:
            task.cancel()
        await asyncio.gather(*self._begun, return_exceptions=True)
        await self.queue.close()

    def _load(self, _: None, asked: list[tuple[str, ...]]) -> list[tuple[set[str], dict[str, str]]]:
        """The work of the thread: the names that have changed, and the codes of the errors of those that failed."""
        results = []
        for names in asked:
            changed: set[str] = set()
            failed: dict[str, str] = {}
            for name in names:
                try:
                    if self._replace(name):
                        changed.add(name)
                except Exception as error:
                    failed[name] = error.code if isinstance(error, LongtailError) else "internal_error"
                    why = str(error) if isinstance(error, LongtailError) else traceback.format_exc()
                    _log.error("a new version of %s failed to load, the earlier one goes on: %s", name, why)
                    self._changed(name, False)
            results.append((changed, failed))
        return results

    def _replace(self, name: str) -> bool:
        old = self._models[name]
        if inspect_model(old.directory)["fingerprint"] == old.version:
            return False
        new = ServedModel(name, old.directory)
        new.warm()
        self._models[name] = new
        self._changed(name, True)
        _log.info("serving a new version of %s", name)
        return True
