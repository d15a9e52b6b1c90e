"""The keeper's life: start the agent, keep it, write down how it ended."""

from __future__ import annotations

import errno
import os
import select
import sys
import termios
import time
from _signal import (
    SIG_IGN,
    SIGCHLD,
    SIGCONT,
    SIGHUP,
    SIGINT,
    SIGPIPE,
    SIGTERM,
    SIGTTIN,
    SIGTTOU,
    SIGUSR1,
    SIGUSR2,
    set_wakeup_fd,
    signal,
)

from hitchpost import lightjson, wire
from hitchpost.keeper import agent, cage
from hitchpost.keeper.clients import Client, Clients
from hitchpost.keeper.ending import Ending
from hitchpost.keeper.log import Log
from hitchpost.keeper.spec import Spec, read_spec
from hitchpost.keeper.terminal import Scanner, parse_report
from hitchpost.keeper.tree import Tree, send
from hitchpost.keeper.typing_queue import LONGEST_LINE_BYTES, PASTE_BEGIN, PASTE_END, TypingQueue
from hitchpost.model import run as runs
from hitchpost.state import files

READ_BYTES = 65536
READS_PER_TURN = 32
FOLDER_CHECK_S = 1.0
FOLDER_RECHECK_S = 0.2
ACTIVITY_EVERY_S = 10.0
REPORT_EVERY_S = 0.1
KILL_ROUND_S = 0.02
LONGEST_KILL_PAUSE_S = 1.0
WRITE_AGAIN_S = 3.0
LONGEST_ERROR_PAUSE_S = 1.0
POLITE_S = 3.0
ENTER_PAUSE_S = 0.1
DRAIN_S = 1.0
FAREWELL_S = 1.0
NO_ANSWER = 0.0


