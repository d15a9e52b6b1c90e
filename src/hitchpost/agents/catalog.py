"""The catalog: what kind of program each known agent is, how it is started, when it is ready, how it is ended."""

from __future__ import annotations

import os

from hitchpost.errors import MALFORMED, UsageError
from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FOLDER = os.path.join(os.path.dirname(__file__), "catalog")
RULES, LINES, ACP = "rules", "lines", "acp"
"""The adapters that read the screen: of any agent whose file has rules and names none, and of one that reads lines; and
the one that speaks the Agent Client Protocol."""
REPL, COMPILE = "repl", "compile"
"""The kinds of program: one that answers a person, and one that works in silence for minutes."""
SHAPES = (
    (("title", "kind", "install", "adapter", "conversations"), str, "a text"),
    (("argv", "prompt_args", "env_read", "env_watched"), list, "a list of texts"),
    (("quit", "env_flags", "options", "conversation", "cannot"), dict, "a table"),
    (("ready_after_s",), (int, float), "a number"),
    (("shows_prompt", "tells_usage"), bool, "true or false"),
)
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
    ``env_read`` are those that it signs in with, or finds its own files by; of these the watcher gets ``env_watched``.
    ``adapter`` names what watches it; empty for none. ``conversation`` has the arguments that begin (``new``), go on
    with (``resume``) or branch off (``fork``) a conversation; ``mints``: its id is ours to choose. ``cannot`` says why
    one of these is missing. ``conversations`` names the agent whose conversations it can go on with, its own name where
    it has none but its own. ``options`` are the arguments for what a session chooses, such as the model.
    It is ready when it has printed something, or is alive ``ready_after_s`` after its start. One that ``shows_prompt``
    turns bracketed paste on, or reports that it is idle, when it reads prompts. One that ``tells_usage`` says how many
    tokens a turn has used.
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
    tells_usage: bool = False
    install: str = ""
    env_flags: tuple[tuple[str, str], ...] = ()
    env_read: tuple[str, ...] = ()
    env_watched: tuple[str, ...] = ()
    adapter: str = ""
    conversations: str = ""
    mints: bool = False
    conversation: tuple[tuple[str, tuple[str, ...]], ...] = ()
    cannot: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def command(self, extra: tuple[str, ...] = (), prompt: str | None = None) -> tuple[str, ...]:
        """The arguments to execute, with a first prompt where the agent takes one that way."""
        words = tuple(word.replace("{prompt}", prompt) for word in self.prompt_args) if prompt is not None else ()
        return (*self.argv, *extra, *words)

    def conversing(self, how: str, **values: str) -> tuple[str, ...]:
        """The arguments that begin, go on with or branch off a conversation; none where the agent has no such thing."""
        return tuple(_filled(word, values) for word in dict(self.conversation).get(how, ()))

    def option(self, name: str, text: str) -> tuple[str, ...]:
        """Raises ``UsageError`` when the agent has no such option."""
        if name not in (known := dict(self.options)):
            what = name.replace("_", " ")
            raise UsageError(f"{self.title} has no option for the {what}; pass its own arguments after --", field=name)
        return tuple(_filled(word, {"value": text}) for word in known[name])


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, text in values.items():
        word = word.replace("{" + name + "}", text)
    return word


def own_folder() -> str:
    """Where a person's own agents are: a file there adds one, or replaces one of ours."""
    from hitchpost.store.home import settings_folder

    return os.path.join(settings_folder(), "agents")


def _files() -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in (FOLDER, own_folder()):
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        found |= {name.removesuffix(".toml"): os.path.join(folder, name) for name in names if name.endswith(".toml")}
    return found


def names() -> list[str]:
    return sorted(_files())


def table(name: str) -> dict[str, Any]:
    """What an agent's file says. Raises ``UsageError`` for a name that no file describes, or a file that is wrong."""
    files = _files()
    if name not in files:
        raise UsageError(
            f"unknown agent {name!r}; known are: {', '.join(sorted(files))}. "
            f"For any other program: hitch run -- {name} …",
            field="agent",
        )
    import tomllib

    from hitchpost.store.files import read_bytes

    try:
        return tomllib.loads(read_bytes(files[name], follow=True).decode())
    except OSError as error:
        raise UsageError(f"{files[name]} cannot be read: {(error.strerror or '').lower()}", field="agent") from None
    except MALFORMED as error:
        raise UsageError(f"{files[name]} cannot be read: {error}", field="agent") from None


def is_own(name: str) -> bool:
    """Whether the person's own file describes it."""
    return os.path.dirname(_files().get(name, "")) == own_folder()


