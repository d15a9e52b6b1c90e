"""``/api/catalog``: what a session can be made of on the hub's machine."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from hitchpost import settings as config
from hitchpost.hub.core import Hub
from hitchpost.ops.views import catalog


class Catalog:
    def __init__(self, hub: Hub) -> None:
        self.hub = hub

    async def answer(self) -> dict[str, Any]:
        return await self.hub.do(self._look)

    @staticmethod
    def _look() -> dict[str, Any]:
        agents = catalog.agents(os.environ, config.load())
        return {"agents": [asdict(one) for one in agents], "runtimes": [asdict(one) for one in catalog.runtimes()]}
