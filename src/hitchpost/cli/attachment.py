"""One visit to a session's terminal: its output goes to the screen, what is typed goes to the agent.

A terminal of the session's size gets the output as it is. One of another size gets a picture of it, painted from an
emulator, around the cursor. Whoever types gives the session the size of their own terminal.

At first it is a picture in any case, with how to leave in a line of it: in the output itself that line would be the
agent's, who may write over it at once. A key, a question to the terminal, or a moment ends that.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import time
from collections.abc import Callable
from typing import Any, Protocol

from hitchpost import wire
from hitchpost.cli import terminal as term
from hitchpost.cli.answers import Answers
from hitchpost.cli.colours import Colours
from hitchpost.cli.keys import ANSWER, DETACH, INPUT, Keyboard
from hitchpost.cli.terminal import Signals, Terminal, TerminalGone
from hitchpost.runtimes.link import Link
from hitchpost.terminal import output
from hitchpost.terminal.emulators import Emulators
from hitchpost.terminal.screen import CANCEL, Losses, RunScreen
from hitchpost.text import visible

READ_BYTES = 1 << 16
MOST_BEHIND_BYTES = 4 << 20
MOST_UNSENT_BYTES = 4 << 20
HINT_S = 2.0
CLEAR = b"\x1b[H\x1b[2J"
ENTER_PICTURE = b"\x1b[?1049h\x1b[?7l\x1b[2J"
PLAIN_INPUT = term.POP_KEYBOARD + b"\x1b[?1l\x1b[?2004l\x1b>\x1b[>4;0m\x1b[0m"
LEAVE_PICTURE = term.POP_KEYBOARD + term.LEAVE_ALTERNATE
DETACHED, ENDED, LOST, KILLED = "detached", "ended", "lost", "killed"


class Sounding(Protocol):
    """What else is written to the terminal, between two pieces of output. ``fd`` is readable when there is some."""

    fd: int

    def read(self) -> bytes: ...


class Attachment:
    """Runs until the person leaves, the run ends, or a signal or the loss of the keeper ends it.

    Afterwards ``outcome`` says which, ``event`` is what the keeper told of the run's end, and ``signal`` the signal.
    """

    def __init__(
        self,
        link: Link,
        output_folder: str,
        emulators: Emulators,
        keyboard: Keyboard,
        *,
        read_only: bool,
        bells: Sounding | None = None,
    ) -> None:
        self.link, self.keyboard, self.read_only = link, keyboard, read_only
        self._bells, self._sounds = bells, b""
        self.outcome = ""
        self.event: dict[str, Any] | None = None
        self.signal = 0
        self.title = ""
        """Of the terminal, until the agent gives it another."""
        self.hint = ""
        """Shown over the first picture."""
        self._hint_until: float | None = None
        self.on_report: Callable[[], None] = lambda: None
        """Called when the agent reports something else."""
        self._folder, self._emulators = output_folder, emulators
        self._session = os.path.abspath(output_folder).split(os.sep)[-4]
        self._terminal = Terminal()
        self._size = self._terminal.size()
        self._end = int(link.welcome["end"])
        self._marks: list[tuple[int, int, int]] = []
        self._following = False
        self._outbox = bytearray()
        self._answers, self._colours = Answers(), Colours()
        self._questions = self._answered = 0
        self._raw = True
        self._begun = False
        self._painted: list[bytes] = []
        self._input_modes = b""
        self._dirty = False
        self._left = self._top = 0
        self._flush_at: float | None = None

    def run(self) -> str:
        """The visit. The terminal is as it was when this returns or raises."""
        terminal = self._terminal
        try:
            with Signals() as self._signals, output.Reader(self._folder, self._end) as self._reader:
                self._screen = RunScreen(self._folder, self._emulators, Losses(), *self._size)
                try:
                    self._screen.advance(self._end)
                    self._screen.resize(int(self.link.welcome["cols"]), int(self.link.welcome["rows"]))
                    terminal.raw()
                    try:
                        self._hint_until = time.monotonic() + HINT_S if self.hint and self._size[1] > 1 else None
                        self._begin()
                        self._loop()
                        self._leave()
                    except TerminalGone:
                        self.outcome, self.signal = self.outcome or KILLED, self.signal or signal.SIGHUP
                    except BaseException:
                        self._leave()
                        raise
                    finally:
                        terminal.restore()
                finally:
                    self._screen.close()
        finally:
            terminal.close()
        return self.outcome

    # the loop ---------------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._terminal.input, selectors.EVENT_READ, self._on_keys)
            selector.register(self._signals.fd, selectors.EVENT_READ, self._on_signals)
            if self._bells is not None:
                selector.register(self._bells.fd, selectors.EVENT_READ, self._on_bell)
            linked = writing = 0
            self._on_link()
            while self._pump():
                wanted = (
                    0 if self.link.closed else selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outbox else 0)
                )
                linked = _watch(selector, self.link.fileno(), linked, wanted, self._on_link)
                wanted = selectors.EVENT_WRITE if self._terminal.waiting() else 0
                writing = _watch(selector, self._terminal.output, writing, wanted, self._terminal.flush)
                due = [at for at in (self._flush_at, self._hint_until) if at is not None]
                for key, _ in selector.select(max(0.0, min(due) - time.monotonic()) if due else None):
                    if not self.outcome:
                        key.data()
                if self._hint_until is not None and time.monotonic() >= self._hint_until:
                    self._end_hint()
                if self._flush_at is not None and time.monotonic() >= self._flush_at:
                    self._type(self.keyboard.flush())

    def _on_signals(self) -> None:
        numbers = self._signals.read()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            if number in numbers:
                self.outcome, self.signal = KILLED, number
                return
        if signal.SIGTSTP in numbers:
            self._leave()
            self._terminal.restore()
            os.kill(os.getpid(), signal.SIGSTOP)
            self._signals.read()
            numbers |= {signal.SIGCONT}
        if signal.SIGCONT in numbers:
            self._terminal.raw()
            self._take_size()
            self._begin()
        elif signal.SIGWINCH in numbers:
            self._take_size()

    def _on_bell(self) -> None:
        if self._bells is not None:
            self._sounds = self._bells.read()

    def _take_size(self) -> None:
        size = self._terminal.size()
        if size == self._size:
            return
        self._size = size
        self._painted = []
        self._dirty = not self._raw
        if not self.read_only:
            # whether the size is ours to set is known when the ping is answered
            self._questions += 1
            self._outbox += wire.resize(*size) + wire.request(self._questions, "ping")

    # what is typed ----------------------------------------------------------------------------------------------

    def _on_keys(self) -> None:
        self._type(self.keyboard.feed(self._terminal.read()))

    def _type(self, typed: list[tuple[str, bytes]]) -> None:
        for kind, data in typed:
            if kind != ANSWER:
                self._end_hint()
            if kind == DETACH:
                self._settle()
                self._terminal.flush()
                self.outcome = DETACHED
                return
            if self.read_only or self.link.closed:
                continue
            if len(self._outbox) > MOST_UNSENT_BYTES:
                self._terminal.put(b"\a")
                continue
            self._send({INPUT: wire.INPUT, ANSWER: wire.ANSWER}[kind], data)
        patience_s = self.keyboard.patience_s
        self._flush_at = None if patience_s is None else time.monotonic() + patience_s

    def _send(self, kind: bytes, payload: bytes) -> None:
        self._outbox += wire.frame(kind, payload)

    # what the keeper says ---------------------------------------------------------------------------------------

    def _on_link(self) -> None:
        self._flush_link()
        for kind, payload in self.link.frames(0):
            if kind == wire.POKE:
                self._following = False
                self._end = max(self._end, int.from_bytes(payload, "big"))
            elif kind == wire.REPLY:
                self._answered = max(self._answered, json.loads(payload).get("id", 0))
            elif kind == wire.EVENT:
                self._on_event(json.loads(payload))
        if self.link.closed and self.event is None:
            self._end = max(self._end, output.bounds(self._folder)[1])

    def _on_event(self, event: dict[str, Any]) -> None:
        if event["event"] == "exit":
            self.event = event
            self._end = max(self._end, int(event["end"]))
        elif event["event"] == "resize":
            self._marks.append((int(event["offset"]), int(event["cols"]), int(event["rows"])))
            self._end = max(self._end, int(event["offset"]))
        elif event["event"] == "attention":
            self.on_report()
        elif event["event"] == "refused":
            self._terminal.put(b"\a")

    def _flush_link(self) -> None:
        self.link.socket.setblocking(False)
        try:
            while self._outbox:
                del self._outbox[: self.link.socket.send(self._outbox)]
        except BlockingIOError:
            return
        except OSError:
            self._outbox.clear()  # the end of the connection is noticed by reading

    # the output -------------------------------------------------------------------------------------------------

    def _pump(self) -> bool:
        """Move output on, as far as the terminal keeps up; then ask for more. False when the visit is over."""
        if self.outcome:
            return False
        if self.event is not None or self.link.closed:
            self._end_hint()  # all of what it printed stays in the terminal
        while True:
            self._terminal.flush()
            if self._terminal.waiting():
                return True
            self._settle()
            if not self._marks and self._raw and self._end - self._reader.offset > MOST_BEHIND_BYTES:
                self._skip()
            elif not self._advance():
                break
        if self._terminal.waiting():
            return True
        if self._dirty:
            self._paint()
            self._terminal.flush()
        if self._sounds:  # between two pieces of output, and hardly ever in the middle of a sequence
            self._terminal.put(self._sounds)
            self._sounds = b""
            self._terminal.flush()
        if self.event is not None:
            self.outcome = ENDED
        elif self.link.closed:
            self.outcome = LOST
        elif not self._following:
            self._following = True
            self._outbox += wire.follow(self._reader.offset)
        self._flush_link()
        return not self.outcome

    def _advance(self) -> bool:
        """Show the next piece of output; False when there is none."""
        until = min(self._end, self._marks[0][0]) if self._marks else self._end
        here = self._reader.offset
        chunk = self._reader.read(min(READ_BYTES, until - here)) if here < until else None
        if chunk is None or not chunk.data:
            if not self._marks:
                self._end = here
                return False
            _, cols, rows = self._marks.pop(0)
            self._screen.resize(cols, rows)
            self._dirty = not self._raw
            return True
        if self._hint_until is not None and (chunk.lost or _may_ask(chunk.data)):
            self._end_hint()
            self._settle()
        if chunk.lost:
            self._tell(output.gap_text(chunk.lost))
        self._screen.feed(chunk)
        if self._raw:
            self._pass_on(chunk.data)
        else:
            self._dirty = True
        return True

    def _skip(self) -> None:
        """Take what the terminal is too slow for, and show where it led."""
        began = self._reader.offset
        while self._reader.offset < self._end:
            chunk = self._reader.read(min(output.READ_BYTES, self._end - self._reader.offset))
            if not chunk.data:
                break
            self._screen.feed(chunk)
        self._terminal.put(self._leave_raw(False))
        self._tell(
            f"{self._reader.offset - began} bytes of output came too fast for this terminal; "
            f"hitch logs {self._session} has them"
        )
        self._show(self._scroll_away())

    def _tell(self, text: str) -> None:
        if self._raw:
            self._terminal.put(CANCEL + f"\r\n[hitch: {text}]\r\n".encode())

    def _settle(self) -> None:
        """Choose between the output itself and its picture, once it is known whose size the session has."""
        if self._marks or self._answered < self._questions:
            return
        if self._fits() and not self._raw:
            self._terminal.put(LEAVE_PICTURE)
            self._raw = True
            self._show(CLEAR if self._begun else self._scroll_away())
        elif self._raw and not self._fits():
            self._terminal.put(self._leave_raw(True))
            self._enter_picture()

    def _fits(self) -> bool:
        if not self._screen.can_paint:
            return True
        return self._hint_until is None and (self._screen.cols, self._screen.rows) == self._size

    def _begin(self) -> None:
        self._terminal.put(term.KEEP_TITLE + (f"\x1b]2;{visible(self.title)}\x1b\\".encode() if self.title else b""))
        self._raw = self._fits()
        if self._raw:
            self._show(self._scroll_away())
        else:
            self._enter_picture()

    def _scroll_away(self) -> bytes:
        """Clears the screen, so that what was there can be scrolled back to."""
        return b"\r\n" * self._size[1] + b"\x1b[H"

    def _show(self, clear: bytes) -> None:
        """Print the screen, and the first time its history."""
        self._terminal.put(b"\x1b[0m" + clear)
        self._pass_on(self._screen.snapshot(history=not self._begun))
        self._begun = True

    def _pass_on(self, data: bytes) -> None:
        self._answers.passed(data)
        self._colours.passed(data)
        self._terminal.put(data)

    # the picture ------------------------------------------------------------------------------------------------

    def _enter_picture(self) -> None:
        self._raw = False
        self._painted = []
        self._input_modes = b""
        self._dirty = True
        self._terminal.put(ENTER_PICTURE)

    def _paint(self) -> None:
        cols, rows = self._size
        column, row = self._screen.cursor()
        self._left = _scrolled(self._left, column, cols, self._screen.cols) if column >= cols else 0
        self._top = _scrolled(self._top, row, rows, self._screen.rows)
        lines = self._screen.lines(self._left, self._top, cols, rows)
        lines += [b""] * (rows - len(lines))
        if self._hint_until is not None:
            lines[0 if row - self._top > rows // 2 else -1] = f"\x1b[0;7m {visible(self.hint)} \x1b[0m".encode()
        parts = [b"\x1b[?2026h\x1b[?25l"]
        for number, line in enumerate(lines):
            if number >= len(self._painted) or self._painted[number] != line:
                parts.append(b"\x1b[%d;1H\x1b[0m\x1b[K%s" % (number + 1, line))
        parts.append(b"\x1b[0m\x1b[%d;%dH" % (row - self._top + 1, column - self._left + 1))
        if (modes := self._screen.input_modes()) != self._input_modes:
            self._answers.passed(modes)
            parts += [PLAIN_INPUT, modes]
        parts.append(b"\x1b[?25h\x1b[?2026l")
        self._painted, self._input_modes, self._dirty = lines, modes, False
        self._terminal.put(b"".join(parts))

    def _end_hint(self) -> None:
        if self._hint_until is not None:
            self._hint_until = None
            self._dirty = not self._raw

    # leaving ----------------------------------------------------------------------------------------------------

    def _leave_raw(self, certain: bool) -> bytes:
        """Reset the terminal's modes and go to a fresh line below the output.

        When output was dropped it is not ``certain`` which of its screens the terminal shows, and where its cursor is.
        """
        if self._screen.alternate() and certain:
            return term.RESET + term.LEAVE_ALTERNATE + b"\r\n"
        if not certain or not self._screen.can_paint or (self._screen.cols, self._screen.rows) != self._size:
            leave = b"" if certain else term.LEAVE_ALTERNATE
            return term.RESET + leave + b"\x1b[%d;1H\r\n" % self._size[1]
        column, row = self._screen.cursor()
        text = self._screen.text().rstrip()
        used = text.count("\n") + 1 if text else 0
        if used > row:
            return term.RESET + b"\x1b[%d;1H\r\n" % used
        return term.RESET + b"\x1b[%d;1H" % (row + 1) + (b"\r\n" if column else b"")

    def _leave(self) -> None:
        self._terminal.finish(self._farewell() + self._colours.back(), answers_outstanding=self._answers.left())
        self._answers, self._colours = Answers(), Colours()

    def _farewell(self) -> bytes:
        """What gives the terminal back; at the end of a run with what a picture or the alternate screen showed last."""
        certain = not self._terminal.waiting()
        self._terminal.forget()
        text = b""
        if self.outcome in (ENDED, LOST) and (not self._raw or self._screen.alternate()):
            last = visible(self._screen.text().rstrip(), keep_newlines=True)
            text = last.replace("\n", "\r\n").encode() + b"\r\n" if last else b""
        away = self._leave_raw(certain) if self._raw else term.RESET + LEAVE_PICTURE
        return away + term.GIVE_TITLE_BACK + text


def _may_ask(data: bytes) -> bool:
    """Whether a terminal may have to answer some of it."""
    answers = Answers()
    answers.passed(data)
    return answers.left()


def _scrolled(origin: int, cursor: int, room: int, whole: int) -> int:
    """Where a window of ``room`` into ``whole`` begins: as before, moved only to hold the cursor."""
    origin = max(0, min(origin, whole - room))
    return min(max(origin, cursor - room + 1), cursor) if room < whole else 0


def _watch(selector: selectors.BaseSelector, fd: int, now: int, events: int, call: Any) -> int:
    if events != now:
        if now and events:
            selector.modify(fd, events, call)
        elif events:
            selector.register(fd, events, call)
        else:
            selector.unregister(fd)
    return events
