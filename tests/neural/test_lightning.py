"""Heads under `lightning.Trainer`: what docs/neural-recipes.md runs, and that a checkpoint is the state of training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from longtail.neural import Collate, Network, RowAdamW
from longtail.neural.heads import Cascade, Head, OneHot, Sampling

N_LABELS = 30
HEADS = {
    "one-hot": lambda: OneHot(16, N_LABELS),
    "cascade": lambda: Cascade(16, N_LABELS, sparse_gradients=True),
    "sampling": lambda: Sampling(16, N_LABELS, sparse_gradients=True),
}
QUIET = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "num_sanity_val_steps": 0}


@pytest.fixture(scope="module")
def tagging() -> Any:
    """A module of lightning, which takes seconds to import, around a head."""
    lightning = pytest.importorskip("lightning")

    class Tagging(lightning.LightningModule):
        def __init__(self, head: Head) -> None:
            super().__init__()
            self.network = Network(nn.Sequential(nn.Linear(N_LABELS, 16), nn.ReLU()), head)

        def training_step(self, batch: Any, number: int) -> Tensor:
            return self.network(*batch).loss

        def validation_step(self, batch: Any, number: int) -> None:
            inputs, targets = batch
            best = self.network.predict_topk(inputs, k=2)[0]
            self.log("P@2", targets.dense().gather(1, best).mean(), batch_size=len(inputs))

        def configure_optimizers(self) -> Any:
            return RowAdamW(self.parameters(), lr=0.02)

    return Tagging


def loader(shuffle: bool) -> Any:
    pairs = [[row % N_LABELS, (row + 11) % N_LABELS] for row in range(120)]
    samples = [(torch.eye(N_LABELS)[pair].sum(0), pair) for pair in pairs]
    return DataLoader(samples, batch_size=8, shuffle=shuffle, collate_fn=Collate(N_LABELS))


def trainer(folder: Path, epochs: int) -> Any:
    import lightning

    return lightning.Trainer(max_epochs=epochs, accelerator="cpu", default_root_dir=folder, **QUIET)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", HEADS)
def test_a_head_learns_and_a_resumed_training_is_that_without_interruption(
    name: str, tagging: Any, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    whole = tagging(HEADS[name]())
    first = {key: value.clone() for key, value in whole.state_dict().items()}
    runner = trainer(tmp_path / "whole", epochs=10)
    runner.fit(whole, loader(shuffle=False))
    [measured] = runner.validate(whole, loader(shuffle=False), verbose=False)
    assert measured["P@2"] > 0.9

    path = runner.checkpoint_callback.best_model_path
    loaded = tagging.load_from_checkpoint(path, head=HEADS[name]())
    half = tagging(HEADS[name]())
    half.load_state_dict(first)
    runner = trainer(tmp_path / "half", epochs=5)
    runner.fit(half, loader(shuffle=False))
    resumed = tagging(HEADS[name]())
    trainer(tmp_path / "rest", epochs=10).fit(
        resumed, loader(shuffle=False), ckpt_path=runner.checkpoint_callback.best_model_path
    )
    for model in (loaded, resumed):
        for key, expected in whole.state_dict().items():
            torch.testing.assert_close(model.state_dict()[key], expected, msg=key)
