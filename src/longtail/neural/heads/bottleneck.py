"""`Bottleneck`: a linear layer of every label over a few shared numbers.

Cheap, but a layer narrower than the labels it serves leaves most label sets out of reach (Grivas et al., AAAI 2024):
`longtail.audit` tells which, and `DFT` is the layer of the same width that reaches all small ones.
"""

from __future__ import annotations

from torch import Tensor, nn

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.neural.heads.dense import DenseHead
from longtail.neural.heads.head import Task
from longtail.neural.heads.one_hot import linear_layer


class Bottleneck(DenseHead):
    """Logits ``W x`` of the inputs ``x = P e + b``, for features e.

    Parameters
    ----------
    n_features, n_labels, task, label_weights
        As for `Head`.
    width : int
        Numbers in x.
    bias : bool
        Whether every label has an offset besides.

    Examples
    --------
    >>> head = Bottleneck(n_features=768, n_labels=20_000, width=200)
    >>> head.n_parameters()
    4153800
    """

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        width: int,
        task: Task = "multi-label",
        label_weights: Tensor | None = None,
        bias: bool = False,
    ) -> None:
        super().__init__(n_features, n_labels, task, label_weights)
        if width < 1:
            raise InvalidInput(f"width is {width}; expected at least 1")
        self.width = width
        self.projection = nn.Linear(n_features, width)
        self.output = nn.Linear(width, n_labels, bias=bias)

    def logits(self, features: Tensor) -> Tensor:
        found: Tensor = self.output(self.projection(features))
        return found

    def multiply_adds(self, n_rows: int, training: bool = True) -> int:
        return (3 if training else 1) * n_rows * self.width * (self.n_features + self.n_labels)

    def output_layer(self) -> tuple[Array, Array]:
        return linear_layer(self.output)
