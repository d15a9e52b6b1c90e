"""Sending a prompt: pasted as a person would, with a receipt."""

from __future__ import annotations

from datetime import UTC, datetime

from hitchpost import wire
from hitchpost.errors import FAILURES, HitchpostError, KeeperSilent, Refused, UsageError
from hitchpost.model import record as recs
from hitchpost.model.status import lives_on, status
from hitchpost.ops.sessions.takeover import NotTakenOver, take_over
from hitchpost.ops.views.advice import no_input, way_on, way_to_answer
from hitchpost.ops.views.observe import Observation, observe
from hitchpost.runtimes.link import TIMEOUT_S, Link, NoKeeper, Silent
from hitchpost.store.home import home_of
from hitchpost.values import value

RECEIPT_TIMEOUT_S = 15.0
PROMPT_S = 20.0
PROOF_TIMEOUT_S = 90.0
"""For an agent that is watched: it gets ready, reads the text, and shows that it has it."""


@value
class Receipt:
    """``offset`` is where the log was before the text. ``proof`` is what showed that the agent has it; empty where
    nothing did. ``watched``: something could have. ``hidden``: the terminal did not show what was typed. ``waits``: the
    agent gets it when it is done with what it works on."""

    offset: int
    proof: str = ""
    watched: bool = False
    hidden: bool = False
    waits: bool = False


class NotNow(Refused):
    """Raised when the agent does something that a prompt would disturb. ``force`` types it all the same."""

    hint = "see to that first"
    cli_hint = "see to that first, or use --force"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"not sent to {name}: {why}", self.hint)


class Unclear(Refused):
    """Raised when an agent may have got a text, or some of it stands in its prompt: sent again, it could come twice."""


class NotTaken(HitchpostError):
    """Raised when the agent has not read all of a text in time. The rest is typed when it reads again."""

    http_status = 503
    code = "busy"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} did not read all of the text within {RECEIPT_TIMEOUT_S:g} s; the rest is typed when it reads again"
        )


def check_text(name: str, text: str) -> None:
    """Raises ``Refused`` for a text that can be typed into no agent. Nothing has to run for that."""
    if (why := wire.untypable(text.encode("utf-8", "surrogateescape"))) is not None:
        raise Refused(f"not sent to {name}: {why}")


class NotReady(HitchpostError):
    """Raised when an agent that was started for a text has not shown its prompt in time. Nothing was typed."""

    http_status = 503
    code = "busy"

    def __init__(self, name: str) -> None:
        super().__init__(f"not sent to {name}: it did not show its prompt within {PROMPT_S:g} s")


NAME_THE_FILE = "put the image into its folder and name the file in the text: most agents can open it themselves"


def check_images(seen: Observation, *, force: bool, enter: bool) -> None:
    """Raises ``Refused`` for a session whose agent cannot get images, before anything is kept or started."""
    name = seen.record.name
    if not seen.record.chat:
        why = f"{name} takes no images: its agent is typed to, and not spoken to over ACP"
        raise Refused(why, NAME_THE_FILE)
    if force:
        raise UsageError("images cannot be typed, so force does not go with them", field="force")
    if not enter:
        raise UsageError("images go with a prompt that is sent, so it cannot be left without Enter", field="enter")


def send(
    seen: Observation,
    text: str,
    *,
    enter: bool = True,
    force: bool = False,
    fresh: bool = False,
    images: list[str] | None = None,
) -> Receipt:
    """Deliver ``text`` and press Enter. ``images`` are names of what the session keeps. Raises ``Refused``.

    An agent that was started only now gets it when it is ready; one that was started for it (``fresh``) must be.
    """
    name = seen.record.name
    if seen.record.record not in recs.TAKES_INPUT:
        raise no_input(seen)
    check_text(name, text)
    if lives_on(seen.facts):
        seen = take_over(home_of(seen.folder), seen, "recovery")
        if lives_on(seen.facts):
            raise NotTakenOver(seen.record)
    try:
        with Link.connect(seen.run_folder) as link:
            watched = link.welcome.get("watched") is True and not force
            if not force and not watched and not _is_ready(link, seen) and fresh:
                raise NotReady(name)
            within_s = PROOF_TIMEOUT_S if watched else RECEIPT_TIMEOUT_S
            more = {"images": images} if images else {}
            try:
                receipt = link.request("send", text=text, enter=enter, force=force, timeout_s=within_s, **more)
            except Silent:
                raise NotTaken(name) from None
            except NoKeeper:
                now = _now(seen)
                label = status(now.facts, datetime.now(UTC)).label
                raise Unclear(f"not known to be sent to {name}: its run has ended ({label})", way_on(now)) from None
    except Silent:
        raise KeeperSilent(name, TIMEOUT_S) from None
    except NoKeeper:
        seen = _now(seen)
        label = status(seen.facts, datetime.now(UTC)).label
        raise Refused(f"{name} is not running ({label})", way_on(seen)) from None
    if receipt.get("forcible") is True:
        raise NotNow(name, str(receipt.get("why")))
    if receipt.get("ok") is not True:
        hint = way_to_answer(_now(seen)) or (NAME_THE_FILE if images else "")
        if receipt.get("unsent") is True:
            raise Refused(f"not sent to {name}: {receipt.get('why')}", hint)
        sent = "not sent" if receipt.get("typed") is True else "not known to be sent"
        raise Unclear(f"{sent} to {name}: {receipt.get('why')}", hint)
    hidden, waits = receipt.get("hidden") is True, receipt.get("waits") is True
    return Receipt(int(receipt["offset"]), str(receipt.get("proof") or ""), watched, hidden, waits)


def _is_ready(link: Link, seen: Observation) -> bool:
    """Wait until the agent reads prompts. False when it has not shown its own in time, and cannot be known to."""
    record = seen.record
    within_s = PROMPT_S if record.shows_prompt else record.ready_after_s
    answer = link.request("ready", prompt=record.shows_prompt, within_s=within_s, timeout_s=within_s + TIMEOUT_S)
    return not record.shows_prompt or answer.get("sign") != "alive"


def _now(seen: Observation) -> Observation:
    """The session after its keeper has gone."""
    try:
        return observe(home_of(seen.folder), seen.record.id)
    except FAILURES:
        return seen
