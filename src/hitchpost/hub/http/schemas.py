"""What goes over the wire, for validation and for OpenAPI."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from hitchpost.model.record import ALL
from hitchpost.ops.sessions.create import LONGEST_NAME
from hitchpost.settings import YEAR_S

Text = Annotated[str, StringConstraints(max_length=512 * 1024)]
Name = Annotated[str, StringConstraints(max_length=128, pattern=r"^[^\x00]*$")]
Path = Annotated[str, StringConstraints(max_length=4096, pattern=r"^[^\x00]*$")]
Word = Annotated[str, StringConstraints(max_length=512 * 1024, pattern=r"^[^\x00]*$")]
Remark = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")]
Seconds = Annotated[float, Field(ge=0, le=YEAR_S, allow_inf_nan=False)]
RecordNames = Annotated[
    str, StringConstraints(max_length=100, pattern=rf"^(?:{'|'.join(ALL)})(?:,(?:{'|'.join(ALL)}))*$")
]
Side = Annotated[int, Field(ge=1, le=1000)]
"""A side of a terminal. An emulator takes memory for every cell."""
MOST_INPUT_BYTES = 1 << 20


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Error(BaseModel):
    code: str
    message: str
    hint: str = ""
    field: str | None = None
    """The field that is wrong, such as ``name`` or ``sandbox.image``; missing when it is not one alone."""


class ErrorBody(BaseModel):
    error: Error


class Workspace(BaseModel):
    id: str | None
    path: str
    branch: str | None


class Exit(BaseModel):
    code: int | None
    signal: str | None
    core_dumped: bool
    intent: str | None
    ended_at: str | None
    ended_at_known: bool
    """False when nobody saw when it ended; ``ended_at`` is then the last sign of life."""


class Session(BaseModel):
    """The one shape of a session, the same as ``hitch ps --json`` prints."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "k3v9q0x2m7ab",
                    "index": 1,
                    "name": "dev",
                    "description": "",
                    "agent": "claude",
                    "runtime": "local",
                    "record": "active",
                    "workspace": {"id": None, "path": "/src/shop", "branch": None},
                    "run": 2,
                    "state": "failed",
                    "status": "failed",
                    "label": "failed: command exited with code 1",
                    "quiet_since": None,
                    "attention": "unknown",
                    "colour": "red",
                    "live": False,
                    "takes_prompt": False,
                    "rank": 2,
                    "sandbox_alive": None,
                    "session_alive": False,
                    "exit": {
                        "code": 1,
                        "signal": None,
                        "core_dumped": False,
                        "intent": None,
                        "ended_at": "2026-05-04T12:10:00Z",
                        "ended_at_known": True,
                    },
                    "survivors": 0,
                    "created_at": "2026-05-04T12:00:00Z",
                    "started_at": "2026-05-04T12:00:01Z",
                    "state_changed_at": "2026-05-04T12:10:00Z",
                    "last_activity_at": "2026-05-04T12:09:59Z",
                    "last_active_at": "2026-05-04T12:00:01Z",
                    "idle_after_s": 30.0,
                    "supports_resume": False,
                }
            ]
        }
    )

    id: str
    index: int
    name: str
    description: str
    agent: str
    runtime: str
    record: str
    workspace: Workspace
    run: int
    state: str
    status: str
    label: str
    quiet_since: str | None
    """Since when the label counts, as in ``running (idle 2m 15s)``; null when it counts nothing."""
    attention: str
    colour: str
    """As ``hitch ps`` paints it: green, blue, orange, yellow, red or grey."""
    live: bool
    """Whether a run of it has begun and not ended."""
    takes_prompt: bool
    """Whether a prompt has somewhere to go: to its run, or to the next one that the prompt starts."""
    rank: int
    """The smallest comes first in a list: blocked, waiting, failed, in doubt, live, the rest, not listed."""
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


class SessionWithNotes(BaseModel):
    session: Session
    notes: list[str] = []


