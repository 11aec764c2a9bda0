"""Child processes: the one place that says how this program starts another Python."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_BEGIN = "import os, sys; sys.path += [p for p in sys.argv.pop(1).split(os.pathsep) if p not in sys.path]; "


def isolated_python(code: str, *arguments: str) -> list[str]:
    """The command that runs `code` in a Python of its own, which imports nothing from the working directory.

    The child starts isolated (``-I``). It then looks where this process looks for modules, after its own places and
    without the working directory, so that a file there cannot stand in for a module of the same name.

    Parameters
    ----------
    code : str
        Python statements.
    *arguments : str
        What the code finds in ``sys.argv[1:]``.

    Examples
    --------
    >>> import subprocess
    >>> subprocess.run(isolated_python("print(sys.argv[1:])", "a"), capture_output=True, text=True).stdout
    "['a']\\n"
    """
    here, own = os.getcwd(), str(Path(__file__).parents[1])
    path = [folder for folder in sys.path if folder and (os.path.abspath(folder) != here or folder == own)]
    return [sys.executable, "-I", "-c", _BEGIN + code, os.pathsep.join(path), *arguments]
