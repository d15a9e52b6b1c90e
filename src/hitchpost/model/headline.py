"""A session's headline: whose turn it is, in a word or two, what about, since when, and how it is shown.

The page, ``hitch top`` and notifications go by it. The tables here are the only place that has its words.
"""

from __future__ import annotations

from hitchpost.model import limits, pods, record, run
from hitchpost.model.attention import (
    AUTH,
    BLOCKED,
    DIALOG,
    DONE,
    ERROR,
    IDLE,
    LIMIT,
    PERMISSION,
    QUESTION,
    STARTING,
    UNKNOWN,
    WORKING,
    refusal,
)
from hitchpost.model.facts import is_elsewhere
from hitchpost.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from hitchpost.model.facts import Facts, Report

NEEDS_YOU, FINISHED, BUSY, QUIET, ENDED = "needs-you", "finished", "working", "quiet", "ended"
SECTIONS: dict[str, str] = {
    NEEDS_YOU: "Needs you",
    FINISHED: "Finished",
    BUSY: "Working",
    QUIET: "Quiet",
    ENDED: "Ended",
}
"""The parts of a list, in their order, and what they are called."""
NEWS = 5
"""The last rank that a person is told of."""
UNLISTED = 9
DAY_S = 86_400.0
STALE = "stale"


@value
class Look:
    """How a headline is shown. The smallest ``rank`` comes first in a list; within a rank, the newest does."""

    rank: int
    glyph: str
    colour: str
    section: str


ASKS = Look(1, "✋", "orange", NEEDS_YOU)
YOUR_TURN = Look(2, "?", "orange", NEEDS_YOU)
TROUBLE = Look(3, "⏸", "violet", NEEDS_YOU)
CRASHED = Look(4, "✕", "red", NEEDS_YOU)
DOUBT = Look(4, "!", "yellow", NEEDS_YOU)
DONE_WELL = Look(5, "✓", "blue", FINISHED)
WORKS = Look(6, "◐", "green", BUSY)
CHANGES = Look(6, "◐", "blue", BUSY)
RESTS = Look(7, "○", "green", QUIET)
WAITS = Look(7, "⏸", "violet", QUIET)
SNOOZED = Look(7, "☾", "grey", QUIET)
OVER = Look(8, "▢", "grey", ENDED)

LOOKS: dict[str, Look] = {
    run.CREATED: OVER,
    run.STARTING: CHANGES,
    run.RUNNING: WORKS,
    run.STOPPING: CHANGES,
    run.STOPPED: OVER,
    run.COMPLETED: DONE_WELL,
    run.FAILED: CRASHED,
    run.ORPHANED: CRASHED,
    STALE: replace(CRASHED, colour="yellow"),
    record.SUSPENDED: OVER,
    record.ARCHIVED: replace(OVER, rank=UNLISTED),
    record.ERROR: replace(OVER, rank=UNLISTED, glyph=CRASHED.glyph, colour="red"),
}
"""By a session's status; the report of one that runs says more. A status that is not known is in doubt."""
SEEN: dict[str, Look] = {run.COMPLETED: OVER, run.FAILED: replace(CRASHED, rank=OVER.rank, section=ENDED)}
"""The same once somebody has looked since."""

OF_STATUS: dict[str, str] = {
    run.CREATED: "Not started",
    run.COMPLETED: "Finished",
    run.ORPHANED: "Folder is gone",
    STALE: "Agent ended",
}
"""Where the status itself, with a capital letter, is not the best word."""
DETAILS: dict[str, str] = {STALE: "container still up", run.COMPLETED: ""}
"""Where the reason of the end is not the best detail."""
POD_STILL_UP = "pod still up"

