"""ntfy: a topic on a server of the owner's choice. As JSON: no text of an agent is in a header."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hitchpost.notify.message import Message
from hitchpost.notify.post import checked, origin, post


@dataclass(frozen=True, slots=True)
class Ntfy:
    """``url`` is the topic's. Servers before 2.16 show a message that comes twice two times, so none is repeated."""

    url: str
    token: str = ""
    name: str = "ntfy"
    dedupes: bool = False

    @property
    def where(self) -> str:
        return origin(self.url)

    async def send(self, message: Message) -> str:
        server, _, topic = self.url.rstrip("/").rpartition("/")
        value = {
            "topic": topic,
            "title": message.title,
            "message": message.body or message.title,
            "click": message.link,
            "priority": 4 if message.is_urgent else 3,
        }
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return checked(await post(f"{server}/", headers, json.dumps(value).encode()))
