"""The entry point. ``ps`` takes a path that imports almost nothing; every other command is loaded when it is called."""

from __future__ import annotations

import os
import sys

from hitchpost.descriptors import open_standard


def main() -> None:
    open_standard()
    if sys.argv[1:2] == ["ps"]:
        from hitchpost.cli import ps

        if ps.understands(sys.argv[2:]):
            sys.exit(ps.main(sys.argv[2:]))
    from hitchpost.cli.group import cli

    if "_HITCH_COMPLETE" in os.environ:
        from hitchpost.cli.completion import register

        register()
    try:
        cli(prog_name="hitch")
    finally:
        _flush()


def _flush() -> None:
    """A reader that went away (``hitch logs | head``) is no error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
