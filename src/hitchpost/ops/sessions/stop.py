"""Stopping: the keeper writes down who asked, then ends the agent and everything below it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from hitchpost.errors import FAILURES, HitchpostError, KeeperSilent, NotStopped, Refused, UsageError
from hitchpost.model import run as runs
from hitchpost.model.facts import is_elsewhere
from hitchpost.model.pods import doubt_of
from hitchpost.model.status import lives_on
from hitchpost.ops.sessions.create import sweep
from hitchpost.ops.sessions.recover import RECOVERY, recover, wait_for_keeper_to_leave
from hitchpost.ops.sessions.sandbox import bring_out
from hitchpost.ops.sessions.survivors import end_survivors
from hitchpost.ops.views.explain import keeper_text
from hitchpost.ops.views.observe import Observation
from hitchpost.runtimes import base
from hitchpost.runtimes.kept import is_kept, keeper_process, kept
from hitchpost.runtimes.link import Link, NoKeeper, Silent, exit_event
from hitchpost.store import files, runfiles
from hitchpost.store.session import Session

STARTING_WAIT_S = 30.0
MARGIN_S = 20.0
PROGRESS_EVERY_S = 1.0
KEEPERS = 2
"""How many are asked: one that is lost meanwhile may be followed by another, which has taken its agent over."""
LISTENS_AGAIN_S = 3.0
"""A keeper whose socket was removed makes it again within a second."""
ANSWERS_S = 20.0
"""A keeper writes down who asked before it answers; a busy disk takes its time. Asking again changes nothing."""


class NotTornDown(HitchpostError):
    """Raised when a session was stopped and what it ran in is still there."""

    http_status = 502
    code = "engine_failed"

    def __init__(self, name: str, why: str, word: str, sandbox: str = "container") -> None:
        hint = cli_hint = ""
        if sandbox == "container":
            hint = "stop it again once its engine answers"
            cli_hint = f"hitch stop {word} removes it once its engine answers"
        text = f"{name} is stopped, but its {sandbox} could not be removed: {why}"
        super().__init__(text, hint, cli_hint=cli_hint)


class Unreached(Refused):
    """Raised when a session's pod cannot be reached, so that nobody can end what runs there, and nobody knows."""

    def __init__(self, name: str, doubt: str, word: str) -> None:
        super().__init__(
            f"{name} cannot be stopped: {doubt}, and its agent may still be running",
            f"wait until it answers, or give it up: hitch restart --force {word}",
        )


def check_grace(grace_s: float) -> float:
    """Raises ``UsageError`` for what is no time to wait."""
    if not 0 <= grace_s <= runs.LONGEST_GRACE_S:
        raise UsageError(f"expected a grace time of 0 to {runs.LONGEST_GRACE_S} seconds, but got {grace_s:g}")
    return grace_s


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
) -> Observation:
    """End the session's run and wait until nothing of it is left. A run that has ended already is no error.

    With ``run`` no other one is ended: ``Refused`` is raised when another has begun. ``progress`` is called about once
    a second. Raises ``KeeperSilent`` when the keeper lives and does not answer, ``NotStopped`` when the run may still
    be there afterwards.
    """
    if grace_s is not None:
        check_grace(grace_s)
    sweep(home)
    seen = wait_out_starting(home, session)
    if run is not None and seen.facts.run != run:
        raise Refused(
            f"{seen.record.name} has just been started again, as run {seen.facts.run}; nothing was done to it"
        )
    if seen.facts.pod is not None and (doubt := doubt_of(seen.facts)):
        raise Unreached(seen.record.name, doubt, seen.record.word)
    if seen.facts.state in runs.TERMINAL and seen.facts.keeper_alive is False:
        seen = end_survivors(home, seen, actor)
        if by == runs.USER and seen.facts.sandbox_alive is True:
            _write_teardown(seen, actor, reason)
        return _without_sandbox(home, seen, by, actor, progress)
    if seen.facts.state == runs.CREATED:
        raise Refused(f"{seen.record.name} has not been started")
    if seen.facts.state == runs.STARTING:
        raise Refused(f"{seen.record.name} is still being started; try again in a moment")
    if seen.facts.sandbox_paused:
        base.load(seen.record.runtime).unpause(seen.folder)  # what is frozen does not even die
    wait_s = (seen.record.grace_s if grace_s is None else grace_s) + MARGIN_S
    why = f"{reason}, asked by {actor}".removeprefix(", ")
    if lives_on(seen.facts):  # no keeper could take it over
        runfiles.write_intent(seen.run_folder, by, why, 0)
        base.load(seen.record.runtime).end_leftovers(seen.folder, seen.facts.run, session=seen.record.id)
    for _ in range(KEEPERS):
        asked = _ask(seen, by=by, reason=why, grace_s=grace_s)
        try:
            _wait_for_end(seen, asked, wait_s, progress)
        finally:
            if asked is not None:
                asked.close()
        before, seen = seen, _settled(home, session)
        if seen.facts.run != before.facts.run:
            again = f"somebody has started it again since, as run {seen.facts.run}"
            raise Refused(f"run {before.facts.run} of {seen.record.name} was stopped, and {again}")
        if _is_over(seen):
            break
    else:
        raise NotStopped(seen.record.name, keeper_text(seen), _tells(seen))
    return _without_sandbox(home, end_survivors(home, seen, actor), by, actor, progress)


