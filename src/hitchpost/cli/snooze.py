"""``hitch snooze``."""

from __future__ import annotations

from typing import Any

import click

from hitchpost.cli.common import json_option, print_json, session_argument, session_json
from hitchpost.model.durations import duration, seconds_of
from hitchpost.ops.sessions.edit import edit
from hitchpost.ops.views.find import resolve
from hitchpost.ops.views.observe import observe
from hitchpost.store.home import open_home
from hitchpost.text import visible


class Time(click.ParamType[float]):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = 0.0 if value == "off" else seconds_of(str(value))
        if seconds is None:
            self.fail(f"expected a time such as 30m, 1h or 2d, or off, but got {value!r}", param, ctx)
        return seconds


@click.command("snooze")
@session_argument
@click.argument("time", type=Time(), metavar="TIME|off")
@json_option
def command(session: str, time: float, as_json: bool) -> None:
    """Do not be told of a session for some time, such as 30m, 1h or 2d; `off` ends that."""
    home = open_home()
    session_id = resolve(home, session)
    record = edit(home, session_id, actor="cli", snooze_s=time)
    if as_json:
        print_json(session_json(observe(home, session_id)))
    elif time:
        click.echo(f"{visible(record.name)}: snoozed for {duration(time)}")
    else:
        click.echo(f"{visible(record.name)}: not snoozed")
