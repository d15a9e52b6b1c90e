"""Changes to the files that agents work on, told by the kernel while somebody looks at them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

from hitchpost.errors import HitchpostError
from hitchpost.hub.changes import ENTRIES, IN_ATTRIB, IN_MODIFY, Changes
from hitchpost.ops.views.workplace import tree_of
from hitchpost.store.records import Record
from hitchpost.workspaces.tree import Tree
from hitchpost.workspaces.view import View

TELL_AFTER_S = 0.2
MOST_FOLDERS = 4000
"""Of a larger tree only so many are watched: the kernel allows a user some ten thousand in all."""

Tell = Callable[[], None]


class _Tree:
    def __init__(self, record: Record) -> None:
        self.record = record
        self.tells: list[Tell] = []
        self.watched: set[str] = set()
        self.timer: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None


class Trees:
    """Worktrees that somebody looks at. What git ignores is not watched."""

    def __init__(self, home: str, do: Callable[..., Awaitable[list[str]]]) -> None:
        self._home, self._do = home, do
        self._trees: dict[str, _Tree] = {}
        self._changes: Changes | None = None

    def watch(self, record: Record, tell: Tell) -> Callable[[], None]:
        """Call ``tell`` soon after something changed in the session's worktree. Returns what ends that."""
        tree = self._trees.setdefault(record.id, _Tree(record))
        tree.tells.append(tell)
        if tree.task is None:
            tree.task = asyncio.create_task(self._look(tree))

        def leave() -> None:
            tree.tells.remove(tell)
            if not tree.tells:
                self._forget(tree)

        return leave

    def close(self) -> None:
        for tree in list(self._trees.values()):
            self._forget(tree)
        if self._changes is not None:
            self._changes.close()
            self._changes = None

    async def _look(self, tree: _Tree) -> None:
        """Watch the folders that are there and were not. What came into them meanwhile was not told: so it is now."""
        try:
            found = await self._do(_watchable, self._home, tree.record)
            self._changes = self._changes or Changes(self._heard, ENTRIES | IN_MODIFY | IN_ATTRIB)
            self._changes.open()
        except (HitchpostError, OSError):
            return  # the difference says what is wrong with the folder
        new = [folder for folder in found if folder not in tree.watched]
        tree.watched.update(folder for folder in new if self._changes.watch(folder))
        if new:
            self._soon(tree)

    def _heard(self, folder: str, name: str) -> None:
        for tree in self._trees.values():
            if folder == "" or folder in tree.watched:
                # a folder that came anew at the same place is not the one that is watched
                tree.watched.discard(os.path.join(folder, name))
                self._soon(tree)

    def _soon(self, tree: _Tree) -> None:
        if tree.timer is None and tree.tells:
            tree.timer = asyncio.get_running_loop().call_later(TELL_AFTER_S, self._tell, tree)

    def _tell(self, tree: _Tree) -> None:
        tree.timer = None
        for tell in tree.tells:
            tell()
        if tree.task is None or tree.task.done():
            tree.task = asyncio.create_task(self._look(tree))

    def _forget(self, tree: _Tree) -> None:
        self._trees.pop(tree.record.id, None)
        if tree.timer is not None:
            tree.timer.cancel()
        if tree.task is not None:
            tree.task.cancel()
        others = set().union(*(other.watched for other in self._trees.values()))
        for folder in tree.watched - others:
            if self._changes is not None:
                self._changes.forget(folder)


def _watchable(home: str, record: Record) -> list[str]:
    tree = tree_of(home, record)
    return [] if tree is None else _folders(tree)


def _folders(tree: Tree) -> list[str]:
    """The folders of the worktree, its top first, without git's own and ignored ones."""
    with View(tree) as view:
        words = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        left_out = {os.path.join(tree.top, path.rstrip("/")) for path in view.run(*words).items}
    found: list[str] = []
    todo = [tree.top]  # os.walk would recurse, and an agent decides how deep its folders are
    while todo and len(found) < MOST_FOLDERS:
        place = todo.pop()
        found.append(place)
        try:
            with os.scandir(place) as entries:
                below = [entry for entry in entries if entry.name != ".git" and entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        todo += [entry.path for entry in below if entry.path not in left_out]
    return found
