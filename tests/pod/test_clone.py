"""Cloning before a session: with real git, over the network of this machine."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hitchpost.pod.clone import clone
from tests.repos import Repo

PASSWORD = "s3cr3t-of-the-team"


@contextmanager
def served(repository: Path, password: str = "", host: str = "127.0.0.1") -> Iterator[str]:
    """Over HTTP, by git itself; with ``password``, for ``team`` only. The address of the repository."""

    class Git(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(b"")

        def do_POST(self) -> None:
            self.answer(self.rfile.read(int(self.headers["Content-Length"])))

        def answer(self, body: bytes) -> None:
            wanted = "Basic " + base64.b64encode(f"team:{password}".encode()).decode()
            if password and self.headers.get("Authorization") != wanted:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            env = {
                **os.environ,
                "GIT_PROJECT_ROOT": str(repository.parent),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
            }
            done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=True)
            head, _, rest = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(fields.pop("Status", "200").split()[0]))
            for name, text in fields.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            self.wfile.write(rest)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer((host, 0), Git)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}/{repository.name}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def repository(repo: Repo) -> Path:
    return repo.path


def secrets_of(folder: Path, **files: str) -> str:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return str(folder)


def files_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_repository_is_cloned_once_and_left_alone_then(repository: Path, tmp_path: Path) -> None:
    top = tmp_path / "workspace"
    top.mkdir()
    (top / ".cloning-abc").mkdir()
    with served(repository) as url:
        assert clone(url, str(top / "shop"), "/nowhere") == ""
        (top / "shop/mine").write_text("work")
        assert clone(url, str(top / "shop"), "/nowhere") == ""
    assert sorted(os.listdir(top)) == ["shop"]
    assert (top / "shop/mine").read_text() == "work"
    assert (top / "shop/.git").is_dir()


def test_credentials_come_from_files_and_stay_there(repository: Path, tmp_path: Path) -> None:
    secrets = secrets_of(tmp_path / "secrets", username="team", password=PASSWORD)
    top = tmp_path / "workspace"
    top.mkdir()
    with served(repository, PASSWORD) as url:
        assert clone(url, str(top / "shop"), secrets) == ""
    assert PASSWORD.encode() not in files_below(top)
    said = subprocess.run(
        ["git", "-C", top / "shop", "remote", "-v"], capture_output=True, text=True, check=True
    ).stdout
    assert PASSWORD not in said


@pytest.mark.parametrize("password", ["", "wrong-one"])
def test_a_clone_that_is_refused_says_so_and_leaves_nothing(repository: Path, tmp_path: Path, password: str) -> None:
    files = {"username": "team", "password": password} if password else {}
    secrets = secrets_of(tmp_path / "secrets", **files)
    top = tmp_path / "workspace"
    top.mkdir()
    with served(repository, PASSWORD) as url:
        why = clone(url, str(top / "shop"), secrets)
    assert "fatal: " in why
    assert not password or password not in why
    assert os.listdir(top) == []


def test_as_a_program_it_tells_why_and_fails(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hitchpost.pod.clone", "http://127.0.0.1:1/shop", str(tmp_path / "shop"), "/nowhere"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "fatal: " in done.stderr


def test_the_external_transport_is_refused(tmp_path: Path) -> None:
    made = tmp_path / "made"
    why = clone(f"ext::touch {made}", str(tmp_path / "shop"), "/nowhere")
    assert "transport 'ext' not allowed" in why
    assert not made.exists()
