"""A session as JSON, field by field: what ``hitch ps --json`` prints, REST and the WebSocket serve, and views make.

Light modules leave it to type checkers. The hub validates with it, for which it needs this ``TypedDict``.
"""

from __future__ import annotations

from typing_extensions import TypedDict


class Workspace(TypedDict):
    id: str | None
    path: str
    branch: str | None
    repository: str | None
    """The folder of the repository that it works for, also where its worktree is elsewhere; null outside git. On
    another machine: the address that it was cloned from."""


class SizeOfChanges(TypedDict):
    """How much differs in its folder from where it began: files, and lines of those that are text."""

    files: int
    added: int
    deleted: int
    at: str
    """When that was counted: after a turn or a run, or when somebody last asked for the difference."""


class Exit(TypedDict):
    code: int | None
    signal: str | None
    core_dumped: bool
    intent: str | None
    ended_at: str | None
    ended_at_known: bool
    """False when nobody saw when it ended; ``ended_at`` is then the last sign of life."""


class Report(TypedDict):
    """What the agent is doing, who says so, and what it asks. The message is the agent's own text."""

    state: str
    kind: str | None
    message: str | None
    request: str | None
    options: list[str]
    takes_text: bool
    """Whether a line of text answers the request, too."""
    background: int
    until: str | None
    """When a usage limit ends, as the agent says it; ``ends_at`` is the moment, where that is understood."""
    ends_at: str | None
    source: str
    at: str


class Session(TypedDict):
    """The one shape of a session, the same as ``hitch ps --json`` prints."""

    id: str
    index: int
    name: str
    owner: str | None
    """Whose session it is; null for one of the hub's own user."""
    description: str
    agent: str
    runtime: str
    node: str | None
    """The machine that its pod is on; null where there are no pods."""
    record: str
    workspace: Workspace
    run: int
    state: str
    status: str
    label: str
    quiet_since: str | None
    """Since when the label counts, as in ``running (idle 2m 15s)``; null when it counts nothing."""
    attention: str
    headline: str
    """Whose turn it is, in a word or two, such as ``Needs permission``."""
    detail: str
    """What about, in one line: what is asked, the error, the reason; empty when there is no more to say."""
    report: Report | None
    """Null where nothing but its output tells what it is doing."""
    since: str | None
    """Since when the headline holds."""
    rank: int
    """The smallest comes first in a list: 1 needs permission, 2 your turn, 3 an error, 4 failed or in doubt, 5 finished
    and not seen yet, 6 working, 7 quiet, 8 ended, 9 not listed."""
    glyph: str
    """The headline as one sign."""
    colour: str
    """As ``hitch ps`` paints it: green, blue, orange, violet, yellow, red or grey."""
    section: str
    """The part of a list that it is in: needs-you, finished, working, quiet or ended."""
    actions: list[str]
    """What can be done with it now, the most useful first."""
    changes: SizeOfChanges | None
    """Null where nobody has counted yet, and in a folder that is not its own."""
    pinned: bool
    snoozed_until: str | None
    """Until then it is quiet, whatever it wants."""
    seen_at: str | None
    """When somebody last opened it or was attached to it."""
    live: bool
    """Whether a run of it has begun and not ended."""
    takes_prompt: bool
    """Whether a prompt has somewhere to go: to its run, or to the next one that the prompt starts."""
    refusal: str | None
    """Why the agent would not take a prompt now; null where nothing is known against it."""
    sandbox_alive: bool | None
    session_alive: bool | None
    exit: Exit | None
    survivors: int | None
    """Processes that its runs left behind when they ended, as far as anybody has looked since."""
    created_at: str | None
    started_at: str | None
    state_changed_at: str | None
    last_activity_at: str | None
    """When its newest run wrote something last."""
    last_active_at: str | None
    """When its newest run began, or its record last changed: retention counts from here."""
    idle_after_s: float | None
    """Seconds without output that count as idle."""
    supports_resume: bool
    """Whether its agent can go on with its conversation."""
    conversation: str | None
    """The id of that conversation, as the agent knows it."""
    chat: bool
    """Whether its agent is spoken to over ACP: what is said is a chat, which can be shown instead of the terminal."""
    when_limit: str
    """What happens at a usage limit: it stops there, or the hub waits for its end and goes on."""
