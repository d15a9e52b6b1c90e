"""Who looks at a session's changes is told when there are new ones."""

from __future__ import annotations

import asyncio
import shutil

from hitchpost.hub.trees import _folders
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.repos import Repo


async def heard(hub: HubProcess, ground: Ground, repo: Repo) -> None:
    async with hub.ws() as socket:
        dev = ground.begin_sh("exec cat", name="dev", place=repo.path)

        async def until_told(text: str) -> None:
            """Ask for the difference whenever something is told, as the page does, until ``text`` is in it."""
            patch = ""
            while text not in patch:
                await socket.until("workspace.changed", dev.id)
                patch = hub.ask("GET", f"/api/sessions/{dev.id}/diff")["patch"]

        await socket.until("session.created", dev.id)
        await socket.say("workspace.watch", sessionId=dev.id)
        await socket.until("workspace.changed", dev.id)
        repo.write("a.txt", "a change\n")
        await until_told("a change")
        for turn in ("first", "second"):
            repo.write("deep/er/b.txt", f"{turn} in a new folder\n")
            await until_told(f"{turn} in a new folder")
            repo.write("deep/er/b.txt", f"{turn} in a known one\n")
            await until_told(f"{turn} in a known one")
            shutil.rmtree(repo.path / "deep")
        await socket.say("workspace.unwatch", sessionId=dev.id)
        await socket.say("workspace.watch", sessionId="nobody")
        assert (await socket.until("error"))["code"] == "not_found"
    ground.end(dev)


def test_changes_are_told_in_folders_that_are_new_too(ground: Ground, hub: HubProcess, repo: Repo) -> None:
    asyncio.run(heard(hub, ground, repo))
    assert "Traceback" not in hub.log()


def test_what_git_ignores_is_not_watched(repo: Repo) -> None:
    repo.commit(".gitignore", "node_modules\n")
    for name in ("node_modules/a/b.js", "src/deep/c.py", "src/node_modules/d.js"):
        repo.write(name)
    top = str(repo.path)
    assert sorted(_folders(Repo(repo.path / "src").tree)) == [top, f"{top}/src", f"{top}/src/deep"]
