"""Options as frozen dataclasses: a field declares its option, and a command receives the dataclass as one argument.

@dataclass(frozen=True)
class ReaderOptions:
    section = "Data"
    format: str | None = option(type=click.Choice(FORMATS), help="Input format.")

@click.command(cls=SectionedCommand)
@takes(reader=ReaderOptions)
def command(reader: ReaderOptions) -> None: ...
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import Field, field, fields
from functools import wraps
from typing import Any

import click

SEED = click.IntRange(min=0, max=2**31 - 1)
_METADATA = "option"
_OTHERS = "Other options"


class FiniteRange(click.FloatRange):
    """A range of finite numbers; click alone accepts NaN in every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number

    def _describe_range(self) -> str:
        return "" if self.min is None and self.max is None else super()._describe_range()


def option(
    *flags: str, section: str = "", parse: Callable[[str], Any] | None = None, default: Any = None, **settings: Any
) -> Any:
    """Declare a field of a dataclass of options.

    Parameters
    ----------
    *flags : str
        Spellings; by default ``--field-name``.
    section : str
        The heading in the help of a `SectionedCommand`; by default ``section`` of the dataclass.
    parse : callable or None
        Turns the text of the option, and of `default`, into the value of the field.
    default, **settings
        As for `click.Option`.
    """
    if default is None and settings.get("multiple"):
        default = ()
    if parse is not None:
        settings["callback"] = lambda _ctx, _parameter, value: None if value is None else parse(value)
    parsed = default if parse is None or default is None else parse(default)
    if not settings.get("required"):  # click would take any default, even None, for the required value
        settings["default"] = default
    return field(default=parsed, metadata={_METADATA: (flags, section, settings)})


class SectionedOption(click.Option):
    """An option of a `SectionedCommand`, with the heading to list it under."""

    def __init__(self, *arguments: Any, section: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.section = section


def _declared(group: type) -> list[Field[Any]]:
    return [each for each in fields(group) if _METADATA in each.metadata]


def _add(group: type, function: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of a dataclass, each as an argument of its own."""
    for each in reversed(_declared(group)):
        flags, section, settings = each.metadata[_METADATA]
        names = flags or (f"--{each.name.replace('_', '-')}",)
        section = section or getattr(group, "section", "")
        function = click.option(*names, each.name, cls=SectionedOption, section=section, **settings)(function)
    return function


def takes(**groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator that adds the options of dataclasses to a command, and passes it an instance of each by name."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def collected(*arguments: Any, **given: Any) -> None:
            found = {
                name: group(**{each.name: given.pop(each.name) for each in _declared(group)})
                for name, group in groups.items()
            }
            function(*arguments, **given, **found)

        command: Callable[..., None] = collected
        for group in reversed(groups.values()):
            command = _add(group, command)
        return command

    return decorate


def flag_of(group: type, name: str) -> str:
    """The longest spelling of the option that sets the field `name`; the name itself where no option does."""
    for each in _declared(group):
        if each.name == name:
            flags = each.metadata[_METADATA][0] or (f"--{name.replace('_', '-')}",)
            return max((flag.partition("/")[0] for flag in flags), key=len)
    return name


class SectionedCommand(click.Command):
    """A command whose help lists options under the headings of their sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(parameter, "section", "") or _OTHERS, []).append(record)
        others = sections.pop(_OTHERS, [])
        for name, records in [*sections.items(), *([(_OTHERS, others)] if others else [])]:
            with formatter.section(name):
                formatter.write_dl(records)
