"""Every example in the documentation runs: the fenced blocks of README.md and docs/*.md, and all doctests.

The blocks of one file run in order in one empty folder; its python blocks share one namespace, each bash block is a
shell of its own. A fenced `output` block right after a block is what that block must print, where `...` stands for
anything. A block marked `no-run` is only read.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import longtail
import longtail_papers

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUNNABLE = {"python", "bash"}
SHOWN = {"output", "text", "json", "toml", "yaml", "html", "csv", "cpp", "diff"}
LEAST_BLOCKS = 8
LEAST_DOCTESTS = 20
MOST_NOT_RUN_PER_PAGE = 3


@dataclass(frozen=True)
class Block:
    """A fenced block: where it opens, what it says, and what it must print where the page shows that."""

    place: str
    line: int
    language: str
    text: str
    run: bool
    output: str | None = None


class PageError(AssertionError):
    """A page that is not written as this module reads it, or a block that does not do what the page says."""


def read_blocks(page: Path) -> list[Block]:
    blocks: list[Block] = []
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1))
    for number, line in lines:
        opening = re.match(r"\s*(`{3,})\s*([\w+-]*)(.*)$", line)
        if not opening:
            continue
        fence, language, info = opening.groups()
        place = f"{page.name}:{number}"
        content = []
        for _, inner in lines:
            if re.fullmatch(rf"\s*{fence}`*\s*", inner):
                break
            content.append(inner)
        else:
            raise PageError(f"{place}: the fenced block is never closed")
        if language not in RUNNABLE | SHOWN:
            known = ", ".join(sorted(RUNNABLE | SHOWN))
            raise PageError(f"{place}: a fenced block in {language!r}; name one of {known}, so that examples are run")
        text = textwrap.dedent("\n".join(content)) + "\n"
        if language == "output":
            if not blocks or blocks[-1].language not in RUNNABLE or blocks[-1].output is not None:
                raise PageError(f"{place}: an output block must follow the python or bash block that prints it")
            last = blocks.pop()
            blocks.append(replace(last, output=text))
        else:
            run = language in RUNNABLE and "no-run" not in info.split()
            blocks.append(Block(place, number, language, text, run))
    return blocks


def run_page(page: Path) -> int:
    """Run the blocks of a page in the current folder; the number of blocks run."""
    namespace: dict[str, Any] = {"__name__": "__page__"}
    blocks = [block for block in read_blocks(page) if block.run]
    for block in blocks:
        printed = run_python(block, namespace) if block.language == "python" else run_bash(block)
        if block.output is not None and not is_as_shown(block.output, printed):
            raise PageError(f"{block.place}: the page shows\n{block.output}\nbut the block printed\n{printed}")
    return len(blocks)


def run_python(block: Block, namespace: dict[str, Any]) -> str:
    if block.text.startswith(">>> "):
        return run_session(block, namespace)
    printed = io.StringIO()
    # Empty lines before the code make the line numbers of a traceback those of the page.
    source = "\n" * block.line + block.text
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(source, block.place.rpartition(":")[0], "exec"), namespace)
        except (Exception, SystemExit):
            raise PageError(f"{block.place}: the python block failed\n{traceback.format_exc()}") from None
    return printed.getvalue()


def run_session(block: Block, namespace: dict[str, Any]) -> str:
    """A block written as a Python session: each answer shown must be the one given."""
    told = io.StringIO()
    session = doctest.DocTestParser().get_doctest(block.text, namespace, block.place, block.place, block.line)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    if runner.run(session, out=told.write, clear_globs=False).failed:
        raise PageError(f"{block.place}: the session failed\n{told.getvalue()}")
    namespace.update(session.globs)
    return ""


def run_bash(block: Block) -> str:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    done = subprocess.run(
        [bash, "-eu", "-o", "pipefail", "-c", block.text],
        env={**os.environ, "PATH": os.pathsep.join(folders), "COLUMNS": "80", "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
    )
    if done.returncode:
        raise PageError(
            f"{block.place}: the bash block ended with status {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
    return done.stdout


def is_as_shown(shown: str, printed: str) -> bool:
    shown, printed = ("\n".join(line.rstrip() for line in text.strip("\n").split("\n")) for text in (shown, printed))
    return doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS)


def make_targets() -> set[str]:
    return set(re.findall(r"^([\w./-]+)\s*:(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def named_targets(page: Path) -> set[str]:
    """The targets of `make` in code spans and at the start of commands in bash blocks."""
    commands = [block.text for block in read_blocks(page) if block.language == "bash"]
    spans = re.findall(r"`make (\w[\w./-]*)`", page.read_text(encoding="utf-8"))
    return {*spans, *re.findall(r"^\s*make (\w[\w./-]*)", "\n".join(commands), re.MULTILINE)}


def module_names() -> Iterator[str]:
    for package in (longtail, longtail_papers):
        yield package.__name__
        # A package that cannot be imported is still named, and its own test then says why.
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=lambda name: None):
            if not module.name.endswith("__main__"):
                yield module.name


MODULES = list(module_names())


def import_or_skip(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "longtail":
            raise
        pytest.skip(f"{name} needs {error.name}, which is not installed")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_few_blocks_are_left_unrun(page: Path) -> None:
    unrun = [block for block in read_blocks(page) if block.language in RUNNABLE and not block.run]
    assert len(unrun) <= MOST_NOT_RUN_PER_PAGE, [block.place for block in unrun]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_the_page_names_exists(page: Path) -> None:
    assert named_targets(page) <= make_targets()


def test_the_pages_have_blocks_to_run() -> None:
    assert sum(block.run for page in PAGES for block in read_blocks(page)) >= LEAST_BLOCKS


@pytest.mark.parametrize("name", MODULES)
def test_doctests_of_the_module(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_or_skip(name)
    monkeypatch.chdir(tmp_path)
    report = io.StringIO()
    with contextlib.redirect_stdout(report):
        failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert not failed, report.getvalue()


def test_the_modules_have_doctests_to_run() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = 0
    for name in MODULES:
        with contextlib.suppress(ModuleNotFoundError):
            examples += sum(len(test.examples) for test in finder.find(importlib.import_module(name)))
    assert examples >= LEAST_DOCTESTS


@pytest.fixture
def write_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def write(*lines: str) -> Path:
        (tmp_path / "page.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return tmp_path / "page.md"

    return write


def test_blocks_share_a_folder_and_python_blocks_a_namespace(write_page: Any) -> None:
    page = write_page(
        *("```python", "word = 'kept'", "open('file', 'w').write(word)", "```"),
        *("```bash", "cat file", "```", "```output", "kept", "```"),
        *("- in a list:", "  ```python", "  print(word, 1 / 3)", "  ```", "  ```output", "  kept 0.33...", "  ```"),
    )
    assert run_page(page) == 3


def test_bash_blocks_find_the_running_interpreter(write_page: Any) -> None:
    page = write_page("```bash", 'python -c "import sys; print(sys.prefix)"', "```", "```output", sys.prefix, "```")
    assert run_page(page) == 1


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["", "```python", "", "1 / 0", "```"], r"page.md:2: the python block failed(.|\n)*page.md\", line 4"),
        (["```python", "raise SystemExit(1)", "```"], "page.md:1: the python block failed"),
        (["```bash", "false", "true", "```"], "page.md:1: the bash block ended with status 1"),
        (["```bash", "echo $undefined", "```"], "page.md:1: the bash block ended with status"),
        (["```bash", "false | true", "```"], "page.md:1: the bash block ended with status 1"),
        (
            ["```python", "print(1)", "```", "```output", "2", "```"],
            "page.md:1: the page shows\n2\n\nbut .* printed\n1",
        ),
        (["```text", "a", "```", "```output", "a", "```"], "page.md:4: an output block must follow"),
        (["```py", "1 / 0", "```"], "page.md:1: a fenced block in 'py'"),
        (["```", "1 / 0", "```"], "page.md:1: a fenced block in ''"),
        (["```python", "1 / 0"], "page.md:1: the fenced block is never closed"),
    ],
)
def test_a_page_that_does_not_hold_fails_with_its_line(write_page: Any, lines: list[str], message: str) -> None:
    page = write_page(*lines)
    with pytest.raises(PageError, match=message):
        run_page(page)


def test_make_targets_are_found_where_a_page_names_them(write_page: Any) -> None:
    page = write_page("Say `make demo`, or make do.", "```bash no-run", "make test", "make -C x y  # make tea", "```")
    assert named_targets(page) == {"demo", "test"}
    assert {"demo", "test", "lint", "clean"} <= make_targets()
    assert "PIP" not in make_targets()


def test_a_block_marked_no_run_is_not_run(write_page: Any) -> None:
    assert run_page(write_page("```bash no-run", "false", "```", "```text", "false", "```")) == 0
