"""`Refusal` and `ERRORS`: every error the service answers with, its HTTP status, and its JSON.

The answer to an error is looked up by the error's code, or by its class. Its message is never looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from longtail.errors import LongtailError
from longtail.printable import json_text

_MESSAGE_LENGTH = 600


class ErrorKind(NamedTuple):
    """The HTTP status of an error, and when it occurs."""

    status: int
    when: str


ERRORS = {
    "not_http": ErrorKind(400, "The request is not HTTP/1.1."),
    "not_json": ErrorKind(400, "The body is not JSON in UTF-8, or is nested too deeply."),
    "no_token": ErrorKind(401, "The bearer token is missing or wrong."),
    "cross_site": ErrorKind(403, "A web page of another site sent a request that changes something."),
    "not_found": ErrorKind(404, "The path does not exist."),
    "unknown_model": ErrorKind(404, "The service has no model of that name."),
    "method_not_allowed": ErrorKind(405, "The path needs another method, which the `Allow` header names."),
    "headers_too_slow": ErrorKind(408, "The headers did not arrive in time."),
    "body_too_slow": ErrorKind(408, "The body did not arrive in time."),
    "body_too_large": ErrorKind(413, "The body is too large."),
    "not_declared_json": ErrorKind(415, "`Content-Type` is not `application/json`."),
    "wrong_host": ErrorKind(421, "The `Host` header names another host."),
    "invalid_request": ErrorKind(422, "A field or parameter is missing, unknown, or has an invalid value."),
    "text_or_texts": ErrorKind(422, "The request has both `text` and `texts`, or neither."),
    "too_many_texts": ErrorKind(422, "The request has too many texts."),
    "text_too_long": ErrorKind(422, "A text has too many characters."),
    "k_too_large": ErrorKind(422, "`k` is above its limit."),
    "filter_too_long": ErrorKind(422, "`allow` or `deny` has too many labels."),
    "too_many_labels": ErrorKind(422, "The request has too many labels to explain or to correct."),
    "label_too_long": ErrorKind(422, "A label of a correction has too many characters."),
    "not_one_class": ErrorKind(422, "Each text has one class, but the correction names none, or several."),
    "model_takes_features": ErrorKind(422, "The model takes feature vectors, not texts."),
    "unknown_label": ErrorKind(422, "The model has no label of that name; `/v1/labels` finds names."),
    "cannot_explain": ErrorKind(422, "The model cannot explain its scores, or not those of this label."),
    "not_finite": ErrorKind(422, "A score is not a finite number; the model's weights may be damaged."),
    "not_enough_memory": ErrorKind(422, "The request needs more memory than the service has."),
    "invalid_input": ErrorKind(422, "The model rejects the input for another reason, given in the message."),
    "queue_full": ErrorKind(429, "Too many texts or requests are waiting."),
    "too_many_requests": ErrorKind(429, "Too many requests are in progress."),
    "too_many_bytes": ErrorKind(429, "The requests in progress hold too many bytes."),
    "headers_too_large": ErrorKind(431, "The request line and headers are too large."),
    "internal_error": ErrorKind(500, "The service failed; its log has the stack trace."),
    "feedback_failed": ErrorKind(500, "The correction could not be written; the log has the reason."),
    "reload_failed": ErrorKind(
        500, "A new version failed to load, and the earlier one goes on; the log has the reason."
    ),
    "shutting_down": ErrorKind(503, "The service is shutting down."),
    "deadline_passed": ErrorKind(503, "The request was not answered in time."),
    "too_many_connections": ErrorKind(503, "All connections are busy."),
    "feedback_full": ErrorKind(507, "The file of corrections has reached its limit, or the disk is full."),
}


class Refusal(LongtailError):
    """A request that is refused; raised anywhere below the guard, which sends it as the answer.

    Parameters
    ----------
    code : str
        A key of `ERRORS`, which gives the status.
    message : str
        For people: what was found, what is expected, what to do.
    headers : dict or None
        Such as ``retry-after``.

    Examples
    --------
    >>> refusal = Refusal("not_found", "this path does not exist")
    >>> refusal.status, refusal.body()
    (404, b'{"error": {"code": "not_found", "message": "this path does not exist"}}')
    """

    def __init__(self, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message, code=code)
        self.status = ERRORS[code].status
        self.headers = headers or {}

    def body(self) -> bytes:
        """The JSON of the answer."""
        return as_json({"error": {"code": self.code, "message": str(self)}})


def refusal_of(error: Exception) -> Refusal | None:
    """The answer to an error, or None for a failure of the service, which only its log may tell.

    Examples
    --------
    >>> from longtail.errors import InvalidInput, ModelFormatError
    >>> refusal_of(InvalidInput("the model has no label 'x'", code="unknown_label")).status
    422
    >>> refusal_of(ModelFormatError("/models/a is damaged")) is None
    True
    """
    if isinstance(error, Refusal):
        return error
    if isinstance(error, LongtailError):
        classes = (each.default_code for each in type(error).__mro__ if issubclass(each, LongtailError))
        for code in (error.code, *classes):
            if code in ERRORS:
                message = str(error)
                return Refusal(code, message if len(message) <= _MESSAGE_LENGTH else message[:_MESSAGE_LENGTH] + "...")
    return None


def as_json(content: Any) -> bytes:
    """JSON in UTF-8."""
    return json_text(content).encode("utf-8", "backslashreplace")


def shortened(text: str, length: int = 80) -> str:
    """A part of a request, quoted in a message.

    >>> shortened("abc"), shortened("abcdef", 4)
    ("'abc'", "'abcd...'")
    """
    return repr(text if len(text) <= length else text[:length] + "...")
