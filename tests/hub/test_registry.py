"""The registry in this process, on real sessions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hitchpost.hub import registry
from hitchpost.hub.registry import Registry
from tests.ground import Ground
from tests.support import eventually


@pytest.mark.ids("F30", "F41")
def test_adoption_that_takes_too_long_goes_on_and_tells_nobody_of_old_ends(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        ground.begin_sh(f"exit {number}", name=f"s{number}").ended()
    monkeypatch.setattr(registry, "ADOPTION_BUDGET_S", 0.0)
    told: list[dict[str, Any]] = []

    async def scene() -> list[str]:
        known = Registry(str(ground.home))
        known.subscribe(told.append)
        await known.open()
        await asyncio.to_thread(eventually, lambda: len(known.listed()) == 3, what="the rest of the adoption")
        labels = [one.shape["label"] for one in known.listed()]
        await known.close()
        return labels

    assert asyncio.run(scene()) == [
        "completed",
        "failed: command exited with code 1",
        "failed: command exited with code 2",
    ]
    assert told == []
