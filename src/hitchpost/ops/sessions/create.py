"""Making a session: its folder appears whole or not at all."""

from __future__ import annotations

import os

from hitchpost.agents.catalog import ACP
from hitchpost.errors import NameTaken, UsageError
from hitchpost.model.record import ARCHIVED
from hitchpost.settings import BOUNDS, Settings
from hitchpost.store import files, locks, records
from hitchpost.store.home import new_id, open_home, session_folder, sessions_folder
from hitchpost.store.index import Index
from hitchpost.store.records import Record
from hitchpost.store.session import Session
from hitchpost.system import process
from hitchpost.text import readable, visible
from hitchpost.values import asdict, replace
from hitchpost.workspaces.folders import erase
from hitchpost.workspaces.tree import discover, keep_index, stored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    from hitchpost.agents.catalog import Agent
    from hitchpost.ops.sessions.place import Place
    from hitchpost.ops.sessions.spec import SessionSpec
    from hitchpost.store.sandbox import StoredSandbox

    Claim = Callable[[Iterable[str]], tuple[str, int]]
    """Gives the first of the names that is free, and a number that no session ever had. Raises ``NameTaken``."""
    Making = Callable[[str], AbstractContextManager[Claim]]
    """Entered with the id of a session, and left when its folder is there."""

LONGEST_NAME = 128
LONGEST_DESCRIPTION = 1000
NUMBERS = "numbers.json"
LONGEST_TASK = 200
NEW, REMOVED = ".new-", ".removed-"


def create(
    home: str,
    spec: SessionSpec,
    settings: Settings,
    *,
    actor: str,
    place: Place | None = None,
    sandbox: StoredSandbox | None = None,
    new_id: Callable[[], str] = new_id,
    making: Making | None = None,
) -> Record:
    """Write the record of a new session. Raises ``NameTaken`` or ``UsageError``; nothing is left behind then.

    ``place`` is where it works, when that is not simply the folder of its spec; ``sandbox`` is its container's
    description. ``making`` gives out names and numbers where this home does not do so alone.
    """
    open_home()
    agent = spec.kind()
    is_here = place is None or place.cloned is None
    folder = spec.folder if place is None else place.folder
    folder, where = working_folder(folder) if is_here else (folder, None)
    branch = None if place is None else place.branch
    if spec.name is not None:
        check_name(spec.name)
    check_description(spec.description)
    spec.check_options(agent)
    check_readable("permission mode", spec.permission_mode)
    check_readable("model", spec.model)
    if spec.idle_after_s is not None:
        check_idle_after(spec.idle_after_s)
    tree = discover(folder, home) if branch is None and is_here else None
    sweep(home)
    known = Index(home).refresh()
    known.save()
    with home_lock(home) as names:
        everybody = rows_of_all(home, known)
        rows = not_archived(everybody)
        now = files.stamp()
        usual = f"{agent.name}-{branch or os.path.basename(folder) or 'root'}"[: LONGEST_NAME - 6]
        wanted = free_names(usual, rows) if spec.name is None else (spec.name,)
        session = new_id()
        with (making or MadeHere(home, everybody))(session) as claim:
            name, number = claim(wanted)
            record = Record(
                id=session,
                index=number,
                name=name,
                agent=agent.name,
                argv=spec.argv(agent),
                folder=folder,
                folder_dev=where.st_dev if where is not None else 0,
                folder_ino=where.st_ino if where is not None else 0,
                created_at=now,
                description=spec.description or task_of(spec.prompt or ""),
                runtime=spec.runtime,
                workspace_id=None if place is None else place.workspace_id,
                branch=branch,
                repository=(place.repository if place else "") or (tree.common.removesuffix("/.git") if tree else ""),
                base=None if place is None else place.base,
                profile=spec.profile,
                owner=spec.owner,
                exclusive=place is not None and place.workspace is not None and not spec.share,
                share=spec.share,
                record_changed_at=now,
                last_active_at=now,
                fork_of=spec.fork_of,
                permission_mode=spec.permission_mode,
                model=spec.model,
                when_limit=spec.when_limit or settings.when_limit,
                idle_after_s=_idle_after_s(spec, agent, settings),
                quiet_after_s=settings.quiet_s,
                ready_after_s=agent.ready_after_s,
                shows_prompt=agent.shows_prompt,
                chat=agent.adapter == ACP,
                grace_s=settings.grace_s,
                quit_signal=agent.quit_signal,
                quit_group=agent.quit_group,
                survivors=settings.survivors,
                sandbox=sandbox,
                git=stored(tree),
            )
            _write(home, record, names, actor)
    if tree is not None:
        keep_index(replace(tree, keep=session_folder(home, record.id)), tree.index)
    return record


class MadeHere:
    """Gives out the names and numbers of a home. Who uses it holds the home's lock."""

    def __init__(self, home: str, rows: list[dict[str, Any]]) -> None:
        self.home, self.rows = home, rows

    def __call__(self, session: str) -> MadeHere:
        return self

    def __enter__(self) -> Claim:
        return self._claim

    def __exit__(self, *raised: object) -> None:
        """A session that was not made has used its number up."""

    def _claim(self, names: Iterable[str]) -> tuple[str, int]:
        holders = {row["name"]: row["id"] for row in not_archived(self.rows)}
        for name in names:
            if name not in holders:
                return name, next_number(self.home, self.rows)
        raise NameTaken(name, holders[name])


