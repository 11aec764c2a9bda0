"""A tiny sentence encoder with random weights, in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

WIDTH, POSITIONS = 16, 24


def write_tiny_encoder(place: Path, words: Sequence[str], synonyms: int = 1) -> Path:
    """Write a BERT of one layer; each run of `synonyms` words has one meaning."""
    import tokenizers
    import transformers

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: number for number, word in enumerate([*special, *words])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(place)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=POSITIONS,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.BertModel(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        if synonyms > 1:
            with torch.no_grad():
                weights = model.embeddings.word_embeddings.weight[len(special) :]
                weights.copy_(3 * torch.randn(len(words) // synonyms, WIDTH).repeat_interleave(synonyms, 0))
    model.save_pretrained(place)
    return place
