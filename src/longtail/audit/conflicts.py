"""The labels of a certificate in words."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.estimator import Rule

_NAMES_SHOWN = 8


def describe_conflict(
    with_labels: Sequence[str], without: Sequence[str], rule: Rule = "predict", most: int = _NAMES_SHOWN
) -> str:
    """A certificate in words: labels that cannot all be given while none of the others is.

    Examples
    --------
    >>> describe_conflict(["A", "B"], ["C"])
    'no input can have A and B without C'
    >>> describe_conflict(["A"], ["B", "C"])
    'no input can have A without one of B and C'
    >>> describe_conflict([], ["B", "C"])
    'every input has one of B and C'
    >>> describe_conflict(["A", "B"], ["C", "D"], "topk")
    'no input ranks A and B above C and D'
    """
    if rule == "topk":
        return f"no input ranks {_listed(with_labels, most)} above {_listed(without, most)}"
    one_of = "" if len(without) == 1 else "one of "
    if not with_labels:
        return f"every input has {one_of}{_listed(without, most)}"
    if not without:
        together = " together" if len(with_labels) > 1 else ""
        return f"no input can have {_listed(with_labels, most)}{together}"
    return f"no input can have {_listed(with_labels, most)} without {one_of}{_listed(without, most)}"


def _listed(names: Sequence[str], most: int) -> str:
    if len(names) == 1:
        return names[0]
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} others"
    return f"{', '.join(names[:-1])} and {names[-1]}"
