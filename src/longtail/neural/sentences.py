"""`SentenceEncoder`: one vector per text from a pretrained transformer, so that texts of similar meaning are near.

The encoder is a folder on this machine. Its weights are fixed, no code from the folder runs, and nothing is downloaded.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.files import PathName
from longtail.memory import MemoryPlan
from longtail.neural.encoders.pretrained import load_transformer
from longtail.neural.model import threads
from longtail.neural.vector_cache import DEFAULT_CACHE_BYTES, VectorCache
from longtail.parallel import check_stop, map_blocks, resolve_jobs, split
from longtail.progress import Advance, task
from longtail.text import EncoderSettings, encoder_fingerprint, read_encoder_settings
from longtail.validation import check_whole, checked_texts

Precision = Literal["auto", "float32", "bfloat16"]

# Batches of this many tokens are as fast as larger ones, and end soon enough for ctrl-C.
_TOKENS_IN_BATCH = 2048
# Texts are sorted by length within a window. A window of many batches leaves little to pad.
_BATCHES_IN_WINDOW = 64
# The rest of a very long text cannot reach the first tokens, but tokenising it takes long.
_CHARACTERS_PER_TOKEN = 64
_TEXTS_AT_ONCE = 64
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# The number of threads of torch is a setting of the process, and tokenizers refuse two threads at once.
one_at_a_time = threading.Lock()


class SentenceEncoder:
    """Vectors of texts from a pretrained transformer.

    The vector of a text is the mean of its token vectors, or the vector of its first token if the folder says so,
    scaled to length 1. The dot product of two vectors is then their cosine.

    Parameters
    ----------
    folder : str or path-like
        config.json, tokenizer files, and weights as safetensors, as `save_pretrained` of transformers or
        sentence-transformers writes them. `longtail.text.find_installed_encoder` finds one.
    max_tokens : int
        Further tokens of a text are dropped. The limit of the encoder also applies. A text is read up to its first
        ``64 * max_tokens`` characters.
    batch_size : int
        Maximum number of texts in a batch. Batches of long texts are smaller.
    cache : str, path-like or None
        A folder where vectors are kept, so that no text is encoded twice. Processes may share it. It holds hashes of
        the texts, not the texts.
    cache_bytes : int
        The cache stops growing at this size.
    n_jobs : int or None
        Number of threads; None means every core. Each batch is computed by one thread, so vectors do not depend on it.
    precision : {"auto", "float32", "bfloat16"}
        "auto" is bfloat16 if the processor computes with it (AVX512-BF16 or AMX), which is about twice as fast, and
        otherwise float32.

    Attributes
    ----------
    folder : Path
    fingerprint : str
        SHA-256 digest of the configuration, the tokenizer and the weights. Vectors of encoders with different
        fingerprints must not be mixed.
    width : int
        The length of a vector.
    max_tokens : int
        The limit that applies: of the parameter or of the encoder, whichever is less.
    precision : {"float32", "bfloat16"}
        The precision in use.

    Notes
    -----
    The same list of texts gives the same vectors, bit for bit, if the cache is in the same state. The other texts of
    the list change a vector only by rounding: for MiniLM by about 2e-7 per component with float32, and by about 2e-3
    with bfloat16. The vectors of the two precisions have a cosine of more than 0.999.
    """

    def __init__(
        self,
        folder: PathName,
        *,
        max_tokens: int = 128,
        batch_size: int = 64,
        cache: PathName | None = None,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        n_jobs: int | None = None,
        precision: Precision = "auto",
    ) -> None:
        if precision not in ("auto", *_DTYPES):
            raise InvalidInput(f'precision is {precision!r}; expected "auto", "float32" or "bfloat16"')
        self.batch_size = check_whole("batch_size", batch_size)
        check_whole("max_tokens", max_tokens)
        check_whole("cache_bytes", cache_bytes, least=0)
        resolve_jobs(n_jobs)
        self.n_jobs = n_jobs
        self.folder = Path(folder)
        self.fingerprint = encoder_fingerprint(self.folder)
        self._settings = read_encoder_settings(self.folder)
        self._model, self._tokenizer = load_transformer(self.folder)
        config = self._model.config
        if getattr(config, "is_encoder_decoder", False) or not hasattr(config, "hidden_size"):
            raise ModelFormatError(
                f"{self.folder}: this transformer is not supported: expected a text encoder without a decoder",
                path=self.folder,
            )
        self.precision = resolve_precision(precision)
        self._model.to(_DTYPES[self.precision])
        self.width = int(config.hidden_size)
        self._n_special = int(self._tokenizer.num_special_tokens_to_add())
        self.max_tokens = longest_text(self._model, self._tokenizer, self._settings, max_tokens)
        identity = (self.fingerprint, self.max_tokens, self.precision)
        self.cache = None if cache is None else VectorCache(cache, identity, self.width, cache_bytes)

    def encode(self, texts: Iterable[str]) -> Array:
        """The vectors of texts.

        Parameters
        ----------
        texts : iterable of str

        Returns
        -------
        vectors : float32 array of shape (n_texts, width)
            Rows of length 1. A text without a token, such as an empty text, has a row of zeros.
        """
        rows = list(checked_texts(texts))
        MemoryPlan("encoding texts", {"vectors": 4 * len(rows) * self.width}, "Encode fewer texts at a time.").check()
        vectors = np.zeros((len(rows), self.width), np.float32)
        with one_at_a_time, threads(1), task("encoding texts", total=len(rows)) as advance:
            for window in split(len(rows), self.batch_size * _BATCHES_IN_WINDOW):
                vectors[window] = self._encode_window(rows[window], advance)
        return vectors

    def _encode_window(self, texts: Sequence[str], advance: Advance) -> Array:
        numbers: dict[str, int] = {}
        places = np.array([numbers.setdefault(text, len(numbers)) for text in texts])
        unique, copies = list(numbers), np.bincount(places)
        keys: list[bytes] = []
        missing, vectors = np.arange(len(unique)), np.zeros((len(unique), self.width), np.float32)
        if self.cache is not None:
            keys = [self.cache.key(text) for text in unique]
            found, vectors = self.cache.lookup(keys)
            missing = np.flatnonzero(~found)
            advance(int(copies[found].sum()))
        for batch, pooled in self._encode_batches([unique[number] for number in missing]):
            vectors[missing[batch]] = pooled
            advance(int(copies[missing[batch]].sum()))
        if self.cache is not None:
            self.cache.append([keys[number] for number in missing], vectors[missing])
        return vectors[places]

    def _encode_batches(self, texts: Sequence[str]) -> Iterator[tuple[Array, Array]]:
        """Yield the rows of a batch and their vectors, for batches of texts of similar length."""
        tokens = token_ids(texts, self._tokenizer, self._settings, self.max_tokens)
        lengths = np.array([len(ids) for ids in tokens], np.int64)
        without = np.flatnonzero(lengths <= self._n_special)
        yield without, np.zeros((len(without), self.width), np.float32)
        batches = _split_by_length(lengths, self._n_special, self.batch_size)
        yield from map_blocks(lambda rows: (rows, self._pooled([tokens[row] for row in rows])), batches, self.n_jobs)

    def _pooled(self, tokens: Sequence[Sequence[int]]) -> Array:
        padding = self._tokenizer.pad_token_id
        ids = torch.full((len(tokens), max(map(len, tokens))), 0 if padding is None else padding)
        mask = torch.zeros_like(ids)
        for row, known in enumerate(tokens):
            ids[row, : len(known)] = torch.tensor(known)
            mask[row, : len(known)] = 1
        with torch.inference_mode():
            states = self._model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
            if self._settings.pooling == "cls":
                pooled = states[:, 0]
            else:
                pooled = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
            vectors: Array = torch.nn.functional.normalize(pooled, dim=1).numpy()
        if not np.isfinite(vectors).all():
            raise ModelFormatError(
                f"{self.folder}: the encoder gives vectors that are not finite; its weights are damaged",
                path=self.folder,
            )
        return vectors


def token_ids(texts: Sequence[str], tokenizer: Any, settings: EncoderSettings, max_tokens: int) -> list[list[int]]:
    """The token ids of texts as an encoder reads them, at most `max_tokens` of each text."""
    found: list[list[int]] = []
    for part in split(len(texts), _TEXTS_AT_ONCE):
        check_stop()
        cut = [text[: _CHARACTERS_PER_TOKEN * max_tokens] for text in texts[part]]
        if settings.lower_case:
            cut = [text.lower() for text in cut]
        encoded = tokenizer(
            [_LONE_SURROGATE.sub(" ", text) for text in cut],
            truncation=True,
            max_length=max_tokens,
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        found += encoded["input_ids"]
    return found


def longest_text(model: Any, tokenizer: Any, settings: EncoderSettings, max_tokens: int) -> int:
    """The number of tokens that an encoder reads of a text: `max_tokens`, or a lower limit of the encoder."""
    limits = [max_tokens, tokenizer.model_max_length, settings.max_tokens]
    positions = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    if isinstance(positions, torch.nn.Embedding):
        # RoBERTa and similar models start counting positions after the number of the padding token.
        unused = 0 if positions.padding_idx is None else positions.padding_idx + 1
        limits.append(positions.num_embeddings - unused)
    else:
        limits.append(getattr(model.config, "max_position_embeddings", None))
    least = int(tokenizer.num_special_tokens_to_add()) + 1
    return check_whole("max_tokens", int(min(filter(None, limits))), least=least)


def resolve_precision(precision: Precision) -> Literal["float32", "bfloat16"]:
    """The precision to compute with: "auto" asks torch whether the processor multiplies bfloat16 matrices.

    Nothing is timed, so the same machine always gives the same answer.
    """
    if precision != "auto":
        return precision
    # Older versions of torch lack these functions.
    checks = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    mkldnn: Any = torch.backends.mkldnn
    fast = mkldnn.is_available() and any(check is not None and check() for check in checks)
    return "bfloat16" if fast else "float32"


def _split_by_length(lengths: Array, more_than: int, batch_size: int) -> list[Array]:
    """Rows longer than `more_than`, longest first, in batches of at most `batch_size` rows and a bounded size."""
    order = np.argsort(-lengths, kind="stable")
    order = order[lengths[order] > more_than]
    batches, start = [], 0
    while start < len(order):
        size = min(batch_size, max(1, _TOKENS_IN_BATCH // int(lengths[order[start]])))
        batches.append(order[start : start + size])
        start += size
    return batches
