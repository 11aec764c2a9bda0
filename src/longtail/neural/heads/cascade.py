"""`Cascade`: finds labels from coarse to fine, digit by digit of their codes (MHC).

It scores groups of labels first, then only the members of the best groups. That saves computation, not parameters: the
last table has a row for every label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.errors import InvalidInput
from longtail.neural.heads.coded import CodedHead, best_candidates, each_once
from longtail.neural.heads.decisions import Decisions, any_of_row, best_label_is_right
from longtail.neural.heads.head import Task, best_labels, label_shares, search_blocks, starting_offsets
from longtail.neural.heads.losses import mean_of_rows
from longtail.neural.heads.precision import log_sigmoid, wide, widest
from longtail.neural.targets import LabelRows

Loss = Literal["product", "stages"]
LOSSES: tuple[Loss, ...] = ("product", "stages")

# Gathering one row of a table costs about as much as this many rows in a matrix product.
_PREFIXES_PER_CANDIDATE = 10


class Cascade(CodedHead):
    """Stages that add one digit each: a linear layer scores the first digit, embedding tables score longer prefixes.

    The candidates of a stage are the children of the prefixes that survived the stage before. A candidate's logit is
    the dot product of its embedding with a query, a linear map of the features, plus its offset. If there are many
    candidates and the table is small, the whole table is multiplied, which is faster and gives the same result.

    Multi-label: a score is the product of the sigmoids along the code. In training the prefixes of a row's own labels
    survive first; a label that is still missing replaces a candidate that is not a label of the row. There are two
    losses:

    - ``loss="product"``: the binary cross-entropy of the products, averaged over the candidates of all stages, so
      training optimises the scores that rank. Stages before the last get little weight, since their scores only decide
      which prefixes survive.
    - ``loss="stages"``, that of the paper (Algorithm 3): the binary cross-entropy of each stage's own sigmoids,
      averaged over its candidates, and the sum of these averages. A sigmoid of a later stage then means: has the label,
      among rows for which its prefix survived.

    Single-label: a softmax over siblings, so the scores of all labels sum to 1. The loss is the label's negative
    log-likelihood, which needs only the siblings along its code. It is the sum of the stages' cross-entropies, so both
    losses are the same. With one survivor, prediction is the greedy search of the paper.

    Parameters
    ----------
    n_features, n_labels, radices, task, order
        As for `CodedHead`; a large first radix loses least (see the confusion degree of `longtail.labels.HeadPlan`).
    width : int or None
        Width of queries and embeddings; None uses the features as queries.
    survivors : int
        Prefixes kept for each row after each stage. Prediction keeps more if these may have fewer than k labels.
    label_weights : float tensor of n_labels or None
        A prefix shared by several labels of a row has the largest of their weights.
    loss : {"product", "stages"}
    prefix_weight : float or None
        Weight of the stages before the last in the multi-label loss; None: 0.05 for products and 1 for stages.
    sparse_gradients : bool
        Whether the tables have sparse gradients, whose cost does not grow with the number of labels; the optimiser
        must support them.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> head = Cascade(n_features=16, n_labels=3956, radices=(172, 23), width=8)
    >>> head.predict_topk(torch.randn(2, 16), k=5)[0].shape
    torch.Size([2, 5])
    """

    _lengths = "descending"

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        radices: Sequence[int] | None = None,
        width: int | None = 300,
        survivors: int = 10,
        task: Task = "multi-label",
        label_weights: Tensor | None = None,
        order: Any = None,
        loss: Loss = "product",
        prefix_weight: float | None = None,
        sparse_gradients: bool = False,
    ) -> None:
        super().__init__(n_features, n_labels, radices, task, label_weights, order)
        if (width is not None and width < 1) or survivors < 1:
            raise InvalidInput(f"width is {width} and survivors {survivors}; expected at least 1 of each")
        if max(self.codes.radices) > n_labels:
            raise InvalidInput(f"radices are {self.codes.radices}; expected none above the {n_labels} labels")
        if loss not in LOSSES:
            raise InvalidInput(f"loss is {loss!r}; expected one of {', '.join(map(repr, LOSSES))}")
        if prefix_weight is None:
            prefix_weight = 0.05 if loss == "product" else 1.0
        if not 0 <= prefix_weight < math.inf:
            raise InvalidInput(f"prefix_weight is {prefix_weight}; expected a number from 0")
        self.width = n_features if width is None else width
        self.survivors = survivors
        self.trained_on = loss
        self.prefix_weight = prefix_weight
        self.sparse_gradients = sparse_gradients
        # Prefixes that contain only padding have no row.
        self.n_prefixes = tuple(-(-n_labels // stride) for stride in self.codes.strides)
        self.first = nn.Linear(n_features, self.n_prefixes[0])
        self.queries = nn.ModuleList(
            nn.Identity() if width is None else nn.Linear(n_features, width) for _ in self.n_prefixes[1:]
        )
        # The last column holds the offsets, so that one gather fetches both.
        self.tables = nn.ModuleList(
            nn.Embedding(n, self.width + 1, sparse=sparse_gradients) for n in self.n_prefixes[1:]
        )
        self._start()

    def _start(self) -> None:
        for table in self._weights():
            nn.init.normal_(table[:, :-1], std=self.width**-0.5)
            nn.init.zeros_(table[:, -1])

    def start_from(self, label_counts: Tensor, n_rows: int) -> None:
        """Start each prefix at the share of rows with any of its labels among rows with any of its parent's labels.

        The labels of a row are assumed to be independent.
        """
        device = self.first.weight.device
        shares = label_shares(label_counts.to(device), n_rows)
        positions = self.positions_of(torch.arange(self.n_labels, device=device))
        parents = None
        for stage, (n_prefixes, stride) in enumerate(zip(self.n_prefixes, self.codes.strides, strict=True)):
            inside = self._shares_of_prefixes(shares, positions // stride, n_prefixes)
            among = inside
            if parents is not None:
                among = inside / parents[torch.arange(n_prefixes, device=device) // self.codes.radices[stage]]
            offsets = self.first.bias if stage == 0 else self._weights()[stage - 1][:, -1]
            with torch.no_grad():
                offsets.copy_(starting_offsets(among.clamp(1e-6, 1 - 1e-3), self.task))
            parents = inside

    def _shares_of_prefixes(self, shares: Tensor, prefixes: Tensor, n_prefixes: int) -> Tensor:
        sums = shares.new_zeros(n_prefixes)
        if self.task == "multi-label":
            return -torch.expm1(sums.index_add(0, prefixes, torch.log1p(-shares)))
        sums = sums.index_add(0, prefixes, shares)
        return sums / sums.sum()

    def sparse_parameters(self) -> list[nn.Parameter]:
        """Parameters with sparse gradients."""
        return self._weights() if self.sparse_gradients else []

    def _weights(self) -> list[nn.Parameter]:
        return list(self.tables.parameters())

    def _children(self, stage: int, prefixes: Tensor) -> tuple[Tensor, Tensor]:
        """The children of the prefixes of the stage before (n_rows x any), and which of them exist."""
        radix = self.codes.radices[stage]
        children = (prefixes[:, :, None] * radix + torch.arange(radix, device=prefixes.device)).flatten(1)
        return children, (children >= 0) & (children < self.n_prefixes[stage])

    def _candidate_logits(self, stage: int, features: Tensor, candidates: Tensor, exist: Tensor) -> Tensor:
        query = self._query(stage, features)
        if self._scores_all(stage, candidates.shape[1]):
            logits = (query @ self._weights()[stage - 1].to(query.dtype).T).gather(1, candidates.where(exist, 0))
        else:
            embeddings = self.tables[stage - 1](candidates.where(exist, 0))
            logits = torch.bmm(embeddings.to(query.dtype), query[:, :, None])[:, :, 0]
        return wide(logits).masked_fill(~exist, -torch.inf)

    def _query(self, stage: int, features: Tensor) -> Tensor:
        return functional.pad(self.queries[stage - 1](features), (0, 1), value=1.0)

    def _scores_all(self, stage: int, n_candidates: int) -> bool:
        """Whether a product with the whole table is cheaper than gathering the candidates."""
        return not self.sparse_gradients and self.n_prefixes[stage] <= _PREFIXES_PER_CANDIDATE * n_candidates

    def _loss(self, features: Tensor, targets: LabelRows) -> Tensor:
        return self._path_loss(features, targets) if self.task == "single-label" else self._tree_loss(features, targets)

    def _path_loss(self, features: Tensor, targets: LabelRows) -> Tensor:
        positions = self.positions_of(targets.single())
        loss = functional.cross_entropy(
            wide(self.first(features)), positions // self.codes.strides[0], reduction="none"
        )
        for stage in range(1, len(self.n_prefixes)):
            siblings, exist = self._children(stage, positions[:, None] // self.codes.strides[stage - 1])
            logits = self._candidate_logits(stage, features, siblings, exist)
            digits = positions // self.codes.strides[stage] % self.codes.radices[stage]
            loss = loss + functional.cross_entropy(logits, digits, reduction="none")
        return mean_of_rows(loss, self.weights_of(targets.labels))

    def _tree_loss(self, features: Tensor, targets: LabelRows) -> Tensor:
        logits = wide(self.first(features))
        total, n_scored = logits.new_zeros(()), targets.labels.new_zeros(())
        in_products = self.trained_on == "product"
        candidates = survivors = torch.arange(self.n_prefixes[0], device=logits.device).expand(len(logits), -1)
        # Logarithms of the probabilities that a row has a prefix, and that it lacks it; these never round to 0.
        has, lacks = logits.new_zeros(len(logits), 1), logits.new_full((len(logits), 1), -torch.inf)
        nothing = targets.labels.new_zeros(0)
        before = _Scored(nothing, nothing, 1, has, lacks)
        for stage, radix in enumerate(self.codes.radices):
            prefixes = self.positions_of(targets.labels) // self.codes.strides[stage]
            weights = self.weights_of(targets.labels)
            owners, prefixes, weights = each_once(targets.rows, prefixes, self.n_prefixes[stage], weights)
            if stage == 0:
                places, exist = prefixes, torch.ones((), dtype=torch.bool, device=logits.device)
            else:
                below = survivors[owners] == (prefixes // radix)[:, None]
                candidates, exist = self._children(stage, survivors)
                places = torch.where(below.any(1), below.int().argmax(1) * radix + prefixes % radix, -1)
                homeless = places < 0
                places = _make_room(places, owners, candidates.shape)
                parents = before.find(owners, prefixes // radix)
                placed = (places >= 0) & (parents >= 0)
                moved = (placed & homeless).nonzero()[:, 0]
                has, lacks = has.repeat_interleave(radix, 1), lacks.repeat_interleave(radix, 1)
                if len(moved):
                    # Their parents did not survive, so these places still have the values of other parents.
                    there = owners[moved], places[moved]
                    has = has.index_put(there, before.has[owners[moved], parents[moved]])
                    lacks = lacks.index_put(there, before.lacks[owners[moved], parents[moved]])
                owners, prefixes, places = owners[placed], prefixes[placed], places[placed]
                weights = None if weights is None else weights[placed]
                candidates[owners, places], exist[owners, places] = prefixes, True
                logits = self._candidate_logits(stage, features, candidates, exist)
            exist = exist.expand_as(logits)
            lacks = torch.logaddexp(lacks, has + functional.logsigmoid(-logits)).where(exist, 0)
            has = has + functional.logsigmoid(logits)
            found = has[owners, places]
            positive = (found if weights is None else found * weights).sum()
            weight = 1.0 if stage + 1 == len(self.codes.radices) else self.prefix_weight
            terms = weight * (lacks[owners, places].sum() - lacks.sum() - positive)
            n_scored = n_scored + exist.sum()
            total = total + (terms if in_products else terms / exist.sum().clamp(min=1))
            standing = has.detach().exp().where(exist, -1)
            standing = standing.index_put((owners, places), standing.new_ones(()), accumulate=True)
            if not in_products:
                has, lacks = torch.zeros_like(has), torch.full_like(lacks, -torch.inf)
            before = _Scored(owners * self.n_prefixes[stage] + prefixes, places, self.n_prefixes[stage], has, lacks)
            kept = torch.topk(standing, min(self.survivors, standing.shape[1]), dim=1).indices
            survivors, has, lacks = candidates.gather(1, kept), has.gather(1, kept), lacks.gather(1, kept)
        return total / n_scored.clamp(min=1) if in_products else total

    def logits(self, features: Tensor) -> tuple[Tensor, ...]:
        """The logits of all prefixes of each stage: tensors of shape (n_rows, n_prefixes)."""
        later = (self._query(stage, features) @ table.T for stage, table in enumerate(self._weights(), start=1))
        return self.first(features), *later

    def _log_prob(self, features: Tensor) -> Tensor:
        """As predicted if every prefix survives."""
        found = features.new_zeros(features.shape[0], 1, dtype=torch.float32)
        for radix, logits in zip(self.codes.radices, self.logits(features), strict=True):
            n_prefixes = logits.shape[1]
            padded = functional.pad(wide(logits), (0, found.shape[1] * radix - n_prefixes), value=-torch.inf)
            siblings = padded.view(*found.shape, radix)
            own = siblings.log_softmax(-1) if self.task == "single-label" else log_sigmoid(siblings)
            found = (own + found[:, :, None]).flatten(1)[:, :n_prefixes]
        return found if self.position is None else found[:, self.position]

    def _probabilities(self, features: Tensor) -> Tensor:
        """As predicted if every prefix survives."""
        chances = features.new_ones(features.shape[0], 1, dtype=torch.float32)
        for radix, logits in zip(self.codes.radices, self.logits(features), strict=True):
            padded = functional.pad(wide(logits), (0, chances.shape[1] * radix - logits.shape[1]), value=-torch.inf)
            chances = self._chances(padded, chances)[:, : logits.shape[1]]
        return chances if self.position is None else chances[:, self.position]

    def _chances(self, logits: Tensor, parents: Tensor) -> Tensor:
        """Probabilities of children, from their logits (siblings adjacent) and the probabilities of their parents."""
        logits = widest(logits).view(*parents.shape, logits.shape[1] // parents.shape[1])
        chances = logits.softmax(-1) if self.task == "single-label" else logits.sigmoid()
        return (chances.float() * parents[:, :, None]).flatten(1)

    def _predict_topk(self, features: Tensor, k: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        allowed = features.new_ones(self.n_labels, dtype=torch.bool) if allowed is None else allowed
        at_positions = allowed if self.label_at is None else allowed[self.label_at]
        members = [
            functional.pad(at_positions, (0, n_prefixes * stride - self.n_labels)).view(n_prefixes, stride).sum(1)
            for n_prefixes, stride in zip(self.n_prefixes, self.codes.strides, strict=True)
        ]
        beams = [min(len(inside), max(self.survivors, _enough(inside, k))) for inside in members[:-1]] + [k]
        costs = [beam * radix * self.width for beam, radix in zip(beams, self.codes.radices[1:], strict=False)]
        usable = [inside > 0 for inside in members]
        return search_blocks(lambda rows: self._find(rows, beams, usable), features, max(self.n_prefixes[0], *costs, 1))

    def _find(self, features: Tensor, beams: list[int], usable: list[Tensor]) -> tuple[Tensor, Tensor]:
        """The best labels, or the best prefixes of as many stages as there are `beams`."""
        logits = wide(self.first(features))
        chances = self._chances(logits, logits.new_ones(len(logits), 1, dtype=torch.float32))
        if len(self.n_prefixes) == 1:
            if self.position is not None:
                chances, usable = chances[:, self.position], [usable[0][self.position]]
            return best_labels(chances, beams[0], usable[0])
        survivors, chances = best_labels(chances, beams[0], usable[0])
        for stage in range(1, len(beams)):
            candidates, exist = self._children(stage, survivors)
            logits = self._candidate_logits(stage, features, candidates, exist)
            chances = self._chances(logits, chances)
            chances = chances.masked_fill(~(exist & usable[stage][candidates.where(exist, 0)]), -torch.inf)
            if stage + 1 == len(self.n_prefixes):
                candidates = self.labels_at(candidates)
            survivors, chances = best_candidates(candidates, chances, beams[stage])
        return survivors, chances

    def multiply_adds(self, n_rows: int, training: bool = True) -> int:
        total = self.n_features * self.n_prefixes[0]
        for stage, candidates in enumerate(self._candidates(training), start=1):
            scored = self.n_prefixes[stage] if self._scores_all(stage, candidates) else candidates
            mapped = 0 if isinstance(self.queries[stage - 1], nn.Identity) else self.n_features * self.width
            total += mapped + scored * (self.width + 1)
        return n_rows * total * (3 if training else 1)

    def batch_values(self, n_rows: int) -> int:
        """Gathered embeddings count twice, because their gradients are as large."""
        total = self.n_prefixes[0]
        for stage, candidates in enumerate(self._candidates(training=True), start=1):
            gathered = 2 * candidates * (self.width + 1)
            total += self.n_prefixes[stage] if self._scores_all(stage, candidates) else gathered
        return n_rows * total

    def _candidates(self, training: bool) -> list[int]:
        """Number of candidates of a row at each stage after the first."""
        found, parents = [], self.n_prefixes[0]
        for radix in self.codes.radices[1:]:
            parents = 1 if training and self.task == "single-label" else min(self.survivors, parents)
            parents *= radix
            found.append(parents)
        return found

    def labels_of(self, head: int, value: int) -> Tensor:
        """The labels below a prefix of stage `head`."""
        stride = self.codes.strides[head]
        last = min((value + 1) * stride, self.n_labels)
        return self.labels_at(torch.arange(value * stride, last, device=self.first.weight.device))

    def _decisions(self, features: Tensor, targets: LabelRows) -> Decisions:
        """Values are prefixes. After each stage the search goes on below the best prefix of the row's own labels."""
        rows, positions = targets.rows, self.positions_of(targets.labels)
        below = torch.ones_like(rows, dtype=torch.bool)
        parents = rows.new_zeros(targets.n_rows, 1)
        preferred, true, right = [], [], []
        for stage, (radix, stride) in enumerate(zip(self.codes.radices, self.codes.strides, strict=True)):
            owners, prefixes, _ = each_once(rows[below], positions[below] // stride, self.n_prefixes[stage])
            if stage == 0:
                candidates = torch.arange(self.n_prefixes[0], device=rows.device).expand(targets.n_rows, -1)
                logits, places = wide(self.first(features)), prefixes
            else:
                candidates, exist = self._children(stage, parents)
                logits, places = self._candidate_logits(stage, features, candidates, exist), prefixes % radix
            own = torch.full_like(logits, -torch.inf)
            own[owners, places] = logits[owners, places]
            best = candidates.gather(1, logits.argmax(1, keepdim=True))[:, 0]
            preferred.append(best)
            true.append((owners, prefixes))
            right.append(any_of_row(prefixes == best[owners], owners, targets.n_rows))
            parents = candidates.gather(1, own.argmax(1, keepdim=True))
            below &= positions // stride == parents[rows, 0]
        found, _ = self._predict_topk(features, 1)
        return Decisions(
            torch.stack(preferred, 1),
            tuple(true),
            torch.stack(right, 1).cumprod(1).bool(),
            best_label_is_right(found[:, 0], targets),
        )

    def _count_survivors(self, features: Tensor, targets: LabelRows, sizes: Sequence[int]) -> Tensor:
        counts = torch.zeros(len(self.n_prefixes) - 1, len(sizes), dtype=torch.int64)
        rows, positions = targets.rows, self.positions_of(targets.labels)
        for stage in range(len(counts)):
            prefixes = (positions // self.codes.strides[stage])[:, None]
            first = self._survivors(features, 1, max(sizes)) if stage == 0 else None
            for column, size in enumerate(sizes):
                survivors = self._survivors(features, stage + 1, size) if first is None else first[:, :size]
                counts[stage, column] = int((survivors[rows] == prefixes).any(1).sum())
        return counts

    def _survivors(self, features: Tensor, n_stages: int, size: int) -> Tensor:
        """The prefixes of each row that the first stages keep, best first (n_rows x size)."""
        every = [torch.ones(n, dtype=torch.bool, device=features.device) for n in self.n_prefixes]
        costs = [size * radix * self.width for radix in self.codes.radices[1:n_stages]]
        find = partial(self._find, beams=[size] * n_stages, usable=every)
        return search_blocks(find, features, max(self.n_prefixes[0], *costs, 1))[0]


class _Scored(NamedTuple):
    """A stage: the prefixes of the rows' labels, their places among the candidates, and the log probabilities."""

    keys: Tensor
    places: Tensor
    n_prefixes: int
    has: Tensor
    lacks: Tensor

    def find(self, rows: Tensor, prefixes: Tensor) -> Tensor:
        """The places of prefixes of rows, -1 for those without one."""
        keys = rows * self.n_prefixes + prefixes
        at = torch.searchsorted(self.keys, keys).clamp(max=max(0, len(self.keys) - 1))
        return torch.where(self.keys[at] == keys, self.places[at], -1) if len(self.keys) else torch.full_like(keys, -1)


def _make_room(places: Tensor, owners: Tensor, shape: torch.Size) -> Tensor:
    """Assign the last free places among the candidates (n_rows x any) to the entries without a place (-1).

    The last candidates are the children of the weakest survivors. Entries stay at -1 if a row has no free place.
    Owners are sorted.
    """
    missing = (places < 0).nonzero()[:, 0]
    if len(missing) == 0:
        return places
    taken = torch.zeros(shape, dtype=torch.bool, device=places.device)
    taken[owners[places >= 0], places[places >= 0]] = True
    rows, which, counts = torch.unique_consecutive(owners[missing], return_inverse=True, return_counts=True)
    turn = torch.arange(len(missing), device=places.device) - (counts.cumsum(0) - counts)[which]
    free, order = (~taken[rows]).flip(1).byte().sort(dim=1, descending=True, stable=True)
    found = shape[1] - 1 - order[which, turn.clamp(max=shape[1] - 1)]
    places = places.clone()
    places[missing] = torch.where(turn < free.sum(1)[which], found, -1)
    return places


def _enough(members: Tensor, k: int) -> int:
    """The number of prefixes that, whichever they are, contain k labels, or all labels if there are fewer."""
    sizes = members[members > 0].sort().values.cumsum(0)
    return 0 if len(sizes) == 0 else int(torch.searchsorted(sizes, min(k, int(sizes[-1])))) + 1
