"""The hub's HTTP application: its routers, and how errors are answered."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

import hitchpost
from hitchpost.errors import HitchpostError
from hitchpost.hub.core import Hub
from hitchpost.hub.http import ws
from hitchpost.hub.http.agent_view import AgentViews
from hitchpost.hub.http.errors import as_dict, status_and_body
from hitchpost.hub.http.metrics import Metrics
from hitchpost.hub.http.people import People
from hitchpost.hub.http.permissions import check_needs
from hitchpost.hub.http.routes import (
    agents,
    catalog,
    finish,
    fleet,
    folders,
    notifications,
    output,
    people,
    replay,
    session_actions,
    session_views,
    sessions,
    signing_in,
    usage,
    waiting,
    workspaces,
)
from hitchpost.hub.http.routes import hub as hub_itself
from hitchpost.hub.http.signin import SignIn
from hitchpost.hub.http.static import serve_page
from hitchpost.hub.http.tokens import Tokens

ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}}
    for code in (400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 503)
}
"""By reference: twelve models for each route would be a tenth of the hub's start. One route names the model itself."""
HTTP_CODES = {
    400: "bad_input",
    401: "not_signed_in",
    403: "forbidden",
    404: "not_found",
    405: "bad_method",
    413: "too_large",
    429: "too_many_guesses",
}
ROUTERS = (
    hub_itself.router,
    signing_in.router,
    catalog.router,
    sessions.router,  # before those of a session: "export" and "table" are no names of sessions
    session_views.router,
    session_actions.router,
    agents.router,
    workspaces.router,
    fleet.router,
    folders.router,
    notifications.router,
    people.router,
    output.router,
    replay.router,
    finish.router,
    usage.router,
    waiting.router,
    ws.router,
)


def build(hub: Hub, tokens: Tokens) -> tuple[FastAPI, SignIn]:
    app = FastAPI(
        dependencies=[Depends(check_needs)],
        title="Hitchpost",
        version=hitchpost.__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=ERRORS,
    )
    sign_in = SignIn(tokens)
    app.state.hub, app.state.sign_in, app.state.agent_views = hub, sign_in, AgentViews()
    app.state.people = People(hub, tokens)
    app.state.metrics = metrics = Metrics(hub)
    app.state.websockets = ws.WebSockets(hub, metrics)
    for router in ROUTERS:
        app.include_router(router)
    serve_page(app)
    _answer_errors(app)
    return app, sign_in


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        code = HTTP_CODES.get(error.status_code, "failed")
        return JSONResponse(as_dict(code, str(error.detail)), error.status_code, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def bad_input(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"][1:])) or "the body"
        field = ".".join(part for part in first["loc"][1:] if isinstance(part, str))
        return JSONResponse(as_dict("bad_input", f"{where}: {first['msg']}", field=field), 422)

    @app.exception_handler(HitchpostError)
    @app.exception_handler(OSError)
    async def refused(request: Request, error: HitchpostError | OSError) -> JSONResponse:
        status, body = status_and_body(error, request.state.grant)
        return JSONResponse(body, status)

    @app.exception_handler(Exception)
    async def our_mistake(request: Request, error: Exception) -> JSONResponse:
        """The log has it, the answer does not."""
        return JSONResponse(as_dict("internal", "the hub made a mistake; see its log"), 500)
