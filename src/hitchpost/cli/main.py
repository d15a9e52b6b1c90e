"""The entry point. ``ps`` and ``run`` load as little as they can; every other command is loaded when it is called.

With a context, a command is for a hub elsewhere: ``remote/table.py`` says what it asks there.
"""

from __future__ import annotations

import os
import sys

from hitchpost.system.descriptors import open_standard


def main() -> None:
    open_standard()
    try:
        code = _run()
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _run() -> int:
    """Every end of a command comes by here: no error is shown as a traceback."""
    from hitchpost.cli.failing import SHOW_BUGS, flushed, report, report_bug
    from hitchpost.errors import FAILURES

    try:
        _command()
    except SystemExit as end:
        return flushed(end.code if isinstance(end.code, int) else 0)
    except FAILURES as error:
        return report(error)
    except Exception as error:
        if os.environ.get(SHOW_BUGS):
            raise
        return flushed(report_bug(error))
    return flushed(0)


def _command() -> None:
    from hitchpost.store.home import home_path, is_copy, may_be_elsewhere

    words, elsewhere = sys.argv[1:], ""
    if may_be_elsewhere(words):
        from hitchpost.cli.remote import contexts

        choice, words = contexts.chosen(words)
        elsewhere = choice.name
    if not elsewhere and is_copy(home_path()):
        from hitchpost.cli.fleet_copy import refuse

        refuse(words)
    if words[:1] in (["ps"], ["ls"], ["list"]):
        from hitchpost.cli import ps

        if ps.understands(words[1:]):
            if elsewhere:
                from hitchpost.cli.remote import ps as remote_ps

                sys.exit(remote_ps.main(elsewhere, words[1:]))
            sys.exit(ps.main(words[1:]))
    if words[:1] == ["run"] and not elsewhere:
        from hitchpost.cli import run

        if (options := run.understood(words[1:])) is not None:
            sys.exit(run.run(options))
    from hitchpost.cli.group import cli

    if not words and sys.stdin.isatty() and sys.stdout.isatty():
        from importlib.util import find_spec

        if find_spec("textual") is not None:
            sys.argv.append("top")
    if "_HITCH_COMPLETE" in os.environ:
        from hitchpost.cli.completion import register

        register()
    cli(prog_name="hitch")
