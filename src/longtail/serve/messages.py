"""The requests and answers as pydantic models, which parse requests and describe both in `/openapi.json`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from longtail.printable import printable
from longtail.serve.refusal import Refusal, shortened

_Message = TypeVar("_Message", bound=BaseModel)


def _whole(value: Any) -> Any:
    """Accept 3.0 for 3, as JSON does not tell them apart."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


UNREADABLE = "expected a visible name without control characters and direction marks"


def is_readable(name: str) -> bool:
    """Whether people can read the name of a label."""
    return printable(name) == name and any(char.isprintable() and not char.isspace() for char in name)


def _new_label(name: str) -> str:
    """The name without spaces around it, if people can read it."""
    name = name.strip()
    if not is_readable(name):
        raise ValueError(UNREADABLE)
    return name


Places = Annotated[Annotated[int, Field(ge=1)] | Literal["auto"], BeforeValidator(_whole)]
Label = Annotated[str, Field(json_schema_extra={"format": "label"})]
# Stop at the first wrong item: a list of a million must not produce a million errors.
Labels = Annotated[list[Label], Field(fail_fast=True)]
JudgedLabels = Annotated[list[Annotated[Label, Field(min_length=1)]], Field(fail_fast=True)]
NewLabels = Annotated[list[Annotated[Label, AfterValidator(_new_label)]], Field(fail_fast=True)]
Texts = Annotated[list[str], Field(fail_fast=True)]


_VERSION: Any = Field(description="The fingerprint of the model.", examples=["9c56cc51b374c3ba"])


class _Request(BaseModel):
    # `parse` refuses unknown fields; pydantic would report each one of a hundred thousand.
    model_config = ConfigDict(extra="allow", strict=True)


class TagRequest(_Request):
    """Texts to tag. Exactly one of `text` and `texts` is required."""

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
    model: str | None = Field(None, description="The model; by default the first.")
    k: Places = Field("auto", description='Maximum number of labels for each text; "auto" for those worth giving.')
    allow: Labels | None = Field(None, description="Consider only these labels.")
    deny: Labels | None = Field(None, description="Leave out these labels.")
    threshold: float | None = Field(
        None,
        allow_inf_nan=False,
        description='Leave out labels with a lower score; with k "auto", instead of the threshold of the model.',
    )


class ExplainRequest(_Request):
    """A text, and the labels whose scores to explain."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    text: str = Field(description="The text.")
    labels: Labels = Field(min_length=1, description="Names of labels.")
    model: str | None = Field(None, description="The model; by default the first.")


class FeedbackRequest(_Request):
    """A correction of the labels of a text. At least one of `accepted`, `rejected` and `added` has a label.

    A label in several lists counts once: rejected wins over accepted, which wins over added.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "additionalProperties": False,
            "anyOf": [
                {"required": [field], "properties": {field: {"minItems": 1}}}
                for field in ("accepted", "rejected", "added")
            ],
            "examples": [{"text": "fit a straight line through noisy points", "added": ["curve fitting"]}],
        }
    )

    text: str = Field(min_length=1, description="The text.")
    model: str | None = Field(None, description="The model; by default the first.")
    id: str | None = Field(None, min_length=1, description="The id of the row; by default it follows from the text.")
    accepted: JudgedLabels = Field([], description="Labels that are right.")
    rejected: JudgedLabels = Field([], description="Labels that are wrong.")
    added: NewLabels = Field([], description="Labels that are missing; the model need not know them.")

    @model_validator(mode="after")
    def _says_something(self) -> FeedbackRequest:
        if not (self.accepted or self.rejected or self.added):
            raise ValueError("accepted, rejected and added are empty; give at least one label")
        return self


