"""Stands here for the keeper of a run elsewhere: ``link`` speaks as a keeper does, ``folder`` is its growing output.

So whoever follows a run on this machine, ``attach`` above all, can follow one elsewhere. What the hub sends over a
WebSocket is appended to a copy of the log, and told; what is typed goes to the hub. A connection that is lost is made
again, and goes on at the byte where it was lost.
"""

from __future__ import annotations

import base64
import json
import queue
import shutil
import socket
import threading
from contextlib import suppress
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection

from hitchpost import wire
from hitchpost.cli import terminal as term
from hitchpost.cli.remote import copies
from hitchpost.cli.remote.copies import GrowingCopy
from hitchpost.cli.remote.hub import Found, RemoteHub
from hitchpost.cli.remote.sounds import Sounds
from hitchpost.cli.remote.tls import ANSWERS_S, CannotReach
from hitchpost.errors import FAILURES, MALFORMED, Refused
from hitchpost.hub.client import HubRefused
from hitchpost.model import run as runs
from hitchpost.runtimes.link import Link
from hitchpost.terminal.screen import CANCEL

SNAPSHOT, OUTPUT, GAP = 0, 1, 2
HEAD_BYTES = 13
"""Of a binary frame: kind, channel and offset."""
LARGEST_SIDE = 1000
OPEN_S, LEAVE_S = 60.0, 5.0
PAUSES_S = (0.1, 0.3, 1.0, 2.0)
"""Before the connection is tried again; the last one from then on."""
AGAIN_S = 10.0
"""What a network has swallowed never comes: a connection that is made again is soon tried once more."""
SIZE_S = 0.5
"""Until then the hub has told of a size that was asked for, or another client has the size."""
SEEN_S = 0.5
FORBIDDEN = "forbidden"
"""The code of what is refused to who may only look."""
GONE = (WebSocketException, OSError)


