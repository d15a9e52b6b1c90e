"""A server in front of the API server, which can be slow, refuse, and break off: ``front_of(cluster)``.

It gives the client's words on as they are, one request for each connection. A certificate of the client would not come
through, so its kubeconfig has a token.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.kube.cluster import Cluster

MOST = 1 << 16
"""The head of a request is no longer than this."""


@dataclass(slots=True)
class Fault:
    """What happens to requests that fit: only with these ``methods`` and with ``part`` in the path."""

    code: int = 0
    """Answer this, with Kubernetes' words for it. 0: give it on."""
    in_stream: bool = False
    """Say it as an event of a watch, as an API server does that has forgotten the past."""
    slow_s: float = 0
    times: int = 1_000_000
    methods: tuple[str, ...] = ()
    part: str = ""
    retry_after_s: int = 0

    def fits(self, method: str, path: str) -> bool:
        return self.times > 0 and (not self.methods or method in self.methods) and self.part in path


REASONS = {
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


@dataclass(slots=True)
class Front:
    cluster: Cluster
    kubeconfig: Path
    host: str
    port: int = 0
    faults: list[Fault] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    """``GET /api/v1/pods?…``, in the order in which they came."""
    _open: set[asyncio.StreamWriter] = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop | None = None

    def add(self, fault: Fault) -> Fault:
        self.faults.append(fault)
        return fault

    def mend(self) -> None:
        self.faults.clear()

    def break_off(self) -> None:
        """Every request that is under way, watches included."""
        assert self._loop is not None

        def abort() -> None:
            for writer in list(self._open):
                writer.transport.abort()

        self._loop.call_soon_threadsafe(abort)

    async def serve(self, ready: threading.Event, end: asyncio.Event) -> None:
        self._loop = asyncio.get_running_loop()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        keys = self.cluster.folder / "keys"
        tls.load_cert_chain(keys / "front.crt", keys / "front.key")
        tls.set_alpn_protocols(["http/1.1"])
        server = await asyncio.start_server(self._answer, self.host, 0, ssl=tls, limit=MOST)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await end.wait()
        server.close()
        for writer in list(self._open):
            writer.transport.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError):
                await self._answer_one(reader, writer)
        finally:
            self._open.discard(writer)
            writer.transport.abort() if writer.is_closing() else writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        self.requests.append(f"{method} {path}")
        for fault in [one for one in self.faults if one.fits(method, path)]:
            fault.times -= 1
            await asyncio.sleep(fault.slow_s)
            if fault.code:
                writer.write(_refusal(fault))
                await writer.drain()
                return
        upgrade = any(line.lower().startswith("upgrade:") for line in lines)
        if not upgrade:
            lines = ["Connection: close", *(line for line in lines if not line.lower().startswith("connection:"))]
        tls = ssl.create_default_context(cafile=str(self.cluster.authority))
        behind = await asyncio.open_connection(self.cluster.network.address("cp"), 6443, ssl=tls)
        self._open.add(behind[1])
        try:
            behind[1].write("\r\n".join([first, *lines]).encode("latin-1"))
            up = asyncio.create_task(_pump(reader, behind[1]))
            try:
                await _pump(behind[0], writer)
            finally:
                up.cancel()
                await asyncio.gather(up, return_exceptions=True)
        finally:
            self._open.discard(behind[1])
            behind[1].transport.abort()


def _refusal(fault: Fault) -> bytes:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "made up by a test",
        "reason": REASONS[fault.code],
        "code": fault.code,
    }
    said, code = (status, fault.code) if not fault.in_stream else ({"type": "ERROR", "object": status}, 200)
    body = json.dumps(said).encode() + b"\n"
    more = f"Retry-After: {fault.retry_after_s}\r\n" if fault.retry_after_s else ""
    head = f"HTTP/1.1 {code} {REASONS[fault.code]}\r\nContent-Type: application/json\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while part := await source.read(MOST):
        target.write(part)
        await target.drain()


@contextmanager
def front_of(cluster: Cluster, folder: Path, token: str = "", host: str = "127.0.0.1") -> Iterator[Front]:
    """``token``: whose rights its kubeconfig has, an administrator's without it.

    At the ``host`` ``cluster.network.host``, the machines of the cluster reach it, too.
    """
    front = Front(cluster, folder / "front.kubeconfig", host)
    ready, loop, end = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(front.serve(ready, end)))
    thread.start()
    try:
        assert ready.wait(60)
        cluster.write_kubeconfig(front.kubeconfig, f"https://{host}:{front.port}", token=token or cluster.token)
        yield front
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(60)
        loop.close()
