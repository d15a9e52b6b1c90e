"""``hitch snooze``."""

from __future__ import annotations

import time
from typing import Any

import click

from hitchpost.cli import words
from hitchpost.cli.common import json_option, print_json, session_argument, session_json
from hitchpost.model.durations import seconds_of
from hitchpost.ops.sessions.edit import edit
from hitchpost.ops.views.find import resolve
from hitchpost.ops.views.observe import observe
from hitchpost.store.home import open_home

MORNING_H = 9


class Time(click.ParamType[float]):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, str) and value in ("off", "tomorrow"):
            return 0.0 if value == "off" else _until_tomorrow()
        seconds = seconds_of(str(value))
        if seconds is None:
            self.fail(f"expected a time such as 30m, 1h or 2d, tomorrow, or off, but got {value!r}", param, ctx)
        return seconds


def _until_tomorrow() -> float:
    now = time.localtime()
    return time.mktime((now.tm_year, now.tm_mon, now.tm_mday + 1, MORNING_H, 0, 0, 0, 0, -1)) - time.time()


@click.command("snooze")
@session_argument
@click.argument("for_s", type=Time(), metavar="TIME|tomorrow|off")
@json_option
def command(session: str, for_s: float, as_json: bool) -> None:
    """Do not be told of a session for some time, such as 30m, 1h or 2d; `off` ends that.

    `tomorrow` is until nine in the morning.
    """
    home = open_home()
    session_id = resolve(home, session)
    record = edit(home, session_id, actor="cli", snooze_s=for_s)
    if as_json:
        print_json(session_json(observe(home, session_id)))
    else:
        click.echo(words.snoozed(record.name, for_s))
