"""An adapter in the test's own process, beside a keeper that only writes down what it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hitchpost.agents import catalog
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.settings import Settings
from hitchpost.store.home import session_folder
from hitchpost.watcher.adapter import Adapter
from hitchpost.watcher.adapters import open_adapter
from hitchpost.watcher.watching import Watching
from tests.ground import Ground

SOON_S = 30.0


class Keeper:
    """What a watcher takes for its link to a keeper. ``reports`` are its verdicts, oldest first."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any] | None] = []
        self.told = asyncio.Event()
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def tell(self, op: str, **fields: Any) -> None:
        if op == "verdict":
            self.reports.append(fields["report"])
            self.told.set()

    def follow(self, offset: int) -> None:
        pass

    def close(self) -> None:
        pass

    def says(self, event: dict[str, Any]) -> None:
        self._events.put_nowait(event)

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        while True:
            yield await self._events.get()

    @property
    def report(self) -> dict[str, Any]:
        return (self.reports[-1] if self.reports else None) or {}

    @property
    def states(self) -> list[str]:
        """One after the other, none twice in a row; empty where nothing is known."""
        found = list(self._words(0))
        return [state for at, state in enumerate(found) if at == 0 or found[at - 1] != state]

    def _words(self, since: int) -> Iterator[str]:
        return ((report or {}).get("state", "") for report in self.reports[since:])

    async def becomes(self, state: str) -> dict[str, Any]:
        async with asyncio.timeout(SOON_S):
            while self.report.get("state", "") != state:
                self.told.clear()
                await self.told.wait()
        return self.report

    async def stays(self, state: str, for_s: float) -> None:
        """It is ``state`` all the time; what is said for a moment only counts, too."""
        before = len(self.reports) - 1
        await asyncio.sleep(for_s)
        assert set(self._words(before)) == {state}


class Watched:
    def __init__(self, watching: Watching, adapter: Any, keeper: Keeper) -> None:
        self.watching, self.adapter, self.keeper = watching, adapter, keeper

    def send(self, text: str) -> asyncio.Task[dict[str, Any]]:
        return asyncio.create_task(self.watching.send(text, enter=True))

    def answer(self, request: str, choice: str) -> asyncio.Task[dict[str, Any]]:
        return asyncio.create_task(self.adapter.answer(request, choice, ""))


def run_folder(ground: Ground, agent: str) -> Path:
    """That of the first run of a session, which nobody has started."""
    record = create(str(ground.home), SessionSpec(str(ground.place), agent=agent), Settings(), actor="test")
    folder = Path(session_folder(str(ground.home), record.id)) / "runs" / "1"
    folder.mkdir(parents=True)
    began = {"agent": {"pid": 1, "start": 1}, "argv": [agent], "started_at": datetime.now(UTC).isoformat()}
    (folder / "run.json").write_text(json.dumps({"schema": 1, **began}))
    return folder


@asynccontextmanager
async def watched(agent: str, folder: Path) -> AsyncIterator[Watched]:
    keeper = Keeper()
    watching = Watching(catalog.load(agent), str(folder), keeper)  # type: ignore[arg-type]
    adapter: Adapter = open_adapter(watching)
    beside = asyncio.create_task(watching.run(adapter))
    try:
        await asyncio.sleep(0)
        yield Watched(watching, adapter, keeper)
    finally:
        beside.cancel()
        await asyncio.wait([beside])
        watching.close()
