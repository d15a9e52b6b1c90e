"""The check-up of one session: are its files readable, does its keeper live and answer, is anything left over."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hitchpost import wire
from hitchpost.errors import FAILURES, NoSuchSession
from hitchpost.model import run as runs
from hitchpost.model.status import lives_on, status, survivors
from hitchpost.ops.doctor.finding import Finding, note, problem
from hitchpost.ops.views.advice import way_on
from hitchpost.ops.views.explain import folder_text
from hitchpost.ops.views.observe import Observation, observe, survivors_of_earlier_runs
from hitchpost.runtimes import base
from hitchpost.runtimes.freeze import is_left
from hitchpost.runtimes.kept import is_kept, keeper_process
from hitchpost.runtimes.link import Link, NoKeeper, Silent
from hitchpost.store import files, migrations, process_marks, records, runfiles
from hitchpost.store.home import check_folder, run_folder, session_folder
from hitchpost.store.session import read_state
from hitchpost.system import process

ANSWER_S = 2.0
NO_SOCKET_S = 1.0
OLD_TEMP_S = 60.0
LAST_BYTES = 64 * 1024
FIX = "run: hitch doctor --fix"


@dataclass(slots=True)
class Ward:
    """What was found about one session. ``groups`` are the names of the control groups that its live runs use."""

    session: str
    findings: list[Finding] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)


def examine(home: str, session: str) -> Ward:
    ward = Ward(session)
    folder = session_folder(home, session)
    try:
        check_folder(folder)
    except FAILURES as error:
        ward.findings.append(problem("session", str(error), f"look at {folder} yourself", session))
        return ward
    ward.findings += _files(folder)
    try:
        seen = observe(home, session)
    except NoSuchSession:
        return Ward(session)
    except FAILURES as error:
        if not ward.findings:
            ward.findings.append(problem("session", str(error), session=session))
        return ward
    name = seen.record.name or session
    ward.groups = kept_groups(folder)
    ward.findings += _life(home, seen, name)
    if is_left(folder):
        why = "whatever was working on its files was killed"
        ward.findings.append(problem("container", f"it is still paused: {why}", f"{FIX} (resumes it)", name))
    ward.findings += _runs(folder, name)
    if not seen.problem and (where := folder_text(seen)) and not where.startswith("present"):
        ward.findings.append(note("workspace", where, way_on(seen), name))
    return ward


# Files ----------------------------------------------------------------------------------------------------------


def _files(folder: str) -> Iterator[Finding]:
    session = os.path.basename(folder)
    for name, steps in ((records.RECORD, migrations.RECORD_STEPS), (files.STATE, migrations.STATE_STEPS)):
        path = os.path.join(folder, name)
        try:
            old = migrations.migrated(value := files.read_object(path), steps) is not value
            _ = records.read(folder) if name == records.RECORD else read_state(folder)
        except FileNotFoundError:
            yield problem("files", f"{path} is missing", f"{FIX} (rebuilds it from the story)", session)
        except files.Unreadable as error:
            yield problem("files", str(error), f"{FIX} (rebuilds it from the story and keeps the old one)", session)
        except files.NewerSchema as error:
            yield problem("files", str(error), "use the hitchpost that wrote it, or a newer one", session)
        except OSError as error:
            yield problem("files", f"{path}: {os.strerror(error.errno or 0).lower()}", session=session)
        else:
            if old:
                yield note("files", f"{path} has an older schema", "it is migrated at its next change", session)
    path = os.path.join(folder, files.STORY)
    try:
        os.close(files.open_file(path))
    except files.NotAFile as error:
        yield problem("files", f"{path}: {error.strerror}", "move it away", session)
    except OSError:
        return


def unreadable_run_files(folder: str) -> list[tuple[str, str]]:
    """(path below the session's folder, what is wrong) of the files of all runs that are not what they should be."""
    found = []
    for run in run_numbers(folder):
        for name in (*runfiles.ALL, files.STATE):
            below = os.path.join("runs", str(run), name)
            try:
                files.read_object(os.path.join(folder, below))
            except FileNotFoundError:
                continue
            except files.NewerSchema:
                continue
            except files.CannotRead as error:
                found.append((below, str(error)))
    return found


def kept_groups(folder: str) -> set[str]:
    """The names of the control groups of the session's runs that are kept, or may be."""
    kept = [run for run in run_numbers(folder) if is_kept(run_folder(folder, run)) is not False]
    return {
        name_of(folder, run) for run in kept for name_of in (process_marks.group_name, process_marks.old_group_name)
    }


def run_numbers(folder: str) -> list[int]:
    try:
        names = os.listdir(os.path.join(folder, "runs"))
    except OSError:
        return []
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def stored_state(folder: str) -> tuple[int, str] | None:
    """Run and state as the file has them."""
    try:
        state = read_state(folder)
    except files.CannotRead:
        return None
    return state.run, state.state


def temp_files(folder: str) -> list[str]:
    """Half-written files whose writer is gone."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = []
    for name in sorted(names):
        if not files.is_temp(name):
            continue
        path = os.path.join(folder, name)
        try:
            age_s = time.time() - os.stat(path, follow_symlinks=False).st_mtime
        except FileNotFoundError:
            continue
        if process.start_time(files.writer_of(name)) is None or age_s > OLD_TEMP_S:
            found.append(path)
    return found


def left_over(folder: str) -> list[str]:
    """Files that nobody needs: half-written ones, and what a killed keeper had reserved."""
    found = temp_files(folder)
    for run in run_numbers(folder):
        where = run_folder(folder, run)
        found += temp_files(where)
        if is_kept(where) is False:
            found += [
                path for name in (*wire.SPARES, wire.SOCKET) if os.path.lexists(path := os.path.join(where, name))
            ]
    return found


def _runs(folder: str, name: str) -> Iterator[Finding]:
    for _, wrong in unreadable_run_files(folder):
        yield problem("files", wrong, f"{FIX} (moves it to the quarantine)", name)
    if found := left_over(folder):
        yield note("left over", f"{len(found)} files, such as {found[0]}", FIX, name)
    for run in run_numbers(folder):
        path = os.path.join(run_folder(folder, run), wire.KEEPER_LOG)
        try:
            lines = files.read_ends(path, 0, LAST_BYTES).decode("utf-8", "replace").strip().splitlines()
        except OSError:
            continue
        if lines:
            yield note("keeper log", f"the keeper of run {run} complained: {lines[-1]}", f"read {path}", name)


# Life -----------------------------------------------------------------------------------------------------------


def _life(home: str, seen: Observation, name: str) -> Iterator[Finding]:
    lost = seen.facts.state in runs.LIVE and seen.facts.keeper_alive is False
    if lost:
        # a keeper that ended between two of our looks has written its end by now
        try:
            seen = observe(home, seen.record.id)
        except NoSuchSession:
            return
        lost = seen.facts.state in runs.LIVE and seen.facts.keeper_alive is False
    if lives_on(seen.facts):
        yield problem(
            "keeper",
            "its keeper is gone, and its agent is still running unwatched",
            f"{FIX} (starts a new keeper, where one can take it over)",
            name,
        )
    elif lost:
        label = status(seen.facts, datetime.now(UTC)).label
        text = f"its keeper is gone and {seen.facts.state} is still recorded; it is: {label}"
        yield problem("keeper", text, f"{FIX} (records the end, and ends what is left of it)", name)
    elif seen.facts.keeper_alive is True and not answers(seen.run_folder):
        pid = keeper_process(seen.run_folder)
        which = f" (pid {pid})" if pid else ""
        yield problem("keeper", f"its keeper{which} holds the lock and does not answer", _wake(pid), name)
    elif seen.facts.exit is not None and survivors(seen.facts) and (left := _survivors(seen)):
        yield note(
            "survivors",
            f"its runs have ended, but {left} of their processes are still running",
            f"hitch stop {seen.record.word} ends them",
            name,
        )


def answers(where: str) -> bool:
    """Whether the keeper answers. One that just starts or ends has no socket for a moment."""
    deadline = time.monotonic() + NO_SOCKET_S
    while True:
        try:
            Link.connect(where, timeout_s=ANSWER_S).close()
            return True
        except Silent:
            return False
        except NoKeeper:
            if is_kept(where) is not True:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)


def _wake(pid: int | None) -> str:
    stat = process.stat(pid) if pid is not None else None
    if stat is not None and stat[0] in (b"T", b"t"):
        return f"it was stopped by a signal; run: kill -CONT {pid}"
    return "wait, or end it with kill -9 and run hitch doctor --fix" if pid else "wait and look again"


def _survivors(seen: Observation) -> int:
    runtime = base.load(seen.record.runtime)
    return sum(runtime.leftovers(seen.folder, run).count for run in (*survivors_of_earlier_runs(seen), seen.facts.run))
