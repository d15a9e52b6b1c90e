"""Clients that are connected to the hub now: open pages show a notification, attached terminals ring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hitchpost.notify.channel import NobodyThere
from hitchpost.notify.message import Message

BROWSER, TERMINAL = "browser", "terminal"
NOBODY = {BROWSER: "no page is open", TERMINAL: "no terminal is attached"}


@dataclass(frozen=True, slots=True)
class Published:
    """``publish`` hands an event to every client that may see its session, and does not wait for any.

    It says whether one of them is of the kind that the event is for.
    """

    name: str
    publish: Callable[[dict[str, Any]], bool]
    dedupes: bool = False

    @property
    def where(self) -> str:
        return {BROWSER: "those that allow it", TERMINAL: "those that are attached"}[self.name]

    async def send(self, message: Message) -> str:
        if not self.publish(event_of(message, self.name)):
            raise NobodyThere(NOBODY[self.name])
        return "told to who is connected"


def event_of(message: Message, to: str) -> dict[str, Any]:
    return {
        "type": "notification",
        "sessionId": message.session,
        "to": to,
        "id": message.id,
        "title": message.title,
        "body": message.body,
    }
