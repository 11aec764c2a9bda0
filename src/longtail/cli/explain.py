"""`longtail explain`: what each word, or feature, of a row adds to the score of a label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from longtail.cli.inputs import called, check_labels, load_tagger, read
from longtail.cli.options import takes
from longtail.cli.outputs import print_json
from longtail.cli.reading import ReaderOptions
from longtail.cli.terminal import Terminal
from longtail.errors import InvalidInput

if TYPE_CHECKING:
    from longtail.tagger import Tagger


@click.command()
@click.argument("model")
@click.option("--text", help="Text to explain.")
@click.option("--data", metavar="FILE", help="File to take the row from, instead of --text.")
@click.option("--row", type=click.IntRange(min=1), default=1, show_default=True, help="Row of FILE, counted from 1.")
@click.option("--label", "labels", multiple=True, help="Label to explain; can be repeated.  [default: the k best]")
@click.option("-k", type=click.IntRange(min=1), default=3, show_default=True, help="Number of best labels to explain.")
@click.option(
    "--words", type=click.IntRange(min=1), default=10, show_default=True, help="Number of words to show per label."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each label, with every word.")
@takes(reader=ReaderOptions)
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    model: str,
    text: str | None,
    data: str | None,
    row: int,
    labels: tuple[str, ...],
    k: int,
    words: int,
    as_json: bool,
    reader: ReaderOptions,
) -> None:
    """Show how much each word of a text adds to the scores of its best labels, or of the given labels.

    The contributions are exact. For ridge they add up to the score; for one-vs-rest and label trees they add up to the
    margin, from which the score is computed. For label trees the output also shows the path to the label, with the
    probability of each step and its most important words.

    For a model of two stages, the output also shows what the second stage looked at, and how far each number moved the
    log-odds of the score. The path and the words then belong to the first learner among its sources.
    """
    if (text is None) == (data is None):
        raise click.UsageError("give either --text or --data")
    terminal.hide_progress("predicting")
    tagger = load_tagger(model)
    check_labels(tagger, labels, "--label")
    chosen = _row(tagger, text, data, row, reader)
    names = labels or _best(tagger, chosen, k)
    explanations = [tagger.explain(chosen, name) for name in names]
    if as_json:
        for explanation in explanations:
            print_json(explanation.to_dict())
        return
    from longtail.cli.tables import evidence_table, explanation_table, path_table, show

    for number, explanation in enumerate(explanations):
        show(
            *([""] if number else []),
            *path_table(explanation),
            *evidence_table(explanation, words),
            explanation_table(explanation, words),
        )


def _row(tagger: Tagger, text: str | None, data: str | None, row: int, options: ReaderOptions) -> Any:
    if data is None:
        if not tagger.takes_texts:
            raise InvalidInput("the model takes features, not texts; give --data and --row")
        return text
    corpus = read(data, "test", options, labelled=False)
    rows: Any = corpus.texts if tagger.takes_texts else corpus.features
    if rows is None:
        raise InvalidInput(f"the model takes {'texts' if tagger.takes_texts else 'features'}; {data} holds none")
    if not corpus.n_rows:
        raise InvalidInput(f"{called(data)} has no rows; there is nothing to explain")
    if row > corpus.n_rows:
        raise InvalidInput(f"--row is {row}; {data} has {corpus.n_rows} rows")
    return rows[row - 1] if tagger.takes_texts else rows[[row - 1]]


def _best(tagger: Tagger, row: Any, k: int) -> list[str]:
    names = [tag.label for tag in tagger.tag([row] if tagger.takes_texts else row, k)[0]]
    if not names:
        raise InvalidInput("nothing to explain: no label has a score, because the model knows none of the words")
    return names
