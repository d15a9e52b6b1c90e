"""Why a session has its status: the facts with their source and age, and the rule that made a word of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from hitchpost import wire
from hitchpost.model import record as recs
from hitchpost.model import run as runs
from hitchpost.model.attention import BLOCKED_BY, DONE, ERROR, HOOKS, IDLE, OSC, WORKING
from hitchpost.model.durations import duration
from hitchpost.model.facts import Exit, Facts, is_elsewhere
from hitchpost.model.headline import STALE
from hitchpost.model.pods import DELETED, doubt_of, why_ended, why_waits
from hitchpost.model.status import BLOCKED, UNKNOWN, Status, as_seen, gone_unseen, processes, status
from hitchpost.ops.views import past
from hitchpost.ops.views.moments import moment
from hitchpost.ops.views.observe import Observation, survivors_of_earlier_runs
from hitchpost.ops.views.session_json import to_json
from hitchpost.ops.views.workplace import workspace_of
from hitchpost.runtimes import base
from hitchpost.runtimes.kept import agent_lives, keeper_process, kept, lock_path
from hitchpost.store import files, locks, records, runfiles, story
from hitchpost.terminal import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.ops.views.session_types import Session as SessionJson

SAYS = {
    OSC: "it says itself",
    HOOKS: "its hooks say",
    "acp": "it says over ACP",
    "delivered": "something was sent to it",
}
REPORTED = {
    IDLE: "it is at its prompt",
    WORKING: "it is working",
    DONE: "its turn has ended",
    ERROR: "its turn has ended with an error",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that was seen. ``source`` is a file of the session's folder, or what was looked at."""

    fact: str
    value: str
    source: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """``story`` is what had been told by ``at``, oldest first."""

    seen: Observation
    session: SessionJson
    words: Status
    at: datetime
    rule: str
    facts: tuple[Fact, ...]
    story: tuple[dict[str, object], ...]


def explain(seen: Observation, now: datetime, at: datetime | None = None) -> Explanation:
    """Explain what is true now, or what was at ``at``. Raises ``UsageError`` for a moment that it has no facts of."""
    told = story.read(seen.folder)
    if at is not None:
        seen = past.seen_at(seen, told, at, now)
        told = past.told_by(told, at)
    moment_of = at or now
    words = status(seen.facts, moment_of)
    return Explanation(
        seen=seen,
        session=to_json(seen, moment_of, words),
        words=words,
        at=moment_of,
        rule=rule(seen.facts, words, survivor=_survivor(seen) if at is None else None),
        facts=(*(_present(seen, now) if at is None else _past(seen, at)), *_of_conversation(told, seen.facts.run)),
        story=tuple(told),
    )


# The rule -------------------------------------------------------------------------------------------------------


def _survivor(seen: Observation) -> int | None:
    """The process of an agent that has outlived a keeper it should have ended with: it may refuse that signal."""
    if not base.load(seen.record.runtime).ends_with_keeper or seen.facts.keeper_alive is not False:
        return None
    run = runfiles.read_run(seen.run_folder)
    return run.agent.pid if run is not None and agent_lives(seen.run_folder) else None


def rule(facts: Facts, words: Status, *, survivor: int | None = None) -> str:
    """Which rule gave the word. The rules are tried in this order: record, failed probe, stale, the run's state.

    ``survivor`` is the agent's process, if it has outlived its keeper.
    """
    if words.word in (recs.ARCHIVED, recs.ERROR, recs.SUSPENDED):
        if words.word != facts.record:
            became = f"was {words.reason}" if words.reason == runs.REBOOT else f"failed: {words.reason}"
            return f"the record comes first, and this run {became}, so the session is {words.word}"
        return f"the record is {words.word}, and the record comes first, whatever became of the run"
    if words.word == UNKNOWN:
        why = doubt_of(facts) or "it is unknown whether its keeper is alive"
        if gone_unseen(facts):
            why = "its agent is gone, and a signal has stopped its keeper, which alone knows how it ended"
        return f"{why}, so its status is unknown; its last known state is {facts.state}"
    if words.word == STALE:
        return "the sandbox is alive, but the agent in it is gone, and nobody asked for that"
    if words.word != words.state:
        why = "a person has removed its sandbox since, which counts as a stop"
        return f"the run is {words.state} ({words.reason}), and {why}"
    return _what(words) + _because(facts, words, survivor)


