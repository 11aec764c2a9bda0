"""`longtail tree`: the label tree of a model, for people or for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from longtail.cli.inputs import load_tagger
from longtail.cli.options import option, takes
from longtail.cli.outputs import check_out, out_field, output, write_through
from longtail.cli.terminal import Terminal
from longtail.errors import InvalidInput
from longtail.files import check_ending, ending_of
from longtail.printable import counted, json_text

if TYPE_CHECKING:
    from longtail.labels import LabelHierarchy
    from longtail.tagger import Tagger

_LABELS_SHOWN = 5
_FORMS = {".txt": "text", ".json": "json", ".tsv": "tsv"}


@dataclass(frozen=True)
class TreeOptions:
    """Which tree to print, and how."""

    number: int = option(
        type=click.IntRange(min=1), default=1, show_default=True, help="Number of the tree, counted from 1."
    )
    depth: int | None = option(type=click.IntRange(min=1), help="Text: maximum depth to show.  [default: all]")
    labels: int | None = option(
        type=click.IntRange(min=0), help="Text: number of labels to show per node.  [default: 5]"
    )
    output: str | None = option(
        type=click.Choice(["text", "json", "tsv"]),
        help="Output format; tsv has lines of child, tab, parent.  [default: by the ending of FILE, else text]",
    )
    out: str | None = out_field("Write to FILE (.txt, .json or .tsv) instead of standard output.")

    def form(self) -> str:
        """The output format; a file whose name ends otherwise is refused."""
        if self.out is None:
            return self.output or "text"
        given = [end for end, form in _FORMS.items() if self.output in (None, form)]
        check_ending(self.out, given, f"trees {'' if self.output is None else f'as {self.output} '}are written")
        return _FORMS[ending_of(self.out)]


@click.command()
@click.argument("model")
@takes(options=TreeOptions)
@click.pass_obj
def command(terminal: Terminal, /, model: str, options: TreeOptions) -> None:
    """Print or export the label tree of MODEL.

    To correct a learned tree by hand, export it with --output tsv, edit the file, and pass it to `longtail train
    --taxonomy`.
    """
    form, out = options.form(), options.out
    for name in ("depth", "labels"):
        if getattr(options, name) is not None and form != "text":
            raise click.UsageError(f"--{name} is for --output text")
    wrote = check_out(out)
    tagger = load_tagger(model)
    hierarchy = _hierarchy(tagger, model, options.number)
    names = tagger.label_names_
    if form == "tsv":
        _write_taxonomy(hierarchy, names, out)
    elif form == "json":
        _write(json_text(hierarchy.to_dict(names)), out)
    else:
        shown = _LABELS_SHOWN if options.labels is None else options.labels
        _write(hierarchy.format(names, max_depth=options.depth, max_labels=shown), out)
    if out is not None:
        sizes = f"{counted(hierarchy.n_nodes, 'node')}, {counted(len(hierarchy.labels), 'label')}"
        terminal.say(f"{wrote} {out}: {sizes}")


def _hierarchy(tagger: Tagger, model: str, number: int) -> LabelHierarchy:
    estimator = tagger.estimator_
    trees: tuple[LabelHierarchy, ...] = estimator.hierarchies_
    if not trees:
        raise InvalidInput(f"{model} holds a {type(estimator).__name__}, which has no tree; train with --learner tree")
    if number > len(trees):
        raise InvalidInput(f"--number is {number}; {model} has {len(trees)} {'tree' if len(trees) == 1 else 'trees'}")
    return trees[number - 1]


def _write(text: str, out: str | None) -> None:
    with output(out) as write:
        write(text.encode() + b"\n")


def _write_taxonomy(hierarchy: LabelHierarchy, names: Sequence[str], out: str | None) -> None:
    from longtail.labels import write_taxonomy

    write_through(lambda path: write_taxonomy(hierarchy, path, names), out, "tree.tsv")
