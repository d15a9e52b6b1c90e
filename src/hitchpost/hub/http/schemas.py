"""What REST takes and gives, for validation and for OpenAPI."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from hitchpost.model.record import ALL
from hitchpost.model.run import LONGEST_GRACE_S
from hitchpost.ops.views.session_types import Session as Session  # served as it is
from hitchpost.settings import YEAR_S
from hitchpost.store.images import MOST_BYTES, MOST_IMAGES

Text = Annotated[str, StringConstraints(max_length=512 * 1024)]
Name = Annotated[str, StringConstraints(max_length=128, pattern=r"^[^\x00]*$")]
Path = Annotated[str, StringConstraints(max_length=4096, pattern=r"^[^\x00]*$")]
Place = Annotated[Path, AfterValidator(os.path.expanduser)]
"""``~`` is the home folder of who runs the hub."""
Address = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"^[^\x00-\x20]+$")]
Word = Annotated[str, StringConstraints(max_length=512 * 1024, pattern=r"^[^\x00]*$")]
Remark = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")]
Seconds = Annotated[float, Field(ge=0, le=YEAR_S, allow_inf_nan=False)]
RecordNames = Annotated[
    str, StringConstraints(max_length=100, pattern=rf"^(?:{'|'.join(ALL)})(?:,(?:{'|'.join(ALL)}))*$")
]
WhenLimit = Literal["", "stop", "wait"]
"""What happens at a usage limit; empty: as before, or as the settings say."""
Side = Annotated[int, Field(ge=1, le=1000)]
"""A side of a terminal. An emulator takes memory for every cell."""


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CommandLine(BaseModel):
    """What ``hitch`` says and ends with, where it is another than the rest tells: options to use, its exit code."""

    hint: str | None = None
    exit_code: int | None = None


class Error(BaseModel):
    code: str
    message: str
    hint: str = ""
    field: str | None = None
    """The field that is wrong, such as ``name`` or ``sandbox.image``; missing when it is not one alone."""
    cli: CommandLine | None = None


class ErrorBody(BaseModel):
    error: Error


EXAMPLE: dict[str, Any] = {
    "id": "k3v9q0x2m7ab",
    "index": 1,
    "name": "dev",
    "owner": None,
    "description": "",
    "agent": "claude",
    "runtime": "local",
    "node": None,
    "record": "active",
    "workspace": {"id": None, "path": "/src/shop", "branch": None, "repository": "/src/shop"},
    "run": 2,
    "state": "failed",
    "status": "failed",
    "label": "failed: command exited with code 1",
    "quiet_since": None,
    "attention": "unknown",
    "headline": "Failed",
    "detail": "command exited with code 1",
    "since": "2026-05-04T12:10:00Z",
    "rank": 4,
    "glyph": "✕",
    "colour": "red",
    "section": "needs-you",
    "actions": ["restart", "review", "archive", "delete"],
    "changes": None,
    "pinned": False,
    "snoozed_until": None,
    "seen_at": None,
    "live": False,
    "takes_prompt": False,
    "refusal": None,
    "report": None,
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
    "conversation": None,
    "chat": False,
    "when_limit": "stop",
}
Session.__pydantic_config__ = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})  # type: ignore[attr-defined]


class Found(BaseModel):
    """A session, and what the command line says about it: the ``word`` that means it in a shell, how it goes on when it
    does not run (``way_on``), and ``notes`` of what a person should know."""

    session: Session
    word: str
    way_on: str
    notes: list[str]


class SessionWithNotes(BaseModel):
    session: Session
    notes: list[str] = []


class Sandbox(Strict):
    """For the docker runtime; what is missing is as the settings say."""

    image: Name | None = None
    mounts: list[Place] = Field(default=[], max_length=100)
    network: Name | None = None
    memory: Name | None = None
    cpus: float | None = Field(default=None, gt=0, le=1024)
    config: Place | None = None
    keep_failed: bool = False


class NewSession(Strict):
    """An agent of the catalog, or any command; ``folder`` is where a branch or a relative path is looked for.

    For a session in a pod, ``repo`` is a repository that is cloned instead.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"command": ["sh", "-c", "echo hello"], "folder": "/src/shop"}],
            "anyOf": [{"required": ["folder"]}, {"required": ["repo"]}],
        },
    )

    agent: Name | None = None
    command: list[Word] = Field(default=[], max_length=1000)
    folder: Place | None = None
    repo: Address | None = None
    profile: Name = ""
    branch: Name | None = None
    workspace: Place | None = None
    exclusive: bool = False
    share: bool = False
    name: Name | None = None
    description: Remark = ""
    runtime: Name = "local"
    sandbox: Sandbox | None = None
    permission_mode: Name = ""
    model: Name = ""
    idle_after_s: Seconds | None = None
    when_limit: WhenLimit = ""
    prompt: Text | None = None
    prompt_is_typed: bool = False
    """It must stand in no arguments: it is typed, also for an agent that takes it there."""
    until_ready: bool = True
    """The answer waits until the agent is ready, and says so when it ends at once."""
    env: dict[Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], Path] = {}
    cols: Side = 80
    rows: Side = 24


