"""What the rules read from recorded screens of goose, aider, Copilot, Qwen Code and Claude Code."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hitchpost.agents import rules
from hitchpost.agents.rules import Guarded

SHARE = "it asks whether to share usage data: hitch attach, and answer"
TRUST = "it asks whether you trust this folder: hitch attach, and answer"
GIT = "No git repo found, create one to track aider's changes (recommended)?"
SLOW = "litellm.RateLimitError: slow down"
WRAPPED = "litellm.RateLimitError: RateLimitError: OpenAIException - no credits are left. Try\nagain at 18:30."
RETRIED = (
    f"   ░{WRAPPED}\nThe API provider has rate limited you.\nRetrying in 8.0 seconds...\n░█\n █░ Waiting for openai/x"
)
MOVES = "WARNING: The original working directory of this session was set to /place. Do you want to switch back?"
YES_NO = ("yes", "no")
FOLDER = Path(__file__).parent / "screens"
TURN = "◒  Thinking\n◐  Thinking\nall is well\n  ⏱ 2.13s\n  ╌╌╌ 0% 120/128k\n"
FAILED = "Ran into this error: Bad request (400): out of order.\n\nPlease retry if you think so.\n  ⏱ 2.13s\n"
SPOKEN = "Ran into this error: it is what you asked about.\n  ⏱ 2.13s\n"
LIMITED = "Ran into this error: Rate limit exceeded: try at 5.\n\nPlease retry if you think so.\n  ⏱ 2.13s\n"
BROKEN = "░█\n  \nlitellm.BadRequestError: OpenAIException - out of order\n\n────\n"
TRIED_AGAIN = "litellm.InternalServerError: busy\nRetrying in 0.2 seconds...\nhere\n\nTokens: 6 sent, 2 received.\n"


def shown(name: str) -> str:
    return (FOLDER / f"{name}.txt").read_text().rstrip("\n")


# fmt: off
SCREENS = [
    ("goose-permission", False, "", ("blocked", "permission", "shell command: touch q1", YES_NO)),
    ("goose-permission-moved", False, "", ("blocked", "permission", "shell command: touch q1", ())),
    ("goose-telemetry", None, "", ("blocked", "dialog", SHARE, ())),
    ("goose-moves", None, "", ("blocked", "dialog", MOVES, YES_NO)),
    ("goose-prompt", True, "\nTool call cancelled. Returning to chat...\n\n  ⏱ 2s\n", ("idle", "", "", ())),
    ("goose-prompt", True, TURN, ("done", "", "all is well", ())),
    ("goose-prompt", True, FAILED, ("error", "", "Bad request (400): out of order.", ())),
    ("goose-prompt", True, LIMITED, ("error", "limit", "Rate limit exceeded: try at 5.", ())),
    ("goose-prompt", True, SPOKEN, ("done", "", "Ran into this error: it is what you asked about.", ())),
    ("goose-prompt", True, "", ("idle", "", "", ())),
    ("goose-prompt", False, "", ("working", "", "", ())),
    ("goose-prompt", None, "", None),
    ("goose-interrupted", True, TURN, ("idle", "", "", ())),
    ("goose-working", False, "", ("working", "", "", ())),
    ("aider-prompt", True, "first line\n\n\nTokens: 600 sent, 2 received.\n", ("done", "", "first line", ())),
    ("aider-prompt", True, "Applied edit to new.txt\n", ("done", "", "", ())),
    ("aider-prompt", True, "Skipping edits to new.txt\n", ("idle", "", "", ())),
    ("aider-prompt", True, "\n\n^C again to exit\n", ("idle", "", "", ())),
    ("aider-prompt", True, BROKEN, ("error", "", "litellm.BadRequestError: OpenAIException - out of order", ())),
    ("aider-prompt", True, f"{SLOW}\n", ("error", "limit", SLOW, ())),
    ("aider-prompt", True, TRIED_AGAIN, ("done", "", "here", ())),
    ("aider-prompt", True, "", ("idle", "", "", ())),
    ("aider-prompt", None, "", None),
    ("aider-permission", True, "\n\nnew.txt\n", ("blocked", "permission", "Create new file? new.txt", YES_NO)),
    ("aider-permission-begun", True, "\nnew.txt\n", ("blocked", "permission", "Create new file?", ())),
    ("aider-permission", True, "", ("blocked", "permission", "Create new file?", YES_NO)),
    ("aider-prompt", True, f"{WRAPPED}\n\n", ("error", "limit", WRAPPED.replace("\n", " "), ())),
    ("aider-working", False, RETRIED, ("working", "", WRAPPED.replace("\n", " "), ())),
    ("aider-working", False, f"{RETRIED}\nHello\n", ("working", "", "", ())),
    ("aider-git", True, "", ("blocked", "dialog", GIT, YES_NO)),
    ("aider-working", False, "", ("working", "", "", ())),
    ("aider-typed", True, "", ("idle", "", "", ())),
    ("copilot-permission", None, "", ("blocked", "permission", "touch q", YES_NO)),
    ("copilot-trust", None, "", ("blocked", "dialog", TRUST, ())),
    ("copilot-login", None, "", ("blocked", "auth", "it is not signed in: hitch attach, and /login", ())),
    ("copilot-working", None, "", ("working", "", "", ())),
    ("copilot-prompt", None, "", ("idle", "", "", ())),
    ("copilot-typed", None, "", ("idle", "", "", ())),
    ("copilot-loading", None, "", ("unknown", "starting", "it is loading its plugins", ())),
    ("copilot-cleared", None, "", ("unknown", "starting", "it begins another conversation", ())),
    ("copilot-loading-on", None, "", ("idle", "", "", ())),
    ("qwen-provider", None, "", ("blocked", "auth", "it is not signed in: hitch attach, and sign in", ())),
    ("claude-not-signed-in", None, "", ("blocked", "auth", "it is not signed in: hitch attach, and /login", ())),
]
# fmt: on


@pytest.mark.parametrize(("screen", "reading", "printed", "expected"), SCREENS)
def test_a_screen_says_what_the_agent_is_doing(screen: str, reading: bool | None, printed: str, expected: object):
    found = rules.first_match(
        rules.load(screen.partition("-")[0]).screen, shown(screen), reading=reading, printed=printed
    )
    details = found.details if found is not None else {}
    assert expected == (None if found is None else (found.state, details["kind"], found.message, details["options"]))


@pytest.mark.parametrize(
    ("screen", "message"),
    [
        ("gemini-permission-forged", "Shell rm -r work"),
        ("copilot-permission-lines", "touch q rm -r work"),
        ("goose-permission-forged", "shell command: rm -r work ▸ shell command: touch q1"),
    ],
)
def test_what_an_agent_prints_does_not_hide_what_it_asks(screen: str, message: str):
    """Recorded dialogs, to which lines that an agent can write were added."""
    found = rules.first_match(rules.load(screen.partition("-")[0]).screen, shown(screen))
    assert found is not None
    assert (found.state, found.message, found.details["options"]) == ("blocked", message, YES_NO)


@pytest.mark.parametrize(
    ("screen", "left"),
    [
        ("goose-prompt", ""),
        ("goose-interrupted", ""),
        ("goose-typed", "/help\na\nb"),
        ("aider-prompt", ""),
        ("aider-typed", "left over"),
        ("copilot-prompt", ""),
        ("copilot-typed", "ends"),
        ("copilot-permission", None),
    ],
)
def test_text_that_was_not_sent_is_seen(screen: str, left: str | None):
    composer = rules.load(screen.partition("-")[0]).composer
    assert composer is not None
    assert rules.composed(composer, shown(screen)) == left


def test_a_text_that_would_be_a_command_is_refused_even_behind_spaces():
    prompt = rules.load("copilot").prompt
    assert rules.guarded(prompt, " \n!rm x") is None
    assert rules.guarded(prompt, "/word") == Guarded(" /word")
    assert rules.guarded(prompt, "ends \\") == Guarded("ends \\ ")


def test_a_text_is_changed_only_where_it_must_be():
    prompt = rules.load("claude").prompt
    for text in ("/etc/hosts: what is it?", "# remember", "@nobody", "/etc/hosts\n/word"):
        assert rules.guarded(prompt, text) == Guarded(text)
    for text in ("/word", "/", "/word and\nmore", "/mcp:tool it", "  /word"):
        assert rules.guarded(prompt, text) is None
    guarded = rules.guarded(prompt, "!touch it \\")
    assert guarded is not None
    assert (guarded.before, guarded.text) == (" !", "touch it \\ ")


@pytest.mark.parametrize("agent", ["aider", "goose"])
def test_much_output_is_read_fast(agent: str):
    """An agent writes what it likes: no rule may take long over it."""
    long = "litellm." + "a" * 70 + "\n"
    for line in (
        long,
        "x",
        "a" * 79 + "\n",
        " " * 79 + "\n",
        "a b " * 20 + "\n",
        "litellm.\n",
        "Ran into this error: \n",
    ):
        printed = line * (32768 // len(line))
        began = time.process_time()
        for reading in (True, False):
            rules.first_match(rules.load(agent).screen, shown(f"{agent}-prompt"), reading=reading, printed=printed)
        rules.first_match(rules.load(agent).screen, shown(f"{agent}-permission"), reading=True, printed=printed)
        assert time.process_time() - began < 1
