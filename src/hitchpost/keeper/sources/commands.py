"""Typing through tmux: what is typed goes into a pipe of ours, and from there to tmux as commands.

When tmux does not take a command, the pipe fills up, and whoever types waits: nothing is held without bound.
"""

from __future__ import annotations

import fcntl
import os
import select
import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.keeper.keeper import Keeper

KEYS_AT_ONCE = 512


class Commands:
    """``control`` is where tmux takes its commands, each on a line."""

    def __init__(self, keeper: Keeper, control: int) -> None:
        self.keeper, self.control = keeper, control
        self.pane = ""
        self._waiting = b""
        self._keys, self.input_fd = os.pipe()
        for fd in (self._keys, self.input_fd):
            os.set_blocking(fd, False)

    def listen(self) -> None:
        self.keeper.watch(self._keys, self._on_keys)

    @property
    def waiting(self) -> bool:
        """Whether tmux has not taken the last command yet."""
        return bool(self._waiting)

    def unread_bytes(self) -> int:
        """What was typed and has not become a command yet."""
        return int.from_bytes(fcntl.ioctl(self._keys, termios.FIONREAD, bytes(4)), "little")

    def _on_keys(self, events: int) -> None:
        typed = os.read(self._keys, KEYS_AT_ONCE)
        self.send(f"send-keys -t {self.pane} -H " + " ".join(f"{byte:02x}" for byte in typed))
        self.keeper.type()

    def send(self, command: str) -> None:
        self._write(command.encode() + b"\n")

    def _write(self, commands: bytes) -> None:
        """Nothing more is taken from who types while tmux does not take this. A line is written whole, or not."""
        if self._waiting:
            self._waiting += commands
            return
        try:
            os.write(self.control, commands)
        except BlockingIOError:
            self._waiting = commands
            self.keeper.unwatch(self._keys)
            self.keeper.watch(self.control, self._on_room, select.EPOLLOUT)
        except OSError:
            return  # the other side is gone: the program's end tells the rest

    def _on_room(self, events: int) -> None:
        self.keeper.unwatch(self.control)
        self.keeper.watch(self._keys, self._on_keys)
        waiting, self._waiting = self._waiting, b""
        self._write(waiting)
