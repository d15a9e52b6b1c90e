"""``/api/users`` and ``/api/tokens``: who may ask the hub, and what each may use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, Field, StringConstraints

from hitchpost.hub.http.depends import TheHub, ThePeople
from hitchpost.hub.http.grants import Grant
from hitchpost.hub.http.permissions import TOKENS, USERS
from hitchpost.hub.http.schemas import Strict
from hitchpost.settings import YEAR_S
from hitchpost.text import readable

router = APIRouter()
UserName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}$")]
PathUser = Annotated[str, Path(max_length=100)]
TokenId = Annotated[str, Path(max_length=64, description="How its key begins, as the list has it.")]
Role = Literal["owner", "member", "viewer"]
Number = Annotated[float, Field(ge=0, le=1 << 60, allow_inf_nan=False)]
Words = Annotated[str, StringConstraints(pattern=r"^(none|\d{1,15}(\.\d{1,3})?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?)$")]
Amount = Annotated[Number | Words | None, Field(examples=["4Gi"])]
Count = Annotated[int, Field(ge=0, le=1 << 30)] | Annotated[str, StringConstraints(pattern=r"^(none|\d{1,9})$")] | None


class Limits(Strict):
    """What somebody may use at once: sessions that run, and what their pods ask for, such as 2 or ``500m`` processors
    and ``4Gi``. ``none`` is no limit."""

    sessions: Count = None
    cpu: Amount = None
    memory: Amount = None
    storage: Amount = None


class NewUser(Strict):
    name: UserName
    role: Role = "member"
    quota: Limits = Limits()


class UserChanges(Strict):
    """Only what is given changes."""

    role: Role | None = None
    quota: Limits = Limits()


class User(BaseModel):
    name: str
    role: str
    quota: dict[str, int | float | str]
    created_at: str


class UserInUse(User):
    """``used`` is what counts against the quota now."""

    used: dict[str, int | float | str]


class NewToken(Strict):
    """``user`` is whose token it is: it may do what that person may, and no more than ``role``. Without one, it is a
    token of the hub's own user. Without ``lasts_s`` it lasts until it is taken back."""

    name: Annotated[str, StringConstraints(max_length=128)] = ""
    user: UserName | None = None
    role: Role = "owner"
    sessions: list[Annotated[str, StringConstraints(max_length=128)]] | None = Field(default=None, max_length=1000)
    lasts_s: float | None = Field(default=None, gt=0, le=10 * YEAR_S)


class TokenView(BaseModel):
    id: str
    kind: str
    name: str
    role: str
    user: str | None
    sessions: list[str] | None
    created_at: str
    expires_at: str
    used_at: str


class MadeToken(BaseModel):
    """``token`` is shown this once."""

    id: str
    token: str


class UserRemoved(BaseModel):
    """How many tokens and sign-ins have ended with the person."""

    ended: int


@router.get(USERS, response_model=list[UserInUse])
async def list_users(people: ThePeople) -> list[dict[str, Any]]:
    return await people.all()


@router.post(USERS, response_model=User, status_code=201)
async def add_user(people: ThePeople, body: NewUser) -> dict[str, Any]:
    return (await people.add(body.name, body.role, body.quota.model_dump(exclude_unset=True))).shape()


@router.patch(f"{USERS}/{{user}}", response_model=User)
async def change_user(people: ThePeople, user: PathUser, body: UserChanges) -> dict[str, Any]:
    """What a person may no longer do has ended when this is answered, here; within two seconds everywhere."""
    return (await people.change(user.lower(), body.role, body.quota.model_dump(exclude_unset=True))).shape()


@router.delete(f"{USERS}/{{user}}", response_model=UserRemoved)
async def remove_user(people: ThePeople, user: PathUser) -> dict[str, Any]:
    """With every token and sign-in. The person's sessions stay: owners see them."""
    return {"ended": len(await people.remove(user.lower()))}


@router.get(TOKENS, response_model=list[TokenView])
async def list_tokens(hub: TheHub, people: ThePeople) -> list[dict[str, Any]]:
    """Tokens of scripts, and browsers that are signed in."""
    return readable([credential.shape() for credential in await hub.do(people.tokens.file.all)])


@router.post(TOKENS, response_model=MadeToken, status_code=201)
async def create_token(hub: TheHub, people: ThePeople, body: NewToken) -> dict[str, Any]:
    sessions = None
    if body.sessions is not None:
        sessions = frozenset([(await hub.find(name)).id for name in body.sessions])
    ends = None if body.lasts_s is None else datetime.now(UTC) + timedelta(seconds=body.lasts_s)
    user = (body.user or "").lower()
    token, made = await people.new_token(body.name, Grant(body.role, sessions, ends, user))
    return {"id": made.id, "token": token}


@router.delete(f"{TOKENS}/{{token}}", status_code=204)
async def remove_token(people: ThePeople, token: TokenId) -> Response:
    """Whatever goes on with it ends."""
    await people.remove_token(token)
    return Response(status_code=204)
