"""A prompt for a session, from the command line or through the hub: what rests is started again, then it is typed."""

from __future__ import annotations

from hitchpost.errors import KeeperSilent, Refused
from hitchpost.model import run as runs
from hitchpost.model.status import rests
from hitchpost.ops.sessions.send import Receipt, check_images, check_text, send
from hitchpost.ops.sessions.stop import wait_out_starting
from hitchpost.ops.views.find import find
from hitchpost.ops.views.observe import Observation
from hitchpost.runtimes.link import Link, NoKeeper, Silent
from hitchpost.store import files
from hitchpost.store import images as pictures
from hitchpost.store.session import Session
from hitchpost.values import value

TAKE_BACK_S = 20.0
MOST_TOLD = 200
"""Letters of a prompt in the session's story: enough to know it again."""
NOT_KEPT = "not kept: the terminal hid what was typed, as for a password"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


@value
class Prompted:
    """``receipt`` says what is known of the delivery; ``started`` whether a run was started for it."""

    seen: Observation
    receipt: Receipt
    started: bool = False
    notes: tuple[str, ...] = ()


def prompt(
    home: str,
    session: str,
    text: str,
    *,
    actor: str,
    caller: Mapping[str, str],
    size: tuple[int, int] = (80, 24),
    enter: bool = True,
    force: bool = False,
    resumes: bool = False,
    images: tuple[bytes, ...] = (),
) -> Prompted:
    """Deliver ``text``. With ``resumes``, a session that has ended or is suspended is resumed first.

    Raises what ``resume`` and ``send`` raise, and ``UsageError`` for images that are none.
    """
    seen, notes = find(home, session), None
    if images:
        pictures.check(images)
        check_images(seen, force=force, enter=enter)
    if seen.facts.state in (runs.CREATED, runs.STARTING):
        seen = wait_out_starting(home, seen.record.id)
    if rests(seen.facts) or (resumes and seen.facts.state in runs.TERMINAL):
        check_text(seen.record.name, text)  # what is refused starts nothing
        seen, notes = _woken(home, seen, actor=actor, caller=caller, size=size)
    since = files.stamp()
    kept = pictures.keep(seen.folder, images) if images else []
    receipt = send(seen, text, enter=enter, force=force, fresh=notes is not None, images=kept)
    told = {"letters": len(text), "reason": NOT_KEPT} if receipt.hidden else {"text": text[:MOST_TOLD]}
    details: dict[str, object] = {**told, **({"images": len(kept)} if kept else {}), "since": since}
    try:
        Session(seen.folder, actor=actor).mention("prompt", run=seen.facts.run, details=details)
    except OSError:
        pass  # it is delivered all the same
    return Prompted(seen, receipt, started=notes is not None, notes=notes or ())


def take_back(home: str, session: str, prompt: str) -> None:
    """Forget a prompt that waits for the agent. Raises ``Refused`` when it does not wait any more."""
    seen = find(home, session)
    name = seen.record.name
    try:
        with Link.connect(seen.run_folder) as link:
            answer = link.request("take_back", prompt=prompt, timeout_s=TAKE_BACK_S)
    except Silent:
        raise KeeperSilent(name, TAKE_BACK_S) from None
    except NoKeeper:
        raise Refused(f"{name} is not running") from None
    if answer.get("ok") is not True:
        raise Refused(f"not taken back: {answer.get('why')}")


def _woken(
    home: str, seen: Observation, *, actor: str, caller: Mapping[str, str], size: tuple[int, int]
) -> tuple[Observation, tuple[str, ...] | None]:
    """The session with its next run, and notes about that; None when another prompt was faster."""
    from hitchpost import settings as config
    from hitchpost.ops.sessions.resume import resume

    session = seen.record.id
    try:
        begun = resume(home, session, config.load(), actor=actor, caller=caller, size=size)
    except Refused:
        now = wait_out_starting(home, session)
        if now.facts.run == seen.facts.run:
            raise
        return now, None
    return begun.seen, begun.notes
