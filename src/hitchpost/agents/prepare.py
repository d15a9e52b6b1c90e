"""What a run of an agent is started with, beyond its command: its conversation, and what tells us what it is doing.

Nothing of the person's is touched: all of it goes through arguments and environment, for one run.
"""

from __future__ import annotations

import os
import sys

from hitchpost.agents.catalog import Agent
from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NO_ENV: Mapping[str, str] = {}
FRESH, RESUME, FORK = "new", "resume", "fork"
WATCHED_ENV = ("HOME", "PATH", "LANG", "LC_ALL", "TZ", "XDG_CONFIG_HOME", "HITCHPOST_CONFIG", "HITCHPOST_BOOT_ID")
"""What every watcher has of the run's environment."""
LONGEST_ID = 128
INJECTORS = {
    "acp": "hitchpost.agents.acp",
    "claude": "hitchpost.agents.claude",
    "codex": "hitchpost.agents.codex",
    "copilot": "hitchpost.agents.copilot",
    "gemini": "hitchpost.agents.gemini",
    "opencode": "hitchpost.agents.opencode",
    "qwen": "hitchpost.agents.qwen",
}
"""Adapters that need something in the agent itself: a module each, with a function ``inject``."""


@value
class Injected:
    """Arguments and variables for the agent; variables for its watcher. ``before``: a program that starts the agent."""

    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = NO_ENV
    watcher_env: Mapping[str, str] = NO_ENV
    before: tuple[str, ...] = ()


@value
class Conversation:
    """``how`` is FRESH, RESUME or FORK. ``id`` is that of the conversation to go on with, or of the one to begin."""

    how: str = FRESH
    id: str = ""
    of: str = ""


def new_conversation_id() -> str:
    """A random UUID, as agents take them; ``uuid`` itself takes longer to load than to use."""
    digits = bytearray(os.urandom(16))
    digits[6], digits[8] = digits[6] & 0x0F | 0x40, digits[8] & 0x3F | 0x80
    text = digits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def options(agent: Agent, **chosen: str) -> tuple[str, ...]:
    """The arguments for what the session chooses, such as its model. Raises ``UsageError``; see ``Agent.option``."""
    return tuple(word for name, text in chosen.items() if text for word in agent.option(name, text))


def with_options(agent: Agent, argv: tuple[str, ...], **chosen: str) -> tuple[str, ...]:
    """``argv`` of the session, with its options behind the agent's own words: what the person adds counts more."""
    own = len(agent.argv)
    return (*argv[:own], *options(agent, **chosen), *argv[own:])


def is_conversation_id(text: str) -> bool:
    """Whether it can stand for itself among arguments: letters, digits, ``.``, ``_`` and ``-``, none of these first."""
    return (
        len(text) <= LONGEST_ID
        and text[:1].isalnum()
        and text.isascii()
        and all(letter.isalnum() or letter in "._-" for letter in text)
    )


def arguments(agent: Agent, argv: tuple[str, ...], conversation: Conversation, injected: Injected) -> tuple[str, ...]:
    """``argv`` of the session, with what this run adds right behind the agent's own words."""
    own = len(agent.argv)
    if argv[:own] != agent.argv:
        return argv
    words = agent.conversing(conversation.how, id=conversation.id, of=conversation.of)
    if has_own_conversation(agent, argv[own:]):
        words = ()
    return (*argv[:own], *words, *injected.argv, *argv[own:])


def has_own_conversation(agent: Agent, extra: tuple[str, ...]) -> bool:
    """Whether the person has chosen a conversation with arguments of their own."""
    begins = (word.partition("=")[0] for _, words in agent.conversation for word in words)
    ours = {begin for begin in begins if "{" not in begin}
    return any(word.partition("=")[0] in ours for word in extra)


def inject(agent: Agent, run_folder: str, env: Mapping[str, str]) -> Injected:
    name = INJECTORS.get(agent.adapter)
    if name is None:
        return Injected()
    __import__(name)
    injected: Injected = sys.modules[name].inject(run_folder, env)
    return injected


def watcher_command(agent: Agent) -> tuple[str, ...]:
    return (sys.executable, "-I", "-m", "hitchpost.watcher", agent.name)


def watcher_env(agent: Agent, env: Mapping[str, str], injected: Injected) -> dict[str, str]:
    found = {name: env[name] for name in (*WATCHED_ENV, *agent.env_watched) if name in env}
    return {**found, **injected.watcher_env}


def hook_command(run_folder: str, event: str, wait_s: float) -> str:
    """For agents that run hooks in a shell. Every word is quoted.

    It never fails, even when we are not installed any more: to an agent, a hook's code may mean "refused".
    """
    program = os.path.join(os.path.dirname(__file__), "hook.py")
    words = (os.path.realpath(sys.executable), "-I", "-S", program, run_folder, f"{wait_s:g}", event)
    return " ".join(_quoted(word) for word in words) + " 2>/dev/null || true"


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
