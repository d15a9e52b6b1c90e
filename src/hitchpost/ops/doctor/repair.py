"""Mending what the check-up finds: what is broken is put aside, what is left over is removed."""

from __future__ import annotations

import os

from hitchpost.errors import FAILURES
from hitchpost.model import run as runs
from hitchpost.model.status import lives_on, processes
from hitchpost.ops.doctor import machine, sessions
from hitchpost.ops.doctor.deleted_sessions import end_unseen
from hitchpost.ops.doctor.report import index_errors, unfinished
from hitchpost.ops.sessions.create import sweep
from hitchpost.ops.sessions.recover import recover
from hitchpost.ops.sessions.survivors import end_survivors, may_be
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.ops.views.session_json import to_json
from hitchpost.runtimes.container_removal import remove_left, remove_strays
from hitchpost.runtimes.freeze import is_left
from hitchpost.runtimes.link import is_kept
from hitchpost.store import files, locks, quarantine, records
from hitchpost.store.home import session_folder, sessions_folder
from hitchpost.store.index import INDEX
from hitchpost.system import cgroup
from hitchpost.values import value
from hitchpost.workspaces import worktree


@value
class Mended:
    """What was done, and what could not be, in words."""

    fixed: list[str]
    failed: list[str]


def mend(home: str) -> Mended:
    """Do what can be done without losing anything. The home was checked before."""
    done, failed = end_unseen(home)
    if not os.path.isdir(sessions_folder(home)):
        return Mended(done, failed)
    for session in records.ids(home):
        try:
            done += _session(home, session)
        except FAILURES as error:
            why = os.strerror(error.errno).lower() if isinstance(error, OSError) and error.errno else str(error)
            failed.append(f"{session}: could not be repaired: {why}")
    half, temps = unfinished(home), sessions.temp_files(home) + sessions.temp_files(sessions_folder(home))
    sweep(home)
    done += [f"removed {path}" for path in half if not os.path.lexists(path)]
    done += _discard(temps)
    done += worktree.sweep(home)
    if index_errors(home):
        files.discard(os.path.join(home, INDEX))
        done.append("removed the index; the next command rebuilds it from the files")
    done += [f"removed the container of {session}" for session in (*remove_left(home), *remove_strays(home))]
    return Mended(done + _groups(home), failed)


def _session(home: str, session: str) -> list[str]:
    folder = session_folder(home, session)
    if os.path.islink(folder):
        return []
    before = observe(home, session)
    name = before.record.name or session
    done = []
    with locks.SessionLock(folder):
        for below, wrong in sessions.unreadable_run_files(folder):
            kept = is_kept(os.path.dirname(os.path.join(folder, below)))
            if kept is False and (moved := quarantine.put_away(folder, below)):
                done.append(f"{name}: moved an unreadable file to {moved} ({wrong})")
    litter, paused = sessions.left_over(folder), is_left(folder)
    after = recover(home, session, actor="doctor")
    done += [f"{name}: {change}" for change in _changes(before, after)]
    done += [f"{name}: resumed its container"] if paused and not is_left(folder) else []
    if before.facts.state in runs.LIVE and after.facts.state in runs.TERMINAL and may_be(after):
        left = after.facts.exit.survivors if after.facts.exit is not None else 0
        end_survivors(home, after, "doctor")
        done += [f"{name}: ended {processes(left)} that it had left behind"] if left else []
    with locks.SessionLock(folder):
        done += _discard(sorted({*litter, *sessions.left_over(folder)}))
    return done


def _changes(before: Observation, after: Observation) -> list[str]:
    found = []
    if before.problem and not after.problem:
        found.append(f"rebuilt from its story ({before.problem})")
    if lives_on(before.facts) and after.facts.keeper_alive:
        found.append("a new keeper has taken over its agent")
    if before.facts.state != after.facts.state:
        label = to_json(after, after.facts.state_changed_at or after.facts.created_at)["label"]
        found.append(f"recorded what became of it: {before.facts.state} → {label}")
    return found


def _discard(paths: list[str]) -> list[str]:
    for path in paths:
        files.discard(path)
    return [f"removed {path}" for path in paths if not os.path.lexists(path)]


def _groups(home: str) -> list[str]:
    kept = {name for session in records.ids(home) for name in sessions.kept_groups(session_folder(home, session))}
    groups = machine.left_over_groups(home, kept)
    cgroup.ControlGroups(groups).remove()
    return [f"removed the empty control group {path}" for path in groups if not os.path.isdir(path)]
