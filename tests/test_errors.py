"""Errors: their codes are documented, their facts survive pickling, and advice can be replaced."""

import ast
import copy
import pickle
import re
from pathlib import Path

import pytest

import longtail
from longtail import errors
from longtail.errors import DataFormatError, InvalidInput, LongtailError

SOURCES = Path(longtail.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "errors.md"
CLASSES = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LongtailError)]


def codes_in_source() -> set[str]:
    """Literals of `default_code` and of a keyword `code`, those of conditional expressions too."""
    found: set[str] = {kind.default_code for kind in CLASSES}
    for path in [*SOURCES.rglob("*.py"), *(SOURCES.parent / "longtail_papers").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "code":
                parts = [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value]
                found |= {part.value for part in parts if isinstance(part, ast.Constant) and part.value is not None}
    return {code for code in found if isinstance(code, str)}


def test_the_page_lists_every_code_and_no_other() -> None:
    listed = re.findall(r"^\| `(\w+)` \| `", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == codes_in_source()


def test_the_page_names_the_class_of_each_default_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for kind in CLASSES:
        assert f"| `{kind.default_code}` | `{kind.__name__}` |" in page


def make(kind: type[LongtailError]) -> LongtailError:
    facts = {"code": "missing_key", "name": "text", "found": ["title"], "advice": "rename it"}
    if issubclass(kind, DataFormatError):
        return kind("notes.jsonl", 3, "no key 'text'", column=2, **facts)
    return kind("no key 'text'", path="notes.jsonl", line=3, column=2, **facts)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_survives_copying_and_pickling(kind, again) -> None:
    error = make(kind)
    other = again(error)
    assert type(other) is kind
    assert (str(other), other.args, vars(other)) == (str(error), error.args, vars(error))


def test_advice_is_the_last_part_of_the_text_and_can_be_replaced() -> None:
    error = make(DataFormatError)
    assert str(error) == "notes.jsonl:3: no key 'text'; rename it"
    other = error.advised("say --text-column")
    assert str(other) == "notes.jsonl:3: no key 'text'; say --text-column"
    assert (type(other), other.code, other.line, other.found) == (DataFormatError, "missing_key", 3, ("title",))
    assert str(error).endswith("rename it")


def test_an_error_without_code_has_that_of_its_class() -> None:
    assert InvalidInput("wrong").code == "invalid_input"
    assert DataFormatError("a.csv", None, "empty").code == "data_format"
