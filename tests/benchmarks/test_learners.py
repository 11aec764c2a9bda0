from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
from sklearn.base import BaseEstimator

from benchmarks import learners
from benchmarks.adapters import longtail_estimator
from benchmarks.measure import ROOT


class Centroids(BaseEstimator):
    def __init__(self, sharpness: float = 1.0) -> None:
        self.sharpness = sharpness


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that declares the learner `Centroids`."""

    def entry_points(group: str, name: str = "Centroids") -> list[EntryPoint]:
        assert group == "longtail.learners"
        return [EntryPoint("Centroids", f"{__name__}:Centroids", group)] if name == "Centroids" else []

    for module in (learners, longtail_estimator):
        monkeypatch.setattr(module, "entry_points", entry_points)


@pytest.mark.usefixtures("own")
def test_the_learner_of_an_installed_package_joins_the_table() -> None:
    [learner] = learners.own_learners()
    assert (learner.key, learner.is_peer) == ("Centroids", False)
    adapter = longtail_estimator.Estimator(threads=2, **learner.settings)
    assert isinstance(adapter.estimator, Centroids)  # which has no n_jobs


@pytest.mark.usefixtures("own")
def test_own_learners_get_the_number_of_threads_if_they_take_it() -> None:
    tree = longtail_estimator.Estimator(threads=2, name="LabelTree", n_trees=3).estimator
    assert (tree.n_jobs, tree.n_trees) == (2, 3)


def test_the_environments_of_peers_need_no_longtail() -> None:
    code = (
        "import sys; sys.modules['longtail'] = None; sys.path.append(sys.argv[1]); "
        "import benchmarks.child, benchmarks.adapters.base, benchmarks.adapters.annif_files"
    )
    subprocess.run([sys.executable, "-I", "-c", code, str(ROOT)], check=True)
