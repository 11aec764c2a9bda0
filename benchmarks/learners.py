"""The table of learners: add a line to add one.

Peers have their documented defaults, or a well-known variant. Learners that installed packages declare for longtail
(see docs/own-learner.md) join the table under the name of their class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

_LONGTAIL = "benchmarks.adapters.longtail_estimator:Estimator"
_DEFAULT = "benchmarks.adapters.longtail_default:Default"
_ANNIF = "benchmarks.adapters.annif_projects:Annif"
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
        Its name in ``--learners`` and in the bars of comparison.
    title : str
        Its name in tables.
    adapter : str
        ``module:class``, imported in the child.
    environment : str
        The environment it runs in; see `benchmarks.environments`.
    settings : mapping
        Keyword arguments of the adapter.
    most_work : float
        It is skipped if labels times non-zeros of the training rows exceed this.
    needs : str
        It is skipped if the data set has no such fact: ``texts`` or ``label_texts``.
    by_default : bool
        Whether it runs unless ``--learners`` names others.
    """

    key: str
    title: str
    adapter: str
    environment: str = "longtail"
    settings: Mapping[str, Any] = field(default_factory=dict)
    most_work: float = float("inf")
    needs: str = ""
    by_default: bool = True

    @property
    def is_peer(self) -> bool:
        return self.adapter not in (_LONGTAIL, _DEFAULT)


def own_learners() -> tuple[Learner, ...]:
    """The learners that installed packages declare as entry points of the group ``longtail.learners``."""
    names = sorted(point.name for point in entry_points(group="longtail.learners"))
    return tuple(Learner(name, name, _LONGTAIL, settings={"name": name}) for name in names)


LEARNERS = (
    Learner("default", "longtail train, defaults", _DEFAULT),
    Learner("default-fast", "longtail train --fast", _DEFAULT, settings={"fast": True}),
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
    Learner(
        *("annif-mllm", "Annif mllm, at most 10,000 rows", _ANNIF, "annif"),
        settings={"projects": ["mllm"], "mllm_rows": 10_000},
        needs="label_texts",
        by_default=False,
    ),
    Learner(
        *("annif", "Annif ensemble of mllm and Bonsai", _ANNIF, "annif"),
        settings={"projects": ["mllm", "bonsai"], "mllm_rows": 10_000},
        needs="label_texts",
        by_default=False,
    ),
    *own_learners(),
)
