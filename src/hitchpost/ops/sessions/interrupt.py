"""Interrupting what an agent works on: its turn ends, its run goes on."""

from __future__ import annotations

from hitchpost.errors import KeeperSilent, Refused
from hitchpost.ops.views.advice import way_on
from hitchpost.ops.views.find import find
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.runtimes.link import Link, NoKeeper, Silent
from hitchpost.store.session import Session

INTERRUPT_S = 20.0


def interrupt(home: str, session: str, *, actor: str) -> Observation:
    """Interrupt the agent's turn. What waits for it is not sent. Raises ``Refused``, as when it does nothing."""
    seen = find(home, session)
    name = seen.record.name
    if not seen.record.chat:
        raise Refused(
            f"{name} can only be interrupted in its terminal: its agent is typed to, and not spoken to over ACP",
            f"hitch attach {seen.record.word} opens it",
        )
    try:
        with Link.connect(seen.run_folder) as link:
            answer = link.request("interrupt", timeout_s=INTERRUPT_S)
    except Silent:
        raise KeeperSilent(name, INTERRUPT_S) from None
    except NoKeeper:
        raise Refused(f"{name} is not running", way_on(seen)) from None
    if answer.get("ok") is not True:
        raise Refused(f"{name} was not interrupted: {answer.get('why')}")
    try:
        Session(seen.folder, actor=actor).mention("interrupted", run=seen.facts.run, details={})
    except OSError:
        pass  # it is interrupted all the same
    return observe(home, seen.record.id)