REPORTED: dict[str, tuple[str, Look]] = {
    BLOCKED: ("Needs you", ASKS),
    IDLE: ("Your turn", YOUR_TURN),
    ERROR: ("Error", TROUBLE),
    DONE: ("Finished", DONE_WELL),
    WORKING: ("Working", WORKS),
    UNKNOWN: ("Unknown", DOUBT),
}
OF_KIND: dict[str, tuple[str, Look]] = {
    PERMISSION: ("Needs permission", ASKS),
    QUESTION: ("Question", YOUR_TURN),
    DIALOG: ("Dialog", ASKS),
    AUTH: ("Not signed in", ASKS),
    LIMIT: ("Usage limit", TROUBLE),
    STARTING: ("Starting", CHANGES),
}
"""What an agent that is blocked, has an error or is not known yet wants: better words than those of its state."""
IN_LABEL: dict[str, str] = {
    BLOCKED: "needs you",
    ERROR: "error",
    DONE: "finished",
    IDLE: "your turn",
    PERMISSION: "needs permission",
    QUESTION: "question",
    DIALOG: "shows a dialog",
    AUTH: "not signed in",
    LIMIT: "error: usage limit,",
}
"""The same as a part of a status, before the time since when it is so."""
GUESSED: dict[str, tuple[str, Look]] = {"working": ("Working", WORKS), "idle": ("Quiet", RESTS)}
"""Where nothing but the output tells."""
WITH_KIND = (BLOCKED, ERROR, UNKNOWN)


@value
class Headline:
    words: str
    detail: str
    """One line. It may be the agent's own text."""
    since: datetime | None
    look: Look


def colour_of(word: str) -> str:
    """The colour of a status."""
    return LOOKS.get(word, DOUBT).colour


def told(line: dict[str, object]) -> tuple[str, str] | None:
    """The words and the colour of what a session became, as a line of its story has it; None for any other line."""
    if line["event"] == "state":
        word = str(line.get("to"))
        return (WORKING.capitalize() if word == run.RUNNING else OF_STATUS.get(word, word.capitalize())), colour_of(
            word
        )
    if line["event"] != "attention":
        return None
    words, look = _reported(str(line.get("state")), str(line.get("kind")))
    return words, look.colour


def headline(facts: Facts, word: str, wants: str, why: str, since: datetime | None, now: datetime) -> Headline:
    """For a session whose status is ``word``, ``since`` then."""
    found = _running(facts, wants, since, now) if word == run.RUNNING else _other(facts, word, why, since)
    if found.look.rank <= NEWS and facts.snoozed_until is not None and facts.snoozed_until > now:
        return replace(
            found, words="Snoozed", detail=" · ".join(filter(None, (found.words, found.detail))), look=SNOOZED
        )
    return found


def _other(facts: Facts, word: str, why: str, since: datetime | None) -> Headline:
    look = LOOKS.get(word, DOUBT)
    if _seen(facts, since):
        look = SEEN.get(word, look)
    why = DETAILS.get(word, why)
    if word == STALE and is_elsewhere(facts.runtime):
        why = POD_STILL_UP
    if word == run.STARTING:
        why = pods.why_waits(facts.pod)
    if word == run.COMPLETED:
        why = _joined(why, _size(facts))
    if word == record.SUSPENDED and facts.exit is not None and facts.exit.error is not None:
        return Headline(facts.exit.error.capitalize(), "", since, look)
    return Headline(OF_STATUS.get(word, word.capitalize()), why or pods.doubt_of(facts), since, look)


def _running(facts: Facts, wants: str, since: datetime | None, now: datetime) -> Headline:
    if (still := _stood_still(facts)) is not None:
        return Headline(*still, since, DOUBT)
    report = facts.report
    if report is None or report.state not in REPORTED:
        words, look = GUESSED.get(wants, REPORTED[UNKNOWN])
        since = facts.last_activity_at or facts.started_at if look is RESTS else facts.busy_since or since
        return Headline(words, "", since, look)
    words, look = _reported(report.state, report.kind or "")
    if look is DONE_WELL and _seen(facts, report.at):
        look = replace(RESTS, glyph=DONE_WELL.glyph, colour="grey")
    if limits.is_told_now(facts, now) or (limits.goes_on_at(facts) is not None and not limits.is_late(facts, now)):
        look = WAITS
    return Headline(words, _detail(report, facts, now), report.at, look)


