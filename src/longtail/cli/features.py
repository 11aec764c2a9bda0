"""The options of features, for every command that makes them."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import click

from longtail.cli.options import flag_of, option
from longtail.errors import InvalidInput

if TYPE_CHECKING:
    from longtail.data import Corpus, GroupedCorpus
    from longtail.text import FeatureOptions


def _lengths(value: str) -> tuple[int, int]:
    found = re.fullmatch(r"([1-9]\d?)(?:-([1-9]\d?))?", value)
    if found is None:
        raise click.BadParameter("expected lengths such as 1 or 1-2")
    return int(found[1]), int(found[2] or found[1])


def _frequency(value: str) -> int | float:
    try:
        return int(value) if value.isdigit() else float(value)
    except ValueError:
        raise click.BadParameter("expected a number of texts, or a share of them such as 0.01") from None


def _subword_length(value: str) -> int:
    if value.lower() in ("0", "none"):
        return 0
    if re.fullmatch(r"[1-9]\d?", value) is None or not 3 <= int(value) <= 20:
        raise click.BadParameter("expected a length from 3 to 20, or 0 or none for no subwords")
    return int(value)


@dataclass(frozen=True)
class FeatureFlags:
    """How rows become features; the first four options are for texts, the others for rows of features."""

    section = "Features"

    ngrams: tuple[int, int] | None = option(
        parse=_lengths, metavar="LENGTHS", help="Texts: lengths of the word n-grams to use, e.g. 1-2.  [default: 1]"
    )
    min_df: int | float | None = option(
        parse=_frequency,
        metavar="N",
        help="Texts: ignore words that occur in fewer than N texts; N can be a share such as 0.01.  [default: 2]",
    )
    max_features: int | None = option(
        type=click.IntRange(min=1), help="Texts: maximum number of words and n-grams to use."
    )
    subwords: int | None = option(
        parse=_subword_length,
        metavar="N",
        help="Texts: also use the runs of N letters inside words, 3 to 20, e.g. 5; 0 or none: only words.",
    )
    log: bool = option(is_flag=True, default=False, help="Features: replace each value v by ln(1 + v).")
    no_normalize: bool = option(is_flag=True, default=False, help="Features: do not scale rows to unit length.")

    def options(self) -> FeatureOptions:
        """The options as the library takes them."""
        from longtail.text import FeatureOptions

        return FeatureOptions(
            ngrams=self.ngrams,
            min_df=self.min_df,
            max_features=self.max_features,
            subwords=self.subwords,
            log=self.log,
            normalize=not self.no_normalize,
        )

    def checked(self, corpus: Corpus | GroupedCorpus, data: str) -> FeatureOptions | None:
        """The options as the library takes them, or None if none is given; one that would do nothing is refused."""
        if self == FeatureFlags():
            return None
        self.check(corpus, data)
        return self.options()

    def check_unused(self, beside: str) -> None:
        """Refuse every option, because there are other features with the option `beside`."""
        for each in fields(self):
            if getattr(self, each.name) != each.default:
                raise InvalidInput(f"{flag_of(FeatureFlags, each.name)} does not go with {beside}")

    def check(self, corpus: Corpus | GroupedCorpus, data: str) -> None:
        """Refuse an option that would do nothing."""
        has_texts = corpus.texts is not None
        name = self.options().idle(has_texts)
        if name is not None:
            found, other = ("texts", "features") if has_texts else ("features", "texts")
            flag = flag_of(FeatureFlags, "no_normalize" if name == "normalize" else name)
            raise InvalidInput(f"{flag} is for {other}; {data} holds {found}", code="idle_parameter", name=name)
