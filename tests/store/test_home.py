from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hitchpost.errors import HomeRefused
from hitchpost.store.home import home_path, open_home


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("env", "path"),
    [
        ({"HITCHPOST_HOME": "/a/b/../c", "XDG_STATE_HOME": "/x"}, "/a/c"),
        ({"XDG_STATE_HOME": "/x"}, "/x/hitchpost"),
        ({"XDG_STATE_HOME": "", "HOME": "/me"}, "/me/.local/state/hitchpost"),
    ],
)
def test_the_home_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, env: dict[str, str], path: str):
    for name in ("HITCHPOST_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert home_path() == path


@pytest.mark.ids("S11")
def test_a_new_home_is_for_its_owner_only(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HITCHPOST_HOME", str(home / "deep" / "er"))
    old = os.umask(0)
    try:
        assert open_home() == str(home / "deep" / "er")
    finally:
        os.umask(old)
    made = (home / "deep", home / "deep" / "er", home / "deep" / "er" / "sessions")
    assert [mode(folder) for folder in made] == [0o700] * 3


def test_opening_without_making_makes_nothing(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HITCHPOST_HOME", str(home / "none"))
    open_home(create=False)
    assert list(home.iterdir()) == []


@pytest.mark.ids("S11")
@pytest.mark.parametrize("bits", [0o720, 0o702, 0o777])
@pytest.mark.parametrize("part", ["", "sessions"])
def test_a_home_that_others_may_write_to_is_refused_with_what_to_do(home: Path, bits: int, part: str):
    open_home()
    (home / part).chmod(bits)
    with pytest.raises(HomeRefused, match=rf"others may write to it \(mode {bits:04o}\); run: chmod 700 "):
        open_home()


@pytest.mark.ids("S11")
def test_a_home_that_is_a_link_or_a_file_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch):
    (home / "link").symlink_to(home)
    monkeypatch.setenv("HITCHPOST_HOME", str(home / "link"))
    with pytest.raises(HomeRefused, match="it is a symbolic link"):
        open_home()
    (home / "file").touch()
    monkeypatch.setenv("HITCHPOST_HOME", str(home / "file"))
    with pytest.raises(HomeRefused, match="it is not a folder"):
        open_home()


@pytest.mark.ids("S11")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_home_of_another_user_is_refused(home: Path):
    os.chown(home, 12345, -1)
    with pytest.raises(HomeRefused, match="it belongs to user 12345"):
        open_home()


def test_a_home_that_cannot_be_made_is_refused_with_the_reason(home: Path, monkeypatch: pytest.MonkeyPatch):
    (home / "file").touch()
    monkeypatch.setenv("HITCHPOST_HOME", str(home / "file" / "below"))
    with pytest.raises((HomeRefused, NotADirectoryError)):
        open_home()
