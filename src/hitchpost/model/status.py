"""``status(facts, now)``: the one place where facts become words.

The CLI, the API, the page and notifications all read its result, so no two of them can disagree. Other vocabularies for
the same facts are in ``compat.py``.
"""

from __future__ import annotations

from hitchpost.model import limits, pods, record, rhythm, run
from hitchpost.model.actions import actions
from hitchpost.model.durations import duration, seconds_between
from hitchpost.model.facts import ADOPTED, Exit, Facts, is_elsewhere
from hitchpost.model.headline import STALE, end_left_s, headline, in_label, no_prompt
from hitchpost.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

UNKNOWN = "unknown"
STALE_NOTE = "(container running, session dead)"
STALE_POD_NOTE = "(pod running, session dead)"
WORKING, IDLE, WAITING, BLOCKED, DONE, ERROR = "working", "idle", "waiting", "blocked", "done", "error"

REPORTED: dict[str, str] = {
    "idle": WAITING,
    "working": WORKING,
    "blocked": BLOCKED,
    "done": DONE,
    "error": ERROR,
    "unknown": UNKNOWN,
}
"""OSC 7501's words and the attention that each asks for. An agent that sits at its prompt wants one."""

QUIET = (IDLE, WAITING, BLOCKED, DONE)
FOREVER_S = float("inf")
ROUNDED_S = 1e-5
"""Words are made anew so long before they may change: seconds are rounded."""
WANTS_A_PERSON = (WAITING, BLOCKED, DONE, ERROR)


@value
class Status:
    """Every word that a person reads about a session, at one moment."""

    word: str
    label: str
    state: str
    reason: str
    attention: str
    headline: str
    detail: str
    since: datetime | None
    rank: int
    glyph: str
    colour: str
    section: str
    actions: tuple[str, ...]
    session_alive: bool | None
    idle_s: float
    in_status_s: float
    total_s: float
    total_grows: bool
    live: bool
    takes_prompt: bool
    refusal: str | None
    quiet_since: datetime | None
    counting: str
    """How the label begins, up to the time that it counts since ``quiet_since``; empty when it counts none."""
    holds_s: float
    """For so long, the same facts have the same words. Only seconds go on; ``label_after`` has the label then."""


def settle(facts: Facts) -> Facts:
    """What the facts amount to once a keeper is known to be gone: the run has ended, seen or unseen.

    Readers use it to say the truth before anybody has written it down; recovery writes down what it returns.
    """
    if facts.state not in run.LIVE or facts.keeper_alive is not False:
        return facts
    if facts.exit is not None:
        return _ended(facts, facts.exit)
    if lives_on(facts):
        return facts
    rebooted = facts.same_boot is False
    error = run.REBOOT if rebooted else facts.lost or run.KEEPER_LOST
    ended_at = last_sign_of_life(facts)
    ended = replace(
        facts,
        state=run.FAILED,
        state_changed_at=ended_at,
        exit=Exit(error=error, ended_at=ended_at, ended_at_known=False, survivors=facts.left),
    )
    if error in run.INTERRUPTIONS and facts.record == record.ACTIVE:
        return replace(ended, record=record.SUSPENDED, record_changed_at=ended_at)
    return ended


def lives_on(facts: Facts) -> bool:
    """Whether the agent has outlived its keeper: nobody sees its output or its end until a new keeper takes it over."""
    lost = facts.state in (run.RUNNING, run.STOPPING) and facts.keeper_alive is False
    return lost and facts.exit is None and facts.session_alive is True and facts.same_boot is not False


def last_sign_of_life(facts: Facts) -> datetime | None:
    """The last moment at which the run is known to have lived: time after it counts as no work of the agent."""
    signs = (facts.started_at, facts.state_changed_at, facts.last_activity_at, facts.last_alive_at)
    return max(filter(None, signs), default=None)


def gone_unseen(facts: Facts) -> bool:
    """Whether the agent is gone, and its keeper, which a signal has stopped, has not seen that."""
    return facts.keeper_stopped and facts.probe_failed


def _ended(facts: Facts, end: Exit) -> Facts:
    state, _ = run.outcome(facts.state, end.code, end.signal, end.intent, end.error)
    return replace(facts, state=state, exit=end, state_changed_at=end.ended_at or facts.state_changed_at)


def as_seen(facts: Facts) -> Facts:
    """``settle``, and what was seen of a running agent before anybody wrote it down: words need it at once.

    Not for recovery: while its keeper lives, the keeper alone writes.
    """
    facts = settle(facts)
    if facts.state != run.RUNNING:
        return facts
    if facts.workspace_missing:
        return replace(facts, state=run.ORPHANED)
    if is_stale(facts):
        return _ended(facts, facts.exit or Exit())
    # an agent runs from its start on; that is written down a moment later
    return replace(facts, state_changed_at=facts.started_at or facts.state_changed_at)


