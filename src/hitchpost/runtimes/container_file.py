"""``box.json``: the container of a session, as it is written down."""

from __future__ import annotations

import os

from hitchpost import wire
from hitchpost.runtimes.engine import Box
from hitchpost.runtimes.kept import is_copied
from hitchpost.store import files
from hitchpost.values import asdict, fields

GOING = "box-going.json"
"""Its name while the container is being removed."""
SINCE = {"group"}
"""What the files of older versions lack."""


def read_box(session_folder: str, name: str = wire.BOX) -> Box | None:
    """None where there is none, and in a copy of a home: the container is the original's."""
    try:
        value = files.read_object(os.path.join(session_folder, name))
    except files.CannotRead:
        return None
    is_whole = value.keys() >= set(fields(Box)) - SINCE
    if not is_whole or (name in (wire.BOX, GOING) and is_copied(str(value.get("home", "")), session_folder)):
        return None
    return Box(**{key: value[key] for key in fields(Box) if key in value})  # type: ignore[arg-type]


def is_of_copy(session_folder: str) -> bool:
    try:
        value = files.read_object(os.path.join(session_folder, wire.BOX))
    except files.CannotRead:
        return False
    return is_copied(str(value.get("home", "")), session_folder)


def write_box(session_folder: str, box: Box) -> None:
    value = {"schema": files.SCHEMA, "home": files.home_id(session_folder), **asdict(box)}
    files.write_object(os.path.join(session_folder, wire.BOX), value)


def engine_of(path: str) -> str | None:
    try:
        url = files.read_object(path).get("engine")
    except files.CannotRead:
        return None
    return None if url is None else str(url)
