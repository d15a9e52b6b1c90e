"""Bringing back what a reboot interrupted, where the settings want it."""

from __future__ import annotations

import asyncio

import structlog

from hitchpost.errors import FAILURES
from hitchpost.hub.core import ACTOR, Hub
from hitchpost.model.record import SUSPENDED
from hitchpost.ops.sessions.reboot import interrupted

log = structlog.get_logger()


async def look_at_boot(hub: Hub, *, resume: bool) -> None:
    """At the first start after a reboot, resume what it interrupted, if ``resume``. One that fails stays suspended."""
    suspended = [session.id for session in hub.registry.listed() if session.shape["record"] == SUSPENDED]
    found = await hub.do(interrupted, hub.home, suspended)
    if resume:
        await asyncio.gather(*(_resume(hub, session_id) for session_id in found))


async def _resume(hub: Hub, session_id: str) -> None:
    try:
        _, begun = await hub.resume(session_id, actor=ACTOR)
        log.info("resumed after a reboot", session_id=session_id, same_conversation=begun.resumed)
    except FAILURES as error:
        log.warning("not resumed after a reboot", session_id=session_id, error=str(error))
