"""The types of a session's JSON, for those who pass it on. Light modules leave it to type checkers."""

from __future__ import annotations

from typing import TypedDict


class WorkspaceJson(TypedDict):
    id: str | None
    path: str
    branch: str | None


class ExitJson(TypedDict):
    code: int | None
    signal: str | None
    core_dumped: bool
    intent: str | None
    ended_at: str | None
    ended_at_known: bool


class ReportJson(TypedDict):
    """What the agent is doing, who says so, and what it asks."""

    state: str
    kind: str | None
    message: str | None
    request: str | None
    options: list[str]
    background: int
    until: str | None
    source: str
    at: str | None


class SessionJson(TypedDict):
    """What each field means is said in ``hub/http/schemas.py``, which has the same."""

    id: str
    index: int
    name: str
    description: str
    agent: str
    runtime: str
    record: str
    workspace: WorkspaceJson
    run: int
    state: str
    status: str
    label: str
    quiet_since: str | None
    attention: str
    headline: str
    detail: str
    report: ReportJson | None
    colour: str
    live: bool
    takes_prompt: bool
    refusal: str | None
    rank: int
    sandbox_alive: bool | None
    session_alive: bool | None
    exit: ExitJson | None
    survivors: int | None
    created_at: str | None
    started_at: str | None
    state_changed_at: str | None
    last_activity_at: str | None
    last_active_at: str | None
    idle_after_s: float | None
    supports_resume: bool
    conversation: str | None