class Keeper:
    def __init__(self, spec: Spec, run_folder: str) -> None:
        self.spec = spec
        self.run_folder = run_folder
        self.state = runs.STARTING
        self.cols, self.rows = spec.cols, spec.rows
        self.started_at = ""
        self.pid = 0
        self.master = self.slave = -1
        self.wait_status: int | None = None
        self.intent: str | None = None
        self.report: dict[str, object] | None = None
        self.owner: Client | None = None
        self.timers: dict[str, float] = {}
        self.done = False
        self.last_output: float | None = None
        self._recorded_output: float | None = None
        self._stop_deadline = 0.0
        self._kill_pause_s = KILL_ROUND_S / 2
        self._report_written = -REPORT_EVERY_S
        self._folder_missing = False
        self.scanner = Scanner()
        self.poll = select.epoll()
        self.cage = cage.Cage([])
        self.tree = Tree(self.cage)

    # starting ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the agent and say ``running``. Raises ``StartFailed`` or ``OSError`` when that is not possible."""
        agent.become_subreaper()
        cage.leave_foreign_cage()
        for spare in wire.SPARES:
            files.reserve(os.path.join(self.run_folder, spare))
        self.log = Log(os.path.join(self.run_folder, wire.OUTPUT), self.spec.log_cap_bytes)
        self.log.mark(wire.AT_SIZE, self.cols << 32 | self.rows)
        self.wakeup, wakeup_write = os.pipe()
        for fd in (self.wakeup, wakeup_write):
            os.set_blocking(fd, False)
        for number in (SIGHUP, SIGINT, SIGPIPE, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2):
            signal(number, SIG_IGN)
        for number in (SIGCHLD, SIGTERM):
            signal(number, _only_wake)
        set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        self.clients = Clients(self.run_folder, self.poll, self._on_client_gone)
        self.cage = cage.build(self.spec.session, self.spec.run, self.spec.pids_max, self.spec.memory_max_bytes)
        self.tree = Tree(self.cage)
        try:
            self.pid, self.master, self.slave = agent.start(self.spec, self.cage)
        except BaseException:
            self.cage.remove()
            raise
        self.typing = TypingQueue(self.master)
        self.poll.register(self.wakeup, select.EPOLLIN)
        self.poll.register(self.master, select.EPOLLIN)
        self.started_at = files.stamp()
        self._write_run()
        self._change(runs.RUNNING, "the agent runs", {"pid": self.pid})
        self.timers["folder"] = time.monotonic() + FOLDER_CHECK_S

    def _write_run(self) -> None:
        spec = self.spec
        files.write_object(
            os.path.join(self.run_folder, wire.RUN),
            {
                "schema": files.SCHEMA,
                "run": spec.run,
                "argv": [os.fsdecode(text).encode("utf-8", "replace").decode() for text in spec.argv],
                "folder": spec.folder,
                "folder_dev": spec.folder_dev,
                "folder_ino": spec.folder_ino,
                "boot_id": files.boot_id(),
                "keeper": {"pid": os.getpid(), "start": files.process_start(os.getpid())},
                "agent": {"pid": self.pid, "start": files.process_start(self.pid)} if self.pid else None,
                "cols": spec.cols,
                "rows": spec.rows,
                "env_names": sorted(os.fsdecode(name).encode("utf-8", "replace").decode() for name in spec.env),
                "tier": self.cage.tier,
                "started_at": self.started_at or files.stamp(),
                "protocol": wire.VERSION,
            },
        )

    # the loop ---------------------------------------------------------------------------------------------------

    def keep(self) -> None:
        """Until the agent has ended and everything about it is written down."""
        while not self.done:
            for fd, events in self.poll.poll(self._timeout_s()):
                if fd == self.master:
                    self._on_terminal(events)
                elif fd == self.wakeup:
                    self._on_wakeup()
                elif fd == self.clients.fd:
                    self.clients.accept()
                elif (client := self.clients.by_fd.get(fd)) is not None:
                    self._on_client(client, events)
            self._on_time()

    def _timeout_s(self) -> float:
        moments = list(self.timers.values())
        if self.master >= 0 and self.typing.resume_at is not None:
            moments.append(self.typing.resume_at)
        return max(0.0, min(moments) - time.monotonic()) if moments else -1

    def _on_time(self) -> None:
        now = time.monotonic()
        if self.master >= 0 and self.typing.resume_at is not None and self.typing.resume_at <= now:
            self._type()
        for name, moment in list(self.timers.items()):
            if moment <= now and not self.done:
                del self.timers[name]
                getattr(self, f"_time_{name}")(now)

    def _on_wakeup(self) -> None:
        numbers = os.read(self.wakeup, 512)
        if SIGTERM in numbers:
            self.stop(runs.SHUTDOWN, "the keeper was asked to end by SIGTERM", self.spec.grace_s)
        self._reap()

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid and self.wait_status is None:
                self.wait_status, self.usage = status, usage
                self.ended_at = files.stamp()
                self.timers["drain"] = time.monotonic() + DRAIN_S
                os.close(self.slave)

    # output -----------------------------------------------------------------------------------------------------

    def _on_terminal(self, events: int) -> None:
        if events & select.EPOLLOUT:
            self._type()
        if not events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
            return
        parts = []
        over = False
        for _ in range(READS_PER_TURN):
            try:
                part = os.read(self.master, READ_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                part = b""
            if not part:
                over = True
                break
            parts.append(part)
        if parts:
            self._on_output(parts[0] if len(parts) == 1 else b"".join(parts))
        if over:
            self._terminal_over()

    def _on_output(self, data: bytes) -> None:
        self.log.append(data)
        self.clients.poke(self.log.end)
        self.last_output = time.time()
        if "activity" not in self.timers:
            self.timers["activity"] = time.monotonic() + ACTIVITY_EVERY_S
        for kind, body in self.scanner.feed(data):
            if kind == "report":
                self._on_report(body)
            elif kind == "query":
                self._answer(b"\x1b]7501;?\x1b\\")
            elif self.owner is None:
                self._answer(body)

    def _answer(self, data: bytes) -> None:
        self.typing.put(data)
        self._type()

    def _on_report(self, body: bytes) -> None:
        fields = parse_report(body)
        if fields is None or "id" in fields:
            return
        self.report = {"schema": files.SCHEMA, "at": files.stamp(), "source": "osc7501", **fields}
        if fields["state"] == "clear":
            self.report = None
        self.timers.setdefault("report", self._report_written + REPORT_EVERY_S)

    def _time_report(self, now: float) -> None:
        self._report_written = now
        path = os.path.join(self.run_folder, wire.ATTENTION)
        try:
            files.write_object(path, self.report or {"schema": files.SCHEMA, "state": "clear"}, durable=False)
        except OSError as error:
            complain(f"cannot write {path}: {error}")
        self.clients.tell_all({"event": "attention", "report": self.report})

    def _terminal_over(self) -> None:
        """The agent is gone and nobody has its terminal open: everything that was written to it has been read."""
        if self.master >= 0:
            self.poll.unregister(self.master)
            os.close(self.master)
            self.master = -1
            self._leader_ended()

    def _time_drain(self, now: float) -> None:
        """The agent is gone and its terminal was not hung up: a survivor holds it open. Its last words are in."""
        self._on_terminal(select.EPOLLIN)
        self._terminal_over()

    # input ------------------------------------------------------------------------------------------------------

    def _type(self) -> None:
        if self.master < 0:
            return
        try:
            self.typing.flush()
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return
        out = select.EPOLLOUT if self.typing.blocked else 0
        self.poll.modify(self.master, select.EPOLLIN | out)

    def _resize(self, cols: int, rows: int) -> None:
        if (cols, rows) == (self.cols, self.rows) or not (0 < cols < 10_000 and 0 < rows < 10_000) or self.master < 0:
            return
        self.cols, self.rows = cols, rows
        agent.set_size(self.master, cols, rows)
        self.log.mark(wire.AT_SIZE, cols << 32 | rows)
        self.clients.tell_all({"event": "resize", "cols": cols, "rows": rows, "offset": self.log.end})

    # clients ----------------------------------------------------------------------------------------------------

    def _on_client(self, client: Client, events: int) -> None:
        if events & select.EPOLLOUT:
            self.clients.flush(client)
        if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR) and client.fd >= 0:
            for kind, payload in self.clients.read(client):
                if client.fd < 0:
                    break
                try:
                    self._on_frame(client, kind, payload)
                except (ValueError, KeyError, TypeError) as error:
                    complain(f"a client sent what it should not: {error}")
                    self.clients.close(client)

    def _on_client_gone(self, client: Client) -> None:
        if client is self.owner:
            self.owner = next((other for other in self.clients.by_fd.values() if _may_own(other)), None)
            if self.owner is not None:
                self._resize(self.owner.cols, self.owner.rows)

    def _on_frame(self, client: Client, kind: bytes, payload: bytes) -> None:
        if not client.greeted:
            if kind != wire.HELLO:
                self.clients.close(client)
                return
            self._greet(client, _object(payload))
        elif kind == wire.FOLLOW:
            client.follow = int.from_bytes(payload[:8], "big")
            if client.follow < self.log.end:
                self.clients.poke(self.log.end)
        elif kind == wire.REQUEST:
            self._on_request(client, _object(payload))
        elif client.read_only:
            return
        elif kind == wire.INPUT:
            self._own(client)
            if not self.typing.put(payload):
                self.clients.send_json(client, wire.EVENT, {"event": "refused", "why": "the agent does not read its input"})
            self._type()
        elif kind == wire.ANSWER:
            if client is self.owner:
                self._answer(payload)
        elif kind == wire.RESIZE:
            client.cols, client.rows = int.from_bytes(payload[:2], "big"), int.from_bytes(payload[2:4], "big")
            if self.owner is None:
                self._own(client)
            elif client is self.owner:
                self._resize(client.cols, client.rows)

    def _greet(self, client: Client, hello: dict[str, object]) -> None:
        client.greeted = True
        client.attached = hello.get("role") == "attach"
        client.read_only = hello.get("read_only") is True
        client.cols, client.rows = _count(hello.get("cols")), _count(hello.get("rows"))
        if self.owner is None:
            self._own(client)
        self.clients.send_json(
            client,
            wire.WELCOME,
            {
                "v": wire.VERSION,
                "session": self.spec.session,
                "run": self.spec.run,
                "state": self.state,
                "pid": self.pid,
                "cols": self.cols,
                "rows": self.rows,
                "first": self.log.first,
                "end": self.log.end,
                "paste": self.scanner.bracketed_paste,
                "report": self.report,
            },
        )

    def _own(self, client: Client) -> None:
        if _may_own(client):
            self.owner = client
            self._resize(client.cols, client.rows)

    def _on_request(self, client: Client, request: dict[str, object]) -> None:
        op, number = request.get("op"), request.get("id")
        if op == "stop":
            by, grace = str(request.get("by", runs.USER)), request.get("grace_s")
            grace_s = float(grace) if isinstance(grace, (int, float)) else self.spec.grace_s
            self.stop(by if by in runs.INTENTS else runs.USER, str(request.get("reason", "")), grace_s)
            self.clients.send_json(client, wire.REPLY, {"id": number, "ok": True})
        elif op == "send" and not client.read_only:
            self._paste(client, number, request)
        else:
            self.clients.send_json(client, wire.REPLY, {"id": number, "ok": False, "why": f"unknown request {op!r}"})

    def _paste(self, client: Client, number: object, request: dict[str, object]) -> None:
        """Type a prompt as a person would paste it, then press Enter. The receipt follows the last byte."""
        text = str(request.get("text", "")).encode("utf-8", "surrogateescape")
        why = self._refuse_paste(text, request.get("force") is True)
        if why is None:
            body = PASTE_BEGIN + text + PASTE_END if self.scanner.bracketed_paste else text
            enter: tuple[bytes | float, ...] = (ENTER_PAUSE_S, b"\r") if request.get("enter", True) else ()
            offset = self.log.end

            def receipt() -> None:
                self.clients.send_json(client, wire.REPLY, {"id": number, "ok": True, "offset": offset})

            if not self.typing.put(*((body,) if text else ()), *enter, receipt):
                why = "the agent does not read its input"
        if why is not None:
            self.clients.send_json(client, wire.REPLY, {"id": number, "ok": False, "why": why})
        self._type()

    def _refuse_paste(self, text: bytes, force: bool) -> str | None:
        if self.wait_status is not None or self.master < 0:
            return "the agent has ended"
        if self.report is not None and self.report.get("state") == "blocked" and not force:
            return "the agent waits for a permission; answer it first, or use --force"
        if any(byte < 32 and byte not in b"\t\n" or byte == 127 for byte in text):
            return "the text holds control characters; only tab and newline can be sent"
        line_mode = termios.tcgetattr(self.master)[3] & termios.ICANON
        if line_mode and max(map(len, text.split(b"\n"))) > LONGEST_LINE_BYTES:
            return f"a line is longer than the {LONGEST_LINE_BYTES} bytes that a program reading by lines can take"
        return None

    # the workspace ----------------------------------------------------------------------------------------------

    def _time_folder(self, now: float) -> None:
        """Whether the workspace is still the same folder. One bad look is looked at again before it counts."""
        try:
            here = os.stat(self.spec.folder)
            missing = (here.st_dev, here.st_ino) != (self.spec.folder_dev, self.spec.folder_ino)
        except (FileNotFoundError, NotADirectoryError):
            missing = True
        except OSError:
            missing = False
        if missing and self._folder_missing:
            if self.state == runs.RUNNING:
                self._change(runs.ORPHANED, runs.WORKSPACE_GONE, {"folder": self.spec.folder})
            return
        self._folder_missing = missing
        self.timers["folder"] = now + (FOLDER_RECHECK_S if missing else FOLDER_CHECK_S)

    def _time_activity(self, now: float) -> None:
        if self.last_output is None or self.last_output == self._recorded_output or self.state not in runs.LIVE:
            return
        self._recorded_output = self.last_output
        digest = _fnv1a(self.log.tail(1024))
        try:
            with files.SessionLock(self.spec.session_folder, NO_ANSWER):
                at = files.stamp(self.last_output)
                files.record_activity(self.spec.session_folder, self.spec.run, digest, at, files.stamp())
        except (OSError, files.LockTimeout, files.Removed, files.Unreadable, files.NewerSchema, files.WrongRun) as error:
            complain(f"cannot record activity: {error}")

    # stopping ---------------------------------------------------------------------------------------------------

    def stop(self, by: str, reason: str, grace_s: float) -> None:
        """Ask the agent to end: politely, then its whole tree, then with force when ``grace_s`` is over."""
        now = time.monotonic()
        if self.wait_status is not None and self.intent is None:
            self.spec.survivors = "kill"
            return
        if self.intent is not None:
            if now + grace_s < self._stop_deadline:
                self._stop_deadline = self.timers["kill"] = now + grace_s
            return
        self.intent = by
        intent: dict[str, object] = {"schema": files.SCHEMA, "by": by, "at": files.stamp(), "reason": reason, "grace_s": grace_s}
        try:
            files.write_object(os.path.join(self.run_folder, wire.INTENT), intent, spare=self._spare(1))
        except OSError as error:
            complain(f"cannot write the intent: {error}")
        if self.state == runs.RUNNING:
            self._change(runs.STOPPING, reason or f"asked by {by}", {"by": by, "grace_s": grace_s})
        self._stop_deadline = now + grace_s
        self.timers["kill"] = self._stop_deadline
        if grace_s > 0:
            self.timers["term"] = min(now + POLITE_S, now + grace_s / 2)
            self._ask_politely()

    def _ask_politely(self) -> None:
        if self.spec.quit_group:
            try:
                os.killpg(self.pid, self.spec.quit_signal)
            except OSError:
                send(self.pid, self.spec.quit_signal)
        else:
            send(self.pid, self.spec.quit_signal)
        send(self.pid, SIGCONT)

    def _time_term(self, now: float) -> None:
        for number in (SIGTERM, SIGHUP, SIGCONT):
            self.tree.signal(number)

    def _time_kill(self, now: float) -> None:
        """Rounds of force until nothing is left. The rounds grow rare for what the kernel will not let go."""
        self._reap()
        if not self.tree.kill() and self.master < 0:
            self._finish()
        self._kill_pause_s = min(self._kill_pause_s * 2, LONGEST_KILL_PAUSE_S)
        self.timers["kill"] = now + self._kill_pause_s

    # ending -----------------------------------------------------------------------------------------------------

    def _leader_ended(self) -> None:
        """The agent is gone and its output is complete. Its tree follows where that was asked for."""
        self.timers.pop("drain", None)
        self.timers.pop("folder", None)
        if "ending" in self.timers or self.done:
            return
        wanted = self.intent is not None or self.spec.survivors == "kill"
        left = self.tree.pids()
        if not left or not wanted:
            self._finish()
            return
        self._time_term(time.monotonic())
        self.timers.pop("term", None)
        limit = self._stop_deadline if self.intent is not None else time.monotonic() + self.spec.grace_s
        self.timers["kill"] = limit
        self.timers["ending"] = time.monotonic() + KILL_ROUND_S

    def _time_ending(self, now: float) -> None:
        self._reap()
        if self.tree.pids():
            self.timers["ending"] = now + KILL_ROUND_S
        else:
            self._finish()

    def _finish(self) -> None:
        if self.done:
            return
        self.done = True
        if "report" in self.timers:
            self._time_report(time.monotonic())
        ending = Ending(
            wait_status=self.wait_status,
            intent=self.intent,
            ended_at=self.ended_at,
            survivors=len(self.tree.pids()),
            attention=str(self.report["state"]) if self.report else None,
            lost_bytes=self.log.lost_bytes,
            usage=self.usage,
        )
        self.log.mark(wire.AT_EXIT, ending.shell_code)
        ending.write(self.run_folder)
        new, reason = ending.verdict()
        if self.state in runs.LIVE:
            self._change(new, reason, ending.evidence())
        self.clients.tell_all(
            {"event": "exit", "state": self.state, "reason": reason, "end": self.log.end, "exit": ending.fields()}
        )
        self._say_farewell()
        self.log.close()
        self.cage.remove()
        for spare in wire.SPARES:
            files.discard(os.path.join(self.run_folder, spare))

    def _say_farewell(self) -> None:
        deadline = time.monotonic() + FAREWELL_S
        while self.clients.unread() and time.monotonic() < deadline:
            for fd, events in self.poll.poll(0.05):
                client = self.clients.by_fd.get(fd)
                if client is not None and events & select.EPOLLOUT:
                    self.clients.flush(client)
        self.clients.close_all()

    # state ------------------------------------------------------------------------------------------------------

    def _spare(self, position: int) -> str | None:
        path = os.path.join(self.run_folder, wire.SPARES[position])
        return path if os.path.exists(path) else None

    def _change(self, new: str, reason: str, evidence: dict[str, object]) -> None:
        """Write a state down and tell the clients. A disk that refuses is tried again: the truth must not depend on it."""
        for state in runs.path(self.state, new) if new in runs.TERMINAL else (new,):
            self._write_state(state, reason, evidence)
            self.state = state
            self.clients.tell_all({"event": "state", "state": state, "reason": reason})

    def _write_state(self, new: str, reason: str, evidence: dict[str, object]) -> None:
        deadline = time.monotonic() + WRITE_AGAIN_S
        while True:
            try:
                self._write_state_once(new, reason, evidence)
                return
            except (runs.InvalidTransition, files.Removed, files.WrongRun, files.NewerSchema) as error:
                refusal: Exception = error
                final = True
            except (OSError, files.LockTimeout, files.Unreadable) as error:
                refusal = error
                final = time.monotonic() > deadline
            complain(f"cannot write the state {new}: {refusal}")
            if new == runs.RUNNING:
                raise agent.StartFailed(f"cannot write the state: {refusal}")
            if final:
                return
            time.sleep(0.2)

    def _write_state_once(self, new: str, reason: str, evidence: dict[str, object]) -> None:
        folder, run = self.spec.session_folder, self.spec.run
        with files.SessionLock(folder):
            files.change_state(
                folder, run, new, actor="keeper", reason=reason, evidence=evidence, spare=self._spare(2)
            )