def _what(words: Status) -> str:
    """What became of the run."""
    if words.state != runs.FAILED:
        return runs.MEANINGS[words.state]
    why = words.reason.replace("command killed ", "the command was killed ")
    return f"the run failed: {why.replace('command exited ', 'the command exited ')}"


def _because(facts: Facts, words: Status, survivor: int | None) -> str:
    if facts.state != words.state:
        gone = "its pod has ended" if facts.pod is not None and facts.pod.ended else "its keeper is gone"
        why = gone if facts.keeper_alive is False else "its keeper has not seen that it ended"
        return f"; {facts.state} is recorded, but {why}{_died_with(facts, words, survivor)}"
    if words.state == runs.RUNNING:
        return _running(facts, words)
    if words.state == runs.STARTING and (waits := why_waits(facts.pod)):
        return f"; {waits}"
    if words.state == runs.STOPPED:
        return "; a requested end counts as stopped, whatever the exit code"
    return _died_with(facts, words, survivor)


def _died_with(facts: Facts, words: Status, survivor: int | None) -> str:
    """Why a lost keeper means the end, where it does."""
    unseen = facts.exit is None or not facts.exit.ended_at_known
    child = base.load(facts.runtime).ends_with_keeper and unseen and words.reason in (runs.KEEPER_LOST, runs.SHELL_GONE)
    if child and survivor is not None:
        return f"; the agent, its child, has refused to end with it, and lives on as process {survivor}, unheard"
    return "; the agent, its child, ends with it" if child else ""


def _running(facts: Facts, words: Status) -> str:
    if facts.process_stopped:
        return ", and a signal has stopped it (it can still be ended)"
    if facts.keeper_stopped:
        return ", and a signal has stopped its keeper, which cannot hear or write anything until it gets SIGCONT"
    if facts.keeper_alive is False:
        return ", and its keeper is gone: nobody hears it until a new keeper takes over"
    if words.attention == BLOCKED:
        kind = facts.report.kind if facts.report is not None else None
        return f", and {BLOCKED_BY.get(kind or '', 'it says that it is waiting for a permission')}"
    if facts.report is not None and facts.report.state in REPORTED:
        source = facts.report.source
        return f", and {SAYS.get(source, f'its {source} says')}: {REPORTED[facts.report.state]}"
    if words.idle_s >= facts.idle_after_s:
        return f", and it has been silent for longer than {duration(facts.idle_after_s)}, which counts as idle"
    return ""


# The facts ------------------------------------------------------------------------------------------------------


def _present(seen: Observation, now: datetime) -> list[Fact]:
    record, facts = seen.record, seen.facts
    run = runfiles.read_run(seen.run_folder)
    found = [
        Fact("record", record.record, records.RECORD, moment(record.record_changed_at)),
        Fact("state", f"{facts.state} (run {facts.run})", files.STATE, facts.state_changed_at),
        Fact("keeper", keeper_text(seen), _of_run(seen, wire.KEEPER_LOCK), now),
    ]
    if run is not None and not is_elsewhere(record.runtime):
        value = "the same as the run's" if run.same_boot else "not the run's: the machine has restarted since"
        found.append(Fact("boot", value, _of_run(seen, wire.RUN), now))
    found += _of_ending(seen, facts.exit)
    found += _of_earlier_runs(seen, now)
    found += _of_life(seen, facts)
    for name, alive in (("sandbox", facts.sandbox_alive), ("agent in it", facts.session_alive)):
        if alive is not None:
            found.append(Fact(name, "alive" if alive else "dead", f"the {record.runtime} runtime", now))
    found += _of_pod(seen, now)
    found += _of_runtime(seen, now)
    found.append(Fact("folder", folder_text(seen), "the file system", now))
    if run is not None and run.tier:
        found.append(Fact("protection", run.tier, _of_run(seen, wire.RUN), moment(run.started_at)))
    if seen.problem:
        found.append(Fact("problem", seen.problem, "hitch doctor", now))
    return found


def _of_earlier_runs(seen: Observation, now: datetime) -> list[Fact]:
    """What the runs before this one left behind, and how much of it lives."""
    found = []
    for run, left in survivors_of_earlier_runs(seen).items():
        lives = base.load(seen.record.runtime).leftovers(seen.folder, run)
        seen_now = f"{lives.count} of them alive now" + (f" ({lives.unknown})" if lives.unknown else "")
        found.append(Fact("left behind", f"{processes(left)} by run {run}; {seen_now}", f"runs/{run}/{wire.EXIT}", now))
    return found


