"""The first prompt of a session: how it reaches the agent. It is kept, and sent again only when somebody asks to."""

from __future__ import annotations

from hitchpost import wire
from hitchpost.agents import catalog
from hitchpost.errors import HitchpostError, NotDelivered, Refused, UsageError
from hitchpost.model.facts import has_container
from hitchpost.ops.views.observe import Observation
from hitchpost.store.records import Record
from hitchpost.store.session import Session
from hitchpost.values import value


@value
class FirstPrompt:
    """``typed`` is what is typed when the agent is ready; ``argv`` are the arguments of a run that has it there."""

    typed: str | None = None
    argv: tuple[str, ...] | None = None


NONE = FirstPrompt()


def check(text: str | None) -> None:
    """Raises ``UsageError`` for a text that no agent can get."""
    if text is not None and (why := wire.untypable(text.encode("utf-8", "surrogateescape"))):
        raise UsageError(f"the first prompt cannot be sent: {why}", field="prompt")


def prepared(kind: catalog.Agent | None, record: Record, text: str, *, typed: bool) -> FirstPrompt:
    """An argument where the agent takes one, unless it is to be ``typed``, or is watched: then it shows what it got."""
    watched = kind is not None and kind.adapter != "" and not has_container(record.runtime)
    if kind is None or not kind.prompt_args or typed or watched:
        return FirstPrompt(typed=text)
    return FirstPrompt(argv=kind.command(record.argv[len(kind.argv) :], text))


def again(record: Record, folder: str) -> FirstPrompt:
    """The first prompt once more. Raises ``Refused`` when none was kept."""
    kept = Session(folder, actor="").first_prompt()
    if kept is None:
        why = f"{record.name} has no first prompt that could be sent again"
        raise Refused(why, f"hitch restart {record.word} starts it without one")
    text, typed = kept
    return prepared(catalog.agent_of(record.agent, record.argv), record, text, typed=typed)


def deliver(seen: Observation, prompt: FirstPrompt) -> None:
    """Type it, where that is how the agent gets it. Raises ``NotDelivered``."""
    if prompt.typed is None:
        return
    from hitchpost.ops.sessions.send import send

    record = seen.record
    try:
        send(seen, prompt.typed, fresh=True)
    except HitchpostError as error:
        why = error.message.removeprefix(f"not sent to {record.name}: ")
        why = why.removeprefix(f"not known to be sent to {record.name}: ")
        raise NotDelivered(record.name, record.word, why) from None
