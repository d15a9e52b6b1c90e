"""The entry point. ``ps`` and ``run`` load as little as they can; every other command is loaded when it is called."""

from __future__ import annotations

import os
import sys

from hitchpost.descriptors import open_standard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> None:
    open_standard()
    if sys.argv[1:2] == ["ps"]:
        from hitchpost.cli import ps

        if ps.understands(sys.argv[2:]):
            sys.exit(ps.main(sys.argv[2:]))
    if sys.argv[1:2] == ["run"]:
        from hitchpost.cli import run

        if (values := run.understood(sys.argv[2:])) is not None:
            sys.exit(_without_click(lambda: run.run(**values)))
    from hitchpost.cli.group import cli

    if "_HITCH_COMPLETE" in os.environ:
        from hitchpost.cli.completion import register

        register()
    try:
        cli(prog_name="hitch")
    finally:
        _flush()


def _without_click(deed: Callable[[], int]) -> int:
    from hitchpost.cli.caller import complain
    from hitchpost.errors import HitchpostError

    try:
        return deed()
    except BrokenPipeError:
        return 0
    except (HitchpostError, OSError) as error:
        return complain(error)
    finally:
        _flush()


def _flush() -> None:
    """A reader that went away (``hitch logs | head``) is no error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
