"""docs/states.md: the states of a run and what leads from one to the other, worked out from the machine itself.

usage: states.py [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from hitchpost.model import machine
from hitchpost.model import run as runs
from hitchpost.model.machine import Effect, Event, Run

PATH = Path(__file__).parents[1] / "docs" / "states.md"
NOW = 1000.0
EVENTS: tuple[Event, ...] = (
    machine.AgentStarted(),
    machine.StartFailed("why"),
    machine.StopRequested("user", "", 10.0, NOW),
    machine.SourceLost(1.0, NOW),
    machine.AgentExited(),
    machine.TerminalClosed(NOW),
    machine.TreeSeen(1, NOW),
    machine.TreeSeen(0, NOW),
    machine.Forced(0, NOW),
    machine.DeadlinePassed(2 * NOW),
    machine.WorkspaceGone(),
    machine.EndCounted(code=0),
    machine.EndCounted(code=1),
    machine.EndCounted(error="why"),
)
WORDS: dict[Event, str] = {
    machine.EndCounted(code=0): "EndCounted, code 0",
    machine.EndCounted(code=1): "EndCounted, another code or a signal",
    machine.EndCounted(error="why"): "EndCounted, nobody saw the end",
}


def explored() -> tuple[list[tuple[str, str, str]], dict[str, set[str]]]:
    """Each step between two states with the event that makes it, and the effects that an event ever has."""
    steps: set[tuple[str, str, str]] = set()
    effects: dict[str, set[str]] = {}
    todo, known = [Run()], {Run()}
    while todo:
        run = todo.pop()
        for event in EVENTS:
            following, done = machine.handle(run, event)
            name = type(event).__name__
            effects.setdefault(name, set()).update(type(effect).__name__ for effect in done)
            for old, new in walked(run.state, done):
                steps.add((old, new, WORDS.get(event, name)))
            if following not in known:
                known.add(following)
                todo.append(following)
    order = list(runs.TRANSITIONS)
    return sorted(steps, key=lambda step: (order.index(step[0]), order.index(step[1]), step[2])), effects


def walked(state: str, effects: tuple[Effect, ...]) -> Iterator[tuple[str, str]]:
    for effect in effects:
        if isinstance(effect, machine.WriteState):
            yield state, effect.state
            state = effect.state


def page() -> str:
    steps, effects = explored()
    lines = [
        "# The states of a run",
        "",
        "Made by `script/states.py` from `model/run.py` and `model/machine.py`; `script/lint` compares it.",
        "",
        "| state | meaning | can become |",
        "|---|---|---|",
        *(
            f"| {state} | {runs.MEANINGS[state]} | {', '.join(then) or 'nothing: it is final'} |"
            for state, then in runs.TRANSITIONS.items()
        ),
        "",
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> created",
        "    created --> starting: a start is asked for",
    ]
    edges: dict[tuple[str, str], list[str]] = {}
    for old, new, event in steps:
        edges.setdefault((old, new), []).append(event)
    lines += [f"    {old} --> {new}: {' / '.join(events)}" for (old, new), events in edges.items()]
    lines += [f"    {state} --> [*]" for state in runs.TERMINAL]
    lines += [
        "```",
        "",
        "What each event may make the keeper do:",
        "",
        "| event | what it says | effects |",
        "|---|---|---|",
    ]
    order = [kind.__name__ for kind in vars(machine).values() if isinstance(kind, type) and issubclass(kind, Effect)]
    for kind in machine.HANDLERS:
        done = ", ".join(sorted(effects.get(kind.__name__, ()), key=order.index)) or "none"
        lines.append(f"| {kind.__name__} | {(kind.__doc__ or '').split(chr(10))[0]} | {done} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    text = page()
    if "--check" not in sys.argv:
        PATH.write_text(text)
        return 0
    if not PATH.exists() or PATH.read_text() != text:
        print("docs/states.md is out of date: run .venv/bin/python script/states.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