def load(name: str) -> Agent:
    """Raises ``UsageError`` for a name that no file describes, or a file that is wrong."""
    import _signal

    found = table(name)
    try:
        _check(found)
        quit_table, conversation = found.get("quit", {}), found.get("conversation", {})
        rules = "screen" in found or "title_rules" in found
        agent = Agent(
            name=name,
            title=found["title"],
            argv=tuple(found["argv"]),
            kind=found.get("kind", REPL),
            quit_signal=quit_table.get("signal", "SIGTERM"),
            quit_group=quit_table.get("group", False),
            prompt_args=tuple(found.get("prompt_args", ())),
            ready_after_s=float(found.get("ready_after_s", 3)),
            shows_prompt=found.get("shows_prompt", False),
            tells_usage=found.get("tells_usage", False),
            install=found.get("install", ""),
            env_flags=tuple(found.get("env_flags", {}).items()),
            env_read=tuple(found.get("env_read", ())),
            env_watched=tuple(found.get("env_watched", ())),
            adapter=found.get("adapter", RULES if rules else ""),
            conversations=found.get("conversations", name),
            mints=conversation.get("mints", False),
            conversation=_words(conversation, ("new", "resume", "fork")),
            cannot=tuple((str(what), str(why)) for what, why in found.get("cannot", {}).items()),
            options=_words(found.get("options", {}), ("permission_mode", "model")),
        )
        getattr(_signal, agent.quit_signal)
        if agent.adapter and is_own(name):
            _check_watched(agent, found)
    except KeyError as missing:
        raise UsageError(f"the file of agent {name} is wrong: it has no {missing}", field="agent") from None
    except MALFORMED as error:
        raise UsageError(f"the file of agent {name} is wrong: {error}", field="agent") from None
    return agent


def _check_watched(agent: Agent, found: dict[str, Any]) -> None:
    """Raise ``ValueError`` or ``UsageError`` when nothing could watch the agent as its file says. Ours are tested."""
    import tomllib

    from hitchpost.agents import rules

    known = {RULES, LINES}
    for file_name in os.listdir(FOLDER):
        with open(os.path.join(FOLDER, file_name), "rb") as file:
            known.add(tomllib.load(file).get("adapter", RULES))
    if agent.adapter not in known:
        raise ValueError(f"expected adapter to be {' or '.join(sorted(known))}, but got {agent.adapter!r}")
    rules.parse(found, agent.name)


def _check(found: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for what is there and is not what it should be."""
    for names, kind, word in SHAPES:
        for name in names:
            value = found.get(name)
            if value is None:
                continue
            if not isinstance(value, kind) or (isinstance(value, list) and not all(map(_is_text, value))):
                raise ValueError(f"expected {name} to be {word}, but got {value!r}")
    for name in ("options", "conversation"):
        for key, words in found.get(name, {}).items():
            if key != "mints" and not (isinstance(words, list) and all(map(_is_text, words))):
                raise ValueError(f"expected {name}.{key} to be a list of texts, but got {words!r}")
    if not found["argv"] or not found["argv"][0]:
        raise ValueError("expected argv to have at least the program, but got nothing")
    if found.get("kind", REPL) not in (REPL, COMPILE):
        raise ValueError(f"expected kind to be {REPL} or {COMPILE}, but got {found['kind']!r}")


def _is_text(item: object) -> bool:
    return isinstance(item, str)


def readable() -> list[Agent]:
    """Every agent whose file is as it should be."""
    found = []
    for name in names():
        try:
            found.append(load(name))
        except UsageError:
            continue
    return found


def title(name: str) -> str:
    """Of an agent that the catalog may not know, or whose file is wrong: its name then."""
    try:
        return load(name).title
    except UsageError:
        return name


def _words(found: Mapping[str, Any], names: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((name, tuple(found[name])) for name in names if name in found)


def agent_of(name: str, argv: tuple[str, ...]) -> Agent | None:
    """The agent of a session, when the catalog has it and the session starts it as the catalog does."""
    agent = load(name) if name in names() else None
    return agent if agent is not None and argv[: len(agent.argv)] == agent.argv else None


def env_flags(agent: str) -> tuple[tuple[str, str], ...]:
    """Of an agent that the catalog may not know."""
    return load(agent).env_flags if agent in names() else ()


def variables() -> dict[str, list[str]]:
    """Every variable that an agent of the catalog wants, with the names of these agents."""
    found: dict[str, list[str]] = {}
    for agent in readable():
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
