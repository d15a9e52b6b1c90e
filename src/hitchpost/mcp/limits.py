"""What an agent may do through ``hitch mcp``: the table ``[mcp]`` of the settings. Pure, but for links in paths."""

from __future__ import annotations

import os

from hitchpost.errors import Refused
from hitchpost.settings import MCP_DEEDS, Settings
from hitchpost.values import value

OWN, ALL = "own", "all"


@value
class Limits:
    """``reach``: an agent may drive the sessions that it has started, or all. An empty list of ``agents`` allows those
    of the catalog; one of ``folders`` the folder that the server was started in; one of ``permission_modes`` none."""

    may: tuple[str, ...] = MCP_DEEDS
    reach: str = OWN
    sessions_max: int = 5
    agents: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    permission_modes: tuple[str, ...] = ()

    def check_deed(self, deed: str) -> None:
        if deed not in self.may:
            raise OverLimit(f"the settings do not allow an agent to {WORDS[deed]}", "may")

    def check_agent(self, agent: str) -> None:
        if self.agents and agent not in self.agents:
            raise OverLimit(f"the settings allow only these agents: {', '.join(self.agents)}", "agents")

    def check_permission_mode(self, mode: str) -> None:
        if mode and mode not in self.permission_modes:
            allowed = ", ".join(self.permission_modes) or "none, so leave it out"
            raise OverLimit(f"the settings allow these permission modes: {allowed}", "permission_modes")

    def check_count(self, live: int) -> None:
        if live >= self.sessions_max:
            raise OverLimit(f"{live} sessions of yours are live, and {self.sessions_max} may be", "sessions_max")

    def check_folder(self, folder: str, started_in: str) -> None:
        allowed = [os.path.realpath(os.path.expanduser(path)) for path in self.folders or (started_in,)]
        found = os.path.realpath(folder)
        if not any(os.path.commonpath((found, path)) == path for path in allowed):
            raise OverLimit(f"the settings allow work below {', '.join(allowed)} only", "folders")


WORDS = {
    "list": "list sessions",
    "read": "read what sessions show",
    "wait": "wait for sessions",
    "start": "start sessions",
    "prompt": "prompt sessions",
    "answer": "answer what sessions ask",
    "stop": "stop sessions",
    "workspace": "make workspaces",
}


class OverLimit(Refused):
    """Raised when an agent asks for more than the person has allowed."""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message, f"the person can change {key} below [mcp] in config.toml")


def limits_of(settings: Settings) -> Limits:
    return Limits(**settings.mcp)  # type: ignore[arg-type]
