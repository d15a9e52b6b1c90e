"""``RunSpec``: what a keeper needs to know of a run. One type, and one way into bytes and back, for both sides.

It goes through an anonymous file: environment values must not reach the disk. The keeper imports this module.
"""

from __future__ import annotations

from hitchpost import lightjson, wire
from hitchpost.values import asdict, fields, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


NO_ENV: dict[bytes, bytes] = {}


class Source:
    """Where the agent lives, as its keeper sees it."""


@value
class PtySource(Source):
    """On a PTY of the keeper's own."""


@value
class PaneSource(Source):
    """On a PTY below the tmux pane that the keeper runs in. ``tmux`` is the path of the program."""

    tmux: str


@value
class ControlSource(Source):
    """In a pane of somebody's tmux, started by somebody else. ``screen`` is what the pane shows now."""

    tmux: str
    socket: str
    pane: str
    pid: int
    start: int
    screen: str


@value
class ContainerSource(Source):
    """In a container. ``folder`` is what the run shares with it; ``first_pid`` is the container's first process.

    ``pane`` and ``pid`` are known of an agent that runs already, and is taken over.
    """

    id: str
    first_pid: int
    first_start: int
    engine: str
    folder: str
    pane: str = ""
    pid: int = 0
    start: int = 0


SOURCES: dict[str, type[Source]] = {
    "pty": PtySource,
    "tmux_pane": PaneSource,
    "tmux_control": ControlSource,
    "container": ContainerSource,
}


@value
class WatcherSpec:
    """The process that knows this kind of agent, and tells the keeper what the agent is doing. No ``argv``: none."""

    argv: tuple[bytes, ...] = ()
    env: dict[bytes, bytes] = NO_ENV


@value
class RunSpec:
    """One run to be kept. Whoever starts it holds the keeper's lock (``lock_fd``) and gives it away with the start.

    ``env`` is the agent's whole environment; its values go to the agent and nowhere else. ``takes_over``: the run has
    begun under another keeper, which is gone; its agent lives. ``reports``: this kind of agent says what it is doing,
    so as long as it has not, that is unknown.
    """

    session: str
    session_folder: str
    run: int
    argv: tuple[bytes, ...]
    env: dict[bytes, bytes]
    folder: str
    folder_dev: int
    folder_ino: int
    lock_fd: int
    lease_fds: tuple[int, ...] = ()
    ready_fd: int = -1
    source: Source = PtySource()
    takes_over: bool = False
    cols: int = 80
    rows: int = 24
    grace_s: float = 10.0
    quit_signal: str = "SIGTERM"
    quit_group: bool = False
    survivors: str = "keep"
    log_cap_bytes: int = 64 << 20
    pids_max: int = 0
    memory_max_bytes: int = 0
    reports: bool = False
    watcher: WatcherSpec = WatcherSpec()

    def to_bytes(self) -> bytes:
        plain = {name: getattr(self, name) for name in fields(self) if name not in APART}
        kind = next(name for name, source in SOURCES.items() if type(self.source) is source)
        plain |= {"source": {"kind": kind, **asdict(self.source)}, "lease_fds": list(self.lease_fds)}
        sections = (
            lightjson.dumps(plain).encode(),
            wire.join_texts(list(self.argv)),
            _env_bytes(self.env),
            wire.join_texts(list(self.watcher.argv)),
            _env_bytes(self.watcher.env),
        )
        return b"".join(len(section).to_bytes(4, "big") + section for section in sections)

    @classmethod
    def from_bytes(cls, data: bytes) -> RunSpec:
        """Raises ``ValueError`` with the first thing that is wrong."""
        sections = []
        start = 0
        while start < len(data):
            size = int.from_bytes(data[start : start + 4], "big")
            sections.append(data[start + 4 : start + 4 + size])
            start += 4 + size
        found = _object("the spec", lightjson.loads(sections[0]))
        plain = {name: _checked(cls, name, found.get(name)) for name in fields(cls) if name not in APART}
        argv, watcher_argv = (tuple(wire.split_texts(sections[at])) for at in (1, 3))
        env, watcher_env = (dict(text.split(b"=", 1) for text in wire.split_texts(sections[at])) for at in (2, 4))
        leases, source = found.get("lease_fds"), _source(_object("source", found.get("source")))
        lease_fds = tuple(leases) if isinstance(leases, list) else ()
        watcher = WatcherSpec(watcher_argv, watcher_env)
        return cls(argv=argv, env=env, source=source, lease_fds=lease_fds, watcher=watcher, **plain)


APART = ("argv", "env", "source", "lease_fds", "watcher")
KINDS: dict[str, tuple[str, tuple[type, ...]]] = {
    "str": ("a text", (str,)),
    "int": ("a whole number", (int,)),
    "float": ("a number", (int, float)),
    "bool": ("true or false", (bool,)),
}


def _env_bytes(env: dict[bytes, bytes]) -> bytes:
    return wire.join_texts([name + b"=" + text for name, text in env.items()])


def _source(found: dict[str, Any]) -> Source:
    kind = SOURCES.get(str(found.get("kind")))
    if kind is None:
        raise ValueError(f"expected the kind of a source, but got {found.get('kind')!r}")
    return kind(**{name: _checked(kind, name, found.get(name)) for name in fields(kind)})


def _object(what: str, found: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ValueError(f"expected {what} to be an object, but got {type(found).__name__}")
    return found


def _checked(kind: type, name: str, item: object) -> Any:
    words, allowed = KINDS[kind.__annotations__[name]]
    if not isinstance(item, allowed) or (isinstance(item, bool) and bool not in allowed):
        raise ValueError(f"expected {name} to be {words}, but got {item!r}")
    return item
