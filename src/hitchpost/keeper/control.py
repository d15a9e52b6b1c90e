"""Serving clients: who owns the terminal's size, who may type, and what is asked of the keeper."""

from __future__ import annotations

import select
import time

from hitchpost import lightjson, wire
from hitchpost.keeper import own_log
from hitchpost.keeper.clients import Client, Clients
from hitchpost.keeper.typing_queue import LONGEST_LINE_BYTES, PASTE_BEGIN, PASTE_END
from hitchpost.keeper.watcher import NO_IMAGES, NOT_REACHED, NOT_WATCHED, NOTHING_WAITS, RELAYED
from hitchpost.model import attention
from hitchpost.model import run as runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.keeper.keeper import Keeper

ENTER_PAUSE_S = 0.1
FIRST_LOOK_S, LONGEST_LOOK_S = 0.002, 0.1
LONGEST_WAIT_S = 3600.0
UNREAD = "the agent does not read its input"
ENDED = "the agent ended before it had read all of it"
KEY_S = 1.0
"""So long after a key was pressed, what the screen shows may be older than what the key did."""
NO_KEYS = (b"\x1b[I", b"\x1b[O", b"\x1b[M", b"\x1b[<")
"""How a terminal begins to tell of its focus and of the mouse."""
OTHERS_KEYS = "somebody has just typed in the terminal"


