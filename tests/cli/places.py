"""What tests of the command share: sessions that were never started, other users, and how a folder looks."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.settings import Settings
from hitchpost.store.home import new_id
from tests.support import Hitch

SHAPE = {
    "changes",
    "id",
    "index",
    "name",
    "description",
    "agent",
    "runtime",
    "node",
    "owner",
    "record",
    "workspace",
    "run",
    "state",
    "status",
    "label",
    "quiet_since",
    "attention",
    "headline",
    "detail",
    "since",
    "rank",
    "glyph",
    "colour",
    "section",
    "actions",
    "pinned",
    "snoozed_until",
    "seen_at",
    "live",
    "takes_prompt",
    "refusal",
    "sandbox_alive",
    "session_alive",
    "exit",
    "survivors",
    "created_at",
    "started_at",
    "state_changed_at",
    "last_activity_at",
    "last_active_at",
    "idle_after_s",
    "supports_resume",
    "report",
    "conversation",
    "chat",
    "when_limit",
}
"""The keys of the one JSON shape of a session."""

HOSTILE = 'a\x1b[2J\x1b]0;x\x07\nroot  \r\u202e\x9b31m"$(id)`id`'
"""A text that would clear the screen, forge a row and run a command, where it was not escaped."""

NOBODY = 65534

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")


def new_session(
    home: Path, place: Path, *, name: str | None = None, id: str | None = None, description: str = ""
) -> str:
    """A session that has never been started; its id."""
    spec = SessionSpec(str(place), command=("true",), name=name, description=description)
    return create(str(home), spec, Settings(), new_id=new_id if id is None else lambda: id, actor="test").id


def as_owner_only(hitch: Hitch) -> Hitch:
    """The command without root's power to ignore file modes."""
    if os.geteuid() != 0:
        return hitch
    return Hitch(("setpriv", "--bounding-set=-dac_override,-dac_read_search", *hitch.command))


def as_nobody(hitch: Hitch) -> Hitch:
    """The command as another user, who may read everything (the interpreter may be in root's own folder)."""
    caps = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    return Hitch(("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *caps, *hitch.command))


def tree(*tops: Path) -> dict[str, tuple[int, bytes]]:
    """Every path below ``tops`` with its change time and content. Sockets and locks have none."""
    found = {}
    for top in tops:
        for path in [top, *sorted(top.rglob("*"))]:
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            found[str(path)] = (path.lstat().st_mtime_ns, content)
    return found


def is_harmless(text: str) -> bool:
    """Whether a terminal would show ``text`` as it is: printable characters and newlines."""
    return all(letter.isprintable() or letter == "\n" for letter in text)


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())