class Sandbox(Strict):
    """For the docker runtime; what is missing is as the settings say."""

    image: Name | None = None
    mounts: list[Path] = Field(default=[], max_length=100)
    network: Name | None = None
    memory: Name | None = None
    cpus: float | None = Field(default=None, gt=0, le=1024)
    config: Path | None = None
    keep_failed: bool = False


class NewSession(Strict):
    """An agent of the catalog, or any command; ``folder`` is where a branch or a relative path is looked for."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"command": ["sh", "-c", "echo hello"], "folder": "/src/shop"}]}
    )

    agent: Name | None = None
    command: list[Word] = Field(default=[], max_length=1000)
    folder: Path
    branch: Name | None = None
    workspace: Path | None = None
    exclusive: bool = False
    share: bool = False
    name: Name | None = None
    description: Remark = ""
    runtime: Name = "local"
    sandbox: Sandbox | None = None
    idle_after_s: Seconds | None = None
    prompt: Text | None = None
    env: dict[Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], Path] = {}
    cols: Side = 80
    rows: Side = 24


class Changes(Strict):
    name: Name | None = None
    description: Remark | None = None
    idle_after_s: Seconds | None = None


class Prompt(Strict):
    text: Text
    enter: bool = True
    force: bool = False


class PromptAnswer(BaseModel):
    delivered: bool
    offset: int
    started: bool
    session: Session


class StopWish(Strict):
    reason: Remark = ""


class RecordAnswer(BaseModel):
    """The state-machine page's answer: its own word, and our whole shape."""

    sessionId: str
    status: str
    resumed: bool = False
    cancelled: bool = False
    notes: list[str] = []
    session: Session


class Health(BaseModel):
    ok: bool
    version: str
    pid: int
    uptime_s: float
    sessions: int
    live: int
    problems: list[str] = Field(
        default_factory=list, examples=[[]], description="What keeps the hub from its work, for people."
    )


class AgentView(BaseModel):
    """A session as ``/api/agents`` shows it. ``state`` may be a word that a client does not know."""

    id: str
    name: str
    display_name: str
    state: str
    session_alive: bool | None
    sandbox_alive: bool | None
    container: str | None = None


class Container(BaseModel):
    """A container that is there. ``name`` is what people read, ``container`` its name at the engine.

    ``state`` is the agent's state as ``/api/agents`` has it, ``status`` the session's word.
    """

    name: str
    container: str
    session: str
    state: str
    status: str
    note: str


class Status(BaseModel):
    """``counts`` says how many agents are in which state; all are of the sessions that ``hitch ps`` lists."""

    hub: Health
    counts: dict[str, int]
    containers: list[Container]
    agents: list[AgentView]
    sessions: list[Session]


class StoryLine(BaseModel):
    model_config = ConfigDict(extra="allow")
    at: str
    event: str


class Run(BaseModel):
    model_config = ConfigDict(extra="allow")
    run: int
    state: str


class Screen(BaseModel):
    text: str
    offset: int


class ChangedFile(BaseModel):
    """Lines are counted for text only. ``status`` is git's letter."""

    path: str
    old_path: str | None
    status: str
    added: int | None
    deleted: int | None
    binary: bool
    untracked: bool


class Difference(BaseModel):
    base: str | None
    head: str | None
    branch: str | None
    files: list[ChangedFile]
    patch: str
    cut: bool
    """The difference is larger than what is shown of it."""


class Fact(BaseModel):
    """``source`` is a file of the session's folder, or what was looked at."""

    fact: str
    value: str
    source: str
    at: str | None


class Explanation(BaseModel):
    session: Session
    at: str
    rule: str
    facts: list[Fact]


class ExportedSession(BaseModel):
    """``status`` is active, waiting, idle, error or stopped; ``session`` is the one shape."""

    sessionId: str
    name: str
    status: str
    reason: str | None
    worktreePath: str
    branch: str | None
    createdAt: str | None
    lastActivity: str | None
    exitCode: int | None
    signal: str | None
    session: Session


