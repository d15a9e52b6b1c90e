"""``hitch ps``: the table of sessions. Standard library only: it must answer like a shell builtin.

A hub that is there has the whole text ready. What makes it of the files is imported only when there is none.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket

HUB_ANSWERS_S = 1.0
MOST_HEAD_BYTES = 1 << 16
RECORD = "--record="
NO_SESSIONS = b"no sessions yet; hitch run claude starts one in this folder\n"
FLAGS = ("--all", "-a", "--json", "--watch", "-w")


def understands(arguments: list[str]) -> bool:
    """Whether the fast path can take these arguments; the others go to click for help and errors."""
    return all(argument in FLAGS or argument.startswith(RECORD) for argument in arguments)


def listed_records(arguments: list[str]) -> tuple[str, ...]:
    """The records that are to be listed. Raises ``UsageError``."""
    from hitchpost.model.record import chosen

    named = [argument.removeprefix(RECORD) for argument in arguments if argument.startswith(RECORD)]
    return chosen(named, everything="--all" in arguments or "-a" in arguments)


def main(arguments: list[str]) -> int:
    import gc

    from hitchpost.errors import FAILURES
    from hitchpost.store.home import open_home

    try:
        records = listed_records(arguments)
        if "--watch" in arguments or "-w" in arguments:
            from hitchpost.cli.watch import watch

            return watch(records)
        gc.disable()  # this process ends before there is anything to collect
        home = open_home(create=False)
        if "--json" in arguments:
            text = from_hub(home, f"/api/sessions?record={','.join(records)}") or shapes_from_files(home, records)
        else:
            is_terminal = sys.stdout.isatty()
            width = os.get_terminal_size(sys.stdout.fileno()).columns if is_terminal else 0
            told = table_from_hub(home, records, colour=is_terminal, width=width)
            text = told or table_from_files(home, records, colour=is_terminal, width=width)
            if is_terminal and text.count(b"\n") == 1:
                text = NO_SESSIONS
        sys.stdout.buffer.write(text)
        sys.stdout.flush()
    except FAILURES as error:
        from hitchpost.cli.failing import report

        return report(error)
    sys.stderr.flush()
    os._exit(0)  # nothing is open: taking thousands of rows apart again would only cost time


def shapes_from_files(home: str, records: tuple[str, ...]) -> bytes:
    from hitchpost.ops.views.listing import as_json, listing

    return as_json([row.text for row in listing(home, records=records, shapes=True)])


def table_from_files(home: str, records: tuple[str, ...], *, colour: bool, width: int = 0) -> bytes:
    from hitchpost.ops.views.listing import listing
    from hitchpost.ops.views.table import as_table

    rows = listing(home, records=records)
    return as_table([row.line for row in rows], colour=colour, now_s=time.time(), width=width)


def table_from_hub(home: str, records: tuple[str, ...], *, colour: bool, width: int = 0) -> bytearray | None:
    return from_hub(home, f"/api/sessions/table?record={','.join(records)}&colour={colour}&width={width}")


def from_hub(home: str, path: str) -> bytearray | None:
    """The hub's answer, when one is there and answers at once: it knows all of it already."""
    from _socket import AF_UNIX, SOCK_STREAM, socket

    from hitchpost.system.shortpath import ShortPath

    asked = socket(AF_UNIX, SOCK_STREAM)
    asked.settimeout(HUB_ANSWERS_S)
    try:
        with ShortPath(home, "hub.sock") as short:
            asked.connect(short)
        asked.send(f"GET {path} HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n".encode())
        return whole_answer(asked)
    except OSError:
        return None
    finally:
        asked.close()


def whole_answer(asked: Socket) -> bytearray | None:
    """The body of a whole answer that says 200, read into its place at once: it may have megabytes."""
    begun = b""
    while b"\r\n\r\n" not in begun:
        part = asked.recv(MOST_HEAD_BYTES)
        if not part:
            return None
        begun += part
    head, _, first = begun.partition(b"\r\n\r\n")
    size, _, _ = head.lower().partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")
    if not head.startswith(b"HTTP/1.1 200 ") or not size.isdigit() or len(first) > int(size):
        return None
    body = bytearray(int(size))
    body[: len(first)] = first
    got = len(first)
    with memoryview(body) as room:
        while got < len(body):
            count = asked.recv_into(room[got:])
            if not count:
                return None
            got += count
    return body


def __getattr__(name: str) -> object:
    """The click command, made only when help or an error needs it."""
    if name == "command":
        from hitchpost.cli.ps_help import command

        return command
    raise AttributeError(name)
