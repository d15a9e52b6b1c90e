"""The watcher's side of the keeper: a process that knows this kind of agent, and what is asked of it.

The keeper knows bytes and processes. The watcher knows the agent: it says what the agent is doing, hands it prompts and
answers, and hears its hooks. It may die at any moment: it is started again, and what waited for it is refused.
"""

from __future__ import annotations

import os
import time
from _signal import SIGKILL, pidfd_send_signal

from hitchpost import lightjson, wire
from hitchpost.keeper import own_log
from hitchpost.system import peer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.keeper.clients import Client
    from hitchpost.keeper.keeper import Keeper

RELAYED = ("send", "take_back", "answer", "interrupt", "hook")
"""What is asked of the keeper and answered by the watcher, when there is one."""
MOST_ASKED, MOST_ASKED_BYTES = 64, wire.MAX_PAYLOAD_BYTES
"""Further requests are refused, and further hooks told to go on, until some are answered."""
MOST_UNREAD_BYTES = 2 * MOST_ASKED_BYTES
START_S = 20.0
"""A watcher that has not come by then is ended, and what waited for it is refused."""
PULSE_S = 10.0
"""So long a watcher may take to answer. One that hangs would leave an old word standing: it is ended."""
TELL_AGAIN_S = 0.1
PAUSES_S = (0.0, 0.5, 2.0, 10.0, 60.0)
"""Before each new start of a watcher that ended. After the last one there is none."""
LIVED_LONG_S = 600.0
NO_ANSWER = "the process that watches this agent has just ended; look at the session before you try again"
ENDED = "the agent has ended before it was known to have this; look at the session before you try again"
TOO_MANY = "too many requests wait for the agent"
NOTHING_WAITS = "no prompt waits here"
NO_IMAGES = "nothing watches this agent, so it gets no images"
NOT_WATCHED = "nothing watches this agent, so it can only be answered in its terminal; attach to it"
NOT_REACHED = "nothing watches this agent, so it can only be interrupted in its terminal; attach to it"


