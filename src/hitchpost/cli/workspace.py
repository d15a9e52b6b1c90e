"""``hitch workspace``: the folders that agents work in."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Any

import click

from hitchpost.cli.common import complete_workspaces, current_folder, json_option, print_json, progress, say
from hitchpost.errors import Refused
from hitchpost.ops.sessions.restore import bring_back
from hitchpost.ops.workspaces import make
from hitchpost.store.home import open_home
from hitchpost.text import painted, table, visible
from hitchpost.workspaces import container_writes, git, include, project, store, worktree
from hitchpost.workspaces.overview import CLEAN, DIRTY, FOLDER, overview, overviews
from hitchpost.workspaces.pruning import prune
from hitchpost.workspaces.removal import remove
from hitchpost.workspaces.trust import is_trusted, trust

COLOUR = {CLEAN: "green", DIRTY: "yellow", FOLDER: "grey"}


workspace_argument = click.argument("workspace", shell_complete=complete_workspaces)


@click.group("workspace")
def command() -> None:
    """Folders that agents work in: git worktrees, and plain folders that are leased.

    A WORKSPACE is named by its id, its name, its path, or the beginning of its id.
    """


@command.command("create", short_help="Make a worktree of this repository on a branch.")
@click.argument("branch")
@click.option(
    "--capacity", default=1, show_default=True, type=click.IntRange(1, 100), help="How many sessions may write at once."
)
@json_option
def create(branch: str, capacity: int, as_json: bool) -> None:
    """Make a worktree of this repository on BRANCH, which may be new or exist already."""
    home = open_home()
    show = progress(branch, "making it ready")
    workspace, notes = make(home, current_folder(), branch, capacity=capacity, progress=show)
    for note in notes:
        say(note)
    if as_json:
        print_json(overview(home, workspace))
    else:
        click.echo(f"{visible(workspace.name)}: made in {visible(workspace.path)}")


@command.command("ls")
@click.option("-a", "--all", "everything", is_flag=True, help="Include removed workspaces that can be restored.")
@json_option
def ls(everything: bool, as_json: bool) -> None:
    """List workspaces and the sessions that use them."""
    home = open_home(create=False)
    for done in worktree.sweep(home):
        say(done)
    found = [workspace for workspace in store.everything(home) if workspace.made] if everything else store.listed(home)
    shapes = overviews(home, found)
    if as_json:
        print_json(shapes)
        return
    rows = [("NAME", "ID", "STATE", "IN USE BY", "PATH"), *map(_row, shapes)]
    click.echo("\n".join(table(rows)))


def _row(shape: dict[str, Any]) -> tuple[str, ...]:
    users = ", ".join(f"{user['name']} (reader)" if user["reader"] else user["name"] for user in shape["users"])
    return tuple(map(visible, (shape["name"], shape["id"], shape["text"], users or "-", shape["path"])))


@command.command("show")
@workspace_argument
@json_option
def show(workspace: str, as_json: bool) -> None:
    """Show everything about a workspace."""
    home = open_home(create=False)
    shape = overview(home, store.find(home, workspace, removed=True))
    if as_json:
        print_json(shape)
        return
    state = painted(visible(shape["text"]), COLOUR.get(shape["state"], "red"), on=sys.stdout.isatty())
    lines = [f"{key + ':':<12}{visible(str(shape[key]))}" for key in ("name", "id", "path", "branch", "base", "repo")]
    lines.append(f"{'state:':<12}{state}")
    for user in shape["users"]:
        kind = "reader" if user["reader"] else "writer"
        lines.append(f"{kind + ':':<12}{visible(user['name'])} ({user['session']}), run {user['run']}")
    lines += [f"{'snapshot:':<12}{ref}" for ref in shape["snapshots"]]
    click.echo("\n".join(lines))


@command.command("path", short_help="Print a workspace's path.")
@workspace_argument
def path(workspace: str) -> None:
    """Print a workspace's path: `cd "$(hitch workspace path fix-auth)"`."""
    click.echo(store.find(open_home(create=False), workspace).path)


@command.command("rm")
@workspace_argument
@click.option("-f", "--force", is_flag=True, help="Remove it even with uncommitted work, which is kept in a snapshot.")
def rm(workspace: str, force: bool) -> None:
    """Remove a worktree; its branch stays. For a plain folder, only the record is removed.

    Refused while it is in use, or if it has uncommitted work. Files that git ignores are deleted with it.
    """
    home = open_home(create=False)
    found = store.find(home, workspace, removed=True)
    gone = remove(home, found, force=force, progress=progress(found.name, "removing"))
    for note in gone.notes:
        say(note)
    if gone.snapshot is not None:
        say(f"its work is kept in {gone.snapshot}; hitch workspace restore {found.word} brings it back")
    click.echo(f"{visible(found.name)}: removed")


