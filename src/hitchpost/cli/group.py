"""The command tree. A table of names, so that one command does not pay for the imports of the others."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

import hitchpost
from hitchpost.cli.failing import INTERRUPTED, report
from hitchpost.errors import FAILURES

COMMANDS: dict[str, str] = {
    "run": "Start an agent, or any program, as a session.",
    "adopt": "Start watching a program that is already running in a tmux pane.",
    "ps": "List sessions.",
    "attach": "Enter a session's terminal; Ctrl-B D leaves it running.",
    "logs": "Print what a session has written.",
    "send": "Type a prompt into a session.",
    "answer": "Answer what a session asks, such as a permission.",
    "wait": "Wait until a session is idle, needs something, or has ended.",
    "stop": "End sessions and everything they started.",
    "restart": "Start sessions again with a new conversation; running ones are stopped first.",
    "resume": "Start the next run of a session that has ended, with the same conversation.",
    "fork": "Start a new session with a session's conversation and a copy of its work.",
    "cancel": "End a session and archive it.",
    "archive": "Archive ended sessions; they stay readable.",
    "rm": "Delete sessions and their history; folders are not touched.",
    "diff": "Show what a session has changed.",
    "workspace": "Create, list, remove and restore the folders that agents work in.",
    "explain": "Show why a session has its status, with the evidence.",
    "replay": "Play a session's recording, or export it.",
    "up": "Start the hub, and print a URL that signs you in.",
    "link": "Print a link, and a QR code, that signs a browser or phone in.",
    "down": "Stop the hub; sessions keep running.",
    "status": "Show the hub, the containers, and how many sessions are in each state.",
    "services": "Show each session's container, and whether its agent is alive.",
    "token": "Create, list and revoke tokens for scripts and browser sign-ins.",
    "prune": "Delete old records, by the retention rules.",
    "agents": "List the agents in the catalog.",
    "rules": "Try the rules that read an agent's screen on what it has shown.",
    "doctor": "Check this machine and the state folder, and repair what can be repaired.",
    "completion": "Print shell completion for bash, zsh or fish.",
}


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command = import_module(f"hitchpost.cli.{name}").command
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        fitting = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return fitting + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except FAILURES as error:
            sys.exit(report(error))
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(hitchpost.__version__, prog_name="hitch")
def cli() -> None:
    """Run AI coding agents as sessions you can trust.

    A SESSION is named by its id, its name, its number in `hitch ps`, or the beginning of its id.
    """
