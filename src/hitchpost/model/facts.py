"""Facts: what was seen of a session, each with its time. Nothing here is a judgement."""

from __future__ import annotations

from hitchpost.model import record, run
from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

LOCAL, TMUX, DOCKER, ADOPTED, POD = "local", "tmux", "docker", "adopted", "pod"
WITHOUT_SANDBOX = (LOCAL, TMUX, ADOPTED)
ELSEWHERE = (POD,)
KEPT_BY_ANOTHER_HUB = "another hub has it"
"""The doubt of a hub about a run on the machine of another one: that one knows."""


def has_sandbox(runtime: str) -> bool:
    """Whether there is something around the agent that can outlive it, such as a container."""
    return runtime not in WITHOUT_SANDBOX


def is_elsewhere(runtime: str) -> bool:
    """Whether its runs take place on another machine, where its folder is, and its keeper."""
    return runtime in ELSEWHERE


def has_container(runtime: str) -> bool:
    """Whether the agent is in a container of this machine: its keeper is outside, and nothing else reaches in."""
    return has_sandbox(runtime) and not is_elsewhere(runtime)


@value
class Exit:
    """The end of a run. ``code`` and ``signal`` are both None when nobody saw it.

    ``survivors`` are still there, as far as anybody has looked since. ``ended_at`` is the last sign of life, and not
    ``ended_at_known``, when nobody saw when it was. ``torn_down_at`` is when a person asked for the end of the sandbox
    that the run had left behind. ``out_of_memory``: the run's own control group says so.
    """

    code: int | None = None
    signal: str | None = None
    signal_number: int | None = None
    core_dumped: bool = False
    intent: str | None = None
    error: str | None = None
    survivors: int = 0
    attention: str | None = None
    ended_at: datetime | None = None
    ended_at_known: bool = True
    torn_down_at: datetime | None = None
    out_of_memory: bool = False

    @property
    def shell_code(self) -> int | None:
        """The code as a shell gives it: 128 + signal for a death by signal."""
        return self.code if self.signal_number is None else 128 + self.signal_number


@value
class Report:
    """What is known of what the agent is doing: ``model.attention`` has the words. ``message`` is the agent's text."""

    state: str
    source: str
    at: datetime
    kind: str | None = None
    message: str | None = None
    request: str | None = None
    options: tuple[str, ...] = ()
    takes_text: bool = False
    background: int = 0
    until: str | None = None
    ends_at: datetime | None = None
    """When a usage limit ends, where the agent says so in a way that is understood; in the agent's time zone."""


@value
class Changes:
    """How much differs in the session's folder from where it began, as git counted it then."""

    files: int
    added: int
    deleted: int
    at: datetime


@value
class Pod:
    """The pod of a session, as its cluster has told last, and whether a hub reaches it. ``model.pods`` has the words.

    ``run`` is the newest run that was given to it. ``reason`` and ``message`` are the cluster's own words for what is
    wrong with it, and ``source`` is where they were read. ``ended``: the cluster says that nothing of it runs any more.
    """

    name: str
    uid: str = ""
    run: int = 0
    phase: str = ""
    reason: str = ""
    message: str = ""
    source: str = ""
    since: datetime | None = None
    """Since when ``phase`` and ``reason`` hold."""
    node: str = ""
    node_ready: bool | None = None
    node_seen_at: datetime | None = None
    """The node's last sign of life, where somebody has looked for it."""
    node_boot: str = ""
    cordoned: bool = False
    leaving: bool = False
    """Somebody has asked the cluster to end it."""
    ended: bool = False
    unreachable_since: datetime | None = None


@value
class Facts:
    """Everything that ``status`` may look at. ``None`` in a health field means not known, or no such thing."""

    created_at: datetime
    state: str = run.CREATED
    state_changed_at: datetime | None = None
    record: str = record.ACTIVE
    record_changed_at: datetime | None = None
    runtime: str = LOCAL
    run: int = 1
    started_at: datetime | None = None
    last_activity_at: datetime | None = None
    busy_since: datetime | None = None
    """Of an agent that prints just now: when it began to, after a long silence."""
    longest_pause_s: float = 0.0
    """The longest one between what it has printed lately."""
    last_alive_at: datetime | None = None
    exit: Exit | None = None
    report: Report | None = None
    keeper_alive: bool | None = None
    same_boot: bool | None = None
    lost: str = ""
    left: int = 0
    """Processes that a lost keeper's run has left behind, as long as nobody has written them down."""
    sandbox_alive: bool | None = None
    session_alive: bool | None = None
    sandbox_paused: bool = False
    process_stopped: bool = False
    keeper_stopped: bool = False
    doubt: str = ""
    probe_failed: bool = False
    workspace_missing: bool = False
    supports_resume: bool = False
    idle_after_s: float = 30.0
    quiet_after_s: float = 3.0
    earlier_runs_s: float = 0.0
    earlier_survivors: int = 0
    changes: Changes | None = None
    """None where nobody has counted, or there is nothing to compare."""
    seen_at: datetime | None = None
    """When somebody last looked at the session: opened it, or was attached."""
    snoozed_until: datetime | None = None
    when_limit: str = "stop"
    gone_on_from: datetime | None = None
    """When the usage limit was told after which the agent was told to go on."""
    gone_on_at: datetime | None = None
    gone_on_known: bool = True
    """When a hub set about telling it, and whether it is known to have done so."""
    has_work: bool = False
    """It works in a repository, so that there may be changes to look at."""
    has_workspace: bool = False
    """Its folder is a worktree of ours, which can be made again."""
    folder_back: bool = False
    """It is orphaned, and its folder is there again."""
    pod: Pod | None = None
    """None where there are no pods, and as long as none was made."""

    @property
    def has_sandbox(self) -> bool:
        return has_sandbox(self.runtime)

    @property
    def next_run(self) -> int:
        """The number of the run that is started next: a session has one from its beginning."""
        return self.run if self.state == run.CREATED else self.run + 1
