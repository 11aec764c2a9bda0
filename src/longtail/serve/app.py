"""`create_app`: the service as an ASGI application for any server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from longtail.files import PathName
from longtail.serve import messages
from longtail.serve.batching import Batcher
from longtail.serve.feedback import FeedbackFile, write_all
from longtail.serve.guard import Guard
from longtail.serve.limits import Limits, Occupancy
from longtail.serve.measures import Measures
from longtail.serve.refusal import Refusal
from longtail.serve.reloading import Reloading
from longtail.serve.routes import Feedback, Service, call_each, make_router, tag_group
from longtail.serve.served import ServedModel, load_models
from longtail.version import __version__

_CHANGING = ("/v1/feedback", "/v1/models/reload")
_COUNTED = (
    "/",
    "/v1/tag",
    "/v1/explain",
    *_CHANGING,
    "/v1/models",
    "/v1/labels",
    "/health/live",
    "/health/ready",
    "/metrics",
)

_EXAMPLE = "fit a straight line through noisy points"


def create_app(
    models: Mapping[str, PathName],
    *,
    limits: Limits | None = None,
    token: str | None = None,
    hosts: Collection[str] | None = None,
    feedback: PathName | None = None,
    reload: bool | None = None,
) -> FastAPI:
    """Create an application that serves models.

    Parameters
    ----------
    models : mapping
        Model directories by the names that requests use. The first is the default.
    limits : Limits or None
        None is ``Limits()``.
    token : str or None
        The bearer token that requests must send, except for the page, /openapi.json and /health.
    hosts : collection of str or None
        Allowed values of the `Host` header; None allows any.
    feedback : str or path-like or None
        A JSON lines file that keeps the corrections of users; None has neither route nor controls for corrections.
    reload : bool or None
        Whether a request can load new versions of the models; None means only if there is a `token`.
        ``app.state.reload()`` does so in any case; call it in the event loop.

    Examples
    --------
    >>> import tempfile
    >>> from longtail import Ridge, Tagger, TextFeatures
    >>> directory = tempfile.mkdtemp() + "/fruit"
    >>> tagger = Tagger(TextFeatures(min_df=1), Ridge()).fit(["red apples", "blue sky"], [["fruit"], ["weather"]])
    >>> tagger.save(directory)
    >>> sorted(create_app({"fruit": directory}).openapi()["paths"])[-2:]
    ['/v1/models', '/v1/tag']
    """
    limits = limits or Limits()
    kept = None if feedback is None else FeedbackFile(feedback, limits.feedback_bytes)
    served = load_models(models)
    measures, occupancy = Measures(), Occupancy(limits.requests)
    measures.models((model.name, model.kind, model.n_labels) for model in served.values())

    def changed(name: str, succeeded: bool) -> None:
        measures.reload(name, succeeded)
        measures.models((model.name, model.kind, model.n_labels) for model in served.values())
        app.openapi_schema = None  # its example has a label of the first model

    shared: dict[str, Any] = {"queued": limits.queued_texts, "seconds": limits.seconds}
    scoring = Batcher(tag_group, batch=limits.batch_texts, observe=measures.batch, what="texts", **shared)
    lookups = Batcher(call_each, batch=1, name="longtail-lookups", **shared)
    reloading = Reloading(served, limits.reload_seconds, changed)
    writing = None
    if kept is not None:
        writing = Batcher(write_all, batch=limits.batch_texts, name="longtail-feedback", what="corrections", **shared)
    measures.watch("longtail_queued_texts", "Texts waiting to be scored.", lambda: scoring.waiting)
    measures.watch("longtail_queued_lookups", "Other requests waiting.", lambda: lookups.waiting)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        # Corrections last: they come from requests that are under way.
        await asyncio.gather(scoring.close(), lookups.close(), reloading.close())
        if writing is not None:
            await writing.close()

    app = FastAPI(
        title="longtail",
        version=__version__,
        description="Tags texts with labels from a very large vocabulary.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    service = Service(
        served,
        limits,
        measures,
        scoring,
        lookups,
        feedback=None if kept is None or writing is None else Feedback(kept, writing),
        reloading=reloading if reload or (reload is None and token is not None) else None,
    )
    router = make_router(service)
    app.include_router(router)
    endpoints = {route.path: route.endpoint for route in router.routes if isinstance(route, APIRoute)}
    queues = {
        "/v1/tag": scoring,
        "/v1/explain": lookups,
        "/v1/feedback": writing,
        "/v1/models/reload": reloading.queue,
    }
    app.add_middleware(
        Guard,
        limits=limits,
        measures=measures,
        occupancy=occupancy,
        endpoints={path: (endpoints[path], queue) for path, queue in queues.items() if queue and path in endpoints},
        routes=_COUNTED,
        token=token,
        hosts=hosts,
        changing=_CHANGING,
    )
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid_query)
    # Shared with the connections of the server, which refuse requests at less cost.
    app.state.measures, app.state.occupancy = measures, occupancy
    app.state.reload = reloading.begin
    _describe(app, limits, served, token is not None)
    return app


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 404:
        raise Refusal("not_found", "this path does not exist; /openapi.json lists all paths", headers)
    if error.status_code == 405:
        message = f"{request.method} is not allowed here; use {headers.get('Allow')}"
        raise Refusal("method_not_allowed", message, headers)
    raise error


async def _invalid_query(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    raise messages.invalid(first["loc"][1:], first["msg"])


def _describe(app: FastAPI, limits: Limits, served: dict[str, ServedModel], guarded: bool) -> None:
    """Describe in `/openapi.json` the requests that the routes parse themselves, and the limits of this service."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            schemas = schema["components"]["schemas"]
            names = list(served)
            for path, kind in _REQUESTS.items():
                if path in schema["paths"]:
                    schemas[kind.__name__] = kind.model_json_schema()
                    _bound(schemas[kind.__name__]["properties"], limits, names)
            # The example can be sent as it is, so it needs an existing label.
            labels = [found.label for found in served[names[0]].tagger.find_labels(limit=1)]
            schemas["ExplainRequest"]["examples"] = [{"text": _EXAMPLE, "labels": labels}]
            for parameter in schema["paths"]["/v1/labels"]["get"]["parameters"]:
                if parameter["name"] == "model":
                    parameter["schema"] = {"type": "string", "enum": names}
            if guarded:
                schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
                for path, operations in schema["paths"].items():
                    if not path.startswith("/health/"):
                        for operation in operations.values():
                            operation["security"] = [{"token": []}]
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


