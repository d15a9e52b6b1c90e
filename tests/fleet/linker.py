"""A hub's links without the hub: ``python -m tests.fleet.linker SESSION_FOLDER RUN IDENTITY PORT``."""

from __future__ import annotations

import asyncio
import signal
import sys
from functools import partial

from hitchpost.fleet.link import tcp
from hitchpost.fleet.links import Links
from hitchpost.fleet.tls import Identity


async def link(session_folder: str, run: int, identity: str, port: int) -> None:
    links = Links(Identity(identity, is_pod=False), lambda folder, news: None)
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    made = links.open(session_folder, partial(tcp, "127.0.0.1", port))
    await links.stand_in(made, run)
    await asked.wait()
    await links.close()


def main() -> None:
    session_folder, run, identity, port = sys.argv[1:5]
    asyncio.run(link(session_folder, int(run), identity, int(port)))


if __name__ == "__main__":
    main()
