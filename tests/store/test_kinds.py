"""The classes that can be loaded."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from longtail.errors import InvalidInput, ModelFormatError
from longtail.store import State, kinds, put_learner_together, put_together, register


class Constant:
    @classmethod
    def from_state(cls, state):
        return cls()


@pytest.fixture(autouse=True)
def forgotten_afterwards(monkeypatch):
    monkeypatch.setattr(kinds, "_registered", {})


def test_a_registered_class_is_put_together():
    with pytest.raises(ModelFormatError, match="'Constant'; known classes are"):
        put_together(State("Constant"))
    assert register(Constant) is Constant
    assert isinstance(put_together(State("Constant")), Constant)
    assert isinstance(put_learner_together(State("Constant")), Constant)


def test_an_installed_package_may_declare_a_class(monkeypatch):
    asked = []

    def entry_points(group, name):
        asked.append((group, name))
        return [SimpleNamespace(load=lambda: Constant)] if name == "Constant" else []

    monkeypatch.setattr(kinds, "entry_points", entry_points)
    assert isinstance(put_together(State("Constant")), Constant)
    assert isinstance(put_together(State("Constant")), Constant)
    assert asked == [("longtail.learners", "Constant")]
    with pytest.raises(ModelFormatError, match="'Other'"):
        put_together(State("Other"))


def test_no_class_takes_the_name_of_one_of_ours():
    with pytest.raises(InvalidInput, match="longtail has a class Ridge already"):
        register(type("Ridge", (), {}))


def test_only_learners_of_rows_are_inside_other_models():
    for kind in ("Tagger", "AggregatedClassifier", "TextFeatures"):
        with pytest.raises(ModelFormatError, match="does not learn from rows"):
            put_learner_together(State(kind))
