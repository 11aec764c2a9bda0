"""The papers' experiments, each run by its name: published figures, or our own earlier runs, beside this run."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from longtail.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from longtail_papers.common import Experiment


class Entry(NamedTuple):
    """An experiment in one line, and the module that defines it as ``EXPERIMENT``."""

    line: str
    module: str


EXPERIMENTS: dict[str, Entry] = {
    "ridge": Entry(
        "closed-form ridge: accuracy, choice of alpha, sparse weights, cost of the solvers",
        "longtail_papers.ridge.experiment",
    ),
    "eagle": Entry(
        "labels known only for groups of rows: EAGLE on random and clustered groups, simulations, cost",
        "longtail_papers.eagle.experiment",
    ),
    "miml": Entry(
        "labels of single images learned from bags of images: deep MIML with and without label vectors",
        "longtail_papers.eagle.miml",
    ),
    "label-subset": Entry(
        "a few labels that represent all: tables, ablation, quality by subset size, cost",
        "longtail_papers.label_subset.experiment",
    ),
    "multi-head": Entry(
        "short output heads for many labels: images, texts, label sets, cost of the last layer",
        "longtail_papers.multi_head.experiment",
    ),
    "argmaxable": Entry(
        "label sets that no input can get: counts, narrow layers on real label sets, radii, guarantees",
        "longtail_papers.sigmoid_bottleneck.argmaxable",
    ),
    "dft": Entry(
        "trained narrow output layers: bottleneck against sines and cosines, F1, label sets out of reach",
        "longtail_papers.sigmoid_bottleneck.dft",
    ),
}


def run(name: str, out_directory: str | PathLike[str], *, quick: bool = False) -> list[Path]:
    """Run an experiment and write its tables and pictures.

    The results are written after each part, so an interrupted run keeps what is done.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`.
    out_directory : str or path-like
        Created if it does not exist.
    quick : bool
        Run a small version, which shows that everything works; its figures mean little.

    Returns
    -------
    paths : list of path
        The files written.

    Raises
    ------
    Unavailable
        If none of the experiment's data sets is installed. Parts that need no data, such as simulations, are written
        first.

    Examples
    --------
    >>> run("alchemy", "results")
    Traceback (most recent call last):
    longtail.errors.InvalidInput: there is no experiment 'alchemy'; choose from ridge, ...
    """
    return _load(name).run(Path(out_directory), quick=quick)


def _load(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise InvalidInput(
            f"there is no experiment {name!r}; choose from {known}", code="unknown_experiment", name=name
        )
    try:
        experiment: Experiment = import_module(EXPERIMENTS[name].module).EXPERIMENT
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise Unavailable(
            f"the experiment {name} trains networks and torch is not installed; install it with: "
            "python -m pip install 'longtail[neural]'",
            code="missing_package",
            name="torch",
        ) from None
    return experiment
