"""Forge models of a group of kinds and ask each of them questions, in a process that may crash or run out of memory.

``forgery_child.py GROUP FOLDER FIRST COUNT [KIND]`` prints the kind and number of each forgery before it is tried, so
that a crash names itself, and a last line of JSON: what was refused and answered, and every failure.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import longtail
from longtail.errors import InvalidInput, LongtailError, ModelFormatError
from longtail.store import write_model
from tests.store.forged_models import GROUPS, Checkpoint, check, questions
from tests.store.forgery import Forger

MEMORY = 2**28  # bytes that plans may ask for
HEADROOM = 2**30  # bytes beyond what the process has when the sound model has answered
PATIENCE = 20.0  # seconds for all questions to one forgery, on a busy machine


class TooSlow(BaseException):
    """Not an `Exception`, so that nothing in between catches it."""


def too_slow(*arguments: Any) -> None:
    raise TooSlow


def limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    if sys.platform == "linux":
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (held + HEADROOM, hard))


def ask(directory: Path, load: Callable[[Path], Any]) -> str | None:
    """Load a model and ask it everything: None if it is refused, else "answered"; raises what must not happen."""
    try:
        model = load(directory)
    except ModelFormatError:
        return None
    except InvalidInput:
        if load is longtail.load:  # only a checkpoint may be that of another training
            raise
        return None
    n_labels = getattr(model, "n_labels_", None)
    for question in questions(model, directory):
        try:
            answer = question()
        except LongtailError:
            continue
        check(answer, n_labels)
    return "answered"


def main(group: str, folder: str, first: str, count: str, only: str | None = None) -> None:
    faulthandler.enable()
    os.environ["LONGTAIL_MEMORY"] = str(MEMORY)
    warnings.simplefilter("ignore")
    outcome: dict[str, Any] = {"failures": [], "counts": {}, "seconds": {}}
    for kind, build in GROUPS[group]().items():
        if only not in (None, kind):
            continue
        source, target = Path(folder, kind, "sound"), Path(folder, kind, "forged")
        model = build()
        model.save(source) if hasattr(model, "save") else write_model(model.to_state(), source)
        load = model.load if isinstance(model, Checkpoint) else longtail.load
        assert ask(source, load) == "answered", kind
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, too_slow)
        limit_memory()
        forger, begun, refused = Forger(source, target), time.perf_counter(), 0
        for seed in range(int(first), int(first) + int(count)):
            print(f"{kind}: {seed}", flush=True)
            what = forger.forge(seed)
            try:
                if hasattr(signal, "setitimer"):
                    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
                refused += ask(target, load) is None
            except (Exception, TooSlow) as error:
                outcome["failures"].append(f"{kind}, seed {seed} ({what}): {type(error).__name__}: {str(error)[:300]}")
            finally:
                if hasattr(signal, "setitimer"):
                    signal.setitimer(signal.ITIMER_REAL, 0)
        outcome["counts"][kind] = [refused, int(count) - refused]
        outcome["seconds"][kind] = round(time.perf_counter() - begun, 1)
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
