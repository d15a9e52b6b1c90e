"""Looking at a session: files and locks become facts. Nothing is written and nothing is judged here."""

from __future__ import annotations

import os
import time
from _operator import attrgetter

from hitchpost import wire
from hitchpost.errors import NoSuchSession
from hitchpost.model import rhythm
from hitchpost.model import run as runs
from hitchpost.model.facts import Changes, Exit, Facts, Report, is_elsewhere
from hitchpost.ops.views import moments
from hitchpost.runtimes import base
from hitchpost.store import files, records, runfiles
from hitchpost.store.home import run_folder, session_folder
from hitchpost.store.records import Record
from hitchpost.store.session import State, read_changes, read_state, seen_at
from hitchpost.terminal import output
from hitchpost.values import fields, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from hitchpost.model.facts import Pod

DYING_S = 0.3
NEVER = moments.at(0)
NO_RHYTHM = (None, 0.0)
seen_of_health = attrgetter(
    "keeper_alive",
    "sandbox_alive",
    "session_alive",
    "sandbox_paused",
    "process_stopped",
    "keeper_stopped",
    "lost",
    "doubt",
)

OF_THE_LIVING: dict[str, Any] = {
    "keeper_alive": False,
    "report": None,
    "same_boot": None,
    "lost": "",
    "left": 0,
    "process_stopped": False,
    "keeper_stopped": False,
    "doubt": "",
    "probe_failed": False,
}
"""What is looked up while a run lives, as it is after its end."""


@value
class Observation:
    """A session as it was found. ``problem`` says which file could not be read; the facts are then from the story."""

    record: Record
    facts: Facts
    folder: str
    problem: str = ""

    @property
    def run_folder(self) -> str:
        return run_folder(self.folder, self.facts.run)


def observe(home: str, session: str) -> Observation:
    """Raises ``NoSuchSession`` when it is not there, ``NewerSchema`` when a newer version wrote it."""
    folder = session_folder(home, session)
    problems = []
    record, problem = _record(folder)
    problems.append(problem)
    state, problem = _state(folder, record)
    problems.append(problem)
    return Observation(record, facts(folder, record, state), folder, "; ".join(filter(None, problems)))


def with_activity(seen: Observation) -> Observation:
    """``seen`` with the time at which output came last, now; the same one where that is known already."""
    written = output.last_written(f"{seen.run_folder}/{wire.OUTPUT}")
    if written is None:
        return seen
    is_guess = seen.facts.report is None
    busy_since, longest_pause_s = _rhythm(seen.run_folder, written, seen.record) if is_guess else NO_RHYTHM
    facts = replace(
        seen.facts, last_activity_at=moments.at(written), busy_since=busy_since, longest_pause_s=longest_pause_s
    )
    return seen if facts == seen.facts else replace(seen, facts=facts)


def as_it_was(seen: Observation) -> bool:
    """Whether what no file tells is still as it was seen: keeper, agent and sandbox, alive or stopped."""
    facts = seen.facts
    if facts.state == runs.CREATED or seen.problem:
        return not seen.problem
    health = base.load(seen.record.runtime).health(seen.folder, facts.run, session=seen.record.id)
    if facts.state in runs.TERMINAL and facts.state != runs.ORPHANED:
        return (health.sandbox_alive, health.sandbox_paused) == (facts.sandbox_alive, facts.sandbox_paused)
    is_same = seen_of_health(health) == seen_of_health(facts)
    return is_same and facts.probe_failed == (health.probe_failed or health.keeper_alive is None)


def ended(seen: Observation, message: dict[str, object]) -> Observation | None:
    """``seen`` as a look will find it, now that its keeper has told the run's end, which it has written down before.

    None when the keeper's word is not all that a look needs, or could not be written.
    """
    changed_at, state, end, written = (
        moments.moment(message.get("changed_at")),
        message.get("state"),
        message["exit"],
        message["written_at"],
    )
    is_end = state in runs.TERMINAL and state != runs.ORPHANED and seen.facts.state in runs.LIVE
    if not is_end or changed_at is None or seen.problem or seen.facts.has_sandbox:
        return None
    last_activity_at = moments.at(written) if isinstance(written, float) else seen.facts.last_activity_at
    assert isinstance(end, dict)
    return replace(
        seen,
        facts=replace(
            seen.facts,
            state=str(state),
            state_changed_at=changed_at,
            last_activity_at=last_activity_at,
            busy_since=None,
            longest_pause_s=0.0,
            exit=exit_of(end),
            **OF_THE_LIVING,
        ),
    )


