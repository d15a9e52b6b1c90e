"""Answering what an agent asks: its permission dialog, from wherever a person is."""

from __future__ import annotations

from hitchpost.errors import HitchpostError, KeeperSilent, Refused, UsageError
from hitchpost.model.attention import BLOCKED
from hitchpost.ops.views.advice import way_on
from hitchpost.ops.views.find import find
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.runtimes.link import TIMEOUT_S, Link, NoKeeper, Silent
from hitchpost.store.session import Session

ANSWER_S, TOLD_S = 20.0, 60.0
"""How long an answer may take; one with a message may have to be typed when the agent is at its prompt."""
NO = "no"


class NotTold(HitchpostError):
    """Raised when a no was given, and what goes with it did not reach the agent."""

    http_status = 503
    code = "not_delivered"
    field = "message"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"answered no to {name}, but the message was not delivered: {why}")


def answer(home: str, session: str, choice: str, *, actor: str, request: str = "", message: str = "") -> Observation:
    """Answer ``request``, or what its report asks now. Exactly once: what is gone or answered is ``Refused``.

    ``message`` goes with a no. Raises ``NotTold`` when the answer was given, and the message did not arrive.
    """
    if message and choice != NO:
        raise UsageError(f"a message goes with {NO}, and not with {choice}", field="message")
    seen = find(home, session)
    name, report = seen.record.name, seen.facts.report
    request = request or (report.request if report is not None else None) or ""
    try:
        with Link.connect(seen.run_folder) as link:
            asked = {"choice": choice, "request": request, "message": message}
            receipt = link.request("answer", timeout_s=TOLD_S if message else ANSWER_S, **asked)
    except Silent:
        raise KeeperSilent(name, TIMEOUT_S) from None
    except NoKeeper:
        raise Refused(f"{name} is not running", way_on(seen)) from None
    if receipt.get("ok") is not True:
        seen = find(home, session)
        report, word = seen.facts.report, seen.record.word
        is_asked = report is not None and report.state == BLOCKED and not report.request
        raise Refused(f"not answered: {receipt.get('why')}", f"hitch attach {word} shows it" if is_asked else "")
    stored = Session(seen.folder, actor=actor)
    with stored.lock():
        question = report.message if report is not None and report.request == receipt.get("request") else None
        stored.tell("answered", run=seen.facts.run, choice=choice, question=question)
    if receipt.get("untold"):
        raise NotTold(name, str(receipt["untold"]))
    return observe(home, seen.record.id)
