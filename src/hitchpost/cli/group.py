"""The command tree. A table of names, so that one command does not pay for the imports of the others."""

from __future__ import annotations

import sys
from copy import copy
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

import hitchpost
from hitchpost.cli.failing import INTERRUPTED, report
from hitchpost.errors import FAILURES
from hitchpost.store.home import CONTEXT_OPTION, may_be_elsewhere

GROUPS: dict[str, dict[str, str]] = {
    "Start": {
        "run": "Start an agent, or any program, as a session.",
        "resume": "Start the next run of a session that has ended, with the same conversation.",
        "restart": "Start sessions again with a new conversation; running ones are stopped first.",
        "fork": "Start a new session with a session's conversation and a copy of its work.",
        "adopt": "Start watching a program that is already running in a tmux pane.",
    },
    "Look": {
        "top": "Show every session at a glance, and act on them with single keys; hitch alone does, too.",
        "ps": "List sessions.",
        "peek": "Print a session's screen as it is now.",
        "logs": "Print what a session has written.",
        "explain": "Show why a session has its status, with the evidence.",
        "replay": "Play a session's recording, or export it.",
        "wait": "Wait until a session is idle, needs something, or has ended.",
        "usage": "Show the tokens that agents have used, by day, agent, project or session.",
    },
    "Act": {
        "attach": "Enter a session's terminal; Ctrl-B D leaves it running.",
        "send": "Type a prompt into a session.",
        "answer": "Answer what a session asks, such as a permission.",
        "interrupt": "Interrupt what an agent over ACP works on.",
        "stop": "End sessions and everything they started.",
        "rename": "Give a session another name.",
        "pin": "Keep sessions at the top of their section.",
        "snooze": "Do not be told of a session for some time.",
        "cancel": "End a session and archive it.",
        "archive": "Archive ended sessions; they stay readable.",
        "unarchive": "Bring archived sessions back.",
        "rm": "Delete sessions and their history; folders are not touched.",
    },
    "Work on files": {
        "diff": "Show what a session has changed.",
        "finish": "Commit, merge and push a session's work, and remove its worktree.",
        "workspace": "Create, list, remove and restore the folders that agents work in.",
    },
    "Hub": {
        "up": "Start the hub, and print a URL that signs you in.",
        "link": "Print a link, and a QR code, that signs a browser or phone in.",
        "down": "Stop the hub; sessions keep running.",
        "status": "Show the hub, the containers, and how many sessions are in each state.",
        "services": "Show each session's container, and whether its agent is alive.",
        "notify": "Show and test how you are told that a session needs you, and what was told.",
        "token": "Create, list and revoke tokens for scripts and browser sign-ins.",
        "user": "Add, list and remove the people who share a hub, with their roles and limits.",
        "mcp": "Let an agent start, prompt, wait for and stop sessions, over MCP.",
    },
    "Elsewhere": {
        "context": "Add, list and choose hubs of other machines to work with.",
        "fleet": "Show the hubs and nodes of a fleet, and take all sessions off a node.",
    },
    "Machine": {
        "agents": "List the agents in the catalog.",
        "rules": "Try the rules that read an agent's screen on what it has shown.",
        "doctor": "Check this machine and the state folder, and repair what can be repaired.",
        "prune": "Delete old records, by the retention rules.",
        "completion": "Print shell completion for bash, zsh or fish.",
    },
}
COMMANDS: dict[str, str] = {name: text for group in GROUPS.values() for name, text in group.items()}
ALIASES: dict[str, str] = {"ls": "ps", "list": "ps"}
"""What people type who know other tools."""


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        name = ALIASES.get(name, name)
        if name not in COMMANDS:
            return None
        command = import_module(f"hitchpost.cli.{name}").command
        assert isinstance(command, click.Command)
        command = copy(command)
        command.params = [*command.params, context_option()]
        choice = ctx.find_root().obj
        if choice is None or not choice.name:
            return command
        from hitchpost.cli.remote.table import from_afar

        return from_afar(name, command, choice)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Which hub the command is for is known before anything else: ``--context`` can stand before it and behind."""
        if may_be_elsewhere(args):
            from hitchpost.cli.remote import contexts

            try:
                ctx.obj, args = contexts.chosen(args)
            except FAILURES:
                if not ctx.resilient_parsing:  # else the name is just being typed
                    raise
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        fitting = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return fitting + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in group.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], [*COMMANDS, *ALIASES], n=1)
            if near:
                raise click.UsageError(f"{error.message.rstrip('.')}; did you mean {near[0]}?", ctx) from None
            raise

    def main(self, *args: Any, **named: Any) -> Any:
        try:
            return super().main(*args, **named)
        except FAILURES as error:
            sys.exit(report(error))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except FAILURES as error:
            sys.exit(report(error))
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)


def _complete_contexts(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from hitchpost.cli.context import complete_contexts

    return complete_contexts(ctx, param, incomplete)


def context_option() -> click.Option:
    """For help and completion: what it says is taken out of the line before anything is parsed."""
    return click.Option(
        [CONTEXT_OPTION],
        metavar="NAME",
        expose_value=False,
        shell_complete=_complete_contexts,
        help="Use the hub of this context, not this machine (see `hitch context --help`).",
    )


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(hitchpost.__version__, prog_name="hitch")
def cli() -> None:
    """Run AI coding agents as sessions you can trust.

    A SESSION is named by its id, its name, its number in `hitch ps`, or the beginning of its id.
    """


cli.params.append(context_option())
