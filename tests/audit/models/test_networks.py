"""The last layer of torch modules."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from longtail.audit import audit, output_layer
from longtail.errors import InvalidInput

torch = pytest.importorskip("torch")
nn = torch.nn


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


class Forked(nn.Module):
    """Two linear layers whose order the module does not tell."""

    def __init__(self, config: Any = None) -> None:
        super().__init__()
        self.first, self.second, self.config = nn.Linear(4, 3), nn.Linear(3, 5), config


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_a_layer_with_gradients_of_any_type_is_copied(kind: str) -> None:
    linear = nn.Linear(3, 5).to(getattr(torch, kind))
    layer = output_layer(linear)
    assert layer.weights.dtype == np.float64
    assert layer.weights.tolist() == linear.weight.double().tolist()
    assert layer.offsets.tolist() == linear.bias.double().tolist()
    assert (layer.rule, layer.at_least) == ("predict", False)
    assert output_layer(nn.Linear(3, 5, bias=False)).offsets.tolist() == [0.0] * 5
    assert linear.weight.requires_grad


def test_a_parameter_is_a_matrix_too() -> None:
    linear = nn.Linear(2, 6)
    sets = np.eye(6)
    by_weights = audit(linear.weight, sets, linear.bias.detach().numpy())
    assert (by_weights.verdicts == audit(linear, sets).verdicts).all()


def test_the_last_layer_of_a_module_is_found_or_named() -> None:
    bottleneck = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 5), nn.Sigmoid()))
    assert output_layer(bottleneck).weights.shape == (5, 3)
    assert output_layer(bottleneck, layer="0").weights.shape == (3, 4)
    assert output_layer(nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 2))).n_labels == 2
    with pytest.raises(InvalidInput, match=r"first \(3 x 4\), second \(5 x 3\). Name the last one"):
        output_layer(Forked())
    assert output_layer(Forked(), layer="second").n_labels == 5
    with pytest.raises(InvalidInput, match="'third' is no linear layer of the module"):
        output_layer(Forked(), layer="third")
    with pytest.raises(InvalidInput, match="Sequential has no linear layer"):
        output_layer(nn.Sequential(nn.ReLU()))


def test_a_config_tells_the_labels_and_the_rule() -> None:
    names = {number: f"topic {number}" for number in range(5)}
    config = SimpleNamespace(id2label=names, problem_type="single_label_classification")
    layer = output_layer(Forked(config))
    assert layer.rule == "topk"
    assert layer.label_names == tuple(names.values())
    assert output_layer(Forked(config), rule="predict").rule == "predict"


def test_a_threshold_is_a_score_before_the_sigmoid() -> None:
    linear = nn.Linear(3, 5)
    assert output_layer(linear, threshold=2.0).offsets == pytest.approx(linear.bias.detach().numpy() - 2)
    assert output_layer(linear, threshold=2.0).description == "its score is above 2"
    with pytest.raises(InvalidInput, match="a ranking has no threshold"):
        output_layer(linear, rule="topk", threshold=2.0)


def test_the_columns_of_the_label_sets_tell_the_last_layer() -> None:
    module = Forked()
    found = audit(module, np.eye(5))
    assert found.n_labels == 5
    np.testing.assert_array_equal(found.verdicts, audit(module, np.eye(5), layer="second").verdicts)
    assert output_layer(Forked(), n_labels=3).weights.shape == (3, 4)
    with pytest.raises(InvalidInput, match="layer and threshold go with torch modules"):
        audit(np.eye(5), np.eye(5), layer="second")


def test_heads_and_networks_of_longtail_have_the_layer_that_they_say() -> None:
    neural = pytest.importorskip("longtail.neural")
    head = neural.heads.Bottleneck(6, 9, width=3)
    for model in (head, neural.Network(nn.Linear(4, 6), head)):
        layer = output_layer(model)
        assert layer.weights.tolist() == head.output.weight.double().tolist()
        assert layer.rule == "predict"
    assert output_layer(neural.heads.OneHot(6, 9, task="single-label")).rule == "topk"
    with pytest.raises(InvalidInput, match="Cascade is not one linear layer over labels"):
        audit(neural.Network(nn.Linear(4, 6), neural.heads.Cascade(6, 9)), np.eye(9))


@pytest.mark.parametrize("end", ["Softmax", "LogSoftmax"])
def test_a_softmax_at_the_end_is_for_classes(end: str) -> None:
    """As for ONNX models, where the highest score wins."""
    softmax = getattr(nn, end)(dim=1)
    assert output_layer(nn.Sequential(nn.Linear(3, 5), softmax)).rule == "topk"
    assert output_layer(nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 5), softmax))).rule == "topk"
    assert output_layer(nn.Sequential(nn.Linear(3, 5), softmax), rule="predict").rule == "predict"
    assert output_layer(nn.Sequential(softmax, nn.Linear(3, 5), nn.Sigmoid())).rule == "predict"
