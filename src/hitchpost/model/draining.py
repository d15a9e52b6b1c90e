"""Moving the sessions of a node elsewhere: what becomes of each, and the words for it. Decisions only; others act."""

from __future__ import annotations

from hitchpost.model import record, run
from hitchpost.model.facts import Facts
from hitchpost.model.pods import doubt_of
from hitchpost.values import value

REST, SUSPEND, MOVE = "rest", "suspend", "move"
WAYS: dict[str, str] = {
    REST: "its run is ended; the next prompt starts it on another node",
    SUSPEND: "its run is ended and its record suspended; hitch resume starts it on another node",
    MOVE: "its run is ended, and resumed on another node at once",
}
"""What may become of a session whose run is live."""
END, POD, STAYS = "end", "pod", "stays"
"""Its run is ended, and its pod with it; its pod is ended, which has no run; or nothing can be done."""
REASON = "node {node} is drained"


@value
class Step:
    """What becomes of one session. ``words`` say it to a person."""

    kind: str
    words: str


def is_on(facts: Facts, node: str) -> bool:
    """Whether the session has a pod on the node, as far as is known."""
    return facts.pod is not None and not facts.pod.ended and facts.pod.node == node


def step_of(facts: Facts, way: str) -> Step:
    """Of a session that is on the node."""
    doubt = doubt_of(facts)
    if doubt:
        return Step(STAYS, f"it stays: {doubt}")
    if facts.state not in run.LIVE:
        return Step(POD, "its pod is ended; no run is live in it")
    return Step(END, WAYS[way])


def intent_of(way: str) -> str:
    """Who asks a run to end. What rests starts again with the next prompt; what a shutdown has ended does not."""
    return run.SHUTDOWN if way == SUSPEND else run.REAPER


def was_drained(facts: Facts, why: str, node: str) -> bool:
    """Whether the last run of a session was ended by a drain of the node, and none has begun since. ``why`` is the
    reason that was written down for its end."""
    if facts.state != run.STOPPED or facts.record not in (record.ACTIVE, record.SUSPENDED):
        return False
    return f"{why},".startswith(f"{REASON.format(node=node)},")
