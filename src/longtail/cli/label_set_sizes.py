"""`longtail audit` without DATA: the label sets of the training rows, or all sets of a few labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longtail.audit import SizeAudit
    from longtail.data import Corpus
    from longtail.tagger import Tagger


def training_corpus(tagger: Tagger) -> Corpus | None:
    """The rows that an updatable model keeps; None if the model keeps none."""
    from longtail.data import Corpus

    rows = tagger.rows_
    if rows is None:
        return None
    values, labels = rows.values, np.ones(len(rows.labels), dtype=np.float32)
    return Corpus(
        labels=sparse.csr_array((labels, rows.labels, rows.label_starts), shape=(rows.n_rows, rows.n_labels)),
        label_names=list(tagger.label_names_),
        features=sparse.csr_array((values, rows.columns, rows.starts), shape=(rows.n_rows, rows.n_features)),
    )


def size_facts(found: SizeAudit, label_names: Sequence[str] | None) -> dict[str, Any]:
    """An audit of label sets by their size, as plain values."""
    low, high = found.interval
    return {
        "least_labels": found.least,
        "most_labels": found.most,
        "sets_of_these_sizes": found.n_sets,
        "complete": found.is_complete,
        "share": found.share,
        "share_from": low,
        "share_to": high,
        **found.found.to_dict(label_names, 0 if label_names is None else None),
    }


def audit_by_size(
    layer: Any, names: Sequence[str], up_to: int | None, as_json: bool, examples: int, options: dict[str, Any]
) -> None:
    """Print the share of sets of up to `up_to` labels that some input gets; without a size, the largest safe one."""
    from longtail.audit import audit_sizes, find_safe_size
    from longtail.cli.outputs import print_json
    from longtail.printable import printable

    if up_to is None:
        safe = find_safe_size(layer, **options)
        if as_json:
            facts = [size_facts(each, None) for each in safe.sizes]
            print_json({"safe_size": safe.k, "proved": safe.is_proved, "sizes": facts}, indent=2)
            return
        found = safe.sizes[-1].found
        for each in safe.sizes:
            click.echo(each.says())
        click.echo(safe.says())
    else:
        sized = audit_sizes(layer, up_to, **options)
        if as_json:
            print_json(size_facts(sized, names), indent=2)
            return
        found = sized.found
        click.echo(sized.says())
    for example in found.examples(names, examples):
        click.echo()
        click.echo(", ".join(printable(name) for name in example["labels"]) or "(no label)")
        click.echo(f"  {printable(example['says'])}")
