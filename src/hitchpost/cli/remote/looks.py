"""Commands that look at what a hub elsewhere knows: a question, and the words that the command has for the answer."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

from hitchpost.cli.remote import contexts
from hitchpost.cli.remote.copies import OutputCopy
from hitchpost.cli.remote.hub import RemoteHub
from hitchpost.values import asdict

COMPLETED_S = 2.0
AT_ITS_END = 1e10
"""Seconds since the beginning of a recording: beyond all of them."""


def names(choice: contexts.Choice) -> list[str]:
    """Of sessions, for the shell's completion: somebody waits for it while they type."""
    hub = RemoteHub(contexts.load(choice.name), connect_s=COMPLETED_S)
    try:
        rows = hub.ask("GET", "/api/sessions", timeout_s=COMPLETED_S, query={"all": True})
    finally:
        hub.close()
    return [row["name"] for row in rows]


def explain(hub: RemoteHub, session: str, at_text: str | None, everything: bool, as_json: bool) -> None:
    from hitchpost.cli.explain import parse_time, show

    at = None if at_text is None else parse_time(at_text, datetime.now().astimezone()).isoformat()
    found = hub.get(f"{hub.find(session).path}/explain", at=at, story=True)
    show(found, everything=everything, as_json=as_json)


def diff(hub: RemoteHub, session: str, stat: bool, color: str, as_json: bool) -> None:
    from hitchpost.cli.common import print_json
    from hitchpost.cli.diff import show

    path = f"{hub.find(session).path}/diff"
    if as_json:
        print_json(hub.get(path))
        return
    text, headers = hub.octets(f"{path}/text", stat=stat)
    show(text, headers["Hitchpost-Base"] or None, cut=headers["Hitchpost-Cut"] == "true", color=color)


def usage(hub: RemoteHub, session: str | None, by: str, since: str | None, as_json: bool) -> None:
    from hitchpost.cli.usage import moment_of, show

    which = None if session is None else hub.find(session).id
    begin = None if since is None else moment_of(since).isoformat()
    show(hub.get("/api/usage", by=by, session=which, since=begin), as_json=as_json)


def status(hub: RemoteHub, as_json: bool) -> None:
    from hitchpost.cli.status import show

    show(hub.get("/api/health"), hub.get("/api/status"), as_json=as_json)


def services(hub: RemoteHub, as_json: bool) -> None:
    from hitchpost.cli.services import show

    show(True, hub.get("/api/status")["containers"], as_json=as_json)


def agents(hub: RemoteHub, as_json: bool) -> None:
    from hitchpost.cli.agents import show

    show(hub.get("/api/catalog")["agents"], as_json=as_json)


def peek(hub: RemoteHub, session: str, run: int | None, colour: bool | None, as_json: bool) -> None:
    from hitchpost.cli.peek import show
    from hitchpost.terminal.emulators import Emulators, NoEmulator
    from hitchpost.terminal.screen import PlainScreen, Screen

    found = hub.find(session)
    part = hub.get(f"{found.path}/replay/part", run=run, at=AT_ITS_END)
    shown = part["screen"]
    with Emulators() as emulators:
        try:
            screen: Screen = emulators.open(shown["cols"], shown["rows"])
        except NoEmulator:
            screen = PlainScreen(shown["cols"], shown["rows"])
        try:
            screen.feed(base64.b64decode(shown["data"]))
            show(screen, found.id, part["run"], colour=colour, as_json=as_json)
        finally:
            screen.close()


def replay(
    hub: RemoteHub,
    session: str,
    run: int | None,
    speed: float,
    idle_s: float | None,
    from_s: float,
    path: str | None,
    force: bool,
) -> None:
    from hitchpost.cli.replay import check, show

    check(path, force)
    found = hub.find(session)
    with OutputCopy(hub, found, run) as copy:
        copy.fetch()
        how: dict[str, Any] = {"speed": speed, "idle_s": idle_s, "from_s": from_s}
        show(copy.folder, found.name, copy.run, **how, path=path, force=force)


def finish(
    hub: RemoteHub, session: str, into: str | None, dry_run: bool, yes: bool, as_json: bool, **chosen: Any
) -> None:
    from hitchpost.cli.finish import carry_out
    from hitchpost.ops.sessions.finish import Steps

    found = hub.find(session)
    path = f"{found.path}/finish"

    def do(steps: Steps) -> dict[str, Any]:
        done: dict[str, Any] = hub.ask("POST", path, asdict(steps), timeout_s=600)
        del done["session"]
        return done

    plan = hub.get(path, into=into)
    carry_out(found.name, plan, Steps(into=into, **chosen), do, dry_run=dry_run, yes=yes, as_json=as_json)
