"""``hitch run`` on a hub elsewhere: folders, mounts and settings are those of the hub's machine."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from hitchpost.cli.caller import Delivering, say, terminal_size
from hitchpost.cli.common import print_json
from hitchpost.cli.remote.acts import Waiting
from hitchpost.cli.remote.hub import STARTS_S, RemoteHub
from hitchpost.cli.run import RunOptions, first_prompt, refuse_contradictions, seconds_in
from hitchpost.cli.words import started
from hitchpost.errors import UsageError
from hitchpost.model.facts import POD
from hitchpost.ops.sessions import environment

LARGEST_SIDE = 1000


def command(hub: RemoteHub, **values: Any) -> None:
    options = RunOptions(command=click.get_current_context().obj, **values)
    sys.exit(_run(hub, options))


def _run(hub: RemoteHub, options: RunOptions) -> int:
    refuse_contradictions(options)
    if options.here or not (options.folder or options.repo or options.workspace):
        raise UsageError(
            "the current folder is on this machine, and the session will be on another",
            "name a folder there with --folder, or a repository to clone with --repo",
        )
    timeout_s = None if options.timeout is None else seconds_in("--timeout", options.timeout)
    asked = wish(options)
    name = options.name or "the session"
    with Delivering(name) if "prompt" in asked else Waiting(name, "starting"):
        made = hub.ask("POST", "/api/sessions", asked, timeout_s=STARTS_S)
    session = made["session"]
    for note in made["notes"]:
        say(hub.advice(note))
    if options.wait:
        from hitchpost.cli.outcome import tell
        from hitchpost.cli.remote.waiting import outcome

        found = outcome(hub, session, session["created_at"], timeout_s=timeout_s)
        shape = {key: found[key] for key in ("outcome", "answer", "usage", "session")}
        tell(shape, ended=found["has_ended"], as_json=options.as_json)
        return int(found["exit_code"])
    if options.as_json:
        print_json(session)
    else:
        click.echo(started(session["name"], session["index"], session["id"], session["run"]))
        if sys.stdout.isatty() and not options.attach:
            word = hub.find(session["id"]).word
            click.echo(hub.advice(f"hitch attach {word} enters its terminal, hitch ps shows who needs you"))
    if not options.attach:
        return 0
    from hitchpost.cli.remote.attach import attach_to

    sys.stdout.flush()
    return attach_to(hub, hub.find(session["id"]), read_only=False, is_new=True)


def wish(options: RunOptions) -> dict[str, object]:
    """The session that is asked for, as the API takes it. What is not given is left out: the hub knows what holds."""
    prompt, is_typed = first_prompt(options)
    cols, rows = terminal_size()
    sandbox = {
        "image": options.image,
        "mounts": list(options.mounts),
        "network": options.network,
        "memory": options.memory,
        "cpus": options.cpus,
        "config": options.config,
        "keep_failed": options.keep_failed,
    }
    asked: dict[str, object] = {
        "agent": options.agent,
        "command": list(options.command),
        "folder": options.workspace or options.folder,
        "repo": options.repo,
        "branch": options.branch,
        "workspace": options.workspace,
        "exclusive": options.exclusive,
        "share": options.share,
        "name": options.name,
        "description": options.description,
        "runtime": POD if options.repo and options.runtime == "local" else options.runtime,
        "sandbox": {key: value for key, value in sandbox.items() if value},
        "permission_mode": options.permission_mode,
        "model": options.model,
        "idle_after_s": None if options.idle_after is None else seconds_in("--idle-after", options.idle_after),
        "when_limit": options.when_limit,
        "prompt": prompt,
        "prompt_is_typed": is_typed,
        "until_ready": not (options.attach or options.wait),
        "env": environment.parse(options.env_items, os.environ),
        "cols": min(cols, LARGEST_SIDE),
        "rows": min(rows, LARGEST_SIDE),
    }
    return {key: value for key, value in asked.items() if value or value is False}
