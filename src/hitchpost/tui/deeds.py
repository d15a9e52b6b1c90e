"""What the dashboard's keys do to a session. Each returns a sentence for the person, and may take a while."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

from hitchpost import settings
from hitchpost.agents import catalog
from hitchpost.model.actions import RESUME
from hitchpost.ops.sessions.answer import answer as give_answer
from hitchpost.ops.sessions.edit import edit
from hitchpost.ops.sessions.launch import launch
from hitchpost.ops.sessions.prompt import prompt
from hitchpost.ops.sessions.remove import archive as put_away
from hitchpost.ops.sessions.restart import restart as begin_again
from hitchpost.ops.sessions.resume import resume as go_on
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.stop import stop as end
from hitchpost.ops.views import catalog as offered
from hitchpost.ops.views.session_types import Session
from hitchpost.store.home import session_folder
from hitchpost.store.session import Session as StoredSession
from hitchpost.text import visible

ACTOR = "top"
SHELL = "bash"


def answer(home: str, session: Session, choice: str) -> str:
    """Exactly what was shown is answered, and nothing that was asked since."""
    report = session["report"]
    request = (report["request"] if report is not None else None) or ""
    give_answer(home, session["id"], choice, actor=ACTOR, request=request)
    return f"answered {visible(choice)} to {_name(session)}"


def reply(home: str, session: Session, text: str) -> str:
    done = prompt(home, session["id"], text, actor=ACTOR, caller=os.environ)
    if done.receipt.waits:
        return f"waits for {_name(session)}, which gets it when it is done"
    if done.receipt.proof:
        return f"delivered to {_name(session)} (proved by {done.receipt.proof})"
    return f"typed into {_name(session)}{', not confirmed' if done.receipt.watched else ''}"


def stop(home: str, session: Session) -> str:
    end(home, session["id"], actor=ACTOR)
    return f"{_name(session)} is stopped"


def goes_on(session: Session) -> bool:
    """Whether ``start_again`` goes on with the conversation. Else it begins from scratch, and stops a live run."""
    return RESUME in session["actions"]


def start_again(home: str, session: Session) -> str:
    if goes_on(session):
        go_on(home, session["id"], settings.load(), actor=ACTOR, caller=os.environ)
        return f"{_name(session)} goes on with its conversation"
    begin_again(home, session["id"], settings.load(), actor=ACTOR, caller=os.environ)
    return f"{_name(session)} is started again, from scratch"


def archive(home: str, session: Session) -> str:
    put_away(home, session["id"], actor=ACTOR)
    return f"{_name(session)} is archived"


def pin(home: str, session: Session) -> str:
    edit(home, session["id"], actor=ACTOR, pinned=not session["pinned"])
    return f"{_name(session)} is {'no longer ' if session['pinned'] else ''}pinned"


def snooze(home: str, session: Session, for_s: float) -> str:
    edit(home, session["id"], actor=ACTOR, snooze_s=for_s)
    return f"{_name(session)} is quiet for {for_s / 3600:g} h" if for_s else f"{_name(session)} is awake again"


def see(home: str, session: Session) -> str:
    StoredSession(session_folder(home, session["id"]), actor=ACTOR).mark_seen()
    return f"{_name(session)} is seen"


def usual_agent(sessions: Iterable[Session]) -> str:
    """Of the agents that are installed: the one that was started last, else one that is more than a shell."""
    installed = [agent.name for agent in offered.agents(os.environ, settings.load()) if agent.path]
    newest_first = sorted(sessions, key=lambda session: session["created_at"] or "", reverse=True)
    recent = [session["agent"] for session in newest_first if session["agent"] in installed]
    return next(iter((*recent, *sorted(installed, key=SHELL.__eq__))), "")


def new(home: str, *, what: str, text: str, branch: str, folder: str) -> str:
    """``what``: an agent of the catalog, or a command, in words as a shell would read them. No shell runs it."""
    words = shlex.split(what)
    is_agent = len(words) == 1 and words[0] in catalog.names()
    spec = SessionSpec(
        folder=os.path.abspath(os.path.expanduser(folder or ".")),
        agent=words[0] if is_agent else None,
        command=() if is_agent else tuple(words),
        branch=branch or None,
        prompt=text or None,
    )
    seen, notes = launch(home, spec, actor=ACTOR, caller=os.environ)
    return "; ".join([f"{visible(seen.record.name)} is started", *notes])


def _name(session: Session) -> str:
    return visible(session["name"])
