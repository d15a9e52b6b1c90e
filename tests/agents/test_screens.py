"""What the rules of our catalog read out of screens, as the agents have shown them."""

from __future__ import annotations

from typing import Any

import pytest

from hitchpost.agents import rules
from hitchpost.watcher.gemini import _BARE

RULE, TOP, BOTTOM = "─" * 80, "▄" * 80, "▀" * 80


def said(prompt: str) -> str:
    return f"{TOP}\n > {prompt}\n{BOTTOM}\n"


def gemini(*above: str, prompt: str = "  Type your message or @path/to/file") -> str:
    foot = f"{RULE}\n Shift+Tab to accept edits\n{TOP}\n > {prompt}\n{BOTTOM}\n workspace (/directory)\n /home/me  Auto"
    return "".join(above) + "\n\n                    ? for shortcuts\n" + foot


FAILED = (
    '✕ [API Error: {"error":{"code":400,"message":"out of\n  order","status":"INVALID_ARGUMENT"}}]\n\n\n'
    "ℹ This request failed. Press F12 for diagnostics, or run /settings\n"
)
CANCELLED = "✦ tick0 tick1\n\nℹ Request cancelled.\n"
ASKED = """
╭──────────────────────────────────────────────────────────────────────────────╮
│ ? Shell  touch q1                                                            │
│ ╭──────────────────────────────────────────────────────────────────────────╮ │
│ │ touch q1                                                                 │ │
│ ╰──────────────────────────────────────────────────────────────────────────╯ │
│ Allow execution of [Shell]?                                                  │
│                                                                              │
│ ● 1. Allow once                                                              │
│   2. Allow for this session                                                  │
│   3. No, suggest changes (esc)                                               │
╰──────────────────────────────────────────────────────────────────────────────╯
"""
LIMITED = """
╭──────────────────────────────────────────────────────────────────────────────╮
│                                                                              │
│ Usage limit reached for gemini-3.8-flash.                                    │
│ /model to switch models.                                                     │
│                                                                              │
│ ● 1. Keep trying                                                             │
│   2. Stop                                                                    │
│                                                                              │
╰──────────────────────────────────────────────────────────────────────────────╯
"""
QUESTION = """
╭──────────────────────────────────────────────────────────────────────────────╮
│ Answer Questions                                                             │
│                                                                              │
│ Which colour?                                                                │
│                                                                              │
│ ● 1.  Red                                                                    │
│   2.  Enter a custom value                                                   │
│                                                                              │
│ Enter to select · ↑/↓ to navigate · Esc to cancel                            │
╰──────────────────────────────────────────────────────────────────────────────╯
"""
QWEN = f"""\
  > three

  ◆ Done.

{RULE}
>   Type your message or @path/to/file
{RULE}
  ➜ place · scripted"""
QWEN_ASKED = """\
  > two [[bash touch asked]]
  ? Shell touch asked (as the test wants) ←

     touch asked

   Allow execution of: 'touch'?

   › 1. Yes, allow once
     2. Always allow run 'touch *' commands in this project
     4. No, suggest changes (esc)


  ⠏ Waiting for user confirmation...
"""
QWEN_QUESTION = """\
  ? AskUserQuestion Ask user 1 question ←
     Question
     Which colour?
     ❯ 1. Red
       2. Type something...
     ↑/↓: Navigate | Enter: Select | Esc: Cancel
  ⠏ Waiting for user confirmation...
"""


