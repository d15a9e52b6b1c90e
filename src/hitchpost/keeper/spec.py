"""What the starter tells the keeper, through an anonymous file: environment values must not reach the disk."""

from __future__ import annotations

import os
from _socket import AF_UNIX, CMSG_SPACE, MSG_CMSG_CLOEXEC, SOCK_STREAM, socket

from hitchpost import lightjson, wire
from hitchpost.system.shortpath import ShortPath

MOST_FDS = 64


class Spec:
    """One run to be kept. ``fields`` is the JSON part, as ``runtimes.local`` writes it."""

    def __init__(self, fields: dict[str, object], argv: list[bytes], env: list[bytes]) -> None:
        self.argv = argv
        self.env = dict(text.split(b"=", 1) for text in env if b"=" in text)
        self.session = _text(fields, "session")
        self.session_folder = _text(fields, "session_folder")
        self.run = _number(fields, "run")
        self.folder = _text(fields, "folder")
        self.folder_dev = _number(fields, "folder_dev")
        self.folder_ino = _number(fields, "folder_ino")
        self.cols = _number(fields, "cols")
        self.rows = _number(fields, "rows")
        self.grace_s = _seconds(fields, "grace_s")
        self.quit_signal = _number(fields, "quit_signal")
        self.quit_group = fields.get("quit_group") is True
        self.survivors = _text(fields, "survivors")
        self.log_cap_bytes = _number(fields, "log_cap_bytes")
        self.pids_max = _number(fields, "pids_max")
        self.memory_max_bytes = _number(fields, "memory_max_bytes")
        self.lock_fd = _number(fields, "lock_fd")
        self.ready_fd = _number(fields, "ready_fd")
        self.tmux = str(fields.get("tmux", ""))
        self.adopt_socket, self.adopt_pane, self.adopt_screen = (
            str(fields.get(key, "")) for key in ("adopt_socket", "adopt_pane", "adopt_screen")
        )
        self.adopt_pid, self.adopt_start = (_number({key: 0} | fields, key) for key in ("adopt_pid", "adopt_start"))
        self.container, self.box, self.engine = (str(fields.get(key, "")) for key in ("container", "box", "engine"))
        self.container_pid, self.container_start = (
            _number({key: 0} | fields, key) for key in ("container_pid", "container_start")
        )
        self.takes_over = fields.get("takes_over") is True
        """The run has begun under another keeper, which is gone; its agent lives."""
        fds = fields.get("lease_fds")
        self.lease_fds = [fd for fd in fds if isinstance(fd, int)] if isinstance(fds, list) else []


def receive_spec(run_folder: str) -> Spec:
    """The spec from the starter that waits at its socket. A pane inherits nothing, so descriptors come this way."""
    starter = socket(AF_UNIX, SOCK_STREAM, 0)
    try:
        with ShortPath(run_folder, wire.START_SOCKET) as path:
            starter.connect(path)
        _, messages, _, _ = starter.recvmsg(1, CMSG_SPACE(4 * MOST_FDS), MSG_CMSG_CLOEXEC)
    finally:
        starter.close()
    fds = [int.from_bytes(data[at : at + 4], "little") for _, _, data in messages for at in range(0, len(data), 4)]
    if len(fds) < 3:
        raise ValueError(f"expected the spec, the lock and the answer's pipe, but got {len(fds)} descriptors")
    spec = read_spec(fds[0])
    spec.lock_fd, spec.ready_fd, spec.lease_fds = fds[1], fds[2], fds[3:]
    return spec


def read_spec(fd: int) -> Spec:
    """Read the spec and close its descriptor."""
    parts = bytearray()
    os.lseek(fd, 0, os.SEEK_SET)
    while part := os.read(fd, 1 << 20):
        parts += part
    os.close(fd)
    sections: list[bytes] = []
    start = 0
    while start < len(parts):
        size = int.from_bytes(parts[start : start + 4], "big")
        sections.append(bytes(parts[start + 4 : start + 4 + size]))
        start += 4 + size
    fields = lightjson.loads(sections[0])
    if not isinstance(fields, dict):
        raise ValueError(f"expected the spec to be an object, but got {type(fields).__name__}")
    return Spec(fields, wire.split_texts(sections[1]), wire.split_texts(sections[2]))


def _text(fields: dict[str, object], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise ValueError(f"expected {key} to be a text, but got {value!r}")
    return value


def _number(fields: dict[str, object], key: str) -> int:
    value = fields.get(key)
    if not isinstance(value, int):
        raise ValueError(f"expected {key} to be a whole number, but got {value!r}")
    return value


def _seconds(fields: dict[str, object], key: str) -> float:
    value = fields.get(key)
    if not isinstance(value, (int, float)):
        raise ValueError(f"expected {key} to be a number, but got {value!r}")
    return float(value)
