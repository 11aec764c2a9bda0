"""`create_app`: the service as an ASGI application for any server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from longtail.serve import messages
from longtail.serve.batching import Batcher
from longtail.serve.guard import Guard
from longtail.serve.limits import Limits, Occupancy
from longtail.serve.measures import Measures
from longtail.serve.refusal import Refusal
from longtail.serve.routes import Service, call_each, make_router, tag_group
from longtail.serve.served import ServedModel, load_models
from longtail.version import __version__

_COUNTED = ("/", "/v1/tag", "/v1/explain", "/v1/models", "/v1/labels", "/health/live", "/health/ready", "/metrics")

_EXAMPLE = "fit a straight line through noisy points"


def create_app(
    models: Mapping[str, str | os.PathLike[str]],
    *,
    limits: Limits | None = None,
    token: str | None = None,
    hosts: Collection[str] | None = None,
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
    served = load_models(models)
    measures, occupancy = Measures(), Occupancy(limits.requests)
    measures.models((model.name, model.kind, model.n_labels) for model in served.values())
    shared = {"queued": limits.queued_texts, "seconds": limits.seconds}
    scoring = Batcher(tag_group, batch=limits.batch_texts, observe=measures.batch, **shared)  # type: ignore[arg-type]
    lookups = Batcher(call_each, batch=1, name="longtail-lookups", **shared)  # type: ignore[arg-type]
    measures.watch("longtail_queued_texts", "Texts waiting to be scored.", lambda: scoring.waiting)
    measures.watch("longtail_queued_lookups", "Other requests waiting.", lambda: lookups.waiting)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.gather(scoring.close(), lookups.close())

    app = FastAPI(
        title="longtail",
        version=__version__,
        description="Tags texts with labels from a very large vocabulary.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    router = make_router(Service(served, limits, measures, scoring, lookups))
    app.include_router(router)
    endpoints = {route.path: route.endpoint for route in router.routes if isinstance(route, APIRoute)}
    queues = {"/v1/tag": scoring, "/v1/explain": lookups}
    app.add_middleware(
        Guard,
        limits=limits,
        measures=measures,
        occupancy=occupancy,
        endpoints={path: (endpoints[path], queue) for path, queue in queues.items()},
        routes=_COUNTED,
        token=token,
        hosts=hosts,
    )
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid_query)
    # Shared with the connections of the server, which refuse requests at less cost.
    app.state.measures, app.state.occupancy = measures, occupancy
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
            for kind in (messages.TagRequest, messages.ExplainRequest):
                schemas[kind.__name__] = kind.model_json_schema()
            names = list(served)
            _bound(schemas["TagRequest"]["properties"], schemas["ExplainRequest"]["properties"], limits, names)
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


def _bound(tag: dict[str, Any], explain: dict[str, Any], limits: Limits, names: list[str]) -> None:
    for text in (tag["text"], tag["texts"]["items"], explain["text"]):
        text["maxLength"] = limits.characters
    tag["texts"]["maxItems"] = limits.texts
    tag["k"]["anyOf"][0]["maximum"] = limits.k
    for field in ("allow", "deny"):
        tag[field]["anyOf"][0]["maxItems"] = limits.filter_labels
    explain["labels"]["maxItems"] = limits.explained_labels
    for model in (tag["model"], explain["model"]):
        model["anyOf"][0]["enum"] = names
    for field in ("text", "texts"):
        del tag[field]["default"]
