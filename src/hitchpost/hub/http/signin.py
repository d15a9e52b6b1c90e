"""Signing in and out: the routes of the handshake, and what a page asks about itself."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, Field, StringConstraints
from starlette.exceptions import HTTPException

from hitchpost.hub.http.gate import CHALLENGE, SIGN_IN_PATH, Refusal
from hitchpost.hub.http.grants import OWNER, VIEWER, Forbidden, Grant
from hitchpost.hub.http.proof import decoded
from hitchpost.hub.http.schemas import Strict
from hitchpost.hub.http.static import version
from hitchpost.hub.http.tokenfile import BROWSER, Known
from hitchpost.hub.http.tokens import Tokens
from hitchpost.ops.views.session_json import rfc3339

Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Nonce = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{22,86}$")]
Proof = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]
Role = Annotated[str, StringConstraints(pattern=f"^(?:{OWNER}|{VIEWER})$")]


class Challenge(Strict):
    """``origin`` is where the page was loaded from, and has to be ours."""

    id: Id
    nonce: Nonce
    origin: Annotated[str, StringConstraints(max_length=100)]


class HubProof(BaseModel):
    """The hub's nonce, and its proof that it knows the secret that belongs to the id."""

    nonce: str
    proof: str


class PageProof(Strict):
    """The hub's nonce, and the page's proof."""

    nonce: Nonce
    proof: Proof


class Me(BaseModel):
    """``sessions`` are the ids of those that are seen; null for all."""

    role: str
    sessions: list[str] | None
    expires_at: str | None


class SignedIn(Me):
    """``token`` is for ``Authorization: Bearer`` and dies with the hub; ``ticket`` is for the first WebSocket.

    ``id`` is what this browser signs in with from now on; ``page`` is the version of the hub's page.
    """

    id: str
    page: str
    token: str
    ticket: str


class LaunchWish(Strict):
    """Whom a launch code is to sign in."""

    role: Role = OWNER
    sessions: list[Id] | None = Field(default=None, max_length=1000)


class Code(BaseModel):
    url: str
    launch_url: str


class Ticket(BaseModel):
    ticket: str


class SignIn:
    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.url = ""
        self.page = version()

    async def launch_code(self, body: LaunchWish | None = None) -> dict[str, str]:
        wish = body or LaunchWish()
        grant = Grant(wish.role, None if wish.sessions is None else frozenset(wish.sessions))
        return {"url": self.url, "launch_url": f"{self.url}#code={self.tokens.new_code(grant)}"}

    async def challenge(self, request: Request, body: Challenge) -> dict[str, str]:
        """The hub proves itself, to a page of its own only: nobody can pass the proof on to a page elsewhere."""
        said = request.headers.get("origin", body.origin)
        if body.origin not in request.state.origins or said != body.origin:
            raise Refusal(403, "forbidden_origin", "the hub proves itself to its own page only")
        nonce, proof = self.tokens.challenge(body.id, body.nonce, body.origin)
        return {"nonce": nonce, "proof": proof}

    async def sign_in(self, body: PageProof) -> dict[str, Any]:
        known = await asyncio.to_thread(self.tokens.sign_in, body.nonce, decoded(body.proof))
        if known is None:
            if self.tokens.guessed(body.proof):
                raise HTTPException(429, "too many wrong proofs; try again in a minute")
            raise HTTPException(401, "this link was used already, or is older than a minute")
        fresh = {"token": self.tokens.new_token(known.key), "ticket": self.tokens.new_ticket(known.key)}
        return {"id": known.key, "page": self.page, **fresh, **_me(known.grant)}

    async def sign_out(self, request: Request) -> Response:
        """The browser is not known afterwards, and nothing that it has open goes on. A script's token stays."""
        held = request.state.held
        if held is not None and held.known.kind == BROWSER:
            self.tokens.live.let_go(held)
            await asyncio.to_thread(self.tokens.sign_out, held.known.key)
            self.tokens.live.check()
        return Response(status_code=204)

    async def me(self, request: Request) -> dict[str, Any]:
        return _me(request.state.grant)

    async def ws_ticket(self, request: Request) -> dict[str, str]:
        known: Known | None = request.state.held and request.state.held.known
        if known is None:
            raise Forbidden("the hub's own socket needs no ticket")
        return {"ticket": self.tokens.new_ticket(known.key)}


def _me(grant: Grant) -> dict[str, Any]:
    sessions = None if grant.sessions is None else sorted(grant.sessions)
    return {"role": grant.role, "sessions": sessions, "expires_at": rfc3339(grant.expires_at)}


def serve_sign_in(app: FastAPI, routes: SignIn) -> None:
    app.post(CHALLENGE, response_model=HubProof)(routes.challenge)
    app.post(SIGN_IN_PATH, response_model=SignedIn)(routes.sign_in)
    app.post("/api/sign-out", status_code=204)(routes.sign_out)
    app.get("/api/me", response_model=Me)(routes.me)
    app.post("/api/launch-code", response_model=Code)(routes.launch_code)
    app.post("/api/ws-ticket", response_model=Ticket)(routes.ws_ticket)
