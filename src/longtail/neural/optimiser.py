"""`Optimiser`: AdamW for all parameters of a network, row by row for tables with sparse gradients.

Weights of two or more dimensions decay; biases and norm scales do not. A row of a sparse table is updated, and decays,
only in steps whose batch uses it, so the cost of a step depends on the batch and not on the size of the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

Schedule = Literal["cosine", "linear", "constant"]
SCHEDULES: tuple[Schedule, ...] = ("cosine", "linear", "constant")
_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


class RowAdamW(torch.optim.Optimizer):
    """AdamW for networks with sparse gradients, which `torch.optim.AdamW` refuses.

    Of a table with sparse gradients, only the rows that have one are updated and decay; steps are counted per table.
    Dense gradients are those of `torch.optim.AdamW`.

    Parameters
    ----------
    params : parameters or groups of parameters
    lr : float
    weight_decay : float

    Examples
    --------
    >>> table = nn.Embedding(1_000_000, 2, sparse=True)
    >>> optimiser = RowAdamW(table.parameters(), lr=0.1)
    >>> table(torch.tensor([7])).sum().backward()
    >>> optimiser.step()
    """

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, weight_decay: float = 0.01) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update what has a gradient, after calling `closure` if it is given; return its loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is None:
                    continue
                state = self.state[table]
                if not state:
                    state.update(_at_rest(table))
                state["step"] += 1
                move = _move_rows if table.grad.is_sparse else _move
                move(table, state, int(state["step"]), group["lr"], group["weight_decay"])
        return loss


def _move(values: Tensor, state: dict[str, Tensor], step: int, rate: float, decay: float) -> None:
    slopes: Any = values.grad
    mean = state["exp_avg"].lerp_(slopes, 1 - _BETAS[0])
    square = state["exp_avg_sq"].mul_(_BETAS[1]).addcmul_(slopes, slopes, value=1 - _BETAS[1])
    size = square.sqrt().div_(math.sqrt(1 - _BETAS[1] ** step)).add_(_EPSILON)
    values.mul_(1 - rate * decay).addcdiv_(mean, size, value=-rate / (1 - _BETAS[0] ** step))


def _move_rows(table: Tensor, state: dict[str, Tensor], step: int, rate: float, decay: float) -> None:
    gradient: Any = table.grad
    gradient = gradient.coalesce()
    rows, slopes = gradient.indices()[0], gradient.values()
    mean = state["exp_avg"].index_select(0, rows).lerp_(slopes, 1 - _BETAS[0])
    state["exp_avg"].index_copy_(0, rows, mean)
    square = state["exp_avg_sq"].index_select(0, rows).mul_(_BETAS[1])
    square.addcmul_(slopes, slopes, value=1 - _BETAS[1])
    state["exp_avg_sq"].index_copy_(0, rows, square)
    size = square.sqrt_().div_(math.sqrt(1 - _BETAS[1] ** step)).add_(_EPSILON)
    values = table.index_select(0, rows).mul_(1 - rate * decay)
    values.addcdiv_(mean, size, value=-rate / (1 - _BETAS[0] ** step))
    table.index_copy_(0, rows, values)


class Optimiser:
    """Updates all trained parameters of a network, those of `network.encoder` at `encoder_learning_rate` if given.

    Modules with sparse gradients list those tables in a method `sparse_parameters()`.
    """

    def __init__(
        self,
        network: nn.Module,
        learning_rate: float,
        weight_decay: float = 0.0,
        encoder_learning_rate: float | None = None,
    ) -> None:
        self.names = {name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad}
        sparse = _sparse_parameters(network)
        groups: dict[tuple[bool, float, float], list[nn.Parameter]] = {}
        for name, parameter in self.names.items():
            slow = encoder_learning_rate is not None and name.startswith("encoder.")
            rate = encoder_learning_rate if slow and encoder_learning_rate is not None else learning_rate
            decay = weight_decay if parameter.ndim > 1 else 0.0
            groups.setdefault((id(parameter) in sparse, rate, decay), []).append(parameter)
        self._optimisers: list[torch.optim.Optimizer] = []
        for by_row in (False, True):
            chosen = [
                {"params": parameters, "lr": rate, "weight_decay": decay, "full_rate": rate}
                for (sparse_gradient, rate, decay), parameters in groups.items()
                if sparse_gradient == by_row
            ]
            if chosen:
                self._optimisers.append(
                    RowAdamW(chosen) if by_row else torch.optim.AdamW(chosen, betas=_BETAS, eps=_EPSILON, fused=True)
                )
        for optimiser in self._optimisers:
            for group in optimiser.param_groups:
                for parameter in group["params"]:
                    optimiser.state[parameter] = _at_rest(parameter)

    def step(self, factor: float = 1.0, clip: float | None = None) -> None:
        """Update the parameters at `factor` times the learning rate, then clear the gradients.

        `clip` is the maximum norm of the gradient of all parameters together.
        """
        if clip is not None:
            clip_gradients(self.names.values(), clip)
        for optimiser in self._optimisers:
            for group in optimiser.param_groups:
                group["lr"] = factor * group["full_rate"]
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, Tensor]:
        """The state of the optimiser, by parameter name; not copied."""
        found = {}
        for name, parameter in self.names.items():
            for optimiser in self._optimisers:
                for key, value in optimiser.state.get(parameter, {}).items():
                    found[f"{name}.{key}"] = value
        return found

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore a state that `tensors` returned."""
        for name, tensor in self.tensors().items():
            tensor.copy_(tensors[name])


def learning_rate_factor(schedule: Schedule, step: int, n_steps: int, warmup: float = 0.0) -> float:
    """The factor of the learning rate at a step, counted from 0.

    It rises linearly to 1 over the first `warmup` share of the steps, then falls towards 0 as half a cosine or a line,
    or stays at 1.

    Examples
    --------
    >>> [round(learning_rate_factor("linear", step, 6, warmup=0.34), 2) for step in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    rising = int(warmup * n_steps)
    if step < rising:
        return (step + 1) / rising
    if schedule == "constant":
        return 1.0
    share = (step - rising) / (n_steps - rising)
    return 1 - share if schedule == "linear" else (1 + math.cos(math.pi * share)) / 2


def clip_gradients(parameters: Iterable[nn.Parameter], longest: float) -> float:
    """Clip the joint norm of all gradients, dense or sparse, to `longest`; return the norm before clipping.

    Examples
    --------
    >>> weights = nn.Parameter(torch.zeros(2))
    >>> weights.grad = torch.tensor([3.0, 4.0])
    >>> clip_gradients([weights], longest=1.0)
    5.0
    >>> weights.grad
    tensor([0.6000, 0.8000])
    """
    values = []
    for parameter in parameters:
        if parameter.grad is None:
            continue
        if parameter.grad.is_sparse:
            # Entries of the same row must be summed before the norm is computed.
            parameter.grad = parameter.grad.coalesce()
            values.append(parameter.grad._values())
        else:
            values.append(parameter.grad)
    if not values:
        return 0.0
    length = float(torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(value) for value in values])))
    if length > longest:
        torch._foreach_mul_(values, longest / length)
    return length


def _at_rest(parameter: Tensor) -> dict[str, Tensor]:
    """The state of AdamW before the first step."""
    moments = {name: torch.zeros_like(parameter, requires_grad=False) for name in ("exp_avg", "exp_avg_sq")}
    return {"step": torch.zeros(()), **moments}


def _sparse_parameters(network: nn.Module) -> set[int]:
    found = set()
    for module in network.modules():
        named = getattr(module, "sparse_parameters", None)
        if callable(named):
            found |= {id(parameter) for parameter in named()}
    return found
