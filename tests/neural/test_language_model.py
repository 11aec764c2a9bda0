"""A language model over 20,000 words: every position of a text is a row, and its class is the next word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from longtail.neural import RowAdamW
from longtail.neural.heads import Cascade, Head, Sampling

N_WORDS, N_TOKENS, WIDTH = 20_000, 25, 64
OPTIONS: dict[str, Any] = {"task": "single-label", "sparse_gradients": True}


class LanguageModel(nn.Module):
    """Predicts each next word of a text from the words before."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.words = nn.Embedding(N_WORDS, WIDTH, sparse=True)
        self.body = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.head = head

    def features(self, texts: Tensor) -> Tensor:
        found: Tensor = self.body(self.words(texts))[0]
        return found

    def forward(self, texts: Tensor, following: Tensor) -> Any:
        return self.head(self.features(texts), following)


def texts(n_texts: int, seed: int) -> tuple[Tensor, Tensor]:
    """Texts of phrases of five words each, the r-th most frequent one 1/r as often as the first, and the next words.

    Only the first word of a phrase is uncertain. Texts have different lengths; -100 fills up the next words.
    """
    generator = torch.Generator().manual_seed(seed)
    frequency = 1 / torch.arange(1, N_WORDS // 5 + 1)
    phrases = torch.multinomial(frequency.expand(n_texts, -1), N_TOKENS // 5 + 1, replacement=True, generator=generator)
    words = (phrases[:, :, None] * 5 + torch.arange(5)).flatten(1)[:, : N_TOKENS + 1]
    words = torch.randperm(N_WORDS, generator=torch.Generator().manual_seed(9))[words]
    lengths = torch.randint(N_TOKENS // 2, N_TOKENS + 1, (n_texts, 1), generator=generator)
    return words[:, :-1], words[:, 1:].masked_fill(torch.arange(N_TOKENS) >= lengths, -100)


def perplexity(log_probabilities: Tensor) -> float:
    return float((-log_probabilities.mean()).exp())


@pytest.mark.slow
@pytest.mark.parametrize(
    "head",
    [lambda: Cascade(WIDTH, N_WORDS, width=32, **OPTIONS), lambda: Sampling(WIDTH, N_WORDS, sampled=20, **OPTIONS)],
    ids=["cascade", "sampling"],
)
def test_a_language_model_beats_the_frequencies_of_words_by_far(head: Callable[[], Head]) -> None:
    torch.manual_seed(0)
    model = LanguageModel(head())
    seen, following = texts(600, seed=0)
    optimiser = RowAdamW(model.parameters(), lr=0.02)
    for rows in [rows for _ in range(2) for rows in torch.randperm(len(seen)).split(20)]:
        output = model(seen[rows], following[rows])
        optimiser.zero_grad()
        output.loss.backward()
        assert all(table.grad.is_sparse for table in (model.words.weight, *model.head.sparse_parameters()))
        optimiser.step()
        assert output.n_rows == int((following[rows] != -100).sum())

    new, wanted = texts(40, seed=1)
    counted, wanted_words = wanted != -100, wanted[wanted != -100]
    counts = torch.bincount(following[following != -100], minlength=N_WORDS) + 0.1
    with torch.no_grad():
        features = model.features(new)
        log_probabilities = model.head.log_prob(features)
        assert log_probabilities.shape == (40, N_TOKENS, N_WORDS)
        torch.testing.assert_close(log_probabilities.exp().sum(-1), torch.ones(40, N_TOKENS), rtol=1e-3, atol=1e-3)
        found = perplexity(log_probabilities[counted].gather(1, wanted_words[:, None]))
        assert found < perplexity((counts / counts.sum()).log()[wanted_words]) / 10
        # Four of five next words follow from the word before; the most frequent word is 2 % of all words.
        predicted = model.head.predict(features)
        assert predicted.shape == (40, N_TOKENS)
        assert (predicted[counted] == wanted_words).float().mean() > 0.4
        if isinstance(model.head, Cascade):
            loss = model.head(features, wanted).loss
            assert float(loss.exp()) == pytest.approx(found, rel=1e-3)
