"""The routes. Each asks the hub, and answers with the one shape."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Body, Depends, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.exceptions import HTTPException

import hitchpost
from hitchpost import wire
from hitchpost.agents import catalog
from hitchpost.errors import HitchpostError, Refused
from hitchpost.hub.core import Hub
from hitchpost.hub.http import replay, schemas, workspaces
from hitchpost.hub.http.catalog import Catalog
from hitchpost.hub.http.errors import as_dict, status_and_body
from hitchpost.hub.http.explain import Explain
from hitchpost.hub.http.grants import Grant
from hitchpost.hub.http.metrics import Metrics
from hitchpost.hub.http.needs import admission, grant_of, seen_by
from hitchpost.hub.http.signin import SignIn, serve_sign_in
from hitchpost.hub.http.static import serve_page
from hitchpost.hub.http.tokens import Tokens
from hitchpost.hub.http.ws import WebSockets
from hitchpost.hub.registry import Tracked
from hitchpost.model import run as runs
from hitchpost.model.facts import WITHOUT_SANDBOX
from hitchpost.model.record import LISTED, chosen
from hitchpost.model.status import STALE, container_name
from hitchpost.ops.sessions.create import LONGEST_NAME
from hitchpost.ops.sessions.edit import edit
from hitchpost.ops.sessions.spec import SandboxOptions, SessionSpec
from hitchpost.ops.views.diff import changed, diff_shape
from hitchpost.ops.views.find import chosen_run
from hitchpost.ops.views.listing import Row, as_json
from hitchpost.ops.views.services import containers, counts
from hitchpost.ops.views.session_json import exported
from hitchpost.ops.views.table import as_table
from hitchpost.store import files, runfiles, story
from hitchpost.store.home import run_folder
from hitchpost.store.index import agent_state_of
from hitchpost.terminal import output
from hitchpost.terminal.recording import asciicast
from hitchpost.text import readable

ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}}
    for code in (400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 503)
}
"""By reference: twelve models for each route would be a tenth of the hub's start. One route names the model itself."""
PART_CHARS = 256 * 1024
HTTP_CODES = {
    400: "bad_input",
    401: "not_signed_in",
    403: "forbidden",
    404: "not_found",
    405: "bad_method",
    413: "too_large",
    429: "too_many_guesses",
}
SessionId = Annotated[str, Path(max_length=LONGEST_NAME, description="An id, a name, an index, or how an id begins.")]

Everything = Annotated[bool, Query(alias="all", description="Archived and error records too.")]
Records = Annotated[
    Sequence[schemas.RecordNames], Query(description="Only sessions with such records; more than one with commas.")
]


def actor_of(request: Request) -> str:
    """Who asks, as the story names it: cli, browser, or a token."""
    actor: str = request.state.actor
    return actor


Actor = Annotated[str, Depends(actor_of)]
Granted = Annotated[Grant, Depends(grant_of)]


class Asciicast(StreamingResponse):
    media_type = "application/x-asciicast"


