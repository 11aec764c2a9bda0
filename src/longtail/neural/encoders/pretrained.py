"""`Pretrained`: a pretrained text encoder, loaded from a local folder by the transformers library.

Weights are read from safetensors files only, no code from the folder runs, and nothing is downloaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError, Unavailable
from longtail.neural.batches import TokenBatch
from longtail.progress import task
from longtail.text import check_encoder_folder, require_encoder_packages

Pooling = Literal["mean", "first"]
_HERE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


class Pretrained(nn.Module):
    """A transformer over texts, whose token vectors are pooled into one vector per text.

    Parameters
    ----------
    folder : str or path-like
        Output of `save_pretrained`: config.json, tokenizer files, and weights as safetensors.
    pooling : {"mean", "first"}
        Mean over the tokens, or the vector of the first token.
    normalise : bool
        Scale features to length 1.
    longest : int
        Maximum number of tokens per text; further tokens are dropped. The transformer's own limit also applies.
    frozen : bool
        Do not train the weights: the encoder is then a fixed function whose features `encode` can compute once.
        Otherwise they are trained together with the head.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        pooling: Pooling = "mean",
        normalise: bool = True,
        longest: int = 256,
        frozen: bool = True,
    ) -> None:
        super().__init__()
        if pooling not in ("mean", "first") or longest < 1:
            raise InvalidInput(
                f'pooling is {pooling!r} and longest {longest}; expected "mean" or "first", and at least one token'
            )
        self.model, self.tokenizer = load_transformer(Path(folder))
        self.pooling: Pooling = pooling
        self.normalise = normalise
        self.frozen = frozen
        self.n_features = int(self.model.config.hidden_size)
        self.longest = min(longest, int(getattr(self.model.config, "max_position_embeddings", longest)))
        self.model.requires_grad_(not frozen)
        self.train()

    def train(self, mode: bool = True) -> Pretrained:
        """Set the training mode; a frozen transformer stays in evaluation mode, without dropout."""
        super().train(mode)
        if self.frozen:
            self.model.eval()
        return self

    def tokenise(self, texts: Sequence[str]) -> TokenBatch:
        """Texts as padded token ids of the transformer."""
        encoded = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=self.longest, return_tensors="pt"
        )
        return TokenBatch(encoded["input_ids"], encoded["attention_mask"].bool())

    def forward(self, batch: TokenBatch) -> Tensor:
        """The features of token ids, as `tokenise` returns them."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            attention = batch.mask.long()
            attention[:, 0] = 1  # a text without tokens must attend to something
            vectors = self.model(input_ids=batch.ids, attention_mask=attention).last_hidden_state
        if self.pooling == "first":
            pooled = vectors[:, 0]
        else:
            weights = batch.mask[:, :, None].to(vectors.dtype)
            pooled = (vectors * weights).sum(1) / weights.sum(1).clamp(min=1)
        return functional.normalize(pooled, dim=1) if self.normalise else pooled

    def encode(self, texts: Sequence[str], batch_size: int = 32) -> Array:
        """The features of many texts, batched by similar length to reduce padding.

        Parameters
        ----------
        texts : sequence of str
        batch_size : int

        Returns
        -------
        features : float32 array of shape (n_texts, n_features)
        """
        features = np.zeros((len(texts), self.n_features), dtype=np.float32)
        # Length in characters: close enough to the number of tokens, which would need tokenising twice.
        order = np.argsort([-len(text) for text in texts], kind="stable")
        training = self.training
        self.eval()
        try:
            with torch.inference_mode(), task("encoding texts", total=len(texts)) as advance:
                for start in range(0, len(texts), batch_size):
                    rows = order[start : start + batch_size]
                    features[rows] = self(self.tokenise([texts[row] for row in rows])).float().numpy()
                    advance(len(rows))
        finally:
            self.train(training)
        return features


class TextRows:
    """Texts for training a `Pretrained` encoder, tokenised batch by batch.

    Parameters
    ----------
    texts : sequence of str
    encoder : Pretrained
    """

    def __init__(self, texts: Sequence[str], encoder: Pretrained) -> None:
        self.texts = texts
        self.encoder = encoder

    def __len__(self) -> int:
        return len(self.texts)

    def batch(self, rows: Array) -> TokenBatch:
        return self.encoder.tokenise([self.texts[row] for row in rows])


def load_transformer(folder: Path) -> tuple[Any, Any]:
    """A transformer with float32 weights, in evaluation mode, and its tokenizer.

    Raises
    ------
    Unavailable
        transformers is not installed.
    ModelFormatError
        The folder is missing, is not a transformer, lacks weights, or has pickled weights only.
    """
    tokenizer = load_tokenizer(folder)
    with _reading(folder) as transformers:
        model, loaded = transformers.AutoModel.from_pretrained(
            str(folder), use_safetensors=True, output_loading_info=True, **_HERE
        )
    # Transformers fills missing weights with random numbers. The pooler is not used, and many folders leave it out.
    missing = sorted(name for name in loaded["missing_keys"] if "pooler" not in name.split("."))
    if missing:
        raise ModelFormatError(
            f"{folder}: {len(missing)} weights of the pretrained encoder are missing, such as {missing[0]}", path=folder
        )
    return model.float().eval(), tokenizer


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a transformer; errors are those of `load_transformer`."""
    with _reading(folder) as transformers:
        return transformers.AutoTokenizer.from_pretrained(str(folder), use_fast=True, **_HERE)


def load_config(folder: Path) -> Any:
    """The configuration of a transformer; errors are those of `load_transformer`."""
    with _reading(folder) as transformers:
        return transformers.AutoConfig.from_pretrained(str(folder), **_HERE)


@contextmanager
def _reading(folder: Path) -> Iterator[Any]:
    """The transformers library, for reading a folder with an encoder; its errors become `ModelFormatError`."""
    require_encoder_packages()
    # Checked here, because transformers takes the name of a missing folder for something to download.
    check_encoder_folder(folder)
    try:
        import transformers
        from transformers import AutoModel, AutoTokenizer  # noqa: F401 (imported here, where a failure is told)
    except ImportError as error:
        raise Unavailable(
            f"transformers cannot be imported: {error}",
            name="transformers",
            advice="pip install 'longtail[pretrained]'",
        ) from None
    try:
        with _no_progress_bar():
            yield transformers
    except MemoryError:
        raise
    # The readers of transformers, tokenizers and safetensors raise errors of many kinds for damaged files.
    except Exception as error:
        raise ModelFormatError(
            f"{folder}: cannot read the pretrained encoder: {error}. Expected a transformer's config.json, its "
            f"tokenizer files, and its weights in safetensors files",
            path=folder,
        ) from error


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Keep transformers from drawing on the terminal, which belongs to the program that calls us."""
    from transformers import utils

    logging: Any = utils.logging
    if not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()
