"""Waiting for sessions of a hub elsewhere. The hub waits for some seconds at a time, and is asked again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from hitchpost.cli.remote.hub import RemoteHub
from hitchpost.ops.views.session_types import Session
from hitchpost.ops.views.wait import TimedOut

SLICE_S = 10.0


class Deadline:
    """``slice_s`` is how long to wait at once; none is left when it is 0."""

    def __init__(self, timeout_s: float | None) -> None:
        self.timeout_s, self._began = timeout_s, time.monotonic()

    @property
    def slice_s(self) -> float:
        if self.timeout_s is None:
            return SLICE_S
        return max(0.0, min(SLICE_S, self._began + self.timeout_s - time.monotonic()))


def wait_for_any(
    hub: RemoteHub, sessions: Sequence[Session], until: str, *, timeout_s: float | None, since: str | None = None
) -> tuple[Session, bool]:
    """The first session that is ``until``, and whether its run has ended. Raises ``TimedOut``.

    What the agent has reported before ``since`` does not count.
    """
    followed = {"session": [one["id"] for one in sessions], "run": [one["run"] for one in sessions]}
    deadline = Deadline(timeout_s)
    while True:
        within_s = deadline.slice_s
        found = hub.get("/api/wait", **followed, until=until, since=since, within_s=within_s)
        if found["session"] is not None:
            return found["session"], found["has_ended"]
        if not deadline.slice_s:
            now: list[Session] = [hub.get(f"/api/sessions/{one['id']}") for one in sessions]
            names, labels = (", ".join(one[key] for one in now) for key in ("name", "label"))
            raise TimedOut(names, found["not_yet"], timeout_s or 0, labels)


def outcome(hub: RemoteHub, session: Session, since: str, *, timeout_s: float | None) -> dict[str, Any]:
    """What became of a session that was begun, or told something, at ``since``. Raises ``TimedOut``."""
    deadline = Deadline(timeout_s)
    path = f"/api/sessions/{session['id']}/outcome"
    while True:
        within_s = deadline.slice_s
        found: dict[str, Any] = hub.get(path, since=since, run=session["run"], within_s=within_s)
        if found["outcome"] is not None:
            return found
        if not deadline.slice_s:
            now: Session = hub.get(f"/api/sessions/{session['id']}")
            raise TimedOut(now["name"], found["not_yet"], timeout_s or 0, now["label"])


def command(
    hub: RemoteHub, sessions: tuple[str, ...], any_of: bool, until: str, timeout_s: float | None, as_json: bool
) -> None:
    """``hitch wait``."""
    from hitchpost.cli.wait import check_number, tell

    check_number(sessions, any_of)
    found = [hub.find(session).session for session in sessions]
    became, ended = wait_for_any(hub, found, until, timeout_s=timeout_s)
    tell(became, until, ended=ended, as_json=as_json)
