"""What requests and answers look like: read with these models, and described by them in `/openapi.json`."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from longtail.serve.refusal import Refusal, shortened

_Message = TypeVar("_Message", bound=BaseModel)


def _whole(value: Any) -> Any:
    """In JSON 3.0 is the whole number 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]
Label = Annotated[str, Field(json_schema_extra={"format": "label"})]
# One wrong item is enough to know; a list of a million must not become a million errors.
Labels = Annotated[list[Label], Field(fail_fast=True)]
Texts = Annotated[list[str], Field(fail_fast=True)]


class _Request(BaseModel):
    # Unknown fields are let in and refused by `parse`: pydantic would describe each of a hundred thousand.
    model_config = ConfigDict(extra="allow", strict=True)


class TagRequest(_Request):
    """A text, or several, to tag; exactly one of `text` and `texts` is given."""

    model_config = ConfigDict(
        json_schema_extra={
            "additionalProperties": False,
            "oneOf": [{"required": ["text"]}, {"required": ["texts"]}],
            "examples": [
                {"text": "fit a straight line through noisy points", "k": 3},
                {"texts": ["read numbers from a text file", "solve a differential equation"], "threshold": 0.2},
            ],
        }
    )

    text: str = Field("", description="One text.")
    texts: Texts = Field([], description="Several texts.", min_length=1)
    model: str | None = Field(None, description="Which of the models; the first unless given.")
    k: Whole = Field(5, ge=1, description="The most labels for each text.")
    allow: Labels | None = Field(None, description="Give only these labels.")
    deny: Labels | None = Field(None, description="Never give these labels.")
    threshold: float | None = Field(None, allow_inf_nan=False, description="Leave out labels with a lower score.")


class ExplainRequest(_Request):
    """A text and the labels whose scores are to be explained."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    text: str = Field(description="The text.")
    labels: Labels = Field(min_length=1, description="Labels of the model.")
    model: str | None = Field(None, description="Which of the models; the first unless given.")


class ScoredLabel(BaseModel):
    """A label and its score."""

    label: str = Field(examples=["numpy.polyfit"])
    score: float = Field(examples=[0.93])


class TagResult(BaseModel):
    """The labels of one text, best first."""

    tags: list[ScoredLabel]


class TagAnswer(BaseModel):
    """One result for each text, in their order."""

    model: str = Field(examples=["demo-model"])
    results: list[TagResult]


class WordShare(BaseModel):
    """A feature and what it adds to the margin."""

    word: str = Field(examples=["straight line"])
    adds: float = Field(examples=[0.31])


class TextSegment(BaseModel):
    """A piece of the text and what its words add; all pieces together are the text."""

    text: str = Field(examples=["straight"])
    adds: float = Field(examples=[0.31])


class TreeStep(BaseModel):
    """A step on the path to the label in a label tree."""

    tree: int = Field(description="Which of the trees, counted from 1.", examples=[1])
    to: str = Field(examples=["node 3"])
    n_labels: int = Field(examples=[12])
    probability: float = Field(examples=[0.97])


class LabelExplanation(BaseModel):
    """Why a label has its score; all that its words add, and the intercept, is the margin."""

    label: str = Field(examples=["numpy.polyfit"])
    score: float = Field(examples=[0.93])
    margin: float = Field(examples=[1.84])
    intercept: float = Field(examples=[-0.2])
    words: list[WordShare]
    segments: list[TextSegment]
    steps: list[TreeStep]


class ExplainAnswer(BaseModel):
    """An explanation for each label, in their order."""

    model: str = Field(examples=["demo-model"])
    explanations: list[LabelExplanation]


class ModelDescription(BaseModel):
    """A model that is served."""

    name: str = Field(examples=["demo-model"])
    kind: str = Field(examples=["LabelTree"])
    n_labels: int = Field(examples=[3956])
    takes_texts: bool = Field(examples=[True])
    size_bytes: int = Field(examples=[8_000_000])
    saved_at: str = Field(examples=["2026-01-31T12:00:00+00:00"])
    card: dict[str, Any] | None


class ModelsAnswer(BaseModel):
    """The models, the default first."""

    models: list[ModelDescription]


class LabelCount(BaseModel):
    """A label and the number of texts it was learnt from."""

    label: str = Field(examples=["numpy.polyfit"])
    count: int = Field(examples=[42])


class LabelsAnswer(BaseModel):
    """Labels whose names are as asked, most frequent first."""

    model: str = Field(examples=["demo-model"])
    labels: list[LabelCount]


class HealthAnswer(BaseModel):
    """How the service is."""

    status: str = Field(examples=["ready"])


class ErrorDescription(BaseModel):
    """A code for programs and a message for people."""

    code: str = Field(examples=["too_many_texts"])
    message: str = Field(examples=["the request holds 101 texts; at most 100 are taken. Send several requests"])


class ErrorAnswer(BaseModel):
    """Why a request was refused."""

    error: ErrorDescription


def parse(kind: type[_Message], body: bytes) -> _Message:
    """Read a request, or raise the `Refusal` that says what is wrong with it.

    Examples
    --------
    >>> parse(TagRequest, b'{"text": "a straight line", "k": 3}').k
    3
    >>> parse(TagRequest, b'{"text": 3}')
    Traceback (most recent call last):
    longtail.serve.refusal.Refusal: text: Input should be a valid string
    """
    try:
        message = kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise Refusal(400, "not_json", f"the body is not JSON in UTF-8: {first['msg']}") from None
        raise invalid(first["loc"], first["msg"]) from None
    for unknown in message.model_extra or ():
        raise invalid((unknown,), f"there is no such field; expected {', '.join(kind.model_fields)}")
    return message


def invalid(place: tuple[int | str, ...], reason: str) -> Refusal:
    """The refusal of one wrong field."""
    where = ".".join(part if part in _FIELDS else shortened(str(part), 40) for part in map(str, place)) or "the body"
    return Refusal(422, "invalid_request", f"{where}: {reason}")


_FIELDS = {*TagRequest.model_fields, *ExplainRequest.model_fields, "prefix", "limit", "query"}
