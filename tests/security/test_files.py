"""S11: planted links, foreign owners, open folders; and a process of another user at the keeper's socket."""

from __future__ import annotations

import json
import os
import resource
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import hitchpost
from hitchpost import wire
from hitchpost.runtimes.link import Link
from hitchpost.system.shortpath import ShortPath
from tests.ground import Ground, Truth
from tests.hubs import hub_of
from tests.namespaces import as_user, with_source
from tests.support import Answer, Hitch, LeakWatch, eventually

NOBODY = 65534
VICTIM = b"precious\n"

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


@pytest.fixture
def victim(leak_watch: LeakWatch) -> Iterator[Path]:
    """A file that links point at. It must stay as it is."""
    path = leak_watch.scratch / "victim"
    path.write_bytes(VICTIM)
    before = path.stat()
    yield path
    after = path.stat()
    assert path.read_bytes() == VICTIM
    assert (after.st_mode, after.st_ino, after.st_mtime_ns) == (before.st_mode, before.st_ino, before.st_mtime_ns)


@pytest.fixture
def dev(ground: Ground) -> Truth:
    session = ground.begin_sh("exit 3", name="dev")
    session.ended()
    return session


def refused(ground: Ground, *words: str) -> str:
    answer = ground.hitch(*words, check=False)
    assert answer.code in (1, 4), answer
    assert "Traceback" not in answer.err
    assert answer.err.startswith("hitch: ")
    return answer.err


