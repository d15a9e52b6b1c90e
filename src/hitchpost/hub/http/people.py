"""The people of a hub: who is there, with which tokens, what they use, and what members may start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from hitchpost.errors import NoSuchToken
from hitchpost.hub.core import Hub
from hitchpost.hub.http.grants import Forbidden, Grant
from hitchpost.hub.http.proxy import PeopleOptions
from hitchpost.hub.http.tokenfile import Credential
from hitchpost.hub.http.tokens import Tokens, add_bearer
from hitchpost.model.people import NO_QUOTA, Amounts, Person, checked_name

T = TypeVar("T")


class People:
    """``options`` are those of the settings. In a fleet, what is changed here is known to all hubs when it is answered.

    Each change is in the file when it returns, and has ended what it takes away within a moment: the hub hears of
    changes of the file, wherever they come from.
    """

    def __init__(self, hub: Hub, tokens: Tokens) -> None:
        self.hub, self.tokens = hub, tokens
        self.options = PeopleOptions()

    def check_runtime(self, grant: Grant, runtime: str) -> None:
        """Raises ``Forbidden``. On this machine an agent runs as the hub's own user, with all that this user may do."""
        if grant.own and runtime not in self.options.member_runtimes:
            allowed = ", ".join(self.options.member_runtimes) or "none"
            raise Forbidden(
                f"members cannot start sessions on the runtime {runtime}; allowed are: {allowed}",
                "choose another runtime; an owner sets people.member_runtimes in the hub's settings",
            )

    async def all(self) -> list[dict[str, object]]:
        """Everybody, with what each may use and does use."""
        people = await asyncio.to_thread(self.tokens.file.people)
        used = await self.hub.used_by([person.name for person in people])
        return [{**person.shape(), "used": used.get(person.name, Amounts()).shape()} for person in people]

    async def add(self, name: str, role: str, quota: Mapping[str, object]) -> Person:
        """Raises ``UserExists`` or ``UsageError``."""
        person = Person(checked_name(name), role, NO_QUOTA.changed(quota))
        return await self._changed(self.tokens.file.add_person, person)

    async def change(self, name: str, role: str | None, quota: Mapping[str, object]) -> Person:
        return await self._changed(self.tokens.file.change_person, name, role, quota)

    async def remove(self, name: str) -> list[Credential]:
        """Their tokens and sign-ins end with them; their sessions stay."""
        return await self._changed(self.tokens.file.remove_person, name)

    async def new_token(self, name: str, grant: Grant) -> tuple[str, Credential]:
        return await self._changed(add_bearer, self.tokens.file, name, grant)

    async def remove_token(self, credential_id: str) -> None:
        """Raises ``NoSuchToken``."""
        known = await asyncio.to_thread(self.tokens.file.all)
        if credential_id not in {credential.id for credential in known}:
            raise NoSuchToken(credential_id)
        await self._changed(self.tokens.file.remove, credential_id)

    async def _changed(self, call: Callable[..., T], *args: Any) -> T:
        """In a thread; what is no longer allowed has ended when it is answered."""
        answer = await asyncio.to_thread(call, *args)
        await self.tokens.live.check()
        return answer