def facts(folder: str, record: Record, state: State | None) -> Facts:
    created_at = moments.moment(record.created_at) or NEVER
    if state is None:
        return Facts(created_at=created_at, record=record.record, runtime=record.runtime, probe_failed=True)
    where = run_folder(folder, state.run)
    run = runfiles.read_run(where)
    written = output.last_written(os.path.join(where, wire.OUTPUT))
    known = Facts(
        created_at=created_at,
        state=state.state,
        state_changed_at=moments.moment(state.state_changed_at),
        record=record.record,
        record_changed_at=moments.moment(record.record_changed_at),
        runtime=record.runtime,
        run=state.run,
        started_at=None if run is None else moments.moment(run.started_at),
        last_activity_at=moments.moment(state.last_activity_at) if written is None else moments.at(written),
        last_alive_at=_last_alive(where),
        supports_resume=record.supports_resume,
        idle_after_s=record.idle_after_s,
        quiet_after_s=record.quiet_after_s,
        earlier_runs_s=record.earlier_runs_s,
        earlier_survivors=record.earlier_survivors,
        changes=changes_of(read_changes(folder)),
        seen_at=moments.moment(seen_at(folder)),
        snoozed_until=moments.moment(record.snoozed_until) if record.snoozed_until else None,
        when_limit=record.when_limit,
        gone_on_from=moments.moment(record.gone_on_from) if record.gone_on_from else None,
        gone_on_at=moments.moment(record.gone_on_at) if record.gone_on_at else None,
        gone_on_known=record.gone_on_known,
        has_work=record.git is not None or record.branch is not None or _is_cloned(record),
        has_workspace=record.workspace_id is not None and record.branch is not None,
        pod=_pod(folder) if is_elsewhere(record.runtime) else None,
    )
    if state.state in runs.TERMINAL and state.state != runs.ORPHANED:
        ended = replace(known, exit=read_exit(where), keeper_alive=False)
        if not known.has_sandbox:
            return ended
        health = base.load(record.runtime).health(folder, state.run, session=record.id)
        paused = health.sandbox_paused
        return replace(ended, sandbox_alive=health.sandbox_alive, session_alive=False, sandbox_paused=paused)
    if state.state == runs.CREATED:
        return known
    # the lock before the exit: a keeper that ends between the two looks has written its exit by then
    health = base.load(record.runtime).health(folder, state.run, session=record.id)
    alive = health.keeper_alive
    same_boot = None if run is None or is_elsewhere(record.runtime) else run.same_boot
    exit = read_exit(where) or _seen_exit(where, health.exit) if alive is False else None
    unseen = alive is False and exit is None and health.session_alive is not True and same_boot is not False
    report = read_report(where) if alive else None
    busy_since, longest_pause_s = _rhythm(where, written, record) if report is None else NO_RHYTHM
    return replace(
        known,
        exit=exit,
        left=left_behind(record.runtime, folder, state.run).count if unseen else 0,
        report=report,
        busy_since=busy_since,
        longest_pause_s=longest_pause_s,
        keeper_alive=alive,
        same_boot=same_boot,
        sandbox_alive=health.sandbox_alive,
        session_alive=health.session_alive,
        sandbox_paused=health.sandbox_paused,
        process_stopped=health.process_stopped,
        probe_failed=health.probe_failed or alive is None,
        lost=health.lost,
        keeper_stopped=health.keeper_stopped,
        doubt=health.doubt,
        workspace_missing=state.state == runs.ORPHANED,
        folder_back=state.state == runs.ORPHANED and _is_back(folder, record),
    )


def _is_cloned(record: Record) -> bool:
    return is_elsewhere(record.runtime) and record.repository != ""


def _pod(folder: str) -> Pod | None:
    from hitchpost.runtimes.pod_file import read_pod

    return read_pod(folder)


def _is_back(folder: str, record: Record) -> bool:
    from hitchpost.ops.views.workplace import is_there

    return is_there(os.path.dirname(os.path.dirname(folder)), record)


def left_behind(runtime: str, folder: str, run: int) -> base.Leftovers:
    """What a lost keeper has left. It may be dying: its parent-death signal and its terminal's end take a moment."""
    found = base.load(runtime)
    deadline = time.monotonic() + DYING_S
    while (left := found.leftovers(folder, run)).count and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def survivors_of_earlier_runs(seen: Observation) -> dict[int, int]:
    """How many processes each run before this one has left behind, as far as anybody has looked since."""
    if not seen.record.earlier_survivors:
        return {}
    ends = {run: read_exit(run_folder(seen.folder, run)) for run in range(1, seen.facts.run)}
    return {run: end.survivors for run, end in ends.items() if end is not None and end.survivors}


