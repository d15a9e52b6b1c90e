"""Unreadable files are moved aside and reported; nothing is overwritten or deleted."""

from __future__ import annotations

import os

from hitchpost.store import files


def put_away(session_folder: str, name: str) -> str | None:
    """Move ``name`` of a session to the home's quarantine. Returns where it is now; None when it was not there."""
    home = os.path.dirname(os.path.dirname(session_folder))
    folder = os.path.join(home, "quarantine")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    moment = files.stamp().replace(":", "").replace("-", "")
    target = os.path.join(folder, f"{os.path.basename(session_folder)}.{os.path.basename(name)}.{moment}")
    try:
        os.rename(os.path.join(session_folder, name), target)
    except FileNotFoundError:
        return None
    files.sync_folder(folder)
    return target


def contents(home: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(home, "quarantine")))
    except FileNotFoundError:
        return []
