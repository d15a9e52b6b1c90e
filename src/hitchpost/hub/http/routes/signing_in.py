"""Signing in and out: the routes of the handshake, and what a page asks about itself."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field, StringConstraints
from starlette.exceptions import HTTPException

from hitchpost.errors import Refused
from hitchpost.hub.http.depends import CallersGrant
from hitchpost.hub.http.gate import CHALLENGE, SIGN_IN_PATH, Refusal
from hitchpost.hub.http.grants import MEMBER, OWNER, VIEWER, Forbidden, Grant
from hitchpost.hub.http.proof import decoded
from hitchpost.hub.http.schemas import Strict
from hitchpost.hub.http.signin import SignIn
from hitchpost.hub.http.tokenfile import BROWSER, PROXY, NoSuchUser
from hitchpost.hub.http.tokens import CODE_S, LONGEST_CODE_S
from hitchpost.ops.views.moments import rfc3339
from hitchpost.text import readable

router = APIRouter()
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Nonce = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{22,86}$")]
Proof = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]
Role = Annotated[str, StringConstraints(pattern=f"^(?:{OWNER}|{MEMBER}|{VIEWER})$")]


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
    """``name`` is whose sign-in it is, or what a token was made for; empty for the hub's own user. ``sessions`` are the
    ids of those that are seen; null when it is not limited to some. ``user`` is the person; null for the hub's own
    user. ``may`` says what the caller may do: ``change`` sessions that it sees, ``create`` some, ``manage`` the hub."""

    name: str
    user: str | None
    role: str
    may: list[str]
    sessions: list[str] | None
    expires_at: str | None


class SignedIn(Me):
    """``token`` is for ``Authorization: Bearer`` and dies with the hub; ``ticket`` is for the first WebSocket. Who
    comes by a proxy has no token: the proxy says with each request who it is.

    ``id`` is what this browser signs in with from now on; ``page`` is the version of the hub's page.
    """

    id: str
    page: str
    token: str
    ticket: str


class LaunchWish(Strict):
    """Whom a launch code is to sign in: a person, with no more than ``role``, or the hub's own user."""

    role: Role = OWNER
    user: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None
    sessions: list[Id] | None = Field(default=None, max_length=1000)
    lasts_s: float = Field(default=CODE_S, gt=0, le=LONGEST_CODE_S)
    """How long the code can be used, once."""


class Code(BaseModel):
    url: str
    launch_url: str


class Ticket(BaseModel):
    ticket: str


async def sign_in_of(request: Request) -> SignIn:
    sign_in: SignIn = request.app.state.sign_in
    return sign_in


TheSignIn = Annotated[SignIn, Depends(sign_in_of)]


@router.post(CHALLENGE, response_model=HubProof)
async def challenge_hub(sign_in: TheSignIn, request: Request, body: Challenge) -> dict[str, str]:
    """The hub proves itself, to a page of its own only: nobody can pass the proof on to a page elsewhere."""
    origin = request.headers.get("origin", body.origin)
    if body.origin not in request.state.origins or origin != body.origin:
        raise Refusal(403, "forbidden_origin", "the hub proves itself to its own page only")
    nonce, proof = sign_in.tokens.challenge(body.id, body.nonce, body.origin)
    return {"nonce": nonce, "proof": proof}


@router.post(SIGN_IN_PATH, response_model=SignedIn)
async def sign_page_in(sign_in: TheSignIn, body: PageProof) -> dict[str, Any]:
    tokens = sign_in.tokens
    browser = tokens.sign_in(body.nonce, decoded(body.proof))
    if browser is None:
        if tokens.guessed(body.proof):
            raise HTTPException(429, "too many wrong proofs; try again in a minute")
        raise HTTPException(401, "this link was used already, or is too old")
    is_first = await asyncio.to_thread(tokens.write_down, browser.key)
    await tokens.refresh()
    browser = tokens.find(browser.key) if is_first else None
    if browser is None:
        raise HTTPException(401, "this link was used already, or is too old")
    fresh = {"token": tokens.new_token(browser.key), "ticket": tokens.new_ticket(browser.key)}
    return {"id": browser.key, "page": sign_in.page_version, **fresh, **_me(browser.grant, browser.name)}


@router.post("/api/sign-in/proxy", response_model=SignedIn)
async def sign_proxied_in(sign_in: TheSignIn, request: Request) -> dict[str, Any]:
    """For a page whose browser has signed in at an authenticating proxy in front of the hub."""
    held = request.state.held
    if held is None or held.credential.kind != PROXY:
        raise HTTPException(401, "no proxy has signed this browser in")
    ticket = sign_in.tokens.new_ticket(held.credential.key)
    me = _me(held.credential.grant, held.credential.name)
    return {"id": "", "page": sign_in.page_version, "token": "", "ticket": ticket, **me}


@router.post("/api/sign-out", status_code=204)
async def sign_browser_out(sign_in: TheSignIn, request: Request) -> Response:
    """Forget the browser and end what it has open. A script's token stays."""
    held = request.state.held
    if held is not None and held.credential.kind == BROWSER:
        await sign_in.sign_out(held)
    return Response(status_code=204)


@router.get("/api/me", response_model=Me)
async def who_am_i(request: Request, grant: CallersGrant) -> dict[str, Any]:
    held = request.state.held
    return _me(grant, "" if held is None else held.credential.name)


@router.post("/api/launch-code", response_model=Code)
async def new_launch_code(sign_in: TheSignIn, body: LaunchWish | None = None) -> dict[str, str]:
    wish = body or LaunchWish()
    user = (wish.user or "").lower()
    if user and await asyncio.to_thread(sign_in.tokens.file.person, user) is None:
        raise NoSuchUser(user)
    if wish.role == MEMBER and not user:
        raise Refused("a member is somebody: say who", cli_hint="--user NAME says who")
    grant = Grant(wish.role, None if wish.sessions is None else frozenset(wish.sessions), user=user)
    return {"url": sign_in.url, "launch_url": await sign_in.launch_url(grant, wish.lasts_s)}


@router.post("/api/ws-ticket", response_model=Ticket)
async def new_ws_ticket(sign_in: TheSignIn, request: Request) -> dict[str, str]:
    held = request.state.held
    if held is None:
        raise Forbidden("the hub's own socket needs no ticket")
    return {"ticket": sign_in.tokens.new_ticket(held.credential.key)}


def _me(grant: Grant, name: str) -> dict[str, Any]:
    sessions = None if grant.sessions is None else sorted(grant.sessions)
    return {
        "name": readable(grant.user or name),
        "user": grant.user or None,
        "role": grant.role,
        "may": grant.may,
        "sessions": sessions,
        "expires_at": rfc3339(grant.expires_at),
    }
