"""What differs between the agents that walk the same steps: how each is asked, answered, interrupted and ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

ESC, CTRL_C, CTRL_D, CTRL_U = b"\x1b", b"\x03", b"\x04", b"\x15"
LIMIT = "no credits are left. Try again at 18:30."

Keys = tuple[bytes, ...]
"""Each is pressed when the one before has had its effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """``cannot`` has a reason for each word of ``tests.agents.proofs`` that means nothing for the agent."""

    proofs: tuple[str, ...]
    """What may show that a prompt was delivered."""
    deed: str = "[[bash touch {}]]"
    """Asks the model for what needs a permission, and makes a file."""
    asks: str = "touch {}"
    options: tuple[str, ...] = ("yes", "no")
    refuse: bytes = ESC
    denied: str = "waiting"
    """What it is when a permission was refused from outside: some let the model go on."""
    queues: bool = True
    says: bool = True
    """Whether the end of a turn comes with the first line of the answer."""
    question: bool | None = None
    """Whether a question can be answered from outside; None where the agent asks none."""
    cancelled: str = "waiting"
    """What it is when a question was cancelled in the terminal."""
    limit: tuple[str, str, str] = ("error", LIMIT, LIMIT)
    """What it is at a usage limit, with which text, when the model says what."""
    interrupts: Mapping[str, Keys] = field(default_factory=lambda: {"Esc": (ESC,), "Ctrl-C": (CTRL_C,)})
    interruptible: tuple[str, ...] = ()
    """What its screen shows before it hears each of these keys."""
    tidy: bytes = b""
    """Pressed after a turn that got no answer, where the agent would send its prompt again."""
    joins: bool = False
    """Whether a prompt that got no answer comes again with the next, as one text."""
    clear: str = "/clear"
    tells_cleared: bool = True
    """Whether it can be known which conversation it begins then."""
    quits: Mapping[str, Keys] = field(default_factory=dict)
    term: Mapping[str, Any] = field(default_factory=lambda: {"signal": "SIGTERM"})
    hup: Mapping[str, Any] = field(default_factory=lambda: {"signal": "SIGHUP"})
    exact: bool = False
    """Whether prompts go through a protocol: nothing is typed, and nothing protected."""
    refused: tuple[str, ...] = ()
    """Texts that it would take for commands, and that nothing protects."""
    cannot: Mapping[str, str] = field(default_factory=dict)
    unproven: Mapping[str, str] = field(default_factory=dict)
    """What it can, as it says itself, and why no test proves it."""
    background: str | None = None
    """What it is while a task that it has started goes on; None where it can start none, or no test proves it."""


NO_QUESTION = {"question": "it has no tool that asks"}
STAYS = "its tools would go on working in the folder of the other conversation"
NO_FORK = "its command line has no way to branch off"
NO_WORD = {"prompt byte-exact: /word": "it would be a command; it is refused"}
SPACE = {"prompt byte-exact: /word": "it would be a command; a space is put before it"}
GOES_ON = {"background work": "it ends its turn when its tools have ended"}

WAYS = {
    "gemini": Ways(
        proofs=("title: working", "screen: the text has left its prompt"),
        asks="Shell touch {}",
        says=False,
        question=False,
        limit=("blocked", "Usage limit reached", LIMIT),
        background="done",
        tells_cleared=False,
        quits={"quit": (b"/quit", b"\r"), "Ctrl-C": (CTRL_C, CTRL_C), "Ctrl-D": (CTRL_D, CTRL_D)},
        term={"code": 0},
        hup={"code": 0},
        refused=("/nothing",),
        cannot={"forked": NO_FORK, **NO_WORD},
    ),
    "opencode": Ways(
        proofs=("message",),
        exact=True,
        asks="bash: touch {}",
        options=("yes", "always", "no"),
        question=True,
        limit=("blocked", "no credits", "no credits are left. Try again in 3600 s."),
        interrupts={"Esc": (ESC, ESC)},
        interruptible=("interrupt", "again to"),
        clear="/new",
        quits={"quit": (b"/exit", b"\r"), "Ctrl-C": (CTRL_C,), "Ctrl-D": (CTRL_D,)},
        term={"code": 0},
        hup={"code": 0},
        cannot={"interrupted with Ctrl-C": "Ctrl-C ends it", "start-up dialog": "it asks nothing when it starts"},
    ),
    "qwen": Ways(
        proofs=("UserPromptSubmit",),
        asks="touch {}",
        says=False,
        question=False,
        unproven={
            "usage limit": "it tries again for more than three minutes, says nothing of it, and is shown as working"
        },
        background="done",
        tidy=CTRL_U,
        quits={"quit": (b"/quit", b"\r"), "Ctrl-C": (CTRL_C, CTRL_C), "Ctrl-D": (CTRL_D, CTRL_D)},
        refused=("/nothing",),
        cannot={"forked": "it finds a conversation only in the folder that it began in", **NO_WORD},
    ),
    "copilot": Ways(
        proofs=("userPromptSubmitted",),
        queues=False,
        says=False,
        question=False,
        cancelled="done",
        interrupts={"Esc": (ESC, ESC), "Ctrl-C": (CTRL_C,)},
        background="working",
        tidy=CTRL_U,
        quits={"quit": (b"/exit", b"\r"), "Ctrl-C": (CTRL_C, CTRL_C), "Ctrl-D": (CTRL_D,)},
        refused=("!touch shell",),
        cannot={"forked": NO_FORK, **SPACE},
    ),
    "goose": Ways(
        proofs=("prompt",),
        denied="done",
        queues=False,
        interrupts={"Ctrl-C": (CTRL_C,)},
        tidy=b"/clear\r",
        joins=True,
        quits={"quit": (b"/exit\r",), "Ctrl-C": (CTRL_C, CTRL_C), "Ctrl-D": (CTRL_D,)},
        refused=("/nothing",),
        cannot={
            "interrupted with Esc": "it does not hear Esc",
            "forked": STAYS,
            **NO_QUESTION,
            **GOES_ON,
            **NO_WORD,
        },
    ),
    "aider": Ways(
        proofs=("prompt",),
        deed="[[write {}|hello]]",
        asks="Create new file? {}",
        refuse=b"n\r",
        queues=False,
        interrupts={"Ctrl-C": (CTRL_C,)},
        quits={"quit": (b"/exit\r",), "Ctrl-C": (CTRL_C, CTRL_C), "Ctrl-D": (CTRL_D,)},
        cannot={
            "refused with Esc": "its question reads a line; n refuses",
            "interrupted with Esc": "it does not hear Esc",
            "forked": "its conversation is a file of the folder that it works in",
            **NO_QUESTION,
            **GOES_ON,
            **SPACE,
        },
    ),
}


NOT_PROVEN = {(name, word): why for name, ways in WAYS.items() for word, why in ways.unproven.items()}
NOT_POSSIBLE = {(name, word): why for name, ways in WAYS.items() for word, why in ways.cannot.items()}


def without(ways: Ways) -> tuple[str, ...]:
    """The words that no test of the agent proves."""
    return *ways.cannot, *ways.unproven, *(() if ways.background else ("background work",))


def every(*words: str) -> list[object]:
    """For ``parametrize``: each agent, with those of the words that it can prove."""
    return [
        pytest.param(
            name,
            marks=(
                pytest.mark.all_agents,
                pytest.mark.proves(*(word for word in words if word not in without(ways))),
            ),
        )
        for name, ways in WAYS.items()
    ]
