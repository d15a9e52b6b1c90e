"""Which sessions the last reboot interrupted. Each boot is looked at once, so what was left ended then stays so."""

from __future__ import annotations

import os
from collections.abc import Iterable

from hitchpost.errors import FAILURES
from hitchpost.model import run as runs
from hitchpost.model.record import SUSPENDED
from hitchpost.model.status import settle
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.store import files, locks
from hitchpost.store.home import session_folder
from hitchpost.store.runfiles import read_run
from hitchpost.system import process

BOOTS = "boots.json"


def interrupted(home: str, sessions: Iterable[str]) -> list[str]:
    """Those of ``sessions`` that the reboot before this boot interrupted, and whose agents can go on.

    None when this boot was looked at before, and when none ever was. Remembers that it has been looked at now, and the
    boots whose sessions were interrupted: the next reboot does not bring those back.
    """
    path, now = os.path.join(home, BOOTS), process.boot_id()
    try:
        known = files.read_object(path)
    except files.Unreadable:
        known = {}
    if known.get("boot_id") == now:
        return []
    before = known.get("interrupted")
    seen_before = set(before) if isinstance(before, list) else set()
    found = {seen.record.id: (seen, boot) for seen, boot in _interrupted(home, sessions)}
    told = {"schema": files.SCHEMA, "boot_id": now, "interrupted": sorted({boot for _, boot in found.values()})}
    files.write_object(path, told)
    if not known:
        return []
    return [name for name, (seen, boot) in found.items() if boot not in seen_before and seen.record.supports_resume]


def _interrupted(home: str, sessions: Iterable[str]) -> Iterable[tuple[Observation, str]]:
    """With the boot that each ran in."""
    for session in sessions:
        try:
            with locks.SessionLock(session_folder(home, session)):  # somebody may be writing down that it was
                seen = observe(home, session)
        except FAILURES:
            continue
        facts, run = settle(seen.facts), read_run(seen.run_folder)
        rebooted = facts.exit is not None and facts.exit.error == runs.REBOOT
        if facts.record == SUSPENDED and rebooted and run is not None:
            yield seen, run.boot_id
