"""`ServedModel`: a loaded `Tagger` under the name that requests use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longtail.errors import InvalidInput
from longtail.files import PathName, is_url
from longtail.serve.feedback import FeedbackFile
from longtail.serve.refusal import Refusal, shortened
from longtail.store import corrections_until, inspect_model, load, read_card, saved_at
from longtail.tagger import Tagger
from longtail.text import segments


class ServedModel:
    """A model that stays loaded.

    Parameters
    ----------
    name : str
        The name that requests use.
    directory : str or path-like
        A model that `Tagger.save` wrote, or its URL. Its large arrays are mapped, not read.
    """

    def __init__(self, name: str, directory: PathName) -> None:
        tagger = load(directory)
        if not isinstance(tagger, Tagger):
            raise InvalidInput(
                f"{directory} holds a {type(tagger).__name__} without texts and label names; serve a model "
                f"that `longtail train` or Tagger.save wrote"
            )
        self.name = name
        self.tagger = tagger
        self.directory = tagger.directory_
        # Kept for URLs, because requests do not wait for an object store, and for when a new version takes the place.
        self._card = read_card(directory, tagger.fingerprint_)
        self._saved_at = saved_at(directory)
        self._size = int(inspect_model(directory)["bytes"])
        self.n_labels = len(tagger.label_names_)
        # The tagger checks at every call that it is fitted; requests need not.
        self._takes_texts = tagger.takes_texts

    @property
    def kind(self) -> str:
        """The class of the learner."""
        return type(self.tagger.estimator_).__name__

    @property
    def version(self) -> str:
        """The fingerprint of the model."""
        return self.tagger.fingerprint_

    @property
    def threshold(self) -> float | None:
        """The score from which labels are given, if the model has learned one."""
        return None if self.tagger.decision_ is None else self.tagger.decision_.threshold

    @property
    def has_classes(self) -> bool:
        """Whether the model was trained with one class for each text, so that an update learns nothing else."""
        return hasattr(self.tagger, "classes_")

    def warm(self) -> None:
        """Build what the first request would otherwise wait for."""
        if self._takes_texts:
            self.tagger.predict([""], k=1)

    def check_takes_texts(self) -> None:
        """Raise a `Refusal` unless the model takes texts."""
        if not self._takes_texts:
            raise Refusal(
                "model_takes_features",
                f"the model {shortened(self.name)} takes feature vectors, not texts; choose another model",
            )

    def explain(self, text: str, labels: Sequence[str], words: int) -> list[dict[str, Any]]:
        """Why each of `labels` has its score for `text`, with at most `words` reasons in each list."""
        min_length = self.tagger.features_.min_length
        return [
            {
                **found.to_dict(words),
                "segments": [piece._asdict() for piece in segments(text, found.reasons, min_length)],
            }
            for found in self.tagger.explain_each(text, labels)
        ]

    def identify(self) -> dict[str, Any]:
        """The name and the version of the model."""
        saved = self._saved_at.isoformat(timespec="seconds")
        return {"name": self.name, "version": self.version, "saved_at": saved}

    def describe(self, feedback: FeedbackFile | None = None) -> dict[str, Any]:
        """The entry of the model in the answer of `/v1/models`, with how many texts have corrections to learn."""
        if not is_url(self.directory):
            self._card = read_card(self.directory, self.version) or self._card
        since = corrections_until(self._card) or self._saved_at
        waiting = None if feedback is None else {"waiting": feedback.waiting(self.name, since)}
        return {
            **self.identify(),
            "kind": self.kind,
            "n_labels": self.n_labels,
            "takes_texts": self._takes_texts,
            "threshold": self.threshold,
            "always_one": self.tagger.decision_ is not None and self.tagger.decision_.rule.always_one,
            "size_bytes": self._size,
            "corrections": waiting,
            "card": self._card,
        }


def load_models(directories: Mapping[str, PathName]) -> dict[str, ServedModel]:
    """Load models by name, and build what their first requests would otherwise wait for."""
    if not directories:
        raise InvalidInput("no model to serve; give the directory of at least one")
    models = {name: ServedModel(name, directory) for name, directory in directories.items()}
    for model in models.values():
        model.warm()
    return models


def find_model(models: Mapping[str, ServedModel], name: str | None) -> ServedModel:
    """The model of that name, or the first for None."""
    if name is None:
        return next(iter(models.values()))
    if name not in models:
        known = ", ".join(map(shortened, list(models)[:10]))
        raise Refusal("unknown_model", f"there is no model {shortened(name)}; the models are {known}")
    return models[name]