def torn_down(facts: Facts) -> bool:
    """Whether a person has removed the sandbox that an ended run had left: whatever the run was, that is a stop."""
    asked = facts.exit is not None and facts.exit.torn_down_at is not None
    return asked and facts.state in run.TERMINAL and facts.sandbox_alive is not True


def as_told(facts: Facts) -> Facts:
    """``as_seen``, with what a person has done since the run ended."""
    facts = as_seen(facts)
    if facts.exit is None or facts.state == run.STOPPED or not torn_down(facts):
        return facts
    return replace(facts, state=run.STOPPED, state_changed_at=facts.exit.torn_down_at)


def reason(facts: Facts) -> str:
    """Why the run is in its final state; empty while it lives."""
    if facts.state == run.ORPHANED:
        return run.WORKSPACE_GONE
    if facts.state not in run.TERMINAL:
        return ""
    if facts.exit is None:
        return run.UNSEEN
    end = facts.exit
    return run.verdict(end.code, end.signal, end.intent, end.error, end.out_of_memory)[1]


def session_alive(facts: Facts) -> bool | None:
    """Whether the agent's process lives: what the runtime saw, else what the keeper's lock proves."""
    if facts.probe_failed:
        return None
    if facts.session_alive is not None:
        return facts.session_alive
    if facts.state in (run.RUNNING, run.STOPPING, run.ORPHANED):
        return facts.keeper_alive
    return False


def rests(facts: Facts) -> bool:
    """Whether a prompt starts the next run: the process had done its work, or was ended because it was idle.

    What has crashed, or was stopped by a person, waits for a person.
    """
    facts = settle(facts)
    reaped = facts.state == run.STOPPED and facts.exit is not None and facts.exit.intent == run.REAPER
    can_start = facts.record == record.ACTIVE and facts.runtime != ADOPTED
    return can_start and (facts.state == run.COMPLETED or reaped)


def takes_prompt(facts: Facts) -> bool:
    """Whether a prompt has somewhere to go: to an agent that runs, or to the next run of one that rests.

    An agent that waits for a permission may still refuse it.
    """
    return (facts.record in record.TAKES_INPUT and as_seen(facts).state == run.RUNNING) or rests(facts)


def never_ran(facts: Facts) -> bool:
    """Whether the start failed: there never was a process of the agent."""
    return facts.exit is not None and facts.exit.error is not None and facts.started_at is None


def interrupted(facts: Facts) -> bool:
    return facts.exit is not None and facts.exit.error in run.INTERRUPTIONS


def sandbox_gone(facts: Facts) -> bool:
    return facts.has_sandbox and facts.sandbox_alive is False and not never_ran(facts)


def is_stale(facts: Facts) -> bool:
    """Whether the sandbox is up, the agent that ran in it is gone, and nobody asked for that."""
    if not facts.has_sandbox or facts.sandbox_paused or never_ran(facts):
        return False
    if facts.state in (run.CREATED, run.STARTING, run.STOPPING, run.STOPPED):
        return False
    asked = facts.exit is not None and facts.exit.intent is not None
    return facts.sandbox_alive is True and facts.session_alive is False and not asked


def attention(facts: Facts, now: datetime) -> str:
    """What the agent wants of a person, from the best source there is: its own report, else how recent its output."""
    if facts.probe_failed:
        return UNKNOWN
    if facts.state in (run.COMPLETED, run.STOPPED):
        return DONE
    if facts.state != run.RUNNING or facts.keeper_alive is False:
        return UNKNOWN
    if facts.report is not None and facts.report.state in REPORTED:
        return REPORTED[facts.report.state]
    quiet_s = seconds_between(facts.last_activity_at or facts.started_at, now)
    return WORKING if quiet_s < rhythm.quiet_after_s(facts) else IDLE


def _word(facts: Facts) -> str:
    if facts.record in (record.ARCHIVED, record.ERROR, record.SUSPENDED):
        return facts.record
    if facts.probe_failed:
        return UNKNOWN
    if is_stale(facts):
        return STALE
    return facts.state


def _label(facts: Facts, word: str, why: str) -> str:
    """One that counts nothing."""
    if word == run.FAILED:
        return f"failed: {why}{_left(facts)}"
    if word == run.ORPHANED:
        return f"orphaned: {why}"
    if word == STALE:
        return f"{STALE} {STALE_POD_NOTE if is_elsewhere(facts.runtime) else STALE_NOTE}"
    if word == UNKNOWN and (doubt := pods.doubt_of(facts)):
        return f"{UNKNOWN} ({doubt})"
    if word == run.STARTING and (waits := pods.why_waits(facts.pod)):
        return f"{run.STARTING} ({waits})"
    if word == record.SUSPENDED and facts.exit is not None and facts.exit.error is not None:
        return f"suspended: {facts.exit.error}"
    if word == run.COMPLETED:
        return f"completed{_left(facts)}"
    if word in (run.RUNNING, run.STOPPING) and facts.keeper_alive is False:
        return f"{word} ({run.KEEPER_LOST})"
    if word == run.RUNNING:
        if facts.sandbox_paused:
            return "running (paused)"
        if facts.process_stopped:
            return "running (process stopped)"
        if facts.keeper_stopped:
            return "running (keeper stopped)"
        if facts.pod is not None and facts.pod.cordoned:
            return f"running (node {facts.pod.node} is cordoned)"
    return word


