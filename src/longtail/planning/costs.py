"""`Costs`: the times of units of work on a machine, as `calibrate` measures them. They are kept as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields

from longtail.errors import InvalidInput
from longtail.files import PathName, writing


@dataclass(frozen=True)
class Costs:
    """Processor seconds of one core for a unit of work, unless it says otherwise.

    Parameters
    ----------
    prepare : float
        An entry of the rows of a file: a feature or a label.
    sort : float
        Rows of labels: a label of a row.
    add : float
        Label vectors: a feature of a row of a label.
    cluster : float
        Clustering: an entry of a label vector, for each bisection that it takes part in.
    train : float
        Training: a feature of a row and a sibling classifier, for each doubling of the weights of the block beyond
        1 MiB: the more weights, the fewer are in the cache.
    train_row : float
        Training: a row and a sibling classifier, besides the features of the row.
    again : float
        Training again with the negatives of the beam, relative to the first training.
    search : float
        Searching for negatives and predicting: a feature of a row at a node, for each doubling of the model beyond
        1 MiB.
    score : float
        Predicting by one-vs-rest: a feature of a row and a classifier.
    join : float
        Joining and saving: a byte of the model.
    model : float
        Bytes of the model for each feature of the rows of a classifier.
    """

    prepare: float
    sort: float
    add: float
    cluster: float
    train: float
    train_row: float
    again: float
    search: float
    score: float
    join: float
    model: float

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
                raise InvalidInput(f"the cost {name!r} is {value!r}; expected a number above 0")

    def save(self, path: PathName) -> None:
        """Write a JSON file."""
        with writing(path) as file:
            file.write((json.dumps(asdict(self), indent=2) + "\n").encode())

    @classmethod
    def load(cls, path: PathName) -> Costs:
        """Read a file that `save` has written."""
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{path} is no JSON file: {error}") from None
        names = {each.name for each in fields(cls)}
        if not isinstance(found, dict) or set(found) != names:
            raise InvalidInput(f"{path} holds no costs; they have the keys {', '.join(sorted(names))}")
        try:
            return cls(**found)
        except InvalidInput as error:
            raise InvalidInput(f"{path}: {error.problem}") from None
