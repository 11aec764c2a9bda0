"""The command line. Thin: a command parses, calls the library and prints; nothing heavy loads before it is needed."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program `longtail` and leave with its exit code."""
    from longtail.cli.program import run

    sys.exit(run(arguments))
