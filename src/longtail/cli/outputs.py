"""Where results go: to standard output, or to a file that appears when it is complete."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from longtail.cli.options import option
from longtail.errors import InvalidInput, ModelFormatError, Unavailable
from longtail.files import check_ending, ending_of, is_url
from longtail.printable import json_text

_STANDARD_OUTPUT = "-"
# A directory of one of these names would be taken for a file.
_ENDINGS_OF_FILES = (
    *(".csv", ".tsv", ".jsonl", ".json", ".parquet", ".txt", ".npz", ".html", ".pdf", ".png"),
    *(".zip", ".tar", ".tgz", ".pkl", ".pickle", ".joblib", ".pt", ".onnx"),
)


_ABOUT = "Write to FILE instead of standard output."


def _file(value: str) -> str | None:
    return None if value == _STANDARD_OUTPUT else value


def out_field(about: str = _ABOUT, **settings: Any) -> Any:
    """The option --out as a field of a dataclass of options; None and - mean standard output."""
    return option("-o", "--out", metavar="FILE", parse=_file, help=about, **settings)


def check_out(out: str | None, *read: str | None) -> str:
    """Refuse an output file that cannot be written, or that is also an input.

    Returns the word to report the result with: "replaced" if the file exists, else "wrote".
    """
    if out is None:
        return ""
    _check_folder(out)
    if not Path(out).exists():
        return "wrote"
    if Path(out).is_dir():
        raise InvalidInput(f"{out} is a folder; give the name of a file to write to")
    if not Path(out).is_file():
        raise InvalidInput(f"{out} is not a regular file; without --out, results go to standard output")
    if any(path is not None and Path(path).exists() and Path(out).samefile(path) for path in read):
        raise InvalidInput(f"{out} is also an input; write to another file")
    return "replaced"


def _check_folder(path: str) -> None:
    """Refuse a folder that does not exist or is not writable."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise InvalidInput(f"cannot write {path}: there is no folder {folder}; create it, or write elsewhere")
    if not os.access(folder, os.W_OK):
        raise InvalidInput(f"cannot write {path}: the folder {folder} is not writable; write elsewhere")


def check_picture(path: str, *read: str | None) -> None:
    """Refuse a picture that cannot be drawn or written, or that would replace an input file."""
    from longtail.pictures import can_draw

    if not can_draw():
        raise Unavailable("drawing needs matplotlib, which is not installed; install it: pip install 'longtail[plots]'")
    check_ending(path, [".png"], "pictures are written")
    check_out(path, *read)


@contextmanager
def output(path: str | None) -> Iterator[Callable[[bytes], Any]]:
    """A function that writes to the file, or to standard output, always in UTF-8."""
    if path is None:
        yield _print_bytes
        return
    from longtail.files import writing

    with writing(path) as stream:
        yield stream.write


def write_through(write: Callable[[str | Path], None], path: str | None, name: str) -> None:
    """Call `write` with the path or, for standard output, with a temporary file called `name`."""
    if path is not None:
        write(path)
        return
    with TemporaryDirectory() as folder:
        write(Path(folder) / name)
        _print_bytes((Path(folder) / name).read_bytes())


def print_json(value: Any, indent: int | None = None) -> None:
    """Write JSON and a newline to standard output."""
    _print_bytes(f"{json_text(value, indent)}\n".encode("utf-8", "backslashreplace"))


def _print_bytes(content: bytes) -> None:
    stdout: Any = sys.stdout
    stdout.write_bytes(content)


def check_target(out: str, force: bool) -> None:
    """Refuse a directory that the model could not be written to, before any work is done."""
    from longtail.store import check_replaceable, inspect_model

    check_folder_name(out)
    if is_url(out):
        if check_replaceable(out) and not force:
            raise _exists(out)
        return
    path = Path(out)
    for parent in path.absolute().parents:
        if parent.exists():
            if not (parent.is_dir() and os.access(parent, os.W_OK)):
                raise InvalidInput(f"cannot create {out}: {parent} is not a writable directory; choose another")
            break
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    try:
        inspect_model(path)
    except ModelFormatError:
        raise InvalidInput(f"{out} exists and is not a model; choose a new or empty directory") from None
    if not force:
        raise _exists(out)


def check_folder_name(out: str) -> None:
    """Refuse the name of a file where a new directory is written."""
    if ending_of(out).removesuffix(".gz") in _ENDINGS_OF_FILES and not Path(out).exists():
        raise InvalidInput(
            f"{out} has the name of a file, and a directory is written; leave out {ending_of(out)}",
            code="unknown_ending",
            path=out,
        )


def _exists(out: str) -> InvalidInput:
    return InvalidInput(f"{out} already holds a model or prepared data; use --force to replace it")
