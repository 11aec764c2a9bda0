"""Read the last linear layer of an ONNX graph: Gemm, or MatMul and Add, with what may follow them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.audit.models.networks import layer_of
from longtail.audit.models.protocol_buffers import Damaged, fields_of, whole_numbers_of
from longtail.errors import DataFormatError, InvalidInput
from longtail.estimator import OutputLayer, Rule
from longtail.memory import MemoryPlan

_TYPES = {1: "<f4", 10: "<f2", 11: "<f8"}  # float, half, double
# Operators that may follow the layer: they keep the order of scores. A sigmoid is for labels, a softmax for classes.
_AFTERWARDS: dict[str, Rule | None] = {
    "Sigmoid": "predict",
    "Softmax": "topk",
    "LogSoftmax": "topk",
    "Identity": None,
    "Cast": None,
}
_MOST_STEPS = 20
_MOST_DIMENSIONS = 16


@dataclass
class _Tensor:
    """A constant of the graph; its numbers are read only if it is part of the last layer."""

    name: str = ""
    shape: list[int] = field(default_factory=list)
    kind: int = 0
    numbers: list[tuple[str, memoryview]] = field(default_factory=list)
    is_external: bool = False


@dataclass
class _Node:
    """An operator with the names of what goes in and out."""

    kind: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)

    def factor(self, name: str) -> float:
        """A number that is 1 unless the graph says otherwise."""
        value = self.attributes.get(name, 1.0)
        if not isinstance(value, int | float):
            raise Damaged
        return float(value)


def read_onnx(path: Path, rule: Rule | None = None, threshold: float | None = None) -> OutputLayer:
    """The layer that the first output of a graph comes from.

    Raises
    ------
    DataFormatError
        If the file is damaged, or its numbers are in another file.
    InvalidInput
        If the graph does not end in a linear layer with constant weights.
    """
    try:
        MemoryPlan("reading a graph", {str(path): path.stat().st_size}, "Give the weights in a .npy file.").check()
        weights, bias, found = _Graph(path, memoryview(path.read_bytes())).last_layer()
    except (Damaged, UnicodeDecodeError):
        raise DataFormatError(path, None, "damaged; expected an ONNX model") from None
    except OSError as error:
        raise DataFormatError(path, None, f"cannot be opened: {error.strerror or error}") from None
    return layer_of(weights, bias, rule or found, threshold)


class _Graph:
    def __init__(self, path: Path, content: memoryview) -> None:
        self._path = path
        self._producers: dict[str, _Node] = {}
        self._constants: dict[str, _Tensor] = {}
        self._outputs: list[str] = []
        graphs = [value for number, value in fields_of(content) if number == 7 and isinstance(value, memoryview)]
        for number, value in fields_of(graphs[-1]) if graphs else ():
            if not isinstance(value, memoryview):
                continue
            if number == 1:
                node = _node(value)
                self._producers.update(dict.fromkeys(node.outputs, node))
            elif number == 5:
                tensor = _tensor(value)
                self._constants[tensor.name] = tensor
            elif number == 12:
                self._outputs += [_text(name) for each, name in fields_of(value) if each == 1]
        if not self._outputs:
            raise Damaged

    def last_layer(self) -> tuple[Array, Array | None, Rule | None]:
        """Weights with a row per label, the bias, and the rule that a sigmoid or a softmax tells."""
        rule: Rule | None = None
        name = self._outputs[0]
        for _ in range(_MOST_STEPS):
            node = self._producers.get(name, _Node("an input"))
            if node.kind not in _AFTERWARDS or not node.inputs:
                break
            rule = rule or _AFTERWARDS[node.kind]
            name = node.inputs[0]
        bias = None
        if node.kind == "Add" and len(node.inputs) == 2:
            for product, constant in (node.inputs, node.inputs[::-1]):
                made = self._producers.get(product, _Node())
                if made.kind in ("MatMul", "Gemm") and (bias := self._constant(constant)) is not None:
                    node = made
                    break
        if node.kind not in ("Gemm", "MatMul") or len(node.inputs) < 2:
            raise InvalidInput(
                f"{self._path}: the graph ends in {node.kind[:50]!r}; expected Gemm, or MatMul and Add, so that the "
                "last layer is linear",
                code="needs_linear_layer",
            )
        weights = self._constant(node.inputs[1])
        if weights is None or weights.ndim != 2 or 0 in weights.shape or node.attributes.get("transA"):
            raise InvalidInput(f"{self._path}: the last layer has no constant matrix of weights")
        rows = weights if node.attributes.get("transB") else weights.T
        if node.kind == "Gemm":
            rows = rows * node.factor("alpha")
            if len(node.inputs) > 2:
                inner = self._constant(node.inputs[2])
                if inner is None:
                    raise InvalidInput(f"{self._path}: the bias of the last layer is no constant")
                inner = inner * node.factor("beta")
                bias = inner if bias is None else inner + bias
        return np.ascontiguousarray(rows), None if bias is None else self._per_label(bias, len(rows)), rule

    def _per_label(self, bias: Array, n_labels: int) -> Array:
        if bias.size not in (1, n_labels) or (bias.ndim and bias.shape[-1] != bias.size):
            raise InvalidInput(f"{self._path}: the bias has shape {bias.shape}; expected {n_labels} numbers")
        return np.array(np.broadcast_to(bias.ravel(), (n_labels,)))

    def _constant(self, name: str) -> Array | None:
        """The numbers of a constant, transposed where the graph does so; None if it is computed from inputs."""
        turns = 0
        for _ in range(_MOST_STEPS):
            if name in self._constants:
                numbers = self._numbers(self._constants[name])
                return numbers.T if turns % 2 else numbers
            node = self._producers.get(name, _Node())
            if node.kind == "Constant" and isinstance(node.attributes.get("value"), _Tensor):
                numbers = self._numbers(node.attributes["value"])
                return numbers.T if turns % 2 else numbers
            if node.kind not in ("Transpose", "Identity", "Cast") or not node.inputs:
                return None
            turns += node.kind == "Transpose"
            name = node.inputs[0]
        return None

    def _numbers(self, tensor: _Tensor) -> Array:
        size = math.prod(tensor.shape)
        if tensor.is_external:
            raise DataFormatError(self._path, None, "the weights are in another file; save the model as one file")
        if tensor.kind not in _TYPES:
            raise DataFormatError(self._path, None, f"weights of ONNX type {tensor.kind}; expected floats")
        MemoryPlan("reading an array", {str(self._path): 16 * size}, "Give a smaller matrix.").check()
        parts = [np.frombuffer(part, dtype=kind or _TYPES[tensor.kind]) for kind, part in tensor.numbers if len(part)]
        stored = np.concatenate(parts).astype(np.float64) if parts else np.zeros(0)
        if len(stored) != size or not np.isfinite(stored).all():
            raise DataFormatError(self._path, None, f"the array {tensor.name[:100]!r} is not complete, or not finite")
        return stored.reshape(tensor.shape)


def _node(content: memoryview) -> _Node:
    node = _Node()
    for number, value in fields_of(content):
        if number in (1, 2):
            (node.inputs if number == 1 else node.outputs).append(_text(value))
        elif number == 4:
            node.kind = _text(value)
        elif number == 5 and isinstance(value, memoryview):
            facts = dict(fields_of(value))
            node.attributes[_text(facts.get(1, memoryview(b"")))] = _value(facts)
    return node


def _value(facts: Mapping[int, int | memoryview]) -> Any:
    """The value of an attribute: a float, a whole number, or a tensor."""
    number, tensor = facts.get(2), facts.get(5)
    if isinstance(tensor, memoryview):
        return _tensor(tensor)
    if isinstance(number, memoryview) and len(number) == 4:
        return float(np.frombuffer(number, dtype="<f4")[0])
    return facts.get(3)


def _tensor(content: memoryview) -> _Tensor:
    tensor = _Tensor()
    for number, value in fields_of(content):
        if number == 1 and len(tensor.shape) <= _MOST_DIMENSIONS:
            tensor.shape += whole_numbers_of(value, _MOST_DIMENSIONS)
        elif number == 2 and isinstance(value, int):
            tensor.kind = value
        elif number == 8:
            tensor.name = _text(value)
        elif number in (4, 9, 10) and isinstance(value, memoryview):
            tensor.numbers.append(({4: "<f4", 9: "", 10: "<f8"}[number], value))
        elif number in (13, 14):
            tensor.is_external |= number == 13 or value == 1
    sound = len(tensor.shape) <= _MOST_DIMENSIONS and all(0 <= length < 2**40 for length in tensor.shape)
    widths = [np.dtype(kind or _TYPES.get(tensor.kind, "i1")).itemsize for kind, _ in tensor.numbers]
    if not sound or any(len(part) % width for (_, part), width in zip(tensor.numbers, widths, strict=True)):
        raise Damaged
    return tensor


def _text(value: int | memoryview) -> str:
    if not isinstance(value, memoryview):
        raise Damaged
    return str(value, "utf-8")
