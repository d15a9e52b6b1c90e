"""Commands that ask a hub elsewhere to do something with a session: one request each, and what is said afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from hitchpost.cli import words
from hitchpost.cli.common import each, print_json, progress, say
from hitchpost.cli.remote.hub import STARTS_S, TIMEOUT_S, Found, RemoteHub
from hitchpost.model.facts import POD, has_sandbox
from hitchpost.model.limits import WAIT
from hitchpost.model.run import RUNNING
from hitchpost.model.status import UNKNOWN
from hitchpost.ops.sessions.give_up import risk
from hitchpost.ops.views.session_types import Session
from hitchpost.text import visible

Options = Mapping[str, Any]
MARGIN_S = 120.0
"""For the end of what does not end by itself, and of all that it has started."""


@dataclass(frozen=True, slots=True)
class Done:
    """What was asked for, of which session, and the hub's answer."""

    hub: RemoteHub
    before: Found
    answer: Any
    options: Options

    @property
    def session(self) -> Session:
        """As it is afterwards, where the answer has it."""
        session: Session = self.answer.get("session", self.answer)
        return session

    @property
    def name(self) -> str:
        return self.before.name


@dataclass(frozen=True, slots=True)
class Act:
    """``says`` is for a person, ``shape`` for ``--json``; ``told`` are notes, ``waits`` is said while it takes long."""

    method: str
    path: str
    says: Callable[[Done], str]
    body: Callable[[Options], dict[str, object]] = lambda options: {}
    query: Callable[[Options], dict[str, object]] = lambda options: {}
    shape: Callable[[Done], object] = lambda done: done.session
    told: Callable[[Done], list[str]] = lambda done: (done.answer or {}).get("notes", [])
    waits: str = "waiting for the hub"
    timeout_s: Callable[[Options], float] = lambda options: TIMEOUT_S

    @property
    def asks(self) -> str:
        return f"{self.method} /api/sessions/{{session}}{self.path}"


def _left_inside(done: Done) -> list[str]:
    return done.hub.find(done.before.id).notes if has_sandbox(done.session["runtime"]) else []


EDIT = ("PATCH", "")
ACTS: dict[str, Act] = {
    "stop": Act(
        "POST",
        "/stop",
        says=lambda done: words.stopped(done.session),
        body=lambda options: {"grace_s": 0.0 if options["now"] else options["grace_s"]},
        told=_left_inside,
        waits="stopping",
        timeout_s=lambda options: (options["grace_s"] or 0.0) + MARGIN_S,
    ),
    "restart": Act(
        "POST",
        "/restart",
        says=lambda done: words.restarted(done.session),
        body=lambda options: {key: options[key] for key in ("again", "workspace", "force")},
        told=lambda done: [f"{done.name}: {note}" for note in done.answer["notes"]],
        waits="stopping",
        timeout_s=lambda options: STARTS_S,
    ),
    "resume": Act(
        "POST",
        "/resume",
        says=lambda done: words.resumed(done.session, same=done.answer["resumed"]),
        body=lambda options: {"agent": options["agent"], "when_limit": options["when_limit"] or ""},
        shape=lambda done: {**done.session, "resumed_conversation": done.answer["resumed"]},
        timeout_s=lambda options: STARTS_S,
    ),
    "fork": Act(
        "POST",
        "/fork",
        says=lambda done: words.forked(done.session, done.name),
        body=lambda options: {"name": options["name"]},
        waits="copying its work",
        timeout_s=lambda options: STARTS_S,
    ),
    "interrupt": Act("POST", "/interrupt", says=lambda done: f"{done.name}: interrupted"),
    "cancel": Act("POST", "/cancel", says=lambda done: words.cancelled(done.name)),
    "archive": Act("POST", "/archive", says=lambda done: words.archived(done.name)),
    "unarchive": Act(
        "POST",
        "/unarchive",
        says=lambda done: words.brought_back(done.name, done.session["name"], done.hub.find(done.before.id).way_on),
    ),
    "rm": Act(
        "DELETE",
        "",
        says=lambda done: words.removed(done.name),
        query=lambda options: {"force": options["force"]},
        told=lambda done: (done.answer or {}).get("lost", []),
        timeout_s=lambda options: MARGIN_S,
    ),
    "answer": Act(
        "POST",
        "/answer",
        says=lambda done: words.answered(done.options["choice"], done.name),
        body=lambda options: {key: options[key] for key in ("choice", "request", "message")},
    ),
    "rename": Act(
        *EDIT,
        says=lambda done: words.renamed(done.name, done.options["name"]),
        body=lambda options: {"name": options["name"]},
    ),
    "pin": Act(
        *EDIT,
        says=lambda done: words.pinned(done.name, done.session["pinned"]),
        body=lambda options: {"pinned": not options["off"]},
    ),
    "snooze": Act(
        *EDIT,
        says=lambda done: words.snoozed(done.name, done.options["for_s"]),
        body=lambda options: {"snooze_s": options["for_s"]},
    ),
    "resume --when-limit": Act(  # of a session that is running
        *EDIT,
        says=lambda done: words.limited(done.name, waits=done.options["when_limit"] == WAIT),
        body=lambda options: {"when_limit": options["when_limit"]},
        shape=lambda done: {**done.session, "resumed_conversation": False},
    ),
}
"""What each of them asks. ``acts.command`` does it."""


def command(act: str, hub: RemoteHub, /, **options: Any) -> None:
    """``options`` are those of the command of that name."""
    if "sessions" in options:
        each(options["sessions"], lambda session: _do(hub, act, hub.find(session), options))
    else:
        _do(hub, act, hub.find(options["session"]), options)


def _do(hub: RemoteHub, name: str, found: Found, options: Options) -> None:
    if name == "cancel" and not options["yes"]:
        question = words.cancel_question(found.name, found.session["record"], found.session["state"])
        if question:
            click.confirm(question, abort=True, err=True)
    if name == "restart" and options["force"] and not options["yes"] and _is_in_doubt(found.session):
        click.confirm(f"{visible(risk(found.name, found.session['node']))}. Give it up?", abort=True, err=True)
    only_edited = name == "resume" and options["when_limit"] and not options["agent"]
    if only_edited and found.session["state"] == RUNNING:
        name = "resume --when-limit"
    act = ACTS[name]
    path = found.path + act.path
    body: dict[str, object] | None = act.body(options)
    if act.method == "DELETE":
        body = None
    with Waiting(found.name, act.waits):
        answer = hub.ask(act.method, path, body, timeout_s=act.timeout_s(options), query=act.query(options))
    done = Done(hub, found, answer, options)
    for note in act.told(done):
        say(hub.advice(note))
    if options.get("as_json"):
        print_json(act.shape(done))
    else:
        click.echo(act.says(done))


def _is_in_doubt(session: Session) -> bool:
    return session["runtime"] == POD and session["status"] == UNKNOWN


class Waiting:
    """Says once a second, on a terminal, how long something takes."""

    def __init__(self, name: str, what: str) -> None:
        self._show, self._over = progress(name, what), threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _tell(self) -> None:
        began = time.monotonic()
        while not self._over.wait(1.0):
            self._show(time.monotonic() - began)
