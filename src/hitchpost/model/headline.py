"""A session's headline: whose turn it is, in a word or two, and what about, in one line."""

from __future__ import annotations

from hitchpost.model import run
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.model.facts import Facts, Report

REPORTED: dict[str, str] = {
    BLOCKED: "Needs you",
    ERROR: "Error",
    DONE: "Finished",
    WORKING: "Working",
    IDLE: "At its prompt",
    UNKNOWN: "Unknown",
}
OF_KIND: dict[str, str] = {
    PERMISSION: "Needs permission",
    QUESTION: "Question",
    DIALOG: "Dialog",
    AUTH: "Not signed in",
    LIMIT: "Usage limit",
    STARTING: "Starting",
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
GUESSED: dict[str, str] = {"working": "Working", "idle": "Quiet"}
"""Where nothing but the output tells."""
WITH_KIND = (BLOCKED, ERROR, UNKNOWN)
WITH_MESSAGE = (BLOCKED, ERROR, DONE, UNKNOWN)


def headline(facts: Facts, word: str, wants: str, why: str) -> tuple[str, str]:
    """The headline and its detail, for a session whose status is ``word``. The detail may be the agent's own text."""
    if word != run.RUNNING:
        return word.capitalize(), why or facts.doubt
    if facts.keeper_alive is False:
        return REPORTED[UNKNOWN], run.KEEPER_LOST
    report = facts.report
    if report is None or report.state not in REPORTED:
        return GUESSED.get(wants, REPORTED[UNKNOWN]), ""
    kind = OF_KIND.get(report.kind or "") if report.state in WITH_KIND else None
    return kind or REPORTED[report.state], _detail(report)


def in_label(report: Report) -> str:
    """Empty where a report says nothing that concerns a person."""
    kind = IN_LABEL.get(report.kind or "") if report.state in WITH_KIND else None
    return kind or IN_LABEL.get(report.state, "")


def no_prompt(facts: Facts) -> str | None:
    """Why an agent that runs would not take a prompt now; None where nothing is known against it."""
    report = facts.report
    return None if report is None else refusal({"state": report.state, "kind": report.kind})


def _detail(report: Report) -> str:
    message = " ".join((report.message or "").split()) if report.state in WITH_MESSAGE else ""
    until = f"until {report.until}" if report.until else ""
    tasks = f"{report.background} in the background" if report.background else ""
    return " · ".join(filter(None, (message, until, tasks)))
