"""``hitch doctor``: check this machine and the state folder, mend what can be, show a session's files."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict

import click

from hitchpost.cli.common import complete_sessions, json_option, print_json
from hitchpost.errors import UsageError
from hitchpost.hub import client as hub_client
from hitchpost.ops.doctor.finding import NOTE, OK, PROBLEM, Finding, ok, problem
from hitchpost.ops.doctor.repair import Mended, mend
from hitchpost.ops.doctor.report import checkup
from hitchpost.ops.doctor.stored_files import StoredFile, stored_files
from hitchpost.ops.sessions.environment import FLEET
from hitchpost.ops.views.find import resolve
from hitchpost.store.home import home_path, is_copy, open_home
from hitchpost.text import painted, visible

FIXED, FAILED = "fixed", "failed"
COLOUR = {OK: "green", NOTE: "yellow", PROBLEM: "red"}


@click.command("doctor")
@click.option(
    "--fix", is_flag=True, help="Repair what can be repaired, and say what was done. Nothing of value is deleted."
)
@click.option("--show", metavar="SESSION", shell_complete=complete_sessions, help="Print a session's state files.")
@json_option
def command(fix: bool, show: str | None, as_json: bool) -> None:
    """Check this machine, the settings, the state folder and every session. Without --fix nothing is written.

    For a fleet's hub, or with HITCHPOST_FLEET set, its database and its cluster are checked too: the hub's rights, the
    storage classes, and the images, each of which a small pod tries.

    The exit code is 1 if there is a problem, or if something could not be repaired. Notes are not problems.
    """
    if show is not None:
        if fix:
            raise UsageError("--show and --fix cannot be combined")
        _show(show, as_json)
        return
    mended = mend(open_home(create=False)) if fix else Mended([], [])
    findings = [*checkup(home_path(), _hub), *_fleet(home_path())]
    good = not mended.failed and all(finding.level != PROBLEM for finding in findings)
    if as_json:
        told = {"ok": good, "home": home_path(), "checks": [asdict(finding) for finding in findings]}
        print_json({**told, "fixed": mended.fixed, "failed": mended.failed})
    else:
        click.echo("\n".join(_lines(findings, mended, colour=sys.stdout.isatty())))
    sys.exit(0 if good else 1)


def _hub(home: str) -> list[Finding]:
    try:
        health = hub_client.ask(home, "GET", "/api/health", timeout_s=hub_client.ANSWERS_S)
    except hub_client.SilentHub as error:
        return [problem("hub", str(error))]
    except hub_client.NoHub:
        return []
    return [problem("hub", text) for text in health.get("problems", [])] or [ok("hub", f"pid {health['pid']}")]


def _fleet(home: str) -> Iterable[Finding]:
    """What a fleet needs, where this is the home of one of its hubs, or is to be."""
    if not is_copy(home) and not os.environ.get(FLEET):
        return []
    try:
        from hitchpost.fleet.checkup import checkup as checkup_of_fleet
    except ImportError as error:
        return [problem("fleet", f"not all that it needs is installed ({error})", "pip install 'hitchpost[fleet]'")]
    return checkup_of_fleet()


def _lines(findings: list[Finding], mended: Mended, *, colour: bool) -> list[str]:
    lines = [f"{painted(f'{FIXED:<8}', 'green', on=colour)} {visible(text)}" for text in mended.fixed]
    lines += [f"{painted(f'{FAILED:<8}', 'red', on=colour)} {visible(text)}" for text in mended.failed]
    for finding in findings:
        level = painted(f"{finding.level:<8}", COLOUR[finding.level], on=colour)
        about = f"{finding.session}: " if finding.session else ""
        lines.append(f"{level} {finding.check:<11} {visible(about + finding.text)}")
        if finding.todo:
            lines.append(f"{'':20} → {visible(finding.todo)}")
    counts = Counter(finding.level for finding in findings)
    return [*lines, "", f"{_count(counts[PROBLEM], 'problem')}, {_count(counts[NOTE], 'note')}"]


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _show(session: str, as_json: bool) -> None:
    home = open_home(create=False)
    found = stored_files(home, resolve(home, session))
    if as_json:
        print_json([asdict(file) for file in found])
        return
    click.echo("\n\n".join(_file(file) for file in found))


def _file(file: StoredFile) -> str:
    body = json.dumps(file.value, indent=2) if file.error is None else f"  ({visible(file.error)})"
    return f"{visible(file.path)}\n{body}"
