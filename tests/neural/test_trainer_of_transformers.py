"""Heads under `transformers.Trainer`, beyond what docs/neural-recipes.md runs: sparse gradients, files, resumption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from longtail.neural import LabelRows, RowAdamW, clip_gradients
from longtail.neural.heads import DFT, Cascade, Head

N_LABELS, WIDTH = 30, 32
ORDER = np.random.default_rng(0).permutation(N_LABELS)


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `Trainer` needs, imported here because it takes seconds; nothing is looked up anywhere."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("accelerate", "transformers"):
        pytest.importorskip(name)


class Tagging(nn.Module):
    """A transformer and a head; in evaluation it also returns the best labels."""

    def __init__(self, head: Head) -> None:
        from transformers import BertModel

        super().__init__()
        self.body = BertModel(config())
        self.head = head

    def forward(self, input_ids: Tensor, labels: Any = None) -> Any:
        features = self.body(input_ids).last_hidden_state[:, 0]
        if self.training:
            return self.head(features, labels)
        best, scores = self.head.predict_topk(features, k=1)
        return {"loss": self.head.loss(features, labels), "best": best, "scores": scores}


def config() -> Any:
    from transformers import BertConfig

    return BertConfig(
        vocab_size=N_LABELS + 1,
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=WIDTH,
        initializer_range=0.1,
    )


def rows(n_rows: int) -> list[dict[str, Tensor]]:
    """Texts of a first token and a word, which is the label."""
    labels = [row * 7 % N_LABELS for row in range(n_rows)]
    return [{"input_ids": torch.tensor([0, 1 + label]), "labels": torch.eye(N_LABELS)[label]} for label in labels]


def as_label_rows(samples: list[dict[str, Tensor]]) -> dict[str, Any]:
    labels = torch.stack([sample["labels"] for sample in samples]).nonzero()[:, 1]
    inputs = torch.stack([sample["input_ids"] for sample in samples])
    return {"input_ids": inputs, "labels": LabelRows(labels, torch.arange(len(samples) + 1), N_LABELS)}


def trainer(model: nn.Module, folder: Path, epochs: int = 4, **options: Any) -> Any:
    from transformers import Trainer, TrainingArguments

    settings = TrainingArguments(
        str(folder),
        num_train_epochs=epochs,
        per_device_train_batch_size=8,
        learning_rate=5e-3,
        lr_scheduler_type="constant",
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
        save_strategy=options.pop("save_strategy", "no"),
    )
    return Trainer(model, settings, train_dataset=rows(120), **options)


def hits(evaluated: Any) -> dict[str, float]:
    best, scores = evaluated.predictions
    assert best.shape == scores.shape == (len(evaluated.label_ids), 1)
    return {"P@1": float(np.take_along_axis(evaluated.label_ids, best, 1).mean())}


def made(sparse: bool = False, seed: int = 0) -> Tagging:
    torch.manual_seed(seed)
    return Tagging(Cascade(WIDTH, N_LABELS, width=16, sparse_gradients=sparse, order=ORDER))


@pytest.mark.slow
@pytest.mark.parametrize("collator", [None, as_label_rows], ids=["multi-hot", "label rows"])
def test_a_head_with_sparse_gradients_learns(collator: Any, tmp_path: Path) -> None:
    model = made(sparse=True)
    optimiser = RowAdamW(model.parameters(), lr=5e-3)
    learner = trainer(model, tmp_path, epochs=10, optimizers=(optimiser, None), data_collator=collator)
    learner.accelerator.clip_grad_norm_ = clip_gradients
    learner.train()
    measuring = trainer(model, tmp_path, eval_dataset=rows(N_LABELS), compute_metrics=hits)
    assert measuring.evaluate()["eval_P@1"] > 0.9


@pytest.mark.slow
def test_a_saved_model_and_a_resumed_training_are_those_without_interruption(tmp_path: Path) -> None:
    from safetensors.torch import load_model

    whole = made()
    learner = trainer(whole, tmp_path / "whole", epochs=2, save_strategy="epoch")
    learner.train()
    halfway = tmp_path / "whole" / "checkpoint-15"
    resumed = made(seed=1)
    trainer(resumed, tmp_path / "resumed", epochs=2).train(resume_from_checkpoint=str(halfway))
    learner.save_model(str(tmp_path / "saved"))
    loaded = made(seed=2)
    load_model(loaded, tmp_path / "saved" / "model.safetensors")
    for model in (resumed, loaded):
        for name, expected in whole.state_dict().items():
            torch.testing.assert_close(model.state_dict()[name], expected, msg=name)


def classifier() -> Any:
    """A class of transformers that makes its heads itself, on the meta device when it is loaded."""
    from transformers import BertModel, BertPreTrainedModel

    class Classifier(BertPreTrainedModel):
        def __init__(self, settings: Any) -> None:
            super().__init__(settings)
            self.body = BertModel(settings)
            self.fixed = DFT(WIDTH, N_LABELS, k=3, form="matrix", order=torch.from_numpy(ORDER))
            self.digits = Cascade(WIDTH, N_LABELS, width=16, order=ORDER)
            self.post_init()

        def forward(self, input_ids: Tensor) -> tuple[Tensor, Tensor]:
            features = self.body(input_ids).last_hidden_state[:, 0]
            return self.fixed.log_prob(features), self.digits.log_prob(features)

    return Classifier


def test_from_pretrained_restores_heads_with_their_fixed_parts(tmp_path: Path) -> None:
    torch.manual_seed(0)
    kind = classifier()
    model = kind(config()).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    model.save_pretrained(tmp_path)
    loaded = kind.from_pretrained(tmp_path).eval()
    texts = torch.arange(6).view(3, 2)
    for found, expected in zip(loaded(texts), model(texts), strict=True):
        assert torch.equal(found, expected)
