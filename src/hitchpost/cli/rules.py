"""``hitch rules``: rules that read what an agent shows, tried on what agents have shown."""

from __future__ import annotations

import os

import click

from hitchpost.agents import catalog, rules
from hitchpost.cli.common import complete_sessions, json_option, print_json
from hitchpost.errors import NoSuchSession, UsageError
from hitchpost.ops.views import rules_test
from hitchpost.ops.views.moments import at, rfc3339
from hitchpost.ops.views.rules_test import Reading, Recording, Stretch
from hitchpost.store.home import open_home
from hitchpost.text import table, visible


@click.group("rules")
def command() -> None:
    """Rules that read an agent's screen and title. They are in the agent's file; see `hitch agents`."""


@command.command("test")
@click.argument("recorded", metavar="SESSION|FILE", shell_complete=complete_sessions)
@click.option("--rules", "path", type=click.Path(), metavar="FILE.toml", help="Compare with the rules in this file.")
@click.option("--agent", metavar="A", help="The agent whose present rules count. Default: the session's.")
@click.option("--run", type=int, metavar="N", help="Which run of the session (default: the newest).")
@json_option
def test(recorded: str, path: str | None, agent: str | None, run: int | None, as_json: bool) -> None:
    """Replay what SESSION has shown, or a FILE that `hitch replay --export` wrote, and show what the rules say of it.

    With --rules, show where the rules in that file and the present ones disagree.
    """
    found = _recording(recorded, run)
    stem = os.path.basename(path or "").removesuffix(".toml")
    name = agent or found.agent or (stem if stem in catalog.names() else "")
    if not name:
        raise UsageError(f"{recorded} does not say which agent it is from; name one with --agent")
    present = rules.load(name) if name in catalog.names() or agent else rules.Rules()
    sets = (present,) if path is None else (present, rules_test.read_rules(path))
    read = rules_test.stretches(found, sets)
    told = read if path is None else [each for each in read if each.readings[0] != each.readings[1]]
    if as_json:
        key = "readings" if path is None else "differences"
        print_json({"agent": name, "versions": [each.version for each in sets], key: _json(told, found)})
        return
    _print(told, compared=path is not None)


def _recording(word: str, run: int | None) -> Recording:
    """A session counts more than a file of that name, unless it is written as a path."""
    if os.path.dirname(word):
        return rules_test.of_file(word)
    try:
        return rules_test.of_session(open_home(create=False), word, run)
    except NoSuchSession:
        if not os.path.exists(word):
            raise
        return rules_test.of_file(word)


def _print(told: list[Stretch], *, compared: bool) -> None:
    if told:
        rows = [("FROM", "TO", "SOURCE", *(("PRESENT", "NEW") if compared else ("READS",)))]
        for each in told:
            said = ("–" if reading is None else visible(str(reading)) for reading in each.readings)
            rows.append((f"{each.from_s:.1f}s", f"{each.to_s:.1f}s", each.source, *said))
        click.echo("\n".join(table(rows)))
    if compared:
        click.echo(f"{len(told)} difference{'' if len(told) == 1 else 's'}")
    elif not told:
        click.echo("no rule applies to anything that was shown")


def _json(told: list[Stretch], found: Recording) -> list[dict[str, object]]:
    began = found.begin.at
    return [
        {
            "from_s": round(each.from_s, 3),
            "to_s": round(each.to_s, 3),
            "at": rfc3339(at(began + each.from_s)) if began else None,
            "source": each.source,
            **dict(zip(("present", "new"), map(_shape, each.readings), strict=False)),
        }
        for each in told
    ]


def _shape(reading: Reading | None) -> dict[str, str] | None:
    return None if reading is None else {"state": reading.state, "kind": reading.kind, "message": reading.message}
