"""Runs in a pod: one that a hub orders is begun as on any machine, with the pod's own home, folders and hooks."""

from __future__ import annotations

import os

from hitchpost.agents import catalog
from hitchpost.agents.prepare import FORK, FRESH, RESUME, Conversation
from hitchpost.errors import FAILURES, HitchpostError, Refused, StartFailed
from hitchpost.model import run as runs
from hitchpost.model.facts import LOCAL
from hitchpost.ops.sessions.begin import program_of, start_keeper
from hitchpost.ops.sessions.next_run import Claimed, Program
from hitchpost.ops.sessions.place import choose
from hitchpost.ops.sessions.recover import RECOVERY, recover, say_why
from hitchpost.ops.views.observe import observe
from hitchpost.ops.views.workplace import current
from hitchpost.pod.own_log import note
from hitchpost.runspec import PtySource
from hitchpost.runtimes.kept import is_kept, take_lock
from hitchpost.settings import Settings
from hitchpost.store import files, locks, records
from hitchpost.store.home import make_run_folder, session_folder
from hitchpost.store.records import Record
from hitchpost.store.runfiles import read_exit, read_run
from hitchpost.store.session import Session
from hitchpost.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OF_PLACE = ("folder", "folder_dev", "folder_ino", "workspace_id", "branch", "repository", "base", "git")
"""What of a record is the pod's own."""


def begin(home: str, session: str, order: dict[str, Any]) -> dict[str, object]:
    """Begin the run of an order, and answer it. The same order again finds the run that it has begun.

    Raises ``HitchpostError`` or ``OSError`` when nothing was begun.
    """
    run, folder = int(order["run"]), session_folder(home, session)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with locks.SessionLock(folder):
        if (answered := _begun(folder, run)) is not None:
            return answered
        record = _record(home, folder, records.told(folder, order["record"]))
        where = make_run_folder(folder, run)
        lock = take_lock(where, record.name)
        try:
            Session(folder, actor="pod").begin_copy(record, order["state"])
        except BaseException:
            os.close(lock)
            raise
    try:
        record, claimed, program = _prepared(home, session, order, where, lock)
    except FAILURES as error:
        os.close(lock)
        say_why(where, str(error))
        settle(home, session)
        return {"ok": False, "error": str(error), "field": getattr(error, "field", "")}
    cols, rows = (int(side) for side in order["size"])
    try:
        start_keeper(home, record, _settings(order), claimed, program, PtySource(), (cols, rows))
    except StartFailed as error:
        return {"ok": False, "error": error.why, "field": error.field}
    here = {name: getattr(record, name) for name in ("folder", "branch", "base")}
    return {"ok": True, "pid": _agent(where), "place": here}


def _begun(folder: str, run: int) -> dict[str, object] | None:
    """The answer, when this very run was begun already. Raises ``Refused`` when another one is kept, or came later."""
    try:
        now = Session(folder, actor="pod").read()
    except files.Missing:
        return None
    where = f"{folder}/runs/{now.run}"
    if now.run > run:
        raise Refused(f"run {run} was ordered, but run {now.run} has begun here already")
    if now.run < run:
        if is_kept(where) is not False:
            raise Refused(f"run {run} was ordered, but run {now.run} is not over yet")
        return None
    if is_kept(where) is not False or read_run(where) is not None:
        return {"ok": True, "pid": _agent(where)}
    if now.state in (runs.CREATED, runs.STARTING):
        return None
    return {"ok": False, "error": str(read_exit(where).get("error") or now.state)}


def _agent(where: str) -> int:
    """The agent's process; 0 when it is not written down yet."""
    found = read_run(where)
    return 0 if found is None else found.agent.pid


def _record(home: str, folder: str, ordered: Record) -> Record:
    """At its place in this pod: where the runs before it were, else where it is ordered to work."""
    try:
        here = records.read(folder)
    except files.CannotRead:
        if not ordered.repository:
            os.makedirs(ordered.folder, exist_ok=True)  # an empty one, of its own
        place = choose(home, ordered.folder, branch=ordered.branch)
        stat = os.stat(place.folder)
        found: dict[str, object] = {
            "folder": place.folder,
            "folder_dev": stat.st_dev,
            "folder_ino": stat.st_ino,
            "workspace_id": place.workspace_id,
            "branch": place.branch,
            "repository": place.repository,
            "base": place.base,
            "git": place.git,
        }
    else:
        found = {name: getattr(here, name) for name in OF_PLACE}
    return replace(ordered, runtime=LOCAL, sandbox=None, **found)


def _prepared(home: str, session: str, order: dict[str, Any], where: str, lock: int) -> tuple[Record, Claimed, Program]:
    record, workspace = current(home, observe(home, session))
    run, env = int(order["run"]), {str(name): str(text) for name, text in order["env"].items()}
    program = program_of(home, record, Settings(), os.environ, env, tuple(map(str, order["argv"])))
    leases: tuple[int, ...] = ()
    if workspace is not None:
        from hitchpost.workspaces import lease

        leases = (lease.take(home, workspace, session=record.id, name=record.name, run=run, share=record.share),)
    return record, Claimed(run, where, lock, leases, conversation_of(record, program.agent)), program


def _settings(order: dict[str, Any]) -> Settings:
    """What a keeper needs of the hub's."""
    numbers = {name: int(order[name]) for name in ("log_cap_bytes", "pids_max", "memory_max_bytes")}
    return Settings(
        log_cap_mib=max(1, numbers["log_cap_bytes"] >> 20),
        pids_max=numbers["pids_max"],
        memory_max_mib=numbers["memory_max_bytes"] >> 20,
    )


def conversation_of(record: Record, agent: catalog.Agent | None) -> Conversation:
    """Which conversation the run is in, as ``next_run.converse`` has written it down."""
    if agent is None or not agent.conversation:
        return Conversation()
    known = record.conversation_id or ""
    if record.conversation_begun and known:
        return Conversation(RESUME, known)
    return Conversation(FORK, known, record.fork_of) if record.fork_of else Conversation(FRESH, known)


def settle(home: str, session: str) -> None:
    """Write down what a keeper that is gone has left unsaid."""
    if not os.path.exists(os.path.join(session_folder(home, session), files.STATE)):
        return
    try:
        recover(home, session, actor=RECOVERY)
    except (HitchpostError, OSError) as error:
        note(f"the end of a run could not be written down: {error}")
