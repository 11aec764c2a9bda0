"""`TreeWeights`: a label tree as arrays that are searched in place, in memory or mapped from a file.

The children of a node are stored in blocks of up to 256. The weights of a block are ordered by feature, behind a
directory of buckets (features with the same high bits), so that a row finds its features without reading the rest. A
mask of 64 bits tells which features of a bucket have weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator import Step
from longtail.labels import LabelHierarchy
from longtail.native import block_entries, log_probability
from longtail.store import State

BLOCK_CHILDREN = 256
DENSE = 0x80  # flag beside the shift of a block
_DENSE_SHARE = 0.5
_FEWEST_EXACT, _FEWEST_OTHERS = 2, 4  # features of a bucket
_EXACT_SHIFT, _LARGEST_SHIFT = 6, 16  # a mask has 2^6 bits, and the low bits of a feature must fit in 16

_TYPES: dict[str, Any] = {
    "shifts": np.uint8,
    "masks": np.uint64,
    "bucket_rows": np.uint32,
    "bucket_weights": np.uint32,
    "lows": np.uint16,
    "counts": np.uint8,
    "slots": np.uint8,
}


PACKED = ("intercepts", "scales", *_TYPES, "weights")
_FIRSTS = ("first_bucket", "first_row", "first_low", "first_weight")


class TrainedBlock(NamedTuple):
    """The result of training up to 256 siblings: weights by feature, and intercepts.

    Parameters
    ----------
    features : int32 array, ascending
    pointers : int64 array
        ``features[i]`` has the weights ``pointers[i]:pointers[i + 1]``.
    siblings : uint8 array
        The sibling of each weight.
    weights : float32 array
    intercepts : float32 array
        One per sibling.
    """

    features: Array
    pointers: Array
    siblings: Array
    weights: Array
    intercepts: Array


_NOTHING = np.zeros(0, np.float32)
NO_BLOCK = TrainedBlock(_NOTHING.astype(np.int32), np.zeros(1, np.int64), _NOTHING.astype(np.uint8), _NOTHING, _NOTHING)


@dataclass(frozen=True)
class TreeWeights:
    """A hierarchy and the classifiers of its edges.

    Parameters
    ----------
    hierarchy : LabelHierarchy
    n_features : int
    intercepts, scales : float32 arrays of n_edges
        The intercept and the scale of each child; the scale multiplies the stored weights.
    first_bucket, first_row, first_low, first_weight : int64 arrays of n_blocks + 1
        Start of each block in the arrays below.
    shifts : uint8 array of n_blocks
        The bucket of a feature is its number shifted right by this, which is at least 6. Blocks with the flag 0x80 are
        dense: each feature has a weight for every child.
    masks : uint64 array
        The 64 equal parts of each bucket that have features with weights: one bit for each, the lowest first.
    bucket_rows, bucket_weights : uint32 arrays
        Start of the features and weights of each bucket, relative to the block.
    counts : uint8 array
        The number of weights of each feature that has any, minus one.
    lows : uint16 array
        The low bits of these features; only of blocks with a shift above 6, where a part of a bucket has several.
    slots, weights : uint8 and int16 or float32 arrays
        The child (within its block) and the value of each weight.
    """

    hierarchy: LabelHierarchy
    n_features: int
    intercepts: Array
    scales: Array
    first_bucket: Array
    first_row: Array
    first_low: Array
    first_weight: Array
    shifts: Array
    masks: Array
    bucket_rows: Array
    bucket_weights: Array
    lows: Array
    counts: Array
    slots: Array
    weights: Array

    @classmethod
    def pack(
        cls, hierarchy: LabelHierarchy, n_features: int, blocks: Iterable[TrainedBlock], precision: int = 16
    ) -> TreeWeights:
        """Pack trained blocks, in the order of nodes, with `precision` bits for each weight.

        16 bits store multiples of a step, which is 1/32767 of the largest weight of the child.
        """
        packed = [pack_block(block, n_features, precision) for block in blocks]
        joined = (
            {name: np.concatenate([each[name] for each in packed]) for name in (*PACKED, "sizes")} if packed else {}
        )
        return cls.joined(hierarchy, n_features, joined, precision)

    @classmethod
    def joined(
        cls, hierarchy: LabelHierarchy, n_features: int, arrays: Mapping[str, Array], precision: int
    ) -> TreeWeights:
        """From the arrays of packed blocks, one after another in the order of nodes; none if there are no blocks."""
        if not arrays:
            arrays = {name: array[:0] for name, array in pack_block(NO_BLOCK, n_features, precision).items()}
        ends = np.concatenate([np.zeros((1, 4), np.int64), np.cumsum(arrays["sizes"].reshape(-1, 4), axis=0)])
        sizes = {name: np.ascontiguousarray(ends[:, place]) for place, name in enumerate(_FIRSTS)}
        columns = {name: arrays[name] for name in PACKED}
        return cls(hierarchy=hierarchy, n_features=n_features, **columns, **sizes)

    @property
    def n_weights(self) -> int:
        return len(self.weights)

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self._arrays().values())

    @cached_property
    def blocks_before(self) -> Array:
        """The first block of each node, and the number of blocks."""
        children = np.diff(self.hierarchy.pointers)
        return np.concatenate([[0], np.cumsum(-(-children // BLOCK_CHILDREN))]).astype(np.int64)

    def for_search(self) -> dict[str, Array]:
        """The arrays that the search kernel takes."""
        return {
            "pointers": self.hierarchy.pointers,
            "children": self.hierarchy.children,
            "first_block": self.blocks_before,
            **{name: array for name, array in self._arrays().items() if name not in ("pointers", "children")},
        }

    def packed_block(self, number: int) -> dict[str, Array]:
        """The arrays of one block, as `pack_block` makes them."""
        node = int(np.searchsorted(self.blocks_before, number, side="right")) - 1
        first = int(self.hierarchy.pointers[node]) + (number - int(self.blocks_before[node])) * BLOCK_CHILDREN
        edges = slice(first, min(first + BLOCK_CHILDREN, int(self.hierarchy.pointers[node + 1])))
        ends = [(int(getattr(self, name)[number]), int(getattr(self, name)[number + 1])) for name in _FIRSTS]
        buckets, rows, lows, weights = (slice(*each) for each in ends)
        places = {"masks": buckets, "bucket_rows": buckets, "bucket_weights": buckets, "lows": lows, "counts": rows}
        places |= {"slots": weights, "weights": weights, "intercepts": edges, "scales": edges}
        arrays = {name: getattr(self, name)[place] for name, place in places.items()}
        sizes = np.array([stop - start for start, stop in ends], dtype=np.int64)
        return {"sizes": sizes, "shifts": self.shifts[number : number + 1], **arrays}

    def entries_of(self, edges: Array) -> tuple[Array, Array, Array]:
        """Of some ascending edges of one node: the feature, the place among the edges and the value of each weight.

        Weights that are not finite, which only a damaged file has, are left out.
        """
        if not len(edges):
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
        node = int(np.searchsorted(self.hierarchy.pointers, edges[0], side="right")) - 1
        slots = edges - self.hierarchy.pointers[node]
        arrays, parts = self._arrays(), []
        for block in np.unique(slots // BLOCK_CHILDREN).tolist():
            features, owners, weights = block_entries(arrays, int(self.blocks_before[node]) + block, self.n_features)
            places = np.full(BLOCK_CHILDREN, -1, dtype=np.int64)
            mine = np.flatnonzero(slots // BLOCK_CHILDREN == block)
            places[slots[mine] % BLOCK_CHILDREN] = mine
            wanted = np.flatnonzero((places[owners] >= 0) & (weights != 0) & np.isfinite(weights))
            found = places[owners[wanted]]
            values = weights[wanted].astype(np.float32) * self.scales[edges[found]]
            parts.append((features[wanted].astype(np.int64), found, values))
        features, found, values = (np.concatenate([part[i] for part in parts]) for i in range(3))
        return features, found, values

    def edge_weights(self, node: int, slot: int) -> tuple[Array, Array]:
        """Ascending features and their non-zero weights, of one child of a node.

        Weights that are not finite, which only a damaged file has, are left out.
        """
        block = int(self.blocks_before[node]) + slot // BLOCK_CHILDREN
        edge = int(self.hierarchy.pointers[node]) + slot
        features, slots, weights = block_entries(self._arrays(), block, self.n_features)
        mine = np.flatnonzero((slots == slot % BLOCK_CHILDREN) & (weights != 0) & np.isfinite(weights))
        return features[mine], weights[mine].astype(np.float64) * self.scales[edge]

    def steps(self, number: int, row: Any, label: int, logistic: bool, path_weight: float) -> list[Step]:
        """The classifiers on the path to a label, for one row; `number` is that of the tree, counted from 1."""
        hierarchy = self.hierarchy
        if hierarchy.parents()[1][label] < 0:
            return []
        path = hierarchy.path(label)
        steps = []
        for node, child in zip(path, [*path[1:], ~label], strict=True):
            first = int(hierarchy.pointers[node])
            slot = int(np.flatnonzero(hierarchy.children[first : int(hierarchy.pointers[node + 1])] == child)[0])
            features, weights = self.edge_weights(node, slot)
            shared, mine, theirs = np.intersect1d(row.indices, features, return_indices=True)
            contributions = row.data[mine].astype(np.float64) * weights[theirs]
            order = np.argsort(-np.abs(contributions), kind="stable")
            intercept = float(self.intercepts[first + slot])
            margin = float(contributions.sum() + intercept)
            weight = 1.0 if child < 0 else path_weight
            steps.append(
                Step(
                    tree=number,
                    node=node,
                    probability=float(np.exp(weight * log_probability(np.array(margin), logistic))),
                    margin=margin,
                    features=shared[order],
                    contributions=contributions[order],
                    intercept=intercept,
                )
            )
        return steps

    def _arrays(self) -> dict[str, Array]:
        names = ["intercepts", "scales", *_FIRSTS, *_TYPES, "weights"]
        own = {name: getattr(self, name) for name in names}
        return {"pointers": self.hierarchy.pointers, "children": self.hierarchy.children, **own}

    def to_state(self) -> State:
        names = self.hierarchy.node_names
        return State(
            "TreeWeights",
            facts={"n_features": self.n_features, "n_labels": self.hierarchy.n_labels},
            arrays={**self._arrays(), **({} if names is None else {"node_names": tuple(names)})},
        )

    @classmethod
    def from_state(cls, state: State) -> TreeWeights:
        """Build it again, or raise `ModelFormatError`.

        Only arrays proportional to nodes and labels are checked: the search stays within the large arrays, whatever
        they hold.
        """
        n_features = state.size("n_features", least=1)
        # Copied, because the search trusts them: the file may change later.
        pointers = state.array("pointers", np.int64, (None,)).copy()
        children = state.array("children", np.int64, (None,)).copy()
        names = state.strings("node_names") if "node_names" in state.arrays else None
        hierarchy = LabelHierarchy.loaded(pointers, children, state.size("n_labels"), names)
        edges = len(children)
        n_blocks = int((-(-np.diff(pointers) // BLOCK_CHILDREN)).sum())
        arrays = {name: state.array(name, dtype, (None,)) for name, dtype in _TYPES.items()}
        arrays["intercepts"] = state.array("intercepts", np.float32, (edges,))
        arrays["scales"] = state.array("scales", np.float32, (edges,))
        stored = state.arrays.get("weights")
        short = isinstance(stored, np.ndarray) and stored.dtype == np.int16
        arrays["weights"] = state.array("weights", np.int16 if short else np.float32, arrays["slots"].shape)
        for first, of in zip(_FIRSTS, ("masks", "counts", "lows", "slots"), strict=True):
            arrays[first] = bounds = state.array(first, np.int64, (n_blocks + 1,))
            if bounds[0] != 0 or bounds[-1] != len(arrays[of]) or (bounds[1:] < bounds[:-1]).any():
                raise ModelFormatError(f"{state.kind}: {first!r} does not divide the {len(arrays[of])} {of}")
        for name in ("bucket_rows", "bucket_weights"):
            if len(arrays[name]) != len(arrays["masks"]):
                raise ModelFormatError(f"{state.kind}: {name!r} and 'masks' differ in length")
        if len(arrays["shifts"]) != n_blocks:
            raise ModelFormatError(f"{state.kind}: {len(arrays['shifts'])} shifts for {n_blocks} blocks")
        if not (np.isfinite(arrays["intercepts"]).all() and np.isfinite(arrays["scales"]).all()):
            raise ModelFormatError(f"{state.kind}: intercepts and scales must be finite")
        return cls(hierarchy=hierarchy, n_features=n_features, **arrays)


def _filled(block: TrainedBlock) -> TrainedBlock:
    """The same block with a weight for every child of every feature."""
    n_rows, n_children = len(block.features), len(block.intercepts)
    weights = np.zeros((n_rows, n_children), dtype=np.float32)
    weights[np.repeat(np.arange(n_rows), np.diff(block.pointers)), block.siblings] = block.weights
    siblings = np.tile(np.arange(n_children, dtype=np.uint8), n_rows)
    return block._replace(
        pointers=np.arange(n_rows + 1, dtype=np.int64) * n_children, siblings=siblings, weights=weights.ravel()
    )


def pack_block(block: TrainedBlock, n_features: int, precision: int) -> dict[str, Array]:
    """The arrays of one block, and the lengths of its parts."""
    n_rows, n_children = len(block.features), len(block.intercepts)
    dense = n_rows > 0 and len(block.weights) >= _DENSE_SHARE * n_rows * n_children
    if dense:
        block = _filled(block)
    if len(block.weights) >= 2**32:
        raise InvalidInput(f"{n_children} children have {len(block.weights):,} weights; keep fewer (prune)")
    # As few buckets as the mask allows if these have enough features.
    shift, per_feature = _EXACT_SHIFT, n_features / max(1, n_rows)
    if _FEWEST_EXACT * per_feature > 1 << shift:
        shift = min(_LARGEST_SHIFT, int(np.ceil(np.log2(_FEWEST_OTHERS * per_feature))))
    buckets = np.arange(((n_features - 1) >> shift) + 1 if n_rows else 0)
    rows = np.searchsorted(block.features >> shift, buckets)
    parts = block.features >> (shift - _EXACT_SHIFT)
    masks = np.zeros(len(buckets), dtype=np.uint64)
    used, starts = np.unique(parts >> 6, return_index=True)
    masks[used] = np.bitwise_or.reduceat(np.uint64(1) << (parts & 63).astype(np.uint64), starts) if n_rows else 0
    lows = block.features if shift > _EXACT_SHIFT else block.features[:0]
    weights, scales = block.weights, np.ones(len(block.intercepts), dtype=np.float32)
    if precision == 16:
        largest = np.zeros(len(block.intercepts), dtype=np.float32)
        np.maximum.at(largest, block.siblings, np.abs(weights))
        # Weights so small that the step would lose digits become 0.
        scales = np.where(largest > 1e-30, largest / np.float32(32767), np.float32(1)).astype(np.float32)
        weights = np.rint(weights / scales[block.siblings]).astype(np.int16)
    return {
        "sizes": np.array([len(rows), n_rows, len(lows), len(weights)], dtype=np.int64),
        "intercepts": block.intercepts,
        "scales": scales,
        "shifts": np.array([shift | (DENSE if dense else 0)], dtype=np.uint8),
        "masks": masks,
        "bucket_rows": rows.astype(np.uint32),
        "bucket_weights": block.pointers[rows].astype(np.uint32),
        "lows": (lows & ((1 << shift) - 1)).astype(np.uint16),
        "counts": (np.diff(block.pointers) - 1).astype(np.uint8),
        "slots": block.siblings,
        "weights": weights,
    }
