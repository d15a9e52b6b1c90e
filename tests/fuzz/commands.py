"""Every command with every option, and values for them: right, wrong and odd."""

from __future__ import annotations

from collections.abc import Iterator

import click

from hitchpost.cli.group import cli

ODD_TEXTS = ("", " ", "a\nb", "\udcff", "日本", "-", "--", "../..", "/", "x" * 5000, "%s", "'; rm", "\x1b[31m", "0")
NUMBERS = ("0", "1", "-1", "nan", "inf", "1e308", "99999999999999999999", "x", "")
TEXTS: dict[str, tuple[str, ...]] = {
    "run": ("1", "0", "-1", "2", "99999999999999999999", "x"),
    "tail": ("0", "1", "-1", "99999999999999999999"),
    "until": ("exit", "idle", "waiting", "blocked", "never"),
    "color": ("always", "never", "auto", "blue"),
    "at_text": ("5m ago", "14:05", "2026-05-04T14:05:00Z", "99999999d ago", "0001-01-01", "yesterday", "25:61", ""),
    "workspace": ("nobody", "", "/nowhere", "."),
    "snapshot": ("nothing", "HEAD", ""),
    "shell": ("bash", "zsh", "fish", "csh"),
    "role": ("viewer", "king"),
    "capacity": ("1", "0", "x"),
    "path": ("/nowhere/at/all", "/", ""),
    "show": ("session.json", "nothing", "../../etc/passwd", ""),
    "text": ("hello", "-", "\x03", "a\udcffb", "x" * 5000),
}
STARTS_OTHERS = ("run", "up", "down", "adopt", "ps", "workspace trust")
"""Left to processes of their own, see ``ELSEWHERE``."""
BLOCKING = ("follow", "watch", "foreground", "attach")
ALWAYS = {
    "wait": ("--timeout", "0"),
    "send": ("--timeout", "0"),
    "cancel": ("--yes",),
    "replay": ("--export", "/dev/null", "--force"),
    "stop": ("--now",),
}
ELSEWHERE = (
    ("ps",),
    ("ps", "--all"),
    ("ps", "--json", "--all"),
    ("ps", "--nothing"),
    ("run",),
    ("run", "--", ""),
    ("run", "--", "/nowhere"),
    ("run", "--workspace", "/nowhere", "--", "true"),
    ("run", "--name", "a\nb", "--", "true"),
    ("run", "--env", "=", "--", "true"),
    ("run", "--env", "A", "--", "true"),
    ("run", "--idle-after", "nan", "--", "true"),
    ("run", "--runtime", "docker", "--image", "", "--", "true"),
    ("run", "--cpus", "nan", "--", "true"),
    ("run", "--branch", "..", "--", "true"),
    ("run", "--prompt", "a\x01", "--", "true"),
    ("run", "--attach", "--", "true"),
    ("adopt",),
    ("adopt", "--tmux", ""),
    ("adopt", "--tmux", "nobody:9.9", "--socket", "/nowhere"),
    ("up", "--host", "0.0.0.0"),
    ("up", "--port", "99999"),
    ("down",),
    ("workspace", "trust", "/nowhere"),
    ("workspace", "trust"),
    ("nothing",),
    (),
)


def leaves(command: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from leaves(below, (*path, name))
    else:
        yield path, command


def takes_session(command: click.Command) -> bool:
    return any(one.name in ("session", "sessions") for one in command.params)


def plain(path: tuple[str, ...], command: click.Command, session: str) -> tuple[str, ...]:
    """The command as a person would type it."""
    words = [*path, *ALWAYS.get(" ".join(path), ())]
    for one in command.params:
        if isinstance(one, click.Argument) and (one.required or one.name == "session"):
            words.append(session if one.name in ("session", "sessions") else values(one)[0])
    return tuple(words)


def values(one: click.Parameter) -> tuple[str, ...]:
    if one.name in TEXTS:
        return TEXTS[one.name]
    if isinstance(one.type, click.types.IntParamType | click.types.FloatParamType):
        return NUMBERS
    return ODD_TEXTS


def variations(path: tuple[str, ...], command: click.Command, session: str) -> Iterator[tuple[str, ...]]:
    """Each option with each of its values, one at a time, and arguments that are not what they should be."""
    usual = plain(path, command, session)
    for one in command.params:
        if one.name in BLOCKING or one.name == "help":
            continue
        if isinstance(one, click.Option):
            if one.is_flag:
                yield (*usual, one.opts[-1])
            else:
                yield from ((*usual, f"{one.opts[-1]}={value}") for value in values(one) if value != "--")
        elif one.name in ("session", "sessions"):
            yield from ((*path, *ALWAYS.get(" ".join(path), ()), value) for value in ODD_TEXTS)
        else:
            yield from ((*(word for word in usual if word != values(one)[0]), value) for value in values(one))
    yield (*usual, "too", "many")
    yield (*usual, "--nothing")
    yield path
