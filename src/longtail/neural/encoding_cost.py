"""The time that encoding texts takes, estimated from their lengths and from the size of the encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from longtail.files import PathName
from longtail.neural.sentences import Precision, resolve_precision

# Processor seconds of MiniLM, which has 91 MB of weights.
_TEXT = 0.2e-3
_TOKEN = {"float32": 1.6e-4, "bfloat16": 0.7e-4}
_BYTES = 91e6
_TOKENS_PER_WORD = 1.5
_SPECIAL_TOKENS = 2
_SAMPLE = 1000


def encoding_seconds(
    folder: PathName, texts: Sequence[str], *, max_tokens: int = 128, precision: Precision = "auto"
) -> float:
    """The processor seconds that `SentenceEncoder` takes for texts, right within a factor of about two.

    Parameters
    ----------
    folder : str or path-like
        The encoder.
    texts : sequence of str
    max_tokens, precision
        As for `SentenceEncoder`.
    """
    sample = texts[:: max(1, len(texts) // _SAMPLE)]
    lengths = [min(max_tokens, _TOKENS_PER_WORD * len(text.split()) + _SPECIAL_TOKENS) for text in sample]
    tokens = float(np.mean(lengths)) if lengths else 0.0
    size = sum(path.stat().st_size for path in Path(folder).glob("*.safetensors")) / _BYTES
    return len(texts) * (_TEXT + size * _TOKEN[resolve_precision(precision)] * tokens)
