"""A session's files as they are stored: for people who want to see the truth itself."""

from __future__ import annotations

import os
from dataclasses import dataclass

from hitchpost.ops.doctor.sessions import run_numbers, stored_state
from hitchpost.store import files, records, runfiles
from hitchpost.store.home import run_folder, session_folder

BEGINNING_BYTES = 80


@dataclass(frozen=True, slots=True)
class StoredFile:
    """``error`` says why there is no ``value``: not there, or unreadable."""

    path: str
    value: dict[str, object] | None
    error: str | None = None


def stored_files(home: str, session: str) -> list[StoredFile]:
    """The record, the state, and the files of the current run."""
    folder = session_folder(home, session)
    state = stored_state(folder)
    run = state[0] if state is not None else max(run_numbers(folder), default=1)
    where = run_folder(folder, run)
    paths = [os.path.join(folder, records.RECORD), os.path.join(folder, files.STATE)]
    return [_read(path) for path in (*paths, *(os.path.join(where, name) for name in runfiles.ALL))]


def _read(path: str) -> StoredFile:
    try:
        return StoredFile(path, files.read_object(path))
    except FileNotFoundError:
        return StoredFile(path, None, "not there")
    except files.NewerSchema as error:
        return StoredFile(path, None, str(error))
    except files.Unreadable as error:
        return StoredFile(path, None, f"unreadable: {error.why}; it begins with {_beginning(path)}")
    except OSError as error:
        return StoredFile(path, None, f"unreadable: {os.strerror(error.errno or 0).lower()}")


def _beginning(path: str) -> str:
    try:
        return repr(files.read_ends(path, BEGINNING_BYTES, 0)[:BEGINNING_BYTES])
    except OSError:
        return "nothing that can be read"