def _of_pod(seen: Observation, now: datetime) -> list[Fact]:
    pod = seen.facts.pod
    if pod is None:
        return []
    was_removed = pod.ended and pod.reason == DELETED and pod.run < seen.facts.run
    """A start that failed gives its pod up: that is no reason, but what came of it."""
    ended = ", removed" if was_removed else f", ended: {why_ended(pod)}" if pod.ended else ""
    ended = ended or (", asked to end" if pod.leaving else "")
    found = [Fact("pod", f"{pod.name} (uid {pod.uid}): {pod.phase or 'not made yet'}{ended}", wire.POD, pod.since)]
    if pod.reason and not was_removed:
        found.append(Fact("its reason", f"{pod.reason}: {pod.message}".rstrip(": "), pod.source or wire.POD, pod.since))
    if pod.node:
        ready = {True: "ready", False: "not ready", None: "whether it is ready is not known"}[pod.node_ready]
        last = (
            f"; last sign of life {duration((now - pod.node_seen_at).total_seconds())} ago" if pod.node_seen_at else ""
        )
        found.append(Fact("node", f"{pod.node}: {ready}{', cordoned' if pod.cordoned else ''}{last}", wire.POD, now))
    if not pod.ended:
        link = "up" if pod.unreachable_since is None else "down: no hub reaches its pod"
        found.append(Fact("link", link, wire.POD, pod.unreachable_since))
    return found


def _of_runtime(seen: Observation, now: datetime) -> list[Fact]:
    """What the runtime sees of its own, and whether the command is over."""
    over = as_seen(seen.facts).state not in runs.LIVE
    own = base.load(seen.record.runtime).explain(seen.folder, seen.facts.run, over=over)
    found = [Fact(fact, value, source, now) for fact, value, source in own]
    if found:
        state = "finished" if over else "running"
        found.append(Fact("command", state, files.STATE, seen.facts.state_changed_at))
    return found


def _past(seen: Observation, at: datetime) -> list[Fact]:
    record, facts = seen.record, seen.facts
    found = [
        Fact("record", record.record, files.STORY, moment(record.record_changed_at)),
        Fact("state", f"{facts.state} (run {facts.run})", files.STORY, facts.state_changed_at),
    ]
    if facts.state in runs.LIVE:
        known = {True: "alive", False: "gone", None: "unknown: it was found gone later, and nobody saw it go"}
        found.append(Fact("keeper", known[facts.keeper_alive], files.STORY, at))
    ended = facts.exit is not None and (facts.exit.ended_at is None or facts.exit.ended_at <= at)
    found += _of_ending(seen, facts.exit if ended else None, at)
    found += _of_life(seen, facts)
    return found


def _of_ending(seen: Observation, end: Exit | None, until: datetime | None = None) -> list[Fact]:
    intent = runfiles.read_intent(seen.run_folder)
    asked_at = moment(intent.get("at"))
    found = []
    if intent and (until is None or (asked_at is not None and asked_at <= until)):
        why = f" ({intent['reason']})" if intent.get("reason") else ""
        found.append(Fact("intent", f"{intent.get('by')} asked it to end{why}", _of_run(seen, wire.INTENT), asked_at))
    if end is not None:
        late = "" if end.ended_at_known else "; nobody saw when; this was its last sign of life"
        source = _of_run(seen, wire.EXIT) if runfiles.has_exit(seen.run_folder) else "observed, not recorded yet"
        found.append(Fact("exit", exit_text(end) + late, source, end.ended_at))
        stored = runfiles.read_exit(seen.run_folder)
        used = stored.get("rusage")
        if isinstance(used, dict) and until is None:
            found.append(Fact("used", used_text(used), _of_run(seen, wire.EXIT), end.ended_at))
        ran = until is None and seen.facts.started_at is not None
        if ran and (lost := lost_text(stored.get("lost_output_bytes", 0))):
            found.append(Fact("lost output", lost, _of_run(seen, wire.EXIT), end.ended_at))
    elif seen.facts.state in runs.TERMINAL and seen.facts.keeper_alive is not True:
        found.append(Fact("exit", "nobody saw it", _of_run(seen, wire.EXIT), None))
    return found


