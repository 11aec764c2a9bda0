"""A head in place of `nn.Linear` changes at most five lines of a training loop, as docs/neural-recipes.md shows it."""

from __future__ import annotations

import difflib
import re
from typing import Any

import pytest
import torch
from torch import nn

from tests.test_docs import ROOT, read_blocks

PAGE = ROOT / "docs" / "neural-recipes.md"
DENSE, SPARSE = (block.text for block in read_blocks(PAGE) if block.language == "diff")
TABLE = re.findall(r"^\| `\w+` \| `(heads\..+)` \| ([\d,]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
SIZES = dict(TABLE)
CASES = [(DENSE, head) for head in SIZES]
CASES += [(SPARSE, head.replace(")", ", sparse_gradients=True)")) for head in SIZES if "Casc" in head or "Samp" in head]
EACH = pytest.mark.parametrize(("diff", "head"), CASES, ids=[head for _, head in CASES])


def side(diff: str, removed: str) -> str:
    """One side of a diff: without the lines that start with `removed`."""
    return "".join(f"{line[1:]}\n" for line in diff.splitlines() if line[:1] != removed)


def with_head(diff: str, head: str) -> str:
    found, n_replaced = re.subn(r"heads\.Cascade\([^()]*\)", head, side(diff, "-"))
    assert n_replaced == 1
    return found


def run(code: str, encoder: nn.Module, batches: list[Any]) -> dict[str, Any]:
    space: dict[str, Any] = {"encoder": encoder, "batches": batches}
    exec(code, space)
    return space


def test_the_page_has_every_head_and_one_plain_loop() -> None:
    named = {re.match(r"heads\.(\w+)", head)[1] for head in SIZES}
    assert named == {"OneHot", "Product", "Kronecker", "Cascade", "Sampling", "Bottleneck", "DFT"}
    assert side(DENSE, "+") == side(SPARSE, "+")


@EACH
def test_at_most_five_lines_differ(diff: str, head: str) -> None:
    before, after = side(diff, "+").splitlines(), with_head(diff, head).splitlines()
    changes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    assert 3 <= sum(max(b - a, d - c) for kind, a, b, c, d in changes if kind != "equal") <= 5


@pytest.mark.slow
@EACH
def test_the_loop_trains_100_000_labels(diff: str, head: str) -> None:
    torch.manual_seed(0)
    inputs, targets = torch.randn(2, 20), torch.zeros(2, 100_000)
    targets[[0, 0, 1], [7, 99_999, 50_000]] = 1
    space = run(with_head(diff, head), nn.Linear(20, 768), [(inputs, targets)] * 2)
    model = space["model"]
    assert float(model(inputs, targets).loss.detach()) < float(space["loss"].detach())
    assert f"{model.head.n_parameters():,}" == SIZES[head.replace(", sparse_gradients=True", "")]


@pytest.mark.slow
def test_the_plain_loop_trains_100_000_labels() -> None:
    torch.manual_seed(0)
    batch = torch.randn(2, 20), torch.zeros(2, 100_000)
    space = run(side(DENSE, "+"), nn.Linear(20, 768), [batch] * 2)
    assert float(space["criterion"](space["model"](batch[0]), batch[1]).detach()) < float(space["loss"].detach())


@EACH
def test_the_loop_learns(diff: str, head: str) -> None:
    """The same code with fewer labels and a higher learning rate."""
    torch.manual_seed(0)
    targets = torch.eye(40, 60) + torch.eye(40, 60).roll(20, 1)
    batches = [(torch.eye(40)[rows], targets[rows]) for _ in range(100) for rows in torch.randperm(40).split(10)]
    code = with_head(diff, head).replace("768, 100_000", "16, 60").replace("1e-3", "0.02")
    space = run(code, nn.Sequential(nn.Linear(40, 16), nn.ReLU()), batches)
    found = space["model"].predict_topk(torch.eye(40), 2)[0]
    assert targets.gather(1, found).mean() > 0.8
