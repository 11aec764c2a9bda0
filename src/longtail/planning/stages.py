"""The stages of a training: for each its work, its longest task, and what it reads, writes and holds.

A stage divides its work into tasks as the training does. The units of work are counted here; `Costs` says what they
take. `Workload` says how many rows each node has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from longtail.arrays import Array
from longtail.labels import BLOCK_ENTRIES, COST_OF_A_LABEL, LARGE, SMALL
from longtail.native import block_widths
from longtail.planning.costs import Costs
from longtail.planning.workload import Level, Workload
from longtail.trees import WORK_OF_A_PIECE, training_bytes

_TERMS = 100  # entries of a label vector
_BISECTED_STEPS = 4  # after this many, there are nodes enough for all workers
_PROJECTED = 2**18  # labels
_SEARCHED = 2**10  # rows
_LANES = 256  # classifiers of a block
_ENTRY = 8  # bytes of a value and its column
_FINDING = 2**16  # bytes that are read to find a range of labels among sorted ones
_CACHED = 2**20  # bytes
_ARRAYS = 12  # of a tree, each joined by one task
_LARGEST_ARRAY = 0.6  # share of the bytes: the weights, with 16 bits each


@dataclass(frozen=True)
class Stage:
    """A part of the training.

    Parameters
    ----------
    name : str
    tasks : int
        Number of tasks; they can be done at the same time.
    cpu_seconds : float
        Processor time of all tasks.
    longest_seconds : float
        Processor time of the longest task.
    task_bytes : int
        Memory of the largest task.
    read_bytes, written_bytes : int
        What all tasks read from files and write to files.
    by_client : bool
        Whether the client does the work alone.
    """

    name: str
    tasks: int
    cpu_seconds: float
    longest_seconds: float
    task_bytes: int
    read_bytes: int
    written_bytes: int
    by_client: bool = False


def stages_of(load: Workload, costs: Costs) -> tuple[Stage, ...]:
    """The stages of preparing and training, in order."""
    found = [_preparing(load, costs), _rows_of_labels(load, costs)]
    if load.learner == "tree":
        found += [_label_vectors(load, costs), _clustering(load, costs)]
    found += [_training(load, costs), _joining(load, costs)]
    if load.uses_beam:
        found += [_searching(load, costs), _training_again(load, costs), _joining(load, costs)]
    return tuple(found)


def _preparing(load: Workload, costs: Costs) -> Stage:
    entries = load.rows * (load.per_row + load.labels_per_row)
    seconds, size = costs.prepare * entries, prepared_bytes(load)
    batch = min(load.rows, 2**16) * (load.per_row + load.labels_per_row) * 4 * _ENTRY
    return Stage("preparing", 1, seconds, seconds, int(batch), size, 2 * size, by_client=True)


def prepared_bytes(load: Workload) -> int:
    """The size of the features and labels of a prepared corpus; columns take 8 bytes above 2^31 entries."""
    entries = [load.rows * load.per_row, load.rows * load.labels_per_row]
    return int(sum((_ENTRY if each < 2**31 else 12) * each + 8 * load.rows for each in entries))


def _pairs(load: Workload) -> float:
    return load.frequencies.total(load.frequencies.counts)


def _rows_of_labels(load: Workload, costs: Costs) -> Stage:
    """Blocks of rows are sorted by label, and ranges of labels find their part of each block."""
    pairs, labels = _pairs(load), load.frequencies.total()
    blocks, ranges = math.ceil(pairs / (2 * BLOCK_ENTRIES)), _pieces_of_labels(load)
    sorted_at_once, largest = min(pairs, 2 * BLOCK_ENTRIES), max(pairs / ranges, float(load.frequencies.counts[0]))
    seconds, longest = costs.sort * pairs, costs.sort * max(sorted_at_once, largest)
    read = 12 * pairs + 8 * load.rows + blocks * ranges * _FINDING
    memory, written = max(16 * sorted_at_once, 20 * largest), 12 * pairs + 8 * labels
    return Stage(
        "rows of labels", blocks + ranges, seconds, min(seconds, longest), int(memory), int(read), int(written)
    )


def _pieces_of_labels(load: Workload) -> int:
    return math.ceil((_pairs(load) + COST_OF_A_LABEL * load.frequencies.total()) / BLOCK_ENTRIES)


def vector_entries(load: Workload) -> float:
    """The number of entries of all label vectors."""
    features = load.distinct_features(load.frequencies.counts * load.per_row)
    return load.frequencies.total(np.minimum(features, _TERMS))


def _label_vectors(load: Workload, costs: Costs) -> Stage:
    pairs, entries = _pairs(load), vector_entries(load)
    tasks = _pieces_of_labels(load)
    seconds = costs.add * pairs * load.per_row
    # The rows of a label are added up by one task, however many they are.
    longest = costs.add * load.per_row * max(pairs / tasks, float(load.frequencies.counts[0]))
    matrix = load.rows * load.per_row * _ENTRY
    read = min(pairs * load.per_row * _ENTRY, tasks * matrix) + 4 * pairs
    memory = 32 * max(pairs / tasks, float(load.frequencies.counts[0])) + 4 * _ENTRY * entries / tasks
    written = _ENTRY * (entries + load.frequencies.total())
    return Stage("label vectors", tasks, seconds, min(seconds, longest), int(memory), int(read), int(written))


def bisections(load: Workload) -> float:
    """The number of bisections that a label takes part in."""
    return max(1.0, math.log2(math.prod(load.widths[:-1])))


def _clustering(load: Workload, costs: Costs) -> Stage:
    entries, labels = vector_entries(load), load.frequencies.total()
    if len(load.widths) == 1:
        return Stage("clustering labels", 0, 0.0, 0.0, 0, 0, 0)
    seconds = costs.cluster * entries * bisections(load)
    large = max(0, math.ceil(math.log2(entries / LARGE)))
    # The nodes of the upper steps are bisected one by one, and each step waits for the one before.
    upper = max(large, min(_BISECTED_STEPS, max(0, math.ceil(math.log2(entries / SMALL)))))
    alone = [min(entries / 2**step, LARGE) for step in range(upper)]
    longest = costs.cluster * (sum(alone) + min(2 * LARGE, entries * (bisections(load) - upper) / 2**upper))
    tasks = math.ceil(large * labels / _PROJECTED) + 2**upper + math.ceil(entries * bisections(load) / (2 * LARGE))
    memory = 32 * (min(entries, LARGE) + load.features)
    read, written = _ENTRY * entries * (upper + 1), 16 * labels * (upper + 1)
    return Stage("clustering labels", tasks, seconds, min(seconds, longest), int(memory), int(read), int(written))


def lanes_of(siblings: int) -> tuple[int, int]:
    """The number of blocks of this many siblings, and of the weights of a feature in all of them."""
    full, rest = divmod(siblings, _LANES)
    return full + (rest > 0), full * _LANES + sum(block_widths(rest))


def training_units(load: Workload, level: Level) -> tuple[Array, Array]:
    """For each node: features of rows, times siblings and doublings of the weights; and rows, times siblings."""
    _, lanes = lanes_of(level.children)
    weights = 4 * min(64, lanes) * load.distinct_features(level.rows * load.per_row)
    return level.rows * load.per_row * lanes * doublings(weights), level.rows * lanes


def doublings(size: Array | float) -> Array:
    """How often a size doubles beyond what the cache holds; at least 1."""
    return np.maximum(1, np.log2(1 + np.asarray(size) / _CACHED))


def classifier_features(load: Workload) -> float:
    """The number of different features of the rows of a classifier, over all classifiers."""
    below = [load.distinct_features(level.rows * load.per_row).sum() for level in load.levels[1:]]
    labels = load.frequencies.total(load.distinct_features(load.frequencies.counts * load.per_row))
    return float(sum(below) + labels)


def model_bytes(load: Workload, costs: Costs) -> int:
    return int(costs.model * classifier_features(load))


def _training(load: Workload, costs: Costs) -> Stage:
    seconds = longest = memory = read = 0.0
    work = []
    for level in load.levels:
        blocks, lanes = lanes_of(level.children)
        features, rows = training_units(load, level)
        own = costs.train * features + costs.train_row * rows
        seconds += float(own.sum())
        longest = max(longest, float(own.max()) / blocks)
        values = level.rows * load.per_row
        lanes_of_block = np.array(min(lanes, _LANES))
        needed = training_bytes(level.rows, values, level.pairs, lanes_of_block, load.rows, load.features)
        memory = max(memory, float(needed.max()))
        read += float((values * _ENTRY + 4 * level.pairs).sum()) * blocks
        work.append((1 + level.rows) * lanes)
    total = sum(float(each.sum()) for each in work)
    # Small blocks share a task.
    longest = max(longest, min(seconds, seconds * WORK_OF_A_PIECE / total))
    tasks = min(_n_blocks(load), math.ceil(total / WORK_OF_A_PIECE))
    size = model_bytes(load, costs) + duals_bytes(load)
    return Stage("training classifiers", tasks, seconds, longest, int(memory), int(read), size)


def _n_blocks(load: Workload) -> int:
    return sum(len(level.rows) * lanes_of(level.children)[0] for level in load.levels)


def duals_bytes(load: Workload) -> int:
    """The dual variables that the second training continues from."""
    if not load.uses_beam:
        return 0
    return int(sum(4 * lanes_of(level.children)[1] * float(level.rows.sum()) for level in load.levels))


def searching_units(load: Workload, levels: int, model: int) -> float:
    """Features of a row, times nodes whose classifiers score it on some levels, times doublings of the model."""
    nodes = sum(min(load.beam, len(level.rows)) for level in load.levels[:levels])
    return load.per_row * nodes * float(doublings(model))


def _searching(load: Workload, costs: Costs) -> Stage:
    tasks = math.ceil(load.rows / _SEARCHED)
    depth = len(load.levels) - 1
    seconds = costs.search * load.rows * searching_units(load, depth, model_bytes(load, costs))
    visits = load.rows * load.beam * depth
    model = model_bytes(load, costs)
    read = load.rows * load.per_row * _ENTRY + tasks * min(model, _SEARCHED * load.beam * depth * load.per_row * 128)
    memory = 64 * _SEARCHED * load.beam * depth
    return Stage("searching for negatives", tasks, seconds, seconds / tasks, memory, int(read), 16 * visits + model)


def _training_again(load: Workload, costs: Costs) -> Stage:
    first, duals = _training(load, costs), duals_bytes(load)
    largest = max(4 * lanes_of(level.children)[1] * float(level.rows.max()) for level in load.levels)
    return Stage(
        "training classifiers again",
        first.tasks,
        costs.again * first.cpu_seconds,
        costs.again * first.longest_seconds,
        first.task_bytes + int(largest),
        first.read_bytes + duals,
        model_bytes(load, costs),
    )


def _joining(load: Workload, costs: Costs) -> Stage:
    size = model_bytes(load, costs)
    seconds = costs.join * size
    return Stage("joining", _ARRAYS, seconds, _LARGEST_ARRAY * seconds, 0, size, size)


def predicting_seconds(load: Workload, costs: Costs) -> float:
    """Processor time to predict a row."""
    if load.learner == "one-vs-rest":
        return costs.score * load.per_row * load.widths[0]
    return costs.search * searching_units(load, len(load.levels), model_bytes(load, costs))
