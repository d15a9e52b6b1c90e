"""A certificate that is renewed while the hub runs, as in a Secret: a folder behind a link that is swapped."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from structlog.testing import capture_logs

from hitchpost.hub.address import Address
from hitchpost.hub.http.server import follow_certificate
from tests.reaching import certificate
from tests.support import eventually


def swap(folder: Path, target: str) -> None:
    (folder / "new").symlink_to(target)
    os.replace(folder / "new", folder / "data")


@contextmanager
def served(address: Address, context: ssl.SSLContext) -> Iterator[int]:
    """A server with the certificate, which is followed."""
    loop, end, port = asyncio.new_event_loop(), asyncio.Event(), [0]
    ready = threading.Event()

    async def serve() -> None:
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
        port[0] = server.sockets[0].getsockname()[1]
        following = asyncio.create_task(follow_certificate(address, context, every_s=0.01))
        ready.set()
        await end.wait()
        following.cancel()
        server.close()
        await asyncio.gather(following, return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield port[0]
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(60)
        loop.close()


def shows(port: int, authority: Path) -> bool:
    """Whether the server has a certificate that this authority has signed."""
    context = ssl.create_default_context(cafile=str(authority))
    try:
        with (
            socket.create_connection(("127.0.0.1", port), 10) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1"),
        ):
            return True
    except ssl.SSLCertVerificationError:
        return False


def test_a_certificate_whose_files_are_swapped_is_shown_and_one_that_cannot_be_used_is_not(tmp_path: Path) -> None:
    for name in ("first", "second", "broken"):
        (tmp_path / name).mkdir()
        certificate(tmp_path / name)
    (tmp_path / "broken/tls.key").write_text("nonsense")
    swap(tmp_path, "first")
    address = Address("127.0.0.1", 0, str(tmp_path / "data/tls.pem"), str(tmp_path / "data/tls.key"))
    context = address.context()
    assert context is not None
    with capture_logs() as said, served(address, context) as port:
        assert shows(port, tmp_path / "first/tls.pem")
        swap(tmp_path, "broken")
        eventually(lambda: [line["event"] for line in said], what="a word about it")
        assert said[0]["event"] == "the certificate could not be read again"
        assert shows(port, tmp_path / "first/tls.pem")
        swap(tmp_path, "second")
        eventually(lambda: shows(port, tmp_path / "second/tls.pem"), what="the new certificate")
        assert not shows(port, tmp_path / "first/tls.pem")
