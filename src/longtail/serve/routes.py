"""The routes: those under `/v1`, health, metrics, and the page. Each checks its limits and makes one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

from fastapi import APIRouter, Query, Request, Response

from longtail.serve import messages
from longtail.serve.batching import Batcher, shutting_down
from longtail.serve.feedback import FeedbackFile, correction
from longtail.serve.limits import Limits
from longtail.serve.measures import Measures
from longtail.serve.messages import (
    UNREADABLE,
    ExplainRequest,
    FeedbackRequest,
    ReloadRequest,
    TagRequest,
    invalid,
    is_readable,
    parse,
)
from longtail.serve.pages import add_page
from longtail.serve.refusal import ERRORS, Refusal, as_json, shortened
from longtail.serve.reloading import Reloading
from longtail.serve.served import ServedModel, find_model
from longtail.tagger import Tag

Names = tuple[str, ...] | None

BODY = "longtail.body"


@dataclass(frozen=True)
class Feedback:
    """Where corrections go, and the thread that writes them."""

    file: FeedbackFile
    writing: Batcher


@dataclass(frozen=True)
class Service:
    """What the routes share: `scoring` tags texts, `lookups` does everything else that takes time.

    Without `feedback` or `reloading`, their routes do not exist.
    """

    models: dict[str, ServedModel]
    limits: Limits
    measures: Measures
    scoring: Batcher
    lookups: Batcher
    feedback: Feedback | None = None
    reloading: Reloading | None = None


class TagOptions(NamedTuple):
    """What requests must have in common to be scored together."""

    model: ServedModel
    k: int | str
    most: int
    allow: Names
    deny: Names
    threshold: float | None


def tag_group(options: TagOptions, texts: list[str]) -> list[list[Tag]]:
    """The work of the scoring thread: tag the texts of several requests with the same options."""
    model, k, most, allow, deny, threshold = options
    return [tags[:most] for tags in model.tagger.tag(texts, k, allow=allow, deny=deny, threshold=threshold)]


def call_each(call: Callable[[], Any], items: list[Any]) -> list[Any]:
    """The work of the second thread: each request is a call of its own."""
    return [call() for _ in items]


def make_router(service: Service) -> APIRouter:
    """The routes of `service`."""
    router = APIRouter()
    limits, models = service.limits, service.models

    @router.post(
        "/v1/tag",
        responses=_responses(messages.TagAnswer, 400, 401, 404, 408, 413, 415, 422, 429, 500, 503),
        openapi_extra=_body("TagRequest"),
        response_class=Response,
        summary="Tag texts",
    )
    async def tag(request: Request) -> Response:
        """Return the best labels of one or more texts."""
        asked = parse(TagRequest, request.scope[BODY])
        texts = _texts(asked, limits)
        model = find_model(models, asked.model)
        model.check_takes_texts()
        if isinstance(asked.k, int):
            _at_most(limits.k, asked.k, "k_too_large", f"k is {asked.k if asked.k < 10**12 else 'larger than 10^12'}")
        allow, deny = _filter("allow", asked.allow, limits), _filter("deny", asked.deny, limits)
        options = TagOptions(model, asked.k, limits.k, allow, deny, asked.threshold)
        found = await service.scoring.run(options, texts, _hang_up(request))
        results = [{"tags": [tag._asdict() for tag in tags]} for tags in found]
        about = {"model": model.name, "version": model.version, "threshold": model.threshold}
        return _json({**about, "results": results})

    @router.post(
        "/v1/explain",
        responses=_responses(messages.ExplainAnswer, 400, 401, 404, 408, 413, 415, 422, 429, 500, 503),
        openapi_extra=_body("ExplainRequest"),
        response_class=Response,
        summary="Explain scores",
    )
    async def explain(request: Request) -> Response:
        """Return what each word of a text contributes to the scores of labels."""
        asked = parse(ExplainRequest, request.scope[BODY])
        _check_length(asked.text, limits)
        count = len(asked.labels)
        _at_most(limits.explained_labels, count, "too_many_labels", f"the request has {count} labels")
        model = find_model(models, asked.model)
        model.check_takes_texts()
        call = partial(model.explain, asked.text, asked.labels, limits.words)
        [found] = await service.lookups.run(call, (None,), _hang_up(request))
        return _json({"model": model.name, "explanations": found})

    @router.get(
        "/v1/models",
        responses=_responses(messages.ModelsAnswer, 401, 429, 500, 503),
        response_class=Response,
        summary="List models",
    )
    async def list_models() -> Response:
        """Return the models and their cards, the default model first."""
        feedback = None if service.feedback is None else service.feedback.file
        [found] = await service.lookups.run(lambda: [model.describe(feedback) for model in models.values()], (None,))
        return _json({"models": found})

    @router.get(
        "/v1/labels",
        responses=_responses(messages.LabelsAnswer, 401, 404, 422, 429, 500, 503),
        response_class=Response,
        summary="Find labels",
    )
    async def labels(
        request: Request,
        prefix: str = Query("", max_length=200, description="The beginning of the name."),
        contains: str = Query("", max_length=200, description="Any part of the name."),
        model: str | None = Query(None, description="The model; by default the first."),
        limit: int = Query(20, ge=1, le=limits.found_labels, description="Maximum number of labels."),
    ) -> Response:
        """Return the labels whose names match, ignoring ASCII case, most frequent first."""
        _check_query(request, ("prefix", "contains", "model", "limit"))
        served = find_model(models, model)
        [found] = await service.lookups.run(partial(served.tagger.find_labels, prefix, contains, limit), (None,))
        return _json({"model": served.name, "labels": [asdict(label) for label in found]})

    if service.feedback is not None:
        add_feedback(router, service, service.feedback)
    if service.reloading is not None:
        add_reload(router, service, service.reloading)

    @router.get("/health/live", responses=_responses(messages.HealthAnswer, 500), response_class=Response)
    async def live() -> Response:
        """Tell that the process responds."""
        return _json({"status": "live"})

    @router.get("/health/ready", responses=_responses(messages.HealthAnswer, 500, 503), response_class=Response)
    async def ready() -> Response:
        """Tell whether the service accepts requests."""
        if service.scoring.closed:
            raise shutting_down()
        return _json({"status": "ready"})

    @router.get(
        "/metrics",
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **_refusals(401, 500)},
        response_class=Response,
    )
    async def metrics() -> Response:
        """Return metrics for Prometheus."""
        return Response(service.measures.text(), headers={"content-type": service.measures.content_type})

    add_page(router)
    return router


def add_feedback(router: APIRouter, service: Service, feedback: Feedback) -> None:
    """Add the route that keeps corrections."""
    limits = service.limits

    @router.post(
        "/v1/feedback",
        responses=_responses(messages.FeedbackAnswer, 400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503, 507),
        openapi_extra=_body("FeedbackRequest"),
        response_class=Response,
        summary="Correct tags",
    )
    async def correct(request: Request) -> Response:
        """Keep a correction of the labels of a text; it is on disk before the answer."""
        asked = parse(FeedbackRequest, request.scope[BODY])
        model = find_model(service.models, asked.model)
        model.check_takes_texts()
        _check_length(asked.text, limits)
        if asked.id is not None and len(asked.id) > limits.label_characters:
            raise invalid(("id",), f"the maximum is {limits.label_characters} characters")
        for field in ("accepted", "rejected", "added"):
            _check_labels(field, getattr(asked, field), limits)
        _check_accepted(asked.accepted, model)
        record = correction(
            model.name,
            model.version,
            asked.text,
            accepted=asked.accepted,
            rejected=asked.rejected,
            added=asked.added,
            row=asked.id,
        )
        if model.has_classes and len(record["accepted"]) + len(record["added"]) != 1:
            message = "the model gives each text exactly one label; accept or add the one that is right"
            raise Refusal("not_one_class", message)
        await feedback.writing.run(feedback.file, [record])
        service.measures.correction(model.name)
        return _json({"model": model.name, "version": model.version, "time": record["time"]})


def add_reload(router: APIRouter, service: Service, reloading: Reloading) -> None:
    """Add the route that loads new versions of models."""

    @router.post(
        "/v1/models/reload",
        responses=_responses(messages.ReloadAnswer, 400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503),
        openapi_extra=_body("ReloadRequest"),
        response_class=Response,
        summary="Load new versions",
    )
    async def reload(request: Request) -> Response:
        """Load one or all models again from their directories; requests go on meanwhile."""
        asked = parse(ReloadRequest, request.scope[BODY])
        names = list(service.models) if asked.model is None else [find_model(service.models, asked.model).name]
        changed = await reloading.run(names)
        answer = [{**service.models[name].identify(), "changed": new} for name, new in zip(names, changed, strict=True)]
        return _json({"models": answer})


def _json(content: Any) -> Response:
    return Response(as_json(content), media_type="application/json")


def _at_most(most: int, count: int, code: str, what: str) -> None:
    if count > most:
        raise Refusal(code, f"{what}; the maximum is {most}")


def _texts(asked: TagRequest, limits: Limits) -> list[str]:
    given = asked.model_fields_set & {"text", "texts"}
    if len(given) != 1:
        found = "both" if given else "neither"
        raise Refusal("text_or_texts", f"the request has {found} of text and texts; give exactly one of them")
    texts = asked.texts if "texts" in given else [asked.text]
    _at_most(limits.texts, len(texts), "too_many_texts", f"the request has {len(texts)} texts")
    for text in texts:
        _check_length(text, limits)
    return texts


def _check_length(text: str, limits: Limits) -> None:
    about = f"the text {shortened(text, 20)} has {len(text)} characters"
    _at_most(limits.characters, len(text), "text_too_long", about)


def _check_labels(field: str, labels: list[str], limits: Limits) -> None:
    _at_most(limits.corrected_labels, len(labels), "too_many_labels", f"{field} has {len(labels)} labels")
    for label in labels:
        about = f"the label {shortened(label, 20)} has {len(label)} characters"
        _at_most(limits.label_characters, len(label), "label_too_long", about)


def _check_accepted(labels: list[str], model: ServedModel) -> None:
    """Refuse names that nobody can read, unless the model has them: the next update would make them labels."""
    unreadable = [label for label in labels if not is_readable(label)]
    unknown = model.tagger.unknown_labels(unreadable) if unreadable else []
    if unknown:
        raise invalid(("accepted", labels.index(unknown[0])), UNREADABLE)


def _check_query(request: Request, known: tuple[str, ...]) -> None:
    """Refuse what FastAPI accepts: unknown parameters, repeated ones, and numbers such as 1.0."""
    seen = set()
    for name, value in request.query_params.multi_items():
        if name not in known or name in seen:
            raise invalid((name,), f"unknown or repeated parameter; expected each of {', '.join(known)} at most once")
        if name == "limit" and not (value.isascii() and value.isdigit()):
            raise invalid((name,), "expected a whole number")
        seen.add(name)


def _filter(field: str, names: list[str] | None, limits: Limits) -> Names:
    if names is None:
        return None
    _at_most(limits.filter_labels, len(names), "filter_too_long", f"{field} has {len(names)} labels")
    return tuple(names)


def _hang_up(request: Request) -> Callable[[], Awaitable[None]]:
    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return gone


def _body(model: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{model}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _responses(answer: Any, *refusals: int) -> dict[int | str, dict[str, Any]]:
    return {200: {"model": answer}, **_refusals(*refusals)}


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route for OpenAPI, each code with when it occurs."""
    found: dict[int | str, dict[str, Any]] = {}
    for status in statuses:
        lines = [f"`{code}`: {error.when}" for code, error in ERRORS.items() if error.status == status]
        found[status] = {"model": messages.ErrorAnswer, "description": "\n\n".join(lines)}
    return found