class Changes(Strict):
    name: Name | None = None
    description: Remark | None = None
    idle_after_s: Seconds | None = None
    pinned: bool | None = None
    snooze_s: Seconds | None = None
    """For so long it is quiet, whatever it wants; 0 ends that."""
    when_limit: WhenLimit | None = None


class Prompt(Strict):
    """``resume``: a session that has ended or is suspended is resumed first.

    ``images`` are in base64, for an agent over ACP that takes them: PNG, JPEG, GIF or WebP.
    """

    text: Text
    enter: bool = True
    force: bool = False
    resume: bool = False
    images: list[Annotated[str, StringConstraints(max_length=MOST_BYTES * 4 // 3 + 4)]] = Field(
        default=[], max_length=MOST_IMAGES
    )


class Answer(Strict):
    """``request`` names what is answered; empty means what is asked now."""

    choice: Text
    request: Remark = ""
    message: Remark = ""


class PromptAnswer(BaseModel):
    """``proof`` is what showed that the agent has the prompt; without one it was typed, and is not confirmed.

    ``waits``: it is in the queue of an agent over ACP, which gets it when it is done with what it works on. The hub
    took it at ``since``: whoever waits for the agent then names that. ``notes`` are about a run that it has started.
    """

    delivered: bool
    proof: str
    offset: int
    started: bool
    waits: bool
    since: str
    notes: list[str] = []
    session: Session


class Lost(BaseModel):
    """What was deleted with a session and is nowhere else, in words."""

    lost: list[str]


class StopWish(Strict):
    """``grace_s``: so long it has until force is used; missing for what it was made with."""

    reason: Remark = ""
    grace_s: float | None = Field(default=None, ge=0, le=LONGEST_GRACE_S, allow_inf_nan=False)


class RestartWish(Strict):
    """``again`` sends the first prompt once more; ``workspace`` moves the session to another workspace or folder, for
    who owns everything. ``force`` gives a pod up that nobody reaches. Its agent may still be running: then two of them
    work on the same files."""

    again: bool = False
    workspace: Place | None = None
    force: bool = False


class ResumeWish(Strict):
    """``agent`` is another one that goes on with the conversation; empty: the same."""

    agent: Name = ""
    when_limit: WhenLimit = ""


class ForkWish(Strict):
    name: Name | None = None


class RecordAnswer(BaseModel):
    """The state-machine page's answer: its own word, and our whole shape. ``resumed``: the same conversation."""

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


class UsageSum(BaseModel):
    """Tokens of some turns. ``cost_usd`` is null when no agent has told it; ``key`` is a day, an agent …"""

    key: str
    turns: int
    input: int
    cached: int
    cache_write: int
    output: int
    cost_usd: float | None
    total: int


class UsageLimit(BaseModel):
    """A limit that the agent of a session is at now. ``ends_at`` is null where its own words are not understood."""

    session: str
    name: str
    agent: str
    until: str | None
    ends_at: str | None
    detail: str


class Usage(BaseModel):
    by: str
    since: str
    sums: list[UsageSum]
    total: UsageSum
    limits: list[UsageLimit]


class StoryLine(BaseModel):
    model_config = ConfigDict(extra="allow")
    at: str
    event: str


class Run(BaseModel):
    model_config = ConfigDict(extra="allow")
    run: int
    state: str


class ToolDiff(BaseModel):
    """What a tool has changed in a file."""

    path: str
    old: str
    new: str


class PlanEntry(BaseModel):
    text: str
    status: str


class ChatLine(BaseModel):
    """``type`` is begun, user, agent, thought, tool, plan, permission, answer, turn or notice. Messages come in parts.

    A prompt that waits is ``queued``; then it is ``user``'s, ``taken_back`` or ``not_sent``, by its name ``prompt``.
    Each type has some of the fields. ``images`` are names of a prompt's, and in ``begun`` whether the agent takes any.
    """

    model_config = ConfigDict(extra="allow")
    at: str
    run: int
    type: str
    text: str = ""
    resumed: bool = False
    images: bool | list[str] = []
    prompt: str = ""
    id: str = ""
    title: str = ""
    kind: str = ""
    status: str = ""
    output: str = ""
    diffs: list[ToolDiff] = []
    entries: list[PlanEntry] = []
    request: str = ""
    tool: str = ""
    options: dict[str, str] = {}
    choice: str = ""
    state: str = ""
    message: str = ""


class Chat(BaseModel):
    lines: list[ChatLine]
    next: int


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
    """``in_status_s`` is how long it has had its status. ``story`` is there when it was asked for."""

    session: Session
    at: str
    in_status_s: float
    rule: str
    facts: list[Fact]
    story: list[StoryLine] | None = None


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
    """``path`` is where its program is; null when it is not installed, and ``install`` then says how to.

    ``broken`` is what is wrong with the file that describes it; empty when nothing is. ``options`` are what a session
    may choose of it: ``permission_mode``, ``model``. It is ``watched`` where Hitchpost knows what it is doing, and a
    ``chat`` over ACP. A session can be handed over between all that have the same ``conversations``.
    """

    name: str
    title: str
    argv: list[str]
    path: str | None
    install: str
    broken: str
    options: list[str]
    watched: bool
    chat: bool
    conversations: str


class Folder(BaseModel):
    """``repository`` says that it is the top of a git repository."""

    path: str
    repository: bool


class Folders(BaseModel):
    """``path`` is what was typed, in full, ``home`` what ``~`` stands for, ``repository`` the one that ``path`` is in.

    ``branch`` is a name that no branch there has, like the one that was asked for. ``folders`` are those that ``path``
    may become; ``cut`` says that there are more.
    """

    path: str
    home: str
    is_folder: bool
    repository: str | None
    branch: str | None
    folders: list[Folder]
    cut: bool


class CatalogRuntime(BaseModel):
    """``missing`` is why it cannot be used; empty when it can."""

    name: str
    available: bool
    missing: str


class CatalogProfile(BaseModel):
    """What a session in a pod can have. Amounts are as Kubernetes writes them."""

    name: str
    cpu: str
    memory: str
    storage: str


class Catalog(BaseModel):
    """What a session can be made of on the hub's machine, or in a fleet's pods: there are ``profiles`` there, the usual
    one first, and an agent without a ``path`` may be in the image all the same. ``detach_key`` is how ``hitch attach``
    is left there, as the settings write it; empty where nothing is set."""

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
                            "broken": "",
                            "options": ["permission_mode", "model"],
                            "watched": True,
                            "chat": False,
                            "conversations": "claude",
                        }
                    ],
                    "runtimes": [{"name": "local", "available": True, "missing": ""}],
                    "profiles": [],
                    "detach_key": "",
                }
            ]
        }
    )

    agents: list[CatalogAgent]
    runtimes: list[CatalogRuntime]
    profiles: list[CatalogProfile]
    detach_key: str


