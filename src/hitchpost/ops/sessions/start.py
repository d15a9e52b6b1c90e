"""Starting a run: locks are taken first and handed to the keeper open, so no moment is without a holder."""

from __future__ import annotations

import os

from hitchpost.agents import catalog
from hitchpost.agents.catalog import ACP
from hitchpost.agents.prepare import FRESH, RESUME, Conversation
from hitchpost.errors import Refused
from hitchpost.model import run as runs
from hitchpost.model.record import ACTIVE, ARCHIVED, ERROR, SUSPENDED
from hitchpost.ops.sessions import environment, sandbox
from hitchpost.ops.sessions.begin import program_of, start_keeper
from hitchpost.ops.sessions.create import sweep
from hitchpost.ops.sessions.handover import OF_AGENT, handed_over
from hitchpost.ops.sessions.next_run import Claimed, converse
from hitchpost.ops.sessions.recover import RECOVERY, recover, wait_for_keeper_to_leave
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.ops.views.workplace import current
from hitchpost.runspec import PtySource, RunSpec, Source
from hitchpost.runtimes import base, keepers
from hitchpost.runtimes.kept import is_kept, take_lock
from hitchpost.settings import Settings
from hitchpost.store import files
from hitchpost.store.home import home_of, make_run_folder, run_folder
from hitchpost.store.records import Record
from hitchpost.store.session import Session
from hitchpost.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hitchpost.workspaces.store import Workspace


SETTLED = ("workspace_id", "branch", "folder", "folder_dev", "folder_ino", "when_limit", *OF_AGENT)
"""What a record has to say anew when a run begins."""


@value
class Begun:
    """A run that was started. ``notes`` are for the person: what is different from the run before.

    ``resumed``: the agent goes on with its conversation.
    """

    seen: Observation
    notes: tuple[str, ...] = ()
    resumed: bool = False


def start(
    home: str,
    session: str,
    settings: Settings,
    *,
    actor: str,
    caller: Mapping[str, str],
    extra_env: Mapping[str, str] | None = None,
    size: tuple[int, int] = (80, 24),
    argv: tuple[str, ...] | None = None,
    source: Source = PtySource(),  # noqa: B008
    reason: str = "",
    until_ready: bool = True,
    conversation: str = FRESH,
    agent: str = "",
    when_limit: str = "",
    begun: Callable[[], None] = lambda: None,
) -> Begun:
    """Start the first run, or the next one after an end. Raises ``Refused``, ``StartFailed`` or ``BadSettings``.

    Returns when the agent is ready. One that has ended with an error by then is a failed start: ``EndedAtOnce``.
    ``conversation``: whether the agent goes on with its conversation, where it has one, or begins another. ``agent``
    and ``when_limit`` change those of the session; ``handed_over`` says which agent may. ``begun`` is called when the
    run has begun, before its agent is ready.
    """
    sweep(home)
    seen, place, workspace = _ready_to_start(home, session, actor)
    if agent:
        place = handed_over(place, agent)
    if when_limit:
        place = replace(place, when_limit=when_limit)
    stored = Session(seen.folder, actor=actor)
    with keepers.Ahead(run_folder(seen.folder, seen.facts.next_run), wanted=place.runtime in base.KEPT_AT_ONCE):
        program = program_of(home, place, settings, caller, extra_env or {}, argv)
        box = sandbox.of_run(home, place, settings, extra_env or {}, workspace, program.flags)
        if box is not None:
            # nothing reaches into a container: only its own reports are heard, and its files end with it
            program = replace(program, agent=None, sandbox=box)
        claimed = _claim(stored, seen, place, workspace, program.agent, conversation, reason)
        spec = start_keeper(home, place, settings, claimed, program, source, size)
    _activate(stored, claimed.run)
    begun()
    if not until_ready:
        return Begun(observe(home, session), _notes(seen, place, spec, program.agent, claimed.conversation))
    from hitchpost.ops.sessions.ready import ready  # the agent has begun meanwhile

    resumed = claimed.conversation.how == RESUME
    now, not_ready = ready(home, seen.record, claimed.run, claimed.folder, watched=spec.reports, resumed=resumed)
    another = _why_another(seen.folder, program.agent, claimed)
    notes = _notes(seen, place, spec, program.agent, claimed.conversation, another)
    return Begun(now, (*notes, *not_ready), claimed.conversation.how != FRESH and not another)


def _ready_to_start(home: str, session: str, actor: str) -> tuple[Observation, Record, Workspace | None]:
    """The session, its record at the place where it works now, and its workspace. What the run before has left behind
    is ended, where the agent may be among it. Raises ``Refused``."""
    seen = recover(home, session, actor=RECOVERY)
    _refuse_closed(seen.record)
    place, workspace = current(home, seen)
    sandbox.refuse_mounts(home, seen.record.sandbox, place.folder, workspace)
    if seen.facts.state != runs.ORPHANED:
        wait_for_keeper_to_leave(seen)
    if _may_be_copies(seen):
        from hitchpost.ops.sessions.survivors import end_survivors

        seen = end_survivors(home, seen, actor)
    return seen, place, workspace


