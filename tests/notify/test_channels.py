"""ntfy, webhook, command and desktop, each with a real other end; and the limits of a request."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import socket
import threading
from pathlib import Path

import pytest

from hitchpost.notify import command, post
from hitchpost.notify.channel import Undelivered
from hitchpost.notify.command import Command, Desktop
from hitchpost.notify.message import Message
from hitchpost.notify.ntfy import Ntfy
from hitchpost.notify.post import BadUrl, parsed
from hitchpost.notify.webhook import Webhook
from tests.notify.receivers import receiver

MESSAGE = Message(
    "0123456789abcdef01234567", "dev: Failed ☃", "$(rm -r /) `x`; exit 1", "http://hub/?session=s", "s", "failed"
)


def test_ntfy_gets_the_text_as_json_and_the_token_as_a_header() -> None:
    with receiver() as server:
        assert asyncio.run(Ntfy(f"{server.url}/my-topic", "tk_secret").send(MESSAGE)) == "HTTP 200"
    (got,) = server.got
    assert (got.path, got.headers["authorization"]) == ("/", "Bearer tk_secret")
    assert got.json() == {
        "topic": "my-topic",
        "title": "dev: Failed ☃",
        "message": "$(rm -r /) `x`; exit 1",
        "click": "http://hub/?session=s",
        "priority": 3,
    }


def test_a_webhook_is_signed_with_its_id_and_time_as_standard_webhooks_has_it() -> None:
    secret = base64.b64encode(b"0123456789abcdef01234567").decode()
    with receiver() as server:
        channel = Webhook(f"{server.url}/hook?x=1", f"whsec_{secret}", lambda: 1714000000.9)
        asyncio.run(channel.send(MESSAGE))
    (got,) = server.got
    assert got.path == "/hook?x=1"
    assert (got.headers["webhook-id"], got.headers["webhook-timestamp"]) == (MESSAGE.id, "1714000000")
    signed = f"{MESSAGE.id}.1714000000.".encode() + got.body
    expected = base64.b64encode(hmac.new(b"0123456789abcdef01234567", signed, hashlib.sha256).digest()).decode()
    assert got.headers["webhook-signature"] == f"v1,{expected}"
    assert got.json() == {"type": "hitchpost.notification", **MESSAGE.as_json()}


def test_a_redirect_is_not_followed() -> None:
    with receiver() as other, receiver() as server:
        server.status, server.headers = 307, {"Location": f"{other.url}/stolen"}
        with pytest.raises(Undelivered, match="not followed"):
            asyncio.run(Webhook(server.url, "s").send(MESSAGE))
    assert (len(server.got), other.got) == (1, [])


def test_a_large_answer_is_not_read_to_its_end() -> None:
    with receiver() as server:
        server.answer = b"x" * (32 << 20)
        assert asyncio.run(Webhook(server.url, "s").send(MESSAGE)) == "HTTP 200"


def test_who_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post, "WHOLE_S", 0.3)
    over = threading.Event()
    with receiver() as server:
        server.before = lambda got: over.wait(20)
        with pytest.raises(Undelivered, match="no answer within") as raised:
            asyncio.run(Webhook(server.url, "s").send(MESSAGE))
        over.set()
    assert not raised.value.again  # it may have arrived


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "the connection ended without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-", "the connection ended without an answer"),
        (b"220 mail.example.org ESMTP\r\n\r\n", "what answers does not speak HTTP"),
    ],
)
def test_an_answer_that_is_none_is_named(answer: bytes, why: str) -> None:
    async def ask() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"hello")
            writer.write(answer)
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            await post.post(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", {}, b"hello")

    with pytest.raises(Undelivered, match=why):
        asyncio.run(ask())


def test_a_host_whose_name_cannot_be_is_not_known() -> None:
    with pytest.raises(Undelivered, match="its host is not known"):
        asyncio.run(post.post(f"http://{'a' * 64}.example.org/", {}, b""))


def test_what_surely_did_not_arrive_is_tried_again() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
        with pytest.raises(Undelivered, match="refused") as raised:
            asyncio.run(Ntfy(f"{url}topic").send(MESSAGE))
    assert raised.value.again
    with receiver() as server:
        server.status = 503
        with pytest.raises(Undelivered) as busy:
            asyncio.run(Webhook(server.url, "s").send(MESSAGE))
        with pytest.raises(Undelivered) as unsure:
            asyncio.run(Ntfy(f"{server.url}/topic").send(MESSAGE))
    assert (busy.value.again, unsure.value.again) == (True, False)


@pytest.mark.parametrize(
    "url",
    ["", "x", "ftp://x/y", "http://", "http://a b/", "http://u:p@x/", "http://x:99999/", "http://é/", "http://x/\n"],
)
def test_what_is_no_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(BadUrl) as raised:
        parsed(url)
    assert str(raised.value) == "expected an http:// or https:// address"


def test_a_command_gets_the_text_by_environment_and_stdin_and_no_shell_sees_it(tmp_path: Path) -> None:
    program, out = tmp_path / "tell", tmp_path / "out"
    said = "$NOTIFY_TITLE|$NOTIFY_SESSION|$HITCHPOST_SESSION"
    program.write_text(f'#!/bin/sh\n{{ echo "$1"; echo "{said}"; cat; }} > {out}\n')
    program.chmod(0o755)
    assert asyncio.run(Command((str(program), "$HOME; id")).send(MESSAGE)) == "exit code 0"
    assert out.read_text().splitlines() == ["$HOME; id", "dev: Failed ☃|s|", MESSAGE.title, MESSAGE.body, MESSAGE.link]


def test_a_command_that_fails_or_is_not_there_says_so() -> None:
    with pytest.raises(Undelivered, match="code 3"):
        asyncio.run(Command(("sh", "-c", "exit 3")).send(MESSAGE))
    with pytest.raises(Undelivered, match="cannot run nothing-here: no such file"):
        asyncio.run(Command(("/nowhere/nothing-here",)).send(MESSAGE))


def test_a_command_that_hangs_is_killed_with_its_children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "LIMIT_S", 0.5)
    with pytest.raises(Undelivered, match="did not end"):
        asyncio.run(Command(("sh", "-c", "sleep 1000 & wait")).send(MESSAGE))


def test_the_desktop_gets_words_and_no_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, out = tmp_path / "notify-send", tmp_path / "out"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {out}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    asyncio.run(Desktop().send(Message("i", "--evil", "<b>x</b> & y", "", "", "permission")))
    assert out.read_text().splitlines() == [
        "--urgency=critical",
        "--app-name=Hitchpost",
        "--",
        "--evil",
        "&lt;b&gt;x&lt;/b&gt; &amp; y",
    ]


def test_without_notify_send_the_desktop_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Undelivered, match="notify-send is not installed"):
        asyncio.run(Desktop().send(MESSAGE))
