from __future__ import annotations

import os
from typing import Any

import pytest

from hitchpost import lightjson, wire
from hitchpost.keeper.spec import Spec, read_spec
from hitchpost.runtimes.base import Launch
from hitchpost.runtimes.local import spec_of


def launch(**more: Any) -> Launch:
    fields: dict[str, Any] = {
        "session": "k3v9q0x2m7ab",
        "session_folder": "/home/sessions/k3v9q0x2m7ab",
        "run": 2,
        "argv": ("agent", "", "two words", "--", "-x", 'quo"te\n', "\udcff\udc00"[:1]),
        "env": {"A": "1", "EMPTY": "", "EQUALS": "a=b", "BYTES": "\udcfe"},
        "folder": "/work/\udcff",
        "folder_dev": 1,
        "folder_ino": 2,
        "lock_fd": 7,
    }
    return Launch(**{**fields, **more})


def through(blob: bytes) -> Spec:
    fd = os.memfd_create("spec")
    os.write(fd, blob)
    spec = read_spec(fd)
    with pytest.raises(OSError):
        os.fstat(fd)
    return spec


def test_what_the_starter_says_is_what_the_keeper_reads():
    spec = through(spec_of(launch(lease_fds=(8, 9), survivors="kill", quit_signal="SIGHUP", quit_group=True), 11))
    assert vars(spec) == {
        "argv": [b"agent", b"", b"two words", b"--", b"-x", b'quo"te\n', b"\xff"],
        "env": {b"A": b"1", b"EMPTY": b"", b"EQUALS": b"a=b", b"BYTES": b"\xfe"},
        "session": "k3v9q0x2m7ab",
        "session_folder": "/home/sessions/k3v9q0x2m7ab",
        "run": 2,
        "folder": "/work/\udcff",
        "folder_dev": 1,
        "folder_ino": 2,
        "cols": 80,
        "rows": 24,
        "grace_s": 10.0,
        "quit_signal": 1,
        "quit_group": True,
        "survivors": "kill",
        "log_cap_bytes": 64 << 20,
        "pids_max": 0,
        "memory_max_bytes": 0,
        "lock_fd": 7,
        "container": "",
        "container_pid": 0,
        "container_start": 0,
        "box": "",
        "engine": "",
        "ready_fd": 11,
        "lease_fds": [8, 9],
        "tmux": "",
        "adopt_socket": "",
        "adopt_pane": "",
        "adopt_screen": "",
        "adopt_pid": 0,
        "adopt_start": 0,
        "takes_over": False,
    }


def test_a_large_environment_arrives_whole():
    env = {f"NAME{number}": "x" * 1000 for number in range(3000)}
    assert len(through(spec_of(launch(env=env), 11)).env) == 3000


@pytest.mark.parametrize("key", ["session", "run", "folder", "folder_ino", "cols", "grace_s", "quit_signal", "lock_fd"])
def test_a_field_that_is_missing_or_wrong_is_named(key: str):
    whole = spec_of(launch(), 11)
    size = int.from_bytes(whole[:4], "big")
    fields = lightjson.loads(whole[4 : 4 + size])
    assert isinstance(fields, dict)
    for broken in ({name: item for name, item in fields.items() if name != key}, {**fields, key: None}):
        sections = (lightjson.dumps(broken).encode(), wire.join_texts([b"x"]), b"")
        blob = b"".join(len(section).to_bytes(4, "big") + section for section in sections)
        with pytest.raises(ValueError, match=f"expected {key} to be"):
            through(blob)


def test_a_spec_that_is_no_object_is_refused():
    sections = (b"[]", b"", b"")
    with pytest.raises(ValueError, match="expected the spec to be an object, but got list"):
        through(b"".join(len(section).to_bytes(4, "big") + section for section in sections))