def _claim(
    stored: Session,
    seen: Observation,
    place: Record,
    workspace: Workspace | None,
    agent: catalog.Agent | None,
    conversation: str,
    reason: str,
) -> Claimed:
    """Take the next run: its lease, its number, its folder, its keeper's lock and the state ``starting``.

    Raises ``Refused`` or ``WorkspaceBusy``.
    """
    home = home_of(seen.folder)
    if seen.facts.state == runs.ORPHANED:
        _allowed_run(seen, seen)  # an agent that lives on holds the lease itself
    leases = _leases(home, seen, workspace)
    lock = -1
    try:
        with stored.lock():
            now = observe(home, seen.record.id)
            run = _allowed_run(seen, now)
            where = make_run_folder(seen.folder, run)
            lock = take_lock(where, seen.record.name)
            if now.facts.state != runs.CREATED:
                stored.next_run(reason=reason)
            _touch(stored, now)
            _settle(stored, place, run)
            talk = converse(stored, agent, conversation)
            stored.transition(runs.STARTING, run=run, reason=reason, locked=True)
    except BaseException:  # also of what a fleet does not take when its lock is given back
        if lock >= 0:
            os.close(lock)
        _close(leases)
        raise
    return Claimed(run, where, lock, leases, talk)


def _why_another(folder: str, agent: catalog.Agent | None, claimed: Claimed) -> str:
    """Why the agent has not gone on with its conversation, where it was to and says that it could not."""
    if agent is None or agent.adapter != ACP or claimed.conversation.how == FRESH:
        return ""
    from hitchpost.acp import chat

    return chat.why_another(folder, claimed.run)


def _notes(
    seen: Observation,
    place: Record,
    spec: RunSpec,
    agent: catalog.Agent | None,
    talk: Conversation,
    another: str = "",
) -> tuple[str, ...]:
    """What a person should know of the run: what is different from the one before, which was ``seen``."""
    before = spec.run - 1
    missing = environment.missing_names(seen.folder, before, map(os.fsdecode, spec.env))
    notes = environment.told_missing(missing, before)
    if before and agent is not None and agent.conversation:
        goes_on = another or "it goes on with its conversation"
        notes.append("it begins a new conversation" if talk.how == FRESH else goes_on)
    if place.agent != seen.record.agent:
        notes.append(f"handed over from {catalog.title(seen.record.agent)} to {catalog.title(place.agent)}")
    return tuple(notes)


def _may_be_copies(seen: Observation) -> bool:
    """Whether the last run ended unseen and left processes: the agent may be among them, and must not run twice."""
    end = seen.facts.exit
    return seen.facts.state in runs.TERMINAL and end is not None and end.survivors > 0 and not end.ended_at_known


def _leases(home: str, seen: Observation, workspace: Workspace | None) -> tuple[int, ...]:
    """The lease of the workspace, which the keeper will hold for its life. Raises ``WorkspaceBusy``."""
    if workspace is None:
        return ()
    from hitchpost.workspaces import lease

    record, run = seen.record, seen.facts.next_run
    return (lease.take(home, workspace, session=record.id, name=record.name, run=run, share=record.share),)


def _settle(stored: Session, current: Record, run: int) -> None:
    """Write down where the session's workspace is now, and what runs there. The caller holds the session's lock."""
    record = stored.record()
    now = {name: getattr(current, name) for name in SETTLED}
    if record.agent != current.agent:
        stored.tell("agent", run=run, reason=f"handed over from {record.agent} to {current.agent}")
    if any(getattr(record, name) != item for name, item in now.items()):
        stored.save(replace(record, **now))


def _close(fds: tuple[int, ...]) -> None:
    for fd in fds:
        os.close(fd)


def _refuse_closed(record: Record) -> None:
    if record.record in (ARCHIVED, ERROR):
        from hitchpost.ops.views.advice import no_run

        raise no_run(record)


def _allowed_run(before: Observation, now: Observation) -> int:
    """The number of the run that may start now. Raises ``Refused``. The caller holds the session's lock.

    ``before`` is what the run's folder and lease were chosen by.
    """
    record, facts = now.record, now.facts
    _refuse_closed(record)
    if (record.folder, record.workspace_id) != (before.record.folder, before.record.workspace_id):
        raise Refused(f"{record.name} has just been moved to {record.folder}; try again")
    if facts.state == runs.CREATED:
        return facts.run
    if facts.state not in runs.TERMINAL:
        raise Refused(f"{record.name} is {facts.state}", f"hitch restart {record.word} stops it first")
    if is_kept(now.run_folder) is not False:
        raise Refused(f"{record.name}: run {facts.run} is not over yet", f"hitch stop {record.word} ends it")
    return facts.next_run


def _touch(stored: Session, ended: Observation) -> None:
    """A run begins: the time of the runs before is kept, and how many processes they have left behind."""
    facts, record = ended.facts, stored.record()
    if facts.state != runs.CREATED:
        from hitchpost.model.status import status, survivors

        record = replace(
            record,
            earlier_runs_s=status(facts, facts.state_changed_at or facts.created_at).total_s,
            earlier_survivors=survivors(facts),
        )
    stored.save(replace(record, last_active_at=files.stamp()))


def _activate(stored: Session, run: int) -> None:
    """The run runs, so the record is active."""
    if stored.record().record == SUSPENDED:
        with stored.lock():
            if stored.record().record == SUSPENDED:
                stored.change_record(ACTIVE, run=run, reason="a run started")
