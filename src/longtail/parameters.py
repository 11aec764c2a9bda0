"""Constraints on the parameters of estimators: one table per class checks them and gives bad values for tests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

from longtail.errors import InvalidInput


class Constraint(Protocol):
    def accepts(self, value: Any) -> bool: ...

    def describe(self) -> str: ...

    def bad_values(self) -> list[Any]: ...


@dataclass(frozen=True)
class Number:
    """A finite number between bounds; `above` excludes its bound, `low` and `high` include theirs."""

    low: float | None = None
    high: float | None = None
    above: float | None = None
    whole: bool = False
    optional: bool = False

    def accepts(self, value: Any) -> bool:
        if value is None:
            return self.optional
        if isinstance(value, bool) or not isinstance(value, Integral if self.whole else Real):
            return False
        number = float(value)
        return (
            math.isfinite(number)
            and (self.low is None or number >= self.low)
            and (self.high is None or number <= self.high)
            and (self.above is None or number > self.above)
        )

    def describe(self) -> str:
        bounds = [
            f"{word} {bound:g}"
            for word, bound in (("at least", self.low), ("above", self.above), ("at most", self.high))
            if bound is not None
        ]
        kind = "a whole number" if self.whole else "a number"
        return " ".join([kind, " and ".join(bounds)]).strip() + (" or None" if self.optional else "")

    def bad_values(self) -> list[Any]:
        bad: list[Any] = ["many", math.nan, math.inf, [1]]
        bad += [] if self.optional else [None]
        bad += [1.5] if self.whole else []
        bad += [self.low - 1] if self.low is not None else []
        bad += [2 * self.high + 1] if self.high is not None else []
        bad += [self.above] if self.above is not None else []
        return bad


@dataclass(frozen=True)
class Threads:
    """A number of threads for `longtail.parallel.resolve_jobs`: any whole number except 0, or None."""

    def accepts(self, value: Any) -> bool:
        return value is None or (isinstance(value, Integral) and not isinstance(value, bool) and value != 0)

    def describe(self) -> str:
        return "a number of threads, or None for every core"

    def bad_values(self) -> list[Any]:
        return [0, 1.5, "many", True]


@dataclass(frozen=True)
class Choice:
    """One of a few values."""

    options: tuple[Any, ...]

    def accepts(self, value: Any) -> bool:
        return any(value is option or (type(value) is type(option) and value == option) for option in self.options)

    def describe(self) -> str:
        return "one of " + ", ".join(repr(option) for option in self.options)

    def bad_values(self) -> list[Any]:
        return ["no such choice", 17, 0.5]


@dataclass(frozen=True)
class Sequence:
    """A list of values that each satisfy a constraint; `length` fixes its length, and only `empty` allows none."""

    of: Constraint
    length: int | None = None
    optional: bool = False
    empty: bool = False

    def accepts(self, value: Any) -> bool:
        if value is None:
            return self.optional
        if isinstance(value, str | bytes) or not hasattr(value, "__len__") or (len(value) == 0 and not self.empty):
            return False
        return (self.length is None or len(value) == self.length) and all(self.of.accepts(item) for item in value)

    def describe(self) -> str:
        count = "a list" if self.length is None else f"{self.length} values"
        return f"{count}, each {self.of.describe()}" + (", or None" if self.optional else "")

    def bad_values(self) -> list[Any]:
        length = self.length or 1
        wrong: list[Any] = [[bad] * length for bad in self.of.bad_values()]
        return [*wrong, *([] if self.empty else [[]]), "ab", 3, *([] if self.optional else [None])]


def check_parameters(estimator: Any, table: Mapping[str, Constraint]) -> None:
    """Raise `InvalidInput` for the first parameter of `estimator` that its table does not accept."""
    for name, constraint in table.items():
        value = getattr(estimator, name)
        if not constraint.accepts(value):
            raise InvalidInput(
                f"{type(estimator).__name__}: {name} is {value!r}; expected {constraint.describe()}",
                code="bad_parameter",
                name=name,
            )
