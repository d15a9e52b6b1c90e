"""``fleet.json``: this home is a hub's copy of a fleet, and of which one."""

from __future__ import annotations

import os

from hitchpost.errors import HomeRefused
from hitchpost.store import files, records
from hitchpost.store.home import FLEET


def mark(home: str, fleet: str, where: str) -> None:
    """Say so in the home. Raises ``HomeRefused`` when it is another fleet's, or has sessions of its own.

    PostgreSQL does not know those, and a copy has what PostgreSQL has.
    """
    path = os.path.join(home, FLEET)
    try:
        known = files.read_object(path).get("fleet")
    except files.Missing:
        known = None
        if records.ids(home):
            raise HomeRefused(
                home, "it has sessions of this machine", "name another folder, for the fleet, in HITCHPOST_HOME"
            ) from None
    if known is not None and known != fleet:
        raise HomeRefused(
            home, f"it is a copy of another fleet than the one at {where}", "name an empty folder in HITCHPOST_HOME"
        )
    files.write_object(path, {"schema": files.SCHEMA, "fleet": fleet, "database": where})
