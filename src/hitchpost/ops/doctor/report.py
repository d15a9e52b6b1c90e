"""The check-up: machine, settings, home and every session. Nothing is written here."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hitchpost import lightjson
from hitchpost import settings as config
from hitchpost.errors import NOT_READ, BadSettings, HomeRefused
from hitchpost.model.record import ARCHIVED
from hitchpost.ops.doctor import deleted_sessions, machine, sessions, workspaces
from hitchpost.ops.doctor.finding import Finding, note, ok, problem
from hitchpost.ops.sessions.create import NEW, REMOVED
from hitchpost.runtimes.container_removal import left, strays
from hitchpost.settings import Settings
from hitchpost.store import files, locks, quarantine, records
from hitchpost.store.home import SESSIONS, check_folder, session_folder, sessions_folder
from hitchpost.store.index import INDEX, Index

LITTLE_BYTES, TOO_LITTLE_BYTES = 1 << 30, 64 << 20
TOO_FEW_FILES = 1000
NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "glusterfs", "beegfs", "fuse.sshfs")
FIX = "run: hitch doctor --fix"
SHOWN = 5


def checkup(home: str, hub: Callable[[str], Iterable[Finding]]) -> list[Finding]:
    """Everything that can be looked at, in the order in which a person would. ``hub`` asks the home's hub, if any."""
    settings, found = _settings()
    findings = [*machine.machine(settings), found]
    refused = _home(home)
    if refused is not None:
        return [*findings, refused, *deleted_sessions.findings(home)]
    findings += _place(home)
    findings += hub(home)
    findings += _index(home)
    wards = [sessions.examine(home, session) for session in records.ids(home)]
    findings += [finding for ward in wards for finding in ward.findings]
    lost = deleted_sessions.findings(home)
    findings += lost
    if not lost and not any(ward.findings for ward in wards):
        findings.append(ok("sessions", f"{len(wards)} in order" if wards else "none yet"))
    findings += workspaces.workspaces(home)
    findings += _left_over(home, {name for ward in wards for name in ward.groups})
    return findings


def _settings() -> tuple[Settings, Finding]:
    path = config.config_path()
    try:
        settings = config.load()
        config.environment(settings)
    except BadSettings as error:
        return Settings(), problem("config", str(error), f"correct {path}")
    there = os.path.exists(path)
    return settings, ok("config", path if there else f"{path} does not exist, so the defaults apply")


# The home -------------------------------------------------------------------------------------------------------


def _home(home: str) -> Finding | None:
    """What keeps the home from being used, or that it is not there; None when its sessions can be looked at."""
    try:
        check_folder(home)
        check_folder(os.path.join(home, SESSIONS))
    except FileNotFoundError:
        return ok("home", f"{home} does not exist yet; the first hitch run makes it")
    except HomeRefused as error:
        return problem("home", str(error))
    except OSError as error:
        return problem("home", f"{home}: {os.strerror(error.errno or 0).lower()}", "name another in HITCHPOST_HOME")
    return None


def _place(home: str) -> Iterator[Finding]:
    mode = stat.S_IMODE(os.stat(home).st_mode)
    room = os.statvfs(home)
    free_bytes = room.f_bavail * room.f_frsize
    if room.f_flag & os.ST_RDONLY or not os.access(home, os.W_OK | os.X_OK):
        yield problem("home", f"{home} cannot be written to", "make it writable, or name another in HITCHPOST_HOME")
    elif mode & 0o077:
        yield note("home", f"{home} is open to others (mode {mode:04o})", f"run: chmod 700 {shlex.quote(home)}")
    else:
        yield ok("home", home)
    text = f"{free_bytes / (1 << 30):.1f} GiB free"
    if free_bytes < TOO_LITTLE_BYTES or (room.f_files and room.f_favail < TOO_FEW_FILES):
        yield problem(
            "space", f"{text}, room for {room.f_favail} more files", f"make room on the file system of {home}"
        )
    elif free_bytes < LITTLE_BYTES:
        yield note("space", text, f"make room on the file system of {home}")
    else:
        yield ok("space", text)
    kind = file_system(home)
    if kind in NETWORK:
        yield note(
            "file system",
            f"{kind} is a network file system; its locks may not hold between machines",
            "name a local folder in HITCHPOST_HOME, or use this home from one machine only",
        )
    else:
        yield ok("file system", kind)


