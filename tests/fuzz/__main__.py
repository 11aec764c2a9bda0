"""`python -m tests.fuzz TARGET [libFuzzer options]`: look for bytes that break a target, led by coverage.

Needs atheris, and kernels built with ``LONGTAIL_FUZZ``; ``make fuzz`` arranges both. Inputs that reach something new
are kept in ``build/fuzz/TARGET``; a finding is written there too, and ends the run with an error.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["longtail"]):
    from tests.fuzz.targets import TARGETS, run

CORPUS = Path(__file__).parent / "corpus"


def main() -> None:
    name, *options = sys.argv[1:] or [""]
    if name not in TARGETS:
        sys.exit(f"{name!r} is no target; targets are {', '.join(TARGETS)}")
    found = Path("build/fuzz", name)
    found.mkdir(parents=True, exist_ok=True)
    settings = [f"-artifact_prefix={found}/", "-timeout=20", "-rss_limit_mb=4096", "-print_final_stats=1"]
    atheris.Setup(
        [sys.argv[0], *settings, *options, str(found), str(CORPUS / name)], lambda data: run(TARGETS[name], data)
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
