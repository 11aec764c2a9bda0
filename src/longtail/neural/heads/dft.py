"""`DFT`: an output layer of fixed sines and cosines that can predict every set of at most k labels.

Only the projection onto the frequencies is trained, plus any number of free columns (slack), which enlarge the regions
of label sets (Grivas et al., AAAI 2024).
"""

from __future__ import annotations

import logging
import math
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.arrays import Array
from longtail.audit import dft_matrix, initial_bias, slack_needed
from longtail.errors import InvalidInput
from longtail.neural.heads.dense import DenseHead
from longtail.neural.heads.head import Task, check_loaded_order, is_order
from longtail.neural.heads.precision import wide, without_autocast

_log = logging.getLogger(__name__)

Form = Literal["auto", "fft", "matrix"]

# Measured for 1,000 to 100,000 labels, 128 rows, forward and backward: a fast transform costs as much as a matrix with
# this many columns per log2 of the number of labels, and more if that number has large prime factors. Above the size of
# the largest matrix, the transform saves memory.
_COLUMNS_PER_HALVING = 7
_LARGEST_MATRIX = 2**24


class DFT(DenseHead):
    """Logits ``F x[:2k + 1] + S x[2k + 1:]`` of the inputs ``x = P e + b``, for features e.

    F holds sines and cosines up to frequency k at one point per label; S is trained. Labels have no offsets. P starts
    at 0, and b such that every label has the same probability for any features.

    Parameters
    ----------
    n_features, n_labels, task, label_weights
        As for `Head`.
    k : int
        Every set of up to k labels can be predicted; less than ``n_labels / 2``.
    slack : int or None
        Number of columns of S. None: as many as `longtail.audit.slack_needed` returns, 0 or 16; without them, 32-bit
        floats do not resolve the sets of many labels, and the head hardly learns.
    start : {"max", "mean"}
        Initial probability of every label: k / n_labels, or mean_active / n_labels, which is usually better.
    mean_active : float or None
        Mean number of labels per row, for ``start="mean"``.
    order : int64 tensor of n_labels or None
        The point of each label on the circle, a permutation; None: its id.
    form : {"auto", "fft", "matrix"}
        How to compute F x: by a fast transform, by a matrix, or by the faster of the two for this size.

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
        slack: int | None = None,
        start: Literal["max", "mean"] = "max",
        mean_active: float | None = None,
        order: Tensor | None = None,
        form: Form = "auto",
    ) -> None:
        super().__init__(n_features, n_labels, task, label_weights)
        if slack is not None and slack < 0:
            raise InvalidInput(f"slack is {slack}; expected 0 or more")
        if start not in ("max", "mean") or (start == "mean") != (mean_active is not None):
            raise InvalidInput(
                f"start is {start!r} and mean_active {mean_active}; expected 'max' and None, or 'mean' and the mean "
                "number of labels per row"
            )
        if form not in ("auto", "fft", "matrix"):
            raise InvalidInput(f"form is {form!r}; expected 'auto', 'fft' or 'matrix'")
        order = None if order is None else torch.as_tensor(order, device="cpu")
        if order is not None and not is_order(order, n_labels):
            raise InvalidInput(
                f"order is not a permutation of 0 to {n_labels - 1}; expected a different point for each label"
            )
        self.k = k
        self._first_input = float(initial_bias(n_labels, k, mean_active)[0])
        self.slack = slack_needed(n_labels, k) if slack is None else slack
        self.projection = nn.Linear(n_features, 2 * k + 1 + self.slack)
        self.free = nn.Linear(self.slack, n_labels, bias=False) if self.slack else None
        self._keep("order", order)
        in_matrix = form == "matrix" or (form == "auto" and _matrix_is_faster(n_labels, k))
        self.register_buffer("matrix", torch.empty(n_labels, 2 * k + 1) if in_matrix else None, persistent=False)
        self._fill_matrix()
        self._start()

    @classmethod
    def like(
        cls, linear: nn.Linear, k: int, slack: int | None = None, *, keep_weights: bool = False, **options: Any
    ) -> Self:
        """A head in place of a linear layer, with its numbers of features and labels, its device and its dtype.

        The fixed columns cannot take the weights of `linear`. By default, the head starts like any other one, and must
        be trained. With ``keep_weights=True`` it starts as the head whose logits are nearest to those of `linear`: the
        projection holds what sines and cosines, in the order of the labels, can represent of the weights, and the slack
        columns hold the largest singular directions of the rest. With as many slack columns as `linear` has features,
        plus one if it has a bias, the logits are the same. The guarantee is for the inputs of the fixed columns. To
        pass on all of them, the projection needs at least ``2 * k + 1`` features; with fewer, a warning is logged.

        Parameters
        ----------
        linear : torch.nn.Linear
            Remains unchanged.
        k : int
        slack : int or None
            As for the class.
        keep_weights : bool
        **options
            The other parameters of the class: `task`, `label_weights`, `start`, `mean_active`, `order` and `form`.

        Examples
        --------
        >>> head = DFT.like(nn.Linear(64, 1000), k=5, slack=16)
        >>> head.n_features, head.n_labels, head.projection.weight.dtype
        (64, 1000, torch.float32)
        """
        weight = linear.weight
        head = cls(linear.in_features, linear.out_features, k, slack=slack, **options)
        head = head.to(device=weight.device, dtype=weight.dtype)
        head._fill_matrix()  # the columns that were made have 32 bits
        if linear.in_features < 2 * k + 1:
            _log.warning(
                "the dft head has %d features, but needs %d to reach all sets of %d labels; give it more features or "
                "a smaller k",
                *(linear.in_features, 2 * k + 1, k),
            )
        if keep_weights:
            head._start_near(linear)
        return head

    @torch.no_grad()
    def _start_near(self, linear: nn.Linear) -> None:
        """The fixed columns are orthonormal, so products with them are the nearest coefficients."""
        wanted = linear.weight.double()
        if isinstance(linear.bias, Tensor):
            wanted = torch.cat([wanted, linear.bias.double()[:, None]], dim=1)
        fixed = torch.from_numpy(self._fixed_columns()).to(wanted.device)
        found = fixed.T @ wanted
        if self.free is not None:
            left, sizes, right = torch.linalg.svd(wanted - fixed @ found, full_matrices=False)
            most = min(self.slack, len(sizes))
            roots = sizes[:most].sqrt()
            self.free.weight[:, :most] = (left[:, :most] * roots).to(self.free.weight.dtype)
            rest = torch.zeros(self.slack, wanted.shape[1], dtype=wanted.dtype, device=wanted.device)
            rest[:most] = roots[:, None] * right[:most]
            found = torch.cat([found, rest])
        self.projection.weight.copy_(found[:, : self.n_features])
        self.projection.bias.copy_(found[:, -1] if isinstance(linear.bias, Tensor) else torch.zeros(len(found)))

    def _start(self) -> None:
        nn.init.zeros_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)
        with torch.no_grad():
            self.projection.bias[0] = self._first_input

    def _fill_matrix(self) -> None:
        device = self.projection.weight.device
        if self.matrix is not None and device.type != "meta":
            self.matrix = torch.from_numpy(self._fixed_columns()).to(device, self.matrix.dtype)

    def _leave_meta(self) -> None:
        super()._leave_meta()
        self._fill_matrix()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        check_loaded_order(state_dict, f"{prefix}order", self.n_labels)
        super()._load_from_state_dict(state_dict, prefix, *rest)
        if self.order is not None and not self.order.is_meta:
            self._fill_matrix()

    def logits(self, features: Tensor) -> Tensor:
        # b_0 is about sqrt(n_labels): in the 8 bits of bfloat16 every probability would be off.
        with without_autocast(features.device):
            weight, bias = wide(self.projection.weight), wide(self.projection.bias)
            x = functional.linear(features.to(weight.dtype), weight, bias)
            frequencies = x[:, : 2 * self.k + 1]
            found: Tensor = self._transform(frequencies) if self.matrix is None else frequencies @ wide(self.matrix).T
            if self.free is not None:
                found = found + functional.linear(x[:, 2 * self.k + 1 :], wide(self.free.weight))
        return found

    def _transform(self, frequencies: Tensor) -> Tensor:
        """`longtail.audit.dft_product` by an inverse real FFT, which is half as long as a complex one."""
        if len(frequencies) == 0:
            # Not every FFT library accepts an empty batch.
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
        return columns if self.order is None else columns[self.order.cpu().numpy()]

    def multiply_adds(self, n_rows: int, training: bool = True) -> int:
        """A fast transform of n real values counts as ``1.25 n log2(n)``."""
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
