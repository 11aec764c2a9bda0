"""Sections of the card of a model that commands write: data, training, metrics."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from longtail.cli.inputs import STANDARD_INPUT, Data, each_of
from longtail.files import is_url
from longtail.printable import counted, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from longtail.audit import CorpusAudit
    from longtail.metrics import Report
    from longtail.tagger import History

EVERY = "every"
_ROWS = ("rows_added", "rows_changed", "rows_removed")
_SHOWN = ("P@1", "P@5", "R@5", "nDCG@5")


def source(data: Data, part: str) -> str:
    """The name of DATA on a card, which travels with the model: file names without folders."""
    return ", ".join(_source(each, part) for each in each_of(data))


def _source(data: str, part: str) -> str:
    if data == STANDARD_INPUT:
        return "standard input"
    if is_url(data):
        data = PurePosixPath(data).name
    return Path(data).name if Path(data).is_file() else f"{data.lower()}, {part} part"


def learnt_from(card: Mapping[str, Any] | None, data: Data) -> str:
    """A warning if, by its card, the model was trained on DATA, which it is evaluated on; else an empty string.

    Standard input has no name to compare, so there is no warning.
    """
    known = (card or {}).get("data", {})
    named = {known.get("covers"), known.get("source"), *str(known.get("source", "")).split(", ")}
    for each in each_of(data):
        if each != STANDARD_INPUT and any(_source(each, part) in named for part in ("test", EVERY)):
            what = (
                f"a file of this name, {Path(each).name}" if Path(each).is_file() else f"every part of {each.lower()}"
            )
            return f"the model was trained on {what}; results on training rows are better than on new rows"
    return ""


def now() -> str:
    """The current time, as written on a card."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def metrics_section(report: Report, data: str) -> dict[str, Any]:
    """Metrics, with the rows they come from and the time."""
    found = report.to_dict()
    return {
        "data": data,
        "at": now(),
        "rows": report.n_rows,
        "labels": report.n_labels,
        "metrics": found["metrics"],
        "groups": found["groups"],
    }


def updates_section(history: History, due: Sequence[str], data: str, at: str, until: datetime) -> dict[str, Any]:
    """What a model has learnt since its last full training, and why another one is due.

    `until` is the time of the newest correction that the model has learnt; later ones wait.
    """
    counts = {"updates": history.updates, "corrections": history.corrections}
    rows = {f"rows_{name}": getattr(history, name) for name in ("added", "changed", "removed")}
    return {"data": data, "at": at, **counts, "corrections_until": until.isoformat(), **rows, "due": list(due)}


def audit_section(found: CorpusAudit, data: str) -> dict[str, Any]:
    """What an audit found, on which label sets and when."""
    return {"data": data, "at": now(), **found.for_card()}


def card_lines(card: Mapping[str, Any]) -> Iterator[str]:
    """A card as a few lines of text."""
    for name, line in (
        ("data", _data_line(card.get("data", {}))),
        ("trained", _trained_line(card.get("trained", {}))),
        ("updated", _updates_line(card.get("updates", {}))),
        ("tags", _decision_line(card.get("decision", {}))),
        ("measured", _metrics_line(card.get("metrics", {}))),
        ("audited", _audit_line(card.get("audit", {}))),
    ):
        if line:
            yield f"{name}: {printable(line)}"


def _data_line(data: Mapping[str, Any]) -> str:
    counts = [counted(data[name], name.removesuffix("s")) for name in ("rows", "labels") if name in data]
    return ", ".join([*_texts(data, "source"), *counts])


def _trained_line(trained: Mapping[str, Any]) -> str:
    took = [f"took {trained['seconds']:.1f} s"] if "seconds" in trained else []
    return "; ".join([*_texts(trained, "at"), *took, *_texts(trained, "reason")])


def _updates_line(updates: Mapping[str, Any]) -> str:
    if "updates" not in updates:
        return ""
    told = [f"{updates[name]:,} {name.removeprefix('rows_')}" for name in _ROWS if name in updates]
    times = counted(updates["updates"], "time")
    rows = [f"rows: {', '.join(told)}"] if told else []
    learnt = [f"{counted(updates['corrections'], 'correction')} learnt"] if updates.get("corrections") else []
    due = ["a full training is due"] if updates.get("due") else []
    return "; ".join([times, *rows, *learnt, *_texts(updates, "at"), *due])


def _decision_line(decision: Mapping[str, Any]) -> str:
    shown = [f"aim {decision['aim']}"] if decision.get("aim") else []
    shown += [f"from probability {decision['threshold']:.3f} on"] if "threshold" in decision else []
    names = [name for name in ("precision", "recall", "f1") if name in decision]
    shown += [", ".join(f"{name} {100 * decision[name]:.1f}" for name in names)] if names else []
    shown += [f"{decision['labels_per_row']:.1f} per row"] if "labels_per_row" in decision else []
    return "; ".join([*shown, *([f"calibration error {decision['error']:.3f}"] if "error" in decision else [])])


def _metrics_line(measured: Mapping[str, Any]) -> str:
    values = measured.get("metrics", {})
    names = [name for name in _SHOWN if name in values] or list(values)[: len(_SHOWN)]
    shown = ", ".join(f"{name} {100 * values[name]:.2f}" for name in names)
    return "; ".join(([shown] if shown else []) + _texts(measured, "data", "at"))


def _audit_line(audit: Mapping[str, Any]) -> str:
    sets = []
    if "unargmaxable" in audit and "label_sets" in audit:
        sets = [f"{audit['unargmaxable']:,} of {counted(audit['label_sets'], 'label set')} can never be predicted"]
    return "; ".join(sets + _texts(audit, "data", "at"))


def _texts(section: Mapping[str, Any], *names: str) -> list[str]:
    return [section[name] for name in names if section.get(name)]
