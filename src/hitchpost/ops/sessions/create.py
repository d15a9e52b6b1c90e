"""Making a session: its folder appears whole or not at all."""

from __future__ import annotations

import os

from hitchpost.agents.catalog import Agent
from hitchpost.errors import NameTaken, UsageError
from hitchpost.model.record import ARCHIVED
from hitchpost.settings import BOUNDS, Settings
from hitchpost.store import files, records
from hitchpost.store.home import new_id, open_home, session_folder, sessions_folder
from hitchpost.store.index import Index
from hitchpost.store.manager import Manager
from hitchpost.store.records import Record
from hitchpost.system import process
from hitchpost.text import readable
from hitchpost.values import asdict, replace, value
from hitchpost.workspaces.folders import erase
from hitchpost.workspaces.tree import discover, keep_index, stored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

LONGEST_NAME = 128
LONGEST_DESCRIPTION = 1000
NEW, REMOVED = ".new-", ".removed-"


@value
class Wish:
    """What a person asks for. ``argv`` is the whole command."""

    agent: Agent
    argv: tuple[str, ...]
    folder: str
    name: str | None = None
    description: str = ""
    runtime: str = "local"
    workspace_id: str | None = None
    branch: str | None = None
    base: str | None = None
    exclusive: bool = False
    share: bool = False
    sandbox: dict[str, object] | None = None
    idle_after_s: float | None = None


def create(home: str, wish: Wish, settings: Settings, *, actor: str, new_id: Callable[[], str] = new_id) -> Record:
    """Write the record of a new session. Raises ``NameTaken`` or ``UsageError``; nothing is left behind then."""
    open_home()
    folder, place = working_folder(wish.folder)
    if wish.name is not None:
        check_name(wish.name)
    check_description(wish.description)
    if wish.idle_after_s is not None:
        check_idle_after(wish.idle_after_s)
    tree = discover(folder, home) if wish.branch is None else None
    sweep(home)
    known = Index(home).refresh()
    known.save()
    with home_lock(home) as names:
        rows = in_use(home, known)
        now = files.stamp()
        record = Record(
            id=new_id(),
            index=_lowest_free({row["index"] for row in rows}),
            name=wish.name if wish.name is not None else _made_up(wish, {row["name"] for row in rows}),
            agent=wish.agent.name,
            argv=wish.argv,
            folder=folder,
            folder_dev=place.st_dev,
            folder_ino=place.st_ino,
            created_at=now,
            description=wish.description,
            runtime=wish.runtime,
            workspace_id=wish.workspace_id,
            branch=wish.branch,
            base=wish.base,
            exclusive=wish.exclusive,
            share=wish.share,
            record_changed_at=now,
            last_active_at=now,
            idle_after_s=_idle_after_s(wish, settings),
            quiet_after_s=settings.quiet_s,
            ready_after_s=wish.agent.ready_after_s,
            shows_prompt=wish.agent.shows_prompt,
            grace_s=settings.grace_s,
            quit_signal=wish.agent.quit_signal,
            quit_group=wish.agent.quit_group,
            survivors=settings.survivors,
            sandbox=wish.sandbox,
            git=stored(tree),
        )
        holder = next((row["id"] for row in rows if row["name"] == record.name), None)
        if holder is not None:
            raise NameTaken(record.name, holder)
        _write(home, record, names, actor)
    if tree is not None:
        keep_index(replace(tree, keep=session_folder(home, record.id)), tree.index)
    return record


def working_folder(wanted: str) -> tuple[str, os.stat_result]:
    """The folder's own path, and what names it for ever. Raises ``UsageError`` when nobody can work there."""
    folder = os.path.realpath(wanted)
    try:
        place = os.stat(folder)
    except OSError as error:
        raise UsageError(f"cannot work in {wanted}: {os.strerror(error.errno or 0).lower()}") from None
    if not os.path.isdir(folder):
        raise UsageError(f"cannot work in {wanted}: it is not a folder")
    return folder, place


def check_description(text: str) -> None:
    check_readable("description", text)
    if len(text) > LONGEST_DESCRIPTION:
        raise UsageError(f"the description is longer than {LONGEST_DESCRIPTION} characters")