def _only_wake(number: int, frame: object) -> None:
    """The byte in the wake-up pipe says which signal came."""


def _may_own(client: Client) -> bool:
    return client.attached and not client.read_only and client.cols > 0 and client.rows > 0


def _object(payload: bytes) -> dict[str, object]:
    value = lightjson.loads(payload)
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, but got {type(value).__name__}")
    return value


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _fnv1a(data: bytes) -> int:
    digest = 0x811C9DC5
    for byte in data:
        digest = (digest ^ byte) * 0x01000193 & 0xFFFFFFFF
    return digest


def complain(text: str) -> None:
    """The keeper's own log is its standard error."""
    try:
        os.write(2, f"{files.stamp()} {text}\n".encode("utf-8", "replace"))
    except OSError:
        return


def main(argv: list[str]) -> int:
    if os.fork():
        os._exit(0)  # the starter waits for this process only; the keeper is nobody's child
    run_folder, spec_fd = argv[1], int(argv[2])
    spec = read_spec(spec_fd)
    for fd in (spec.lock_fd, spec.ready_fd, *spec.lease_fds):
        os.set_inheritable(fd, False)
    os.ftruncate(spec.lock_fd, 0)
    os.pwrite(spec.lock_fd, f"{os.getpid()} {files.process_start(os.getpid())} {files.boot_id()}\n".encode(), 0)
    keeper = Keeper(spec, run_folder)
    try:
        keeper.start()
    except (agent.StartFailed, OSError) as error:
        text = str(error) if isinstance(error, agent.StartFailed) else f"cannot start the agent: {error}"
        _fail_start(keeper, text)
        _say_ready(spec, {"ok": False, "error": text})
        return 1
    _say_ready(spec, {"ok": True, "pid": keeper.pid})
    pause_s = 0.01
    while not keeper.done:
        try:
            keeper.keep()
        except Exception:
            # an error in one event must not end the agent; it is told, and the next event is taken
            sys.excepthook(*sys.exc_info())
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_ERROR_PAUSE_S)
    return 0


def _say_ready(spec: Spec, value: dict[str, object]) -> None:
    try:
        files.write_all(spec.ready_fd, lightjson.dumps(value).encode() + b"\n")
    except OSError:
        pass
    os.close(spec.ready_fd)


def _fail_start(keeper: Keeper, text: str) -> None:
    """No command ran, or it runs and we cannot say so: end what there is and write the reason."""
    if keeper.pid:
        while keeper.tree.kill():
            keeper._reap()
            time.sleep(KILL_ROUND_S)
    ending = Ending(error=text, intent=keeper.intent, ended_at=files.stamp())
    try:
        ending.write(keeper.run_folder)
        keeper._write_state(runs.FAILED, text, {"error": text})
    except OSError as error:
        complain(f"cannot write why the start failed ({text}): {error}")
    for spare in wire.SPARES:
        files.discard(os.path.join(keeper.run_folder, spare))
    files.discard(os.path.join(keeper.run_folder, wire.SOCKET))