def file_system(path: str) -> str:
    """The type of the file system that ``path`` is on, as the kernel names it."""
    real = os.path.realpath(path)
    best, kind = "", "unknown"
    try:
        lines = files.read_bytes("/proc/self/mounts").decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return kind
    for line in lines:
        point, its_kind = line.split(" ")[1:3]
        point = point.encode("utf-8", "surrogateescape").decode("unicode_escape") if "\\" in point else point
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, its_kind
    return kind


def _index(home: str) -> Iterator[Finding]:
    """Whether the rows of the index are what the files say; names and numbers of sessions must be unique too."""
    wrong = index_errors(home)
    if wrong:
        yield problem("index", f"does not match the files: {_some(wrong)}", f"{FIX} (rebuilds it)")
    else:
        yield ok("index", "matches the files")
    found = list(_records(home))
    for key in ("name", "index"):
        taken: dict[object, str] = {}
        for record in found:
            value = getattr(record, key)
            if record.record != ARCHIVED and taken.setdefault(value, record.id) != record.id:
                text = f"{record.id} and {taken[value]} have the same {key} {value!r}"
                yield problem("index", text, f"hitch cancel {record.id} ends and archives it", record.id)


def index_errors(home: str) -> list[str]:
    """Where the stored index contradicts the files, in a way that a reader would not notice."""
    path = os.path.join(home, INDEX)
    try:
        known = Index(home).refresh()
        rows = known.rows
    except NOT_READ as error:
        return [f"{path} cannot be read ({error})"]
    wrong = []
    for record in _records(home):
        row: dict[str, Any] = rows.get(record.id, {})
        expected = {"index": record.index, "name": record.name, "record": record.record}
        wrong += [f"{record.id}: {key} is {row.get(key)!r}" for key, item in expected.items() if row.get(key) != item]
        text = known.shape(record.id)
        shape: Any = None if text is None else lightjson.loads(text)
        state = sessions.stored_state(session_folder(home, record.id))
        if shape is not None and state is not None and (shape["run"], shape["state"]) != state:
            wrong.append(f"{record.id}: state is {shape['state']!r} of run {shape['run']}")
    return wrong


def _records(home: str) -> Iterator[records.Record]:
    for session in records.ids(home):
        try:
            yield records.read(session_folder(home, session))
        except files.CannotRead:
            continue


# What is left over ----------------------------------------------------------------------------------------------


def _left_over(home: str, kept: set[str]) -> Iterator[Finding]:
    if unmade := unfinished(home):
        yield note("left over", f"sessions half made or half removed: {_some(unmade)}", FIX)
    if temps := sessions.temp_files(home) + sessions.temp_files(sessions_folder(home)):
        yield note("left over", f"half-written files: {_some(temps)}", FIX)
    if groups := machine.left_over_groups(home, kept):
        yield note("left over", f"empty control groups: {_some(groups)}", FIX)
    if boxes := left(home):
        yield note("left over", f"containers of removed sessions: {_some(boxes)}", f"start their engine, then {FIX}")
    if boxes := strays(home):
        yield note("left over", f"containers of sessions whose folder was deleted: {_some(boxes)}", FIX)
    if away := quarantine.contents(home):
        where = os.path.join(home, "quarantine")
        yield note(
            "quarantine", f"{len(away)} unreadable files: {_some(away)}", f"look at them in {where}, then delete them"
        )


def unfinished(home: str) -> list[str]:
    """Folders of sessions whose creation or removal was cut short. While one is being begun, nobody can tell."""
    top = sessions_folder(home)
    found = [os.path.join(top, name) for name in sorted(os.listdir(top)) if name.startswith((NEW, REMOVED))]
    if locks.is_held(os.path.join(top, ".lock")) is not False:
        return []
    return [path for path in found if locks.is_held(os.path.join(path, files.LOCK)) is False]


def _some(texts: list[str]) -> str:
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more