def check_idle_after(seconds: float) -> None:
    least, most = BOUNDS["idle_after_s"]
    if not least <= seconds <= most:
        raise UsageError(f"expected a time until idle of {least} to {most} seconds, but got {seconds:g}")


def check_readable(what: str, text: str) -> None:
    if readable(text) != text:
        raise UsageError(f"expected the {what} to be UTF-8, but got {readable(text)}")


def check_name(name: str) -> None:
    check_readable("name", name)
    if not name.strip():
        raise UsageError("a name needs at least one character that can be seen")
    if len(name) > LONGEST_NAME:
        raise UsageError(f"the name has {len(name)} characters; {LONGEST_NAME} is the most")
    if name.isascii() and name.isdigit():
        raise UsageError(f"the name {name!r} is only digits, which are for the index; add a letter")


def home_lock(home: str) -> files.Lock:
    """Held while names and numbers are given out, one at a time, and not while the rest of a session is made."""
    return files.Lock(os.path.join(sessions_folder(home), ".lock"))


def in_use(home: str, known: Index) -> list[dict[str, Any]]:
    """Who has which name and number; archived sessions have none. The caller holds the home's lock.

    ``known`` was refreshed a moment ago. Claims come first: one that becomes a session meanwhile is found as that.
    """
    rows = [*_claims(home), *known.again().rows.values()]
    return [row for row in rows if row["record"] != ARCHIVED]


def sweep(home: str) -> None:
    """Finish removals that were cut short, and clear away sessions and files that were never finished being made."""
    if _half_made(home):
        with home_lock(home):
            left = _half_made(home)  # whoever made a folder before this holds its lock by now, or is gone
        for path in left:
            try:
                (erase if os.path.isdir(path) else files.discard)(path)
            except OSError:
                continue  # the next sweep tries again; nobody's new session waits for it


def _half_made(home: str) -> list[str]:
    """What nobody works on any more. Readers write the index without any lock, so its writer must be gone."""
    top = sessions_folder(home)
    folders = [os.path.join(top, name) for name in os.listdir(top) if name.startswith((NEW, REMOVED))]
    return [path for path in folders if files.is_held(os.path.join(path, files.LOCK)) is not True] + [
        os.path.join(home, name)
        for name in os.listdir(home)
        if files.is_temp(name) and process.start_time(files.writer_of(name)) is None
    ]


def _claims(home: str) -> Iterator[dict[str, Any]]:
    """The name and number of each session that is being made."""
    top = sessions_folder(home)
    for name in os.listdir(top):
        if not name.startswith(NEW):
            continue
        try:
            value = files.read_object(os.path.join(top, name, records.RECORD))
        except (OSError, files.Unreadable, files.NewerSchema):
            continue
        yield {key: value.get(key) for key in ("id", "index", "name", "record")}


def _write(home: str, record: Record, names: files.Lock, actor: str) -> None:
    """Make the folder under another name and move it into place.

    Its first file claims name and number, and its lock says that we live: then others may have the home's lock.
    """
    made = os.path.join(sessions_folder(home), NEW + record.id)
    os.mkdir(made, 0o700)
    try:
        with files.Lock(os.path.join(made, files.LOCK)):
            records.write(made, record, durable=False)
            names.release()
            Manager(made, actor=actor).create(record.id, record.workspace_id or "", record=asdict(record))
            records.write(made, record)
            os.rename(made, session_folder(home, record.id))
            files.sync_folder(sessions_folder(home))
    except BaseException:
        erase(made)
        raise


def _lowest_free(taken: set[int]) -> int:
    number = 1
    while number in taken:
        number += 1
    return number


def _idle_after_s(wish: Wish, settings: Settings) -> float:
    """What the session itself says, else the table of the settings: by agent, then by kind."""
    table, agent = settings.idle_after, wish.agent
    by_kind = table.get(agent.kind, settings.idle_after_s)
    return table.get(agent.name, by_kind) if wish.idle_after_s is None else wish.idle_after_s


def _made_up(wish: Wish, taken: set[str]) -> str:
    """A name from agent and branch, else folder: ``claude-shop``, ``claude-shop-2``."""
    place = wish.branch or os.path.basename(os.path.realpath(wish.folder)) or "root"
    base = f"{wish.agent.name}-{place}"[: LONGEST_NAME - 6]
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name