def label_after(words: Status, now: datetime) -> str:
    """The label at a later moment, as long as the words hold."""
    return _counting_label(words.counting, words.quiet_since, now) if words.counting else words.label


def _counting_label(counting: str, since: datetime | None, now: datetime) -> str:
    return f"{counting}{duration(seconds_between(since, now))})"


def _counted(facts: Facts, word: str, now: datetime) -> tuple[str, datetime | None]:
    """What the label of a running session counts the time of, and from when: what its agent reports, else its silence.

    Nothing where neither tells anything.
    """
    stopped = facts.sandbox_paused or facts.process_stopped or facts.keeper_stopped
    if word != run.RUNNING or facts.keeper_alive is False or stopped:
        return "", None
    if facts.report is not None:
        return in_label(facts.report), facts.report.at
    quiet_since = facts.last_activity_at or facts.started_at
    is_idle = seconds_between(quiet_since, now) >= facts.idle_after_s
    return (IDLE, quiet_since) if is_idle else ("", None)


def survivors(facts: Facts) -> int:
    """How many processes the session's runs have left behind, as far as anybody has looked since they ended."""
    return facts.earlier_survivors + (facts.exit.survivors if facts.exit is not None else 0)


def _left(facts: Facts) -> str:
    left = survivors(facts)
    return f" (left {processes(left)} behind)" if left else ""


def processes(count: int) -> str:
    return f"{count} process{'' if count == 1 else 'es'}"


def status(facts: Facts, now: datetime) -> Status:
    """Everything that is said about ``facts`` at ``now``. Total: every combination of facts has a status."""
    state, takes = as_seen(facts).state, takes_prompt(facts)
    facts = as_told(facts)
    wants = attention(facts, now)
    word = _word(facts)
    why = reason(facts)
    ended = facts.state in run.TERMINAL and not (facts.state == run.ORPHANED and facts.keeper_alive is True)
    ended = ended or gone_unseen(facts)
    last_output_at = facts.last_activity_at or facts.started_at
    idle_s = seconds_between(last_output_at, now) if facts.state == run.RUNNING else 0.0
    live = state in run.LIVE
    counted, counted_since = _counted(facts, word, now)
    ended_at = facts.exit.ended_at if facts.exit is not None else None
    since = last_sign_of_life(facts) if gone_unseen(facts) else facts.state_changed_at
    since = facts.record_changed_at if word == facts.record else since
    counts_since = counted_since if counted else None
    counting = f"{word} ({counted} " if counted else ""
    if word == UNKNOWN and (unreachable_since := pods.unreachable_since(facts)):
        since = counts_since = unreachable_since
        doubt = pods.doubt_of(facts)
        counting = f"{word} ({doubt} " if doubt else ""
    since = since or facts.state_changed_at or facts.created_at
    shown = headline(facts, word, wants, why, since, now)
    life_s = seconds_between(facts.started_at, (ended_at or last_sign_of_life(facts) or now) if ended else now)
    return Status(
        word=word,
        label=_counting_label(counting, counts_since, now) if counting else _label(facts, word, why),
        state=state,
        reason=why,
        attention=wants,
        headline=shown.words,
        detail=shown.detail,
        since=shown.since,
        rank=shown.look.rank,
        glyph=shown.look.glyph,
        colour=shown.look.colour,
        section=shown.look.section,
        actions=actions(facts, word, shown, live=live, takes_prompt=takes),
        session_alive=session_alive(facts),
        idle_s=idle_s,
        in_status_s=seconds_between(since, now),
        total_s=facts.earlier_runs_s + life_s,
        total_grows=facts.started_at is not None and not ended,
        live=live,
        takes_prompt=takes,
        refusal=no_prompt(facts) if takes and state == run.RUNNING else None,
        quiet_since=counts_since,
        counting=counting,
        holds_s=_holds_s(facts, since, now),
    )


def _holds_s(facts: Facts, since: datetime | None, now: datetime) -> float:
    """How long no comparison with ``now`` turns out otherwise. Whatever compares with it has its part here."""
    quiet_since = facts.last_activity_at or facts.started_at
    if any(at is not None and at > now for at in (since, facts.started_at, quiet_since)):
        return 0.0  # a clock that is ahead
    left_s = limits.left_s(facts, now) + end_left_s(facts, now)
    if facts.state == run.RUNNING:
        silent_s = seconds_between(quiet_since, now)
        left_s += (rhythm.quiet_after_s(facts) - silent_s, facts.idle_after_s - silent_s)
    if facts.snoozed_until is not None:
        left_s.append((facts.snoozed_until - now).total_seconds())
    return max(0.0, min((each for each in left_s if each >= 0.0), default=FOREVER_S) - ROUNDED_S)
