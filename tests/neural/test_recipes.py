"""What people do with heads outside of our trainer: several processes, and sequences."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tests.neural.heads.every_head import EVERY_HEAD, N_LABELS, lists, make

DISTRIBUTED = [name for name in EVERY_HEAD if not name.startswith("bags")]  # bags have no parameters


def gradients(module: nn.Module, head: nn.Module, features: Tensor, rows: list[list[int]]) -> list[Tensor]:
    head.zero_grad()
    torch.manual_seed(3)  # for heads that sample
    module(features, rows).loss.backward()
    return [parameter.grad.to_dense().clone() for parameter in head.parameters()]


def halves(name: str) -> tuple[nn.Module, list[tuple[Tensor, list[list[int]]]]]:
    head = make(name)
    rows = lists(head, 8)
    features = torch.randn(8, head.n_features, generator=torch.Generator().manual_seed(1))
    return head, [(features[:4], rows[:4]), (features[4:], rows[4:])]


def work(rank: int, folder: str) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=2)
    found = {}
    for name in DISTRIBUTED:
        head, parts = halves(name)
        found[name] = gradients(DistributedDataParallel(head), head, *parts[rank])
    torch.save(found, f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="torch is built without gloo")
def test_two_processes_have_the_mean_of_the_gradients_of_their_rows(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(work, (str(tmp_path),), nprocs=2)
    ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    for name in DISTRIBUTED:
        head, parts = halves(name)
        alone = [gradients(head, head, *part) for part in parts]
        for place, (first, second) in enumerate(zip(*alone, strict=True)):
            for found in ranks:
                torch.testing.assert_close(found[name][place], (first + second) / 2)


def test_every_position_of_a_sequence_is_a_row_of_a_language_model() -> None:
    """The next word of a text that counts up and starts over; padding does not count."""
    torch.manual_seed(0)
    head = make("cascade, single")
    words, body = nn.Embedding(N_LABELS, 8), nn.GRU(8, 8, batch_first=True)
    texts = (torch.arange(12) + torch.arange(6)[:, None] * 4) % N_LABELS
    following = (texts + 1) % N_LABELS
    following[:, 9:] = -100
    optimiser = torch.optim.AdamW([*words.parameters(), *body.parameters(), *head.parameters()], lr=0.05)
    for _ in range(120):
        optimiser.zero_grad()
        output = head(body(words(texts))[0], following)
        output.loss.backward()
        optimiser.step()
    assert output.n_rows == 6 * 9
    found = head.predict(body(words(texts))[0])
    assert (found[:, :9] == following[:, :9]).float().mean() > 0.95