@command.command("restore", short_help="Bring back a worktree that is gone.")
@workspace_argument
@click.option("--snapshot", metavar="REF", help="Use the files of this snapshot instead of the newest one.")
def restore_command(workspace: str, snapshot: str | None) -> None:
    """Bring back a worktree that is gone, from its branch and its newest snapshot."""
    home = open_home(create=False)
    found = store.find(home, workspace, removed=True)
    back = bring_back(home, found, snapshot, actor="cli", progress=progress(found.name, "restoring"))
    origin = f" with the files of {back.snapshot}" if back.snapshot else ""
    click.echo(f"{visible(back.workspace.name)}: restored in {visible(back.workspace.path)}{origin}")
    for note in back.notes:
        say(note)


@command.command("prune", short_help="Remove worktrees that contain no work.")
@click.option("-n", "--dry-run", is_flag=True, help="Only print what would be removed.")
@json_option
def prune_command(dry_run: bool, as_json: bool) -> None:
    """Remove worktrees that nobody uses and that contain no work of their own."""
    decisions = prune(open_home(create=False), dry_run=dry_run)
    if as_json:
        print_json(
            [
                {
                    "id": decision.workspace.id,
                    "name": decision.workspace.name,
                    "remove": decision.remove,
                    "why": decision.why,
                }
                for decision in decisions
            ]
        )
        return
    removed = "would be removed" if dry_run else "removed"
    for decision in decisions:
        click.echo(
            f"{visible(decision.workspace.name)}: {removed if decision.remove else 'kept'}: {visible(decision.why)}"
        )


@command.command("trust", short_help="Let a repository's setup commands run.")
@click.argument("folder", required=False, metavar="[DIR]")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def trust_command(folder: str | None, yes: bool) -> None:
    """Show the commands of a repository's .hitchpost.toml, and allow them to run. If the file changes, trust it again.

    Trust also covers the files of the repository that the commands name, and commits that agents in containers made.
    If such an agent could write to the repository itself, or to what .worktreeinclude names, this accepts it as yours.
    """
    home = open_home()
    if folder is None or os.path.isdir(folder):
        where = folder or current_folder()
    else:
        where = store.find(home, folder).path
    taken = False
    while strange := container_writes.strange(home, where):  # a .git, then the git folder that it names
        click.echo(f"An agent in a container could write {visible(strange)}: settings and hooks in it run as you.")
        if not yes and not click.confirm("Accept it as yours?"):
            raise Refused("not trusted; nothing was changed")
        container_writes.accept(home, strange)
        click.echo("It is yours, until a container can write it again.")
        taken = True
    repository = git.repository(where)
    taken = _took_files(home, repository, yes) or taken
    looked_at = _looked_at(home, repository.common, git.head(where), yes)
    told = project.read(repository.top or where)
    if told is None or not (told.setup or told.teardown):
        if taken or looked_at:
            return
        raise Refused(f"{repository.top or where} has no {project.FILE} with commands; there is nothing to trust")
    click.echo(f"{project.FILE} of {visible(repository.common)} runs:")
    for kind, commands in (("setup", told.setup), ("teardown", told.teardown)):
        for argv in commands:
            click.echo(f"  {kind:<9} {visible(shlex.join(argv))}")
    for name in told.named:
        click.echo(f"  {'file':<9} {visible(name)}")
    if is_trusted(home, repository.common, told.content):
        click.echo("It is trusted already.")
        return
    if not yes and not click.confirm("Let these commands run in new worktrees?"):
        raise Refused("not trusted; nothing was changed")
    trust(home, repository.common, told.content)
    click.echo("Trusted, until the file or one that it names changes.")


def _took_files(home: str, repository: git.Repository, yes: bool) -> bool:
    """Whether a person now takes what an agent in a container could have put into new worktrees. Raises ``Refused``."""
    rules = os.path.join(repository.main or "/nowhere", include.FILE)
    if not os.path.lexists(rules) or not container_writes.could_write(home, rules):
        return False
    click.echo(f"An agent in a container could write what {visible(rules)} copies into new worktrees:")
    for path in include.matching(repository):
        click.echo(f"  {visible(path)}")
    if not yes and not click.confirm("Copy these files again?"):
        raise Refused("not trusted; nothing was changed")
    container_writes.accept(home, rules)
    return True


def _looked_at(home: str, repo: str, head: str | None, yes: bool) -> bool:
    """Whether there are commits of agents in containers that a person has now looked at. Raises ``Refused`` if not."""
    made = container_writes.made_inside(home, repo, head)
    if made is None or head is None:
        return False
    click.echo(f"Agents in containers made commits that are checked out, the last one {made[:12]}; git log shows them.")
    if not yes and not click.confirm("Let hooks, filters and commands run with them?"):
        raise Refused("not trusted; nothing was changed")
    container_writes.look_at(home, repo, head)
    return True