class Control:
    """``owner`` is the attached client that typed last: the terminal has its size, and it answers queries."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.owner: Client | None = None
        self._typed = 0
        self._key_at = 0.0
        self._receipts: list[tuple[Client, dict[str, object]]] = []
        self._unread = False
        self._pause_s = FIRST_LOOK_S
        self.clients = Clients(keeper.run_folder, keeper.poll, self._on_gone)

    def on_event(self, fd: int, events: int) -> None:
        if fd == self.clients.fd:
            self.clients.accept()
            if not self.clients.hears:
                self.keeper.checks.soon()
        elif (client := self.clients.by_fd.get(fd)) is not None:
            self._on_client(client, events)

    def _on_client(self, client: Client, events: int) -> None:
        if events & select.EPOLLOUT:
            self.clients.flush(client)
        if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR) and client.fd >= 0:
            for kind, payload in self.clients.read(client):
                if client.fd < 0:
                    return
                try:
                    self._on_frame(client, kind, payload)
                except (ValueError, KeyError, TypeError) as error:
                    own_log.note(f"a client sent an invalid request: {error}")
                    self.clients.close(client)

    def _on_gone(self, client: Client) -> None:
        self.keeper.watcher.on_gone(client)
        if client is self.owner:
            self.owner = None
            others = [*self.clients.by_fd.values(), *([self.keeper.pane.client] if self.keeper.pane else ())]
            following = [other for other in others if _may_own(other)]
            if following:
                self.own(max(following, key=lambda other: other.typed))

    def pane_gone(self, client: Client) -> None:
        client.attached = False
        self._on_gone(client)

    def typed_by(self, client: Client, keys: bytes) -> None:
        self._typed += 1
        client.typed = self._typed
        self.own(client)
        if not keys.startswith(NO_KEYS):
            self.keeper.log.typed()
            self._on_keys()

    def _on_keys(self) -> None:
        """Keys that the watcher did not press: they may answer what is asked."""
        self._key_at = time.monotonic()
        self.keeper.watcher.tell_of_keys()

    def own(self, client: Client) -> None:
        if _may_own(client):
            self.owner = client
            self.keeper.resize(client.cols, client.rows)

    def _on_frame(self, client: Client, kind: bytes, payload: bytes) -> None:
        if not client.greeted:
            if kind != wire.HELLO:
                self.clients.close(client)
                return
            self._greet(client, _object(payload))
        elif client.brief and kind == wire.FOLLOW:
            self.clients.close(client)
        elif kind == wire.FOLLOW:
            client.follow = int.from_bytes(payload[:8], "big")
            self.clients.poke(self.keeper.log.end)
        elif kind == wire.REQUEST:
            self._on_request(client, _object(payload))
        elif client.read_only:
            return
        elif kind == wire.INPUT:
            self.typed_by(client, payload)
            if not self.keeper.type(payload):
                self.clients.send_json(client, wire.EVENT, {"event": "refused", "why": UNREAD})
        elif kind == wire.ANSWER:
            if client is self.owner and not self.keeper.source.answers_queries:
                self.keeper.type(payload)
        elif kind == wire.RESIZE:
            client.cols, client.rows = int.from_bytes(payload[:2], "big"), int.from_bytes(payload[2:4], "big")
            if self.owner is None or client is self.owner:
                self.own(client)

    def _greet(self, client: Client, hello: dict[str, object]) -> None:
        keeper = self.keeper
        if hello.get("role") == wire.WATCHER and not keeper.watcher.is_ours(client):
            self.clients.close(client)
            return
        client.greeted = True
        client.attached = hello.get("role") == "attach"
        if client.brief and client.attached:
            self.clients.close(client)
            return
        client.read_only = hello.get("read_only") is True
        client.cols, client.rows = _count(hello.get("cols")), _count(hello.get("rows"))
        if self.owner is None:
            self.own(client)
        self.clients.send_json(
            client,
            wire.WELCOME,
            {
                "v": wire.VERSION,
                "session": keeper.spec.session,
                "run": keeper.spec.run,
                "state": keeper.run.state,
                "pid": keeper.pid,
                "cols": keeper.cols,
                "rows": keeper.rows,
                "first": keeper.log.first,
                "end": keeper.log.end,
                "report": keeper.report.current,
                "watched": keeper.watcher.is_there,
            },
        )
        if hello.get("role") == wire.WATCHER:
            keeper.watcher.greeted(client)

    def _on_request(self, client: Client, request: dict[str, object]) -> None:
        op, number = request.get("op"), request.get("id")
        if client.read_only:
            self.clients.send_json(client, wire.REPLY, {"id": number, "ok": False, "why": "this client is read-only"})
        elif op == "stop":
            asked = self.keeper.asked_end(request)
            if asked is None:
                why = f"expected a grace time of 0 to {runs.LONGEST_GRACE_S} seconds"
                self.clients.send_json(client, wire.REPLY, {"id": number, "ok": False, "why": why})
                return
            self.keeper.stop(*asked)
            self.clients.send_json(client, wire.REPLY, {"id": number, "ok": True})
        elif client is self.keeper.watcher.client and op == "verdict":
            self.keeper.report.on_verdict(request)
        elif client is self.keeper.watcher.client and op == "answered":
            self.keeper.watcher.answered(request)
        elif client is self.keeper.watcher.client and op == "pong":
            self.keeper.watcher.ponged()
        elif client is self.keeper.watcher.client and op == "press":
            self._press(client, number, str(request.get("keys", "")), alone=request.get("alone") is True)
        elif op in RELAYED and self.keeper.watcher.is_there and request.get("force") is not True:
            self.keeper.watcher.ask(client, request)
        elif op in ("send", "type"):
            if client is self.keeper.watcher.client:
                self.keeper.watcher.types(number)
            self._paste(client, number, request)
        elif op == "answer":
            self.clients.send_json(client, wire.REPLY, {"id": number, "ok": False, "why": NOT_WATCHED})
        elif op == "interrupt":
            self.clients.send_json(client, wire.REPLY, {"id": number, "ok": False, "why": NOT_REACHED})
        elif op == "take_back":
            self.clients.send_json(client, wire.REPLY, {"id": number, "ok": False, "why": NOTHING_WAITS})
        elif op == "hook":
            self.clients.send_json(client, wire.REPLY, {"id": number, "ok": True, "output": ""})
        elif op == "ping":
            self.clients.send_json(client, wire.REPLY, {"id": number, "ok": True})
        elif op == "ready":
            self.keeper.readiness.wait(
                lambda sign: self.clients.send_json(client, wire.REPLY, {"id": number, "ok": True, "sign": sign}),
                for_prompt=request.get("prompt") is True,
                within_s=_seconds(request.get("within_s")),
            )
        else:
            self.clients.send_json(client, wire.REPLY, {"id": number, "ok": False, "why": f"unknown request {op!r}"})

    def _paste(self, client: Client, number: object, request: dict[str, object]) -> None:
        """Type a prompt as a person would paste it, then press Enter. The receipt comes when it was read."""
        text = str(request.get("text", "")).encode("utf-8", "surrogateescape")
        if request.get("alone") is True and (wait_s := self._others_keys_s()) > 0:
            self._refuse_beside_keys(client, number, wait_s)
            return
        why, forcible = NO_IMAGES if request.get("images") else self._refusal(text), {}
        if why is None and request.get("force") is not True:
            why = attention.refusal(self.keeper.report.current)
            forcible = {"forcible": True} if why is not None else {}
        if why is None:
            body = PASTE_BEGIN + text + PASTE_END if self.keeper.scanner.bracketed_paste else text
            enter: tuple[bytes | float, ...] = (ENTER_PAUSE_S, b"\r") if request.get("enter", True) else ()
            why = self._type(client, number, *((body,) if text else ()), *enter)
            if client is not self.keeper.watcher.client:
                self._on_keys()
        if why is not None:
            refused = {"id": number, "ok": False, "why": why, "unsent": True, **forcible}
            self.clients.send_json(client, wire.REPLY, refused)

    def _press(self, client: Client, number: object, keys: str, *, alone: bool) -> None:
        """Keys as they are, for the watcher: it knows what the agent shows, and what they do there.

        ``alone``: not behind keys whose effect the screen may not show yet.
        """
        wait_s = self._others_keys_s() if alone else 0.0
        if self.keeper.run.exited:
            why: str | None = "the agent has ended"
        elif wait_s > 0:
            self._refuse_beside_keys(client, number, wait_s)
            return
        elif alone and (self.keeper.typing.waiting_bytes or self.keeper.source.unread_bytes()):
            why = UNREAD
        else:
            why = self._type(client, number, keys.encode())
        if why is not None:
            self.clients.send_json(client, wire.REPLY, {"id": number, "ok": False, "why": why})

    def _others_keys_s(self) -> float:
        """For how long the screen may still be older than what somebody's key did; 0 or less: it is not."""
        return self._key_at + KEY_S - time.monotonic()

    def _refuse_beside_keys(self, client: Client, number: object, wait_s: float) -> None:
        refused = {"id": number, "ok": False, "why": OTHERS_KEYS, "wait_s": wait_s}
        self.clients.send_json(client, wire.REPLY, refused)

    def _type(self, client: Client, number: object, *items: bytes | float) -> str | None:
        """Queue what is typed; the receipt comes when it was read. Why it cannot be queued, if so.

        The receipt says ``hidden`` when the terminal hid any of it: that is looked at just before it is written.
        """
        receipt: dict[str, object] = {"id": number, "ok": True, "offset": self.keeper.log.end}
        self.keeper.log.typed()

        def look() -> None:
            if self.keeper.source.hides_input():
                receipt["hidden"] = True

        def typed() -> None:
            self._receipts.append((client, receipt))
            self._pause_s = FIRST_LOOK_S
            self.keeper.timers.at("receipts", time.monotonic() + FIRST_LOOK_S, self.give_receipts)

        looked_at = (part for item in items for part in (look, item))
        return None if self.keeper.type(*looked_at, typed) else UNREAD

    def give_receipts(self, now: float, *, over: bool = False) -> None:
        """To those whose text the agent has read: what its terminal still holds for it was not delivered.

        ``over``: the agent has ended. Whoever still waits then waits for a text that it had not read at its end.
        """
        if not self._receipts:
            return
        over = over or self.keeper.run.exited
        if over and self._unread:
            refused = {"ok": False, "why": ENDED, "typed": True}
            self._receipts = [(client, {"id": told["id"], **refused}) for client, told in self._receipts]
        elif not over and self.keeper.source.unread_bytes():
            self._unread = True
            self.keeper.timers.at("receipts", now + self._pause_s, self.give_receipts)
            self._pause_s = min(2 * self._pause_s, LONGEST_LOOK_S)
            return
        for client, receipt in self._receipts:
            if client is self.keeper.watcher.client and isinstance(offset := receipt.get("offset"), int):
                self.keeper.watcher.got_receipt(receipt["id"], offset, hidden=receipt.get("hidden") is True)
            self.clients.send_json(client, wire.REPLY, receipt)
        self._receipts = []
        self._unread = False

    def _refusal(self, text: bytes) -> str | None:
        keeper = self.keeper
        if keeper.run.exited:
            return "the agent has ended"
        if (why := wire.untypable(text)) is not None:
            return why
        if keeper.source.reads_lines() and max(map(len, text.split(b"\n"))) > LONGEST_LINE_BYTES:
            return f"a line is longer than the {LONGEST_LINE_BYTES} bytes that a program reading by lines can take"
        return None


def _may_own(client: Client) -> bool:
    return client.attached and not client.read_only and client.cols > 0 and client.rows > 0


def _object(payload: bytes) -> dict[str, object]:
    value = lightjson.loads(payload)
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, but got {type(value).__name__}")
    return value


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and 0 <= value <= LONGEST_WAIT_S else 0.0


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
