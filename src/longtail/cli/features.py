"""The options that say how rows become features, for every command that makes them, and the features they come to."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.options import add_options, option
from longtail.cli.terminal import Terminal
from longtail.errors import InvalidInput

if TYPE_CHECKING:
    from longtail.data import Corpus, GroupedCorpus
    from longtail.text import RowScaling, TextFeatures


_FEW_TEXTS = 50


def _lengths(value: str) -> tuple[int, int]:
    found = re.fullmatch(r"([1-9]\d?)(?:-([1-9]\d?))?", value)
    if found is None:
        raise click.BadParameter("expected lengths such as 1 or 1-2")
    return int(found[1]), int(found[2] or found[1])


def _frequency(value: str) -> int | float:
    try:
        return int(value) if value.isdigit() else float(value)
    except ValueError:
        raise click.BadParameter("expected a number of texts, or a fraction of them such as 0.01") from None


@dataclass(frozen=True)
class FeatureOptions:
    """How rows become features; the first three are for texts, the others for rows of features."""

    section = "Features"

    ngrams: tuple[int, int] | None = option(
        parse=_lengths, metavar="1-2", help="Texts: lengths of the word n-grams to count.  [default: 1]"
    )
    min_df: int | float | None = option(
        parse=_frequency, help="Texts: least number, or share, of texts that contain a word.  [default: 2]"
    )
    max_features: int | None = option(type=click.IntRange(min=1), help="Texts: maximum number of words.")
    log: bool = option(is_flag=True, default=False, help="Features: replace each value v by ln(1 + v).")
    no_normalize: bool = option(is_flag=True, default=False, help="Features: do not scale rows to unit length.")


feature_options = add_options(FeatureOptions)


def check_feature_options(given: dict[str, Any], corpus: Corpus | GroupedCorpus) -> None:
    """An option that would do nothing is a mistake worth a word."""
    has_texts = corpus.texts is not None
    idle = ("log", "no_normalize") if has_texts else ("ngrams", "min_df", "max_features")
    for name in idle:
        if given[name]:
            kind, other = ("texts", "features") if has_texts else ("features", "texts")
            raise InvalidInput(f"--{name.replace('_', '-')} is for {other}; {given['data']} holds {kind}")


def chosen_features(options: FeatureOptions, data: str, corpus: Corpus | GroupedCorpus) -> Any:
    """The options as `longtail.text.fit_features` takes them; None where no option is given."""
    check_feature_options({**asdict(options), "data": data}, corpus)
    if options == FeatureOptions():
        return None
    from longtail import text

    normalize = not options.no_normalize
    return text.FeatureOptions(options.ngrams, options.min_df, options.max_features, options.log, normalize)


def _fit_texts(features: TextFeatures, texts: Any) -> Any:
    try:
        return features.fit_transform(texts)
    except InvalidInput as error:
        if "lower min_df" not in str(error):
            raise
        raise InvalidInput(f"{error}: say --min-df 1") from None


def make_features(
    given: dict[str, Any], corpus: Corpus | GroupedCorpus, terminal: Terminal
) -> tuple[TextFeatures | RowScaling, Any]:
    """The features of the rows, and what made them."""
    from longtail.text import RowScaling, TextFeatures

    features: TextFeatures | RowScaling
    if corpus.texts is not None:
        features = TextFeatures(
            ngrams=given["ngrams"] or (1, 1),
            min_df=min(2, corpus.n_rows) if given["min_df"] is None else given["min_df"],
            max_features=given["max_features"],
        )
        X = _fit_texts(features, corpus.texts)
        if given["min_df"] is None and corpus.n_rows < _FEW_TEXTS:
            terminal.say("words of a single text are left out; of so few texts many are: --min-df 1 keeps them")
    else:
        features = RowScaling(log=given["log"], unit=not given["no_normalize"])
        X = features.fit_transform(corpus.features)
    terminal.say(f"features: {X.shape[1]:,}, of which a row has {X.nnz / X.shape[0]:.0f} on average")
    return features, X
