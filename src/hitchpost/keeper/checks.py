"""What a keeper looks at about once a second: whether its folder is still the same, and whether it can be reached."""

from __future__ import annotations

import os
import time

from hitchpost.keeper import own_log
from hitchpost.model import machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.keeper.keeper import Keeper

CHECK_S = 1.0
FOLDER_RECHECK_S = 0.2
SIGN_EVERY_S = 10.0


class Checks:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._sign_due = 0.0
        self._folder_missing = self._deaf = False

    def begin(self) -> None:
        now = time.monotonic()
        self._give_sign_of_life(now)
        self._keeper.timers.at("checks", now + CHECK_S, self._check)

    def end(self) -> None:
        self._keeper.timers.cancel("checks")

    def _check(self, now: float) -> None:
        keeper = self._keeper
        keeper.source.reap()  # a wake-up that was lost must not hide the agent's end for ever
        self._give_sign_of_life(now)
        self._check_socket()
        if keeper.pane is not None:
            keeper.pane.check()
        missing = self._is_folder_missing()
        if missing and self._folder_missing:
            keeper.feed(machine.WorkspaceGone({"folder": keeper.spec.folder}))
        again_s = FOLDER_RECHECK_S if missing and not self._folder_missing else CHECK_S
        self._folder_missing = missing
        keeper.timers.at("checks", now + again_s, self._check)

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
