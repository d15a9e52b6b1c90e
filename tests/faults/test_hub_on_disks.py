"""A hub whose disk goes read-only: nothing can be written down, and no word is false all the same."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.advice import proposed
from tests.ground import Ground, Truth, alive
from tests.hubs import HubProcess, hub_of
from tests.support import Process, eventually

ASKS = "stty -echo; read line; exit 3"


class Disk:
    """The state folder on an ext4 of its own, which goes read-only as a failing one does: under open files."""

    def __init__(self, home: Path, image: Path) -> None:
        self.home, self.image = home, image

    def mount(self) -> None:
        with open(self.image, "wb") as file:
            file.truncate(16 << 20)
        for command in (
            ["mkfs.ext4", "-q", "-F", str(self.image)],
            ["mount", "-o", "loop,errors=remount-ro", str(self.image), str(self.home)],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"needs a file system of its own: {done.stderr.strip()}")
        os.chmod(self.home, 0o700)

    def fail(self) -> None:
        found = subprocess.run(["findmnt", "-no", "SOURCE", str(self.home)], capture_output=True, text=True, check=True)
        Path(f"/sys/fs/ext4/{os.path.basename(found.stdout.strip())}/trigger_fs_error").write_text("1")
        with pytest.raises(OSError, match="Read-only"):
            (self.home / "written").write_text("")

    def unmount(self) -> None:
        for process in Process.all():
            if process.is_keeper and any(str(self.home) in word for word in process.argv):
                os.kill(process.pid, signal.SIGKILL)
        eventually(lambda: subprocess.run(["umount", str(self.home)], capture_output=True, check=False).returncode == 0)
        self.image.unlink()


@pytest.fixture
def disk(home: Path, tmp_path: Path) -> Iterator[Disk]:
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("needs mkfs.ext4")
    made = Disk(home, tmp_path / "disk")
    made.mount()
    yield made
    made.unmount()


def row(hub: HubProcess, session: Truth) -> dict[str, Any]:
    answer: dict[str, Any] = hub.ask("GET", f"/api/sessions/{session.id}")
    return answer


@pytest.mark.ids("F37")
def test_on_a_disk_that_went_read_only_the_hub_tells_of_every_end(disk: Disk, ground: Ground) -> None:
    lost, asked, stays = (ground.begin_sh(ASKS, name=name) for name in ("lost", "asked", "stays"))
    with hub_of(ground) as hub:

        async def scene() -> list[dict[str, Any]]:
            async with hub.ws() as client:
                await client.attach(asked.id)
                disk.fail()
                lost.kill_keeper()
                first = await client.until("terminal.exit", lost.id, 60)
                await client.say("terminal.input", sessionId=asked.id, data="\r")
                return [first, await client.until("terminal.exit", asked.id, 60)]

        told = asyncio.run(scene())
        assert [event["exitCode"] for event in told] == [None, 3]
        labels = {item["name"]: item["label"] for item in hub.ask("GET", "/api/sessions")}
        assert labels["lost"] == "failed: keeper lost"
        assert labels["asked"] == "failed: command exited with code 3"
        assert labels["stays"].startswith("running")
        assert alive(stays.agent_pid())
        assert [json["state"] for json in hub.ask("GET", "/api/agents")] == ["error", "error", "running"]
        assert asked.state == "running"  # the disk has nothing of it
        assert hub.log().count("cannot write down how a run ended") <= 2
        said = ground.hitch("status").out
        doctor = ground.hitch(*proposed(said, "hitch doctor", 2)[1:], check=1).out
        assert "cannot be written down" in doctor


@pytest.mark.ids("F37")
def test_what_a_keeper_told_and_could_not_write_the_hub_writes(ground: Ground, hub: HubProcess, tmp_path: Path) -> None:
    session = ground.begin_sh(ASKS, name="asked")
    keeper = session.keeper_pid()
    calls = "rename,link,fsync,fdatasync"
    refuse = ["-e", f"trace={calls}", "-e", f"inject={calls}:error=EROFS"]
    tracer = subprocess.Popen(["strace", "-qq", "-p", str(keeper), "-o", tmp_path / "log", *refuse])
    try:
        eventually(lambda: f"TracerPid:\t{tracer.pid}\n" in Path(f"/proc/{keeper}/status").read_text())
        hub.ask("POST", f"/api/sessions/{session.id}/prompt", {"text": "", "force": True})
        eventually(lambda: row(hub, session)["label"] == "failed: command exited with code 3", 60)
        eventually(lambda: session.state == "failed")
        assert session.exit()["code"] == 3
    finally:
        tracer.kill()
        tracer.wait()
