"""Commands in a home that is a hub's copy of a fleet: what they would change there, nobody else would ever see."""

from __future__ import annotations

from hitchpost.errors import HitchpostError
from hitchpost.store import files
from hitchpost.store.home import FLEET, home_path

ASK_THE_HUB = ("up", "down", "link", "status", "services", "notify", "token", "user", "fleet")
ONLY_LOOK = ("ps", "ls", "list", "explain", "agents", "rules", "completion", "doctor")


class FleetCopy(HitchpostError):
    """Raised when a command would work on the files of a copy."""

    exit_code = 4
    http_status = 409
    code = "fleet_copy"

    def __init__(self, home: str, database: str) -> None:
        super().__init__(
            f"{home} is a hub's copy of the fleet at {database}; sessions are changed through the hub, not here",
            "use its page or its API, or name another folder in HITCHPOST_HOME",
        )


def refuse(words: list[str]) -> None:
    """Raises ``FleetCopy`` unless the command asks the hub, or only looks at what the copy has."""
    looks = not words or words[0] in ASK_THE_HUB or (words[0] in ONLY_LOOK and "--fix" not in words)
    if looks or {"-h", "--help", "--version"} & set(words):
        return
    home = home_path()
    try:
        database = str(files.read_object(f"{home}/{FLEET}").get("database"))
    except files.CannotRead:
        database = "an unknown place"
    raise FleetCopy(home, database)
