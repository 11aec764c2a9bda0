"""The command line. Thin: a command parses, calls the library and prints; nothing heavy loads before it is needed."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program `longtail` and leave with its exit code."""
    from longtail.cli.program import run

    code = run(arguments)
    if threading.active_count() > 1:
        # What still runs could not be stopped, and nobody wants it: the interpreter would wait for it, or end badly.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        os._exit(code)
    sys.exit(code)
