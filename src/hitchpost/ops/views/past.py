"""A session as it was at an earlier moment: the story and the time index become facts again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hitchpost import wire
from hitchpost.errors import UsageError
from hitchpost.model import record as recs
from hitchpost.model import rhythm
from hitchpost.model import run as runs
from hitchpost.model.durations import seconds_between
from hitchpost.model.facts import Exit, Facts, Report
from hitchpost.model.status import gone_unseen, last_sign_of_life
from hitchpost.ops.views.moments import moment, rfc3339
from hitchpost.ops.views.observe import Observation, read_exit, read_report, report_of
from hitchpost.store.home import run_folder
from hitchpost.terminal import output
from hitchpost.values import replace

Line = dict[str, object]


@dataclass(slots=True)
class Told:
    """What the story had told by a moment."""

    run: int = 1
    state: str = runs.CREATED
    changed_at: datetime | None = None
    started_at: datetime | None = None
    record: str = recs.ACTIVE
    record_changed_at: datetime | None = None
    earlier_runs_s: float = 0.0
    earlier_survivors: int = 0
    ended_by: Line | None = None

    def take(self, line: Line) -> None:
        at = moment(line["at"])
        if line["event"] in ("created", "run") and isinstance(line.get("run"), int):
            if self.started_at is not None and self.changed_at is not None:
                self.earlier_runs_s += seconds_between(self.started_at, self.changed_at)
            self.earlier_survivors += _left_by(self.ended_by)
            self.run, self.state, self.changed_at = int(str(line["run"])), runs.CREATED, at
            self.started_at, self.ended_by = None, None
        elif line["event"] == "state" and line.get("run") == self.run and line.get("to") in runs.TRANSITIONS:
            self.state, self.changed_at = str(line["to"]), moment(line.get("since")) or at
            if self.state == runs.RUNNING:
                self.started_at = at
            elif self.state in runs.TERMINAL:
                self.ended_by = line
        elif line["event"] == "survivors":
            self.earlier_survivors = 0
        elif line["event"] == "record" and line.get("to") in recs.RECORD_TRANSITIONS:
            self.record, self.record_changed_at = str(line["to"]), moment(line.get("since")) or at


def seen_at(seen: Observation, story: Sequence[Line], at: datetime, now: datetime) -> Observation:
    """``seen`` as it was at ``at``. Raises ``UsageError`` for a moment before its creation or in the future.

    A run whose keeper vanished unseen is ``unknown`` from its last sign of life until somebody found out.
    """
    name, created_at = seen.record.name, seen.facts.created_at
    if at < created_at:
        raise UsageError(f"{name} was created at {rfc3339(created_at)}; there is nothing to tell about {rfc3339(at)}")
    if at > now:
        raise UsageError(f"{rfc3339(at)} is in the future; it is {rfc3339(now)} now")
    told = Told(changed_at=created_at)
    for line in told_by(story, at):
        told.take(line)
    where = run_folder(seen.folder, told.run)
    activity = [found for found in output_times(where) if found[0] <= at]
    times_s = ((found.timestamp(), follows_input) for found, follows_input in reversed(activity))
    busy_since, longest_pause_s = rhythm.stretch(times_s, seen.facts.quiet_after_s, seen.facts.idle_after_s)
    facts = replace(
        seen.facts,
        state=told.state,
        state_changed_at=told.changed_at,
        record=told.record,
        run=told.run,
        started_at=told.started_at,
        last_activity_at=activity[-1][0] if activity else None,
        busy_since=None if busy_since is None else datetime.fromtimestamp(busy_since, UTC),
        longest_pause_s=longest_pause_s,
        last_alive_at=None,
        earlier_runs_s=told.earlier_runs_s,
        earlier_survivors=told.earlier_survivors,
        exit=None,
        report=None,
        keeper_alive=None,
        same_boot=None,
        sandbox_alive=None,
        session_alive=None,
        sandbox_paused=False,
        process_stopped=False,
        keeper_stopped=False,
        doubt="",
        probe_failed=False,
        workspace_missing=told.state == runs.ORPHANED,
    )
    if told.state in runs.TERMINAL:
        facts = _ended(facts, told, where, at)
    elif told.state != runs.CREATED:
        facts = _alive(facts, seen.facts, story, where, at)
    changed = rfc3339(told.record_changed_at) or seen.record.created_at
    return replace(seen, record=replace(seen.record, record=told.record, record_changed_at=changed), facts=facts)


def told_by(story: Sequence[Line], at: datetime) -> list[Line]:
    """The lines of the story up to ``at``."""
    return [line for line in story if (moment(line["at"]) or at) <= at]


def output_times(where: str) -> list[tuple[datetime, bool]]:
    """When a run's log grew, as far as the time index has it, and whether somebody had typed before."""
    found = []
    reached = 0
    follows_input = False
    for entry in output.moments(os.path.join(where, wire.OUTPUT)):
        if entry.kind == wire.AT_OFFSET and entry.value > reached:
            reached = entry.value
            found.append((datetime.fromtimestamp(entry.at, UTC), follows_input))
        follows_input = entry.kind == wire.AT_INPUT
    return found


