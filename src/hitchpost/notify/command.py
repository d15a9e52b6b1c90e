"""A command of the user, and the desktop's own. Never through a shell: the text is in the environment and on stdin."""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hitchpost.notify.channel import Undelivered
from hitchpost.notify.message import Message

LIMIT_S = 10.0
DESKTOP = "notify-send"
PREFIX = "NOTIFY_"
"""Of variables. ``HITCHPOST_SESSION`` would make the command one of the session's processes, to be ended with it."""


@dataclass(frozen=True, slots=True)
class Command:
    """Runs ``argv`` for each message; 0 says that it was told."""

    argv: tuple[str, ...]
    name: str = "command"
    dedupes: bool = False

    @property
    def where(self) -> str:
        return os.path.basename(self.argv[0])

    async def send(self, message: Message) -> str:
        texts = {f"{PREFIX}{name.upper()}": text for name, text in message.as_json().items()}
        stdin = "\n".join(filter(None, (message.title, message.body, message.link))) + "\n"
        return await run(self.argv, stdin.encode(), texts)


@dataclass(frozen=True, slots=True)
class Desktop:
    name: str = "desktop"
    dedupes: bool = False

    @property
    def where(self) -> str:
        return DESKTOP

    async def send(self, message: Message) -> str:
        if shutil.which(DESKTOP) is None:
            raise Undelivered(f"{DESKTOP} is not installed")
        urgency = "critical" if message.is_urgent else "normal"
        # some desktops read marks such as <b> in the body
        body = message.body.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        argv = (DESKTOP, f"--urgency={urgency}", "--app-name=Hitchpost", "--", message.title, body)
        return await run(argv, b"", {})


async def run(argv: Sequence[str], stdin: bytes, variables: Mapping[str, str]) -> str:
    """Raises ``Undelivered``. One that takes too long is killed, with all that it started in its process group."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            env={**os.environ, **variables},
            start_new_session=True,
        )
    except OSError as error:
        raise Undelivered(f"cannot run {os.path.basename(argv[0])}: {(error.strerror or '').lower()}") from None
    try:
        async with asyncio.timeout(LIMIT_S):
            await process.communicate(stdin)
    except TimeoutError:
        raise Undelivered(f"it did not end within {LIMIT_S:g} s") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, 9)
            await process.wait()
    if process.returncode:
        raise Undelivered(f"it ended with code {process.returncode}")
    return "exit code 0"