class Routes:
    """The handlers, beside the hub that they ask."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.metrics = Metrics(hub)
        self.websockets = WebSockets(hub, self.metrics)

    # the hub itself ---------------------------------------------------------------------------------------------

    async def health(self, grant: Granted) -> dict[str, Any]:
        """What keeps the hub from its work may name any session."""
        sessions = seen_by(grant, self.hub.registry.sessions.values())
        return {
            "ok": True,
            "version": hitchpost.__version__,
            "pid": os.getpid(),
            "uptime_s": round(time.monotonic() - self.hub.began, 3),
            "sessions": len(sessions),
            "live": sum(one.watch is not None for one in sessions),
            "problems": self.hub.problems if grant.sessions is None else [],
        }

    async def status(self, grant: Granted) -> dict[str, Any]:
        rows = await self._rows(grant)
        return {
            "hub": await self.health(grant),
            "counts": counts(one.line for one in rows),
            "containers": containers((one.seen for one in rows if isinstance(one, Tracked) and one.seen), is_up=True),
            "agents": [self._agent_view(one) for one in rows],
            "sessions": [one.shape for one in rows],
        }

    # sessions ---------------------------------------------------------------------------------------------------

    async def sessions(self, grant: Granted, everything: Everything = False, record: Records = ()) -> Response:
        """As text that is ready: thousands of sessions are not taken apart and put together again."""
        records = chosen(record, everything=everything)
        await self.hub.registry.freshen()
        texts = [one.text for one in seen_by(grant, self.hub.registry.rows(records=records))]
        return Response(as_json(texts), media_type="application/json")

    async def table(self, everything: Everything = False, record: Records = (), colour: bool = False) -> Response:
        """What ``hitch ps`` prints. It is made in a thread: thousands of lines would hold up the event loop."""
        records = chosen(record, everything=everything)
        await self.hub.registry.freshen()
        lines = [one.line for one in self.hub.registry.rows(records=records)]
        return PlainTextResponse(await asyncio.to_thread(as_table, lines, colour=colour, now_s=time.time()))

    async def export(self, grant: Granted) -> dict[str, Any]:
        """Story 2.9's sessions file: every session that can be read, archived ones too."""
        await self.hub.registry.freshen()
        listed = seen_by(grant, self.hub.registry.listed())
        for one in listed:
            await self.hub.registry.ready(one.id)
        now = datetime.now(UTC)
        found = [exported(one.seen, now) for one in listed if one.seen is not None]
        return {"version": 1, "exported_at": files.stamp(), "sessions": found}

    async def create(self, body: schemas.NewSession, actor: Actor) -> dict[str, Any]:
        wanted = body.model_dump()
        size = (wanted.pop("cols"), wanted.pop("rows"))
        wanted["command"] = tuple(wanted["command"])
        box = wanted.pop("sandbox") or {}
        wanted["sandbox"] = SandboxOptions(**{**box, "mounts": tuple(box.get("mounts", ()))})
        one, notes = await self.hub.create(SessionSpec(**wanted, size=size), actor=actor)
        return {"session": one.shape, "notes": readable(notes)}

    async def session(self, session: SessionId) -> dict[str, Any]:
        return self._find(session).shape

    async def edit(self, session: SessionId, body: schemas.Changes, actor: Actor) -> dict[str, Any]:
        one = self._find(session)
        await self.hub.do(edit, self.hub.home, one.id, actor=actor, **body.model_dump())
        return (await self.hub.after(one.id)).shape

    async def remove(self, session: SessionId, actor: Actor, force: bool = False) -> Response:
        await self.hub.remove(self._find(session).id, actor=actor, force=force)
        return Response(status_code=204)

    async def prompt(self, session: SessionId, body: schemas.Prompt, actor: Actor) -> dict[str, Any]:
        found = self._find(session).id
        one, receipt = await self.hub.prompt(found, body.text, actor=actor, enter=body.enter, force=body.force)
        return {**receipt, "session": one.shape}

    async def stop(
        self, session: SessionId, actor: Actor, body: Annotated[schemas.StopWish | None, Body()] = None
    ) -> dict[str, Any]:
        return (await self.hub.stop(self._find(session).id, actor=actor, reason=body.reason if body else "")).shape

    async def restart(self, session: SessionId, actor: Actor) -> dict[str, Any]:
        one, notes = await self.hub.restart(self._find(session).id, actor=actor)
        return {"session": one.shape, "notes": readable(notes)}

    async def resume(self, session: SessionId, actor: Actor) -> dict[str, Any]:
        one, notes = await self.hub.resume(self._find(session).id, actor=actor)
        return self._record_answer(one, notes)

    async def cancel(self, session: SessionId, actor: Actor) -> dict[str, Any]:
        one = await self.hub.cancel(self._find(session).id, actor=actor)
        return {**self._record_answer(one), "cancelled": True}

    async def archive(self, session: SessionId, actor: Actor) -> dict[str, Any]:
        return (await self.hub.archive(self._find(session).id, actor=actor)).shape

    async def story(self, session: SessionId) -> list[dict[str, Any]]:
        one = self._find(session)
        assert one.seen is not None
        return readable(await self.hub.do(story.read, one.seen.folder))

    async def runs(self, session: SessionId) -> list[dict[str, Any]]:
        one = self._find(session)
        assert one.seen is not None
        return readable(await self.hub.do(_runs, one.seen.folder, one.seen.facts.run, one.shape))

    async def screen(self, session: SessionId) -> dict[str, Any]:
        one = self._find(session)
        assert one.seen is not None
        folder = os.path.join(one.seen.run_folder, wire.OUTPUT)
        end = (await self.hub.do(output.bounds, folder))[1]
        return {"text": await self.hub.screens.text(folder, end), "offset": end}

    async def recording(self, session: SessionId, run: int | None = None) -> Response:
        one = self._find(session)
        assert one.seen is not None
        folder = os.path.join(run_folder(one.seen.folder, chosen_run(one.seen, run)), wire.OUTPUT)
        lines = asciicast(folder, one.shape["name"])

        async def parts() -> AsyncIterator[str]:
            while part := await self.hub.do(_part, lines):
                yield part

        return Asciicast(parts())

    async def diff(self, session: SessionId) -> dict[str, Any]:
        one = self._find(session)
        assert one.seen is not None
        record = one.seen.record
        return await self.hub.look_at_files(lambda: diff_shape(changed(self.hub.home, record)))

    # CR-070's view ----------------------------------------------------------------------------------------------

    async def agents(self, grant: Granted) -> list[dict[str, Any]]:
        return [self._agent_view(one) for one in await self._rows(grant)]

    async def agent(self, agent: SessionId) -> dict[str, Any]:
        return self._agent_view(self._find(agent))

    async def agent_start(self, agent: SessionId, actor: Actor) -> dict[str, Any]:
        one = await self.hub.after(self._find(agent).id)
        assert one.seen is not None
        if one.seen.facts.state in runs.LIVE and agent_state_of(one.line) != STALE:
            record = one.seen.record
            raise Refused(f"{record.name} is already running. Use 'hitch attach {record.word}' to connect.")
        return self._agent_view((await self.hub.resume(one.id, actor=actor))[0])

    async def agent_stop(self, agent: SessionId, actor: Actor) -> dict[str, Any]:
        return self._agent_view(await self.hub.stop(self._find(agent).id, actor=actor))

    async def agent_restart(self, agent: SessionId, actor: Actor) -> dict[str, Any]:
        one = await self.hub.after(self._find(agent).id)
        if agent_state_of(one.line) != STALE:
            assert one.seen is not None
            raise Refused(f"{one.seen.record.name} is {agent_state_of(one.line)}, not stale")
        return self._agent_view((await self.hub.restart(one.id, actor=actor))[0])

    # helpers ----------------------------------------------------------------------------------------------------

    def _find(self, session: str) -> Tracked:
        return self.hub.registry.find(session)

    async def _rows(self, grant: Grant) -> Sequence[Tracked | Row]:
        """The sessions that ``hitch ps`` lists, of those that the grant covers."""
        await self.hub.registry.freshen()
        return seen_by(grant, self.hub.registry.rows(records=LISTED))

    def _agent_view(self, one: Tracked | Row) -> dict[str, Any]:
        agent = one.shape["agent"]
        has_container = one.shape["runtime"] not in (*WITHOUT_SANDBOX, "") and one.shape["sandbox_alive"] is not False
        title = catalog.load(agent).title if agent in catalog.names() else agent
        return {
            "id": one.id,
            "name": one.shape["name"],
            "display_name": readable(title),
            "state": agent_state_of(one.line),
            "session_alive": one.shape["session_alive"],
            "sandbox_alive": one.shape["sandbox_alive"],
            "container": container_name(one.id) if has_container else None,
        }

    def _record_answer(self, one: Tracked, notes: list[str] | None = None) -> dict[str, Any]:
        told = readable(notes or [])
        return {"sessionId": one.id, "status": one.shape["record"], "notes": told, "session": one.shape}


