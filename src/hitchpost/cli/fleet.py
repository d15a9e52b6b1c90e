"""``hitch fleet``: the hubs and nodes of a fleet, and how a node is emptied."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import click

from hitchpost.cli.common import json_option, print_json, say
from hitchpost.cli.failing import report
from hitchpost.errors import FAILURES, HitchpostError
from hitchpost.hub import client as hub_client
from hitchpost.model.draining import END, MOVE, STAYS, WAYS
from hitchpost.model.durations import duration
from hitchpost.store.home import home_path
from hitchpost.text import table, visible

Ask = Callable[..., Any]
"""Asks a hub: method, path, body and ``timeout_s``."""
AT_ONCE = 4
STEP_S = 600.0
"""For one session: its agent may take its grace, and where it is moved, an image may have to be fetched."""
BECAME = {
    "left": "had left already",
    "ended": "ended",
    "suspended": "suspended",
    "moved": "moved",
}
node_argument = click.argument("node")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def here() -> Ask:
    """The hub of this home."""
    home = home_path()

    def ask(method: str, path: str, body: object = None, *, timeout_s: float = hub_client.TIMEOUT_S) -> Any:
        return hub_client.ask(home, method, path, body, timeout_s=timeout_s)

    return ask


@click.group("fleet")
def command() -> None:
    """Hubs and nodes of a fleet.

    \b
    hitch fleet status                        the hubs, who leads, and the nodes
    hitch fleet drain n1 --cordon             take all sessions off a node, and keep new ones away
    hitch fleet undrain n1                    let it have new ones again
    """


@command.command("status")
@json_option
def status(as_json: bool) -> None:
    """Show the hubs of the fleet, which of them leads, and how many sessions are on each node."""
    show_status(here(), as_json=as_json)


@command.command("drain", short_help="Take all sessions off a node.")
@node_argument
@click.option(
    "--how",
    type=click.Choice(list(WAYS)),
    help="What becomes of live sessions; else as the settings say (fleet.drain).",
)
@click.option("--cordon", is_flag=True, help="First let no new pod come to the node.")
@click.option("--dry-run", is_flag=True, help="Only show what would happen.")
@yes_option
@json_option
def drain(node: str, how: str | None, cordon: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Take all sessions off a node: end their runs and their pods. Their volumes stay, and go where they go.

    \b
    rest      the next prompt starts a session again, on any node
    suspend   its record is suspended too; hitch resume starts it again
    move      it is resumed at once; the node has to be cordoned

    What will happen is shown first. Without --cordon the node still takes pods, so what starts again may come back.
    """
    sys.exit(run_drain(here(), node, how, cordon=cordon, dry_run=dry_run, yes=yes, as_json=as_json))


@command.command("undrain", short_help="Let a node have sessions again.")
@node_argument
@click.option("--resume", is_flag=True, help="Also resume the sessions that the drain has ended.")
@json_option
def undrain(node: str, resume: bool, as_json: bool) -> None:
    """Let new pods come to a node again, and show the sessions that its drain has ended."""
    sys.exit(run_undrain(here(), node, resume=resume, as_json=as_json))


def show_status(ask: Ask, *, as_json: bool) -> None:
    found = ask("GET", "/api/fleet")
    if as_json:
        print_json(found)
        return
    click.echo(f"PostgreSQL at {visible(found['database'])}, revision {found['revision']}")
    head = ("HUB", "SINCE", "CONNECTIONS", "WATCHES", "")
    click.echo("\n".join(table([head, *(_member(member, found["replica"]) for member in found["replicas"])])))
    if found["nodes"]:
        click.echo("")
        rows = [
            (visible(node["name"]), _state(node), str(node["sessions"]), str(node["live"])) for node in found["nodes"]
        ]
        click.echo("\n".join(table([("NODE", "STATE", "SESSIONS", "LIVE"), *rows])))
    for problem in found["problems"]:
        say(problem)


def _member(member: dict[str, Any], answers: str) -> tuple[str, ...]:
    up_s = (datetime.now(UTC) - datetime.fromisoformat(member["since"])).total_seconds()
    marks = [word for word, holds in (("leads", member["leads"]), ("answers", member["name"] == answers)) if holds]
    counts = str(member["connections"]), str(member["watched"])
    return visible(member["name"]), duration(max(0.0, up_s)), *counts, ", ".join(marks)


def _state(node: dict[str, Any]) -> str:
    ready = {True: "ready", False: "not ready", None: "unknown"}[node["ready"]]
    return f"{ready}, cordoned" if node["cordoned"] else ready


