from __future__ import annotations

import os

import pytest

from hitchpost import lightjson, runspec, wire
from hitchpost.keeper.main import read_spec
from hitchpost.runspec import ContainerSource, ControlSource, PaneSource, PtySource, RunSpec, Source
from hitchpost.values import fields, replace

SPEC = RunSpec(
    session="k3v9q0x2m7ab",
    session_folder="/home/sessions/k3v9q0x2m7ab",
    run=2,
    argv=(b"agent", b"", b"two words", b"--", b"-x", b'quo"te\n', b"\xff"),
    env={b"A": b"1", b"EMPTY": b"", b"EQUALS": b"a=b", b"BYTES": b"\xfe"},
    folder="/work/\udcff",
    folder_dev=1,
    folder_ino=2,
    lock_fd=7,
    lease_fds=(8, 9),
    ready_fd=11,
    survivors="kill",
    quit_signal="SIGHUP",
    quit_group=True,
)


@pytest.mark.parametrize(
    "source",
    [
        PtySource(),
        PaneSource("/usr/bin/tmux"),
        ControlSource("/usr/bin/tmux", "/tmp/s", "%1", 12, 34, "\x1b[H screen"),
        ContainerSource("abc", 1, 2, "unix:///x", "/shared", "%0", 3, 4),
    ],
)
def test_what_the_starter_says_is_what_the_keeper_reads(source: Source) -> None:
    spec = replace(SPEC, source=source)
    assert RunSpec.from_bytes(spec.to_bytes()) == spec


def test_every_kind_of_source_is_tried() -> None:
    assert len(runspec.SOURCES) == 4


def test_the_descriptor_is_closed_when_it_was_read() -> None:
    fd = os.memfd_create("spec")
    os.write(fd, SPEC.to_bytes())
    assert read_spec(fd) == SPEC
    with pytest.raises(OSError):
        os.fstat(fd)


def test_a_large_environment_arrives_whole() -> None:
    env = {b"NAME%d" % number: b"x" * 1000 for number in range(3000)}
    assert RunSpec.from_bytes(replace(SPEC, env=env).to_bytes()).env == env


@pytest.mark.parametrize("key", [name for name in fields(RunSpec) if name not in runspec.APART])
def test_a_field_that_is_missing_or_wrong_is_named(key: str) -> None:
    whole = SPEC.to_bytes()
    size = int.from_bytes(whole[:4], "big")
    plain = lightjson.loads(whole[4 : 4 + size])
    assert isinstance(plain, dict)
    for broken in ({name: item for name, item in plain.items() if name != key}, {**plain, key: None}):
        with pytest.raises(ValueError, match=f"expected {key} to be"):
            RunSpec.from_bytes(in_sections(lightjson.dumps(broken).encode(), wire.join_texts([b"x"]), b""))


@pytest.mark.parametrize(
    ("plain", "why"),
    [
        (b"[]", "expected the spec to be an object, but got list"),
        (b'{"source": {"kind": "moon"}}', "expected session to be a text, but got None"),
    ],
)
def test_what_is_no_spec_is_refused(plain: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        RunSpec.from_bytes(in_sections(plain, b"", b""))


def test_an_unknown_source_is_refused() -> None:
    data = SPEC.to_bytes().replace(b'"pty"', b'"sea"')
    with pytest.raises(ValueError, match="expected the kind of a source, but got 'sea'"):
        RunSpec.from_bytes(data)


def in_sections(*sections: bytes) -> bytes:
    return b"".join(len(section).to_bytes(4, "big") + section for section in sections)
