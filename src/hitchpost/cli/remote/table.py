"""Every command, and what it asks of a hub elsewhere; or why it does not work from afar, and what to do instead.

A command keeps its options and its help. With a context, what it does comes from here. ``acts.ACTS`` has those that are
one request about a session; ``ASKED`` has a function for each of the others, which takes the hub and the command's
options. Nothing else in ``cli/`` knows of contexts.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from importlib import import_module
from typing import Any

import click

from hitchpost.cli.remote import contexts
from hitchpost.cli.remote.advice import elsewhere
from hitchpost.errors import Refused

S = "/api/sessions/{session}"
NODE = "/api/fleet/nodes/{node}"
FIND = "GET /api/find"
OUTPUT = (f"GET {S}/output", f"GET {S}/output/part", f"GET {S}/output/times")
ASKED: dict[str, tuple[str, tuple[str, ...]]] = {
    "run": ("run.command", ("POST /api/sessions", f"GET {S}/outcome", "WS /ws")),
    "ps": ("ps.command", ("GET /api/sessions/table", "GET /api/sessions", "WS /ws")),
    "attach": ("attach.command", (FIND, "WS /ws")),
    "logs": ("logs.command", (FIND, *OUTPUT, "WS /ws")),
    "send": ("send.command", (FIND, f"POST {S}/prompt", "GET /api/wait")),
    "wait": ("waiting.command", (FIND, "GET /api/wait")),
    "peek": ("looks.peek", (FIND, f"GET {S}/replay/part")),
    "replay": ("looks.replay", (FIND, *OUTPUT)),
    "explain": ("looks.explain", (FIND, f"GET {S}/explain")),
    "diff": ("looks.diff", (FIND, f"GET {S}/diff", f"GET {S}/diff/text")),
    "finish": ("looks.finish", (FIND, f"GET {S}/finish", f"POST {S}/finish")),
    "usage": ("looks.usage", (FIND, "GET /api/usage")),
    "status": ("looks.status", ("GET /api/health", "GET /api/status")),
    "services": ("looks.services", ("GET /api/status",)),
    "agents": ("looks.agents", ("GET /api/catalog",)),
    "user add": ("people.add", ("POST /api/users",)),
    "user set": ("people.change", ("PATCH /api/users/{user}",)),
    "user ls": ("people.users", ("GET /api/users",)),
    "user rm": ("people.remove", ("DELETE /api/users/{user}",)),
    "token create": ("people.create_token", ("POST /api/tokens",)),
    "token ls": ("people.tokens", ("GET /api/tokens",)),
    "token rm": ("people.remove_tokens", ("DELETE /api/tokens/{token}",)),
    "fleet status": ("fleet.status", ("GET /api/fleet",)),
    "fleet drain": (
        "fleet.drain",
        (f"GET {NODE}", f"POST {NODE}/cordon", f"POST {NODE}/sessions/{{session}}/drain"),
    ),
    "fleet undrain": ("fleet.undrain", (f"GET {NODE}", f"POST {NODE}/cordon", f"POST {S}/resume")),
}
"""A function of a module of this folder, and the routes that it uses. A group has one for each of its commands."""

THERE = "run it on the machine of the hub"
HERE = f"{contexts.OPTION} {contexts.HERE} is this machine"
REFUSED: dict[str, tuple[str, str]] = {
    "top": ("it looks at the files of the machine that it runs on", "use hitch ps --watch, or the page of the hub"),
    "adopt": ("it watches a program in a tmux of the machine that it runs on", THERE),
    "up": ("it starts a hub on the machine that it runs on", HERE),
    "down": ("it stops the hub of the machine that it runs on", HERE),
    "link": ("only the hub's own machine makes links that sign somebody in", THERE),
    "doctor": ("it checks the machine that it runs on", HERE),
    "prune": ("the hub prunes by itself", THERE),
    "workspace": ("it is about folders of the machine that it runs on", THERE),
    "rules": (
        "it reads rules and recordings of the machine that it runs on",
        f"hitch replay SESSION --export FILE brings a recording here, and {HERE}",
    ),
    "notify": ("it is about the ways to be told that the hub's machine has", THERE),
    "mcp": ("an agent drives sessions of the machine that it is on", HERE),
}
"""Why, and what to do."""

ONLY_HERE = ("context", "completion")
"""They are about this machine's own settings, whatever the context."""
UNLESS_GIVEN = ("mcp",)
"""An agent's settings name it: a context that a person uses meanwhile does not break it."""


def from_afar(name: str, command: click.Command, choice: contexts.Choice) -> click.Command:
    """The command for the hub of a context, or one that refuses."""
    if name in ONLY_HERE or (name in UNLESS_GIVEN and not choice.given):
        return command
    found = copy(command)
    if name in REFUSED:
        found.invoke = partial(_refuse, name, choice.name)  # type: ignore[method-assign]
        return found
    if isinstance(found, click.Group):
        found.commands = {word: _asking(f"{name} {word}", each, choice) for word, each in found.commands.items()}
        return found
    return _asking(name, found, choice)


def _asking(name: str, command: click.Command, choice: contexts.Choice) -> click.Command:
    found = copy(command)
    found.callback = partial(_ask, name, choice.name)
    return found


def _refuse(name: str, context: str, ctx: click.Context) -> None:
    why, instead = REFUSED[name]
    contexts.load(context)  # one that there is not is the first thing to know
    raise Refused(f"hitch {name} does not work with the context {context}: {why}", elsewhere(instead, context))


def _ask(name: str, context: str, /, **options: Any) -> None:
    from hitchpost.cli.remote.hub import RemoteHub

    hub = RemoteHub(contexts.load(context))
    try:
        answer(name)(hub, **options)
    finally:
        hub.close()


def answer(name: str) -> Callable[..., None]:
    """What a command does from afar: it takes the hub, and the command's options by their names."""
    if name not in ASKED:
        from hitchpost.cli.remote import acts

        return partial(acts.command, name)
    module, _, function = ASKED[name][0].partition(".")
    found: Callable[..., None] = getattr(import_module(f"hitchpost.cli.remote.{module}"), function)
    return found
