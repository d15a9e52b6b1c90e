"""``hitch run``: create a session and start its first run."""

from __future__ import annotations

import os
import sys

import click

from hitchpost.agents import catalog
from hitchpost.cli.common import (
    complete_workspaces,
    current_folder,
    json_option,
    print_json,
    progress,
    say,
    session_json,
    terminal_size,
)
from hitchpost.errors import UsageError
from hitchpost.ops import environment
from hitchpost.ops.launch import Request, launch
from hitchpost.ops.sandbox import Asked
from hitchpost.runtimes import base
from hitchpost.state.home import open_home
from hitchpost.text import visible


def complete_agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in catalog.names() if name.startswith(incomplete)]


class RunCommand(click.Command):
    """Everything behind ``--`` is the command, or further arguments of the agent."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            cut = args.index("--")
            ctx.obj = tuple(args[cut + 1 :])
            args = args[:cut]
        return super().parse_args(ctx, args)


@click.command("run", cls=RunCommand)
@click.argument("agent", required=False, shell_complete=complete_agents)
@click.option("--name", help="A name that no other session has; made up when missing.")
@click.option("--description", default="", help="A line for hitch ps.")
@click.option("--branch", metavar="B", help="Work on a branch of this repository, in a worktree of its own.")
@click.option(
    "--workspace",
    metavar="W",
    shell_complete=complete_workspaces,
    help="Work in a workspace (see `hitch workspace ls`), or in any folder.",
)
@click.option("--here", is_flag=True, help="Work in the current folder (the default).")
@click.option("--exclusive", is_flag=True, help="Lease the folder: no other session may work there meanwhile.")
@click.option("--share", is_flag=True, help="Join a workspace that is in use, as a reader.")
@click.option("--runtime", default="local", show_default=True, type=click.Choice(list(base.RUNTIMES)))
@click.option("--image", metavar="I", help="docker: the container's image.")
@click.option("--mount", "mounts", multiple=True, metavar="HOST:INSIDE[:ro]", help="docker: share a folder or file.")
@click.option("--network", metavar="N", help="docker: none, bridge, host, or a network's name.")
@click.option("--memory", metavar="SIZE", help="docker: at most so much, such as 512m or 4g.")
@click.option("--cpus", type=float, metavar="X", help="docker: at most so many processors.")
@click.option("--config", metavar="FOLDER", help="docker: a folder of settings, read-only at /config.")
@click.option("--keep-failed", is_flag=True, help="docker: keep the container when the agent cannot be started.")
@click.option("--env", "env_items", multiple=True, metavar="NAME[=VALUE]", help="Set a variable; NAME alone: yours.")
@click.option("--prompt", help="A first prompt.")
@click.option("--attach", is_flag=True, help="Enter the session's terminal at once.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    agent: str | None,
    name: str | None,
    description: str,
    branch: str | None,
    workspace: str | None,
    here: bool,
    exclusive: bool,
    share: bool,
    runtime: str,
    image: str | None,
    mounts: tuple[str, ...],
    network: str | None,
    memory: str | None,
    cpus: float | None,
    config: str | None,
    keep_failed: bool,
    env_items: tuple[str, ...],
    prompt: str | None,
    attach: bool,
    as_json: bool,
) -> None:
    """Start AGENT (see `hitch agents`), or any program behind `--`, as a session in the background.

    \b
    hitch run claude --name auth --prompt "Fix the login test"
    hitch run claude --branch fix-auth
    hitch run -- make -j8
    """
    rest: tuple[str, ...] = ctx.obj or ()
    _check_places(branch=branch is not None, workspace=workspace is not None, here=here)
    if exclusive and share:
        raise UsageError("--exclusive and --share exclude each other")
    home = open_home()
    request = Request(
        folder=current_folder() if workspace is None else workspace,
        agent=agent,
        command=rest,
        branch=branch,
        workspace=workspace,
        exclusive=exclusive,
        share=share,
        name=name,
        description=description,
        runtime=runtime,
        prompt=prompt,
        env=environment.parse(env_items, os.environ),
        size=terminal_size(),
        sandbox=Asked(image, mounts, network, memory, cpus, config, keep_failed),
    )
    told = progress(branch or "workspace", "making it ready")
    seen, notes = launch(home, request, actor="cli", caller=os.environ, progress=told)
    record = seen.record
    for note in notes:
        say(note)
    if as_json:
        print_json(session_json(seen))
    else:
        pid = f" (run {seen.facts.run})"
        click.echo(f"{visible(record.name)} started as session {record.index}, id {record.id}{pid}")
    if attach:
        from hitchpost.cli.attach import attach_to

        sys.exit(attach_to(home, record.id))


def _check_places(**given: bool) -> None:
    named = [f"--{name}" for name, is_given in given.items() if is_given]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} exclude each other")
