"""Events about sessions, and who hears them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog

Event = dict[str, Any]
Subscriber = Callable[[Event], bool | None]
log = structlog.get_logger()


class Events:
    """Hands every event to every subscriber, at once and in order.

    There is no queue here: a subscriber must not wait, and bounds what it keeps. One that fails is logged; the others
    still hear the event.
    """

    def __init__(self) -> None:
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call ``subscriber`` with every event from now on. The answer unsubscribes it."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def publish(self, event: Event) -> bool:
        """Whether a subscriber said that the event is for it."""
        is_taken = False
        for subscriber in list(self._subscribers):
            try:
                is_taken |= bool(subscriber(event))
            except Exception as error:
                log.error("a subscriber failed", type=event["type"], session_id=event["sessionId"], exc_info=error)
        return is_taken
