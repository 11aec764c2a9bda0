"""``python -m tests.work.patched MODULE.NAME=NUMBER ... -- train ...``: the program with other constants.

An error of the library ends it with the code and the text of the error.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from longtail.cli.program import run
from longtail.errors import LongtailError

if __name__ == "__main__":
    place = sys.argv.index("--")
    for setting in sys.argv[1:place]:
        name, number = setting.split("=")
        module, _, constant = name.rpartition(".")
        setattr(import_module(f"longtail.{module}"), constant, float(number))
    os.environ["LONGTAIL_TRACEBACK"] = "1"
    try:
        sys.exit(run(sys.argv[place + 1 :]))
    except LongtailError as error:
        sys.exit(f"{error.code}: {error}")