class Watcher:
    """``pid`` is 0 when there is no process. Its end is seen by a descriptor, whether it ever connected or not."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.client: Client | None = None
        self.pid = 0
        self._pidfd = -1
        self._ends = 0
        self._started = 0.0
        self._next = 1
        self._asked: dict[int, tuple[Client, dict[str, object]]] = {}
        self._waiting: dict[int, bytes] = {}
        self._answers_pings = True
        self._typing: tuple[object, int | None] = (None, None)
        self._typed_hidden = False
        self._told_of_keys = ""
        self._given_up = not keeper.spec.watcher.argv

    @property
    def is_there(self) -> bool:
        """Whether one listens, or is about to."""
        return not self._given_up

    # its life -----------------------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        if self._given_up or self.pid or self.keeper.run.exited:
            return
        spec = self.keeper.spec.watcher
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            actions = [(os.POSIX_SPAWN_DUP2, at, number) for at, number in ((null, 0), (null, 1), (2, 2))]
            argv = (*spec.argv, os.fsencode(self.keeper.run_folder), b"%d" % os.getpid())
            self.pid = os.posix_spawn(argv[0], argv, spec.env, file_actions=actions, setsid=True)
            self._pidfd = os.pidfd_open(self.pid)  # nobody takes its status before that
        except OSError as error:
            own_log.note(f"cannot start the watcher: {error}")
            if self.pid:
                os.kill(self.pid, SIGKILL)
                self.pid = 0
            self._give_up()
            return
        finally:
            os.close(null)
        self.keeper.source.tree.apart.add(self.pid)
        self.keeper.watch(self._pidfd, self._on_end)
        self._started = now
        self.keeper.timers.at("watcher", now + START_S, self._too_slow)

    def is_ours(self, client: Client) -> bool:
        """Whether this is the process that we started: nobody else may say what the agent is doing."""
        return self.pid != 0 and self.client is None and peer.pid(client.fd) == self.pid

    def greeted(self, client: Client) -> None:
        """The watcher is there, and gets what has waited for it."""
        self.client = client
        client.most_unread_bytes = MOST_UNREAD_BYTES
        self.keeper.timers.cancel("watcher")
        if self.keeper.report.seq or self.keeper.report.own is not None:
            self.tell_report()
        waiting, self._waiting = self._waiting, {}
        for event in waiting.values():
            self.keeper.control.clients.send(client, wire.EVENT, event)

    def end(self) -> None:
        """End the process, whatever it does. What follows from that follows when it has ended."""
        if self._pidfd >= 0:
            try:
                pidfd_send_signal(self._pidfd, SIGKILL)
            except OSError:
                return  # it has ended, and we hear of it in a moment

    def _on_end(self, events: int) -> None:
        self.keeper.unwatch(self._pidfd)
        os.close(self._pidfd)
        self.keeper.source.tree.apart.discard(self.pid)
        self.pid, self._pidfd = 0, -1
        self._lost()
        now = time.monotonic()
        self._ends = 1 if now - self._started > LIVED_LONG_S else self._ends + 1
        if self._ends <= len(PAUSES_S):
            self.keeper.timers.at("watcher", now + PAUSES_S[self._ends - 1], self.start)
        else:
            own_log.note("the watcher has ended too often and is not started again")
            self._give_up()

    def _lost(self) -> None:
        """It hears nothing more: what it was asked, nobody will answer, and what only it knew is not known."""
        self.client = None
        self.keeper.timers.cancel("watcher", "pulse", "tell again")
        for number, (client, request) in self._asked.items():
            self._refuse(client, request, NO_ANSWER, unsent=number in self._waiting)
        self._asked.clear()
        self._waiting.clear()
        self._typed_hidden = False
        self.keeper.report.on_watcher_lost()

    def _give_up(self) -> None:
        self._given_up = True
        self._lost()

    def _too_slow(self, now: float) -> None:
        own_log.note(f"the watcher has not connected within {START_S:g} s")
        self.end()

    def pulse(self) -> None:
        """Something happens: make sure that it is seen. At most one ping in ``PULSE_S``."""
        if self.client is not None and "pulse" not in self.keeper.timers:
            self._answers_pings = False
            self.keeper.timers.at("pulse", time.monotonic() + PULSE_S, self._felt)
            self.tell({"event": "ping"})

    def ponged(self) -> None:
        self._answers_pings = True

    def _felt(self, now: float) -> None:
        if not self._answers_pings:
            own_log.note(f"the watcher has not answered within {PULSE_S:g} s")
            self.end()

    # what it is told and asked ------------------------------------------------------------------------------------

    def tell(self, event: dict[str, object]) -> None:
        if self.client is not None:
            self.keeper.control.clients.send_json(self.client, wire.EVENT, event)

    def tell_report(self, now: float = 0.0) -> None:
        """The agent's own newest word. A watcher that cannot follow hears of the last one only."""
        if self.client is not None and self.client.outbox:
            self.keeper.timers.at("tell again", time.monotonic() + TELL_AGAIN_S, self.tell_report)
        else:
            self.tell({"event": "osc7501", "seq": self.keeper.report.seq, "report": self.keeper.report.own})

    def tell_of_keys(self) -> None:
        """Somebody types while something is asked. Once for each request: the watcher gives it another name."""
        request = str((self.keeper.report.current or {}).get("request") or "")
        if request not in ("", self._told_of_keys):
            self._told_of_keys = request
            self.tell({"event": "keys"})

    def ask(self, client: Client, request: dict[str, object]) -> None:
        """Pass a client's request on. The answer goes to the client when it comes."""
        number = self._next
        self._next += 1
        event = lightjson.dumps({**request, "event": "asked", "number": number, "id": 0}).encode()
        unread = len(self.client.outbox) if self.client is not None else sum(map(len, self._waiting.values()))
        if len(self._asked) >= MOST_ASKED or unread + len(event) > MOST_ASKED_BYTES:
            self._refuse(client, request, TOO_MANY, unsent=True)
            return
        self._asked[number] = (client, {"id": request.get("id"), "op": request.get("op")})
        if self.client is None:
            self._waiting[number] = event
        else:
            self.keeper.control.clients.send(self.client, wire.EVENT, event)
            self.pulse()

    def answered(self, request: dict[str, object]) -> None:
        """The watcher's answer to what it was asked, for the client that asked."""
        number, answer = request.get("asked"), request.get("answer")
        asked = self._asked.pop(number, None) if isinstance(number, int) else None
        if asked is None:
            return
        client, original = asked
        hidden: dict[str, object] = {}
        if original["op"] == "send":
            hidden = {"hidden": True} if self._typed_hidden else {}
            self._typing, self._typed_hidden = (None, None), False
        if isinstance(answer, dict):
            self.keeper.report.hurry()
            self.keeper.control.clients.send_json(client, wire.REPLY, {**answer, **hidden, "id": original.get("id")})
        else:
            self._refuse(client, original, NO_ANSWER)

    def types(self, number: object) -> None:
        """It types a prompt: the oldest one that it was asked to send. It sends one at a time."""
        self._typing = (number, None)

    def got_receipt(self, number: object, offset: int, *, hidden: bool) -> None:
        """The agent has read what the watcher typed by this request; ``hidden``: its terminal did not show it."""
        if number == self._typing[0]:
            self._typing = (number, offset)
            self._typed_hidden = self._typed_hidden or hidden

    def agent_ended(self) -> None:
        """Nothing more can be found out about what was asked. A prompt that the agent has read was typed, at least."""
        typed = self._typing[1]
        for client, request in self._asked.values():
            if request["op"] == "send" and typed is not None:
                hidden = {"hidden": True} if self._typed_hidden else {}
                receipt = {"id": request["id"], "ok": True, "offset": typed, "proof": "", **hidden}
                self.keeper.control.clients.send_json(client, wire.REPLY, receipt)
                typed = None
            else:
                self._refuse(client, request, ENDED)
        self._asked.clear()

    def on_gone(self, client: Client) -> None:
        """A client has left: the watcher itself, or one that waits for it."""
        if client is self.client:
            self._lost()
            self.end()
            return
        for number in [number for number, (asker, _) in self._asked.items() if asker is client]:
            del self._asked[number]
            self._waiting.pop(number, None)
            self.tell({"event": "gone", "number": number})

    def _refuse(self, client: Client, request: dict[str, object], why: str, *, unsent: bool = False) -> None:
        """A hook goes on without an answer: an agent never waits for us. ``unsent``: it can have got nothing of it."""
        answer: dict[str, object] = {"ok": False, "why": why, **({"unsent": True} if unsent else {})}
        if request.get("op") == "hook":
            answer = {"ok": True, "output": ""}
        self.keeper.control.clients.send_json(client, wire.REPLY, {"id": request.get("id"), **answer})
