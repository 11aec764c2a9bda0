"""Label texts: names, alternative names and descriptions of labels, and which of them belong to which label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from longtail.errors import InvalidInput


def checked_label_texts(texts: Any, n_labels: int) -> tuple[tuple[str, ...], ...]:
    """The texts of each label as tuples, or `InvalidInput`."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise InvalidInput(f"label_texts is {texts!r:.40}; expected a list of texts for each label")
    found = tuple(_as_texts(each, f"label {number}") for number, each in enumerate(texts))
    if len(found) != n_labels:
        raise InvalidInput(f"{len(found)} lists of label texts for {n_labels} labels")
    return found


def renumbered(
    texts: Sequence[Sequence[str]] | None, places: Iterable[int], n_labels: int
) -> list[Sequence[str]] | None:
    """The texts of each label at its new place; labels at place -1 are dropped, and new labels have no texts."""
    if texts is None:
        return None
    result: list[Sequence[str]] = [()] * n_labels
    for place, each in zip(places, texts, strict=True):
        if place >= 0:
            result[place] = each
    return result


def _as_texts(texts: Any, what: str) -> tuple[str, ...]:
    if isinstance(texts, str):
        raise InvalidInput(f"the texts of {what} are the single text {texts!r:.40}; expected a list of texts")
    if not isinstance(texts, Iterable):
        raise InvalidInput(f"the texts of {what} are {texts!r:.40}; expected a list of texts, [] for none")
    found = tuple(texts)
    for text in found:
        if not isinstance(text, str):
            raise InvalidInput(f"the texts of {what} hold {text!r:.40}; expected texts only")
    return found
