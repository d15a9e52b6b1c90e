"""``hitch finish``: commit, merge, push, and remove the worktree."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from typing import Any

import click

from hitchpost.cli.common import json_option, print_json, progress, say, session_argument
from hitchpost.errors import Refused, UsageError
from hitchpost.ops.sessions.finish import Steps, finish, finish_plan
from hitchpost.ops.views.find import find
from hitchpost.store.home import open_home
from hitchpost.text import visible
from hitchpost.values import replace
from hitchpost.workspaces.finishing import UP_TO_DATE

ORDER = ("commit", "merge", "push", "remove")


@click.command("finish")
@session_argument
@click.option("-m", "--message", default="", help="The commit's message. Default: what the session was told to do.")
@click.option("--commit/--no-commit", default=True, show_default=True, help="Commit what is not committed.")
@click.option("--merge/--no-merge", default=True, show_default=True, help="Merge its branch into another.")
@click.option("--into", metavar="BRANCH", help="Merge into this branch. Default: the one your main worktree is on.")
@click.option("--push", is_flag=True, help="Push that branch; with --no-merge the session's own.")
@click.option("--remove/--no-remove", default=True, show_default=True, help="Remove the worktree; its branch stays.")
@click.option("-n", "--dry-run", is_flag=True, help="Only print what would be done.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before each step.")
@click.option("-f", "--force", is_flag=True, help="Even while the agent works.")
@json_option
def command(session: str, into: str | None, dry_run: bool, yes: bool, as_json: bool, **chosen: Any) -> None:
    """Finish a session's work: commit it, merge it, push it, and remove the worktree.

    Each step is shown, and asked for, before it is done. What is not committed is kept in a snapshot first. A merge
    that conflicts changes nothing. No hook or filter of the repository is run.
    """
    home = open_home(create=False)
    record = find(home, session).record
    show = progress(record.name, "finishing")

    def do(steps: Steps) -> dict[str, Any]:
        return finish(home, record.id, steps, actor="cli", progress=show)

    plan = finish_plan(home, record.id, into)
    carry_out(record.name, plan, Steps(into=into, **chosen), do, dry_run=dry_run, yes=yes, as_json=as_json)


def carry_out(
    name: str,
    plan: dict[str, Any],
    steps: Steps,
    do: Callable[[Steps], dict[str, Any]],
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Show the plan, ask about each step, and do what is wanted."""
    if dry_run and as_json:
        print_json(plan)
        return
    wanted = [step for step in ORDER if getattr(steps, step) and _is_of_use(step, plan)]
    if dry_run or not as_json:
        for step in wanted:
            _show(step, plan, steps)
    if dry_run:
        return
    is_merged = steps.merge and "merge" not in wanted
    if plan["working"] and not steps.force:
        wanted = ["commit"]  # says why it is refused
    elif not yes:
        wanted = _asked(wanted, plan, steps)
    if is_merged and plan["merge"] is not None:
        wanted.append("merge")  # which does nothing, but it is the other branch that is pushed
    nothing = replace(steps, **dict.fromkeys(ORDER, False))
    done = do(replace(nothing, **dict.fromkeys(wanted, True)))
    if as_json:
        print_json(done)
        return
    for note in done["notes"]:
        say(note)
    _tell(name, done)


def _is_of_use(name: str, plan: dict[str, Any]) -> bool:
    """Whether a step has anything to do."""
    commit, merge = plan["commit"], plan["merge"]
    if name == "commit":
        return bool(commit["changed"] or commit["new"])
    return name != "merge" or (merge is not None and merge["kind"] != UP_TO_DATE)


def _show(name: str, plan: dict[str, Any], steps: Steps) -> None:
    click.echo(f"{name + ':':<9}{visible(_words(name, plan, steps))}")


def _words(name: str, plan: dict[str, Any], steps: Steps) -> str:
    """What a step will do."""
    commit, merge, where = plan["commit"], plan["merge"], plan["push"]
    if name == "commit":
        files = f"{len(commit['changed'])} changed, {len(commit['new'])} new"
        what = f"{files} on {plan['branch']}: {steps.message or plan['message']}"
        return commit["refusal"] or what
    if name == "merge":
        how = {"fast-forward": "fast-forward", "merge": "a merge commit"}.get(merge["kind"], "")
        files = f"; the files in {merge['folder']} follow" if merge["folder"] else ""
        count = f"{merge['commits']} commit{'' if merge['commits'] == 1 else 's'}"
        return merge["refusal"] or f"{plan['branch']} into {merge['into']}, {count} ({how}){files}"
    if name == "push":
        branch = merge["into"] if steps.merge and merge is not None else plan["branch"]
        return f"{branch} to {where['remote']} ({where['url']})" if where else "there is no remote repository"
    stops = "stops the session, then " if plan["live"] else ""
    return f"{stops}deletes {plan['folder']} with what git ignores there; branch {plan['branch']} stays"


def _asked(wanted: list[str], plan: dict[str, Any], steps: Steps) -> list[str]:
    """The steps that the person wants. Without the merge, it is another branch that is pushed."""
    if not sys.stdin.isatty():
        raise UsageError("finish asks before each step, and nobody can answer here; use --yes, or --dry-run")
    chosen: list[str] = []
    for name in wanted:
        if name == "push" and "merge" in wanted and "merge" not in chosen:
            _show(name, plan, replace(steps, merge=False))
        if click.confirm(f"{name}?", default=True, err=True):
            chosen.append(name)
    if not chosen:
        raise Refused("nothing was done")
    return chosen


def _tell(name: str, done: dict[str, Any]) -> None:
    told = [
        f"uncommitted work is kept in {done['snapshot']}" if done["snapshot"] else "",
        f"committed {done['commit'][:12]}" if done["commit"] else "",
        f"merged: {done['merge'][:12]}" if done["merge"] else "",
        f"pushed {done['push']['branch']} to {done['push']['remote']}" if done["push"] else "",
        f"removed {done['removed']}" if done["removed"] else "",
    ]
    for text in filter(None, told):
        click.echo(f"{visible(name)}: {visible(text)}")
    if done["pull_request"]:
        click.echo(f"open a pull request: {visible(shlex.join(done['pull_request']))}")
    if not any(told):
        click.echo(f"{visible(name)}: there was nothing to do")
