"""Why a session has its status, as ``hitch explain --json`` prints it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hitchpost.hub.core import Hub
from hitchpost.ops.views.explain import explain
from hitchpost.ops.views.session_json import rfc3339
from hitchpost.text import readable


class Explain:
    def __init__(self, hub: Hub) -> None:
        self.hub = hub

    async def answer(self, session: str) -> dict[str, Any]:
        one = self.hub.registry.find(session)
        assert one.seen is not None
        found = await self.hub.do(explain, one.seen, datetime.now(UTC))
        facts = [
            {"fact": fact.fact, "value": fact.value, "source": fact.source, "at": rfc3339(fact.at)}
            for fact in found.facts
        ]
        facts = readable(facts)
        return {"session": found.session, "at": rfc3339(found.at), "rule": found.rule, "facts": facts}
