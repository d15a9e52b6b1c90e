"""What is set: ``[notify]`` of ``config.toml``, and over it what was chosen in the page.

Addresses, secrets and commands come from the file alone. The page chooses what to be told of, when, and which of the
ways that are there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from typing import Any

from hitchpost.errors import HitchpostError
from hitchpost.notify.journal import FOLDER
from hitchpost.notify.policy import Rules
from hitchpost.settings import NEWS_KINDS, NOTIFY_CHECKS, Settings, quiet_hours
from hitchpost.store import files

FILE = "choices.json"
CHOSEN = ("kinds", "sessions", "dwell_s", "cooldown_s", "group_s", "quiet_hours", "off")
NO_CONTACT = "mailto:nobody@example.com"


@dataclass(frozen=True, slots=True)
class Options:
    """``off`` names channels that are not used. The rest is as the file has it."""

    rules: Rules
    quiet_hours: str
    off: tuple[str, ...]
    grace_s: float
    table: Mapping[str, Any]

    def get(self, name: str, otherwise: Any) -> Any:
        return self.table.get(name, otherwise)


def options(settings: Settings, choices: Mapping[str, Any]) -> Options:
    """Of what was checked already."""
    table: dict[str, Any] = {**settings.notify, **choices}
    usual = Rules()
    hours = table.get("quiet_hours", "")
    begin_end = quiet_hours(hours) if hours else None
    rules = Rules(
        kinds=tuple(table.get("kinds", NEWS_KINDS)),
        sessions={name: tuple(kinds) for name, kinds in table.get("sessions", {}).items()},
        dwell_s=float(table.get("dwell_s", usual.dwell_s)),
        cooldown_s=float(table.get("cooldown_s", usual.cooldown_s)),
        group_s=float(table.get("group_s", usual.group_s)),
        quiet=None if begin_end is None else (time(*begin_end[0]), time(*begin_end[1])),
    )
    return Options(rules, hours, tuple(table.get("off", ())), float(table.get("grace_s", 10.0)), table)


class Choices:
    """What was chosen in the page, in a file of the home. Methods wait for the disk."""

    def __init__(self, home: str) -> None:
        self.path = os.path.join(home, FOLDER, FILE)

    def read(self) -> dict[str, Any]:
        """Empty when there is no file, or one that cannot be used. A choice that makes no sense is passed over."""
        try:
            value = files.read_object(self.path)
        except files.CannotRead:
            return {}
        found = {}
        for name in CHOSEN:
            try:
                found[name] = NOTIFY_CHECKS[name](value[name])
            except (HitchpostError, KeyError):
                continue
        return found

    def write(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """Over what was chosen before. Returns all of it."""
        merged = {**self.read(), **chosen}
        files.write_object(self.path, {"schema": files.SCHEMA, **merged})
        return merged
