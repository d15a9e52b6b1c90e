"""A hub's link to the pod of one session: it keeps the copy up to date, and carries what clients say to the keeper.

It connects for as long as it is open, and goes on where the copy ends. A pod that nobody reaches is silent, not dead.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor

import structlog

from hitchpost import wire
from hitchpost.errors import FAILURES, MALFORMED, HitchpostError
from hitchpost.fleet import frames
from hitchpost.fleet.news import DOWN, KEPT, OVER, UP, News, OnNews
from hitchpost.fleet.pipe import Pipe
from hitchpost.fleet.pod_copy import LONGEST_LOG_BYTES, Copy
from hitchpost.fleet.tls import Identity, NotTrusted, name_of_session
from hitchpost.runtimes.link import Silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Client(Protocol):
        """A client of the keeper that a stand-in has. ``channel`` is its number on the link, 0 while it has none."""

        channel: int

        def on_link(self) -> None:
            """The link is up: now is the time to open a channel."""

        def on_cut(self) -> None:
            """The link is down, and the channel with it."""

        def on_frame(self, frame: bytes) -> None:
            """A frame of the keeper."""

        def on_taken(self, size: int) -> None:
            """So many bytes more have gone to the keeper."""

        def on_closed(self) -> None:
            """The keeper has closed the connection."""


CONNECT_S = 3.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0
NEW_PAUSE_S, NEW_S = 0.1, 20.0
"""A pod that was just made serves in a moment, and somebody waits for it."""
LOOKED_S = 5.0
"""Somebody who looks at the output asks for more of it again and again."""
FILE_FRAMES = (frames.FILE, frames.PART, frames.REACHED, frames.FIRST)
LONGEST_REPLY_BYTES = 64 << 20

OpenStream = Callable[[], Awaitable[socket.socket]]
"""A connected socket to the pod, not blocking. Called for each attempt: a pod may have another address by then."""
log = structlog.get_logger()


class Refusing(HitchpostError):
    """Raised when a pod ends a link with a reason."""

    http_status = 502
    code = "refused_by_pod"


class PodLink:
    """``up_since`` and ``down_since`` are seconds since 1970; one of them is None. ``down_since`` is when the pod was
    last heard, and ``why_down`` what stands between.

    ``wants`` is ``frames.OUTPUT`` where the session's files come to this hub in another way. Such a link ``is_slow``
    while nobody looks at the output here: then a flood comes slowly.
    """

    def __init__(
        self,
        session_folder: str,
        open_stream: OpenStream,
        on_news: OnNews,
        *,
        identity: Identity,
        wants: str = frames.ALL,
        pool: ThreadPoolExecutor | None = None,
        most_log_bytes: int = LONGEST_LOG_BYTES,
    ) -> None:
        self.session, self.session_folder = os.path.basename(session_folder), session_folder
        self.open_stream, self.on_news, self.identity, self.wants = open_stream, on_news, identity, wants
        self.copy = Copy(session_folder, most_log_bytes)
        self.up_since: float | None = None
        self.down_since: float | None = time.time()
        self.why_down = "not connected yet"
        self.was_up = self.is_closed = False
        self.is_slow = wants == frames.OUTPUT
        self._is_behind = True
        """The pod may have output that is not here: it was not heard until now, or comes slowly."""
        self._told_wants, self._told_slow = wants, self.is_slow
        """What the pod at the other end knows of it."""
        self._paces = False
        """Whether the pod knows what a slow link is."""
        self._looked_until = 0.0
        self._look_timer: asyncio.TimerHandle | None = None
        self.reconnects = 0
        self._made_s = time.monotonic()
        self.kept: int | None = None
        """The run that a keeper in the pod has; 0: none; None: not known."""
        self.over: set[int] = set()
        """Runs whose keepers are gone, and of which everything is here."""
        self._clients: dict[int, Client] = {}
        self._waiting: list[Client] = []
        self._on_end: dict[int, Callable[[int], None]] = {}
        self._on_over: dict[int, Callable[[], None]] = {}
        self._channels = 0
        self._pool = pool
        self._pipe: Pipe | None = None
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._replies: dict[int, bytearray] = {}
        self._requests = 0
        self._moved = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Connect, from now on."""
        if not self._tasks:
            self.start(self._keep())

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Work that ends with the link. An error in it is told, and ends nothing else."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the work of a link has failed", session_id=self.session, exc_info=error)

    async def want(self, wants: str) -> None:
        """From now on."""
        if wants != self.wants:
            self.wants = wants
            await self._tell_wants()

    async def _tell_wants(self) -> None:
        """While the pod is being greeted it cannot be told; then it is once it has answered."""
        if self.wants != self._told_wants:
            lines = await self._in_thread(self.copy.lines)
            if self._pipe is not None and self.up_since is not None and self.wants != self._told_wants:
                self._told_wants = self.wants
                self._pipe.send(frames.json_frame(frames.WANT, {"wants": self.wants, "lines": lines}))
        self._pace()

    def looked_at(self) -> None:
        """Somebody waits for output here: for now, it comes as fast as it is written."""
        loop = asyncio.get_running_loop()
        self._looked_until = loop.time() + LOOKED_S
        if self._look_timer is None:
            self._look_timer = loop.call_at(self._looked_until, self._look_again)
        self._pace()

    def _look_again(self) -> None:
        loop, self._look_timer = asyncio.get_running_loop(), None
        if self._looked_until > loop.time():
            self._look_timer = loop.call_at(self._looked_until, self._look_again)
        else:
            self._pace()

    def _pace(self) -> None:
        self.is_slow = self.wants == frames.OUTPUT and self._look_timer is None
        self._is_behind |= self.is_slow
        if self.is_slow != self._told_slow and self._pipe is not None and self.up_since is not None and self._paces:
            self._told_slow = self.is_slow
            self._pipe.send(frames.json_frame(frames.PACE, {"is_slow": self.is_slow}))

    async def caught_up(self, timeout_s: float) -> None:
        """All output that the pod has now is here then, if it can be reached so soon."""
        self.looked_at()
        if self._is_behind and self._paces and self.up_since is not None:
            try:
                await self.ask({"op": "rest"}, timeout_s)
            except Silent as error:
                log.info("output is not here yet", session_id=self.session, why=str(error))
            else:
                self._is_behind = self.is_slow

    async def close(self) -> None:
        """What waits for the pod then is told that it is silent."""
        self.is_closed = True
        if self._look_timer is not None:
            self._look_timer.cancel()
        for task in self._tasks:
            task.cancel()
        if others := self._tasks - {asyncio.current_task()}:
            await asyncio.wait(others)
        await self._in_thread(self.copy.close)

    async def _in_thread(self, call: Callable[..., Any], *args: object) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call, *args)

    # the connection -----------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        """For ever. An agent can write what a pod sends: whatever that is, the link is made again, a pause later."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                self._pipe = await self._connected()
                await self._listen(self._pipe)
                error = self._pipe.error or ConnectionResetError("the pod has closed the connection")
                if not isinstance(error, HitchpostError):
                    pause_s = FIRST_PAUSE_S
            except FAILURES as failure:
                error = failure
            except MALFORMED as failure:
                error = wire.BadFrame(f"the pod sent what nobody understands: {failure!r}")
            except Exception as failure:
                log.error("a link has failed", session_id=self.session, exc_info=failure)
                error = failure
            finally:
                self._cut()
            await self._tell_down(error)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, self._longest_pause_s)

    @property
    def _longest_pause_s(self) -> float:
        is_new = not self.was_up and time.monotonic() - self._made_s < NEW_S
        return NEW_PAUSE_S if is_new else LONGEST_PAUSE_S

    async def _tell_down(self, error: Exception) -> None:
        """Who is told may fail, too: that ends no link."""
        try:
            await self._is_down(error)
        except Exception as failure:
            log.error("nobody could be told of a cut", session_id=self.session, exc_info=failure)

    async def _connected(self) -> Pipe:
        context = await self._in_thread(self.identity.context)
        async with asyncio.timeout(CONNECT_S):
            peer = await self.open_stream()
            name = name_of_session(self.session)
            pipe = Pipe(context, name, beat_s=frames.HUB_BEAT_S, cut_s=frames.HUB_CUT_S)
            await asyncio.get_running_loop().create_connection(lambda: pipe, sock=peer)
            try:
                await pipe.ready()
            except BaseException:
                pipe.abort()
                raise
        return pipe

    async def _listen(self, pipe: Pipe) -> None:
        has = await self._in_thread(self.copy.have)
        self._told_wants, self._told_slow = self.wants, self.is_slow
        hello = {"v": frames.VERSION, "session": self.session, "wants": self.wants, "is_slow": self.is_slow, **has}
        pipe.send(frames.json_frame(frames.HELLO, hello))
        while found := await pipe.frames():
            batch: list[tuple[bytes, bytes]] = []
            for kind, payload in found:
                if kind in FILE_FRAMES:
                    batch.append((kind, payload))
                    continue
                await self._apply(batch)
                batch = []
                await self._on_frame(kind, payload)
            await self._apply(batch)

    async def _apply(self, batch: list[tuple[bytes, bytes]]) -> None:
        """Files first, then word of how far the log reaches."""
        if batch:
            before = dict(self.copy.ends)
            await self._in_thread(self._apply_all, batch)
            for run, end in self.copy.ends.items():
                if end != before.get(run) and run in self._on_end:
                    self._on_end[run](end)

    def _apply_all(self, batch: list[tuple[bytes, bytes]]) -> None:
        for kind, payload in batch:
            if (news := self.copy.apply(kind, payload)) is not None:
                self.on_news(news)

    async def _on_frame(self, kind: bytes, payload: bytes) -> None:
        if kind == frames.CHANNEL:
            if (client := self._clients.get(int.from_bytes(payload[:4], "big"))) is not None:
                client.on_frame(frames.of_keeper(payload[4:]))
        elif kind == frames.TAKEN:
            if (client := self._clients.get(int.from_bytes(payload[:4], "big"))) is not None:
                client.on_taken(int.from_bytes(payload[4:8], "big"))
        elif kind == frames.CLOSE:
            if (client := self._clients.pop(int.from_bytes(payload[:4], "big"), None)) is not None:
                client.on_closed()
        elif kind == frames.REPLY:
            self._on_reply(payload)
        elif kind == frames.WELCOME:
            self._paces = frames.object_of(payload).get("paces") is True
            await self._is_up()
            await self._tell_wants()
        elif kind == frames.KEPT:
            self.kept = int.from_bytes(payload[:4], "big")
            await self._in_thread(self.on_news, News(KEPT, self.kept))
            self._open_channels()
        elif kind == frames.OVER:
            run = int(frames.object_of(payload)["run"])
            await self._in_thread(self.copy.check_run, run)
            await self._is_over(run)
        elif kind == frames.REFUSED:
            raise Refusing(f"the pod refuses the link: {frames.object_of(payload).get('why')}")

    def _on_reply(self, payload: bytes) -> None:
        number, flag = int.from_bytes(payload[:4], "big"), payload[4]
        if number not in self._asked:
            self._replies.pop(number, None)  # nobody waits for it any more, or ever did
            return
        text = self._replies.setdefault(number, bytearray())
        text += payload[5:]
        if len(text) > LONGEST_REPLY_BYTES:
            raise wire.BadFrame(f"expected a reply of at most {LONGEST_REPLY_BYTES} bytes")
        if flag == frames.LAST:
            del self._replies[number]
            waiting = self._asked.pop(number, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(frames.object_of(bytes(text)))

    # up and down --------------------------------------------------------------------------------------------------

    async def _is_up(self) -> None:
        self.reconnects += self.was_up
        self.up_since, self.down_since, self.why_down, self.was_up = time.time(), None, "", True
        await self._in_thread(self.on_news, News(UP))
        self._wake()

    def _cut(self) -> None:
        """At once: what waits for the pod knows that it will not hear from it."""
        pipe, self._pipe = self._pipe, None
        if self.down_since is None:
            silent_s = 0.0 if pipe is None else asyncio.get_running_loop().time() - pipe.heard_at
            self.up_since, self.down_since = None, time.time() - silent_s
        self.kept = None
        self._is_behind = True
        if pipe is not None:
            pipe.abort()
        clients, self._clients = list(self._clients.values()), {}
        self._waiting += clients
        for client in clients:
            client.on_cut()
        asked, self._asked = self._asked, {}
        self._replies.clear()
        for waiting in asked.values():
            if not waiting.done():
                waiting.set_exception(Silent("the pod cannot be reached"))
        self._wake()

    async def _is_down(self, error: BaseException) -> None:
        why = str(error) or type(error).__name__
        if why != self.why_down:
            told = log.warning if isinstance(error, NotTrusted) else log.info
            told("a pod cannot be reached", session_id=self.session, why=why)
            self.why_down = why
            await self._in_thread(self.on_news, News(DOWN, why=why))

    async def _is_over(self, run: int) -> None:
        """The keeper's own word, and all that it has written: the end of the run is known."""
        self.kept = 0
        self.over.add(run)
        await self._in_thread(self.on_news, News(OVER, run))
        if (on_over := self._on_over.get(run)) is not None:
            on_over()

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    # what is asked of the pod -------------------------------------------------------------------------------------

    async def ask(self, request: dict[str, object], timeout_s: float) -> dict[str, Any]:
        """The pod's answer. Raises ``Silent`` when it cannot be reached, or does not answer in time."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._pipe is None or self.down_since is not None:
                    if self.is_closed:
                        raise Silent("the link to the pod was closed")
                    await self._moved.wait()
                self._requests += 1
                number = self._requests
                waiting = self._asked[number] = asyncio.get_running_loop().create_future()
                self._pipe.send(frames.json_frame(frames.REQUEST, {**request, "id": number}))
                try:
                    answer: dict[str, Any] = await waiting
                    return answer
                finally:
                    self._asked.pop(number, None)
                    self._replies.pop(number, None)
        except TimeoutError:
            raise Silent(self.silence()) from None

    def silence(self) -> str:
        return f"the pod cannot be reached: {self.why_down}" if self.why_down else "the pod does not answer in time"

    # clients of the keeper ----------------------------------------------------------------------------------------

    def follow(self, run: int, on_end: Callable[[int], None], on_over: Callable[[], None]) -> None:
        """Call ``on_end`` whenever the copy has more of the run's log, ``on_over`` when the run's end is known."""
        self._on_end[run], self._on_over[run] = on_end, on_over

    def unfollow(self, run: int) -> None:
        self._on_end.pop(run, None)
        self._on_over.pop(run, None)

    @property
    def can_speak(self) -> bool:
        """Whether what is said to the keeper reaches it now, as far as is known."""
        return self._pipe is not None and bool(self.kept)

    def join(self, client: Client) -> None:
        """Give the client a channel, now or as soon as there can be one."""
        if self.can_speak:
            client.on_link()
        else:
            self._waiting.append(client)

    def _open_channels(self) -> None:
        waiting, self._waiting = self._waiting, []
        for client in waiting:
            client.on_link()

    def open_channel(self, client: Client, hello: bytes) -> None:
        assert self._pipe is not None
        self._channels = self._channels % 0xFFFFFFFF + 1
        client.channel = self._channels
        self._clients[client.channel] = client
        self._pipe.send(frames.frame(frames.OPEN, frames.number(client.channel), hello))

    def say(self, client: Client, frame: bytes) -> None:
        if self._pipe is not None and client.channel in self._clients:
            self._pipe.send(frames.frame(frames.CHANNEL, frames.number(client.channel), frame))

    def leave(self, client: Client) -> None:
        if client in self._waiting:
            self._waiting.remove(client)
        if self._clients.pop(client.channel, None) is not None and self._pipe is not None:
            self._pipe.send(frames.frame(frames.CLOSE, frames.number(client.channel)))


async def tcp(host: str, port: int) -> socket.socket:
    """An ``OpenStream`` for a pod that can be reached at an address."""
    peer = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    peer.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(peer, (host, port))
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        peer.close()
        raise
    return peer