@pytest.mark.ids("S11")
def test_S11_a_home_that_is_a_link_is_refused(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    link = ground.watch.scratch / "link"
    link.symlink_to(ground.home)
    monkeypatch.setenv("HITCHPOST_HOME", str(link))
    for words in (("ps",), ("run", "--", "true"), ("stop", "x")):
        assert "it is a symbolic link" in ground.hitch(*words, check=4).err


@pytest.mark.ids("S11")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
@pytest.mark.parametrize("which", ["home", "sessions"])
def test_S11_a_folder_that_others_may_write_to_is_refused(ground: Ground, which: str, mode: int) -> None:
    folder = ground.home / "sessions"
    folder.mkdir(mode=0o700)
    folder = ground.home if which == "home" else folder
    folder.chmod(mode)
    for words in (("ps",), ("run", "--", "true")):
        answer = ground.hitch(*words, check=4)
        assert f"others may write to it (mode {mode:04o})" in answer.err
        assert f"chmod 700 {folder}" in answer.err
    folder.chmod(0o700)


@pytest.mark.ids("S11")
@as_root
def test_S11_a_home_of_somebody_else_is_refused(ground: Ground) -> None:
    os.chown(ground.home, NOBODY, NOBODY)
    for words in (("ps",), ("run", "--", "true")):
        assert f"it belongs to user {NOBODY}" in ground.hitch(*words, check=4).err
    os.chown(ground.home, 0, 0)


@pytest.mark.ids("S11")
def test_S11_sessions_as_a_link_is_refused(ground: Ground) -> None:
    elsewhere = ground.watch.scratch / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (ground.home / "sessions").symlink_to(elsewhere)
    assert "it is a symbolic link" in ground.hitch("run", "--", "true", check=4).err
    assert os.listdir(elsewhere) == []


@pytest.mark.ids("S11")
@pytest.mark.parametrize("name", ["lock", "story.jsonl"])
def test_S11_a_link_in_the_place_of_a_lock_or_story_is_not_followed(
    ground: Ground, dev: Truth, victim: Path, name: str
) -> None:
    (dev.folder / name).unlink()
    (dev.folder / name).symlink_to(victim)
    refused(ground, "restart", dev.id)
    assert dev.state_file()["run"] == 1
    eventually(lambda: ground.processes() == [], what="the end of every process")


@pytest.mark.ids("S11", "F36")
@pytest.mark.parametrize("name", ["state.json", "session.json"])
def test_S11_a_link_in_the_place_of_a_sessions_file_is_quarantined_and_the_file_rebuilt(
    ground: Ground, dev: Truth, victim: Path, name: str
) -> None:
    before = json.loads((dev.folder / name).read_bytes())
    (dev.folder / name).unlink()
    (dev.folder / name).symlink_to(victim)
    ground.hitch("archive", dev.id)
    assert not (dev.folder / name).is_symlink()
    assert json.loads((dev.folder / name).read_bytes()).keys() <= before.keys()
    (link,) = (ground.home / "quarantine").iterdir()
    assert link.readlink() == victim


@pytest.mark.ids("S11")
@pytest.mark.parametrize("name", ["keeper.lock", "keeper.log", "output", ".spare-exit", ".spare-state"])
def test_S11_a_link_in_the_place_of_a_runs_file_is_not_followed(
    ground: Ground, dev: Truth, victim: Path, name: str
) -> None:
    folder = ground.watch.scratch / "folder"
    folder.mkdir()
    dev.run(2).mkdir(mode=0o700)
    (dev.run(2) / name).symlink_to(folder if name == "output" else victim)
    refused(ground, "restart", dev.id)
    assert os.listdir(folder) == []
    eventually(lambda: ground.processes() == [], what="the end of every process")
    assert dev.state in ("created", "failed")


@pytest.mark.ids("S11")
@pytest.mark.parametrize("name", ["ctl.sock", "exit.json", "exit_status", "intent.json", "run.json", "attention.json"])
def test_S11_a_link_in_the_place_of_a_file_that_is_replaced_is_replaced(
    ground: Ground, dev: Truth, victim: Path, name: str
) -> None:
    dev.run(2).mkdir(mode=0o700)
    (dev.run(2) / name).symlink_to(victim)
    assert "ended at once" in ground.hitch("restart", dev.id, check=1).err
    assert dev.ended(run=2) == "failed"
    assert dev.exit(2)["code"] == 3


@pytest.mark.ids("S11")
@pytest.mark.parametrize("which", ["runs", "runs/2"])
def test_S11_a_run_folder_that_is_a_link_is_refused(ground: Ground, dev: Truth, which: str) -> None:
    elsewhere = ground.watch.scratch / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    place = dev.folder / which
    if which == "runs":
        place.rename(dev.folder / "away")
    place.symlink_to(elsewhere)
    assert "it is a symbolic link" in refused(ground, "restart", dev.id)
    assert not any("keeper" in name for name in os.listdir(elsewhere))


@pytest.mark.ids("S11")
def test_S11_a_run_folder_that_others_may_write_to_is_refused(ground: Ground, dev: Truth) -> None:
    dev.run(2).mkdir()
    dev.run(2).chmod(0o777)
    assert "others may write to it (mode 0777)" in refused(ground, "restart", dev.id)
    assert os.listdir(dev.run(2)) == []


@pytest.mark.ids("S11")
def test_S11_an_output_file_that_is_a_link_is_not_written_through(ground: Ground, dev: Truth, victim: Path) -> None:
    output = dev.run(2) / "output"
    output.mkdir(parents=True, mode=0o700)
    (output / f"{0:020d}.log").symlink_to(victim)
    (output / "times.bin").symlink_to(victim)
    ground.hitch("restart", dev.id, check=False)


# the socket -----------------------------------------------------------------------------------------------------

ASK = """
import os, socket, sys
os.setgroups([]); os.setgid({user}); os.setuid({user})
end = socket.socket(socket.AF_UNIX)
end.settimeout(10)
try:
    end.connect(sys.argv[1])
    end.sendall(bytes.fromhex(sys.argv[2]))
    print(len(end.recv(1000)))
except OSError as error:
    print(type(error).__name__)
"""


def asked_by(user: int, session: Truth) -> str:
    hello = wire.frame(wire.HELLO, b'{"v": 1, "role": "control"}') + wire.frame(
        wire.REQUEST, b'{"id": 1, "op": "stop", "by": "user"}'
    )
    words = [sys.executable, "-c", ASK.format(user=user), str(session.run() / "ctl.sock"), hello.hex()]
    return subprocess.run(words, capture_output=True, text=True, check=True, env=Hitch.environment()).stdout.strip()


@pytest.mark.ids("S11", "S16")
@as_root
def test_S11_a_process_of_another_user_cannot_reach_the_socket(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    assert asked_by(NOBODY, dev) == "PermissionError"
    ground.end(dev)


@pytest.mark.ids("S11")
@as_root
def test_S11_a_process_of_another_user_is_turned_away_even_where_the_modes_let_it_in(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    for folder in (dev.run(), *dev.run().parents):
        if folder.is_relative_to(ground.watch.scratch):
            folder.chmod(0o711)
    (dev.run() / "ctl.sock").chmod(0o666)
    assert asked_by(NOBODY, dev) in ("0", "ConnectionResetError", "BrokenPipeError")
    assert dev.state == "running"
    with Link.connect(str(dev.run())) as link:
        assert link.welcome["session"] == dev.id
    ground.home.chmod(0o700)
    ground.end(dev)


@pytest.mark.ids("S11")
@as_root
def test_root_and_the_owner_are_let_in(ground: Ground) -> None:
    """A keeper of another user, asked by root: the whole thing runs as nobody."""
    home = ground.watch.scratch / "theirs"
    for folder in (home, ground.place):
        folder.mkdir(mode=0o700, exist_ok=True)
        os.chown(folder, NOBODY, NOBODY)
    ground.watch.scratch.chmod(0o711)
    path = os.pathsep.join([str(Path(hitchpost.__file__).parent.parent), str(Path(click.__file__).parent.parent)])
    env = {"PATH": os.environ["PATH"], "HITCHPOST_HOME": str(home), "HOME": "/", "PYTHONPATH": path}

    def hitch(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*with_source(), *as_user(NOBODY), "/usr/bin/python3", "-m", "hitchpost", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=env, cwd=ground.place)

    try:
        hitch("--version")
    except (subprocess.CalledProcessError, OSError):
        pytest.skip("no interpreter here that another user can run and that knows this source")
    hitch("run", "--name", "dev", "--", "sleep", "1000")
    (folder,) = [path for path in (home / "sessions").iterdir() if path.is_dir()]
    dev = Truth(home, folder.name)
    with Link.connect(str(dev.run())) as link:
        assert link.welcome["session"] == dev.id
    assert Path(f"/proc/{dev.agent_pid()}").stat().st_uid == NOBODY
    hitch("stop", "dev")
    assert dev.exit()["intent"] == "user"


def test_a_socket_that_a_killed_keeper_left_is_replaced(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000")
    dev.kill_keeper()
    left = dev.run() / "ctl.sock"
    assert left.is_socket()
    with socket.socket(socket.AF_UNIX) as end, pytest.raises(ConnectionRefusedError):
        end.connect(str(left))
    ground.hitch("restart", dev.id)
    ground.end(dev)
    assert not (dev.run(2) / "ctl.sock").exists()


def as_pipe(path: Path) -> None:
    os.mkfifo(path)


def as_folder(path: Path) -> None:
    path.mkdir()


def as_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, ShortPath(str(path.parent), path.name) as short:
        made.bind(short)


def as_zeros(path: Path) -> None:
    os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))


def as_gigabyte(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


HOSTILE = [as_pipe, as_folder, as_socket, as_gigabyte] + ([as_zeros] if os.geteuid() == 0 else [])
SESSION_FILES = ("state.json", "session.json", "story.jsonl")
RUN_FILES = ("run.json", "exit.json", "attention.json", "keeper.lock", "output/times.bin", "output/0.log", "keeper.log")
READERS = (("ps", "--all"), ("ps", "--all", "--json"), ("doctor",), ("status",), ("services",), ("prune", "--dry-run"))
MOST_MEMORY_BYTES = 1500 << 20


def with_little_memory(*words: str, **options: Any) -> Answer:
    """What ``hitch`` says that has not the memory for a file of a gigabyte, as text."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, before[1]))  # which it takes from this process
    try:
        return Hitch()(*words, **options)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def replace(path: Path, put: Callable[[Path], None]) -> None:
    path.unlink(missing_ok=True)
    put(path)


@pytest.mark.ids("X8", "F36")
@pytest.mark.parametrize("put", HOSTILE)
def test_what_is_no_file_of_ours_is_never_waited_for_nor_read_whole(
    ground: Ground, put: Callable[[Path], None]
) -> None:
    ended = [ground.begin("true") for _ in (*SESSION_FILES, *RUN_FILES)]
    for session in ended:
        session.ended()
    for name, session in zip(SESSION_FILES, ended, strict=False):
        replace(session.folder / name, put)
    for name, session in zip(RUN_FILES, ended[len(SESSION_FILES) :], strict=True):
        segments = list((session.run() / "output").glob("*.log"))
        replace(segments[0] if name == "output/0.log" and segments else session.run() / name, put)
    replace(ground.home / "index.tsv", put)
    for words in READERS:
        assert "Traceback" not in with_little_memory(*words, check=False).err
    for session, word in zip(ended, ("explain",) * 6 + ("logs",) * 4, strict=True):
        assert "Traceback" not in with_little_memory(word, session.id, check=False).err
    assert len(with_little_memory("ps", "--all", "--json").json()) == len(ended)


@pytest.mark.ids("X8", "F36")
@pytest.mark.parametrize("put", HOSTILE)
def test_a_hub_lives_beside_what_is_no_file_of_ours(ground: Ground, put: Callable[[Path], None]) -> None:
    ended = [ground.begin("true") for _ in SESSION_FILES]
    for name, session in zip(SESSION_FILES, ended, strict=True):
        session.ended()
        replace(session.folder / name, put)
    with hub_of(ground) as hub:
        assert len(hub.ask("GET", "/api/sessions?all=true")) == len(ended)
        with hub.http() as client:
            for session in ended:
                assert client.get(f"/api/sessions/{session.id}/story").status_code != 500
        assert hub.process is not None
        status = Path(f"/proc/{hub.process.pid}/status").read_text()
        assert int(status.partition("VmHWM:")[2].split()[0]) < 400_000


@pytest.mark.ids("X8")
@pytest.mark.parametrize("put", HOSTILE)
def test_settings_and_tokens_that_are_no_files_are_refused(ground: Ground, put: Callable[[Path], None]) -> None:
    path = ground.place / "config.toml"
    put(path)
    answer = with_little_memory("run", "--", "true", env={"HITCHPOST_CONFIG": str(path)}, check=2)
    assert "expected a file, but got" in answer.err
    ground.configure(f'env_files = ["{path}"]')
    assert "expected a file, but got" in with_little_memory("run", "--", "true", check=2).err
    ground.configure("")
    put(ground.home / "tokens.json")
    assert "Traceback" not in with_little_memory("token", "ls", check=False).err