Kind = Literal["permission", "your-turn", "error", "failed", "finished", "hub"]
ChannelName = Literal["browser", "push", "ntfy", "webhook", "command", "desktop", "terminal"]
AnHour = Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)]
ADay = Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)]
Hours = Annotated[str, StringConstraints(pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9])?$")]


class NotificationChoices(Strict):
    """What a person chooses in the page. What is left out stays as it is."""

    kinds: list[Kind] | None = Field(default=None, max_length=20)
    sessions: dict[Name, Annotated[list[Kind], Field(max_length=20)]] | None = Field(default=None, max_length=1000)
    """The kinds for some sessions, by name or id."""
    dwell_s: AnHour | None = None
    cooldown_s: ADay | None = None
    group_s: AnHour | None = None
    quiet_hours: Hours | None = None
    """Such as 22:00-07:00, in the hub's own time zone; empty for none."""
    off: list[ChannelName] | None = Field(default=None, max_length=20)
    """Channels that are not used."""


class NotificationChannel(BaseModel):
    name: ChannelName
    ready: bool
    """Whether it is set up."""
    on: bool
    where: str
    """Where it goes, without what is secret."""


class PushSubscription(BaseModel):
    id: str
    created_at: str
    by: str


class Notifications(BaseModel):
    kinds: list[Kind]
    every_kind: list[Kind]
    sessions: dict[str, list[Kind]]
    dwell_s: float
    cooldown_s: float
    group_s: float
    quiet_hours: str
    channels: list[NotificationChannel]
    push_key: str
    """The hub's public key, for a browser that subscribes."""
    subscriptions: list[PushSubscription]


