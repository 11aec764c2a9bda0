"""The environments of the peers, each installed from the package index on first use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from longtail.errors import Unavailable

# One list per call of pip. PECOS requires torch and transformers, but its linear models do not import them. Annif
# downloads a tokenizer of NLTK on first use; llama-index-core carries its files, so that pip suffices.
REQUIREMENTS: dict[str, list[list[str]]] = {
    "pecos": [["numpy==1.26.*", "scipy==1.13.*", "scikit-learn==1.5.*"], ["--no-deps", "libpecos==1.2.8"]],
    "omikuji": [["numpy", "scipy", "omikuji==0.5.2"]],
    "annif": [["annif==1.4.3", "omikuji==0.5.2"], ["--no-deps", "llama-index-core==0.14.25"]],
    "napkinxc": [["numpy", "scipy", "napkinxc==0.7.2"]],
}


def interpreter(name: str, cache: Path) -> Path:
    """The Python interpreter of an environment, which is created if it does not exist.

    Raises
    ------
    Unavailable
        If pip cannot install it; the message has the last lines of its output.
    """
    if name == "longtail":
        return Path(sys.executable)
    folder = cache / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    marker = folder / "installed.txt"
    wanted = "\n".join(" ".join(call) for call in REQUIREMENTS[name])
    if python.is_file() and marker.is_file() and marker.read_text(encoding="utf-8") == wanted:
        return python
    _run([sys.executable, "-I", "-m", "venv", "--clear", str(folder)], name)
    pip = [str(python), "-I", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    for call in REQUIREMENTS[name]:
        _run([*pip, *call], name)
    marker.write_text(wanted, encoding="utf-8")
    return python


def _run(command: list[str], name: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).strip().splitlines()[-2:])
        raise Unavailable(f"the environment of {name} cannot be created: {said}")
