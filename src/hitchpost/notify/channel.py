"""A way to tell a person, and how it may fail."""

from __future__ import annotations

from typing import Protocol

from hitchpost.errors import HitchpostError
from hitchpost.notify.message import Message


class Channel(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def dedupes(self) -> bool:
        """Whether the same message, sent twice, is shown once: by its id, at the other end."""

    @property
    def where(self) -> str:
        """Where it goes, for people. No address that is a secret."""

    async def send(self, message: Message) -> str:
        """Hand the message over; what was done, in a few words. Raises ``Undelivered``."""


class Undelivered(HitchpostError):
    """Raised when a message was not handed over. ``again``: it surely did not arrive, and may the next time."""

    http_status = 502
    code = "not_delivered"

    def __init__(self, why: str, *, again: bool = False) -> None:
        super().__init__(why)
        self.again = again


class NobodyThere(Undelivered):
    """Raised when nobody is connected whom it could reach. Nothing is wrong, and nobody was told."""
