"""``hitch ps`` of a hub elsewhere, whose table and JSON are ready there. ``main`` loads little, as here it does too."""

from __future__ import annotations

import os
import sys

from hitchpost.cli.ps import RECORD, listed_records, whole_answer
from hitchpost.cli.remote import contexts, tls
from hitchpost.cli.remote.tls import CannotReach
from hitchpost.errors import FAILURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hitchpost.cli.remote.hub import RemoteHub
    from hitchpost.cli.watch import Source

NO_SESSIONS = b"no sessions yet\n"
ANSWERS_S = 60.0


def main(name: str, arguments: list[str]) -> int:
    """``arguments`` are those that ``ps.understands``. Returns the exit code."""
    try:
        records = listed_records(arguments)
        context = contexts.load(name)
        if "--watch" in arguments or "-w" in arguments:
            return _watch(context, records)
        is_terminal = sys.stdout.isatty()
        if "--json" in arguments:
            path = f"/api/sessions?record={','.join(records)}"
        else:
            path = _table(records, is_terminal, os.get_terminal_size(1).columns if is_terminal else 0)
        text = _got(context, path)
        if is_terminal and "--json" not in arguments and text.count(b"\n") == 1:
            text = NO_SESSIONS
        sys.stdout.buffer.write(text)
        sys.stdout.flush()
    except FAILURES as error:
        from hitchpost.cli.failing import report

        return report(error)
    return 0


def command(hub: RemoteHub, everything: bool, records: tuple[str, ...], as_json: bool, watch: bool) -> None:
    """As click calls it."""
    flags = [("--all", everything), ("--json", as_json), ("--watch", watch)]
    words = [*(flag for flag, given in flags if given), *(f"{RECORD}{record}" for record in records)]
    sys.exit(main(hub.context.name, words))


def _table(records: tuple[str, ...], colour: bool, width: int) -> str:
    return f"/api/sessions/table?record={','.join(records)}&colour={str(colour).lower()}&width={width}"


def _got(context: contexts.Context, path: str) -> bytes | bytearray:
    """Raises ``CannotReach`` or ``HubRefused``. A plain answer needs no library to be read."""
    sock = tls.connect(context)
    try:
        sock.settimeout(ANSWERS_S)
        head = f"Host: {tls.host_header(context.url)}\r\nAuthorization: Bearer {context.token}\r\nConnection: close"
        sock.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\n\r\n".encode())
        text = whole_answer(sock)
    except OSError as error:
        raise CannotReach(context, error) from None
    finally:
        sock.close()
    if text is not None:
        return text
    from hitchpost.cli.remote.hub import RemoteHub

    hub = RemoteHub(context)
    try:
        return hub.octets(path)[0]  # says why not, or takes what comes in pieces
    finally:
        hub.close()


def _watch(context: contexts.Context, records: tuple[str, ...]) -> int:
    from hitchpost.cli.remote.hub import RemoteHub
    from hitchpost.cli.watch import follow

    hub = RemoteHub(context)
    try:
        return follow(_Opening(hub, records))
    finally:
        hub.close()


class _Opening:
    """Opens the hub's events, again and again. Only the first time, a hub that cannot be reached ends the command."""

    def __init__(self, hub: RemoteHub, records: tuple[str, ...]) -> None:
        self.hub, self.records = hub, records
        self.shown: list[str] = []

    def __call__(self) -> Source:
        from hitchpost.cli.watch import HubEvents

        try:
            return HubEvents(self._table, self.hub.websocket())
        except CannotReach as error:
            if not self.shown:
                raise
            return _Away(self.shown, str(error))

    def _table(self, colour: bool) -> bytes | None:
        from hitchpost.cli.watch import terminal_width

        try:
            text, _ = self.hub.octets(_table(self.records, colour, terminal_width()))
        except CannotReach:
            return None
        self.shown = text.decode().split("\n")[:-1]
        return text


class _Away:
    """What was shown last, and why there is nothing newer. After a moment it is tried again."""

    def __init__(self, shown: list[str], why: str) -> None:
        self.shown, self.why = shown, why

    def lines(self, *, colour: bool) -> list[str]:
        return [*self.shown, f"[{self.why}; trying again]"]

    def wait(self, *, ticks: bool) -> None:
        import signal

        from hitchpost.cli.watch import EVERY_S, HubGone

        signal.sigtimedwait({signal.SIGWINCH}, EVERY_S)
        raise HubGone
