"""Handing a session over: another agent of the catalog goes on with the same conversation, as from terminal to ACP."""

from __future__ import annotations

from hitchpost.agents import catalog, prepare
from hitchpost.errors import Refused
from hitchpost.model.facts import has_container
from hitchpost.store.records import Record
from hitchpost.values import replace

OF_AGENT = ("agent", "argv", "ready_after_s", "shows_prompt", "quit_signal", "quit_group", "chat")
"""What the record has from the catalog."""


def handed_over(record: Record, agent: str) -> Record:
    """The record once ``agent`` runs in its session. Raises ``Refused`` or ``UsageError``; nothing is written here."""
    if agent == record.agent:
        return record
    wanted, present = catalog.load(agent), catalog.agent_of(record.agent, record.argv)
    others = sharing(record.agent)
    if present is None or agent not in others:
        known = f"it can be handed over to {' or '.join(others)}" if others else ""
        raise Refused(f"{wanted.title} cannot go on with a conversation of {catalog.title(record.agent)}", known)
    if has_container(record.runtime):
        raise Refused(f"{record.name} is on the {record.runtime} runtime, where its conversation stays")
    if not record.conversation_id or not record.conversation_begun:
        raise Refused(f"{record.name} has no conversation that could be handed over to {wanted.title}")
    if own := record.argv[len(present.argv) :]:
        raise Refused(
            f"{record.name} was started with arguments of its own ({' '.join(own)}), which are {present.name}'s"
        )
    prepare.options(wanted, permission_mode=record.permission_mode, model=record.model)  # none of them is lost silently
    return replace(
        record,
        agent=wanted.name,
        argv=wanted.argv,
        ready_after_s=wanted.ready_after_s,
        shows_prompt=wanted.shows_prompt,
        quit_signal=wanted.quit_signal,
        quit_group=wanted.quit_group,
        chat=wanted.adapter == catalog.ACP,
    )


def sharing(agent: str) -> list[str]:
    """The other agents that can go on with a conversation of this one."""
    known = {other.name: other.conversations for other in catalog.readable()}
    return sorted(name for name, whose in known.items() if name != agent and whose == known.get(agent))
