"""The routes under `/v1`, the health of the service and its measures, as functions on a `Service`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import APIRouter, Query, Request, Response

from longtail.serve import messages
from longtail.serve.batching import Batcher, Closed
from longtail.serve.files import FIRST, page_files
from longtail.serve.limits import Limits
from longtail.serve.measures import Measures
from longtail.serve.messages import ExplainRequest, TagRequest, invalid, parse
from longtail.serve.refusal import Refusal, as_json, shortened
from longtail.serve.served import Names, ServedModel, ServedModels
from longtail.tagger import Tag

BODY = "longtail.body"
_ERRORS: dict[int, str] = {
    400: "The body is not JSON.",
    401: "The bearer token is missing or wrong.",
    404: "There is no such model.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not declared as application/json.",
    422: "The request asks for something that cannot be given.",
    429: "Too much is waiting already; Retry-After says when to come back.",
    500: "The service failed.",
    503: "The service is shutting down, or the request took too long.",
}


@dataclass(frozen=True)
class Service:
    """What the routes share."""

    models: ServedModels
    limits: Limits
    measures: Measures
    scoring: Batcher
    looking: Batcher


def tag_group(group: tuple[ServedModel, int, Names, Names], texts: list[str]) -> list[list[Tag]]:
    """What the scoring thread does with the texts of requests that ask for the same."""
    model, k, allow, deny = group
    return model.tag(texts, k, allow, deny)


def call_each(call: Callable[[], Any], items: list[Any]) -> list[Any]:
    """What the second thread does: each request is a call of its own."""
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
        """The best labels of a text, or of several."""
        asked = parse(TagRequest, request.scope[BODY])
        texts = _texts(asked, limits)
        model = models.get(asked.model)
        model.check_takes_texts()
        if asked.k > limits.k:
            raise Refusal(422, "k_too_large", f"k is {_number(asked.k)}; at most {limits.k} labels are given")
        allow, deny = _filter("allow", asked.allow, limits), _filter("deny", asked.deny, limits)
        found = await service.scoring.run((model, asked.k, allow, deny), texts, _hang_up(request))
        least = asked.threshold
        results = [
            {"tags": [{"label": label, "score": score} for label, score in tags if least is None or score >= least]}
            for tags in found
        ]
        return _json({"model": model.name, "results": results})

    @router.post(
        "/v1/explain",
        responses=_responses(messages.ExplainAnswer, 400, 401, 404, 408, 413, 415, 422, 429, 500, 503),
        openapi_extra=_body("ExplainRequest"),
        response_class=Response,
        summary="Explain scores",
    )
    async def explain(request: Request) -> Response:
        """Which words of a text gave labels their scores."""
        asked = parse(ExplainRequest, request.scope[BODY])
        _check_length(asked.text, limits)
        if len(asked.labels) > limits.explained_labels:
            raise Refusal(
                422,
                "too_many_labels",
                f"the request names {len(asked.labels)} labels; at most {limits.explained_labels} are explained "
                f"together. Send several requests",
            )
        model = models.get(asked.model)
        model.check_takes_texts()
        call = partial(model.explain, asked.text, asked.labels, limits.words)
        [found] = await service.looking.run(call, (None,), _hang_up(request))
        return _json({"model": model.name, "explanations": found})

    @router.get(
        "/v1/models",
        responses=_responses(messages.ModelsAnswer, 401, 429, 500, 503),
        response_class=Response,
        summary="List models",
    )
    async def list_models() -> Response:
        """The models, the default first, each with its card where it has one."""
        [found] = await service.looking.run(lambda: [model.describe() for model in models], (None,))
        return _json({"models": found})

    @router.get(
        "/v1/labels",
        responses=_responses(messages.LabelsAnswer, 401, 404, 422, 429, 500, 503),
        response_class=Response,
        summary="Find labels",
    )
    async def labels(
        request: Request,
        prefix: str = Query("", max_length=200, description="What the name begins with."),
        contains: str = Query("", max_length=200, description="What stands anywhere in the name."),
        model: str | None = Query(None, description="Which of the models; the first unless given."),
        limit: int = Query(20, ge=1, le=limits.found_labels, description="The most labels."),
    ) -> Response:
        """Labels whose names are as asked, in capital or small ASCII letters, most frequent first."""
        _check_query(request, ("prefix", "contains", "model", "limit"))
        served = models.get(model)
        [found] = await service.looking.run(partial(served.labels, prefix, limit, contains), (None,))
        return _json({"model": served.name, "labels": found})

    @router.get("/health/live", responses=_responses(messages.HealthAnswer, 500), response_class=Response)
    async def live() -> Response:
        """Whether the process answers."""
        return _json({"status": "live"})

    @router.get("/health/ready", responses=_responses(messages.HealthAnswer, 500, 503), response_class=Response)
    async def ready() -> Response:
        """Whether requests are taken."""
        if service.scoring.closed:
            raise Closed
        return _json({"status": "ready"})

    @router.get(
        "/metrics",
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **_refusals(401, 500)},
        response_class=Response,
    )
    async def metrics() -> Response:
        """Measures for Prometheus."""
        return Response(service.measures.text(), headers={"content-type": service.measures.content_type})

    pages = page_files()

    async def page(request: Request) -> Response:
        file = pages.get(request.path_params.get("name", FIRST))
        if file is None:
            raise Refusal(404, "not_found", "there is no such file of the page")
        headers = {"etag": file.etag, "cache-control": "no-cache", "content-type": file.type}
        if file.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers)

    for path in ("/", "/page/{name}"):
        router.add_route(path, page, methods=["GET"], include_in_schema=False)
    return router


def _json(content: Any) -> Response:
    return Response(as_json(content), media_type="application/json")


def _number(value: int) -> str:
    return str(value) if abs(value) < 10**12 else "larger than 10^12"


def _texts(asked: TagRequest, limits: Limits) -> list[str]:
    given = asked.model_fields_set & {"text", "texts"}
    if len(given) != 1:
        found = "both" if given else "neither"
        raise Refusal(422, "text_or_texts", f"the request has {found} of text and texts; give exactly one of them")
    texts = asked.texts if "texts" in given else [asked.text]
    if len(texts) > limits.texts:
        raise Refusal(
            422,
            "too_many_texts",
            f"the request holds {len(texts)} texts; at most {limits.texts} are taken. Send several requests",
        )
    for text in texts:
        _check_length(text, limits)
    return texts


def _check_length(text: str, limits: Limits) -> None:
    if len(text) > limits.characters:
        raise Refusal(
            422,
            "text_too_long",
            f"the text {shortened(text, 20)} has {len(text)} characters; at most {limits.characters} are taken. "
            f"Cut it into parts",
        )


def _check_query(request: Request, known: tuple[str, ...]) -> None:
    """Refuse what FastAPI lets pass: parameters that it does not know or that come twice, numbers such as 1.0."""
    seen = set()
    for name, value in request.query_params.multi_items():
        if name not in known or name in seen:
            raise invalid((name,), f"each of {', '.join(known)} may be given once, and nothing else")
        if name == "limit" and not (value.isascii() and value.isdigit()):
            raise invalid((name,), "expected a whole number")
        seen.add(name)


def _filter(field: str, names: list[str] | None, limits: Limits) -> Names:
    if names is None:
        return None
    if len(names) > limits.filter_labels:
        raise Refusal(
            422,
            "filter_too_long",
            f"{field} names {len(names)} labels; at most {limits.filter_labels} are taken",
        )
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
    found: dict[int | str, dict[str, Any]] = {}
    for status in statuses:
        found[status] = {"model": messages.ErrorAnswer, "description": _ERRORS[status]}
    return found