@pytest.mark.parametrize(
    ("agent", "screen", "expected"),
    [
        ("gemini", gemini(), None),
        ("gemini", said("one") + QUESTION, ("blocked", "question", "Which colour?", ())),
        ("gemini", gemini(said("one"), QUESTION, "\n✦ Blue, then.\n"), None),
        ("qwen", QWEN_QUESTION, ("blocked", "question", "", ())),
        ("gemini", said("one") + ASKED, ("blocked", "permission", "Shell touch q1", ("yes", "no"))),
        ("gemini", gemini(said("one"), ASKED, "\n✦ Allowed.\n"), None),
        (
            "gemini",
            said("one") + LIMITED,
            ("blocked", "limit", "Usage limit reached for gemini-3.8-flash.", ("keep trying", "stop")),
        ),
        (
            "gemini",
            gemini(said("one"), FAILED),
            (
                "error",
                "",
                '[API Error: {"error":{"code":400,"message":"out of order","status":"INVALID_ARGUMENT"}}]',
                (),
            ),
        ),
        ("gemini", gemini(said("one"), FAILED, said("two"), "✦ Better.\n"), None),
        ("gemini", gemini(said("one"), FAILED, said("two")), None),
        ("gemini", gemini(said("one"), CANCELLED), ("idle", "", "", ())),
        ("gemini", gemini(said("one"), CANCELLED, said("two"), "✦ Better.\n"), None),
        ("qwen", QWEN, None),
        ("qwen", QWEN_ASKED, ("blocked", "permission", "Shell touch asked (as the test wants)", ("yes", "no"))),
        ("qwen", QWEN_ASKED + "\n  ◆ Done.\n" + QWEN, None),
    ],
)
def test_a_screen_says(agent: str, screen: str, expected: tuple[Any, ...] | None) -> None:
    found = rules.first_match(rules.load(agent).screen, screen)
    read = found and (found.state, found.details["kind"], found.message, found.details["options"])
    assert read == expected


@pytest.mark.parametrize(
    ("agent", "screen", "number"),
    [
        ("gemini", gemini(said("one")).replace(" edits\n", " edits                     1 Background process\n"), 1),
        ("gemini", gemini(said("one")), None),
        ("qwen", f"{QWEN.rstrip()} · 2 shells\n", 2),
        ("qwen", f"{QWEN.rstrip()} · 1 task done\n", None),
    ],
)
def test_tasks_that_go_on_after_the_turn_are_counted(agent: str, screen: str, number: int | None) -> None:
    found = rules.first_match(rules.load(agent).screen, screen)
    assert (found and (found.state, found.details["background"])) == (number and ("done", number))


@pytest.mark.parametrize(
    ("agent", "screen", "expected"),
    [
        ("gemini", gemini(said("sent before")), ""),
        ("gemini", gemini(said("sent before"), prompt="half a prompt"), "half a prompt"),
        ("gemini", said("sent before") + ASKED, None),
        ("gemini", said("sent before") + LIMITED, None),
        ("qwen", QWEN, ""),
        ("qwen", QWEN.replace("  Type your message or @path/to/file", "half a prompt"), "half a prompt"),
        ("qwen", QWEN_ASKED, None),
    ],
)
def test_what_stands_in_the_prompt(agent: str, screen: str, expected: str | None) -> None:
    composer = rules.load(agent).composer
    assert composer is not None
    assert rules.composed(composer, screen) == expected


@pytest.mark.parametrize(
    ("agent", "title", "state"),
    [
        ("gemini", "◇  Ready (place)", "idle"),
        ("gemini", "✦  Working… (place)", "working"),
        ("gemini", "⏲  Working… (place)", "working"),
        ("gemini", "✋  Action Required (place)", "blocked"),
        ("gemini", "Gemini CLI (place)", None),
        ("qwen", "Qwen - place", "idle"),
        ("qwen", "◐︎ Qwen - place", "working"),
        ("qwen", "✳︎ Qwen - place", "blocked"),
        ("qwen", "something else", None),
    ],
)
def test_a_title_says(agent: str, title: str, state: str | None) -> None:
    found = rules.first_match(rules.load(agent).title, title)
    assert (found.state if found else None) == state


BANNER = "\n ▝▜▄     Gemini CLI v0.61.0\n   ▝▜▄\n  ▗▟▀    Authenticated with gemini-api-key /auth\n ▝▀\n\n"


@pytest.mark.parametrize(
    ("screen", "bare"),
    [
        (gemini(BANNER), True),
        (gemini(BANNER, said("one"), "✦ Better.\n"), False),
        (gemini(BANNER, "ℹ Session saved.\n"), False),
        (gemini("✦ Better.\n"), False),
        (said("one") + ASKED, False),
    ],
)
def test_a_cleared_screen_of_gemini_is_known(screen: str, bare: bool) -> None:
    assert bool(_BARE.search(screen)) == bare
