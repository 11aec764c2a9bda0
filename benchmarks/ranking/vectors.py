"""What the vectors of the installed sentence encoder bring to the default, and what encoding costs."""

from __future__ import annotations

from benchmarks.child import processor_seconds
from benchmarks.ranking.default import train_default
from benchmarks.samples import Split
from longtail.errors import Unavailable
from longtail.neural import SentenceFeatures
from longtail.ranking import TwoStage
from longtail.text import find_installed_encoder
from longtail_papers.common import Cell, Column, Table

SHOWN = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1")
_K = 5
_ENCODED = 1000  # texts that tell what encoding costs


def vectors_rows(name: str, title: str, split: Split, threads: int) -> list[tuple[Cell, ...]]:
    """The default without and with the encoder on the test rows; the encoder may be left out by the training."""
    folder = find_installed_encoder()
    if folder is None:
        raise Unavailable("no sentence encoder is installed", name="encoder", advice="set LONGTAIL_ENCODER to a folder")
    texts = list(split.test.texts or ())
    rows: list[tuple[Cell, ...]] = []
    for encoder in (None, str(folder)):
        run = train_default(split.train, threads, encoder=encoder)
        figures = run.judge(name, split, run.tagger.predict_topk(texts, _K)[0])
        model = run.tagger.estimator_
        used = "with vectors" if isinstance(model, TwoStage) and model.dense else "without vectors"
        rows.append((title, used, *(figures[each] for each in SHOWN), run.processor_seconds, None))
    started = processor_seconds()
    SentenceFeatures(folder, n_jobs=threads).fit().transform(texts[:_ENCODED])
    cost = 1000 * (processor_seconds() - started) / min(_ENCODED, len(texts))
    return [*rows[:-1], (*rows[-1][:-1], cost)]


def vectors_table(rows: list[tuple[Cell, ...]]) -> Table:
    columns = Column("data set"), Column("model"), *(Column(name, ".2f") for name in SHOWN)
    return Table(
        "Sentence vectors", (*columns, Column("training CPU s", ".1f"), Column("encoding ms/text", ".1f")), rows
    )
