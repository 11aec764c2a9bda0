"""`TrainedEncoder`: a pretrained text encoder as the first part of a network that trains its weights, too.

The rows are those of `TokenFeatures`. A model stores the trained weights. The form of the encoder is that of the folder
with the same fingerprint, so nothing in a model says what to build.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.neural.batches import TokenRows
from longtail.neural.encoders.pretrained import Pooling, Pretrained, load_config
from longtail.neural.sentences import longest_text
from longtail.text import EncoderPlace, read_encoder_settings

# Values that a layer keeps for each token until its gradient is computed, in widths of the token vectors, of the
# wide layer, and of the attention.
_VECTORS, _WIDE, _ATTENTIONS = 12, 3, 3


@dataclass(frozen=True)
class TrainedEncoder:
    """An encoder in a folder, and the sizes that its configuration says.

    Parameters
    ----------
    place : EncoderPlace
    folder : Path
        Where the encoder is now.
    n_tokens : int
        Number of token ids.
    width : int
        Width of the features, and of the vectors of tokens.
    n_layers, wide, n_attentions : int
        The layers, the width of the widest part of a layer, and its number of attention heads.
    """

    place: EncoderPlace
    folder: Path
    n_tokens: int
    width: int
    n_layers: int
    wide: int
    n_attentions: int

    @classmethod
    def at(cls, place: EncoderPlace) -> Self:
        """The encoder at this place, or `ModelFormatError`; its weights are not read."""
        folder = place.find()
        config = load_config(folder)
        width = int(config.hidden_size)
        return cls(
            *(place, folder, int(config.vocab_size), width, int(config.num_hidden_layers)),
            *(int(getattr(config, "intermediate_size", 4 * width)), int(config.num_attention_heads)),
        )

    def module(self, longest: int) -> Pretrained:
        """The encoder with its pretrained weights, for texts of up to `longest` tokens."""
        settings = read_encoder_settings(self.folder)
        pooling: Pooling = "first" if settings.pooling == "cls" else "mean"
        encoder = Pretrained(self.folder, pooling, normalise=False, longest=longest, frozen=False)
        most = longest_text(encoder.model, encoder.tokenizer, settings, longest)
        if most < longest:
            raise InvalidInput(
                f"rows have up to {longest} tokens, but the encoder in {self.folder} reads {most}; make them with "
                "TokenFeatures"
            )
        return encoder

    def rows(self, X: Any) -> TokenRows:
        """The token ids in a matrix of `TokenFeatures`, or `InvalidInput` if it holds something else."""
        positions = np.arange(X.nnz) - np.repeat(X.indptr[:-1], np.diff(X.indptr))
        ids = X.data.astype(np.int64) - 1
        known = (ids >= 0) & (ids < self.n_tokens) & (X.data == ids + 1) & (X.indices == positions)
        if not known.all():
            place = int(np.flatnonzero(~known)[0])
            row = int(np.searchsorted(X.indptr, place, side="right")) - 1
            raise InvalidInput(
                f"row {row} has the value {X.data[place]:g} in column {X.indices[place]}, which is not a token of the "
                f"encoder in {self.folder}; make the rows with TokenFeatures"
            )
        return TokenRows(ids.astype(np.int32), X.indptr)

    def values_of_a_batch(self, n_rows: int, longest: int) -> int:
        """About the number of values that a training step keeps for texts of `longest` tokens."""
        of_a_layer = _VECTORS * self.width + _WIDE * self.wide + _ATTENTIONS * self.n_attentions * longest
        return n_rows * longest * self.n_layers * of_a_layer


def by_length(rows: TokenRows) -> Array:
    """The order of rows by their number of tokens, so that batches need little padding."""
    return np.argsort(-np.diff(rows.offsets), kind="stable")
