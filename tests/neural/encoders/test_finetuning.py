"""A pretrained encoder and a head that learn together, on real sentences and a few of their labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from longtail.arrays import Array
from longtail.data import Corpus, load_data_set
from longtail.neural import Network, Settings, predict_rows, train
from longtail.neural.encoders import Pretrained, TextRows
from longtail.neural.heads import OneHot
from longtail.text import find_installed_encoder

pytest.importorskip("transformers")
FOLDER = find_installed_encoder()


def sentences(corpus: Corpus, common: Array, n_rows: int) -> tuple[list[str], Array]:
    """The first lines of some texts that have one of the common labels."""
    Y = np.asarray(corpus.labels.tocsr()[:, common].todense())
    rows = np.random.default_rng(0).permutation(np.flatnonzero(Y.any(axis=1)))[:n_rows]
    return [corpus.texts[row].split("\n")[0] for row in rows], Y[rows]


def precision(network: Network, texts: TextRows, Y: Array) -> float:
    best = predict_rows(network, texts, k=1)[0]
    return float(np.take_along_axis(Y, best, axis=1).mean())


@pytest.mark.slow
@pytest.mark.skipif(FOLDER is None, reason="no encoder is installed")
def test_a_few_steps_teach_encoder_and_head_to_tag_new_sentences() -> None:
    corpus = load_data_set("python-api", "train")
    common = np.sort(np.argsort(-corpus.label_counts, kind="stable")[:12])
    texts, Y = sentences(corpus, common, 240)
    new_texts, new_Y = sentences(load_data_set("python-api", "test"), common, 100)

    torch.manual_seed(0)
    encoder = Pretrained(FOLDER, longest=16, frozen=False)
    network = Network(encoder, OneHot(encoder.n_features, 12))
    held_out = TextRows(new_texts, encoder)
    untrained, before = precision(network, held_out, new_Y), encoder.encode(texts[:8])
    settings = Settings(epochs=2, batch_size=16, learning_rate=0.05, encoder_learning_rate=5e-5, warmup=0.1)
    history = train(network, TextRows(texts, encoder), Y, settings)
    assert history.losses[1] < 0.8 * history.losses[0]
    assert precision(network, held_out, new_Y) > untrained + 0.2
    # The encoder has learned too: vectors have length 1, and all of them have turned.
    assert (np.einsum("ij,ij->i", before, encoder.encode(texts[:8])) < 0.999).all()
