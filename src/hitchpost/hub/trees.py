"""Changes to the files that agents work on, reported by the kernel while somebody looks at them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

from hitchpost.errors import FAILURES
from hitchpost.hub.changes import ENTRIES, IN_ATTRIB, IN_MODIFY, Changes
from hitchpost.hub.tasks import Tasks
from hitchpost.ops.views.workplace import tree_of
from hitchpost.store.records import Record
from hitchpost.workspaces.tree import Tree
from hitchpost.workspaces.view import View

REPORT_AFTER_S = 0.2
MOST_FOLDERS = 4000
"""Of a larger tree only so many are watched: the kernel allows a user some ten thousand in all."""

Subscriber = Callable[[], object]


class _Tree:
    def __init__(self, record: Record) -> None:
        self.record = record
        self.subscribers: list[Subscriber] = []
        self.watched: set[str] = set()
        self.timer: asyncio.TimerHandle | None = None
        self.tasks = Tasks("worktree")


class Trees:
    """Worktrees that somebody looks at. What git ignores is not watched."""

    def __init__(self, home: str, do: Callable[..., Awaitable[list[str]]]) -> None:
        self._home, self._do = home, do
        self._trees: dict[str, _Tree] = {}
        self._changes = Changes(self._changed, ENTRIES | IN_MODIFY | IN_ATTRIB)

    def watch(self, record: Record, subscriber: Subscriber) -> Callable[[], None]:
        """Call ``subscriber`` soon after something changed in the session's worktree. The answer unsubscribes it."""
        tree = self._trees.setdefault(record.id, _Tree(record))
        tree.subscribers.append(subscriber)
        if len(tree.subscribers) == 1:
            tree.tasks.start(self._look(tree))

        def unsubscribe() -> None:
            tree.subscribers.remove(subscriber)
            if not tree.subscribers:
                self._forget(tree)

        return unsubscribe

    def close(self) -> None:
        for tree in list(self._trees.values()):
            self._forget(tree)
        self._changes.close()

    async def _look(self, tree: _Tree) -> None:
        """Watch the folders that are new, and say that something changed: what came into them was not reported."""
        try:
            folders = await self._do(tree.record.id, _watchable, self._home, tree.record)
        except FAILURES:
            return  # the difference says what is wrong with the folder
        self._changes.open()
        new = [folder for folder in folders if folder not in tree.watched]
        if new:
            tree.watched.update(await self._do(tree.record.id, self._watch, new))
            self._soon(tree)

    def _watch(self, folders: list[str]) -> list[str]:
        """In a thread: the kernel looks each of them up on the disk."""
        return [folder for folder in folders if self._changes.watch(folder)]

    def _changed(self, folder: str, name: str) -> None:
        for tree in self._trees.values():
            if folder == "" or folder in tree.watched:
                # a new folder of the same name is not the one that is watched
                tree.watched.discard(os.path.join(folder, name))
                self._soon(tree)

    def _soon(self, tree: _Tree) -> None:
        if tree.timer is None and tree.subscribers:
            tree.timer = asyncio.get_running_loop().call_later(REPORT_AFTER_S, self._report, tree)

    def _report(self, tree: _Tree) -> None:
        tree.timer = None
        for subscriber in list(tree.subscribers):
            subscriber()
        if not tree.tasks:
            tree.tasks.start(self._look(tree))

    def _forget(self, tree: _Tree) -> None:
        self._trees.pop(tree.record.id, None)
        if tree.timer is not None:
            tree.timer.cancel()
        tree.tasks.cancel()
        others = set().union(*(other.watched for other in self._trees.values()))
        for folder in tree.watched - others:
            self._changes.forget(folder)


def _watchable(home: str, record: Record) -> list[str]:
    tree = tree_of(home, record)
    return [] if tree is None else _folders(tree)


def _folders(tree: Tree) -> list[str]:
    """The folders of the worktree, its top first, without git's own and ignored ones."""
    with View(tree) as view:
        words = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        ignored = {os.path.join(tree.top, path.rstrip("/")) for path in view.run(*words).items}
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
        todo += [entry.path for entry in below if entry.path not in ignored]
    return found
