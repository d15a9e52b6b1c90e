"""The screen of the chosen session: what following it shows, and what it leaves."""

from __future__ import annotations

import asyncio
from typing import Any

from rich.text import Text

from hitchpost.tui.preview import Preview
from tests.cli.attaching import PATIENCE_S
from tests.ground import Ground, Truth


async def followed(ground: Ground, session: Truth) -> int:
    """How many tasks are left of a view that has waited for output and was closed."""
    shown = asyncio.Event()

    def show(picture: Text) -> None:
        if "hello" in picture.plain:
            shown.set()

    preview = Preview(str(ground.home), show)
    before = asyncio.all_tasks()
    shape: Any = ground.ps(session)
    following = asyncio.create_task(preview.follow(shape))
    async with asyncio.timeout(PATIENCE_S):
        await shown.wait()
        for _ in range(3):  # it asks for more, and waits
            await asyncio.sleep(0)
        following.cancel()
        await asyncio.wait([following])
        await asyncio.sleep(0)
    left = asyncio.all_tasks() - before - {following}
    await asyncio.to_thread(preview.close)
    return len(left)


def test_a_view_that_is_closed_leaves_no_task(ground: Ground) -> None:
    session = ground.begin_sh("echo hello; exec cat", name="dev")
    assert asyncio.run(followed(ground, session)) == 0
    ground.end(session)
