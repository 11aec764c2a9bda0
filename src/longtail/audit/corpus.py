"""Audit a model on the label sets of a corpus: what `longtail audit` computes, prints and draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.audit.auditing import audit
from longtail.audit.box import Box
from longtail.audit.finding import ARGMAXABLE, UNARGMAXABLE, UNDETERMINED, Audit
from longtail.audit.label_sets import LabelSets
from longtail.audit.trees import audit_tree
from longtail.audit.width import Truncation, Width, truncation_needed, width_needed
from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.estimator import Estimator, OutputLayer, Rule
from longtail.files import PathName
from longtail.progress import stage

if TYPE_CHECKING:
    from longtail.pictures import Panel

_EXAMPLES = 3
_LABELS_OF_AN_EXAMPLE = 20
_VERDICTS = {ARGMAXABLE: "some input gets it", UNARGMAXABLE: "no input gets it", UNDETERMINED: "not known"}


@dataclass(frozen=True, eq=False)
class CorpusAudit:
    """What an audit found on the label sets of a corpus.

    Attributes
    ----------
    found : Audit
    label_names : sequence of str
    unknown_sets, unknown_rows : int
        Label sets, and rows, with labels that the model does not know. They are not audited.
    ranks : tuple of pairs
        Ranks, ascending, and the audit of the layer cut down to each.
    width : Width or None
        What is proved about the width of any layer that reaches these sets, if that was asked.
    truncation : Truncation or None
        Down to which rank the layer can be cut, if that was asked.
    """

    found: Audit
    label_names: Sequence[str]
    unknown_sets: int
    unknown_rows: int
    ranks: tuple[tuple[int, Audit], ...] = ()
    width: Width | None = None
    truncation: Truncation | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, with every set that no input gets."""
        return {
            **self.found.to_dict(self.label_names),
            "rows_with_unknown_labels": self.unknown_rows,
            "label_sets_with_unknown_labels": self.unknown_sets,
            "ranks": [{"rank": rank, **cut.to_dict(self.label_names, 0)} for rank, cut in self.ranks],
            "width": None if self.width is None else self.width.to_dict(),
            "truncation": None if self.truncation is None else self.truncation.to_dict(),
        }

    def for_card(self) -> dict[str, Any]:
        """The section ``audit`` of a model's card, with a few examples; the caller adds `data` and `at`."""
        facts = self.found.to_dict(self.label_names, _EXAMPLES)
        del facts["remedies"]
        for example in facts["examples"]:
            example["labels"] = example["labels"][:_LABELS_OF_AN_EXAMPLE]
            for name in ("conflict", "weights", "residual"):
                del example[name]
        return {"rule": self.found.rule, **facts, "rows_with_unknown_labels": self.unknown_rows}

    def verdict_rows(self) -> list[list[str]]:
        """A table of verdicts: the verdict in words, sets, share of the audited sets, rows."""
        rows = [
            [
                words,
                f"{self.found.count(verdict):,}",
                _percent(self.found, verdict),
                f"{self.found.count_rows(verdict):,}",
            ]
            for verdict, words in _VERDICTS.items()
        ]
        if self.unknown_rows:
            rows.append(["has an unknown label", f"{self.unknown_sets:,}", "-", f"{self.unknown_rows:,}"])
        return rows

    def rank_rows(self) -> list[list[str]]:
        """A table of ranks: the rank, the shares of sets that no input gets and that are not known, smallest radius."""
        return [
            [
                str(rank),
                _percent(cut, UNARGMAXABLE),
                _percent(cut, UNDETERMINED),
                "-" if (radius := cut.smallest_radius()) is None else f"{radius:.2g}",
            ]
            for rank, cut in self.ranks
        ]

    def panels(self) -> list[Panel]:
        """What to draw: the share of sets that no input gets against the rank, and the distribution of radii."""
        from longtail.pictures import Line, Panel

        layers = [("whole layer", self.found), *((f"rank {rank}", cut) for rank, cut in self.ranks)]
        panels = []
        if self.ranks:
            shares = [100 * cut.count(UNARGMAXABLE) / len(cut) for _, cut in self.ranks]
            line = Line("label sets that no input gets", [rank for rank, _ in self.ranks], shares, style=6)
            panels.append(Panel("Cut down to a rank", "rank", "percent of label sets", [line], log_x=True))
        lines = []
        for style, (name, each) in enumerate(layers):
            radii = np.sort(each.radii[(each.radii > 0) & np.isfinite(each.radii)])
            # Sets without a radius count as radius 0.
            below = 100 * np.arange(len(each) - len(radii) + 1, len(each) + 1) / len(each)
            if len(radii):
                lines.append(Line(name, radii.tolist(), below.tolist(), style=style, marked=False))
        if lines:
            panels.append(Panel("Radii", "radius", "percent of label sets, cumulative", lines, log_x=True))
        return panels