def _part(lines: Iterator[str]) -> str:
    """The next lines together: as much as is worth the way to a thread and back."""
    part: list[str] = []
    size = 0
    for line in lines:
        part.append(line)
        size += len(line)
        if size >= PART_CHARS:
            break
    return "".join(part)


def _runs(folder: str, current: int, shape: dict[str, Any]) -> list[dict[str, Any]]:
    """Every run of a session, the first one first, with its exit."""
    found = []
    for number in range(1, current + 1):
        where = run_folder(folder, number)
        entry: dict[str, Any] = {"run": number, "state": shape["state"] if number == current else "unknown"}
        for name, path in (("run_file", wire.RUN), ("exit", wire.EXIT), ("state_file", files.STATE)):
            entry[name] = runfiles.read(where, path) or None
        if entry["exit"] is not None and isinstance(lost := entry["exit"].get("lost_output_bytes"), int):
            entry["exit"]["lost_output_bytes"] = output.counted(lost)  # older files have a number for what nobody knows
        if entry["state_file"] is not None:
            entry["state"] = entry["state_file"]["state"]
        found.append(entry)
    return found


def build(hub: Hub, tokens: Tokens) -> tuple[FastAPI, SignIn]:
    routes, sign_in = Routes(hub), SignIn(tokens)
    app = FastAPI(
        dependencies=[Depends(admission(hub))],
        title="Hitchpost",
        version=hitchpost.__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=ERRORS,
    )
    one = "/api/sessions/{session}"
    agent = "/api/agents/{agent}"
    get, post = app.get, app.post

    async def described() -> Response:
        """In a thread: working it out takes a tenth of a second."""
        return JSONResponse(await asyncio.to_thread(app.openapi))

    get("/api/openapi.json", include_in_schema=False)(described)
    get("/api/health", response_model=schemas.Health, responses={500: {"model": schemas.ErrorBody}})(routes.health)
    get("/api/status", response_model=schemas.Status)(routes.status)
    serve_sign_in(app, sign_in)
    get("/api/catalog", response_model=schemas.Catalog)(Catalog(hub).answer)
    get("/api/sessions", response_model=list[schemas.Session])(routes.sessions)
    post("/api/sessions", response_model=schemas.SessionWithNotes, status_code=201)(routes.create)
    get("/api/sessions/export", response_model=schemas.Export)(routes.export)
    get("/api/sessions/table", response_class=PlainTextResponse)(routes.table)
    get(one, response_model=schemas.Session)(routes.session)
    app.patch(one, response_model=schemas.Session)(routes.edit)
    app.delete(one, status_code=204)(routes.remove)
    post(f"{one}/prompt", response_model=schemas.PromptAnswer)(routes.prompt)
    post(f"{one}/stop", response_model=schemas.Session)(routes.stop)
    post(f"{one}/restart", response_model=schemas.SessionWithNotes)(routes.restart)
    post(f"{one}/resume", response_model=schemas.RecordAnswer)(routes.resume)
    post(f"{one}/cancel", response_model=schemas.RecordAnswer)(routes.cancel)
    post(f"{one}/archive", response_model=schemas.Session)(routes.archive)
    get(f"{one}/story", response_model=list[schemas.StoryLine])(routes.story)
    get(f"{one}/runs", response_model=list[schemas.Run])(routes.runs)
    get(f"{one}/screen", response_model=schemas.Screen)(routes.screen)
    get(f"{one}/recording", response_class=Asciicast)(routes.recording)
    get(f"{one}/diff", response_model=schemas.Difference)(routes.diff)
    get(f"{one}/explain", response_model=schemas.Explanation)(Explain(hub).answer)
    get("/api/agents", response_model=list[schemas.AgentView])(routes.agents)
    get(agent, response_model=schemas.AgentView)(routes.agent)
    post(f"{agent}/start", response_model=schemas.AgentView)(routes.agent_start)
    post(f"{agent}/stop", response_model=schemas.AgentView)(routes.agent_stop)
    post(f"{agent}/restart-session", response_model=schemas.AgentView)(routes.agent_restart)
    workspaces.serve_workspaces(app, hub)
    replay.serve_replays(app, hub)

    async def scrape(grant: Granted) -> Response:
        await hub.registry.freshen()
        return Response(routes.metrics.text(grant), media_type="text/plain; version=0.0.4; charset=utf-8")

    app.get("/metrics", response_class=PlainTextResponse)(scrape)
    app.add_api_websocket_route("/ws", routes.websockets.serve)
    serve_page(app)
    _answer_errors(app)
    return app, sign_in


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> JSONResponse:
        code = HTTP_CODES.get(error.status_code, "failed")
        return JSONResponse(as_dict(code, str(error.detail)), error.status_code, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def of_input(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"][1:])) or "the body"
        field = ".".join(part for part in first["loc"][1:] if isinstance(part, str))
        return JSONResponse(as_dict("bad_input", f"{where}: {first['msg']}", field=field), 422)

    @app.exception_handler(HitchpostError)
    @app.exception_handler(OSError)
    async def of_state(request: Request, error: HitchpostError | OSError) -> JSONResponse:
        status, body = status_and_body(error)
        return JSONResponse(body, status)

    @app.exception_handler(Exception)
    async def of_mistake(request: Request, error: Exception) -> JSONResponse:
        """Ours, not the client's: the log has it, the answer does not."""
        return JSONResponse(as_dict("internal", "the hub made a mistake; its log tells more"), 500)
