"""The program around its commands: help, errors, exit codes, signals, pipes."""

from __future__ import annotations

import errno
import io
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import longtail.cli.program as program
from longtail.cli.outputs import print_json
from longtail.cli.program import COMMANDS
from longtail.cli.terminal import guarded_streams
from longtail.printable import json_text
from longtail.store import inspect_model
from longtail_papers import Entry

PROGRAM = [sys.executable, "-m", "longtail"]


def cpu_seconds(arguments: list[str]) -> float:
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_takes_less_than_400_ms_of_processor_time() -> None:
    assert min(cpu_seconds([*PROGRAM, "--help"]) for _ in range(4)) < 0.4


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from longtail.cli.program import run; assert run(sys.argv[1:]) == 0;"
        "print([name for name in ('numpy', 'scipy', 'sklearn', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_list_of_commands(longtail: Callable, check_golden: Callable) -> None:
    result = longtail("--help")
    assert (result.code, result.err) == (0, "")
    check_golden("help", result.out)


def test_an_option_for_any_number_shows_no_range(longtail: Callable, check_golden: Callable) -> None:
    check_golden("predict-help", longtail("predict", "--help").out)


@pytest.mark.parametrize("value", ["nan", "inf"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "model", "notes.jsonl", "--threshold"],
        ["predict", "model", "notes.jsonl", "--threshold"],
        ["serve", "model", "--max-seconds"],
        ["serve", "model", "--max-header-seconds"],
    ],
    ids=" ".join,
)
def test_a_number_that_is_not_finite_is_wrong_usage(longtail: Callable, arguments: list[str], value: str) -> None:
    result = longtail(*arguments, value)
    assert result.code == 2
    assert f"'{arguments[-1]}': {value} is not a finite number." in result.err


def test_every_listed_command_is_there(longtail: Callable) -> None:
    for name in COMMANDS:
        result = longtail(name, "--help")
        assert result.code == 0
        assert result.out.startswith(f"Usage: longtail {name}")


