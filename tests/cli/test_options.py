"""Options as dataclasses: declared once, collected into one argument, listed under their sections."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import click
import pytest
from click.testing import CliRunner

from longtail.choice import LearnerOptions
from longtail.cli.learners import LearnerFlags
from longtail.cli.options import FiniteRange, SectionedCommand, flag_of, option, takes


@dataclass(frozen=True)
class Colours:
    section = "Colours"

    red: int = option(type=int, default=1, help="How red.")
    dark_blue: str | None = option("-b", "--blue", help="How blue.")
    mixed: tuple[str, ...] = option(multiple=True, section="Mixing")


@dataclass(frozen=True)
class Sizes:
    sizes: tuple[int, ...] = option(default="3", parse=lambda text: tuple(map(int, text.split(","))))
    red_margin: float | None = option(type=FiniteRange(min=0))


def run(*arguments: str) -> dict[str, Any]:
    """What a command that takes both dataclasses is called with."""
    found: dict[str, Any] = {}

    @click.command()
    @click.argument("data")
    @takes(colours=Colours, sizes=Sizes)
    @click.option("--loud", is_flag=True)
    def command(**given: Any) -> None:
        found.update(given)

    CliRunner().invoke(command, arguments, standalone_mode=False, catch_exceptions=False)
    return found


def test_a_command_receives_one_argument_for_each_dataclass() -> None:
    given = run("file", "--blue", "dark", "--mixed", "a", "--mixed", "b", "--sizes", "1,2", "--loud")
    assert given == {
        "data": "file",
        "loud": True,
        "colours": Colours(1, "dark", ("a", "b")),
        "sizes": Sizes((1, 2), None),
    }


def test_defaults_are_the_same_in_python_and_on_the_command_line() -> None:
    given = run("file")
    assert (given["colours"], given["sizes"]) == (Colours(), Sizes())
    assert Sizes().sizes == (3,)


def test_the_help_of_a_sectioned_command_has_the_sections_in_order() -> None:
    @click.command(cls=SectionedCommand)
    @click.option("--loud", is_flag=True)
    @takes(colours=Colours)
    def command(**given: Any) -> None: ...

    lines = CliRunner().invoke(command, ["--help"]).output.splitlines()
    assert [line for line in lines if line.endswith(":")] == ["Colours:", "Mixing:", "Other options:"]
    assert lines[lines.index("Colours:") + 1].split() == ["--red", "INTEGER", "How", "red."]


def test_a_required_option_has_no_default() -> None:
    @dataclass(frozen=True)
    class Target:
        out: str = option("-o", "--out", required=True)

    @click.command()
    @takes(target=Target)
    def command(target: Target) -> None: ...

    assert "Missing option '-o' / '--out'" in CliRunner().invoke(command, []).output


def test_the_options_of_learners_are_those_of_the_library() -> None:
    library = {each.name: each.default for each in fields(LearnerOptions)}
    flags = {each.name: each.default for each in fields(LearnerFlags)}
    assert library.keys() - flags.keys() == {"hierarchy", "updatable", "random_state", "n_jobs"}
    assert flags.items() <= library.items()
    assert collected(LearnerFlags) == LearnerFlags()


def collected(group: type) -> Any:
    """What a command gets where no option is given."""
    found: list[Any] = []

    @click.command()
    @takes(options=group)
    def command(options: Any) -> None:
        found.append(options)

    CliRunner().invoke(command, [], standalone_mode=False, catch_exceptions=False)
    return found[0]


@pytest.mark.parametrize(("name", "flag"), [("red", "--red"), ("dark_blue", "--blue"), ("unknown", "unknown")])
def test_a_field_knows_its_flag(name: str, flag: str) -> None:
    assert flag_of(Colours, name) == flag


def test_a_switch_is_called_by_what_switches_it_on() -> None:
    assert flag_of(LearnerFlags, "fit_intercept") == "--intercept"
