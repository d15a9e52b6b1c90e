"""Removing containers: of a session, and those that were left behind."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from hitchpost import wire
from hitchpost.errors import HitchpostError
from hitchpost.runtimes import engine
from hitchpost.runtimes.container_file import GOING, engine_of, read_box
from hitchpost.runtimes.engine import EngineFailed
from hitchpost.store import files
from hitchpost.store.home import home_of, is_id, session_folder

LEFT = "containers"


def set_aside(session_folder: str) -> None:
    """From now on no run begins in the container."""
    path = os.path.join(session_folder, wire.BOX)
    if os.path.exists(path):
        os.replace(path, os.path.join(session_folder, GOING))


def remove_aside(session_folder: str) -> None:
    path, going = (os.path.join(session_folder, name) for name in (wire.BOX, GOING))
    if not os.path.exists(going):
        return
    from hitchpost.runtimes.freeze import in_motion

    try:
        url = engine_of(going) or engine.address()
        with in_motion(session_folder):
            _remove(going, url, home_of(session_folder), os.path.basename(session_folder))
    except BaseException as error:
        box = read_box(session_folder, GOING)
        if isinstance(error, EngineFailed) and box is not None and not box.alive:
            return  # tried again when the session is removed
        os.replace(going, path)
        raise
    files.discard(going)


def left_folder(home: str) -> str:
    """One file for each container that outlived its session, because its engine was away when that was removed."""
    return os.path.join(home, LEFT)


def left(home: str) -> list[str]:
    """The sessions of these containers."""
    try:
        return sorted(name.removesuffix(".json") for name in os.listdir(left_folder(home)) if name.endswith(".json"))
    except FileNotFoundError:
        return []


def remove_left(home: str) -> list[str]:
    """Remove them, where their engine is back. Which ones are gone now."""
    gone: list[str] = []
    away: set[str] = set()
    for session in left(home):
        path = os.path.join(left_folder(home), f"{session}.json")
        url = engine_of(path)
        if url is None or url in away:
            continue
        try:
            _remove(path, url, home, session, engine.PROBE_S)
        except HitchpostError:
            away.add(url)
            continue
        files.discard(path)
        gone.append(session)
    return gone


def strays(home: str) -> list[str]:
    """Sessions whose folder was deleted and whose container is still there, as far as the engine tells."""
    try:
        found = engine.ask(engine.address(), lambda docker: engine.sessions(docker, home), engine.PROBE_S)
    except HitchpostError:
        return []
    known = set(left(home))
    return sorted(name for name in found if is_id(name) and name not in known and not _has_folder(home, name))


def remove_strays(home: str) -> list[str]:
    """Remove their containers. Which sessions have none any more; the engine may refuse some."""
    gone = []
    for session in strays(home):
        try:
            engine.ask(engine.address(), partial(engine.remove_all, home=home, session=session))
        except HitchpostError:
            continue
        gone.append(session)
    return gone


def _has_folder(home: str, session: str) -> bool:
    return os.path.isdir(session_folder(home, session))


def _remove(path: str, url: str, home: str, session: str, timeout_s: float = engine.ANSWER_S) -> None:
    """The container that a file names by its id; by its label when somebody was killed before it was written down."""
    box = read_box(os.path.dirname(path), os.path.basename(path))

    async def gone(docker: Any) -> None:
        if box is not None:
            await engine.remove(docker, box.id)
        else:
            await engine.remove_all(docker, home, session)

    engine.ask(url, gone, timeout_s)
