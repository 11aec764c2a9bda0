"""Heads as ONNX models: onnxruntime gives the logits and the log probabilities that torch gives."""

from __future__ import annotations

import io
import logging
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from longtail.neural.heads import DFT, Head
from tests.neural.heads.every_head import N_LABELS, ORDER, WIDTH, make

# Heads that differ only in training have the same model.
EXPORTED = [
    *("one-hot", "bottleneck", "dft, matrix", "product", "product of groups", "product of softmaxes", "kronecker"),
    *("cascade", "cascade of three", "cascade, single", "sampling", "sampling, margin"),
    *("powerset product", "powerset sampling", "powerset cascade"),
]


class Answers(nn.Module):
    """The logits of a head, of each stage if it has stages, and the log probabilities."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head

    def forward(self, features: Tensor) -> tuple[Tensor, ...]:
        logits = self.head(features)
        return (*((logits,) if isinstance(logits, Tensor) else logits), self.head.log_prob(features))


def session(module: nn.Module, n_features: int) -> Any:
    """onnxruntime with the model of a module, exported with six rows and made for any number of them."""
    for package in ("onnx", "onnxscript"):
        pytest.importorskip(package)
    runtime = pytest.importorskip("onnxruntime")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns that torchvision is not installed
    rows = ({0: torch.export.Dim("n_rows", min=1)},)
    exported = torch.onnx.export(module, (torch.randn(6, n_features),), dynamo=True, dynamic_shapes=rows, verbose=False)
    stored = io.BytesIO()
    exported.save(stored)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    return runtime.InferenceSession(stored.getvalue(), options, providers=["CPUExecutionProvider"])


def answers(model: Any, features: Tensor) -> list[Tensor]:
    return [torch.from_numpy(found) for found in model.run(None, {model.get_inputs()[0].name: features.numpy()})]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPORTED)
def test_onnxruntime_gives_what_torch_gives_for_any_number_of_rows(name: str) -> None:
    module = Answers(make(name)).eval()
    model = session(module, WIDTH)
    # Large features give logits whose sigmoids round to 0. The marginals of powersets then round to 0 in torch too.
    for n_rows, scale in ((4, 1), (1, 1), (3, 1 if name.startswith("powerset") else 500)):
        features = scale * torch.randn(n_rows, WIDTH, generator=torch.Generator().manual_seed(n_rows))
        torch.testing.assert_close(answers(model, features), list(module(features)), rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.slow
def test_a_fast_transform_is_exported_as_the_matrix_with_the_same_weights() -> None:
    """The exporter has no complex numbers. The weights of both forms are the same, so another head can take them."""
    fast = make("dft, fft").eval()
    with torch.no_grad():
        for parameter in fast.parameters():
            parameter.normal_()
    with pytest.raises(torch.onnx.OnnxExporterError):
        session(fast, WIDTH)
    matrix = DFT(WIDTH, N_LABELS, 3, form="matrix", slack=2, order=torch.from_numpy(ORDER))
    matrix.load_state_dict(fast.state_dict())
    features = torch.randn(4, WIDTH, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(answers(session(matrix, WIDTH), features), [fast(features)], rtol=1e-4, atol=1e-4)