class Export(BaseModel):
    version: int
    exported_at: str
    sessions: list[ExportedSession]


class CatalogAgent(BaseModel):
    """``path`` is where its program is; null when it is not installed, and ``install`` then says how to."""

    name: str
    title: str
    argv: list[str]
    path: str | None
    install: str


class CatalogRuntime(BaseModel):
    """``missing`` is why it cannot be used; empty when it can."""

    name: str
    available: bool
    missing: str


class Catalog(BaseModel):
    """What a session can be made of on the hub's machine."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "agents": [
                        {
                            "name": "claude",
                            "title": "Claude Code",
                            "argv": ["claude"],
                            "path": None,
                            "install": "npm install -g @anthropic-ai/claude-code",
                        }
                    ],
                    "runtimes": [{"name": "local", "available": True, "missing": ""}],
                }
            ]
        }
    )

    agents: list[CatalogAgent]
    runtimes: list[CatalogRuntime]


# The WebSocket: what a client says ------------------------------------------------------------------------------


class Message(BaseModel):
    """Of a client. Fields that are not known are ignored."""

    model_config = ConfigDict(extra="ignore")
    sessionId: str = Field(max_length=LONGEST_NAME)


class Attach(Message):
    """Look at a session; ``from`` is the offset of the first byte that is wanted."""

    type: Literal["session.attach"]
    cols: Side = 80
    rows: Side = 24
    readOnly: bool = False
    start: int | None = Field(default=None, alias="from", ge=0)


class Detach(Message):
    type: Literal["session.detach"]


class Input(Message):
    """What a person types; or, as an answer, what a client's terminal says by itself when the program asks it."""

    type: Literal["terminal.input", "terminal.answer"]
    data: str = Field(max_length=MOST_INPUT_BYTES)

    @property
    def encoded(self) -> bytes:
        return self.data.encode("utf-8", "surrogatepass")


class Resize(Message):
    type: Literal["terminal.resize"]
    cols: Side
    rows: Side


class Resume(Message):
    """Start the next run of a session that has ended."""

    type: Literal["session.resume"]


class Watch(Message):
    """Tell when files of the session's worktree change, or stop telling."""

    type: Literal["workspace.watch", "workspace.unwatch"]


ClientMessage = Annotated[Attach | Detach | Input | Resize | Resume | Watch, Field(discriminator="type")]


# The WebSocket: what the hub says -------------------------------------------------------------------------------


class HubEvent(BaseModel):
    """For the page's types and for tests. The hub does not check what it says itself, so it builds none of these."""

    model_config = ConfigDict(defer_build=True)


class Attached(HubEvent):
    """Binary frames of this view carry ``channel``."""

    type: Literal["session.attached"]
    sessionId: str
    channel: int
    run: int
    cols: int
    rows: int
    offset: int


class SessionChanged(HubEvent):
    type: Literal["session.created", "session.updated", "session.removed"]
    sessionId: str
    session: Session


class StatusChanged(HubEvent):
    """``status`` is active, waiting, idle, error or stopped. ``reason`` goes with ``error``."""

    type: Literal["session.status"]
    sessionId: str
    status: str
    reason: str | None = None
    session: Session


class Ended(HubEvent):
    """``exitCode`` is 128 and the number for a signal; null when nobody saw the end."""

    type: Literal["terminal.exit"]
    sessionId: str
    exitCode: int | None
    signal: str | None = None
    signalNumber: int | None = None
    run: int


class Size(HubEvent):
    type: Literal["terminal.size"]
    sessionId: str
    cols: int
    rows: int


class WorkspaceChanged(HubEvent):
    type: Literal["workspace.changed"]
    sessionId: str


class ErrorMessage(HubEvent):
    """What the client asked for was not done."""

    type: Literal["error"]
    code: str
    message: str
    sessionId: str | None = None


HubMessage = Annotated[
    Attached | SessionChanged | StatusChanged | Ended | Size | WorkspaceChanged | ErrorMessage,
    Field(discriminator="type"),
]
