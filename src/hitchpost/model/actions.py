"""What can be done with a session now, the most useful first. Each of them works in that very state."""

from __future__ import annotations

from hitchpost.model import headline as heads
from hitchpost.model import record, run
from hitchpost.model.attention import AT_PROMPT, BLOCKED, ERROR
from hitchpost.model.facts import ADOPTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.model.facts import Facts
    from hitchpost.model.headline import Headline

ANSWER = "answer"
"""Say yes or no to what the agent asks: the report has its request and the options."""
LOOK = "look"
"""Look at its terminal, and type there: what it wants is said nowhere else."""
REPLY = "reply"
"""Send a prompt: it goes to the agent, or starts the next run of one that rests."""
REVIEW = "review"
"""Look at what it changed."""
RESUME = "resume"
"""The next run, with the same conversation."""
RESTART = "restart"
"""The next run, from scratch. A live one is stopped first."""
RESTART_IN_CONTAINER = "restart-in-container"
"""The next run, in the container that the last one has left."""
RESTORE = "restore"
"""Bring the workspace back that was deleted."""
STOP, ARCHIVE, UNARCHIVE, DELETE, EXPLAIN = "stop", "archive", "unarchive", "delete", "explain"


def actions(facts: Facts, word: str, shown: Headline, *, live: bool, takes_prompt: bool) -> tuple[str, ...]:
    """For a session whose status is ``word``. ``facts`` as they are told."""
    if facts.record == record.ARCHIVED:
        return (UNARCHIVE, DELETE)
    if facts.record == record.ERROR:
        return (EXPLAIN, DELETE)
    found = _while_live(facts, shown, takes_prompt) if live else _after(facts, word, takes_prompt)
    return (EXPLAIN, *found) if shown.look == heads.DOUBT else found


def _again(facts: Facts) -> list[str]:
    """How a next run can begin; nobody knows the command of an adopted program."""
    if facts.runtime == ADOPTED:
        return []
    return [RESUME, RESTART] if facts.supports_resume else [RESTART]


def _while_live(facts: Facts, shown: Headline, takes_prompt: bool) -> tuple[str, ...]:
    again = [] if facts.runtime == ADOPTED else [RESTART]
    report = facts.report
    at_prompt = report is None or report.state in AT_PROMPT
    first: list[str] = []
    hears = shown.look != heads.DOUBT
    if hears and report is not None and report.request:
        first.append(ANSWER)
    if hears and takes_prompt and at_prompt and (report is None or report.state != ERROR or report.kind is None):
        first.append(REPLY)
    if hears and not first and report is not None and report.state in (BLOCKED, ERROR):
        first.append(LOOK)
    if facts.has_work:
        finished = shown.words == heads.REPORTED["done"][0]
        first.insert(0 if finished else len(first), REVIEW)
    return (*first, STOP, *again)


def _after(facts: Facts, word: str, takes_prompt: bool) -> tuple[str, ...]:
    review = [REVIEW] if facts.has_work else []
    again = _again(facts)
    if facts.state == run.ORPHANED:
        # its process may have outlived its folder
        put_away = [STOP] if facts.keeper_alive is True else [ARCHIVE, DELETE]
        if facts.folder_back:
            return (*again, *put_away)
        return (*([RESTORE] if facts.has_workspace else []), *put_away)
    if word == heads.STALE:
        return (RESTART_IN_CONTAINER, *review, STOP, ARCHIVE, DELETE)
    if facts.state == run.CREATED:
        return (*again[-1:], ARCHIVE, DELETE)
    reply = [REPLY] if takes_prompt else []
    if facts.state == run.COMPLETED:
        return (*review, *reply, *again, ARCHIVE, DELETE)
    return (*again, *reply, *review, ARCHIVE, DELETE)
