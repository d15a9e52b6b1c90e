"""Stopping: the keeper writes down who asked, then ends the agent and everything below it."""

from __future__ import annotations

import time
from collections.abc import Callable

from hitchpost.errors import KeeperSilent, Refused
from hitchpost.model import run as runs
from hitchpost.model.facts import WITHOUT_SANDBOX
from hitchpost.ops.create import sweep
from hitchpost.ops.look import Seen
from hitchpost.ops.recover import recover, wait_for_keeper_to_leave
from hitchpost.runtimes import base
from hitchpost.runtimes.link import Link, NoKeeper, Silent, exit_event
from hitchpost.state import files, story

STARTING_WAIT_S = 30.0
MARGIN_S = 20.0
PROGRESS_EVERY_S = 1.0


def stop(
    home: str,
    session: str,
    *,
    actor: str,
    run: int | None = None,
    by: str = runs.USER,
    reason: str = "",
    grace_s: float | None = None,
    progress: Callable[[float], None] = lambda waited_s: None,
) -> Seen:
    """End the session's run and wait until nothing of it is left. A run that has ended already is no error.

    With ``run`` no other one is ended: ``Refused`` is raised when another has begun. ``progress`` is called about once
    a second. Raises ``KeeperSilent`` when the keeper lives and does not answer.
    """
    sweep(home)
    seen = _wait_out_starting(home, session)
    if run is not None and seen.facts.run != run:
        raise Refused(
            f"{seen.record.name} has just been started again, as run {seen.facts.run}; nothing was done to it"
        )
    if seen.facts.state in runs.TERMINAL and seen.facts.keeper_alive is not True:
        return _without_sandbox(home, _end_survivors(home, seen, actor), by)
    if seen.facts.state == runs.CREATED:
        raise Refused(f"{seen.record.name} has not been started")
    if seen.facts.state == runs.STARTING:
        raise Refused(f"{seen.record.name} is still being started; try again in a moment")
    if seen.facts.sandbox_paused:
        base.load(seen.record.runtime).unpause(seen.folder)  # what is frozen does not even die
    wait_s = (seen.record.grace_s if grace_s is None else grace_s) + MARGIN_S
    try:
        with Link.connect(seen.run_folder) as link:
            fields = {} if grace_s is None else {"grace_s": grace_s}
            link.request("stop", by=by, reason=f"{reason}, asked by {actor}".removeprefix(", "), **fields)
            began = time.monotonic()
            while not link.closed:
                if exit_event(link.frames(PROGRESS_EVERY_S)):
                    break
                waited_s = time.monotonic() - began
                if waited_s > wait_s:
                    raise KeeperSilent(seen.record.name, wait_s)
                if waited_s >= PROGRESS_EVERY_S:
                    progress(waited_s)
    except Silent:
        raise KeeperSilent(seen.record.name, 5) from None
    except NoKeeper:
        pass
    return _without_sandbox(home, _settled(home, session), by)


def _without_sandbox(home: str, seen: Seen, by: str) -> Seen:
    """A session that was stopped leaves no container; one that is restarted goes on in it."""
    if by == runs.RESTART or seen.record.runtime in WITHOUT_SANDBOX:
        return seen
    base.load(seen.record.runtime).tear_down(seen.folder)
    return recover(home, seen.record.id)


def _wait_out_starting(home: str, session: str) -> Seen:
    deadline = time.monotonic() + STARTING_WAIT_S
    while True:
        seen = recover(home, session)
        if seen.facts.state != runs.STARTING or time.monotonic() > deadline:
            return seen
        time.sleep(0.02)


def _settled(home: str, session: str) -> Seen:
    """The session once its keeper is gone and its end is written down."""
    seen = recover(home, session)
    wait_for_keeper_to_leave(seen)
    return recover(home, session)


def _end_survivors(home: str, seen: Seen, actor: str) -> Seen:
    """What an agent has left behind goes too, when somebody says stop. An end that nobody wrote may have left any."""
    wait_for_keeper_to_leave(seen)
    end, run = seen.facts.exit, seen.facts.run
    if end is None or end.survivors:
        left = base.load(seen.record.runtime).end_leftovers(seen.folder, run, session=seen.record.id)
        if left.ended or left.unknown:
            with files.SessionLock(seen.folder):
                reason = "; ".join(filter(None, (f"{left.ended} ended", left.unknown)))
                story.tell(seen.folder, "survivors", run=run, actor=actor, reason=reason)
    return recover(home, seen.record.id)
