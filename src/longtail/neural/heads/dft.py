"""`DFT`: an output layer of fixed sines and cosines that can give every set of at most k labels.

Only the projection onto the frequencies is trained, and as many free columns (slack) as one likes, which make the
regions of label sets larger (Grivas et al., AAAI 2024).
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from longtail.arrays import Array
from longtail.audit import dft_matrix, initial_bias
from longtail.errors import InvalidInput
from longtail.neural.heads.dense import DenseHead
from longtail.neural.heads.head import Task, check_loaded_order, is_order

Form = Literal["auto", "fft", "matrix"]

# Measured for 1,000 to 100,000 labels, 128 rows, forward and backward: a fast transform costs as much as a matrix of
# this many columns for each time the labels can be halved, more where their number has large prime factors. Beyond
# the largest matrix the transform saves memory.
_COLUMNS_PER_HALVING = 7
_LARGEST_MATRIX = 2**24


class DFT(DenseHead):
    """Logits ``F x[:2k + 1] + S x[2k + 1:]`` of the inputs ``x = P e + b``, for features e.

    F are sines and cosines up to frequency k at one point per label, S is trained. No label has an offset of its own.
    P starts at 0 and b so that every label has the same probability, whatever the features.

    Parameters
    ----------
    n_features, n_labels, task, label_weights
        As for `Head`.
    k : int
        Label sets of up to k labels can all be had, with fewer than ``n_labels / 2``.
    slack : int
        Columns of S.
    start : {"max", "mean"}
        Every label starts at the probability k / n_labels, or at mean_active / n_labels, which is mostly better.
    mean_active : float or None
        Mean number of labels of a row, for ``start="mean"``.
    order : int64 tensor of n_labels or None
        The point on the circle of each label, a permutation; its own number where None.
    form : {"auto", "fft", "matrix"}
        How F x is computed: by a fast transform, by a matrix, or by whichever is faster for the size.

    Examples
    --------
    >>> head = DFT(n_features=768, n_labels=20_000, k=50, slack=100)
    >>> head.n_parameters()
    2154569
    >>> probabilities = head.probabilities(torch.randn(2, 768))
    >>> bool(torch.allclose(probabilities, torch.tensor(50 / 20_000)))
    True
    """

    order: Tensor | None
    matrix: Tensor | None

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        k: int,
        task: Task = "multi-label",
        label_weights: Tensor | None = None,
        slack: int = 0,
        start: Literal["max", "mean"] = "max",
        mean_active: float | None = None,
        order: Tensor | None = None,
        form: Form = "auto",
    ) -> None:
        super().__init__(n_features, n_labels, task, label_weights)
        if slack < 0:
            raise InvalidInput(f"slack is {slack}; expected 0 or more")
        if start not in ("max", "mean") or (start == "mean") != (mean_active is not None):
            raise InvalidInput(
                f"start is {start!r} and mean_active {mean_active}; expected 'max' without, or 'mean' with the mean "
                "number of labels of a row"
            )
        if form not in ("auto", "fft", "matrix"):
            raise InvalidInput(f"form is {form!r}; expected 'auto', 'fft' or 'matrix'")
        if order is not None and not is_order(order, n_labels):
            raise InvalidInput(f"order is not a permutation of 0 to {n_labels - 1}: give every label its own point")
        self.k = k
        self.slack = slack
        bias = initial_bias(n_labels, k, mean_active)
        self.projection = nn.Linear(n_features, 2 * k + 1 + slack)
        with torch.no_grad():
            self.projection.weight.zero_()
            self.projection.bias.zero_()
            self.projection.bias[: 2 * k + 1] = torch.from_numpy(bias)
        self.free = nn.Linear(slack, n_labels, bias=False) if slack else None
        self.register_buffer("order", order)
        in_matrix = form == "matrix" or (form == "auto" and _matrix_is_faster(n_labels, k))
        matrix = torch.from_numpy(self._fixed_columns()).float() if in_matrix else None
        self.register_buffer("matrix", matrix, persistent=False)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        check_loaded_order(state_dict, f"{prefix}order", self.n_labels)
        super()._load_from_state_dict(state_dict, prefix, *rest)
        if self.matrix is not None and self.order is not None:
            self.matrix = torch.from_numpy(self._fixed_columns()).float()

    def logits(self, features: Tensor) -> Tensor:
        # b_0 is of the size of sqrt(n_labels): with 8 bits of it every probability would be off.
        with torch.autocast(features.device.type, enabled=False):
            x = self.projection(features.float())
            frequencies = x[:, : 2 * self.k + 1]
            found: Tensor = self._transform(frequencies) if self.matrix is None else frequencies @ self.matrix.T
            if self.free is not None:
                found = found + self.free(x[:, 2 * self.k + 1 :])
        return found

    def _transform(self, frequencies: Tensor) -> Tensor:
        """`longtail.audit.dft_product`, by the transform of half the length that real results allow."""
        if len(frequencies) == 0:
            # Not every library of transforms takes an empty batch.
            return frequencies.new_zeros((0, self.n_labels))
        halves = frequencies[:, 1:] * math.sqrt(0.5)
        spectrum = torch.complex(
            torch.cat([frequencies[:, :1], halves[:, 0::2]], dim=1),
            torch.cat([torch.zeros_like(frequencies[:, :1]), -halves[:, 1::2]], dim=1),
        )
        scores = torch.fft.irfft(spectrum, n=self.n_labels, norm="ortho")
        return scores if self.order is None else scores[:, self.order]

    def _fixed_columns(self) -> Array:
        columns = dft_matrix(self.n_labels, self.k)
        return columns if self.order is None else columns[self.order.numpy()]

    def multiply_adds(self, n_rows: int, training: bool = True) -> int:
        """A fast transform of n real numbers counts as ``1.25 n log2(n)``."""
        n, width = self.n_labels, 2 * self.k + 1 + self.slack
        fixed = int(1.25 * n * math.log2(n)) if self.matrix is None else n * (2 * self.k + 1)
        trained = width * self.n_features + n * self.slack
        return n_rows * (2 * fixed + 3 * trained if training else fixed + trained)

    def output_layer(self) -> tuple[Array, Array]:
        columns = self._fixed_columns()
        if self.free is not None:
            columns = np.concatenate([columns, self.free.weight.detach().cpu().numpy()], axis=1)
        return columns, np.zeros(self.n_labels)


def _matrix_is_faster(n_labels: int, k: int) -> bool:
    width = 2 * k + 1
    return n_labels * width <= _LARGEST_MATRIX and width <= _COLUMNS_PER_HALVING * math.log2(n_labels)