def read_exit(where: str) -> Exit | None:
    return exit_of(runfiles.read_exit(where))


def read_intent(where: str) -> str | None:
    """Who asked the run to end; None when nobody has."""
    by = runfiles.read_intent(where).get("by")
    return by if isinstance(by, str) else None


def _seen_exit(where: str, end: Exit | None) -> Exit | None:
    """An end that another than the keeper saw, with who asked for it."""
    return None if end is None else replace(end, intent=read_intent(where))


def exit_of(value: dict[str, object]) -> Exit | None:
    """The end of a run as ``exit.json`` has it, or as its keeper tells it."""
    if not value:
        return None

    def number(key: str) -> int | None:
        item = value.get(key)
        return item if isinstance(item, int) else None

    def text(key: str) -> str | None:
        item = value.get(key)
        return item if isinstance(item, str) else None

    return Exit(
        code=number("code"),
        signal=text("signal"),
        signal_number=number("signal_number"),
        core_dumped=value.get("core_dumped") is True,
        intent=text("intent"),
        error=text("error"),
        survivors=number("survivors" if number("survivors_now") is None else "survivors_now") or 0,
        attention=text("attention"),
        ended_at=moments.moment(value.get("ended_at")),
        ended_at_known=value.get("ended_at_known") is not False,
        torn_down_at=moments.moment(value.get("torn_down_at")),
        out_of_memory=value.get("out_of_memory") is True,
    )


def _record(folder: str) -> tuple[Record, str]:
    try:
        return records.read(folder), ""
    except files.Unreadable as error:
        if not os.path.isdir(folder):
            raise NoSuchSession(os.path.basename(folder)) from None
        return records.from_story(folder), str(error)


def _state(folder: str, record: Record) -> tuple[State | None, str]:
    try:
        return read_state(folder), ""
    except files.Unreadable as error:
        from hitchpost.store import story

        value = story.rebuilt_state(folder, record.id, record.workspace_id or "")
        state = None if value is None else State(**{key: value[key] for key in value if key in fields(State)})  # type: ignore[arg-type]
        return state, str(error)


def read_report(where: str) -> Report | None:
    return report_of(runfiles.read_report(where))


def report_of(value: dict[str, object]) -> Report | None:
    """What the agent is doing, as ``attention.json`` and the story have it."""
    at, state = moments.moment(value.get("at")), value.get("state")
    if at is None or not isinstance(state, str):
        return None

    def text(key: str) -> str | None:
        item = value.get(key)
        return item if isinstance(item, str) and item else None

    options, background = value.get("options"), value.get("background")
    return Report(
        state=state,
        source=str(value.get("source")),
        at=at,
        kind=text("kind"),
        message=text("message"),
        request=text("request"),
        options=tuple(map(str, options)) if isinstance(options, list) else (),
        takes_text=value.get("takes_text") is True,
        background=background if isinstance(background, int) else 0,
        until=text("until"),
        ends_at=moments.moment(value.get("ends_at")),
    )


def changes_of(value: dict[str, object]) -> Changes | None:
    """As ``changes.json`` has them."""
    at, counts = moments.moment(value.get("at")), [value.get(key) for key in ("files", "added", "deleted")]
    files, added, deleted = (count if isinstance(count, int) else 0 for count in counts)
    return None if at is None else Changes(files, added, deleted, at)


def _rhythm(where: str, written: float | None, record: Record) -> tuple[datetime | None, float]:
    """Since when the agent prints, and its longest pause lately. Nothing of one that is quiet, nor is that read again
    once it was silent for long: time alone changes nothing about it then."""
    thresholds = record.quiet_after_s, record.idle_after_s
    if written is None or time.time() - written > rhythm.break_s(*thresholds):
        return NO_RHYTHM
    known = output.times_back(os.path.join(where, wire.OUTPUT), record.quiet_after_s / rhythm.CLEARLY)
    since, longest_pause_s = rhythm.stretch(known, *thresholds)
    if time.time() - written > rhythm.allowed_s(longest_pause_s, *thresholds):
        return NO_RHYTHM
    return None if since is None else moments.at(since), longest_pause_s


def _last_alive(where: str) -> datetime | None:
    """When the keeper last touched its lock: a sign of life that it gives now and then."""
    try:
        return moments.at(os.stat(os.path.join(where, wire.KEEPER_LOCK)).st_mtime)
    except OSError:
        return None
