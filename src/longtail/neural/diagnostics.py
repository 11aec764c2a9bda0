"""`diagnose`: which digit of a label's code goes wrong, for which labels, and what a cascade loses on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.estimator import ConfusedGroups, HeadDiagnostics, HeadScores, LabelGroup, Survival
from longtail.neural.batches import as_rows, blocks
from longtail.neural.heads.decisions import no_heads
from longtail.neural.heads.head import SCORES_AT_ONCE, Head
from longtail.neural.network import Network
from longtail.neural.targets import LabelRows, as_label_rows
from longtail.pictures import HeatMap, Picture
from longtail.progress import task

SURVIVORS = (1, 2, 5, 10, 20, 50, 100)
_ALL_NAMED, _NAMED = 5, 3  # all labels of a small group are named, and the most frequent ones of a larger group
_BUFFERED = 2**20  # keys that are counted at a time
_BITS = 31  # of a value; two of them fit into a key


class HeadTally:
    """Judges the digits or chunks of a head batch by batch, with bounded memory.

    A row counts for a digit if the value that the digit prefers belongs to one of the row's labels. Together, the
    preferred values must be the beginning of the code of one label of the row. A later stage of a cascade is judged
    below the best group of the row's own labels, and a chunk given the right subsets of the chunks before it.

    Parameters
    ----------
    head : Head
    label_names : sequence of str or None
        Names of labels by id; None names labels by their ids.
    labels : int array of head.n_labels or None
        The id of each label of the head; None: the same.
    survivors : sequence of int
        For a cascade: numbers of groups to keep. Larger ones than there are groups are left out.

    Examples
    --------
    >>> from longtail.neural import heads
    >>> _ = torch.manual_seed(0)
    >>> tally = HeadTally(heads.Product(8, 6, radices=(3, 2)))
    >>> for _ in range(4):
    ...     tally.add(torch.randn(5, 8), [[0, 5], [1], [2], [3], []])
    >>> found = tally.result()
    >>> found.n_rows, [head.length for head in found.heads]
    (16, [3, 2])
    """

    def __init__(
        self,
        head: Head,
        *,
        label_names: Sequence[str] | None = None,
        labels: Array | None = None,
        survivors: Sequence[int] = SURVIVORS,
    ) -> None:
        self.head = head
        self._names = label_names
        self._labels = labels
        lengths = head.lengths
        if not lengths:
            raise no_heads(type(head).__name__)
        if label_names is not None and labels is None and len(label_names) != head.n_labels:
            raise InvalidInput(f"label_names has {len(label_names)} names; the head has {head.n_labels} labels")
        self._sizes = _sizes(survivors, head.survivors, lengths[0]) if head.survivors and len(lengths) > 1 else ()
        self._n_rows = self._n_given = self._n_pairs = self._n_predicted = 0
        self._right = np.zeros(len(lengths), dtype=np.int64)
        self._together = np.zeros(len(lengths), dtype=np.int64)
        self._survived = np.zeros((max(0, len(lengths) - 1), len(self._sizes)), dtype=np.int64)
        self._rows_of_label = np.zeros(head.n_labels, dtype=np.int64)
        self._values = [_Counts() for _ in lengths]
        self._confused = [_Counts() for _ in lengths]

    def add(self, features: Tensor, targets: Any) -> None:
        """Judge the rows of a batch; arguments as for `Head.forward`."""
        wanted, kept = as_label_rows(targets, tuple(features.shape[:-1]), self.head.n_labels, self.head.ignore_index)
        features = features.reshape(-1, features.shape[-1])
        self._add(features if kept is None else features[kept.to(features.device)], wanted.to(features.device))

    def _add(self, features: Tensor, targets: LabelRows) -> None:
        found = self.head.decisions(features, targets)
        preferred = found.preferred.cpu().numpy()
        counted = np.zeros(len(preferred), dtype=bool)
        for number, (rows, values) in enumerate((a.cpu().numpy(), b.cpu().numpy()) for a, b in found.true):
            right = np.zeros(len(preferred), dtype=bool)
            right[rows[values == preferred[rows, number]]] = True
            counted[rows] = True
            self._right[number] += np.count_nonzero(right)
            self._values[number].add(values)
            missed = ~right[rows]
            self._confused[number].add(values[missed] << _BITS | preferred[rows[missed], number])
        together, predicted = found.together.cpu().numpy(), found.predicted.cpu().numpy()
        self._together += together[counted].sum(axis=0)
        self._n_predicted += int(np.count_nonzero(predicted[counted]))
        self._n_rows += int(np.count_nonzero(counted))
        self._n_given += len(preferred)
        labels = targets.labels.cpu().numpy()
        self._n_pairs += len(labels)
        self._rows_of_label += np.bincount(labels, minlength=self.head.n_labels)
        if self._sizes:
            self._survived += self.head.count_survivors(features, targets, self._sizes).cpu().numpy()

    def result(self, most: int = 10) -> HeadDiagnostics:
        """The diagnostics of all rows so far.

        Parameters
        ----------
        most : int
            Maximum number of confused groups of each head.
        """
        if not self._n_rows:
            raise InvalidInput(
                "no row has a label that the network knows; its heads cannot be judged", code="no_labels"
            )
        alone, together = (self._right / self._n_rows).tolist(), (self._together / self._n_rows).tolist()
        heads = [
            HeadScores(length, alone[number], together[number], self._worst(number, most))
            for number, length in enumerate(self.head.lengths)
        ]
        return HeadDiagnostics(
            n_rows=self._n_rows,
            n_rows_left_out=self._n_given - self._n_rows,
            n_labels_left_out=0,
            heads=tuple(heads),
            predicted=self._n_predicted / self._n_rows,
            survival=self._survival(),
        )

    def _survival(self) -> Survival | None:
        if not self._sizes:
            return None
        shares = (self._survived / self._n_pairs).tolist()
        return Survival(self._sizes, tuple(map(tuple, shares)), self.head.survivors)

    def _worst(self, number: int, most: int) -> tuple[ConfusedGroups, ...]:
        keys, counts = self._confused[number].all()
        first = np.argsort(-counts, kind="stable")[:most]
        missed, preferred = keys[first] >> _BITS, keys[first] & ((1 << _BITS) - 1)
        values, rows = self._values[number].all()
        shares = counts[first] / rows[np.searchsorted(values, missed)] if len(first) else np.zeros(0)
        found = zip(missed.tolist(), preferred.tolist(), counts[first].tolist(), shares.tolist(), strict=True)
        return tuple(
            ConfusedGroups(self._group(number, one), self._group(number, other), count, share)
            for one, other, count, share in found
        )

    def _group(self, number: int, value: int) -> LabelGroup:
        members = self.head.labels_of(number, value).cpu().numpy()
        frequent = members[np.lexsort((members, -self._rows_of_label[members]))]
        named = frequent if len(members) <= _ALL_NAMED else frequent[:_NAMED]
        labels = (named if self._labels is None else self._labels[named]).tolist()
        names = tuple(str(label if self._names is None else self._names[label]) for label in labels)
        return LabelGroup(tuple(labels), names, len(members))


def diagnose(
    network: Network,
    inputs: Any,
    targets: Any,
    *,
    label_names: Sequence[str] | None = None,
    survivors: Sequence[int] = SURVIVORS,
    most: int = 10,
    batch_size: int = 512,
) -> HeadDiagnostics:
    """Judge each digit or chunk of a network's head, batch by batch, without dropout and gradients.

    For a head on features that you have computed already, pass ``Network(torch.nn.Identity(), head)``. In a loop of
    your own, use `HeadTally`.

    Parameters
    ----------
    network : Network
    inputs : Rows, sparse matrix or array
    targets
        As for `Head.forward`: class indices, lists of label ids, a 0/1 matrix, or `LabelRows`.
    label_names, survivors
        As for `HeadTally`.
    most : int
        Maximum number of confused groups of each head.
    batch_size : int

    Examples
    --------
    >>> from longtail.neural import Network, heads
    >>> _ = torch.manual_seed(0)
    >>> network = Network(torch.nn.Linear(4, 8), heads.Cascade(8, 6, radices=(3, 2), width=4))
    >>> found = diagnose(network, np.eye(4), [[0], [1, 5], [], [3]])
    >>> found.n_rows, found.n_rows_left_out, found.survival.sizes
    (3, 1, (1, 2, 3))
    """
    tally = HeadTally(network.head, label_names=label_names, survivors=survivors)
    tally_rows(tally, network, inputs, targets, batch_size)
    return tally.result(most)


def tally_rows(tally: HeadTally, network: Network, inputs: Any, targets: Any, batch_size: int = 512) -> None:
    """Add many rows to a tally, batch by batch; arguments as for `diagnose`."""
    source, head = as_rows(inputs), network.head
    wanted, kept = as_label_rows(targets, (len(source),), head.n_labels, head.ignore_index)
    rows = np.arange(len(source)) if kept is None else np.flatnonzero(kept.numpy())
    wanted = wanted.to("cpu")
    size = min(batch_size, max(1, SCORES_AT_ONCE // max(1, head.batch_values(1))))
    training = network.training
    network.eval()
    done = 0
    try:
        with torch.inference_mode(), task("judging the heads", total=len(rows)) as advance:
            for block in blocks(rows, size):
                offsets = wanted.offsets[done : done + len(block) + 1]
                labels = wanted.labels[int(offsets[0]) : int(offsets[-1])]
                batch = LabelRows(labels, offsets - offsets[0], head.n_labels, checked=True)
                tally.add(network.encoder(source.batch(block)), batch)
                done += len(block)
                advance(len(block))
    finally:
        network.train(training)


def assignment_picture(
    shares: Any,
    label_names: Sequence[str] | None = None,
    instance_names: Sequence[str] | None = None,
    *,
    labels: Sequence[int] | None = None,
    most_labels: int = 12,
    most_instances: int = 40,
    file_name: str = "assignments.png",
) -> Picture:
    """The soft assignments of one bag as a heat map of instances and labels, for `longtail.pictures.draw`.

    Parameters
    ----------
    shares : float array of shape (n_instances, n_labels)
        One of the arrays that `DeepMIML.soft_assignments` returns.
    label_names, instance_names : sequence of str or None
        None numbers them.
    labels : sequence of int or None
        The labels to show, such as those of the bag; None shows those that differ most between instances.
    most_labels, most_instances : int
        Maximum numbers of labels and instances in the picture; the first instances are shown.
    file_name : str

    Examples
    --------
    >>> picture = assignment_picture([[1.8, 1.0, 0.2], [0.2, 1.0, 1.8]], ["red", "green", "blue"], most_labels=2)
    >>> picture.panels[0][0].x_names
    ('red', 'blue')
    """
    found = np.asarray(shares, dtype=np.float64)
    if found.ndim != 2 or not found.size:
        raise InvalidInput(f"shares has shape {found.shape}; expected the instances and labels of one bag")
    chosen = np.sort(np.argsort(found.min(0) - found.max(0), kind="stable")[:most_labels])
    if labels is not None:
        chosen = np.asarray(labels, dtype=np.int64)[:most_labels]
    if ((chosen < 0) | (chosen >= found.shape[1])).any():
        raise InvalidInput(f"labels has ids that are not 0 to {found.shape[1] - 1}")
    shown = found[:most_instances][:, chosen]
    title = "Soft assignments, 1 on average"
    if len(found) > len(shown):
        title += f"; {len(shown):,} of {len(found):,} instances"
    names = [str(label if label_names is None else label_names[label]) for label in chosen.tolist()]
    rows = [str(row if instance_names is None else instance_names[row]) for row in range(len(shown))]
    panel = HeatMap(title, "label", "instance", shown.tolist(), tuple(names), tuple(rows))
    return Picture(file_name, "How strongly each instance of a bag is assigned to each label", [[panel]])


def _sizes(wanted: Sequence[int], in_use: int, n_groups: int) -> tuple[int, ...]:
    """The numbers of groups to try, ascending, with the one in use."""
    if any(size < 1 for size in wanted):
        raise InvalidInput(f"survivors is {list(wanted)}; expected numbers from 1")
    return tuple(sorted({min(in_use, n_groups), *(size for size in wanted if size <= n_groups)}))


class _Counts:
    """How often each key occurs; the memory grows with the number of different keys only."""

    def __init__(self) -> None:
        self._keys = self._counts = np.zeros(0, dtype=np.int64)
        self._new: list[Array] = []
        self._n_new = 0

    def add(self, keys: Array) -> None:
        self._new.append(keys)
        self._n_new += len(keys)
        if self._n_new > max(_BUFFERED, len(self._keys)):
            self._merge()

    def _merge(self) -> None:
        keys, counts = np.unique(np.concatenate([np.zeros(0, np.int64), *self._new]), return_counts=True)
        self._keys, places = np.unique(np.concatenate([self._keys, keys]), return_inverse=True)
        sums = np.zeros(len(self._keys), dtype=np.int64)
        np.add.at(sums, places, np.concatenate([self._counts, counts]))
        self._counts, self._new, self._n_new = sums, [], 0

    def all(self) -> tuple[Array, Array]:
        """The keys, ascending, and their counts."""
        self._merge()
        return self._keys, self._counts