def test_the_version(longtail: Callable) -> None:
    assert longtail("--version").out == f"longtail {program.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "last_line"),
    [
        (["trian"], "Error: No such command 'trian'. Did you mean 'train'?"),
        (["xyz"], "Error: No such command 'xyz'."),
        (["train", "notes.jsonl"], "Error: Missing option '-o' / '--out'."),
        (
            ["train", "notes.jsonl", "--out", "m", "--ngrams", "2-"],
            "Error: Invalid value for '--ngrams': expected lengths such as 1 or 1-2",
        ),
        (["predict", "m"], "Error: give either DATA or --text"),
        (["predict", "m", "notes.jsonl", "--text", "a"], "Error: give either DATA or --text"),
        (
            ["evaluate", "m", "notes.jsonl", "-k", "1,²"],
            "Error: Invalid value for '-k': expected whole numbers such as 1,3,5",
        ),
        *(
            (
                [command, "notes.jsonl", "--seed", "3000000000"],
                "Error: Invalid value for '--seed': 3000000000 is not in the range 0<=x<=2147483647.",
            )
            for command in ("train", "assign", "audit", "select")
        ),
        (
            ["select", "notes.jsonl", "--penalty", "1e15"],
            "Error: Invalid value for '--penalty': 1000000000000000.0 is not in the range 0<=x<=1000000000.",
        ),
        (
            ["select", "notes.jsonl", "--score-weight", "1e15"],
            "Error: Invalid value for '--score-weight': 1000000000000000.0 is not in the range 0<=x<=1000000000.",
        ),
        (
            ["evaluate", "m", "notes.jsonl", "-k", "1,x"],
            "Error: Invalid value for '-k': expected whole numbers such as 1,3,5",
        ),
        (
            ["evaluate", "m", "notes.jsonl", "--propensity", "0.5"],
            "Error: Invalid value for '--propensity': expected two numbers such as 0.55,1.5",
        ),
        (["explain", "m"], "Error: give either --text or --data"),
        (
            ["completion", "tcsh"],
            "Error: Invalid value for '{bash|zsh|fish}': 'tcsh' is not one of 'bash', 'zsh', 'fish'.",
        ),
    ],
)
def test_wrong_usage_is_exit_code_2(longtail: Callable, arguments: list[str], last_line: str) -> None:
    result = longtail(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert result.err.splitlines()[-1] == last_line


def test_an_unexpected_error_is_one_line_and_says_how_to_see_more(
    longtail: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr("longtail.data.read_corpus", fail)
    result = longtail("train", "notes.jsonl", "--out", "m")
    assert result.code == 1
    assert result.err == (
        "error: unexpected ZeroDivisionError: division by zero; set LONGTAIL_TRACEBACK=1 to see the traceback\n"
    )
    monkeypatch.setenv("LONGTAIL_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        longtail("train", "notes.jsonl", "--out", "m")


def test_a_warning_of_the_library_is_a_note(longtail: Callable) -> None:
    lines = b'{"text": "red sky", "labels": ["red"], "mood": 1}\n' * 3
    result = longtail("train", "-", "--out", "m", stdin=lines)
    assert result.code == 0
    assert "note: <_io.BytesIO" not in result.err
    assert "unknown keys were ignored: 'mood' in 3 lines" in result.err
    assert [line for line in result.err.splitlines() if line.startswith("note: ")]


def test_quiet_tells_nothing(longtail: Callable) -> None:
    result = longtail("--quiet", "train", "notes.jsonl", "--out", "m")
    assert (result.code, result.out, result.err) == (0, "", "")


def test_a_closed_pipe_is_no_error(model: str) -> None:
    many = Path("notes.jsonl").read_text(encoding="utf-8") * 5000
    Path("many.jsonl").write_text(many, encoding="utf-8")
    predicting = subprocess.Popen(
        [*PROGRAM, "predict", model, "many.jsonl"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert predicting.stdout is not None
    assert predicting.stderr is not None
    assert predicting.stdout.readline().startswith(b'{"id": "a"')
    predicting.stdout.close()
    assert predicting.wait(60) == program.PIPE_CLOSED
    assert predicting.stderr.read() == b""
    predicting.stderr.close()


def unread(pipe: int) -> int:
    fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(os.name == "nt", reason="signals of a terminal")
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    read, write = os.pipe()
    training = subprocess.Popen(
        [*PROGRAM, "train", "-", "--out", "model"], stdin=read, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    # When it has taken the lines it waits for more, in the middle of its work.
    os.write(write, b'{"text": "a red sky", "labels": ["red"]}\n' * 100)
    deadline = time.monotonic() + 60
    while unread(read) and time.monotonic() < deadline:
        time.sleep(0.05)
    training.send_signal(signal.SIGINT)
    out, err = training.communicate(timeout=60)
    os.close(read)
    os.close(write)
    assert training.returncode == program.INTERRUPTED
    assert out == b""
    assert err.splitlines()[-1] == b"interrupted"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.jsonl", "rows.txt"]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(os.name == "nt", reason="signals of a terminal")
@pytest.mark.parametrize("learner", ["tree", "one-vs-rest"])
def test_an_interrupt_does_not_wait_for_the_kernels(tmp_path: Path, learner: str) -> None:
    rng = random.Random(0)
    lines = ["20000 2000 4000"]
    for _ in range(20000):
        features = " ".join(f"{feature}:1" for feature in sorted(rng.sample(range(2000), 50)))
        lines.append(f"{rng.randrange(4000)} {features}")
    (tmp_path / "many.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    training = subprocess.Popen(
        [*PROGRAM, "train", "many.txt", "--out", "model", "--learner", learner],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert training.stderr is not None
    while b"at most" not in training.stderr.readline():  # the plan, told when the work begins
        assert training.poll() is None
    time.sleep(0.5)
    training.send_signal(signal.SIGINT)
    out, err = training.communicate(timeout=60)
    assert training.returncode == program.INTERRUPTED
    assert out == b""
    assert err.split() == [b"interrupted"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["many.txt", "notes.jsonl", "rows.txt"]


def test_completion_scripts_name_the_program(longtail: Callable) -> None:
    for shell in ("bash", "zsh", "fish"):
        result = longtail("completion", shell)
        assert result.code == 0
        assert "_LONGTAIL_COMPLETE" in result.out


def test_the_shell_completes_commands() -> None:
    environment = {**os.environ, "_LONGTAIL_COMPLETE": "bash_complete", "COMP_WORDS": "longtail ev", "COMP_CWORD": "1"}
    code = "from longtail.cli import main; import sys; sys.argv[0] = 'longtail'; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout == "plain,evaluate\n"


def test_reproducing_into_a_file_is_refused_before_the_work(longtail: Callable) -> None:
    told = longtail("reproduce", "ridge", "--out", "notes.jsonl").err
    assert told == "error: notes.jsonl is a file; give a folder to write to\n"


def test_reproduce_lists_and_runs(longtail: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def run(name: str, out: str, *, quick: bool = False) -> list[Path]:
        calls.append((name, str(out), quick))
        return [Path(out) / "table.md"]

    monkeypatch.setattr("longtail_papers.EXPERIMENTS", {"table-1": Entry("Ridge on four data sets", "")})
    wrong = longtail("reproduce", "table-9")
    assert (wrong.code, wrong.err) == (1, "error: there is no experiment 'table-9'; choose from table-1\n")
    monkeypatch.setattr("longtail_papers.run", run)
    assert "table-1  Ridge on four data sets" in longtail("reproduce").out
    assert longtail("reproduce", "table-1", "--out", "there", "--quick").out == f"{Path('there') / 'table.md'}\n"
    assert calls == [("table-1", "there", True)]


FULL = Path("/dev/full")
needs_a_full_disk = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full, a disk that is always full")


@needs_a_full_disk
@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "model", "notes.jsonl"],
        ["predict", "model", "notes.jsonl", "--output", "table"],
        ["explain", "model", "--text", "red apples"],
        ["explain", "model", "--text", "red apples", "--json"],
        ["evaluate", "model", "notes.jsonl"],
        ["audit", "model", "notes.jsonl", "--json"],
        ["select", "notes.jsonl", "--labels-only"],
        ["report", "model", "notes.jsonl", "--out", "-"],
        ["info", "model"],
        ["info", "model", "--json"],
        ["datasets"],
        ["completion", "bash"],
    ],
)
def test_a_full_disk_behind_standard_output_is_told(
    model: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with FULL.open("w", encoding="utf-8") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        code = program.run(arguments)
    told = capsys.readouterr().err.splitlines()[-1]
    assert (code, told) == (
        1,
        "error: cannot write to standard output: No space left on device; make room, or write elsewhere",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "model", "notes.jsonl", "--out", "out.jsonl"],
        ["predict", "model", "notes.jsonl", "--out", "out.jsonl.gz"],
        ["report", "model", "notes.jsonl", "--out", "out.html"],
        ["select", "notes.jsonl", "--labels-only", "--out", "out.json"],
        ["evaluate", "model", "notes.jsonl", "--picture", "out.png"],
        ["train", "notes.jsonl", "--out", "out"],
    ],
)
def test_a_full_disk_behind_a_file_is_told_and_leaves_nothing(
    longtail: Callable, model: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if "--picture" in arguments:
        pytest.importorskip("matplotlib")

    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = set(os.listdir())
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        result = longtail(*arguments)
    assert result.code == 1
    told = result.err.splitlines()[-1]
    assert told.startswith("error: ")
    assert arguments[-1] in told
    assert "No space left on device" in told
    assert "unexpected" not in told
    assert set(os.listdir()) == before


@needs_a_full_disk
def test_a_model_is_saved_although_nothing_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with FULL.open("w", encoding="utf-8") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        patch.setattr(sys, "stderr", full)
        assert program.run(["train", "notes.jsonl", "--out", "m", "--holdout", "0.3"]) == 0
    assert inspect_model("m")["n_labels"] == 3


@pytest.mark.skipif(os.name == "nt", reason="pipes close otherwise here")
@pytest.mark.parametrize("stderr", [subprocess.DEVNULL, subprocess.STDOUT])
def test_a_model_is_saved_although_its_reader_goes_away(stderr: int) -> None:
    read, write = os.pipe()
    os.close(read)
    training = subprocess.run(
        [*PROGRAM, "train", "notes.jsonl", "--out", "m", "--holdout", "0.3"], stdout=write, stderr=stderr, timeout=120
    )
    os.close(write)
    assert training.returncode == 0
    assert inspect_model("m")["n_labels"] == 3


@pytest.mark.skipif(os.name == "nt", reason="pipes close otherwise here")
def test_pages_and_updates_are_written_although_their_reader_goes_away(longtail: Callable) -> None:
    assert longtail("train", "notes.jsonl", "--out", "m", "--min-df", "1", "--updatable").code == 0
    for arguments in (["check", "notes.jsonl", "-o", "page.html"], ["update", "m", "notes.jsonl", "--out", "m2"]):
        read, write = os.pipe()
        os.close(read)
        run = subprocess.run([*PROGRAM, *arguments], stdout=write, stderr=subprocess.DEVNULL, timeout=120)
        os.close(write)
        assert (run.returncode, Path(arguments[-1]).exists()) == (0, True)


@pytest.mark.skipif(os.name == "nt", reason="pipes close otherwise here")
def test_an_ascii_stream_is_guarded_as_any_other(model: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:backslashreplace", "PYTHONUTF8": "0"}
    read, write = os.pipe()
    os.close(read)
    training = subprocess.run(
        [*PROGRAM, "train", "notes.jsonl", "--out", "m"],
        stdout=write,
        stderr=subprocess.PIPE,
        env=environment,
        timeout=120,
    )
    os.close(write)
    assert (training.returncode, b"BrokenPipe" in training.stderr) == (0, False)
    code = (
        "import click; from longtail.cli.terminal import guarded_streams\n"
        "with guarded_streams(): click.echo('\\x1b]0;t\\x07')"
    )
    echo = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment, timeout=120)
    assert b"]0;t" in echo.stdout
    assert b"\x1b" not in echo.stdout


@needs_a_full_disk
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_told_whether_or_not_python_buffers(model: str, unbuffered: str) -> None:
    with FULL.open("wb") as full:
        info = subprocess.run(
            [*PROGRAM, "info", model],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            timeout=120,
        )
    assert info.returncode == 1
    assert b"make room, or write elsewhere" in info.stderr


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}; make room, or write elsewhere"),
        (errno.EFBIG, f"{os.strerror(errno.EFBIG)}; make room, or write elsewhere"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
    ids=["full disk", "large file", "another fault"],
)
def test_only_what_lacks_room_is_told_to_make_room(
    longtail: Callable, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, code: int, told: str
) -> None:
    class Failing(io.TextIOWrapper):
        def write(self, text: str) -> int:
            raise OSError(code, os.strerror(code))

    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(code, os.strerror(code), "somewhere")

    with open("standard-output", "wb") as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Failing(stream, encoding="utf-8"))
        assert program.run(["datasets"]) == 1
    assert capsys.readouterr().err == f"error: cannot write to standard output: {told}\n"
    monkeypatch.setattr(program.program, "main", refuse)
    assert longtail("datasets").err == f"error: somewhere: {told}\n"


@pytest.mark.skipif(os.name == "nt", reason="a shell closes streams otherwise here")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_stream_that_is_closed_is_done_without(model: str, closed: str) -> None:
    for arguments in (["info", model], ["--version"], ["predict", model, "notes.jsonl"]):
        command = ["sh", "-c", f'"$@" {closed}', "sh", *PROGRAM, *arguments]
        done = subprocess.run(command, capture_output=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, b"")
        assert bool(done.stdout) == (closed == "2>&-")


def test_rows_leave_in_blocks_and_in_order_with_text(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Pipe(io.RawIOBase):
        writes: ClassVar[list[bytes]] = []

        def writable(self) -> bool:
            return True

        def write(self, content: Any) -> int:
            self.writes.append(bytes(content))
            return len(content)

    Path("many.txt").write_text("red apples\n" * 400, encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(Pipe()), encoding="utf-8"))
        assert program.run(["predict", model, "many.txt", "--plain"]) == 0
        assert b"".join(Pipe.writes).count(b"\n") == 400
        assert len(Pipe.writes) < 40
        Pipe.writes.clear()
        with guarded_streams():
            for part in ("one ", "two "):
                sys.stdout.write(part)
                print_json(part)
            sys.stdout.flush()
    assert b"".join(Pipe.writes) == b'one "one "\ntwo "two "\n'


@pytest.mark.parametrize("k", ["1000000000000", "9223372036854775808"])
def test_more_labels_than_there_are_is_all_of_them(longtail: Callable, model: str, tree_model: str, k: str) -> None:
    for name in (model, tree_model):
        for command in (["predict", name, "--text", "red apples"], ["explain", name, "--text", "red apples"]):
            assert longtail(*command, "-k", k) == longtail(*command, "-k", "3")


@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_more_places_than_fit_into_memory_is_told(
    longtail: Callable, model: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGTAIL_MEMORY", "1G")
    result = longtail(command, model, "notes.jsonl", "-k", "999999999")
    assert result.code == 1
    assert "a ranking of 999,999,999 labels for each of 6 rows needs " in result.err
    assert "unexpected" not in result.err


def test_json_has_no_number_that_json_does_not_have() -> None:
    told = json_text({"score": math.inf, "more": [math.nan, (-math.inf, 1.5)]})
    assert told == '{"score": null, "more": [null, [null, 1.5]]}'
