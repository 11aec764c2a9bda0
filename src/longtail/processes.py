"""Child processes: the one place that defines how this program starts another Python."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_BEGIN = "import os, sys; sys.path += [p for p in sys.argv.pop(1).split(os.pathsep) if p not in sys.path]; "


def isolated_python(code: str, *arguments: str) -> list[str]:
    """The command that runs `code` in a new Python process, which imports nothing from the working directory.

    The child starts isolated (``-I``). It then appends the module path of this process to its own, without the working
    directory, so that a file there cannot shadow a module of the same name.

    Parameters
    ----------
    code : str
        Python statements.
    *arguments : str
        ``sys.argv[1:]`` of the code.

    Examples
    --------
    >>> import subprocess
    >>> subprocess.run(isolated_python("print(sys.argv[1:])", "a"), capture_output=True, text=True).stdout
    "['a']\\n"
    """
    here, own = os.getcwd(), str(Path(__file__).parents[1])
    path = [folder for folder in sys.path if folder and (os.path.abspath(folder) != here or folder == own)]
    return [sys.executable, "-I", "-c", _BEGIN + code, os.pathsep.join(path), *arguments]
