"""What an agent is doing, from what several sources say of it: one word, and where it comes from.

A report's states are those of OSC 7501, and ``unknown``. The keeper imports this module, so it stays light.
"""

from __future__ import annotations

from hitchpost.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

IDLE, WORKING, BLOCKED, DONE, ERROR, UNKNOWN = "idle", "working", "blocked", "done", "error", "unknown"
STATES = (IDLE, WORKING, BLOCKED, DONE, ERROR, UNKNOWN)
AT_PROMPT = (IDLE, DONE, ERROR)
"""The agent has ended its turn, and takes the next prompt."""
PERMISSION, QUESTION, DIALOG, AUTH, LIMIT = "permission", "question", "dialog", "auth", "limit"
STARTING = "starting"
"""Of an agent that is not known yet: it has not reported anything."""
OSC, HOOKS, SCREEN, TITLE = "osc7501", "hooks", "screen", "title"
"""Sources that several agents have: the reports in their own output, their hooks, what they draw."""

SETTLE_S = 2.0
"""Sources speak at different moments. What one says later than another, and otherwise, counts after this time."""
DELIVERED_S = 5.0
"""For so long a prompt that was delivered counts as begun, whatever was said before it."""
LONGEST_MESSAGE = 500


@value
class Evidence:
    """What one source said, and when (by a clock that nobody sets). ``message`` is the agent's own text: untrusted.

    ``request`` names what can be answered, and ``options`` how; ``takes_text``: with a line of text, too.
    ``background`` counts tasks that go on after the turn.
    ``until`` is when a limit ends, as the agent says it; ``ends_at`` the moment, where that is understood.
    ``adds``: better sources cannot say this, so it counts beside their "at the prompt".
    """

    source: str
    state: str
    at: float
    kind: str = ""
    message: str = ""
    request: str = ""
    options: tuple[str, ...] = ()
    takes_text: bool = False
    background: int = 0
    until: str = ""
    ends_at: str = ""
    adds: bool = False


DETAILS = ("kind", "message", "request", "options", "takes_text", "background", "until", "ends_at")


def plain(text: str) -> str:
    """An agent's text as it may be shown and stored: one line, nothing that a terminal obeys, not too long.

    Whoever reads it sees that there is more: what is allowed may stand there.
    """
    begins = text[: 4 * LONGEST_MESSAGE]
    found = "".join(letter if letter.isprintable() else " " for letter in begins).strip()
    if len(found) <= LONGEST_MESSAGE and len(begins) == len(text):
        return found
    return f"{found[: LONGEST_MESSAGE - 1]}…"


def is_said(evidence: Mapping[str, Evidence], source: str, state: str, message: str) -> bool:
    """Whether this is the last thing a source said. Saying it again would make it newer than it is."""
    said = evidence.get(source)
    return said is not None and (said.state, said.message) == (state, plain(message))


def judge(order: tuple[str, ...], evidence: Mapping[str, Evidence], now: float) -> Evidence | None:
    """The best source's word, completed by what others know of the same; None when nobody has said anything.

    ``order`` has the best source first. A lesser source that says something else later on contradicts it: unknown.
    """
    said = [evidence[source] for source in order if source in evidence]
    if not said:
        return None
    best = said[0]
    if best.state in AT_PROMPT:
        best = next((other for other in said if other.adds and other.state not in AT_PROMPT), best)
        best = next((other for other in said if other.adds and best.state in AT_PROMPT), best)
    for other in said:
        if _contradicts(other, best) and now - other.at >= SETTLE_S:
            text = f"{best.source} says {best.state}, but {other.source} says {other.state}"
            return Evidence("contradiction", UNKNOWN, other.at, message=text)
    for other in said:
        best = _completed(best, other)
    return best


def settles_at(order: tuple[str, ...], evidence: Mapping[str, Evidence], now: float) -> float | None:
    """When to judge again although nobody has said anything new."""
    said = [evidence[source] for source in order if source in evidence]
    due = [other.at + SETTLE_S for other in said for best in said[:1] if _contradicts(other, best)]
    return min((moment for moment in due if moment > now), default=None)


def _contradicts(other: Evidence, best: Evidence) -> bool:
    """Whether ``other`` was said after ``best``, and both cannot be true."""
    return (
        other.at > best.at and (other.state == WORKING) != (best.state == WORKING) and not other.adds and not best.adds
    )


def _completed(best: Evidence, other: Evidence) -> Evidence:
    """With what another source knows of the same state, and of the same moment or later."""
    same = other.state == best.state or (other.state in AT_PROMPT and best.state in AT_PROMPT)
    if other is best or not same or other.at < best.at - SETTLE_S:
        return best
    more = {name: getattr(other, name) for name in DETAILS if not getattr(best, name) and getattr(other, name)}
    return replace(best, **more) if more else best


def refusal(report: Mapping[str, object] | None, *, queues: bool = True) -> str | None:
    """Why a prompt must not be typed now; None when the agent takes one. No report at all says nothing against it."""
    report = report or {}
    state = report.get("state")
    if state is None or state in AT_PROMPT or (state == WORKING and queues):
        return None
    if state == WORKING:
        return "the agent is working and loses what is typed now"
    about = f": {report['message']}" if report.get("message") else ""
    if state == BLOCKED:
        return f"{BLOCKED_BY.get(str(report.get('kind')), BLOCKED_BY[PERMISSION])}{about}"
    return f"it is not known whether the agent is at its prompt{about}"


BLOCKED_BY = {
    PERMISSION: "the agent is waiting for a permission",
    QUESTION: "the agent is asking a question",
    DIALOG: "the agent is showing a dialog",
    AUTH: "the agent is not signed in",
    LIMIT: "the agent has reached a usage limit",
}
