"""Names of labels that look wrong: two spellings of one label, lists that were not split, numbers and dates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from longtail.arrays import Array
from longtail.checking.counting import Groups, equal_groups
from longtail.checking.damage import DAMAGE, damages
from longtail.checking.finding import Example, Finding
from longtail.checking.labels import LabelTable
from longtail.printable import counted

# Spaces and punctuation that spellings differ in. The signs in "C#", "C++", "A*" and "50%" tell labels apart, and so
# does what stands between digits or is the sign of a number.
_PUNCTUATION = r"\s\-_.,;:!?'\"/&\u00b7\u2010-\u2015\u2018-\u201f"
_LOOSE = re.compile(rf"(?<![0-9{_PUNCTUATION}])(?<!^)[{_PUNCTUATION}]+|[{_PUNCTUATION}]+(?![0-9{_PUNCTUATION}])")
_BLANKS = re.compile(r"\s+")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)?")
_DATE = re.compile(
    r"[0-9]{4}[-/.][0-9]{1,2}(?:[-/.][0-9]{1,2})?(?:[T ][0-9:.Z+-]*)?|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4}"
)
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0+")
# What programs write into a cell that has no value.
_NOTHING = {"nan", "none", "null", "n/a", "#n/a", "<na>", "nat", "-"}
_SEPARATORS = (";", ",", "|", " / ", "\t", "\n")
_MOST = 0.5
_FEWEST = 10
# Shorter names differ by one letter too often without being related.
_SHORTEST = 7
# Neighbours in alphabetical order that a name is compared with: bounds the work.
_NEIGHBOURS = 4
_MOST_PAIRS = 100_000


def fold_name(name: str) -> str:
    """What is left of a name without case, Unicode forms, spaces and most punctuation.

    >>> fold_name("E-Mail"), fold_name("e mail"), fold_name("C#"), fold_name("1.5"), fold_name("1 5")
    ('email', 'email', 'c#', '1.5', '1 5')

    Numbers are whole with and without a decimal point, which spreadsheets add.

    >>> fold_name("12"), fold_name("12.0")
    ('12', '12')
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    if whole := _WHOLE.fullmatch(folded):
        return whole[1]
    return _LOOSE.sub("", folded) or _BLANKS.sub(" ", folded)


def alike_labels(labels: LabelTable, names: Sequence[str], most: int) -> Finding | None:
    """Labels that differ only in case, spaces, Unicode form or punctuation."""
    # Digests instead of folded names: a million names would take much memory.
    groups = equal_groups(np.fromiter((hash(fold_name(name)) for name in names), np.int64, len(names)))
    if not len(groups.starts):
        return None
    count = int(groups.sizes().sum())
    return Finding(
        "alike_labels",
        "warning",
        count,
        f"{counted(count, 'label')} differ from another one only in case, spaces, Unicode form or punctuation",
        "Choose one spelling for each; the rows of the others count for it then.",
        [_group(labels, names, members) for members in _most_rows(groups, labels.counts, most)],
    )


def _most_rows(groups: Groups, counts: Array, most: int) -> list[Array]:
    """The groups with most rows in other spellings than the most frequent one, where merging gains most."""
    members = [groups.members[start:stop] for start, stop in zip(groups.starts, groups.stops, strict=True)]
    return sorted(members, key=lambda group: int(counts[group].max() - counts[group].sum()))[:most]


def _group(labels: LabelTable, names: Sequence[str], members: Array) -> Example:
    ordered = members[np.argsort(-labels.counts[members], kind="stable")].tolist()
    places = [int(labels.first[label]) for label in ordered]
    return Example(
        tuple(places) if all(places) else (), ", ".join(labels.described(label, names[label]) for label in ordered)
    )


def similar_labels(labels: LabelTable, names: Sequence[str], most: int) -> Finding | None:
    """Labels that differ in one letter, or in the order of their words.

    A name is compared with its neighbours in alphabetical order, read forwards and backwards, so a few pairs among very
    many alike names can be missed. At most 200,000 pairs are kept.
    """
    folded = [fold_name(name) for name in names]
    pairs: set[tuple[int, int]] = set()
    for backwards in (False, True):
        keys = [name[::-1] for name in folded] if backwards else folded
        order = sorted((label for label in range(len(names)) if len(keys[label]) >= _SHORTEST), key=keys.__getitem__)
        for step in range(1, _NEIGHBOURS + 1):
            for one, other in zip(order, order[step:], strict=False):
                if len(pairs) < _MOST_PAIRS and _differ_in_a_letter(keys[one], keys[other]):
                    pairs.add((min(one, other), max(one, other)))
    pairs |= _reordered(names, folded)
    if not pairs:
        return None
    counts = labels.counts
    # A misspelling is rare and what was meant is frequent.
    ends = np.array(sorted(pairs))
    fewer, more = np.sort(counts[ends], axis=1).T
    first = ends[np.argsort((fewer + 1) / (more + 1), kind="stable")[:most]]
    return Finding(
        "similar_labels",
        "note",
        len(pairs),
        f"{counted(len(pairs), 'pair')} of labels differ in one letter or in the order of words",
        "Look whether one of the two is a misspelling, or a singular beside a plural, and merge such pairs.",
        [_group(labels, names, pair) for pair in first],
    )


