"""The table of learners: a line here is all it takes to add one.

Peers have their documented defaults, and the variants that are well known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_LONGTAIL = "benchmarks.adapters.longtail_estimator:Estimator"
_PECOS = "benchmarks.adapters.pecos_xlinear:XLinear"
_OMIKUJI = "benchmarks.adapters.omikuji_trees:Omikuji"
_NAPKINXC = "benchmarks.adapters.napkinxc_plt:LabelTree"
_SCIKIT_LEARN = "benchmarks.adapters.scikit_learn:OneVsRestSVC"
# README of omikuji: unbalanced k-means with 100 clusters, at most three layers.
_BONSAI = {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3}


@dataclass(frozen=True)
class Learner:
    """A row of every table.

    Parameters
    ----------
    key : str
        What ``--learners`` and the bars of comparison call it.
    title : str
        What tables call it.
    adapter : str
        ``module:class``, imported in the child.
    environment : str
        Whose installed packages it runs with; see `benchmarks.environments`.
    settings : mapping
        Keyword arguments of the adapter.
    most_work : float
        Labels times non-zeros of the training rows beyond which it is not affordable.
    """

    key: str
    title: str
    adapter: str
    environment: str = "longtail"
    settings: Mapping[str, Any] = field(default_factory=dict)
    most_work: float = float("inf")

    @property
    def is_peer(self) -> bool:
        return self.adapter != _LONGTAIL


LEARNERS = (
    Learner("tree", "LabelTree, 1 tree", _LONGTAIL, settings={"name": "LabelTree", "n_trees": 1}),
    Learner("tree-3", "LabelTree, 3 trees", _LONGTAIL, settings={"name": "LabelTree", "n_trees": 3}),
    Learner("tree-beam", 'LabelTree, negatives="beam"', _LONGTAIL, settings={"name": "LabelTree", "negatives": "beam"}),
    Learner("one-vs-rest", "OneVsRest", _LONGTAIL, settings={"name": "OneVsRest"}),
    Learner("ridge", "Ridge", _LONGTAIL, settings={"name": "Ridge"}, most_work=3e10),
    Learner("pecos", "PECOS XR-Linear", _PECOS, "pecos"),
    Learner("pecos-man", "PECOS XR-Linear, TFN+MAN", _PECOS, "pecos", {"negatives": "tfn+man"}),
    Learner("parabel", "omikuji Parabel, 3 trees", _OMIKUJI, "omikuji"),
    Learner("parabel-1", "omikuji Parabel, 1 tree", _OMIKUJI, "omikuji", {"n_trees": 1}),
    Learner("bonsai", "omikuji Bonsai, 3 trees", _OMIKUJI, "omikuji", _BONSAI),
    Learner("napkinxc", "napkinXC PLT", _NAPKINXC, "napkinxc"),
    Learner("scikit-learn", "scikit-learn OvR LinearSVC", _SCIKIT_LEARN, most_work=5e8),
)
