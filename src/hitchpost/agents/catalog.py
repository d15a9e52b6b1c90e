"""The catalog: what kind of program each known agent is, how it is started, when it is ready, how it is ended."""

from __future__ import annotations

import os

from hitchpost.errors import UsageError
from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = os.path.join(os.path.dirname(__file__), "catalog")
REPL, COMPILE = "repl", "compile"
"""The kinds of program: one that answers a person, and one that works in silence for minutes."""
# fmt: off
COMPILERS = (
    "bazel", "cargo", "cc", "clang", "clang++", "cmake", "dotnet", "g++", "gcc",
    "go", "gradle", "gradlew", "make", "meson", "mvn", "mvnw", "ninja", "nox",
    "npm", "pnpm", "pytest", "rustc", "sbt", "tox", "tsc", "yarn",
)
# fmt: on


@value
class Agent:
    """One agent. ``kind`` is REPL or COMPILE; ``prompt_args`` carry a first prompt, for which ``{prompt}`` stands.

    ``env_flags`` are variables and the option that takes the value of each: the agent itself does not know them.
    ``env_read`` are those that it signs in with, or finds its own files by.
    It is ready when it has printed something, or is alive ``ready_after_s`` after its start. One that ``shows_prompt``
    turns bracketed paste on, or reports that it is idle, when it reads prompts.
    """

    name: str
    title: str
    argv: tuple[str, ...]
    kind: str = REPL
    quit_signal: str = "SIGTERM"
    quit_group: bool = False
    prompt_args: tuple[str, ...] = ()
    ready_after_s: float = 0.05
    shows_prompt: bool = False
    install: str = ""
    env_flags: tuple[tuple[str, str], ...] = ()
    env_read: tuple[str, ...] = ()

    def command(self, extra: tuple[str, ...] = (), prompt: str | None = None) -> tuple[str, ...]:
        """The arguments to execute, with a first prompt where the agent takes one that way."""
        words = tuple(word.replace("{prompt}", prompt) for word in self.prompt_args) if prompt is not None else ()
        return (*self.argv, *extra, *words)


def names() -> list[str]:
    return sorted(name.removesuffix(".toml") for name in os.listdir(FOLDER) if name.endswith(".toml"))


def load(name: str) -> Agent:
    """Raises ``UsageError`` for a name that no file describes."""
    if name not in names():
        raise UsageError(
            f"unknown agent {name!r}; known are: {', '.join(names())}. For any other program: hitch run -- {name} …",
            field="agent",
        )
    import _signal
    import tomllib

    with open(os.path.join(FOLDER, f"{name}.toml"), "rb") as file:
        table = tomllib.load(file)
    quit_table = table.get("quit", {})
    agent = Agent(
        name=name,
        title=table["title"],
        argv=tuple(table["argv"]),
        kind=table.get("kind", REPL),
        quit_signal=quit_table.get("signal", "SIGTERM"),
        quit_group=quit_table.get("group", False),
        prompt_args=tuple(table.get("prompt_args", ())),
        ready_after_s=float(table["ready_after_s"]),
        shows_prompt=table.get("shows_prompt", False),
        install=table.get("install", ""),
        env_flags=tuple(table.get("env_flags", {}).items()),
        env_read=tuple(table.get("env_read", ())),
    )
    getattr(_signal, agent.quit_signal)
    return agent


def env_flags(agent: str) -> tuple[tuple[str, str], ...]:
    """Of an agent that the catalog may not know."""
    return load(agent).env_flags if agent in names() else ()


def variables() -> dict[str, list[str]]:
    """Every variable that an agent of the catalog wants, with the names of these agents."""
    found: dict[str, list[str]] = {}
    for agent in map(load, names()):
        for name in (*agent.env_read, *(flag for flag, _ in agent.env_flags)):
            found.setdefault(name, []).append(agent.name)
    return found


def with_flags(flags: tuple[tuple[str, str], ...], argv: tuple[str, ...], env: Mapping[str, str]) -> tuple[str, ...]:
    """``argv`` with the options that the environment asks for. One that is there already counts more."""
    wanted = [(flag, env[name]) for name, flag in flags if env.get(name) and flag not in argv]
    return (*argv[:1], *(word for words in wanted for word in words), *argv[1:])


def unknown(argv: tuple[str, ...]) -> Agent:
    """A program that the catalog does not know, by its command line."""
    name = os.path.basename(argv[0]) or argv[0]
    return Agent(name=name, title=argv[0], argv=argv, kind=COMPILE if name in COMPILERS else REPL)
