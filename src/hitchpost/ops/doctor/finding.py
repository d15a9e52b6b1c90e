"""One line of a check-up: what was looked at, whether it is in order, and what to do when it is not."""

from __future__ import annotations

from dataclasses import dataclass

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """``session`` is the name or id of the session that it is about; empty for the machine and the home."""

    level: str
    check: str
    text: str
    todo: str = ""
    session: str = ""


def ok(check: str, text: str) -> Finding:
    return Finding(OK, check, text)


def note(check: str, text: str, todo: str = "", session: str = "") -> Finding:
    return Finding(NOTE, check, text, todo, session)


def problem(check: str, text: str, todo: str = "", session: str = "") -> Finding:
    return Finding(PROBLEM, check, text, todo, session)