class ReloadRequest(_Request):
    """Which model to load again."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False, "examples": [{}]})

    model: str | None = Field(None, description="The model; by default all.")


class ScoredLabel(BaseModel):
    """A label and its score."""

    label: str = Field(examples=["numpy.polyfit"])
    score: float = Field(examples=[0.93])


class TagResult(BaseModel):
    """The labels of one text, best first."""

    tags: list[ScoredLabel]


class TagAnswer(BaseModel):
    """One result for each text, in the order of the request."""

    model: str = Field(examples=["demo-model"])
    version: str = _VERSION
    threshold: float | None = Field(
        description='The score from which the model gives a label with k "auto"; null if the learner has another rule.',
        examples=[0.31],
    )
    results: list[TagResult]


class ScoreReason(BaseModel):
    """A word, a run of words or a part of words such as ``kult…``, and what it contributes to the margin."""

    feature: str = Field(examples=["straight line"])
    contribution: float = Field(examples=[0.31])


class TextSegment(BaseModel):
    """A piece of the text and its contribution; the pieces joined are the text."""

    text: str = Field(examples=["straight"])
    contribution: float = Field(examples=[0.31])


class TreeStep(BaseModel):
    """A step on the path to the label in a label tree."""

    tree: int = Field(description="The tree, counted from 1.", examples=[1])
    name: str = Field(description="The node, or at the end the label, that the step leads to.", examples=["node 3"])
    n_labels: int = Field(description="Number of labels below it.", examples=[12])
    frequent: list[str] = Field(description="The most frequent of these labels.", examples=[["numpy.polyfit"]])
    probability: float = Field(examples=[0.97])
    margin: float = Field(examples=[3.5])
    intercept: float = Field(examples=[-0.2])
    reasons: list[ScoreReason]


class ScoreEvidence(BaseModel):
    """A number that the second stage of a model looked at, and how far it moved the log-odds of the score."""

    name: str = Field(examples=["votes of the 30 nearest rows"])
    value: float | None = Field(description="null for the average candidate, where the moves start.", examples=[0.8])
    contribution: float = Field(examples=[1.2])


class LabelExplanation(BaseModel):
    """Why a label has its score: all contributions and the intercept add up to the margin."""

    label: str = Field(examples=["numpy.polyfit"])
    score: float = Field(examples=[0.93])
    margin: float = Field(examples=[1.84])
    intercept: float = Field(examples=[-0.2])
    reasons: list[ScoreReason] = Field(description="The largest contributions, the largest first.")
    steps: list[TreeStep] = Field(description="The path in a label tree; empty for ridge.")
    evidence: list[ScoreEvidence] = Field(
        description="For models of two stages; the contributions add up to the log-odds of the score."
    )
    n_rows: int | None = Field(description="Number of training rows of the label.", examples=[42])
    segments: list[TextSegment]


class ExplainAnswer(BaseModel):
    """One explanation for each label, in the order of the request."""

    model: str = Field(examples=["demo-model"])
    explanations: list[LabelExplanation]


class FeedbackAnswer(BaseModel):
    """The correction is on disk."""

    model: str = Field(examples=["demo-model"])
    version: str = _VERSION
    time: str = Field(examples=["2026-01-31T12:00:00.000+00:00"])


class ReloadedModel(BaseModel):
    """A model that was loaded again, or had not changed."""

    name: str = Field(examples=["demo-model"])
    version: str = _VERSION
    saved_at: str = Field(examples=["2026-01-31T12:00:00+00:00"])
    changed: bool = Field(description="Whether this version is new to the service.")


class ReloadAnswer(BaseModel):
    """The models that were asked for, as the service has them now."""

    models: list[ReloadedModel]


class WaitingCorrections(BaseModel):
    """The corrections that a model has not learnt."""

    waiting: int = Field(description="Number of texts with such corrections.", examples=[3])


class ModelDescription(BaseModel):
    """A model of the service."""

    name: str = Field(examples=["demo-model"])
    version: str = _VERSION
    kind: str = Field(examples=["LabelTree"])
    n_labels: int = Field(examples=[3956])
    takes_texts: bool = Field(examples=[True])
    threshold: float | None = Field(description="As in the answer of `/v1/tag`.", examples=[0.31])
    always_one: bool = Field(description='Whether k "auto" always gives the best label.', examples=[False])
    size_bytes: int = Field(examples=[8_000_000])
    saved_at: str = Field(examples=["2026-01-31T12:00:00+00:00"])
    corrections: WaitingCorrections | None = Field(description="null if the service keeps no corrections.")
    card: dict[str, Any] | None


class ModelsAnswer(BaseModel):
    """All models, the default first."""

    models: list[ModelDescription]


class LabelCount(BaseModel):
    """A label and its number of training texts."""

    label: str = Field(examples=["numpy.polyfit"])
    count: int = Field(examples=[42])


class LabelsAnswer(BaseModel):
    """The labels found, most frequent first."""

    model: str = Field(examples=["demo-model"])
    labels: list[LabelCount]


class HealthAnswer(BaseModel):
    """The state of the service."""

    status: str = Field(examples=["ready"])


class ErrorDescription(BaseModel):
    """A code for programs and a message for people."""

    code: str = Field(examples=["too_many_texts"])
    message: str = Field(examples=["the request has 101 texts; the maximum is 100"])


class ErrorAnswer(BaseModel):
    """Why a request was refused."""

    error: ErrorDescription


def parse(kind: type[_Message], body: bytes) -> _Message:
    """Parse a request, or raise a `Refusal` that says what is wrong.

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
            raise Refusal("not_json", f"the body is not JSON in UTF-8: {first['msg']}") from None
        raise invalid(first["loc"], first["msg"].removeprefix("Value error, ")) from None
    for unknown in message.model_extra or ():
        raise invalid((unknown,), f"unknown field; expected {', '.join(kind.model_fields)}")
    return message


def invalid(place: tuple[int | str, ...], reason: str) -> Refusal:
    """The refusal of one wrong field."""
    if place[:1] == ("k",):  # of the two kinds that it can be, the first has failed
        place, reason = place[:1], f'{reason}, or "auto"'
    where = ".".join(_part(part) for part in place) or "the body"
    return Refusal("invalid_request", f"{where}: {reason}")


def _part(part: int | str) -> str:
    """A step to the wrong field; all but positions and our own names come from the request."""
    return str(part) if isinstance(part, int) or part in _FIELDS else shortened(part, 40)


_REQUESTS = (TagRequest, ExplainRequest, FeedbackRequest, ReloadRequest)
_FIELDS = {*(name for kind in _REQUESTS for name in kind.model_fields), "prefix", "limit", "query"}
