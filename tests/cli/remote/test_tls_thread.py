"""Reading and writing one TLS connection at the same time, in two threads."""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hitchpost.cli.remote.tls import trusting
from hitchpost.cli.remote.tls_thread import ThreadedTls
from tests.reaching import certificate
from tests.support import eventually

CONNECTIONS, PIECES = 40, 200


@contextmanager
def echo_server(folder: Path) -> Iterator[tuple[str, int]]:
    """Echoes in one thread for each connection, whatever comes."""
    cert, key = certificate(folder, "echo")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    listening = socket.create_server(("127.0.0.2", 0))
    threads: list[threading.Thread] = []

    def echo(sock: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(sock, server_side=True) as secured:
            while data := secured.recv(65536):
                secured.sendall(data)

    def accept() -> None:
        while True:
            try:
                sock, _ = listening.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=echo, args=(sock,)))
            threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield cert, listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for thread in (accepting, *threads):
            thread.join(30)


def exchanged(sock: socket.socket) -> tuple[str, str]:
    """What was written by this thread, and what was read by another one meanwhile."""
    total = PIECES * 1000
    got, sent = hashlib.sha256(), hashlib.sha256()

    def read() -> None:
        left = total
        while left and (data := sock.recv(65536)):
            got.update(data)
            left -= len(data)

    reading = threading.Thread(target=read)
    reading.start()
    for _ in range(PIECES):
        piece = os.urandom(1000)
        sent.update(piece)
        sock.sendall(piece)
    reading.join(60)
    assert not reading.is_alive(), "it never answers"
    return sent.hexdigest(), got.hexdigest()


@pytest.mark.timeout(120)
def test_two_threads_may_read_and_write_at_once(tmp_path: Path) -> None:
    before = threading.active_count()
    with echo_server(tmp_path) as (cert, port):
        for _ in range(CONNECTIONS):
            plain = socket.create_connection(("127.0.0.2", port), 30)
            plain.settimeout(30)
            with ThreadedTls(trusting(cert)).wrap_socket(plain, server_hostname="127.0.0.2") as sock:
                sock.settimeout(30)
                sent, got = exchanged(sock)
                assert sent == got
    eventually(lambda: threading.active_count() == before, what="the end of its threads")


def test_an_end_reaches_the_other_side(tmp_path: Path) -> None:
    with echo_server(tmp_path) as (cert, port):
        plain = socket.create_connection(("127.0.0.2", port), 30)
        with ThreadedTls(trusting(cert)).wrap_socket(plain, server_hostname="127.0.0.2") as sock:
            sock.settimeout(30)
            sock.sendall(b"hello")
            assert sock.recv(100) == b"hello"
            sock.shutdown(socket.SHUT_WR)
            assert sock.recv(100) == b""


def test_a_certificate_that_is_not_trusted_is_refused(tmp_path: Path) -> None:
    with echo_server(tmp_path) as (_, port):
        other, _ = certificate(tmp_path, "other")
        plain = socket.create_connection(("127.0.0.2", port), 30)
        with plain, pytest.raises(ssl.SSLCertVerificationError):
            ThreadedTls(trusting(other)).wrap_socket(plain, server_hostname="127.0.0.2")