class SubscriptionKeys(BaseModel):
    p256dh: str = Field(max_length=200)
    auth: str = Field(max_length=100)


class NewSubscription(BaseModel):
    endpoint: str = Field(max_length=2000)
    keys: SubscriptionKeys


class SubscriptionMade(BaseModel):
    id: str


class NotificationTest(Strict):
    channel: str = Field(default="", max_length=100)
    """Empty for every channel that is on."""


class NotificationOutcome(BaseModel):
    channel: str
    outcome: str
    """Sent, failed or unknown."""
    why: str
    ms: int


DrainWay = Literal["rest", "suspend", "move"]
"""What becomes of a live session of a node that is drained: the next prompt starts it, its record is suspended, or it
is resumed on another node at once."""


class Replica(BaseModel):
    """A hub of the fleet, as PostgreSQL sees it."""

    name: str
    since: str
    connections: int
    watched: int
    """Sessions that it watches."""
    leads: bool
    """Whether it does the regular jobs."""


class Node(BaseModel):
    name: str
    ready: bool | None
    """None for one that the cluster does not tell of."""
    cordoned: bool
    sessions: int
    """That have a pod there."""
    live: int
    """Those of them with a run."""


class Fleet(BaseModel):
    replica: str
    """The hub that answers."""
    database: str
    revision: int
    replicas: list[Replica]
    nodes: list[Node]
    problems: list[str]


class NamedSession(BaseModel):
    id: str
    name: str
    label: str


class DrainStep(NamedSession):
    step: Literal["end", "pod", "stays"]
    """Its run is ended, and its pod with it; its pod is, which has no run; or nothing can be done."""
    words: str


class NodePlan(Node):
    how: DrainWay
    steps: list[DrainStep]
    drained: list[NamedSession]
    """Sessions that a drain of the node has ended, and that have not begun again."""


class Cordon(Strict):
    on: bool = True


class Drain(Strict):
    how: DrainWay | None = None
    """None: as the settings say."""


class Drained(BaseModel):
    became: Literal["left", "ended", "suspended", "moved"]
    """``left``: it was not there any more."""
    session: Session
