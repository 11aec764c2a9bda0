"""The names of subword features: how to recognise one, and how to show it to people.

`TextFeatures` marks a subword with ``<`` at the beginning of a word, and with ``~`` elsewhere. Tokens contain neither.
"""

from __future__ import annotations


def is_subword(feature: str) -> bool:
    """Whether a feature is a run of letters, not a word or a run of words.

    >>> is_subword("<kult"), is_subword("~ultur"), is_subword("kultur")
    (True, True, False)
    """
    return len(feature) > 1 and feature[0] in "<~"


def readable_feature(feature: str) -> str:
    """The name of a feature for people: subwords get dots where letters may follow or precede.

    >>> [readable_feature(feature) for feature in ("kultur", "<kult", "~ultur")]
    ['kultur', 'kult…', '…ultur…']
    """
    if not is_subword(feature):
        return feature
    return f"{feature[1:]}…" if feature[0] == "<" else f"…{feature[1:]}…"
