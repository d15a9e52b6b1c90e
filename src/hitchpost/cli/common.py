"""What commands share: session arguments, JSON output, progress, the caller's terminal size."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from hitchpost.cli.caller import current_folder as current_folder
from hitchpost.cli.caller import print_json as print_json
from hitchpost.cli.caller import progress as progress
from hitchpost.cli.caller import say as say
from hitchpost.cli.caller import terminal_size as terminal_size
from hitchpost.cli.failing import report
from hitchpost.errors import FAILURES
from hitchpost.ops.views.observe import Observation
from hitchpost.ops.views.session_json import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.cli.remote.contexts import Choice
    from hitchpost.ops.views.session_types import Session as SessionJson

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def complete_sessions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Session names for the shell's completion. Never fails: completion must not print errors."""
    try:
        names = session_names(ctx.find_root().obj)
    except FAILURES:
        return []
    return sorted({name for name in names if name.startswith(incomplete) and name.isprintable()} - {""})


def session_names(choice: Choice | None) -> list[str]:
    """Of this machine, or of the hub that was chosen."""
    if choice is not None and choice.name:
        from hitchpost.cli.remote.looks import names

        return names(choice)
    from hitchpost.store import index
    from hitchpost.store.home import home_path

    return [str(row["name"]) for row in index.rows(home_path()).values()]


def complete_workspaces(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Workspace names for the shell's completion. Never fails: completion must not print errors."""
    from hitchpost.store.home import home_path
    from hitchpost.workspaces import store

    try:
        names = [workspace.name for workspace in store.everything(home_path())]
    except FAILURES:
        return []
    return sorted({name for name in names if name.startswith(incomplete) and name.isprintable()})


session_argument = click.argument("session", shell_complete=complete_sessions)
sessions_argument = click.argument("sessions", nargs=-1, required=True, shell_complete=complete_sessions)


def session_json(seen: Observation) -> SessionJson:
    return to_json(seen, datetime.now(UTC))


class Number(click.FloatRange):
    """A number within bounds. ``nan``, which is neither below nor above any bound, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if number != number:
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


SECONDS = Number(0, 366 * 86400)


def each(sessions: tuple[str, ...], deed: Callable[[str], None]) -> None:
    """Do ``deed`` for every session. One that fails does not keep the others from it; its exit code is ours."""
    worst = 0
    for session in sessions:
        try:
            deed(session)
        except FAILURES as error:
            code = report(error)
            worst = worst or code
    sys.exit(worst)
