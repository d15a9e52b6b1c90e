"""S12: what a person names with --mount and --config is what a container gets, or nothing is started.

An agent that can write around such a folder puts a link in its place. No link of that kind is ever followed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.boxes import PLAIN, Boxed
from tests.ground import Truth
from tests.support import eventually

BOX = ("run", "--json", "--runtime", "docker", "--image", PLAIN, "--network", "none", "--name", "dev")
SHOW = "cat /config/* /data/* 2>/dev/null; echo shown; exec sleep 1000"
SECRET = "the secret of another folder"


@pytest.fixture
def secret(boxed: Boxed) -> Path:
    folder = boxed.ground.place.parent / "secret"
    folder.mkdir()
    (folder / "id_rsa").write_text(f"{SECRET}\n")
    return folder


@pytest.fixture
def inside(boxed: Boxed) -> tuple[Path, Path]:
    """Folders in the workspace, which the agent can write."""
    made = boxed.ground.place / "conf", boxed.ground.place / "data"
    for folder in made:
        folder.mkdir()
        (folder / "name").write_text(f"{folder.name} is here\n")
    return made


def options(conf: Path, data: Path) -> tuple[str, ...]:
    return ("--config", str(conf), "--mount", f"{data}:/data")


def begin(boxed: Boxed, *words: str, script: str = SHOW) -> Truth:
    where = ("--workspace", str(boxed.ground.place))
    dev = Truth(boxed.ground.home, boxed.ground.hitch(*BOX, *where, *words, "--", "sh", "-c", script).json()["id"])
    shown(dev)
    return dev


def shown(dev: Truth, run: int = 1) -> bytes:
    eventually(lambda: b"shown" in dev.output(run), 60, what=f"what is mounted, not {dev.output(run)!r}")
    return dev.output(run)


def refused(boxed: Boxed, path: Path, dev: Truth) -> str:
    said = boxed.ground.hitch("restart", "dev", check=4).err
    assert str(path) in said
    assert boxed.engine.containers() == []
    assert all(SECRET.encode() not in dev.output(run) for run in (1, 2))
    return said


def change_record(dev: Truth, change: Callable[[dict[str, Any]], object]) -> None:
    path = dev.folder / "session.json"
    record = json.loads(path.read_bytes())
    change(record)
    path.with_name("new").write_text(json.dumps(record))
    path.with_name("new").rename(path)


@pytest.mark.ids("S12")
@pytest.mark.parametrize("name", ["conf", "data"])
def test_S12_a_link_that_an_agent_makes_of_a_mount_is_not_followed(
    boxed: Boxed, secret: Path, inside: tuple[Path, Path], name: str
) -> None:
    attack = f"[ -L {name} ] || {{ mv {name} {name}-away; ln -s {secret} {name}; }}; {SHOW}"
    dev = begin(boxed, *options(*inside), script=attack)
    assert b"conf is here\r\ndata is here\r\n" in dev.output()
    link = boxed.ground.place / name
    assert link.is_symlink()
    boxed.ground.hitch("stop", "dev")
    assert "link" in refused(boxed, link, dev)
    link.unlink()
    assert "not there" in refused(boxed, link, dev)
    link.with_name(f"{name}-away").rename(link)
    boxed.ground.hitch("restart", "dev")
    assert b"conf is here\r\ndata is here\r\n" in shown(dev, 2)
    boxed.ground.hitch("stop", "dev")


@pytest.mark.ids("S12")
def test_S12_a_link_above_a_mount_is_not_followed_either(boxed: Boxed, secret: Path) -> None:
    deep = boxed.ground.place / "a" / "data"
    deep.mkdir(parents=True)
    (secret / "data").mkdir()
    (secret / "data" / "key").write_text(f"{SECRET}\n")
    attack = f"[ -L a ] || {{ mv a b; ln -s {secret} a; }}; {SHOW}"
    dev = begin(boxed, "--mount", f"{deep}:/data", script=attack)
    boxed.ground.hitch("stop", "dev")
    assert "link" in refused(boxed, boxed.ground.place / "a", dev)


@pytest.mark.ids("S12")
def test_S12_a_mount_that_was_replaced_is_refused_until_it_is_back(boxed: Boxed, inside: tuple[Path, Path]) -> None:
    conf, data = inside
    dev = begin(boxed, *options(conf, data))
    boxed.ground.hitch("stop", "dev")
    data.rename(data.with_name("old"))
    data.mkdir()
    said = refused(boxed, data, dev)
    assert "another folder than when the session was made" in said
    assert "restore the original" in said
    data.rmdir()
    data.with_name("old").rename(data)
    boxed.ground.hitch("restart", "dev")
    assert b"conf is here\r\ndata is here\r\n" in shown(dev, 2)
    boxed.ground.hitch("stop", "dev")


@pytest.mark.ids("S12")
def test_S12_a_file_out_of_reach_of_the_container_may_be_edited(boxed: Boxed) -> None:
    """Editors put a new file in the place of the old one."""
    outside = boxed.ground.place.parent / "settings"
    outside.write_text("one\n")
    within = boxed.ground.place / "settings"
    within.write_text("two\n")
    look = "cat /outside /within; echo shown; exec sleep 1000"
    mounts = ("--mount", f"{outside}:/outside:ro", "--mount", f"{within}:/within:ro")
    dev = begin(boxed, *mounts, script=look)
    boxed.ground.hitch("stop", "dev")
    outside.with_name("new").write_text("edited\n")
    outside.with_name("new").rename(outside)
    boxed.ground.hitch("restart", "dev")
    assert b"edited\r\ntwo" in shown(dev, 2)
    boxed.ground.hitch("stop", "dev")
    within.with_name("new").write_text("edited\n")
    within.with_name("new").rename(within)
    refused(boxed, within, dev)


@pytest.mark.ids("S12")
@pytest.mark.parametrize("way", ["--config", "--mount"])
def test_S12_a_link_is_not_followed_when_the_session_is_made(boxed: Boxed, secret: Path, way: str) -> None:
    link = boxed.ground.place / "link"
    link.symlink_to(secret)
    word = str(link) if way == "--config" else f"{link}:/data"
    said = boxed.ground.hitch(*BOX, "--workspace", str(boxed.ground.place), way, word, "--", "sh", check=4).err
    assert f"{link} is a link" in said
    assert str(secret) in said
    assert boxed.ground.ids() == []
    assert boxed.engine.containers() == []


@pytest.mark.ids("S12")
def test_S12_what_an_older_version_did_not_write_down_is_written_down_at_the_next_start(
    boxed: Boxed, secret: Path, inside: tuple[Path, Path]
) -> None:
    conf, data = inside
    dev = begin(boxed, *options(conf, data))
    boxed.ground.hitch("stop", "dev")
    change_record(dev, lambda record: record["sandbox"].pop("sources", None))
    data.rename(data.with_name("old"))
    data.symlink_to(secret)
    assert "link" in refused(boxed, data, dev)
    data.unlink()
    data.with_name("old").rename(data)
    boxed.ground.hitch("restart", "dev")
    boxed.ground.hitch("stop", "dev")
    data.rename(data.with_name("old"))
    data.mkdir()
    refused(boxed, data, dev)
