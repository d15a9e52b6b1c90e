"""Answering what an agent asks: its permission dialog, from wherever a person is."""

from __future__ import annotations

from hitchpost.errors import KeeperSilent, Refused
from hitchpost.model.attention import BLOCKED
from hitchpost.ops.views.advice import way_on
from hitchpost.ops.views.find import find
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.runtimes.link import TIMEOUT_S, Link, NoKeeper, Silent
from hitchpost.store.session import Session

ANSWER_S = 20.0


def answer(home: str, session: str, choice: str, *, actor: str, request: str = "", message: str = "") -> Observation:
    """Answer ``request``, or what its report asks now. Exactly once: what is gone or answered is ``Refused``."""
    seen = find(home, session)
    name, report = seen.record.name, seen.facts.report
    request = request or (report.request if report is not None else None) or ""
    try:
        with Link.connect(seen.run_folder) as link:
            asked = {"choice": choice, "request": request, "message": message}
            receipt = link.request("answer", timeout_s=ANSWER_S, **asked)
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
    return observe(home, seen.record.id)
