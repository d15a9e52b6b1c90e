"""Every engine, and every way in which one maps users: files made inside belong to the person outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.errors import RuntimeMissing
from hitchpost.runtimes.container_file import write_box
from hitchpost.runtimes.docker import Docker
from hitchpost.runtimes.engine import Box
from hitchpost.store import files
from tests.boxes import (
    DOCKER,
    ECHO,
    PLAIN,
    PODMAN,
    ROOTLESS,
    SOMEBODY,
    STALE,
    WITH_PYTHON,
    Boxed,
    Engine,
    Podman,
    Remapping,
    RootlessDocker,
    RootlessPodman,
    Taking,
    private,
    somebody,
    stopped,
    the_engine,
    why_not,
)
from tests.ground import Ground
from tests.support import eventually


def goes_through_its_life(boxed: Boxed, owner: int, image: str = PLAIN) -> None:
    """Begun, written to, left, restarted and removed; nothing of it stays, and its files are the person's."""
    place = boxed.ground.place
    protect = "mkdir -p ~/deep/er && touch ~/deep/er/file && chmod -R a-w ~/deep; "
    dev = boxed.run("sh", "-c", f"{protect}touch made; {ECHO}", image=image)
    boxed.ground.hitch("send", "dev", "hello")
    eventually(lambda: b"<hello>" in dev.output(), what="the echo")
    assert (place / "made").stat().st_uid == owner
    assert os.stat(f"/proc/{dev.agent_pid()}").st_uid == owner
    boxed.ground.hitch("send", "dev", "leave")
    eventually(lambda: boxed.label(dev) == STALE, what="stale")
    assert dev.exit()["code"] == 3
    container = boxed.container(dev)
    boxed.ground.hitch("restart", "dev")
    assert boxed.label(dev) == "running"
    assert boxed.container(dev) == container
    boxed.ground.hitch("rm", "--force", "dev")
    assert boxed.engine.containers() == []
    assert [path.name for path in (boxed.ground.home / "sessions").iterdir() if dev.id in path.name] == []


@pytest.mark.parametrize("image", [PLAIN, WITH_PYTHON])
def test_a_person_who_is_not_root(ground: Ground, monkeypatch: pytest.MonkeyPatch, image: str):
    engine = the_engine()
    monkeypatch.setenv("DOCKER_HOST", engine.url)
    socket = Path(engine.url.removeprefix("unix://"))
    socket.chmod(0o666)
    goes_through_its_life(Boxed(somebody(ground), engine), SOMEBODY, image)


@pytest.mark.parametrize(
    ("kind", "needed", "owner"),
    [
        (Podman, DOCKER | PODMAN, 0),
        (RootlessPodman, DOCKER | PODMAN | ROOTLESS, SOMEBODY),
        (RootlessDocker, DOCKER | ROOTLESS, SOMEBODY),
        (Remapping, DOCKER, 0),
    ],
)
def test_an_engine(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, kind: type[Engine], needed: dict[str, str], owner: int
):
    if why := why_not(needed):
        pytest.skip(f"no {kind.__name__}: {why}")
    with private(kind) as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.url)
        goes_through_its_life(Boxed(somebody(ground) if owner else ground, engine), owner)


@pytest.mark.ids("F63")
def test_an_engine_that_takes_its_containers_with_it(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    if why := why_not(DOCKER):
        pytest.skip(f"no container engine: {why}")
    with private(Taking) as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.url)
        boxed = Boxed(ground, engine)
        dev, late = (boxed.run("sleep", "1000", name=name) for name in ("dev", "late"))
        alone = boxed.run("sleep", "1000", name="alone")
        alone.kill_keeper()
        with stopped(late.keeper_pid()):
            engine.end()
            assert dev.ended(timeout_s=60) == "failed"
            assert {boxed.label(dev), boxed.label(alone)} == {"failed: container stopped by its engine"}
            engine.start()
        assert late.ended() == "failed"
        # whoever asks the engine that is back hears nothing else
        assert {boxed.label(late), boxed.label(alone)} == {"failed: container stopped by its engine"}
        ground.hitch("restart", "dev")
        ground.hitch("resume", "alone")
        assert (boxed.label(dev), boxed.label(alone)) == ("running", "running")
        ground.hitch("rm", "--force", "dev", "alone", "late")
        assert engine.containers() == []


@pytest.mark.parametrize("home", [{}, {"home": "another"}], ids=["half-written", "copied"])
def test_the_engine_that_is_asked_before_a_restart_is_the_one_of_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: dict[str, str]
):
    folder = tmp_path / "sessions" / "dev"
    folder.mkdir(parents=True)
    of_start, of_container = (f"unix://{tmp_path}/{name}" for name in ("start", "container"))
    monkeypatch.setenv("DOCKER_HOST", of_start)

    def asked() -> str:
        with pytest.raises(RuntimeMissing) as error:
            Docker().check(str(folder))
        return str(error.value)

    box = Box(of_container, "id", 1, 1, "boot", "0", "made for")
    write_box(str(folder), box)
    assert of_container in asked()
    written = {"engine": of_container} if not home else {**files.read_object(str(folder / wire.BOX)), **home}
    files.write_object(str(folder / wire.BOX), {"schema": files.SCHEMA, **written})
    assert of_start in asked()
