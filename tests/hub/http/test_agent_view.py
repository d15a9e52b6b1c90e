"""Showing sessions as agents does not wait for the disk."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from hitchpost.agents import catalog
from hitchpost.hub.http.agent_view import AgentViews
from hitchpost.model import run as runs
from hitchpost.ops.views.listing import listing
from tests.store.made import session


def test_the_catalog_is_read_once_and_not_in_the_event_loop(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2):
        session(home, runs.COMPLETED, index=number, name=f"s{number}")
    rows = listing(str(home), shapes=True)
    load, readers = catalog.load, list[int]()

    def watched(name: str) -> catalog.Agent:
        readers.append(threading.get_ident())
        return load(name)

    monkeypatch.setattr(catalog, "load", watched)

    async def scene() -> list[str]:
        views = AgentViews()
        await views.of(rows[0])
        return [view["name"] for view in await views.of_all(rows)]

    assert asyncio.run(scene()) == ["s1", "s2"]
    assert len(readers) == len(catalog.names())
    assert threading.get_ident() not in readers
