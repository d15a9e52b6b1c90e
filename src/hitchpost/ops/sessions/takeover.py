"""Taking over: an agent that lives on without its keeper gets a new one, and goes on as if nothing had been."""

from __future__ import annotations

import os
import time

from hitchpost import settings as config
from hitchpost import wire
from hitchpost.errors import FAILURES, BadSettings, Refused
from hitchpost.model.status import lives_on
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.runspec import RunSpec
from hitchpost.runtimes import base
from hitchpost.runtimes.kept import is_kept, take_lock
from hitchpost.settings import Settings
from hitchpost.store import locks
from hitchpost.store.records import Record
from hitchpost.store.session import Session
from hitchpost.terminal import output

USUAL_SIZE = (80, 24)
ENDS_S = 2.0


class NotTakenOver(Refused):
    """Raised when an agent lives on without its keeper and no other could take its place."""

    def __init__(self, record: Record) -> None:
        super().__init__(
            f"{record.name} is running, but its keeper is gone and no other could take over",
            f"hitch doctor says why, hitch stop {record.word} ends it",
        )


def take_over(home: str, seen: Observation, actor: str) -> Observation:
    """The session as it is afterwards: when no keeper could take it over, its agent still lives on without one."""
    leases, unleased = _leases(home, seen)
    try:
        with locks.SessionLock(seen.folder):
            now = observe(home, seen.record.id)
            if not lives_on(now.facts) or now.facts.run != seen.facts.run:
                return now
            started = _start(now, leases)
            if started.error is not None:
                _wait_for_end_of_keeper(now.run_folder)
            else:
                Session(seen.folder, actor=actor).tell(
                    "keeper",
                    run=now.facts.run,
                    reason="the keeper was lost; a new one has taken the agent over",
                    evidence={"pid": started.pid, "not_leased": unleased},
                )
    finally:
        for fd in leases:
            os.close(fd)
    return observe(home, seen.record.id)


def _start(seen: Observation, leases: tuple[int, ...]) -> base.Started:
    record, settings = seen.record, _settings()
    cols, rows = _size(seen)
    lock = take_lock(seen.run_folder, record.name)
    try:
        spec = RunSpec(
            session=record.id,
            session_folder=seen.folder,
            run=seen.facts.run,
            argv=(),
            env={},
            folder=record.folder,
            folder_dev=record.folder_dev,
            folder_ino=record.folder_ino,
            lock_fd=lock,
            lease_fds=leases,
            takes_over=True,
            cols=cols,
            rows=rows,
            grace_s=record.grace_s,
            quit_signal=record.quit_signal,
            quit_group=record.quit_group,
            survivors=record.survivors,
            log_cap_bytes=settings.log_cap_mib << 20,
        )
        return base.load(record.runtime).take_over(spec)
    except OSError as error:
        return base.Started(None, f"cannot start a keeper: {error}", kept=False)
    finally:
        os.close(lock)


def _wait_for_end_of_keeper(run_folder: str) -> None:
    """One that could not take over says so first and ends then: until it has, its lock looks like life."""
    deadline = time.monotonic() + ENDS_S
    while is_kept(run_folder) is not False and time.monotonic() < deadline:
        time.sleep(0.002)


def _leases(home: str, seen: Observation) -> tuple[tuple[int, ...], str]:
    """The workspace's lease, which ended with the keeper; and why it cannot be had, when somebody else has it since."""
    from hitchpost.ops.views.workplace import workspace_of
    from hitchpost.workspaces import lease

    record = seen.record
    try:
        workspace = workspace_of(home, record)
        if workspace is None:
            return (), ""
        run, share = seen.facts.run, record.share
        return (lease.take(home, workspace, session=record.id, name=record.name, run=run, share=share),), ""
    except FAILURES as error:
        return (), str(error)


def _size(seen: Observation) -> tuple[int, int]:
    sizes = output.sizes(os.path.join(seen.run_folder, wire.OUTPUT))
    return sizes[-1][1:] if sizes else USUAL_SIZE


def _settings() -> Settings:
    try:
        return config.load()
    except BadSettings:
        return Settings()
