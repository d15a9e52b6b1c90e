"""The hub's process: one per home, on a Unix socket for the user's own programs and on TCP for browsers."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
import socket
import ssl
import sys
from typing import TYPE_CHECKING

import structlog
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from hitchpost import settings as config
from hitchpost.errors import FAILURES, HitchpostError, Refused, UsageError
from hitchpost.hub.address import Address
from hitchpost.hub.change_counts import ChangeCounts
from hitchpost.hub.client import FILE, LOCK
from hitchpost.hub.core import Hub
from hitchpost.hub.duties import Duties
from hitchpost.hub.http import local as local_socket
from hitchpost.hub.http.app import build
from hitchpost.hub.http.connections import LocalConnection, limited
from hitchpost.hub.http.gate import Gate, Trusted
from hitchpost.hub.http.ownertoken import owner_token
from hitchpost.hub.http.proxy import Proxy
from hitchpost.hub.http.proxy import options as people_options
from hitchpost.hub.http.tls import TlsListener
from hitchpost.hub.http.tokens import Tokens
from hitchpost.hub.http.wsprotocol import WebSocketProtocol
from hitchpost.hub.logfile import FIELDS
from hitchpost.model.people import NO_QUOTA
from hitchpost.ops.sessions.environment import FLEET
from hitchpost.store import files, locks
from hitchpost.store.home import open_home
from hitchpost.system import cgroup, process

if TYPE_CHECKING:
    from hitchpost.hub.replica import Replica

LEAVE_S = 5
LOOK_AT_CERTIFICATE_S = 60.0
BACKLOG = 128
"""Connections that wait to be accepted: one turn of the event loop accepts all of them, and others wait for it."""
MOST_HEAD_BYTES = 48 << 10
TLS_CHANCE_S = 1.0
"""How long a client that nobody knows has at least, where a handshake may cross half the world."""
NO_SUCH_FAMILY = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
TRIES = 20
"""To find a port that is free in both families."""
SWITCH_S = 0.0005
"""How long a thread that looks at files or feeds an emulator may make the event loop wait; Python's own are 5 ms."""

log = structlog.get_logger()


class Server(uvicorn.Server):
    """Signals are the hub's own business."""

    def capture_signals(self):  # type: ignore[no-untyped-def]
        from contextlib import nullcontext

        return nullcontext()

    async def move(self, sock: socket.socket) -> None:
        """Listen on ``sock`` from now on, and on nothing else. Who is connected stays."""
        before = self.servers
        await self.startup(sockets=[sock])
        for listener in before:
            listener.close()


def run(address: Address) -> int:
    """Serve until SIGTERM or SIGINT. Raises ``Refused`` when another hub has the home."""
    address = address.checked()
    database = os.environ.pop(FLEET, "")  # it may hold a password: nothing that the hub starts gets it
    sys.setswitchinterval(SWITCH_S)
    home = open_home()
    locks = take_locks(home)
    cgroup.leave_foreign_group()
    try:
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(serve(home, address, database))
    finally:
        for lock in locks:
            os.close(lock)


def take_locks(home: str) -> list[int]:
    """Hold the home itself, which cannot be deleted under a hub, and the file that says who does."""
    path = os.path.join(home, LOCK)
    held: list[int] = []
    try:
        held.append(os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        locks.wait_for_flock(held[0], home, 0.5)
        held.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        locks.wait_for_flock(held[1], path, 0.5)
        os.ftruncate(held[1], 0)
        os.pwrite(held[1], f"{os.getpid()} {process.start_time(os.getpid())} {process.boot_id()}\n".encode(), 0)
        return held
    except FAILURES as error:
        for fd in held:
            os.close(fd)
        if isinstance(error, OSError):
            raise Refused(f"cannot use {path}: {os.strerror(error.errno or 0).lower()}") from None
        raise Refused("another hub serves this home; hitch status shows it") from None


async def serve(home: str, address: Address, database: str = "") -> int:
    """Serve until a signal comes. A server that fails ends the hub: nobody could reach it any more.

    ``database`` is the address of a fleet's PostgreSQL; empty on one machine.
    """
    replica = _replica(home, database) if database else None
    hub, owner = Hub(home, replica), owner_token(config.load().owner_token_file)
    tokens = Tokens(home, owner=owner) if replica is None else Tokens(home, owner=owner, guard=replica.shared)
    hub.quota_of = lambda name: NO_QUOTA if (person := tokens.file.person(name)) is None else person.quota
    app, sign_in = build(hub, tokens)
    gate = Gate(app, tokens)
    tcp = listen(address)
    origins = address.origins(tcp[0].getsockname()[1])
    gate.serve_at(origins)
    sign_in.url = f"{origins[0]}/"
    context = address.context()
    is_asked_to_leave = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, is_asked_to_leave.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: _load_again(address, context))
    await hub.open()
    settings = await hub.do(config.load)
    gate.proxy, app.state.people.options = Proxy.of(settings), people_options(settings)
    duties = Duties(hub, settings, sign_in.url, lambda notifier: setattr(app.state, "notifier", notifier))
    await duties.open()
    counts = ChangeCounts(hub)
    local = local_socket.LocalSocket(home)
    first = local.open()
    tokens.open()
    await hub.do(_write_address, home, sign_in.url)  # whoever gets an answer finds the file
    async with asyncio.TaskGroup() as group:
        limits = {"chance_s": TLS_CHANCE_S} if context else {}
        public = _server(gate, limited(**limits), BACKLOG)
        servers: list[Server] = []
        serving: list[asyncio.Task[None]] = []

        def begin(server: Server, sockets: list[socket.socket]) -> None:
            servers.append(server)
            serving.append(group.create_task(server.serve(sockets=sockets)))

        begin(public, [] if context else tcp)
        own = _server(Trusted(app), LocalConnection, local_socket.BACKLOG)
        begin(own, [first])
        keeping = group.create_task(local_socket.keep(local, own.move))
        tls = None if context is None else TlsListener(context, public)
        following = None if context is None else group.create_task(follow_certificate(address, context))
        if tls is not None:
            tls.start(tcp)
        gc.freeze()  # do not look through what the hub is made of again: that takes tens of milliseconds
        gc.enable()
        log.info("hub is up", url=sign_in.url, pid=os.getpid())
        await is_asked_to_leave.wait()
        log.info("hub is leaving")
        if local.is_at_home:
            files.discard(os.path.join(home, FILE))
        keeping.cancel()
        local.discard()
        await counts.close()
        await duties.close()
        if following is not None:
            following.cancel()
        if tls is not None:
            await tls.close()
        for server in servers:
            server.should_exit = True
            server.force_exit = True
        _, late = await asyncio.wait(serving, timeout=LEAVE_S)
        for task in late:
            task.cancel()
    await tokens.close()
    await gate.close()
    await hub.close()
    return 0