def _ended(facts: Facts, told: Told, where: str, at: datetime) -> Facts:
    end = read_exit(where)
    if end is not None and end.torn_down_at is not None and end.torn_down_at > at:
        end = replace(end, torn_down_at=None)
    if told.state == runs.ORPHANED:
        over = end is not None and end.ended_at is not None and end.ended_at <= at
        return replace(facts, exit=end if over else None, keeper_alive=False if over else None)
    if end is None and told.ended_by is not None:
        end = _exit_from_story(told.ended_by)
    return replace(facts, exit=end, keeper_alive=False)


def _left_by(line: Line | None) -> int:
    """How many processes a run had left behind, as the line that tells of its end has it."""
    evidence = line.get("evidence") if line is not None else None
    known = evidence if isinstance(evidence, dict) else {}
    left = known.get("survivors", known.get("processes_left"))
    return left if isinstance(left, int) else 0


def _exit_from_story(line: Line) -> Exit:
    evidence = line.get("evidence")
    known = evidence if isinstance(evidence, dict) else {}
    code, signal = known.get("code"), known.get("signal")
    if isinstance(code, int) or isinstance(signal, str):
        return Exit(
            code=code if isinstance(code, int) else None,
            signal=signal if isinstance(signal, str) else None,
            intent=runs.USER if line.get("to") == runs.STOPPED else None,
            ended_at=moment(line["at"]),
        )
    return Exit(error=str(line.get("reason") or runs.UNSEEN), ended_at=moment(line["at"]))


def _reported(story: Sequence[Line], run: int, where: str, at: datetime) -> Report | None:
    """What the agent was doing, as the story has it. Older runs have only their last report."""
    told = [line for line in story if line["event"] == "attention" and line.get("run") == run]
    if not told:
        report = read_report(where)
        return report if report is not None and report.at <= at else None
    known = told_by(told, at)
    return report_of(known[-1]) if known and known[-1].get("state") != "clear" else None


def _alive(facts: Facts, present: Facts, story: Sequence[Line], where: str, at: datetime) -> Facts:
    """Whether the run lived at ``at``: proved by its keeper's own words, then or later, else by its output."""
    facts = replace(facts, report=_reported(story, facts.run, where, at))
    following = (line for line in story if line.get("run") == facts.run and line["event"] == "state")
    end = next((line for line in following if line.get("to") in runs.TERMINAL), None)
    seen_end = read_exit(where)
    current = present.run == facts.run
    if seen_end is not None and not seen_end.ended_at_known:
        known_until = seen_end.ended_at
    else:
        known_until = last_sign_of_life(present) if current and gone_unseen(present) else None
    if known_until is not None:
        alive = at <= known_until
        return replace(facts, keeper_alive=True if alive else None, probe_failed=not alive)
    kept = current and present.keeper_alive is True
    if kept if end is None else end.get("actor") == "keeper":
        return replace(facts, keeper_alive=True)
    if seen_end is not None and seen_end.ended_at is not None:
        over = seen_end.ended_at <= at
        return replace(facts, keeper_alive=not over, exit=seen_end if over else None)
    if any(found >= at for found, _ in output_times(where)):
        return replace(facts, keeper_alive=True)
    return replace(facts, probe_failed=True)
