"""`longtail explain`: the words, or features, of a row and what each adds to the score of a label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from longtail.cli.inputs import ReaderOptions, called, check_labels, load_tagger, read, reader_options
from longtail.cli.outputs import print_json
from longtail.cli.terminal import Terminal
from longtail.errors import InvalidInput

if TYPE_CHECKING:
    from longtail.tagger import Reason, TagExplanation, Tagger


@click.command()
@click.argument("model")
@click.option("--text", help="The text.")
@click.option("--data", metavar="FILE", help="A file to take the row from, instead of --text.")
@click.option("--row", type=click.IntRange(min=1), default=1, show_default=True, help="Its row, counted from 1.")
@click.option("--label", "labels", multiple=True, help="A label to explain.  [default: the best ones]")
@click.option("-k", type=click.IntRange(min=1), default=3, show_default=True, help="Labels to explain.")
@click.option("--words", type=click.IntRange(min=1), default=10, show_default=True, help="Words to show of each.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each label, with every word.")
@reader_options
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
    **given: Any,
) -> None:
    """Show what the words of a text add to the scores of its best labels, or of the labels given.

    The contributions are exact. For ridge they add up to the score; for one-vs-rest and label trees they add up to the
    margin, from which the score is made. For a label tree the path to the label is shown as well: the probability of
    each step and the words it is due to.
    """
    if (text is None) == (data is None):
        raise click.UsageError("give either --text or --data")
    terminal.hide_progress("predicting")
    tagger = load_tagger(model)
    check_labels(tagger, labels, "--label")
    chosen = _row(tagger, text, data, row, ReaderOptions(**given))
    names = labels or _best(tagger, chosen, k)
    explanations = [tagger.explain(chosen, name) for name in names]
    if as_json:
        for explanation in explanations:
            print_json(_as_dict(explanation))
        return
    from longtail.cli.tables import explanation_table, path_table, show

    for number, explanation in enumerate(explanations):
        show(*([""] if number else []), *path_table(explanation), explanation_table(explanation, words))


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
    tags = tagger.predict([row] if tagger.takes_texts else row, k)[0]
    names = [tag.label for tag in tags if tag.score]
    if not names:
        raise InvalidInput("there is nothing to explain: the model knows no word of the row, so no label has a score")
    return names


def _as_dict(explanation: TagExplanation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "label": explanation.label,
        "score": explanation.score,
        "margin": explanation.margin,
        "intercept": explanation.intercept,
        "contributions": _contributions(explanation.reasons),
    }
    if explanation.steps:
        found["steps"] = [
            {
                "tree": step.tree,
                "to": step.name,
                "labels": step.n_labels,
                "frequent": step.frequent,
                "probability": step.probability,
                "margin": step.margin,
                "intercept": step.intercept,
                "contributions": _contributions(step.reasons),
            }
            for step in explanation.steps
        ]
    return found


def _contributions(reasons: tuple[Reason, ...]) -> list[dict[str, Any]]:
    return [{"word": word, "adds": adds} for word, adds in reasons]
