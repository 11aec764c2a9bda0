"""The last linear layer of a torch module, recognised by its attributes: torch itself is not imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.estimator import OutputLayer, Rule, check_memory

ABOVE = "its score is above {:g}"
HIGHEST = "its score is among the highest"
_SHOWN = 10
# Modules that may follow the last layer without changing which labels are given.
_AFTERWARDS = {"Sigmoid", "LogSigmoid", "Softmax", "LogSoftmax", "Identity", "Dropout", "Flatten"}


def is_module(model: Any) -> bool:
    """Whether this is a module of torch."""
    return hasattr(model, "named_modules") and hasattr(model, "named_parameters")


def to_array(tensor: Any) -> Array:
    """A float64 copy of a tensor of any type on any device."""
    check_memory({"weights in 64 bits, twice": 16 * int(np.prod(tuple(tensor.shape)))})
    return np.array(tensor.detach().to("cpu").double().numpy(), dtype=np.float64)


def module_layer(
    model: Any, name: str | None, n_labels: int | None, rule: Rule | None, threshold: float | None
) -> OutputLayer:
    """The layer of a module: the named one, or the only one that can be meant."""
    head = _head_of(model)
    if head is not None and name is None:
        one_of_all = rule or ("topk" if head.task == "single-label" else None)
        weights, offsets = head.output_layer()
        return layer_of(weights, offsets, one_of_all, threshold)
    config = getattr(model, "config", None)
    labels = getattr(config, "id2label", None)
    found = _named(model, name) if name is not None else _last(model, n_labels if labels is None else len(labels))
    weights = to_array(found.weight)
    bias = None if getattr(found, "bias", None) is None else to_array(found.bias)
    names = label_names(labels, len(weights))
    found_rule = rule or rule_of(getattr(config, "problem_type", None)) or _rule_at_end(model)
    return layer_of(weights, bias, found_rule, threshold, names)


def layer_of(
    weights: Any, bias: Array | None, rule: Rule | None, threshold: float | None, names: list[str] | None = None
) -> OutputLayer:
    """A checked layer that gives labels above a threshold, or the highest ones."""
    if rule == "topk" and threshold is not None:
        raise InvalidInput("a threshold goes with rule='predict'; a ranking has no threshold")
    checked = OutputLayer.of(weights, bias, threshold=threshold or 0.0, rule=rule or "predict", at_least=False)
    description = HIGHEST if rule == "topk" else ABOVE.format(threshold or 0.0)
    return OutputLayer(checked.weights, checked.offsets, checked.rule, description, False).named(names)


def rule_of(problem_type: str | None) -> Rule | None:
    """The rule of a Hugging Face model by its ``problem_type``."""
    rules: dict[str | None, Rule] = {
        "multi_label_classification": "predict",
        "single_label_classification": "topk",
    }
    return rules.get(problem_type)


def label_names(id2label: Any, n_labels: int) -> list[str] | None:
    """Names in the order of the rows, from a mapping of ids to names; None unless it names every row."""
    if not isinstance(id2label, dict) or len(id2label) != n_labels:
        return None
    by_id = {str(number): str(name) for number, name in id2label.items()}
    names = [by_id.get(str(label)) for label in range(n_labels)]
    known = [name for name in names if name is not None]
    return known if n_labels == len(set(known)) else None


def _head_of(model: Any) -> Any:
    """A head of `longtail.neural`, alone or at the end of a `Network`; None for other modules."""
    for each in (model, getattr(model, "head", None)):
        if hasattr(each, "output_layer") and hasattr(each, "ignore_index"):
            return each
    return None


def _is_linear(module: Any) -> bool:
    return hasattr(module, "in_features") and hasattr(module, "out_features") and hasattr(module, "weight")


def _named(model: Any, name: str) -> Any:
    modules = dict(model.named_modules())
    if name not in modules or not _is_linear(modules[name]):
        raise InvalidInput(f"{name!r} is no linear layer of the module; it has {_listed(_linear(model))}")
    return modules[name]


def _linear(model: Any) -> dict[str, Any]:
    return {name: module for name, module in model.named_modules() if _is_linear(module)}


def _last(model: Any, n_labels: int | None) -> Any:
    """The only linear layer, the only one with a row for each label, or the end of a sequence."""
    layers = _linear(model)
    if not layers:
        raise InvalidInput(f"{type(model).__name__} has no linear layer")
    if len(layers) == 1:
        return next(iter(layers.values()))
    fitting = [module for module in layers.values() if module.out_features == n_labels]
    if len(fitting) == 1:
        return fitting[0]
    end = _end_of(model)
    if end is not None:
        return end
    raise InvalidInput(f"the module has several linear layers: {_listed(layers)}. Name the last one with layer=")


def _end_of(model: Any) -> Any:
    """The last layer of a sequence of modules, if it is linear."""
    while type(model).__name__ == "Sequential":
        steps = [step for step in model.children() if type(step).__name__ not in _AFTERWARDS]
        if not steps:
            return None
        model = steps[-1]
    return model if _is_linear(model) else None


def _rule_at_end(model: Any) -> Rule | None:
    """A ranking if a sequence of modules ends in a softmax, which is for classes."""
    if type(model).__name__ != "Sequential":
        return None
    steps = list(model.children())
    last = type(steps[-1]).__name__ if steps else ""
    return "topk" if last in ("Softmax", "LogSoftmax") else _rule_at_end(steps[-1]) if steps else None


def _listed(layers: dict[str, Any]) -> str:
    names = [f"{name or 'itself'} ({module.out_features} x {module.in_features})" for name, module in layers.items()]
    more = len(names) - _SHOWN
    return ", ".join([*names[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]) or "none"
