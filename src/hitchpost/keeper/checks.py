"""Whether a keeper's folder is still the same, and whether it can be reached.

The kernel tells of names that are removed or renamed beside the folder and the socket; then they are looked at. What it
does not tell, such as a change further above or by another machine, is found at the next sign of life.
"""

from __future__ import annotations

import fcntl
import os
import time

from hitchpost import wire
from hitchpost.keeper import own_log
from hitchpost.model import machine
from hitchpost.store import files
from hitchpost.system.folder_news import REMOVED, RENAMED, FolderNews

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.keeper.keeper import Keeper

CHECK_S = 1.0
"""Between two looks where much changes; and as often is looked where the kernel does not tell."""
UNTOLD_LOOKS = 10
"""So many looks are cheaper than being told all the time, in a folder where that is so."""
FOLDER_RECHECK_S = 0.2
SIGN_EVERY_S = 10.0
MOST_NAME_BYTES = 256


class Checks:
    """``_news``: what is looked at next is looked at because of news; ``_after_news``: so was the last time."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._folders = FolderNews()
        self._is_told = self._news = self._after_news = False
        self._untold = 0
        self._looked_at = self._sign_due = 0.0
        self._due = float("-inf")
        self._folder_missing = self._lock_missing = self._deaf = False

    def begin(self) -> None:
        keeper, now = self._keeper, time.monotonic()
        ours = (keeper.run_folder, *((keeper.spec.session_folder,) if keeper.pane is not None else ()))
        paths = {keeper.spec.folder, os.path.realpath(keeper.spec.folder)}
        told = [self._folders.open(folder, REMOVED) for folder in ours]
        told += [self._folders.open(folder, REMOVED | RENAMED) for folder in map(os.path.dirname, paths)]
        self._is_told = all(told)
        self._give_sign_of_life(now)
        self._due = float("inf")
        self._look_at(now + CHECK_S)

    def end(self) -> None:
        self._folders.close()
        self._due = float("-inf")
        self._keeper.timers.cancel("checks")

    def soon(self) -> None:
        """Something has changed: look, but not all the time."""
        now = time.monotonic()
        if self._after_news and now < self._looked_at + CHECK_S:
            self._untold = UNTOLD_LOOKS
        self._news = True
        self._look_at(max(now, self._looked_at + CHECK_S))

    def _look_at(self, moment: float) -> None:
        if moment < self._due:
            self._due = moment
            self._keeper.timers.at("checks", moment, self._check)

    def _check(self, now: float) -> None:
        keeper = self._keeper
        self._looked_at, self._due = now, float("inf")
        self._after_news, self._news = self._news, False
        self._untold = max(0, self._untold - 1)
        if not self._untold:
            self._is_told = self._folders.listen() and self._is_told  # before the look, so nothing is missed between
        keeper.source.reap()  # a wake-up that was lost must not hide the agent's end for ever
        self._give_sign_of_life(now)
        lock_missing = not os.path.lexists(os.path.join(keeper.run_folder, wire.KEEPER_LOCK))
        if lock_missing and self._lock_missing:
            self._make_lock_again()
        self._check_socket()
        if keeper.pane is not None:
            keeper.pane.check()
        missing = self._is_folder_missing()
        if missing and self._folder_missing:
            keeper.feed(machine.WorkspaceGone({"folder": keeper.spec.folder}))
        again_s = SIGN_EVERY_S if self._is_told and not self._untold else CHECK_S
        if (missing and not self._folder_missing) or (lock_missing and not self._lock_missing):
            again_s = FOLDER_RECHECK_S
        self._folder_missing, self._lock_missing = missing, lock_missing
        self._look_at(now + again_s)

    def _is_folder_missing(self) -> bool:
        """Or another. One bad look is looked at again before it counts."""
        spec = self._keeper.spec
        try:
            here = os.stat(spec.folder)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False
        return (here.st_dev, here.st_ino) != (spec.folder_dev, spec.folder_ino)

    def _make_lock_again(self) -> None:
        """The lock is the proof that a keeper lives. One that was removed, and not with its whole folder, is made again
        and is held from its first moment on, unless somebody else has made one meanwhile."""
        folder, lock_fd = self._keeper.run_folder, self._keeper.spec.lock_fd
        path = os.path.join(folder, wire.KEEPER_LOCK)
        draft = f"{path}.new"
        try:
            fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return  # its folder is gone too, or its disk is full: tried again
        try:
            os.pwrite(fd, os.pread(lock_fd, MOST_NAME_BYTES, 0), 0)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.link(draft, path)
            os.dup2(fd, lock_fd, inheritable=False)
            own_log.note("its lock was removed, and is made again")
        except OSError:
            pass
        finally:
            os.close(fd)
            files.discard(draft)

    def _check_socket(self) -> None:
        try:
            self._keeper.control.clients.check()
        except OSError as error:
            if not self._deaf:
                own_log.note(f"nobody can reach this keeper: {error}")
            self._deaf = True
        else:
            self._deaf = False

    def _give_sign_of_life(self, now: float) -> None:
        """Touch the lock: should this process be killed, its run is known to have lived until about then."""
        if now >= self._sign_due:
            self._sign_due = now + SIGN_EVERY_S
            try:
                os.utime(self._keeper.spec.lock_fd)
            except OSError:
                return  # then the sign is missing, and nothing is false
