"""Contexts: hubs by name, tokens that nobody else can read, and which of them a command is for."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import termios
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from hitchpost.cli.remote.contexts import Choice, chosen
from hitchpost.cli.remote.tls import CONNECT_S
from hitchpost.errors import UsageError
from tests.cli.advice import proposed
from tests.cli.live import live
from tests.cli.remote.far import Far
from tests.ground import Ground
from tests.reaching import certificate
from tests.support import Hitch, eventually


def folder() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "hitchpost" / "contexts"


def test_a_context_is_added_when_its_hub_says_who_one_is(far: Far, hitch: Hitch) -> None:
    token = far.hub.token("viewer")
    added = far.add("other", token)
    assert added.out.startswith(f"other: {far.hub.url}, you are test there (viewer); hub ")
    rows = hitch("context", "ls", "--json").json()
    urls = {"url": far.hub.url, "own_authorities": True, "current": False}
    assert rows == [{"name": "other", **urls}, {"name": "team", **urls}]
    shown = hitch("context", "show", "other")
    assert "you are test there (viewer)" in shown.out
    everything = [added, hitch("context", "ls"), shown, hitch("context", "show", "other", "--json")]
    assert not [answer for answer in everything if token in answer.out + answer.err]
    assert far.add("other", token, check=5).err == (
        "hitch: there is a context other already; hitch context rm other forgets it\n"
    )


def test_a_token_is_kept_where_only_its_owner_can_read_it(far: Far, hitch: Hitch) -> None:
    os.umask(0)
    try:
        far.add("other", far.hub.token())
    finally:
        os.umask(0o022)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder().iterdir()}
    assert modes == {"team.json": 0o600, "team.pem": 0o600, "other.json": 0o600, "other.pem": 0o600}
    assert stat.S_IMODE(folder().stat().st_mode) == 0o700
    (folder() / "team.json").chmod(0o640)
    said = far("ps", check=4).err
    assert "others may open it (mode 0640); hitch context rm team forgets it; add it again with a new token" in said
    listed = hitch("context", "ls", check=4)  # what is wrong with one hides no other
    assert (listed.err, listed.out.splitlines()[1].split()) == (said, ["other", far.hub.url])
    hitch(*proposed(said, "hitch context rm {} forgets it", 4)[1:])
    far.add("team", far.hub.token())


def test_a_hub_that_cannot_be_reached_or_trusted_is_not_added(far: Far, hitch: Hitch) -> None:
    assert "its certificate is not trusted" in far.add("wrong", far.hub.token(), "--ca-file", _other(far), check=1).err
    assert far.add("wrong", "nobodys-token", check=4).err == (
        "hitch: this token is not known; on the machine of the hub, hitch token create makes one\n"
    )
    assert far.add("wrong", "x", "--ca-file", __file__, check=2).err == (
        f"hitch: expected certificates in {__file__}, as PEM\n"
    )
    file = far.home.with_name("team.token")

    def add(url: str, check: int) -> str:
        return hitch("context", "add", "wrong", url, "--token-file", str(file), check=check).err

    assert "expected URL to begin with https://" in add("http://hub.example.org", 2)
    assert "expected URL to be like https://hub.example.org" in add("https://hub.example.org/path", 2)
    assert "connection refused" in add("https://127.0.0.3:1", 1)
    assert "nobody can be asked for the token here" in hitch("context", "add", "wrong", far.hub.url, check=2).err
    assert (
        "expected a context's name"
        in hitch("context", "add", "local", far.hub.url, "--token-file", str(file), check=2).err
    )
    assert [row["name"] for row in hitch("context", "ls", "--json").json()] == ["team"]
    assert sorted(path.name for path in folder().iterdir()) == ["team.json", "team.pem"]


class Page(BaseHTTPRequestHandler):
    """What is no hub: a page for every path, or what a proxy says whose hub is down."""

    status, text = 200, b"<html>"

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.text)))
        self.end_headers()
        self.wfile.write(self.text)

    def log_message(self, *_: object) -> None:
        return


@pytest.mark.parametrize(
    ("status", "text", "why"),
    [
        (200, b"<html>", "it does not speak as a hub does"),
        (200, b"[]", "it does not speak as a hub does"),
        (502, b"<html>", "what answers there is no hub (HTTP 502)"),
    ],
)
def test_what_is_no_hub_is_told_as_that(ground: Ground, status: int, text: bytes, why: str) -> None:
    page = type("Page", (Page,), {"status": status, "text": text})
    with HTTPServer(("127.0.0.1", 0), page) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(server.serve_forever)
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            said = ground.hitch("context", "add", "x", url, "--token-file", "-", stdin="token\n", check=1).err
        finally:
            server.shutdown()
    hint = "nothing was added; check the URL, and that the hub listens there"
    assert said == f"hitch: cannot reach x ({url}): {why}; {hint}\n"


def _other(far: Far) -> str:
    return certificate(far.home.parent, "other")[0]


def test_the_option_counts_most_then_the_variable_then_what_is_usual(far: Far, hitch: Hitch, ground: Ground) -> None:
    ground.begin_sh("exec sleep 1000", name="there")
    empty = {**far.env, "HITCHPOST_CONTEXT": "team"}
    assert [row["name"] for row in hitch("ps", "--json", env=empty).json()] == ["there"]
    assert hitch("ps", "--json", "--context", "local", env=empty).json() == []
    assert [row["name"] for row in hitch("--context=team", "ps", "--json", env=far.env).json()] == ["there"]
    assert hitch("ps", "--json", env=far.env).json() == []
    assert hitch("context", "use", "team").out == "commands are for team\n"
    assert [row["name"] for row in hitch("ps", "--json", env=far.env).json()] == ["there"]
    assert hitch("ps", "--json", env={**far.env, "HITCHPOST_SESSION": "x"}).json() == []
    assert hitch("ps", "--json", env={**far.env, "HITCHPOST_CONTEXT": "local"}).json() == []
    assert hitch("context", "ls").out.splitlines()[1].split() == ["*", "team", far.hub.url]
    assert hitch("context", "use", "local").out == "commands are for this machine\n"
    assert hitch("ps", "--json", env=far.env).json() == []
    hitch("context", "use", "team")
    assert hitch("context", "rm", "team").out == "team: forgotten\n"
    assert list(folder().iterdir()) == []
    assert hitch("ps", "--context", "team", check=3).err == "hitch: no context 'team'; hitch context ls lists them\n"
    assert hitch("stop", "x", "--context", "../x", check=3).err.startswith("hitch: no context '../x'")


@pytest.mark.parametrize(
    ("words", "name", "rest"),
    [
        (["--context", "team", "ps"], "team", ["ps"]),
        (["stop", "dev", "--context=team", "--now"], "team", ["stop", "dev", "--now"]),
        (["run", "--", "x", "--context", "team"], "", ["run", "--", "x", "--context", "team"]),
        (["ps", "--contextual"], "", ["ps", "--contextual"]),
        (["ps", "--context", "local"], "", ["ps"]),
    ],
)
def test_the_option_is_taken_wherever_it_stands_before_two_dashes(
    words: list[str], name: str, rest: list[str], ground: Ground
) -> None:
    choice, left = chosen(words, {})
    assert (choice.name, left) == (name, rest)


def test_an_option_without_a_name_is_a_mistake(ground: Ground) -> None:
    for words in (["ps", "--context"], ["ps", "--context="]):
        with pytest.raises(UsageError):
            chosen(words, {})
    assert chosen(["ps"], {}) == (Choice(), ["ps"])


def test_without_a_context_nothing_of_it_is_loaded(ground: Ground) -> None:
    program = (
        "import sys; sys.argv = ['hitch', *{words}]\n"
        "from hitchpost.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if 'remote' in name or name in ('ssl', 'http.client', 'websockets')])"
    )
    for words in (["run", "--name", "dev", "--", "true"], ["stop", "dev"], ["ps", "--record=active", "--bad"]):
        done = subprocess.run(
            [sys.executable, "-c", program.format(words=words)],
            cwd=ground.place, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        assert done.stdout.splitlines()[-1] == "[]", words


def test_a_token_is_asked_for_without_echo(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITCHPOST_HOME", str(far.home))
    token = far.hub.token()
    with live("context", "add", "asked", far.hub.url, "--ca-file", far.cert, terminal=(100, 30)) as visit:
        eventually(lambda: "token" in visit.err() + visit.out().decode(), what="the question")
        eventually(lambda: not visit.settings()[3] & termios.ECHO, what="a terminal that shows nothing")
        visit.press(f"{token}\r".encode())
        assert visit.code() == 0
        assert token.encode() not in visit.out()
        assert b"asked: https://127.0.0.2" in visit.out()


def test_a_hub_that_is_busy_for_a_while_is_waited_for(far: Far, hitch: Hitch) -> None:
    assert far.hub.process is not None
    far.hub.process.send_signal(signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        try:
            asked = pool.submit(far, "status", "--json")
            with pytest.raises(TimeoutError):
                asked.result(CONNECT_S + 1)
        finally:
            far.hub.process.send_signal(signal.SIGCONT)
        assert asked.result(60).json()["hub"] is not None
