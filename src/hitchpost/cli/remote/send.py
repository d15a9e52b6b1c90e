"""``hitch send`` to a session of a hub elsewhere."""

from __future__ import annotations

from base64 import b64encode

import click

from hitchpost.cli.caller import Delivering
from hitchpost.cli.common import print_json, say
from hitchpost.cli.remote.hub import STARTS_S, RemoteHub
from hitchpost.cli.remote.waiting import wait_for_any
from hitchpost.cli.send import check, forced_upon, picture, said
from hitchpost.cli.words import became, sent
from hitchpost.model import run as runs
from hitchpost.text import visible


def command(
    hub: RemoteHub,
    session: str,
    text: str,
    no_enter: bool,
    images: tuple[str, ...],
    force: bool,
    resumes: bool,
    until_done: bool,
    timeout_s: float | None,
    as_json: bool,
) -> None:
    check(until_done, timeout_s)
    text = said(text, enter=not no_enter)
    found = hub.find(session)
    pictures = [b64encode(picture(path)).decode() for path in images]
    wish = {"text": text, "enter": not no_enter, "force": force, "resume": resumes, "images": pictures}
    with Delivering(found.name):
        done = hub.ask("POST", f"{found.path}/prompt", wish, timeout_s=STARTS_S)
    now, name = done["session"], visible(found.name)
    for note in done["notes"]:
        say(hub.advice(note))
    if not as_json and done["started"]:
        click.echo(f"{name} was started again (run {now['run']})")
    if not as_json:
        shown = forced_upon(found.session if force else None)
        told = sent(name, proof=done["proof"], watched=not done["delivered"], waits=done["waits"], shown=shown)
        if not done["waits"] and not done["proof"] and now["state"] in runs.TERMINAL:
            told += "; the agent has ended"
        click.echo(told)
    if until_done:
        now, ended = wait_for_any(hub, [now], "idle", timeout_s=timeout_s, since=done["since"])
        if not as_json:
            click.echo(f"{name}: {visible(became(now, has_ended=ended))}")
    if as_json:
        proof = {"proof": done["proof"], "confirmed": bool(done["proof"]), "waits": done["waits"]}
        proof["images"] = len(images)
        print_json({"offset": done["offset"], **proof, "started": done["started"], "session": now})
