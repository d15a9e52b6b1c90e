"""What all workers of a run share: begun by the first that needs it, ended with the run, whatever ends that.

The process that keeps it belongs to no worker. It writes how it is reached into a file, and goes when the process that
began the run is gone: that one cannot forget it.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from tests.support import BEFORE, Process, eventually

ROOT = Path(__file__).parents[1]
RUN = "PYTEST_RUN"
"""Names the process that began the run, for the workers: its number and when it started."""


class NotBegun(Exception):
    """Raised when the process that keeps something for a run has ended before it was ready."""


class Enough(Exception):
    """Raised in the process that keeps something when nobody needs it any more."""


def name_run() -> None:
    """Called by the process that starts the workers."""
    os.environ.setdefault(RUN, _name(os.getpid()))


def _name(pid: int) -> str:
    process = Process.read(pid)
    assert process is not None
    return f"{pid}-{process.start_ticks}"


def shared(module: str) -> dict[str, Any]:
    """What ``python -m MODULE keep FOLDER`` has written, begun now if no other worker has."""
    folder = _folder(module)
    ready = folder / "ready.json"
    while True:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _alone_in(folder) as held:
                if not ready.exists() and _keeper(folder):  # it is being ended, and takes its folder with it
                    eventually(lambda: _keeper(folder) is None, what=f"{module} to end")
                    continue
                if not ready.exists() or _keeper(folder) is None:
                    if not os.path.samestat(os.fstat(held), folder.stat()):
                        continue  # it has just ended
                    _begin(module, folder)
                found = json.loads(ready.read_bytes())
        except FileNotFoundError:  # the folder went with it, in this moment
            continue
        assert isinstance(found, dict)
        return found


def _folder(module: str) -> Path:
    return Path("/tmp") / f"hpr-{BEFORE.get(RUN) or _name(os.getpid())}" / module


@contextmanager
def _alone_in(folder: Path) -> Iterator[int]:
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield held
    finally:
        os.close(held)


def _keeper(folder: Path) -> Process | None:
    """The process that keeps, unless it was killed."""
    try:
        pid, ticks = map(int, (folder / "keeper").read_text().split())
    except FileNotFoundError:
        return None
    found = Process.read(pid)
    return found if found and found.start_ticks == ticks and not found.is_zombie else None


def _begin(module: str, folder: Path) -> None:
    (folder / "ready.json").unlink(missing_ok=True)
    with open(folder / "log", "wb") as log:
        said = subprocess.run(
            ["sh", "-c", 'setsid "$@" </dev/null >&2 & echo $!', "sh", sys.executable, "-m", module, "keep", folder],
            env={name: value for name, value in BEFORE.items() if not name.startswith("HITCHPOST_")},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
            check=True,
        )
    keeper = Process.read(int(said.stdout))
    if keeper:
        (folder / "keeper").write_text(f"{keeper.pid} {keeper.start_ticks}")

    def ready() -> bool:
        if (folder / "ready.json").exists():
            return True
        if _keeper(folder) is None:
            raise NotBegun(f"{module} has ended: {(folder / 'log').read_text(errors='replace')[-4000:]}")
        return False

    eventually(ready, 300, f"{module} to be ready")


@contextmanager
def kept(folder: Path) -> Iterator[None]:
    """In the process that keeps: the body begins, says ``tell`` and ``until_the_end``; afterwards nothing is left."""
    try:
        yield
    finally:
        # at once: the next one may have the place from now on
        with suppress(OSError):
            folder = folder.rename(folder.with_name(f"{folder.name}.{os.getpid()}"))
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # others are kept there
            folder.parent.rmdir()


def tell(folder: Path, found: dict[str, Any]) -> None:
    """It is ready, and this is how it is reached."""
    draft = folder / "ready.json.new"
    draft.write_text(json.dumps(found))
    draft.rename(folder / "ready.json")


def end(module: str) -> None:
    """Nobody needs it any more, and it costs something: end it before the run ends. Who does need it begins another."""
    folder = _folder(module)
    if folder.exists():
        with _alone_in(folder):
            if keeper := _keeper(folder):
                (folder / "ready.json").unlink(missing_ok=True)
                os.kill(keeper.pid, signal.SIGTERM)


def until_the_end(folder: Path) -> None:
    """Waits until the run of this folder has ended, or somebody asks this process to."""
    signal.signal(signal.SIGTERM, _enough)
    try:
        _until_the_run_ends(folder)
    except Enough:
        pass
    # what is ended must not be interrupted
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _enough(number: int, frame: FrameType | None) -> None:
    raise Enough


def _until_the_run_ends(folder: Path) -> None:
    pid, ticks = folder.parent.name.removeprefix("hpr-").split("-")
    try:
        began = os.pidfd_open(int(pid))
    except ProcessLookupError:
        return
    with open(began):
        found = Process.read(int(pid))
        if found and found.start_ticks == int(ticks):
            select.select([began], [], [])
