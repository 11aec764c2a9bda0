"""`BoostedTrees`: gradient-boosted trees that score (row, candidate label) pairs, as plain arrays.

scikit-learn grows the trees. A kernel of ours evaluates them, so a saved model depends on no version of scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError, Unavailable
from longtail.native import kernels
from longtail.parallel import map_blocks, split
from longtail.parameters import Number
from longtail.ranking.paths import Paths
from longtail.store import State

MOST_TREES = 1000
MOST_LEAVES = 32  # the kernel marks the leaves of a tree in 32 bits
MOST_FEATURES = 256  # explaining a pair takes memory for each feature of each leaf
_MOST_COUNT = 2**32
_BLOCK = 4096

_PARAMETERS = {
    "rounds": Number(low=1, high=MOST_TREES, whole=True),
    "leaves": Number(low=2, high=MOST_LEAVES, whole=True),
    "learning_rate": Number(above=0),
    "min_pairs": Number(low=1, whole=True),
    "l2": Number(low=0),
}


@dataclass(frozen=True)
class BoostedTrees:
    """Trees whose leaf values add up to the log-odds that a pair is a hit.

    The nodes of a tree are stored in preorder: a node, its left subtree, its right subtree. Which nodes are leaves thus
    tells where children are and where the next tree starts.

    Parameters
    ----------
    n_features : int
    baseline : float
        The score before the first tree.
    features : int16 array of n_nodes
        The feature of each split; -1 for a leaf.
    thresholds : float32 array of n_splits
        Values up to the threshold go to the left.
    values : float64 array of n_leaves
    counts : int64 array of n_leaves
        Training pairs in each leaf.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.linspace(0, 1, 400, dtype=np.float32)[:, None]
    >>> ranker = BoostedTrees.fit(scores, scores[:, 0] > 0.7, rounds=20)
    >>> ranker.probability(np.array([[0.1], [0.9]], dtype=np.float32)).round(1).tolist()
    [0.0, 1.0]
    """

    n_features: int
    baseline: float
    features: Array
    thresholds: Array
    values: Array
    counts: Array

    @classmethod
    def fit(
        cls,
        features: Array,
        hits: Array,
        *,
        rounds: int = 80,
        leaves: int = 31,
        learning_rate: float = 0.15,
        min_pairs: int = 50,
        l2: float = 0.0,
        seed: int = 0,
    ) -> BoostedTrees:
        """Learn from the features of pairs and whether each is a hit.

        If all pairs are hits, or none, there are no trees: every pair gets the log-odds of a hit, with one hit and one
        miss added. The result does not depend on the number of threads.

        Parameters
        ----------
        features : float32 array (n_pairs, n_features), finite
        hits : bool array (n_pairs,)
        rounds : int
            Number of trees.
        leaves : int
            Maximum number of leaves of a tree, at most 32.
        learning_rate : float
        min_pairs : int
            Minimum number of pairs in a leaf.
        l2 : float
            Penalty of large leaf values.
        seed : int
            Random seed for the pairs that decide the candidate thresholds, if there are more than 200,000 pairs.
        """
        _check_parameters(rounds=rounds, leaves=leaves, learning_rate=learning_rate, min_pairs=min_pairs, l2=l2)
        features = _as_pairs(features)
        hits = np.asarray(hits, dtype=bool)
        if not 1 <= features.shape[1] <= MOST_FEATURES:
            raise InvalidInput(f"pairs have {features.shape[1]} features; expected 1 to {MOST_FEATURES}")
        if hits.shape != features.shape[:1]:
            raise InvalidInput(f"hits has shape {hits.shape}; expected ({len(features)},), one for each pair")
        if not np.isfinite(features).all():
            raise InvalidInput("the features of pairs must be finite", code="not_finite")
        n_hits = int(np.count_nonzero(hits))
        if n_hits in (0, len(hits)):
            return _without_trees(features.shape[1], n_hits, len(hits) - n_hits)

        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_limits

        model = HistGradientBoostingClassifier(
            max_iter=rounds,
            max_leaf_nodes=leaves,
            learning_rate=learning_rate,
            min_samples_leaf=min_pairs,
            l2_regularization=l2,
            early_stopping=False,
            random_state=seed,
        )
        # Earlier versions add up gradients per thread, so the trees could differ. Also, threads of OpenMP wait for each
        # other in busy loops: where cores are shared, two take longer than one.
        with threadpool_limits(limits=1, user_api="openmp"):
            model.fit(features, hits)
        return cls(features.shape[1], *_as_arrays(model))

    @classmethod
    def mean(cls, rankers: list[BoostedTrees]) -> BoostedTrees:
        """One ranker whose raw score is the mean of those of several with the same features."""
        if len({each.n_features for each in rankers}) != 1:
            raise InvalidInput("the mean of rankers needs at least one, all with the same number of features")
        parts = ("features", "thresholds", "values", "counts")
        features, thresholds, values, counts = (
            np.concatenate([getattr(each, name) for each in rankers]) for name in parts
        )
        baseline = float(np.mean([each.baseline for each in rankers]))
        return cls(rankers[0].n_features, baseline, features, thresholds, values / len(rankers), counts)

    @property
    def n_trees(self) -> int:
        return len(self._paths.first_splits) - 1

    def raw(self, features: Array, n_jobs: int | None = None) -> Array:
        """The log-odds of each pair: the baseline plus the value of its leaf in each tree; float64."""
        features = self._checked(features)
        scores = np.empty(len(features), dtype=np.float64)

        def score(part: slice) -> None:
            kernels.boosted_scores(features[part], *self._for_kernel, scores[part])

        for _ in map_blocks(score, split(len(features), _BLOCK), n_jobs, blas=False):
            pass
        return scores

    def probability(self, features: Array, n_jobs: int | None = None) -> Array:
        """The probability that each pair is a hit; float64."""
        return np.asarray(expit(self.raw(features, n_jobs)))

    def contributions(self, features: Array) -> Array:
        """How much each feature moved the raw score of one pair: exact Shapley values of the trees.

        A feature that is not known is averaged over the training pairs of each node, as in path-dependent TreeSHAP
        (Lundberg et al., 2020, doi:10.1038/s42256-019-0138-9).

        Parameters
        ----------
        features : float32 array (n_features,)

        Returns
        -------
        float64 array (n_features + 1,)
            The contribution of each feature and, in the last place, the mean raw score. They add up to the raw score.
        """
        pair = self._checked(np.asarray(features)[None])[0]
        found = self._paths.shapley_values(pair, self.thresholds, self.values, self.counts)
        found[-1] += self.baseline
        return found

    @cached_property
    def _paths(self) -> Paths:
        return Paths.of(self.features)

    @cached_property
    def _for_kernel(self) -> tuple[Any, ...]:
        paths = self._paths
        return paths.features, self.thresholds, paths.masks, paths.first_splits, self.values, self.baseline

    def _checked(self, features: Array) -> Array:
        features = _as_pairs(features)
        if features.shape[1] != self.n_features:
            raise InvalidInput(f"pairs have {features.shape[1]} features; expected {self.n_features}")
        if np.isnan(features).any():
            raise InvalidInput("a feature of a pair is NaN", code="not_finite")
        return features

    def to_state(self) -> State:
        return State(
            "BoostedTrees",
            facts={"n_features": self.n_features, "baseline": self.baseline},
            arrays={name: getattr(self, name) for name in ("features", "thresholds", "values", "counts")},
        )

    @classmethod
    def from_state(cls, state: State) -> BoostedTrees:
        """Build it again, or raise `ModelFormatError`.

        Arrays are copied, because the kernel trusts them and the file may change later.
        """
        n_features = state.size("n_features", least=1, most=MOST_FEATURES)
        baseline = state.fact("baseline", float)
        features = state.array("features", np.int16, (None,))
        if len(features) > MOST_TREES * (2 * MOST_LEAVES - 1):
            raise ModelFormatError(f"{state.kind}: {len(features)} nodes are more than {MOST_TREES} trees have")
        features = features.copy()
        if ((features < -1) | (features >= n_features)).any():
            raise ModelFormatError(f"{state.kind}: a node has a feature outside -1..{n_features - 1}")
        n_leaves = int(np.count_nonzero(features < 0))
        thresholds = state.array("thresholds", np.float32, (len(features) - n_leaves,)).copy()
        values = state.array("values", np.float64, (n_leaves,)).copy()
        counts = state.array("counts", np.int64, (n_leaves,)).copy()
        if not (np.isfinite(baseline) and np.isfinite(thresholds).all() and np.isfinite(values).all()):
            raise ModelFormatError(f"{state.kind}: the baseline, thresholds and values must be finite")
        if ((counts < 1) | (counts > _MOST_COUNT)).any():
            raise ModelFormatError(f"{state.kind}: a leaf has a count outside 1..{_MOST_COUNT}")
        try:
            sizes = np.diff(Paths.of(features).first_splits) + 1
        except ValueError as error:
            raise ModelFormatError(f"{state.kind}: {error}") from None
        if len(sizes) > MOST_TREES or sizes.max(initial=0) > MOST_LEAVES:
            raise ModelFormatError(
                f"{state.kind}: {len(sizes)} trees of up to {sizes.max(initial=0)} leaves; expected at most "
                f"{MOST_TREES} trees of {MOST_LEAVES} leaves"
            )
        return cls(n_features, baseline, features, thresholds, values, counts)


def _check_parameters(**given: Any) -> None:
    for name, value in given.items():
        if not _PARAMETERS[name].accepts(value):
            expected = _PARAMETERS[name].describe()
            raise InvalidInput(f"{name} is {value!r}; expected {expected}", code="bad_parameter", name=name)


def _as_pairs(features: Any) -> Array:
    features = np.ascontiguousarray(features, dtype=np.float32)
    if features.ndim != 2:
        raise InvalidInput(f"the features of pairs have {features.ndim} dimensions; expected 2")
    return features


def _without_trees(n_features: int, n_hits: int, n_misses: int) -> BoostedTrees:
    return BoostedTrees(
        n_features,
        float(np.log((n_hits + 1) / (n_misses + 1))),
        np.zeros(0, np.int16),
        np.zeros(0, np.float32),
        np.zeros(0, np.float64),
        np.zeros(0, np.int64),
    )


_NODE_FIELDS = ("value", "count", "feature_idx", "num_threshold", "left", "right", "is_leaf", "is_categorical")


def _as_arrays(model: Any) -> tuple[float, Array, Array, Array, Array]:
    """Baseline, features, thresholds, values and counts of a fitted scikit-learn model.

    This reads private attributes of scikit-learn, so it checks that they are what it expects.
    """
    try:
        (baseline,) = np.asarray(model._baseline_prediction, dtype=np.float64).ravel().tolist()
        trees = [tree.nodes for (tree,) in model._predictors]
        columns = {name: np.concatenate([nodes[name] for nodes in trees]) for name in _NODE_FIELDS}
        leaf = columns["is_leaf"] != 0
        features = np.where(leaf, -1, columns["feature_idx"]).astype(np.int16)
        paths = Paths.of(features)
        splits = np.flatnonzero(~leaf)
        first_nodes = np.repeat(np.cumsum([0, *map(len, trees[:-1])]), [len(nodes) for nodes in trees])[splits]
        if (
            columns["is_categorical"].any()
            or (first_nodes + columns["left"][splits] != splits + 1).any()
            or (first_nodes + columns["right"][splits] != paths.right_children).any()
        ):
            raise ValueError("the nodes are not numerical splits in preorder")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        import sklearn

        raise Unavailable(
            f"cannot read the trees of scikit-learn {sklearn.__version__}: {error}",
            name="scikit-learn",
            advice="install an earlier version",
        ) from error
    return (
        baseline,
        features,
        _rounded_down(columns["num_threshold"][splits]),
        columns["value"][leaf].astype(np.float64),
        columns["count"][leaf].astype(np.int64),
    )


def _rounded_down(thresholds: Array) -> Array:
    """The largest float32 up to each float64; a float32 value is at most one exactly if it is at most the other."""
    nearest = thresholds.astype(np.float32)
    return np.where(nearest > thresholds, np.nextafter(nearest, np.float32(-np.inf)), nearest)
