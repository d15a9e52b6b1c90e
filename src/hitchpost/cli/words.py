"""What commands say when something is done, of a session here and of one elsewhere alike."""

from __future__ import annotations

from hitchpost.model.durations import duration
from hitchpost.model.record import ARCHIVED, ERROR
from hitchpost.model.run import LIVE
from hitchpost.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.ops.views.session_types import Session


def started(name: str, index: int, session_id: str, run: int) -> str:
    return f"{visible(name)} started as session {index}, id {session_id} (run {run})"


def forked(made: Session, of: str) -> str:
    begun = started(made["name"], made["index"], made["id"], made["run"])
    return f"{begun}, with the conversation of {visible(of)}"


def stopped(session: Session) -> str:
    return f"{visible(session['name'])}: {visible(session['label'])}"


def restarted(session: Session) -> str:
    return f"{visible(session['name'])}: {session['state']} (run {session['run']})"


def resumed(session: Session, *, same: bool) -> str:
    return f"{restarted(session)}, {'the same conversation' if same else 'a new conversation'}"


def limited(name: str, *, waits: bool) -> str:
    what = "waits for its end and goes on" if waits else "stops"
    return f"{visible(name)}: it runs, and {what} at a usage limit from now on"


def answered(choice: str, name: str) -> str:
    return f"answered {visible(choice)} to {visible(name)}"


def cancelled(name: str) -> str:
    return f"{visible(name)}: cancelled"


def archived(name: str) -> str:
    return f"{visible(name)}: archived"


def brought_back(before: str, name: str, way_on: str) -> str:
    now = "" if name == before else f" as {visible(name)}"
    return f"{visible(before)}: brought back{now}; {way_on}"


def removed(name: str) -> str:
    return f"{visible(name)}: removed"


def renamed(before: str, name: str) -> str:
    return f"{visible(before)} is now {visible(name)}"


def pinned(name: str, is_pinned: bool) -> str:
    return f"{visible(name)}: {'pinned' if is_pinned else 'not pinned'}"


def snoozed(name: str, for_s: float) -> str:
    return f"{visible(name)}: snoozed for {duration(for_s)}" if for_s else f"{visible(name)}: not snoozed"


def sent(name: str, *, proof: str, watched: bool, waits: bool, shown: str = "") -> str:
    """``shown``: what the agent showed when the text was forced upon it."""
    if shown:
        return f"typed into {name}, whatever it does with it ({shown}); not confirmed"
    if waits:
        return f"waits for {name}, which gets it when it is done"
    if proof:
        return f"delivered to {name} (proved by {proof})"
    return f"typed into {name}, not confirmed" if watched else f"sent to {name}"


def became(session: Session, *, has_ended: bool) -> str:
    """What became of it: the attention of a session that lives, with its headline; the label of one that has ended."""
    if has_ended:
        return session["label"]
    is_same = session["headline"].lower() == session["attention"]
    return session["attention"] if is_same else f"{session['attention']} ({session['headline']})"


def cancel_question(name: str, record: str, state: str) -> str:
    """What ``cancel`` asks before it does anything; empty where it is refused anyway."""
    if record in (ARCHIVED, ERROR):
        return ""
    return f"end {visible(name)} now, and archive it?" if state in LIVE else f"archive {visible(name)}?"
