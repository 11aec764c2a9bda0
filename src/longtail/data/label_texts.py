"""Label texts: names, alternative names and descriptions of labels, and which of them belong to which label."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from longtail.errors import InvalidInput
from longtail.printable import counted

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LabelTexts:
    """Texts of labels, for example those of a vocabulary file; see `read_label_texts` and `Corpus.with_label_texts`.

    Parameters
    ----------
    labels : sequence of str
        The distinct labels, or their ids.
    texts : sequence of sequences of str
        The texts of each: its name in words, then alternative names and the description.
    path : str or None
        The file that they come from, for messages.

    Examples
    --------
    >>> found = LabelTexts.from_mapping({"Q89": ["apple", "apples"], "Q1": "universe"})
    >>> found.labels, found.texts
    (('Q89', 'Q1'), (('apple', 'apples'), ('universe',)))
    """

    labels: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    path: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        labels = _as_texts(self.labels, "labels")
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "texts", checked_label_texts(self.texts, len(labels)))
        if len(set(labels)) != len(labels):
            raise InvalidInput("labels repeat; every label needs one list of texts")

    @classmethod
    def from_mapping(cls, texts: Mapping[str, str | Sequence[str]]) -> LabelTexts:
        """The texts that a mapping gives each label: one text, or a list of them."""
        for label in texts:
            if not isinstance(label, str):
                raise InvalidInput(f"label_texts has the key {label!r:.40}; labels are names (strings)")
        lists = ((each,) if isinstance(each, str) else _as_texts(each, repr(label)) for label, each in texts.items())
        return cls(tuple(texts), tuple(lists))

    @property
    def names(self) -> list[str]:
        """The name of each label in words, which is its first text; without texts, the label itself."""
        return [texts[0] if texts else label for label, texts in zip(self.labels, self.texts, strict=True)]


class Matched(NamedTuple):
    """Labels with their texts: those of a corpus, followed by the added ones."""

    label_names: tuple[str, ...]
    label_texts: list[tuple[str, ...]]


def match_label_texts(
    label_names: Sequence[str], known: Sequence[Sequence[str]] | None, found: LabelTexts, add: bool
) -> Matched:
    """Give each label the texts of the entries with its id or its name; see `Corpus.with_label_texts`.

    The way that matches more labels goes first, because a name can happen to be the id of another label.
    """
    entries_of = _entries_by(found.labels), _entries_by(found.names)
    hits = [sum(label in entries for label in label_names) for entries in entries_of]
    _check_any(label_names, found, any(hits))
    is_by_name = hits[1] > hits[0]
    first, second = reversed(entries_of) if is_by_name else entries_of
    names = list(label_names)
    texts: list[tuple[str, ...]] = [()] * len(names) if known is None else [tuple(each) for each in known]
    used: set[int] = set()
    for place, label in enumerate(names):
        entries = first.get(label) or second.get(label)
        if entries:
            used.update(entries)
            texts[place] = _merged(found, entries)
    n_given = len(names)
    if add:
        for label, entries in first.items():
            rest = [entry for entry in entries if entry not in used]
            if rest:
                names.append(label)
                texts.append(_merged(found, rest))
    n_with_texts = sum(map(bool, texts[:n_given]))
    _log.info(
        "label texts: %s of %s have texts, matched by %s; %s without rows added; %s without texts",
        f"{n_with_texts:,}",
        counted(n_given, "label"),
        "name" if is_by_name else "label",
        counted(len(names) - n_given, "label"),
        counted(n_given - n_with_texts, "label"),
    )
    return Matched(tuple(names), texts)


def _entries_by(keys: Sequence[str]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for entry, key in enumerate(keys):
        found[key].append(entry)
    return dict(found)


def _merged(found: LabelTexts, entries: list[int]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for entry in entries for text in found.texts[entry]))


def _check_any(label_names: Sequence[str], found: LabelTexts, matches: bool) -> None:
    if matches:
        return
    source = found.path or "label_texts"
    if not label_names:
        raise InvalidInput(f"{source}: there is nothing to match, since the corpus has no labels", code="no_labels")
    problem = "there are no labels in it"
    if found.labels:
        name = found.names[0]
        named = f" with the name {name!r:.80}" if name != found.labels[0] else ""
        problem = (
            f"no label of the corpus is in it, by id or by name; the corpus has for example {label_names[0]!r:.80}, "
            f"and this has {found.labels[0]!r:.80}{named}"
        )
    raise InvalidInput(
        f"{source}: {problem}",
        code="label_texts_do_not_match",
        path=found.path,
        name=label_names[0],
        found=found.labels[:1],
    )


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