class StandIn:
    """One run. Without ``start``, its screen comes first, as the first bytes of the copy, and offsets here are others
    than there. With ``start``, every byte from there on comes, into ``folder``, whatever it takes.

    Two threads, one for the hub and one for ``link``, end with ``close``. Queues: what the reader of the copy has not
    read is bounded by ``GrowingCopy``, then the hub waits; what is typed while the hub is away is refused.
    """

    def __init__(
        self,
        hub: RemoteHub,
        found: Found,
        *,
        size: tuple[int, int],
        read_only: bool,
        start: int | None = None,
        folder: str = "",
    ) -> None:
        self.hub, self.found, self.run = RemoteHub(hub.context), found, found.session["run"]
        self.size, self.read_only, self.is_exact = size, read_only, start is not None
        self._top = "" if folder else copies.new_folder()
        self.folder = folder or copies.output_folder(self._top, found.id, self.run)
        self.sounds = Sounds(hub.context.name, found.id)
        self._copy = GrowingCopy(self.folder, start or 0, forgets=bool(self._top))
        self._there = start
        """The offset there of the next byte; None before the first."""
        self._followed: int | None = None
        self._state = threading.Condition()
        """Guards the copy's end and how far it was read, and whether this is closed."""
        self._is_closed = self._is_open = self._is_over = False
        self._opened: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        self._connection: ClientConnection | None = None
        self._channel = -1
        self._known_size = (0, 0)
        self._report: object = None
        self._told = threading.Event()
        """Set when the hub has told of the session."""
        self._unsure = 0
        """How often it was told that somebody sees the session, which may have been refused."""
        self._only_looks = False
        self._pings: list[int] = []
        self._timer: threading.Timer | None = None
        self._ours, theirs = socket.socketpair()
        self._saying = threading.Lock()
        self.link = Link(theirs, {}, bytearray())
        self._threads = [threading.Thread(target=call, daemon=True) for call in (self._listen, self._take)]

    def __enter__(self) -> StandIn:
        """Raises what keeps the hub from showing the run."""
        self._threads[0].start()
        try:
            error = self._opened.get(timeout=OPEN_S)
        except queue.Empty:
            error = CannotReach(self.hub.context, TimeoutError())
        if error is not None:
            self.close()
            raise error
        cols, rows = self._known_size
        self.link.welcome = {"run": self.run, "end": self._copy.end, "cols": cols, "rows": rows}
        self._threads[1].start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._is_open and not self.is_exact:
            self._say_seen(SEEN_S)
        with self._state:
            self._is_closed = True
            self._state.notify_all()
            connection = self._connection
        if connection is not None:
            _hang_up(connection.socket)
        _hang_up(self._ours)
        for thread in self._threads:
            if thread.is_alive():
                thread.join(LEAVE_S)
        if self._timer is not None:
            self._timer.cancel()
        self._ours.close()
        self.link.close()
        self.hub.close()
        self.sounds.close()
        self._copy.close()
        if self._top:
            shutil.rmtree(self._top, ignore_errors=True)

    # the connection ---------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        pauses = iter(PAUSES_S)
        while not self._is_closed:
            try:
                if self._listened():
                    return
                pauses = iter(PAUSES_S)
            except (*FAILURES, WebSocketException) as error:
                if not self._is_open:
                    known = isinstance(error, FAILURES)
                    self._opened.put(error if known else CannotReach(self.hub.context, error))
                    return
                if isinstance(error, HubRefused) and error.status < 500:
                    self._leave()  # it will not be otherwise the next time
                    return
            self.sounds.lost()
            with self._state:
                self._state.wait_for(lambda: self._is_closed, next(pauses, PAUSES_S[-1]))

    def _listened(self) -> bool:
        """Until the run is over (True), or the connection is lost. Raises what keeps it from being opened."""
        patience_s = AGAIN_S if self._is_open else ANSWERS_S
        connection = self.hub.websocket(hears=not self.is_exact, opens_s=patience_s)
        self._unsure = 0
        try:
            with self._state:
                self._connection = connection
                if self._is_closed:
                    return True
            self._attach(connection)
            try:
                for message in connection:
                    if self._on_message(message):
                        return True
            except GONE:
                pass
            return False
        finally:
            self._connection, self._channel = None, -1
            with suppress(*GONE):
                connection.close()

    def _attach(self, connection: ClientConnection) -> None:
        cols, rows = (min(side, LARGEST_SIDE) for side in self.size)
        start = {} if self._there is None else {"from": self._there}
        self._tell(connection, "session.attach", cols=cols, rows=rows, readOnly=self.read_only, **start)

    def _tell(self, connection: ClientConnection, kind: str, **fields: object) -> None:
        connection.send(json.dumps({"type": kind, "sessionId": self.found.id, **fields}))

    # what the hub says ------------------------------------------------------------------------------------------

    def _on_message(self, message: str | bytes) -> bool:
        """Whether the run is over."""
        if isinstance(message, bytes):
            if int.from_bytes(message[1:5], "big") != self._channel:
                return False
            self._on_bytes(message[0], int.from_bytes(message[5:HEAD_BYTES], "big"), message[HEAD_BYTES:])
            return self._is_over and self._is_open and self._ended()
        try:
            event: dict[str, Any] = json.loads(message)
            if event["type"] == "notification":
                self.sounds.told(event)
            return event.get("sessionId") == self.found.id and self._on_event(event)
        except MALFORMED:
            return False  # of a newer hub

    def _on_event(self, event: dict[str, Any]) -> bool:
        kind = event["type"]
        if kind == "session.attached":
            if event["run"] != self.run:
                return self._ended()
            self._channel = event["channel"]
            self._resized(event["cols"], event["rows"])
            # of an end that came while nobody listened, nobody tells
            now = self.hub.now(self.found)
            self._is_over = now["run"] != self.run or now["state"] in runs.TERMINAL
            if self._there is not None:
                self._opens()
                return self._is_over and self._ended()
        elif kind == "terminal.size":
            self._resized(event["cols"], event["rows"])
        elif kind == "terminal.exit" and event["run"] == self.run:
            return self._ended()
        elif kind == "session.removed":
            self._leave()
            return True
        elif kind == "error" and not self._is_open:
            raise Refused(event["message"])
        elif kind == "error":
            self._on_refusal(event["code"])
        elif kind in ("session.status", "session.updated"):
            self._told.set()
            if event["session"]["report"] != self._report:
                self._report = event["session"]["report"]
                self._say_seen()
        return False

    def _on_refusal(self, code: str) -> None:
        """It is about a key, except that who may only look cannot write down either that they have seen it.

        The hub answers in the order in which it was asked, and does not say what it answers. So refusals are counted:
        as many as there were of the latter are no bells.
        """
        if code == FORBIDDEN:
            self._only_looks = True
            if self._unsure:
                self._unsure -= 1
                return
        self._say(wire.EVENT, {"event": "refused"})

    def _say_seen(self, wait_s: float = 0.0) -> None:
        """Somebody has the session before their eyes."""
        self._told.clear()
        if self.is_exact or self._only_looks:
            return
        self._unsure += 1
        if self._pass_on("session.seen"):
            self._told.wait(wait_s)
        else:
            self._unsure -= 1

    def _opens(self) -> None:
        if self._is_open:
            self.sounds.back()
        else:
            self._is_open = True
            self._opened.put(None)
        self._say_seen()

    def _resized(self, cols: int, rows: int) -> None:
        if (cols, rows) != self._known_size:
            self._known_size = cols, rows
            if self._is_open:
                event = {"event": "resize", "offset": self._copy.end, "cols": cols, "rows": rows}
                self._say(wire.EVENT, event)
        self._answer_pings()

    def _on_bytes(self, kind: int, offset: int, data: bytes) -> None:
        if self.is_exact and kind in (SNAPSHOT, OUTPUT):
            self._fetch(offset)
        if kind == OUTPUT:
            self._put(data)
            self._there = offset + len(data)
        elif kind == SNAPSHOT and not self.is_exact:
            self._on_screen(offset, data)
        elif kind == GAP and not self.is_exact:
            lost = int.from_bytes(data, "big")
            self._copy.skip_to(self._copy.end + lost)
            self._there = offset + lost

    def _on_screen(self, offset: int, data: bytes) -> None:
        """The first one, or one instead of output that came too fast, or that is lost."""
        if self._there is None:
            self._copy.write_size(*self._known_size)
        else:
            skipped = offset - self._there
            where = self.hub.advice(f"hitch logs {self.found.word} has them")
            note = f"{skipped} bytes of output came too fast for this connection; {where}"
            told = f"\r\n[hitch: {note}]\r\n".encode() if skipped > 0 else b""
            cleared = b"\r\n" * self._known_size[1] + b"\x1b[H"
            data = CANCEL + term.RESET + term.LEAVE_ALTERNATE + told + cleared + data
        self._put(data)
        self._there = offset
        self._opens()

    def _fetch(self, until: int) -> None:
        """Bytes that the hub has passed over are in its log, or are missing there, too."""
        while self._there is not None and self._there < until:
            data, headers = self.hub.octets(f"{self.found.path}/output/part", run=self.run, from_=self._there)
            at = int(headers[copies.AT])
            if not data or at >= until:
                self._there = until
            else:
                if at > self._there and self.is_exact:
                    self._copy.skip_to(at)
                data = data[: until - at]
                self._put(data)
                self._there = at + len(data)
            if self.is_exact:
                self._copy.skip_to(self._there)

    def _ended(self) -> bool:
        """All of the run's output comes first, and then its end."""
        state = reason = ""
        with suppress(*FAILURES):
            outline = self.hub.get(f"{self.found.path}/output", run=self.run)
            self._fetch(outline["end"])
            if self.is_exact:
                self._copy.skip_to(max(outline["end"], outline["told_end"]))
            session = self.hub.now(self.found)
            state, reason = session["state"], session["label"]
        self._say(wire.EVENT, {"event": "exit", "end": self._copy.end, "state": state, "reason": reason})
        self._leave()
        if not self._is_open:
            self._opens()
        return True

    def _put(self, data: bytes) -> None:
        with self._state:
            self._state.wait_for(lambda: self._is_closed or self._copy.has_room)
            if data:
                self._copy.put(data)
            end, is_due = self._copy.end, self._followed is not None and self._copy.end > self._followed
            if is_due:
                self._followed = None
        if is_due:
            self._say_bytes(wire.POKE, end.to_bytes(8, "big"))

    # what is said here ------------------------------------------------------------------------------------------

    def _take(self) -> None:
        inbox = bytearray()
        with suppress(OSError):
            while data := self._ours.recv(65536):
                inbox += data
                for kind, payload in wire.take_frames(inbox):
                    self._on_frame(kind, payload)

    def _on_frame(self, kind: bytes, payload: bytes) -> None:
        if kind == wire.FOLLOW:
            self._follow(int.from_bytes(payload, "big"))
        elif kind == wire.REQUEST:
            self._ping(json.loads(payload)["id"])
        elif kind == wire.RESIZE:
            self.size = int.from_bytes(payload[:2], "big"), int.from_bytes(payload[2:], "big")
            cols, rows = (min(side, LARGEST_SIDE) for side in self.size)
            self._pass_on("terminal.resize", cols=cols, rows=rows)
        elif kind == wire.ANSWER:
            self._pass_on("terminal.answer", **_typed(payload))
        elif kind == wire.INPUT and not self._pass_on("terminal.input", **_typed(payload)):
            self._say(wire.EVENT, {"event": "refused"})

    def _follow(self, offset: int) -> None:
        with self._state:
            self._copy.read_to = max(self._copy.read_to, offset)
            self._state.notify_all()
            end = self._copy.end
            self._followed = offset if end <= offset else None
        if end > offset:
            self._say_bytes(wire.POKE, end.to_bytes(8, "big"))

    def _ping(self, number: int) -> None:
        """It is answered when it is known whether the size is ours to set."""
        self._pings.append(number)
        if self.size == self._known_size:
            self._answer_pings()
        else:
            self._timer = threading.Timer(SIZE_S, self._answer_pings)
            self._timer.daemon = True
            self._timer.start()

    def _answer_pings(self) -> None:
        pings, self._pings = self._pings, []
        for number in pings:
            self._say(wire.REPLY, {"id": number, "ok": True})

    def _pass_on(self, kind: str, **fields: object) -> bool:
        """Whether the hub has it. What is typed while it is away is dropped: nobody knows what it would mean later."""
        connection = self._connection
        if connection is None or self._channel < 0:
            return False
        try:
            self._tell(connection, kind, **fields)
        except GONE:
            return False
        return True

    def _say(self, kind: bytes, value: dict[str, object]) -> None:
        self._say_bytes(kind, json.dumps(value).encode())

    def _say_bytes(self, kind: bytes, payload: bytes) -> None:
        with self._saying, suppress(OSError):
            self._ours.sendall(wire.frame(kind, payload))

    def _leave(self) -> None:
        """As a keeper does that has nothing more to say."""
        with suppress(OSError):
            self._ours.shutdown(socket.SHUT_WR)


def _typed(data: bytes) -> dict[str, object]:
    """What is typed may be any bytes, and JSON takes letters only."""
    try:
        return {"data": data.decode()}
    except UnicodeDecodeError:
        return {"data": base64.b64encode(data).decode(), "encoding": "base64"}


def _hang_up(sock: socket.socket) -> None:
    """Whoever reads from it notices."""
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