def run_drain(ask: Ask, node: str, how: str | None, *, cordon: bool, dry_run: bool, yes: bool, as_json: bool) -> int:
    """The exit code: that of the first session that could not be taken off."""
    path = f"/api/fleet/nodes/{quote(node, safe='')}"
    plan = ask("GET", path if how is None else f"{path}?how={how}")
    leaving = [step for step in plan["steps"] if step["step"] != STAYS]
    if not as_json:
        _show_plan(plan, cordon=cordon)
    if dry_run:
        if as_json:
            print_json(plan)
        return 0
    if plan["how"] == MOVE and leaving and not (cordon or plan["cordoned"]):
        raise HitchpostError(
            f"node {visible(node)} takes new pods, so what is moved may come back to it",
            "add --cordon, or choose --how rest",
        )
    if (leaving or cordon) and not yes:
        click.confirm(_question(plan, len(leaving), cordon=cordon), abort=True, err=True)
    if cordon:
        ask("POST", f"{path}/cordon", {"on": True})
        if not as_json:
            click.echo(f"node {visible(node)}: cordoned; hitch fleet undrain {visible(node)} undoes it")
    done, code = _carry_out(ask, path, plan, leaving, as_json=as_json)
    stay = [step for step in plan["steps"] if step["step"] == STAYS]
    if as_json:
        print_json({"node": node, "how": plan["how"], "cordoned": cordon or plan["cordoned"], "sessions": done + stay})
    return code or (1 if stay else 0)


def _show_plan(plan: dict[str, Any], *, cordon: bool) -> None:
    if not plan["steps"]:
        click.echo(f"no session is on node {visible(plan['name'])}")
    for step in plan["steps"]:
        click.echo(f"{visible(step['name'])} ({visible(step['label'])}): {visible(step['words'])}")
    if plan["steps"] and not cordon and not plan["cordoned"]:
        say(f"node {visible(plan['name'])} still takes pods; --cordon keeps new ones away")


def _question(plan: dict[str, Any], count: int, *, cordon: bool) -> str:
    live = sum(step["step"] == END for step in plan["steps"])
    parts = [f"cordon node {visible(plan['name'])}"] if cordon else []
    if count:
        parts.append(f"take {count} session{'' if count == 1 else 's'} off it ({live} live)")
    return f"{' and '.join(parts)}?"


def _carry_out(
    ask: Ask, path: str, plan: dict[str, Any], steps: list[dict[str, Any]], *, as_json: bool
) -> tuple[list[dict[str, Any]], int]:
    """Some at once; each is told as it is done. One that fails does not keep the others."""
    done: list[dict[str, Any]] = []
    code = 0

    def leave(step: dict[str, Any]) -> tuple[dict[str, Any], HitchpostError | OSError | None]:
        try:
            answer = ask("POST", f"{path}/sessions/{step['id']}/drain", {"how": plan["how"]}, timeout_s=STEP_S)
        except FAILURES as error:
            return {**step, "became": None, "error": str(error)}, error
        session = answer["session"]
        return {**step, "became": answer["became"], "label": session["label"], "node": session["node"]}, None

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for number, (step, error) in enumerate(pool.map(leave, steps), 1):
            done.append(step)
            if error is not None:
                code = code or report(error)
            elif not as_json:
                where = f" to {visible(step['node'])}" if step["became"] == "moved" and step["node"] else ""
                count = f"[{number}/{len(steps)}]"
                click.echo(
                    f"{count} {visible(step['name'])}: {BECAME[step['became']]}{where} ({visible(step['label'])})"
                )
    return done, code


def run_undrain(ask: Ask, node: str, *, resume: bool, as_json: bool) -> int:
    path = f"/api/fleet/nodes/{quote(node, safe='')}"
    plan = ask("GET", path)
    if plan["cordoned"]:
        ask("POST", f"{path}/cordon", {"on": False})
        if not as_json:
            click.echo(f"node {visible(node)}: uncordoned")
    elif not as_json:
        click.echo(f"node {visible(node)}: it is not cordoned")
    done, code = [], 0
    for session in plan["drained"]:
        found = {**session, "resumed": False}
        try:
            if resume:
                after = ask("POST", f"/api/sessions/{session['id']}/resume", {}, timeout_s=STEP_S)["session"]
                found = {**session, "label": after["label"], "node": after["node"], "resumed": True}
                if not as_json:
                    click.echo(f"{visible(session['name'])}: resumed on {visible(after['node'] or 'a node')}")
            elif not as_json:
                click.echo(f"{visible(session['name'])}: ended by the drain; hitch resume {session['id']}")
        except FAILURES as error:
            code = code or report(error)
        done.append(found)
    if as_json:
        print_json({"node": node, "cordoned": False, "sessions": done})
    return code