def audit_corpus(
    model: Estimator | OutputLayer,
    corpus: Corpus,
    label_names: Sequence[str],
    *,
    rule: Rule | None = None,
    limit: int | None = 1000,
    ranks: Sequence[int] = (),
    widths: bool = False,
    exact_radii: bool = False,
    box: float = 1.0,
    seen: Any = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    resume: PathName | None = None,
) -> CorpusAudit:
    """Find the label sets of a corpus that a model can never give.

    Parameters
    ----------
    model : Estimator or OutputLayer
        A fitted learner, or a layer.
    corpus : Corpus
    label_names : sequence of str
        The name of each label of the model.
    rule : {"predict", "topk"} or None
        Label sets as ``predict`` gives them (the default), or as the first places of ``predict_topk``. A layer has its
        own rule.
    limit : int or None
        Maximum number of distinct label sets to audit; a random sample if there are more.
    ranks : sequence of int
        Also audit the layer cut down to these ranks.
    widths : bool
        Also search for the width that the sets need: of any layer without a bias, and of this layer cut down.
    exact_radii, box, seen, n_jobs, random_state, resume
        As for `audit`.

    Raises
    ------
    InvalidInput
        With the code ``needs_linear_layer`` and the name of the argument if `rule`, `ranks`, `widths` or
        `exact_radii` is given for a label tree; if a rank is too large, or no row has only labels that the model knows.
    """
    sets, unknown = _label_sets(corpus, label_names, limit, random_state)
    if isinstance(model, OutputLayer):
        layer = model
    elif model.scores_along_trees:
        for name, given in (("ranks", ranks), ("widths", widths), ("exact_radii", exact_radii), ("rule", rule)):
            if given:
                raise InvalidInput(
                    f"{name} needs a linear layer; a label tree has none", code="needs_linear_layer", name=name
                )
        return CorpusAudit(audit_tree(model, sets), label_names, *unknown)
    else:
        layer = model.output_layer(rule or "predict")
    largest = min(layer.n_labels, layer.n_features)
    if max(ranks, default=0) > largest:
        raise InvalidInput(
            f"ranks has {max(ranks)}, but {layer.n_labels:,} labels over {layer.n_features:,} features have a rank of "
            f"at most {largest:,}"
        )
    options: dict[str, Any] = {
        "exact_radii": exact_radii,
        "n_jobs": n_jobs,
        "random_state": random_state,
        "resume": resume,
    }
    whole: dict[str, Any] = {"box": Box.cube(box, layer.n_inputs)} | ({} if seen is None else {"seen": Box.seen(seen)})
    found = audit(layer, sets, **whole, **options)
    cuts = []
    if ranks:
        truncations = layer.truncations(max(ranks))
        for rank in sorted(set(ranks)):
            # The inputs of the cut layer are directions; balls and boxes are still those of the features.
            directions = np.zeros((rank, layer.n_inputs))
            directions[:, layer.used_features] = truncations.directions[:rank]
            boxes: dict[str, Any] = {name: each.seen_through(directions) for name, each in whole.items()}
            with stage(f"rank {rank}"):
                cuts.append((rank, audit(replace(layer, weights=truncations(rank)), sets, **boxes, **options)))
    needed: dict[str, Any] = {}
    if widths:
        with stage("the width that is needed"):
            needed["truncation"] = truncation_needed(layer, sets, n_jobs)
            needed["width"] = width_needed(sets) if layer.rule == "predict" else None
    return CorpusAudit(found, label_names, *unknown, tuple(cuts), **needed)


def _label_sets(
    corpus: Corpus, label_names: Sequence[str], limit: int | None, random_state: int
) -> tuple[LabelSets, tuple[int, int]]:
    """Distinct label sets of the rows whose labels are all known; how many sets, and rows, have other labels too."""
    labels = corpus.with_label_names(label_names).labels
    known = np.flatnonzero(np.diff(labels.indptr) == np.diff(corpus.labels.indptr))
    if not len(known):
        raise InvalidInput("no row has only labels that the model knows; there is no label set to audit")
    sets = LabelSets.of(labels[known], limit, random_state)
    others = np.setdiff1d(np.arange(corpus.n_rows), known, assume_unique=True)
    unknown = len(LabelSets.of(corpus.labels[others])), len(others)
    return replace(sets, first_row=known[sets.first_row]), unknown


def _percent(found: Audit, verdict: int) -> str:
    return f"{100 * found.count(verdict) / len(found):.1f}%"
