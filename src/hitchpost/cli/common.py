"""What commands share: session arguments, JSON output, progress, the caller's terminal size."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from hitchpost.errors import HitchpostError, UsageError
from hitchpost.ops.look import Seen
from hitchpost.ops.view import shape
from hitchpost.text import visible

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def complete_sessions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Session names for the shell's completion. Never fails: completion must not print errors."""
    from hitchpost.state import index
    from hitchpost.state.home import home_path

    try:
        rows = index.rows(home_path()).values()
    except (OSError, HitchpostError):
        return []
    return sorted(
        {row["name"] for row in rows if row["name"].startswith(incomplete) and row["name"].isprintable()} - {""}
    )


def complete_workspaces(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Workspace names for the shell's completion. Never fails: completion must not print errors."""
    from hitchpost.state.home import home_path
    from hitchpost.workspaces import store

    try:
        names = [one.name for one in store.everything(home_path())]
    except (OSError, HitchpostError):
        return []
    return sorted({name for name in names if name.startswith(incomplete) and name.isprintable()})


session_argument = click.argument("session", shell_complete=complete_sessions)
sessions_argument = click.argument("sessions", nargs=-1, required=True, shell_complete=complete_sessions)


def print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=1))


def session_json(seen: Seen) -> dict[str, Any]:
    return shape(seen, datetime.now(UTC))


def terminal_size() -> tuple[int, int]:
    """Columns and rows of the caller's terminal, else 80 by 24."""
    for fd in (1, 0, 2):
        try:
            size = os.get_terminal_size(fd)
        except OSError:
            continue
        if size.columns and size.lines:
            return size.columns, size.lines
    return 80, 24


def current_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise UsageError("the current folder is gone; name another with --workspace") from None


def say(text: str) -> None:
    """A line for the person, on standard error: standard output is for what was asked for."""
    click.echo(visible(text), err=True)


def each(sessions: tuple[str, ...], deed: Callable[[str], None]) -> None:
    """Do ``deed`` for every session. One that fails does not keep the others from it; its exit code is ours."""
    worst = 0
    for session in sessions:
        try:
            deed(session)
        except HitchpostError as error:
            say(f"hitch: {error}")
            worst = worst or error.exit_code
    sys.exit(worst)


def progress(name: str, what: str) -> Callable[[float], None]:
    """Says once a second, on a terminal, how long something takes."""

    def show(waited_s: float) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{visible(name)}: {what} … {waited_s:.0f}s ", err=True, nl=False)

    return show