_REQUESTS: dict[str, type[BaseModel]] = {
    "/v1/tag": messages.TagRequest,
    "/v1/explain": messages.ExplainRequest,
    "/v1/feedback": messages.FeedbackRequest,
    "/v1/models/reload": messages.ReloadRequest,
}


def _bound(fields: dict[str, Any], limits: Limits, names: list[str]) -> None:
    """Write the limits of the service into the fields of a request."""
    most = {
        "texts": limits.texts,
        "labels": limits.explained_labels,
        **dict.fromkeys(("accepted", "rejected", "added"), limits.corrected_labels),
    }
    for name, field in fields.items():
        if name == "text":
            field["maxLength"] = limits.characters
        elif name == "texts":
            field["items"]["maxLength"] = limits.characters
        elif name == "k":
            field["anyOf"][0]["maximum"] = limits.k
        elif name in ("allow", "deny"):
            field["anyOf"][0]["maxItems"] = limits.filter_labels
        elif name == "model":
            field["anyOf"][0]["enum"] = names
        elif name == "id":
            field["anyOf"][0]["maxLength"] = limits.label_characters
        if name in most:
            field["maxItems"] = most[name]
        if name in ("accepted", "rejected", "added"):
            field["items"]["maxLength"] = limits.label_characters
    if "texts" in fields:
        for name in ("text", "texts"):
            del fields[name]["default"]
