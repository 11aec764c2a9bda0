"""`ServedModel`: a loaded model under a name, and what the routes ask of it, in the words of the answers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from longtail import store
from longtail.errors import InvalidInput
from longtail.serve.marking import segments
from longtail.serve.refusal import Refusal, shortened
from longtail.store import load
from longtail.tagger import Tag, TagExplanation, Tagger

Names = tuple[str, ...] | None


class ServedModel:
    """A model that stays loaded.

    Parameters
    ----------
    name : str
        What requests call it.
    directory : str or path-like
        What `Tagger.save` wrote; large arrays are mapped, not read.
    """

    def __init__(self, name: str, directory: str | os.PathLike[str]) -> None:
        tagger = load(directory)
        if not isinstance(tagger, Tagger):
            raise InvalidInput(
                f"{os.fspath(directory)} holds a {type(tagger).__name__}, which knows no texts or label names; serve "
                f"models that `longtail train` or Tagger.save wrote"
            )
        self.name = name
        self.tagger = tagger
        self.directory = Path(directory).absolute()
        manifest = os.stat(self.directory / "manifest.json")
        self._saved_at = datetime.fromtimestamp(manifest.st_mtime, UTC).isoformat(timespec="seconds")
        self._size = int(store.inspect_model(directory)["bytes"])
        self.n_labels = len(tagger.label_names_)
        self.takes_texts = tagger.takes_texts  # asked at every request; the tagger checks each time that it is fitted

    @property
    def kind(self) -> str:
        """The learner's class."""
        return type(self.tagger.estimator_).__name__

    def warm(self) -> None:
        """Make what the first request would wait for."""
        if self.takes_texts:
            self.tagger.predict([""], k=1)

    def check_takes_texts(self) -> None:
        """Raise a `Refusal` where rows are features."""
        if not self.takes_texts:
            raise Refusal(
                422,
                "model_takes_features",
                f"the model {shortened(self.name)} takes rows of features, not texts; choose another model",
            )

    def tag(self, texts: Sequence[str], k: int, allow: Names, deny: Names) -> list[list[Tag]]:
        """The best labels of each text, those of score 0 left out."""
        for names in (allow, deny):
            if names is not None:
                self.check_labels(names)
        try:
            found = self.tagger.predict(texts, k, allow, deny)
        except InvalidInput as error:  # weights that are no numbers
            raise Refusal(422, "cannot_score", str(error)) from None
        return [[tag for tag in tags if tag.score] for tags in found]

    def explain(self, text: str, labels: Sequence[str], words: int) -> list[dict[str, Any]]:
        """Why each of `labels` has its score for `text`."""
        self.check_labels(labels)
        try:
            return [self._explanation(text, found, words) for found in self.tagger.explain_each(text, labels)]
        except InvalidInput as error:  # networks cannot, and some labels of a subset
            raise Refusal(422, "cannot_explain", str(error)) from None

    def _explanation(self, text: str, found: TagExplanation, words: int) -> dict[str, Any]:
        pieces = segments(text, found.reasons, self.tagger.features_.min_length)
        return {
            "label": found.label,
            "score": found.score,
            "margin": found.margin,
            "intercept": found.intercept,
            "words": [{"word": word, "adds": adds} for word, adds in found.reasons[:words]],
            "segments": [{"text": piece.text, "adds": piece.adds} for piece in pieces],
            "steps": [
                {"tree": step.tree, "to": step.name, "n_labels": step.n_labels, "probability": step.probability}
                for step in found.steps
            ],
        }

    def check_labels(self, names: Sequence[str]) -> None:
        """Raise a `Refusal` that names the first label the model does not know."""
        unknown = self.tagger.unknown_labels(names)
        if unknown:
            raise Refusal(
                422,
                "unknown_label",
                f"the model {shortened(self.name)} has no label {shortened(unknown[0])}; "
                f"/v1/labels?contains= finds the names of its {self.n_labels} labels",
            )

    def labels(self, prefix: str, limit: int, contains: str = "") -> list[dict[str, Any]]:
        """The most frequent labels whose names begin with and contain these, in capital or small ASCII letters."""
        table: Any = self.tagger.label_names_
        found = table.containing(contains) if contains else table.with_prefix(prefix)
        if contains and prefix:
            found = np.intersect1d(found, table.with_prefix(prefix), assume_unique=True)
        found = self.tagger.most_frequent(found, limit)
        counts = self.tagger.label_counts_[found]
        return [{"label": table[label], "count": count} for label, count in zip(found, counts.tolist(), strict=True)]

    def describe(self) -> dict[str, Any]:
        """What `/v1/models` tells."""
        return {
            "name": self.name,
            "kind": self.kind,
            "n_labels": self.n_labels,
            "takes_texts": self.takes_texts,
            "size_bytes": self._size,
            "saved_at": self._saved_at,
            "card": store.read_card(self.directory, self.tagger.fingerprint_),
        }


class ServedModels:
    """Several models by name; the first is the one that a request without a name means."""

    def __init__(self, directories: Mapping[str, str | os.PathLike[str]]) -> None:
        if not directories:
            raise InvalidInput("there is no model to serve; give the directory of one")
        self._models = {name: ServedModel(name, directory) for name, directory in directories.items()}

    def __iter__(self) -> Any:
        return iter(self._models.values())

    @property
    def names(self) -> list[str]:
        """In the order given."""
        return list(self._models)

    def get(self, name: str | None) -> ServedModel:
        """The model of that name, or a `Refusal`."""
        model = next(iter(self._models.values())) if name is None else self._models.get(name)
        if model is None:
            shown = ", ".join(map(shortened, self.names[:10]))
            raise Refusal(404, "unknown_model", f"there is no model {shortened(name or '')}; there are: {shown}")
        return model