def _differ_in_a_letter(one: str, other: str) -> bool:
    """Whether one letter was changed, left out, added, or swapped with the next one; digits are meant to differ."""
    if len(one) > len(other):
        one, other = other, one
    if len(other) - len(one) > 1 or one == other:
        return False
    same = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        same += 1
    rest, longer = one[same:], other[same:]
    if longer[:1].isdigit() or rest[:1].isdigit():
        return False
    if len(rest) < len(longer):
        return rest == longer[1:]
    return rest[1:] == longer[1:] or (rest[:2] == longer[1::-1] and rest[2:] == longer[2:])


def _reordered(names: Sequence[str], folded: Sequence[str]) -> set[tuple[int, int]]:
    """Pairs of names with the same words in another order."""
    several = [label for label, name in enumerate(names) if len(name.split()) > 1]
    words = (" ".join(sorted(map(fold_name, names[label].split()))) for label in several)
    groups = equal_groups(np.fromiter(map(hash, words), np.int64, len(several)))
    found: set[tuple[int, int]] = set()
    for start, stop in zip(groups.starts, groups.stops, strict=True):
        for one, other in pairwise(groups.members[start:stop].tolist()):
            if len(found) < _MOST_PAIRS and folded[several[one]] != folded[several[other]]:
                found.add((several[one], several[other]))
    return found


def odd_names(labels: LabelTable, names: Sequence[str], most: int) -> Iterator[Finding]:
    """Names that look like numbers or dates, or are damaged."""
    for code, pattern, what in (("number_labels", _NUMBER, "numbers"), ("date_labels", _DATE, "dates")):
        matching = [label for label, name in enumerate(names) if pattern.fullmatch(name.strip())]
        if matching:
            yield Finding(
                code,
                "note",
                len(matching),
                f"{len(matching):,} of {counted(len(names), 'label')} look{'s' * (len(matching) == 1)} like {what}",
                "If these are not names of classes, the column of the labels may be the wrong one.",
                [Example((int(labels.first[label]),), names[label]) for label in matching[:most]],
            )
    damaged = [(label, found) for label, name in enumerate(names) if (found := damages(name))]
    if damaged:
        first = damaged[0][1][0].code
        yield Finding(
            "damaged_labels",
            "warning",
            len(damaged),
            f"{counted(len(damaged), 'name')} of labels "
            f"contain{'s' * (len(damaged) == 1)} damaged characters or HTML entities",
            DAMAGE[first][1],
            [Example((int(labels.first[label]),), names[label]) for label, _ in damaged[:most]],
        )


def missing_labels(labels: LabelTable, names: Sequence[str], most: int) -> Finding | None:
    """Names that programs write where there is no value."""
    found = [label for label, name in enumerate(names) if name.strip().casefold() in _NOTHING]
    if not found:
        return None
    return Finding(
        "missing_labels",
        "warning",
        len(found),
        f"{counted(len(found), 'label')} look{'s' * (len(found) == 1)} like a cell without a value",
        "If such rows have no label, empty these cells.",
        [Example((int(labels.first[label]),), labels.described(label, names[label])) for label in found[:most]],
    )


def list_labels(labels: LabelTable, names: Sequence[str], most: int) -> Finding | None:
    """Names that look like several labels that were not split."""
    written = [label for label, name in enumerate(names) if name[:1] == "[" and name[-1:] == "]"]
    if written:
        return _list_finding(labels, names, written, "in brackets", "Split them before training.", most)
    known = set(names)
    for separator in _SEPARATORS:
        having = [label for label, name in enumerate(names) if separator in name]
        # Either most names have it, or all its parts are labels themselves: "Paris, Texas" is no list.
        if not (len(names) >= _FEWEST and len(having) > _MOST * len(names)):
            having = [label for label in having if all(part.strip() in known for part in names[label].split(separator))]
        if having:
            advice = f"If they are lists, split them; for CSV and TSV files set --label-separator {separator!r}."
            return _list_finding(labels, names, having, f"separated by {separator!r}", advice, most)
    return None


def _list_finding(
    labels: LabelTable, names: Sequence[str], found: Sequence[int], how: str, advice: str, most: int
) -> Finding:
    looks = "looks like a list" if len(found) == 1 else "look like lists"
    return Finding(
        "list_labels",
        "warning",
        len(found),
        f"{len(found):,} of {counted(len(names), 'label')} {looks} {how}",
        advice,
        [Example((int(labels.first[label]),), names[label]) for label in found[:most]],
    )