def _is_over(seen: Observation) -> bool:
    return seen.facts.state not in runs.LIVE and seen.facts.keeper_alive is False


def _tells(seen: Observation) -> str:
    return f"hitch explain {seen.record.word} shows what is known"


def _ask(seen: Observation, *, by: str, reason: str, grace_s: float | None) -> Link | None:
    """Ask the keeper to end the run: at its socket, else by a signal. None when there is nobody to hear more from."""
    name, where = seen.record.name, seen.run_folder
    fields = {} if grace_s is None else {"grace_s": grace_s}
    asked = time.monotonic()
    deadline = asked + LISTENS_AGAIN_S
    while True:
        try:
            link = Link.connect(where)
            try:
                reply = link.request("stop", by=by, reason=reason, **fields)
                if reply.get("ok") is not True:
                    raise NotStopped(name, f"its keeper refused ({reply.get('why')})", _tells(seen))
            except BaseException:
                link.close()
                raise
            return link
        except Silent:
            pid = keeper_process(where)
            if kept(where).stopped:
                raise NotStopped(name, f"its keeper is stopped by a signal (pid {pid})", f"kill -CONT {pid}") from None
            if time.monotonic() - asked > ANSWERS_S:
                raise KeeperSilent(name, ANSWERS_S) from None
        except NoKeeper:
            if is_kept(where) is False:
                return None
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
    if is_elsewhere(seen.record.runtime):
        raise KeeperSilent(name, LISTENS_AGAIN_S)  # the process that its lock names here is a hub
    grace_s = seen.record.grace_s if grace_s is None else grace_s
    if not _signal_keeper(where, by, reason, grace_s):
        base.load(seen.record.runtime).end_leftovers(seen.folder, seen.facts.run, session=seen.record.id)
    return None


def _signal_keeper(where: str, by: str, reason: str, grace_s: float) -> bool:
    """Write down who asks where the keeper looks for it, and make it look. False when there is no keeper."""
    pid = keeper_process(where)
    if pid is None:
        return False
    fd = os.pidfd_open(pid)
    try:
        if keeper_process(where) != pid:
            return False
        runfiles.write_intent(where, by, reason, grace_s)
        signal.pidfd_send_signal(fd, signal.SIGTERM)
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)
    return True


def _wait_for_end(seen: Observation, link: Link | None, wait_s: float, progress: Callable[[float], None]) -> None:
    """Until the keeper tells of the end, or is gone. Raises ``KeeperSilent``."""
    began = time.monotonic()
    shown_s = 0.0
    while link is not None or is_kept(seen.run_folder) is True:
        if link is None:
            time.sleep(0.02)
        elif exit_event(link.frames(PROGRESS_EVERY_S)):
            return
        elif link.closed:
            link = None
        waited_s = time.monotonic() - began
        if waited_s > wait_s:
            raise KeeperSilent(seen.record.name, wait_s)
        if waited_s >= shown_s + PROGRESS_EVERY_S:
            shown_s = waited_s
            progress(waited_s)


def _without_sandbox(
    home: str, seen: Observation, by: str, actor: str, progress: Callable[[float], None]
) -> Observation:
    """A session that was stopped leaves no container and no tmux. What the next run goes on in stays: nobody asked for
    the end of that."""
    runtime = base.load(seen.record.runtime)
    if by == runs.RESTART or (by == runs.REAPER and runtime.rests_in_place):
        return seen
    if not seen.facts.has_sandbox:
        runtime.tear_down(seen.folder)
        return seen
    try:
        runtime.tear_down(seen.folder)
    except HitchpostError as error:
        sandbox = "pod" if is_elsewhere(seen.record.runtime) else "container"
        raise NotTornDown(seen.record.name, str(error), seen.record.word, sandbox) from None
    _bring_out(home, seen, actor, progress)
    return recover(home, seen.record.id, actor=RECOVERY)


def _bring_out(home: str, seen: Observation, actor: str, progress: Callable[[float], None]) -> None:
    """What was committed in the container. What cannot be brought out stays in the session's folder."""
    try:
        notes = bring_out(home, seen.record, progress)
    except FAILURES as error:
        notes = [f"its commits could not be copied into the repository: {error}"]
    for note in notes:
        Session(seen.folder, actor=actor).tell("commits", run=seen.facts.run, reason=note)


def _write_teardown(seen: Observation, actor: str, reason: str) -> None:
    """Who asked, before anything is done: from now on the end of the container is no accident."""
    stored = Session(seen.folder, actor=actor)
    with stored.lock():
        stored.tell("torn down", run=seen.facts.run, reason=reason)
        if runfiles.has_exit(seen.run_folder):
            runfiles.amend_exit(seen.run_folder, torn_down_at=files.stamp())
            stored.touch()


def wait_out_starting(home: str, session: str) -> Observation:
    """The session once nobody is starting it. A run that somebody holds the keeper's lock of is about to start."""
    deadline = time.monotonic() + STARTING_WAIT_S
    while True:
        seen = recover(home, session, actor=RECOVERY)
        created = seen.facts.state == runs.CREATED and is_kept(seen.run_folder) is True
        if not (created or seen.facts.state == runs.STARTING) or time.monotonic() > deadline:
            return seen
        time.sleep(0.02)


def _settled(home: str, session: str) -> Observation:
    """The session once its keeper is gone and its end is written down."""
    seen = recover(home, session, actor=RECOVERY)
    wait_for_keeper_to_leave(seen)
    return recover(home, session, actor=RECOVERY)
