"""Started by a keeper as ``python -I -m hitchpost.watcher AGENT RUN_FOLDER KEEPER_PID``. Ends with the keeper."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from hitchpost.agents import catalog
from hitchpost.system import process
from hitchpost.watcher.adapters import open_adapter
from hitchpost.watcher.link import KeeperLink
from hitchpost.watcher.watching import Watching


async def watch(agent_name: str, run_folder: str) -> None:
    agent = catalog.load(agent_name)
    link = await KeeperLink.connect(run_folder)
    watching = Watching(agent, run_folder, link)
    try:
        await watching.run(open_adapter(watching))
    finally:
        watching.close()


def main() -> None:
    agent_name, run_folder, keeper = sys.argv[1:4]
    process.die_with_parent(signal.SIGKILL)
    if os.getppid() != int(keeper):
        return
    os.nice(5)  # an agent's start comes first
    asyncio.run(watch(agent_name, run_folder))


main()
