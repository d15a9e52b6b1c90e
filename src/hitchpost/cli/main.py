"""The entry point. ``ps`` and ``run`` load as little as they can; every other command is loaded when it is called."""

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
    if sys.argv[1:2] in (["ps"], ["ls"], ["list"]):
        from hitchpost.cli import ps

        if ps.understands(sys.argv[2:]):
            sys.exit(ps.main(sys.argv[2:]))
    if sys.argv[1:2] == ["run"]:
        from hitchpost.cli import run

        if (options := run.understood(sys.argv[2:])) is not None:
            sys.exit(run.run(options))
    from hitchpost.cli.group import cli

    if len(sys.argv) == 1 and sys.stdin.isatty() and sys.stdout.isatty():
        from importlib.util import find_spec

        if find_spec("textual") is not None:
            sys.argv.append("top")
    if "_HITCH_COMPLETE" in os.environ:
        from hitchpost.cli.completion import register

        register()
    cli(prog_name="hitch")
