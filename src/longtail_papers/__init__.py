"""The papers' experiments, each by one name: what is published, or our own earlier runs, beside this run."""

from __future__ import annotations

import logging
from importlib import import_module
from os import PathLike
from pathlib import Path

from longtail.errors import InvalidInput, Unavailable
from longtail_papers.common.benchmarks import why_missing

_log = logging.getLogger(__name__)

NAMES: dict[str, str] = {
    "ridge": "closed-form ridge: accuracy, choice of alpha, sparsification, cost of the solvers",
    "eagle": "labels known only for groups of rows: EAGLE on random and clustered groups, simulations, cost",
    "miml": "labels of single images from labels of bags of images: deep MIML, with and without label vectors",
    "label-subset": "a few labels that stand for all: tables, ablation, quality by size of the subset, cost",
    "multi-head": "heads of a few digits for many labels: images, texts, label sets, cost of the last layer",
    "argmaxable": "label sets that no input gets: counts, narrow layers on real label sets, radii, guarantees",
    "dft": "narrow output layers, trained: bottleneck against sines and cosines, F1, label sets out of reach",
}

_HOMES = {
    "ridge": "ridge.experiment",
    "eagle": "eagle.experiment",
    "miml": "eagle.miml",
    "label-subset": "label_subset.experiment",
    "multi-head": "multi_head.experiment",
    "argmaxable": "sigmoid_bottleneck.argmaxable",
    "dft": "sigmoid_bottleneck.dft",
}


def run(name: str, out_directory: str | PathLike[str], *, quick: bool = False) -> list[Path]:
    """Run an experiment and write its tables and pictures.

    Results are written as each part finishes, so what is done stays when the run is interrupted.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    out_directory : str or path-like
        Made where it does not exist.
    quick : bool
        A small version of everything, which shows that it works; its figures mean little.

    Returns
    -------
    paths : list of path
        The files written.

    Raises
    ------
    Unavailable
        If none of the data sets that the experiment measures on is here. What it measures without them, such as
        simulations, is written before; without such parts nothing is written.

    Examples
    --------
    >>> run("alchemy", "results")
    Traceback (most recent call last):
    longtail.errors.InvalidInput: no experiment is called 'alchemy'; known are ridge, ...
    """
    if name not in NAMES:
        raise InvalidInput(f"no experiment is called {name!r}; known are {', '.join(NAMES)}")
    try:
        module = import_module(f"longtail_papers.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise Unavailable(
            f"the experiment {name} trains networks and torch is not installed; install it with: "
            "python -m pip install 'longtail[neural]'"
        ) from None
    names = module.data_sets(quick=quick)
    missing = [why for why in map(why_missing, names) if why is not None]
    for why in missing if len(missing) < len(names) else ():
        _log.warning("left out: %s", why)
    paths: list[Path] = module.run(Path(out_directory), quick=quick)
    if len(missing) == len(names):
        written = f"only what needs no data is in {paths[0]}" if paths else "nothing was measured or written"
        raise Unavailable(f"no data set of the experiment {name} is here; {written}. {'. '.join(missing)}")
    return paths