def working_folder(path: str) -> tuple[str, os.stat_result]:
    """The folder's own path, and what names it for ever. Raises ``UsageError`` when nobody can work there."""
    folder = os.path.realpath(path)
    try:
        stat = os.stat(folder)
    except OSError as error:
        raise UsageError(f"cannot work in {path}: {os.strerror(error.errno or 0).lower()}", field="folder") from None
    if not os.path.isdir(folder):
        raise UsageError(f"cannot work in {path}: it is not a folder", field="folder")
    return folder, stat


def check_description(text: str) -> None:
    check_readable("description", text)
    if len(text) > LONGEST_DESCRIPTION:
        raise UsageError(f"the description is longer than {LONGEST_DESCRIPTION} characters", field="description")


def task_of(prompt: str) -> str:
    """What a first prompt asks for, in its first line."""
    line = next(iter(prompt.strip().splitlines()), "")
    return visible(readable(line))[:LONGEST_TASK]


def check_idle_after(seconds: float) -> None:
    least, most = BOUNDS["idle_after_s"]
    if not least <= seconds <= most:
        raise UsageError(f"expected a time until idle of {least} to {most} seconds, but got {seconds:g}")


def check_readable(what: str, text: str) -> None:
    if readable(text) != text:
        raise UsageError(f"expected the {what} to be UTF-8, but got {readable(text)}", field=what)


def check_name(name: str) -> None:
    check_readable("name", name)
    if not name.strip():
        raise UsageError("a name needs at least one visible character", field="name")
    if len(name) > LONGEST_NAME:
        raise UsageError(f"the name has {len(name)} characters; the limit is {LONGEST_NAME}", field="name")
    if name.isascii() and name.isdigit():
        raise UsageError(
            f"the name {name!r} is only digits, which stand for a session's number; add a letter", field="name"
        )


def home_lock(home: str) -> locks.Lock:
    """Held while names and numbers are given out, one at a time, and not while the rest of a session is made."""
    return locks.Lock(os.path.join(sessions_folder(home), ".lock"))


def rows_of_all(home: str, index: Index) -> list[dict[str, Any]]:
    """Who has which name and number. The caller holds the home's lock.

    ``index`` was refreshed a moment ago. Claims come first: one that becomes a session meanwhile is found as that.
    """
    return [*_claims(home), *index.again().rows.values()]


def not_archived(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those whose names nobody else can have."""
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
    return [path for path in folders if locks.is_held(os.path.join(path, files.LOCK)) is not True] + [
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
        except files.CannotRead:
            continue
        yield {key: value.get(key) for key in ("id", "index", "name", "record")}


def _write(home: str, record: Record, names: locks.Lock, actor: str) -> None:
    """Make the folder under another name and move it into place.

    Its first file claims name and number, and its lock says that we live: then others may have the home's lock.
    """
    made = os.path.join(sessions_folder(home), NEW + record.id)
    os.mkdir(made, 0o700)
    try:
        with locks.Lock(os.path.join(made, files.LOCK)):
            stored = Session(made, actor=actor)
            stored.save(record, durable=False)
            names.release()
            stored.create(record.id, record.workspace_id or "", record=asdict(record))
            stored.save(record)
            os.rename(made, session_folder(home, record.id))
            files.sync_folder(sessions_folder(home))
    except BaseException:
        erase(made)
        raise


def next_number(home: str, rows: list[dict[str, Any]]) -> int:
    """A number that no session has ever had, also none that was deleted. The caller holds the home's lock."""
    path = os.path.join(home, NUMBERS)
    try:
        last = files.read_object(path).get("last")
    except files.CannotRead:
        last = 0  # the numbers of those that are there still count
    number = 1 + max(item for item in (0, last, *(row["index"] for row in rows)) if isinstance(item, int))
    files.write_object(path, {"schema": files.SCHEMA, "last": number}, durable=False)
    return number


def _idle_after_s(spec: SessionSpec, agent: Agent, settings: Settings) -> float:
    """What the session itself says, else the table of the settings: by agent, then by kind."""
    if spec.idle_after_s is not None:
        return spec.idle_after_s
    by_kind = settings.idle_after.get(agent.kind, settings.idle_after_s)
    return settings.idle_after.get(agent.name, by_kind)


def free_name(wanted: str, rows: list[dict[str, Any]]) -> str:
    """``wanted``, such as ``claude-shop``, or ``claude-shop-2`` where one of ``rows`` has that."""
    return next(free_names(wanted, rows))


def free_names(wanted: str, rows: list[dict[str, Any]]) -> Iterator[str]:
    """The names of that kind that none of ``rows`` has, the first one first. There is no end of them."""
    taken = {row["name"] for row in rows}
    name, number = wanted[:LONGEST_NAME], 2
    while True:
        if name not in taken:
            yield name
        end = f"-{number}"
        name, number = wanted[: LONGEST_NAME - len(end)] + end, number + 1