def _replica(home: str, database: str) -> Replica:
    """Only a fleet's hub pays for what a fleet needs. Raises ``UsageError`` where that is not installed."""
    try:
        from hitchpost.hub.replica import Replica
    except ImportError as error:
        raise UsageError(
            f"a fleet needs more than is installed here ({error}); pip install 'hitchpost[fleet]'"
        ) from None
    made = Replica(home, database)
    FIELDS["replica"] = made.name
    return made


def _write_address(home: str, url: str) -> None:
    """Write ``hub.json``: where the hub is, and which process."""
    pid = os.getpid()
    identity = {"pid": pid, "start": process.start_time(pid), "boot_id": process.boot_id()}
    files.write_object(os.path.join(home, FILE), {"schema": files.SCHEMA, "url": url, **identity, "at": files.stamp()})


def _server(app: object, protocol: type[H11Protocol], backlog: int) -> Server:
    return Server(
        uvicorn.Config(
            app,  # type: ignore[arg-type]
            http=protocol,
            ws=WebSocketProtocol,
            ws_per_message_deflate=False,
            ws_max_size=4 << 20,
            ws_ping_interval=20,
            ws_ping_timeout=60,
            backlog=backlog,
            h11_max_incomplete_event_size=MOST_HEAD_BYTES,
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=LEAVE_S,
        )
    )


def _load_again(address: Address, context: ssl.SSLContext | None) -> bool:
    """A certificate that was renewed counts from the next handshake on; one that cannot be used changes nothing."""
    if context is None:
        return False
    try:
        address.context()
        context.load_cert_chain(address.cert, address.key)
        log.info("the certificate was read again")
        return True
    except HitchpostError as error:
        log.error("the certificate could not be read again", error=str(error))
        return False


async def follow_certificate(address: Address, context: ssl.SSLContext, every_s: float = LOOK_AT_CERTIFICATE_S) -> None:
    """For ever: read the certificate again when its files have changed, as those of a Secret do."""
    known = _certificate_files(address)
    while True:
        await asyncio.sleep(every_s)
        now = await asyncio.to_thread(_certificate_files, address)
        if now != known and now is not None and _load_again(address, context):
            known = now


def _certificate_files(address: Address) -> tuple[tuple[int, int, int], ...] | None:
    """What changes with them; None while one is not there."""
    try:
        found = [os.stat(path) for path in (address.cert, address.key)]
    except OSError:
        return None
    return tuple((each.st_dev, each.st_ino, each.st_mtime_ns) for each in found)


def listen(address: Address) -> list[socket.socket]:
    """Listen on every place of the address, or on none: a browser that is told ``localhost`` takes either family, and
    what we left free could be somebody else's. Raises ``Refused``."""
    port, places = address.port, address.places()
    for _ in range(TRIES if port == 0 else 1):
        opened: list[socket.socket] = []
        try:
            for family, host in places:
                try:
                    opened.append(_listen(family, host, opened[0].getsockname()[1] if opened else port))
                except OSError as error:
                    if family == socket.AF_INET or error.errno not in NO_SUCH_FAMILY:
                        raise
            return opened
        except OSError as error:
            for sock in opened:
                sock.close()
            why = os.strerror(error.errno or 0).lower()
            name = f"[{host}]" if ":" in host else host
            refused = Refused(f"cannot listen on {name}:{port}: {why}", "choose another --port, or 0")
    raise refused


def _listen(family: int, host: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock
