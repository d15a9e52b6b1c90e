"""Every subscriber hears every event."""

from __future__ import annotations

from typing import Any

from structlog.testing import capture_logs

from hitchpost.hub.events import Event, Events

EVENT: Event = {"type": "session.updated", "sessionId": "a"}


def test_a_subscriber_that_fails_keeps_the_event_from_nobody() -> None:
    events, heard = Events(), list[Any]()

    def fail(event: Event) -> None:
        raise KeyError("run")

    events.subscribe(fail)
    events.subscribe(heard.append)
    with capture_logs() as lines:
        events.publish(EVENT)
    assert heard == [EVENT]
    assert [(line["event"], line["session_id"]) for line in lines] == [("a subscriber failed", "a")]


def test_who_has_unsubscribed_hears_nothing_more() -> None:
    events, heard = Events(), list[Any]()
    unsubscribe = events.subscribe(heard.append)
    events.publish(EVENT)
    unsubscribe()
    events.publish(EVENT)
    assert heard == [EVENT]
