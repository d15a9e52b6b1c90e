"""A replica in a process of its own, which does what it is told and can be made to die between any two steps."""

from __future__ import annotations

import json
import os
import select
import sys
from types import FrameType
from typing import Any

import structlog

from hitchpost import wire
from hitchpost.errors import FAILURES
from hitchpost.model import run as runs
from hitchpost.values import replace
from tests.fleet.replicas import Replica, replica
from tests.support import Hitch
from tests.warm import Process, spawn

STEPS = (f"{os.sep}hitchpost{os.sep}", f"{os.sep}psycopg{os.sep}")
"""Each call of these into C, such as one of the system, is a step."""
CRASHED = 86
ANSWER_S = 60.0


class ReplicaProcess:
    """The process, as the test sees it. It is started where it has ended."""

    def __init__(self, address: str, home: str) -> None:
        self.address, self.home = address, home
        self._process: Process | None = None
        self._to = self._from = -1

    def say(self, op: str, crash: int = 0, **fields: Any) -> None:
        """``crash``: before which step it dies."""
        if self._process is None:
            self._start()
        os.write(self._to, json.dumps({"op": op, "crash": crash, **fields}).encode() + b"\n")

    def answer(self) -> dict[str, Any] | None:
        """None when it has died."""
        text = b""
        while not text.endswith(b"\n"):
            assert select.select([self._from], [], [], ANSWER_S)[0], "the replica hangs"
            part = os.read(self._from, 65536)
            if not part:
                assert self._process is not None
                code = self._process.wait(ANSWER_S)
                self.close()
                assert code == CRASHED, f"the replica ended with {code}"
                return None
            text += part
        found: dict[str, Any] = json.loads(text)
        return found

    def do(self, op: str, crash: int = 0, **fields: Any) -> dict[str, Any] | None:
        self.say(op, crash, **fields)
        return self.answer()

    def _start(self) -> None:
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        for fd in (self._to, self._from):
            os.set_inheritable(fd, False)
        try:
            self._process = spawn(
                "tests.fleet.replica_process",
                [self.address, self.home],
                Hitch.environment(),
                (theirs_in, theirs_out, 2),
            )
        finally:
            os.close(theirs_in)
            os.close(theirs_out)

    def close(self) -> None:
        if self._process is None:
            return
        os.close(self._to)
        os.close(self._from)
        self._process.wait(ANSWER_S)
        self._process = None


def main() -> None:
    address, home = sys.argv[1:]
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # the output is for answers
    with replica(address, home, catches_up=False) as made:
        for line in sys.stdin:
            order = json.loads(line)
            if order["crash"]:
                _die_before(order["crash"])
            try:
                answer: dict[str, Any] = {"ok": True, **_do(made, order)}
            except FAILURES as error:
                answer = {"ok": False, "error": type(error).__name__}
            sys.setprofile(None)
            print(json.dumps(answer), flush=True)


def _die_before(step: int) -> None:
    left = [step]

    def count(frame: FrameType, event: str, arg: object) -> None:
        if event == "c_call" and any(part in frame.f_code.co_filename for part in STEPS):
            left[0] -= 1
            if left[0] <= 0:
                os._exit(CRASHED)

    sys.setprofile(count)


def _do(made: Replica, order: dict[str, Any]) -> dict[str, Any]:
    op, session, text = order["op"], order.get("session", ""), order.get("text", "")
    made.mirror.catch_up()
    stored = made.session(session)
    if op == "make":
        made.make(text, session)
    elif op == "next":
        with stored.lock():
            state = stored.read()
            following = runs.TRANSITIONS[state.state]
            if following:
                stored.transition(following[0], run=state.run, reason=text, locked=True)
            else:
                stored.next_run(reason=text)
    elif op == "rename":
        with stored.lock():
            stored.tell("edited", run=0, name=text)
            stored.save(replace(stored.record(), name=text))
    elif op == "note":
        with stored.lock():
            stored.tell("note", run=0, reason=text)
    elif op == "mention":
        stored.mention("mentioned", run=0, details={"reason": text})
        made.mirror.tell(session)
    elif op == "remove":
        with stored.lock():
            os.rename(stored.folder, os.path.join(os.path.dirname(stored.folder), f".removed-{session}"))
    elif op == "ship":
        made.mirror.ship(session, 1, wire.segment_name(0), order["offset"], text.encode())
    return {}


if __name__ == "__main__":
    main()