def _of_life(seen: Observation, facts: Facts) -> list[Fact]:
    found = []
    if facts.last_activity_at is not None:
        found.append(Fact("last output", "seen", _of_run(seen, wire.OUTPUT), facts.last_activity_at))
    else:
        found.append(Fact("last output", "none yet", _of_run(seen, wire.OUTPUT), None))
    report = facts.report
    if report is not None:
        kind = f", {report.kind}" if report.kind else ""
        about = f": {report.message}" if report.message else ""
        by = f" (by {report.source})" if report.source else ""
        value = f"{report.state}{kind}{by}{about}"
        found.append(Fact("attention", value, _of_run(seen, wire.ATTENTION), report.at))
    return found


def _of_conversation(told: list[dict[str, object]], run: int) -> list[Fact]:
    """Where a resumed agent has said that it is in another conversation than it was to go on with."""
    lines = (line for line in told if (line["event"], line.get("run")) == ("conversation", run) and line.get("asked"))
    return [Fact("conversation", str(line.get("reason")), files.STORY, moment(line["at"])) for line in lines]


def keeper_text(seen: Observation) -> str:
    """Who holds the run's lock: the proof that its keeper lives."""
    if is_elsewhere(seen.facts.runtime):
        known = {True: "in its pod: taken to be alive", False: "gone", None: "in its pod: not reached"}
        return "not started" if seen.facts.state == runs.CREATED else known[seen.facts.keeper_alive]
    found = kept(seen.run_folder)
    if found.doubt and not found.stopped:
        return f"dead: {found.doubt}"
    if found.alive is None:
        return "unknown: its lock cannot be checked"
    if not found.alive:
        held = locks.is_held(lock_path(seen.run_folder))
        where = "another process holds its lock" if held else "its lock is free"
        return "not started" if seen.facts.state == runs.CREATED else f"gone: {where}"
    pid = keeper_process(seen.run_folder)
    if pid is None and not os.path.lexists(lock_path(seen.run_folder)):
        return f"{'stopped by a signal' if found.stopped else 'alive'}: its lock was removed, and its process is there"
    if pid is None:
        return "alive: its lock is held; by whom is not recorded yet"
    return f"{'stopped by a signal' if found.stopped else 'alive'}: its lock is held by pid {pid}"


def folder_text(seen: Observation) -> str:
    record = seen.record
    if is_elsewhere(record.runtime):
        return f"on another machine: {record.folder}"
    wanted = (record.folder_dev, record.folder_ino)
    try:
        here = os.stat(record.folder)
        workspace = workspace_of(os.path.dirname(os.path.dirname(seen.folder)), record)
        if workspace is not None and workspace.path == record.folder and seen.facts.state not in runs.LIVE:
            wanted = (workspace.dev, workspace.ino)  # it may have been restored since the last run
    except OSError as error:
        return f"gone: {record.folder} ({os.strerror(error.errno or 0).lower()})"
    if (here.st_dev, here.st_ino) != wanted:
        return f"another folder is now at {record.folder}"
    return f"present: {record.folder}"


def exit_text(end: Exit) -> str:
    if end.error is not None:
        return end.error
    text = runs.exit_text(end.code, end.signal, end.out_of_memory)
    text += ", core dumped" if end.core_dumped else ""
    text += f", asked by {end.intent}" if end.intent else ", nobody asked"
    return text + (f", {processes(end.survivors)} still there" if end.survivors else "")


def lost_text(lost: object) -> str:
    """How much output is missing, as ``exit.json`` has it; empty when none is."""
    if lost is None or (isinstance(lost, int) and output.counted(lost) is None):
        return "unknown: nobody could count it"
    return f"{lost} bytes" if lost else ""


def used_text(used: Mapping[str, object]) -> str:
    """What the kernel counted of the agent and of those that it waited for; memory is the largest of one process."""

    def number(name: str) -> float:
        found = used.get(name)
        return found if isinstance(found, int | float) else 0.0

    mib, processor_s = number("max_rss_kb") / 1024, number("user_s") + number("system_s")
    return f"{mib:.1f} MiB of memory, {processor_s:.2f} s of CPU time"


def _of_run(seen: Observation, name: str) -> str:
    return f"runs/{seen.facts.run}/{name}"
