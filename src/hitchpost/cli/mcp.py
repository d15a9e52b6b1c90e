"""``hitch mcp``."""

from __future__ import annotations

import os

import click

from hitchpost import wire
from hitchpost.cli.caller import current_folder
from hitchpost.errors import HitchpostError
from hitchpost.mcp.coordinator import Coordinator
from hitchpost.store.home import open_home


class NoLibrary(HitchpostError):
    """Raised when the library that speaks MCP is not installed."""

    def __init__(self) -> None:
        super().__init__("the package that speaks MCP is not installed", "install hitchpost[mcp]")


@click.command("mcp")
def command() -> None:
    """Let an agent list, start, prompt, wait for, read, answer and stop sessions: an MCP server on standard input and
    output.

    \b
    claude mcp add hitchpost -- hitch mcp
    codex mcp add hitchpost -- hitch mcp

    What it may do stands below [mcp] in config.toml: by default it drives only sessions that it has started itself, at
    most five at a time, in the folder that it works in.
    """
    try:
        from hitchpost.mcp.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        raise NoLibrary from None
    session = os.environ.get(wire.SESSION_MARK, "")
    serve(Coordinator(open_home(), folder=current_folder(), caller=os.environ, session=session))
