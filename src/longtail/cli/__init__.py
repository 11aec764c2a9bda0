"""The command line. Thin: a command parses, calls the library and prints; nothing heavy loads before it is needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program `longtail` and leave with its exit code."""
    from longtail.cli.program import INTERRUPTED, run

    code = run(arguments)
    if code == INTERRUPTED:
        # Everything is tidied up; the interpreter would still wait for kernels that run in threads.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