def _reported(state: str, kind: str) -> tuple[str, Look]:
    """One that reports nothing any more is taken to work."""
    known = REPORTED.get(state, REPORTED[WORKING])
    return OF_KIND.get(kind, known) if state in WITH_KIND else known


def _stood_still(facts: Facts) -> tuple[str, str] | None:
    """Words and detail of a run that cannot go on, or of which nobody hears."""
    if facts.keeper_alive is False:
        return "Unknown", run.KEEPER_LOST
    if facts.sandbox_paused:
        return "Paused", "its container is paused"
    if facts.process_stopped:
        return "Paused", "a signal has stopped its process"
    return ("Unknown", "a signal has stopped its keeper") if facts.keeper_stopped else None


def _seen(facts: Facts, since: datetime | None) -> bool:
    """Whether somebody has looked at the session since it became what it is."""
    return facts.seen_at is not None and (since is None or facts.seen_at >= since)


def in_label(report: Report) -> str:
    """Empty where a report says nothing that concerns a person."""
    kind = IN_LABEL.get(report.kind or "") if report.state in WITH_KIND else None
    return kind or IN_LABEL.get(report.state, "")


def no_prompt(facts: Facts) -> str | None:
    """Why an agent that runs would not take a prompt now; None where nothing is known against it."""
    report = facts.report
    return None if report is None else refusal({"state": report.state, "kind": report.kind})


def _detail(report: Report, facts: Facts, now: datetime) -> str:
    message = " ".join((report.message or "").split())
    tasks = f"{report.background} in the background" if report.background else ""
    until, *then = _of_limit(report, facts, now)
    return _joined(until, message, *then, tasks, _size(facts) if report.state == DONE else "")


NOT_KNOWN = "the hub was about to tell it to go on, and it is not known whether it did; look, then prompt it yourself"


def _of_limit(report: Report, facts: Facts, now: datetime) -> tuple[str, ...]:
    """Until when, and whether the hub goes on then. Whether one is running is not known here."""
    until = f"until {moment}" if (moment := _end_of(report, now)) else ""
    if facts.when_limit != limits.WAIT or not limits.at_limit(facts):
        return (until,)
    if report.ends_at is None:
        return until, "when it ends is not known, so the hub does not go on"
    if limits.is_not_known(facts, now):
        return until, NOT_KNOWN
    if limits.goes_on_at(facts) is None:
        return until, "is told to go on" if limits.is_told_now(facts, now) else "was told to go on"
    late = "has not gone on yet; only a running hub does that" if limits.is_late(facts, now) else ""
    return until, late or "the hub goes on then"


def _end_of(report: Report, now: datetime) -> str | None:
    """With the day where it is another one."""
    if (end := report.ends_at) is None:
        return report.until
    return f"{end:%H:%M}" if end.date() == now.astimezone(end.tzinfo).date() else f"{end:%b %d, %H:%M}"


def end_left_s(facts: Facts, now: datetime) -> list[float]:
    """How long the end of a limit is told in the same words: until its day begins, or ends."""
    end = None if facts.report is None else facts.report.ends_at
    if end is None:
        return []
    today, midnight = now.astimezone(end.tzinfo).date(), end.replace(hour=0, minute=0, second=0, microsecond=0)
    left = (midnight - now).total_seconds()
    if today < end.date():
        return [left]
    return [left + DAY_S] if today == end.date() else []


def _size(facts: Facts) -> str:
    """As in ``+12 −3``; empty where nothing has changed."""
    found = facts.changes
    return f"+{found.added} −{found.deleted}" if found is not None and found.files else ""


def _joined(*parts: str) -> str:
    return " · ".join(filter(None, parts))
